import os
import subprocess
import sys
import time

import pytest
import toy

from mxopt.cluster.launcher import GRACE
from mxopt.plan import Plan
from mxopt.records import read_run
from mxopt.training import fit


@pytest.fixture
def job(tmp_path, hosts):
    """Return a function that starts a job of two workers, one on each host, and its record."""
    (tmp_path / "hosts").write_text("\n".join(hosts))
    record = tmp_path / "run.jsonl"

    def start(*words):
        command = [sys.executable, "-m", "mxopt.cli", "run", "toy:toy", "batch_size=4",
                   "momentum=0.9", "sync=dist_sync", "processes=2", *words,
                   "--hosts", str(tmp_path / "hosts"), "--record", str(record)]  # fmt: skip
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        return subprocess.Popen(command, env=environment, text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT)  # fmt: skip

    return start, record


def trained_alone(**switches):
    plan = Plan(batch_size=4, momentum=0.9, **switches)
    return fit(toy.toy(600), plan, lambda event, **fields: None)


def gone(members):
    """Whether no process is left, which those on other hosts notice a moment later."""
    last = time.monotonic() + 2
    while members() and time.monotonic() < last:
        time.sleep(0.05)
    return not members()


@pytest.mark.timeout(120)
def test_two_hosts_train_together_and_leave_nothing_behind(job, members):
    start, record = job
    assert start("epochs=1", "--option", "train=600").wait() == 0
    found = read_run(record).figures["test_loss"]
    assert found == pytest.approx(trained_alone(epochs=1)["test_loss"], abs=1e-5)
    assert gone(members)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("hosts", ["sessions"], indirect=True)
def test_a_killed_worker_ends_the_job_which_then_goes_on(job, hosts, members):
    start, record = job
    words = ["epochs=3", "--option", "train=600", "--checkpoints"]
    killed = start(*words)
    folder = record.with_suffix(".checkpoints")
    while killed.poll() is None and not list(folder.glob("epoch-*.json")):
        time.sleep(0.01)
    [worker] = members(worker="1")
    worker.kill()
    said = killed.communicate(timeout=GRACE + 10)[0].splitlines()[-1]
    assert killed.returncode == 1
    kept = max(folder.glob("epoch-*.json"))
    assert said.startswith(f"mxopt: the run ended as killed: worker 1 on {hosts[1]} ended with ")
    assert said.endswith(f"; the same command goes on from the checkpoint {kept}")
    assert gone(members)

    assert start(*words).wait() == 0
    resumed, expected = read_run(record).figures, trained_alone(epochs=3)
    assert resumed["resumed_epochs"] == int(kept.stem[-4:])
    for figure in ("train_loss", "validation_loss", "test_loss"):
        assert resumed[figure] == pytest.approx(expected[figure], abs=1e-5)
    assert not folder.exists()
