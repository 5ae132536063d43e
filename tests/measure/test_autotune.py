"""Coordinate ascent: near the best of the grid, in few trials, within its time."""

import itertools
import subprocess
import sys
import time
import types

import numpy as np
import pytest

from mxopt import machine
from mxopt.cli.main import main
from mxopt.core.errors import PlanError
from mxopt.core.plan import Plan
from mxopt.measure import autotune
from mxopt.methods.input_pipeline import loading

CHOICES = {
    "placement": ("lazy", "cached"),
    "workers": (0, 1, 2, 3, 4, 6, 8, 12),
    "prefetch": (1, 2, 4, 8, 16),
}


def loader(cores, ahead, noise=0.0, seed=0):
    """A made-up machine: more workers help up to its cores, prefetching saturates."""
    random = np.random.RandomState(seed)

    def rate(settings):
        workers, prefetch = settings["workers"], settings["prefetch"]
        parallel = min(max(workers, 1), cores) / (1 + 0.2 * max(0, workers - cores))
        value = 100 * parallel * (1 - 0.5 ** (prefetch / ahead))
        value *= 3 if settings["placement"] == "cached" else 1
        return value * (1 + noise * random.normal())

    return rate


@pytest.mark.parametrize("cores", [1, 2, 4, 16])
@pytest.mark.parametrize("ahead", [0.5, 2])
def test_it_is_near_the_best_of_the_grid_in_a_quarter_of_its_trials(cores, ahead):
    rate = loader(cores, ahead)
    grid = [dict(zip(CHOICES, values)) for values in itertools.product(*CHOICES.values())]
    best = max(map(rate, grid))
    found, trials = autotune.climb(rate, CHOICES)
    assert rate(found) >= 0.95 * best
    assert len(trials) <= len(grid) / 4
    assert len({tuple(settings.items()) for settings, _ in trials}) == len(trials)


def test_noise_does_not_keep_it_climbing():
    for seed in range(10):
        _, trials = autotune.climb(loader(2, 0.5, noise=0.01, seed=seed), CHOICES)
        assert len(trials) <= 20


def test_it_ends_in_time_and_returns_the_best_so_far():
    seconds = iter(range(100))
    found, trials = autotune.climb(loader(8, 2), CHOICES, seconds=3, clock=lambda: next(seconds))
    assert 1 < len(trials) < 6
    assert loader(8, 2)(found) == max(rate for _, rate in trials)


def test_it_goes_down_as_well_from_where_it_starts():
    found, _ = autotune.climb(loader(1, 0.5), CHOICES, {"workers": 8})
    assert found["workers"] == 1 or loader(1, 0.5)(found) == pytest.approx(
        loader(1, 0.5)({**found, "workers": 1}), rel=0.03
    )


@pytest.mark.parametrize(
    ("choices", "start", "says"),
    [({}, {}, "nothing to choose"), ({"x": ()}, {}, "nothing to choose"),
     ({"x": (1, 2)}, {"x": 3}, "x=3 is none of"), ({"x": (1, 2)}, {"y": 1}, "y=1 is none of")],
)  # fmt: skip
def test_what_cannot_be_chosen_is_refused(choices, start, says):
    with pytest.raises(PlanError, match=says):
        autotune.climb(lambda settings: 1.0, choices, start)


def test_results_are_kept_for_each_machine(tmp_path):
    path = tmp_path / "cache" / "autotune.json"
    assert autotune.kept(path, "a") is None
    autotune.keep(path, "a", {"num_workers": 2})
    autotune.keep(path, "b", {"num_workers": 0})
    assert autotune.kept(path, "a") == {"num_workers": 2}
    path.write_text("{")
    assert autotune.kept(path, "a") is None
    autotune.keep(path, "a", {"num_workers": 4})
    assert autotune.kept(path, "a") == {"num_workers": 4}


def test_a_loader_is_tuned_on_the_recipe_itself():
    trials = []

    def write(event, **fields):
        if event == "trial":
            trials.append(fields)

    found = autotune.tune_loader(Plan(batch_size=4), write, "toy:toy", seconds=2, each=0.1)
    assert found["samples_per_second"] == trials[0]["samples_per_second"]
    best = max(trials, key=lambda one: one["samples_per_second"])
    assert found["best_samples_per_second"] == best["samples_per_second"]
    assert trials[0]["settings"]["num_workers"] == 0
    assert len(trials) > 1
    Plan(batch_size=4).replace(**found["settings"])  # which is a plan


def test_all_combinations_can_be_tried(monkeypatch):
    settings = {"num_workers": (0, 1), "prefetch": (None, 1)}
    monkeypatch.setattr(autotune, "choices", lambda cores: settings)
    tried = []

    def write(event, **fields):
        if event == "trial":
            tried.append((fields["samples_per_second"], fields["settings"]))

    found = autotune.tune_loader(Plan(batch_size=4), write, "toy:toy", each=0.05, exhaustive=True)
    shown = [tuple(settings.values()) for _, settings in tried]
    assert shown[0] == (0, None)  # the plan's own, then every one that is possible
    assert sorted(shown[1:], key=str) == [(1, 1), (1, None)]
    assert found["trials"] == 3
    assert (found["best_samples_per_second"], found["settings"]) == max(tried, key=lambda t: t[0])


def test_settings_that_use_too_much_memory_are_not_chosen(monkeypatch):
    used = iter([100, 300, 500, 500])
    monkeypatch.setattr(autotune, "choices", lambda cores: {"num_workers": (0, 1)})
    monkeypatch.setattr(machine, "memory_used", lambda: next(used))
    tried = []

    def write(event, **fields):
        tried.append(fields)

    def tune(memory):
        return autotune.tune_loader(Plan(batch_size=4), write, "toy:toy", each=0.02, memory=memory)

    assert tune(200)["settings"] == {"num_workers": 0}
    assert [trial["memory_bytes"] for trial in tried[1:]] == [100, 300]
    with pytest.raises(PlanError, match="more than 0 MiB"):
        tune(400)


def test_nothing_possible_ends_the_climb():
    choices = {"x": range(5), "y": (1, 2)}
    _, trials = autotune.climb(lambda settings: 0.0, choices)
    assert len(trials) < 10


def test_the_memory_of_a_child_counts():
    before = machine.memory_used()
    # far more than the pages of MXNet's library, whose share falls while others load it too
    code = "import time; held = bytearray(512 << 20); print(len(held), flush=True); time.sleep(60)"
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    try:
        child.stdout.readline()
        assert machine.memory_used() - before > 256 << 20
    finally:
        child.kill()
        child.wait()


def test_what_workers_loaded_before_the_clock_started_is_not_counted(monkeypatch):
    class Loader:
        def __iter__(self):
            for number in range(30):
                time.sleep(0 if number < 8 else 0.02)  # 8: two for each of four workers
                yield types.SimpleNamespace(size=4)

    monkeypatch.setattr(autotune, "choices", lambda cores: {"num_workers": (4,)})
    monkeypatch.setattr(loading, "make_loader", lambda *_: Loader())
    found = autotune.tune_loader(
        Plan(batch_size=4, num_workers=4), lambda *_, **__: None, "toy:toy", each=0.1
    )
    assert 0 < found["samples_per_second"] <= 4 / 0.02


def test_the_command_keeps_what_it_has_found(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("MXOPT_CACHE", str(tmp_path))
    words = ["autotune", "toy:toy", "batch_size=4", "--seconds", "1"]
    assert main(words) == 0
    first = capsys.readouterr().out
    assert "samples a second  transforms=gluon num_workers=0" in first
    assert main(words) == 0
    again = capsys.readouterr().out
    assert again.startswith("kept from an earlier trial")
    assert again.splitlines()[-1] == first.splitlines()[-1]
    assert main([*words, "--again"]) == 0
    assert "samples a second" in capsys.readouterr().out
    longer = [*words[:-1], "2"]
    assert main(longer) == 0
    assert "kept" not in capsys.readouterr().out


@pytest.mark.parametrize("seconds", ["-1", "0", "nan", "inf", "soon"])
def test_the_command_needs_seconds_above_zero(tmp_path, monkeypatch, capsys, seconds):
    monkeypatch.setenv("MXOPT_CACHE", str(tmp_path))
    with pytest.raises(SystemExit) as stop:
        main(["autotune", "toy:toy", "--seconds", seconds])
    assert stop.value.code == 2
    assert f"--seconds: '{seconds}' must be a finite number above 0" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("seconds", [-1, 0, float("nan")])
def test_a_search_without_time_is_refused(seconds):
    with pytest.raises(PlanError, match="must be above 0, such as 20"):
        autotune.tune_loader(Plan(batch_size=4), lambda *_, **__: None, "toy:toy", seconds=seconds)
