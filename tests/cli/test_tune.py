"""``mxopt launch --tune``: environments tried on a script of the user's own."""

import pytest

from mxopt.cli import tune
from mxopt.core.errors import DeviceError, MxoptError

SCRIPT = """
import mxopt, sys, os
import mxnet as mx
from mxnet import autograd, gluon, nd
net = gluon.nn.Dense(1, in_units=2)
net.initialize()
trainer = gluon.Trainer(net.collect_params(), "sgd")
print(sys.argv, file=open(os.environ.get("SEEN", os.devnull), "a"))
for step in range(int(sys.argv[1])):
    with autograd.record():
        loss = net(nd.ones((1, 2))).sum()
    loss.backward()
    trainer.step(1)
"""


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(SCRIPT)
    return path


def test_steps_are_counted_until_the_time_is_over(script, tmp_path, monkeypatch):
    monkeypatch.setenv("SEEN", str(tmp_path / "seen"))
    rate = tune.steps_a_second(str(script), ["1000000"], {}, 0.3)
    assert rate > 10
    assert (tmp_path / "seen").read_text() == f"{[str(script), '1000000']}\n"


def test_a_script_that_ends_by_itself_is_counted_to_its_end(script):
    assert tune.steps_a_second(str(script), ["20"], {}, 60) > 0


@pytest.mark.parametrize(("argument", "says"), [("2", "too few"), ("x", "invalid literal")])
def test_a_script_that_cannot_be_counted_is_refused(script, argument, says):
    with pytest.raises(MxoptError, match=says):
        tune.steps_a_second(str(script), [argument], {}, 1)


def test_the_exit_status_of_a_script_is_named(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text("import sys\nprint('[12:00] a log of MXNet', file=sys.stderr)\nsys.exit(3)\n")
    with pytest.raises(MxoptError, match=r"to count: it ended with exit status 3$"):
        tune.steps_a_second(str(path), [], {}, 1)
    path.write_text("import os\nos.abort()\n")
    with pytest.raises(MxoptError, match="it was ended by SIGABRT"):
        tune.steps_a_second(str(path), [], {}, 1)


def test_a_script_that_is_not_there(tmp_path):
    with pytest.raises(DeviceError, match="there is no script"):
        tune.tune(str(tmp_path / "no.py"), [])


@pytest.mark.parametrize(("gain", "says"), [(1.5, "best: mxopt launch --switch"), (1, "no env")])
def test_the_best_environment_is_printed_as_a_command(script, monkeypatch, capsys, gain, says):
    order = []

    def measured(script, arguments, variables, seconds):
        order.append(variables.get("MALLOC_MMAP_MAX_"))
        kept = "MALLOC_MMAP_MAX_" in variables and "GLIBC_TUNABLES" not in variables
        better = gain if kept and "OMP_PROC_BIND" not in variables else 1
        return better * (1 + len(order) % 3 / 100)

    monkeypatch.setattr(tune, "steps_a_second", measured)
    monkeypatch.delitem(tune.CANDIDATES, "and Intel's OpenMP")
    tune.tune(str(script), ["5"])
    said = capsys.readouterr().out
    assert says in said
    assert ("allocator=keep" in said.splitlines()[-1]) is (gain > 1)
    first = len(order) // tune.ROUNDS
    assert order[:first] != order[first : 2 * first]  # another order in the next round


def test_an_environment_in_which_the_script_fails_is_left_out(script, monkeypatch, capsys):
    tried = []

    def measured(script, arguments, variables, seconds):
        tried.append("MALLOC_MMAP_MAX_" in variables)
        if tried[-1]:
            raise MxoptError("status -11")
        return 1.0

    monkeypatch.setattr(tune, "steps_a_second", measured)
    kept = {"default": {}, "kept": {"allocator": "keep"}}
    monkeypatch.setattr(tune, "CANDIDATES", kept)
    assert tune.tune(str(script), []) == 0
    said = capsys.readouterr().out
    assert "failed: status -11" in said
    assert "no environment is shown" in said
    assert tried.count(True) == 1
    monkeypatch.setattr(tune, "CANDIDATES", dict(reversed(kept.items())))
    with pytest.raises(MxoptError, match="status -11"):
        tune.tune(str(script), [])


def test_what_is_impossible_here_is_named(monkeypatch, capsys):
    def refuse(plan):
        if plan.openmp == "intel":
            raise DeviceError("install intel-openmp")
        return {}

    monkeypatch.setattr(tune.methods, "environment", refuse)
    plans, _ = tune._possible()
    assert "and Intel's OpenMP" not in plans
    assert "not tried, install intel-openmp" in capsys.readouterr().out
