"""The table of runs against a goal."""

from pathlib import Path

from mxopt import report
from mxopt.core.plan import Plan
from mxopt.core.records import Run
from mxopt.measure import Experiment

METRIC = "validation_mIoU"


def run(seed, start, scores):
    events = [{"event": "check", "progress": 0.0, "seconds": 0.0, "step": 0, METRIC: start}]
    events += [
        {"event": "epoch", "seconds": 2.0, "step": 10 * epoch, METRIC: score}
        for epoch, score in enumerate(scores, 1)
    ]
    return Run(
        Path("x"), Plan(seed=seed), "w", status="ok", events=events, read_all=lambda: iter(())
    )


def test_each_run_has_its_start_its_time_and_its_end():
    runs = {"new": [run(0, 0.3, [0.7, 0.9]), run(1, 0.2, [0.5, 0.6])], "kept": [run(0, 0.8, [0.7])]}
    arms = dict.fromkeys(runs, Plan())
    found = report.goals(Experiment("e", "w", arms, target=METRIC, goal=0.8, runs=runs))
    assert found.rows == [
        ["new", "0", "0.3", "4 s", "20", "0.9"],
        ["new", "1", "0.2", "not within 4 s", "not within 20", "0.6"],
        ["kept", "0", "0.8", "0 s", "0", "0.7"],
    ]
    assert "validation mIoU of 0.8, the same for all runs" in found.caption
