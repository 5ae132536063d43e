import math
from pathlib import Path

import pytest

from mxopt import report
from mxopt.core.plan import Plan
from mxopt.core.records import Run
from mxopt.measure import Experiment, history, time_to_target
from mxopt.measure.statistics import Ratio
from mxopt.measure.target import bounded
from mxopt.report import plots

METRIC = "validation_mIoU"


def run(
    seconds, scores, preparation=0.0, status="ok", start=0.1, steps=10, quality=None, last=None
):
    """A run of epochs that each take ``seconds`` and ``steps`` steps of four samples.

    ``start`` is the score at step 0; ``last`` are seconds trained after the last epoch.
    """
    events = [
        {"event": "setup", "preprocessing_seconds": preparation},
        {"event": "check", "progress": 0.0, "seconds": 0.0, "step": 0, METRIC: start},
    ]
    parts = []
    for epoch, score in enumerate(scores, 1):
        parts.append({"event": "steps", "seconds": seconds, "sizes": [4] * steps})
        events.append({"event": "epoch", "seconds": seconds, "step": epoch * steps, METRIC: score,
                       "samples": 4 * steps})  # fmt: skip
    if last:
        parts.append({"event": "steps", "seconds": last, "sizes": [4] * 2})
    return Run(
        Path("x"), Plan(), "w", status=status, events=events, reason=status.replace("ok", ""),
        figures={"seconds": seconds * len(scores), "test": quality},
        read_all=lambda: iter(parts),
    )  # fmt: skip


def experiment(before, after, goal=0.8, **more):
    arms = {"before": Plan(), "after": Plan()}
    how = {"target": METRIC, "goal": goal, "planned": len(before), **more}
    return Experiment("e", "w", arms, runs={"before": before, "after": after}, **how)


def seconds(reaches):
    return [reach.seconds for reach in reaches]


def test_the_target_is_the_same_fixed_number_for_all_seeds():
    found = time_to_target(
        experiment(
            [run(10, [0.5, 0.8, 0.7]), run(10, [0.5, 0.6, 0.9])],
            [run(4, [0.7, 0.85], 1.0), run(4, [0.95], 1.0)],
        ),
        "after",
    )
    assert found.targets == [0.8, 0.8]
    assert seconds(found.before) == [20, 30]
    assert seconds(found.after) == [9, 5]
    assert found.ratio.value == pytest.approx(math.sqrt(20 / 9 * 30 / 5))
    assert (found.missed, found.bound, found.why) == ((0, 0), "", "")


def test_the_time_is_the_seconds_of_a_step_times_the_steps_needed():
    found = time_to_target(
        experiment(
            [run(10, [0.5, 0.8]), run(12, [0.5, 0.8]), run(11, [0.5, 0.5, 0.8])],
            [run(4, [0.8], 1.0, steps=5), run(5, [0.8], 1.0, steps=5), run(4, [0.8], steps=5)],
        ),
        "after",
    )
    assert found.step.value == pytest.approx(((10 / 5) * (12 / 6) * (11 / 4)) ** (1 / 3) / 2)
    assert found.steps.value == pytest.approx((4 * 4 * 6) ** (1 / 3))
    assert found.step.value * found.steps.value == pytest.approx(found.ratio.value)
    assert found.steps.low < found.steps.value < found.steps.high
    assert [reach.size for reach in found.before] == [80, 80, 120]


def test_old_experiments_have_the_final_value_of_the_baseline_as_target():
    runs = [run(10, [0.5, 0.8, 0.7]), run(10, [0.5, 0.6, 0.9])], [run(4, [0.7]), run(4, [0.95])]
    found = time_to_target(experiment(*runs, goal=None, planned=0), "after")
    assert found.targets == [0.7, 0.9]
    assert found.ratio.value == pytest.approx(math.sqrt(20 / 4 * 30 / 4))
    assert time_to_target(experiment(*runs, goal=None), "after").why == (
        "no goal was fixed before measuring"
    )


def test_a_history_begins_before_the_first_step():
    events = [
        {"event": "setup", "preprocessing_seconds": 1},
        {"event": "check", "progress": 0.0, "seconds": 0.0, "step": 0, METRIC: 0.1},
        {"event": "check", "seconds": 4, METRIC: 0.5},
        {"event": "epoch", "seconds": 10, METRIC: 0.6, "train_loss": 2.0},
        {"event": "check", "seconds": 3, METRIC: 0.8},
        {"event": "epoch", "seconds": 8, METRIC: 0.7, "train_loss": 1.0},
    ]
    checked = Run(Path("x"), Plan(), "w", status="ok", events=events)
    assert history(checked, METRIC) == [(0, 0.1), (4, 0.5), (10, 0.6), (13, 0.8), (18, 0.7)]
    assert history(checked, "train_loss") == [(10, 2.0), (18, 1.0)]
    measured = experiment([run(20, [0.8])], [checked])
    found = time_to_target(measured, "after")
    assert seconds(found.after) == [1 + 10 + 3]
    assert (found.step, found.steps) == (None, None)  # the check has no number of steps
    assert report.targets(measured).rows[0][5:8] == ["not recorded"] * 3
    lines = plots.curves(measured, METRIC).axes[0].lines
    assert lines[0].get_xydata().tolist() == [[0, 0.1], [20, 0.8]]
    assert list(lines[-1].get_ydata()) == [0.8, 0.8]  # the target


MISSING = {
    "too low at the end": run(2, [0.5, 0.6]),
    "diverged above the target": run(2, [0.5, 0.9], status="diverged"),
    "killed in its second epoch": run(2, [0.5], status="killed", last=2.0),
}


@pytest.mark.parametrize("name", MISSING)
def test_an_arm_that_misses_the_target_gives_a_bound(name):
    """It is censored at the four seconds that it trained; no pair is left out."""
    others = [run(2, [0.5, 0.8]), run(2, [0.5, 0.9])]
    found = time_to_target(experiment([*others, MISSING[name]], [run(1, [0.8])] * 3), "after")
    assert seconds(found.before) == [4, 4, 4]
    assert (found.missed, found.bound, found.ratio.high) == ((1, 0), "at least", math.inf)
    assert str(found) == "at least 4.00 (95 %: 4.00), n = 3"
    found = time_to_target(experiment([run(1, [0.8])] * 3, [*others, MISSING[name]]), "after")
    assert (found.missed, found.bound, found.ratio.low) == ((0, 1), "at most", 0)
    assert str(found) == "at most 0.25 (95 %: 0.25), n = 3"
    assert found.ratio.verdict == "slower"


def test_the_end_of_a_bound_is_not_rounded_to_1():
    shown = bounded(Ratio(1.2, 1.002, math.inf, 6), "at least")
    assert shown == "at least 1.200 (95 %: 1.002), n = 6"


def test_a_bound_of_one_pair_has_no_interval():
    found = time_to_target(experiment([run(1, [0.5])], [run(4, [0.8])]), "after")
    assert str(found) == "at least 0.25 (no interval), n = 1"


def test_a_bound_shows_only_one_direction():
    """At least 0.25 can be 10, and at most 4 can be 0.1."""
    found = time_to_target(experiment([run(1, [0.5])] * 3, [run(4, [0.8])] * 3), "after")
    assert (str(found), found.ratio.verdict) == (
        "at least 0.25 (95 %: 0.25), n = 3", "not significant",
    )  # fmt: skip
    assert (found.step.value, found.bound) == (0.25, "at least")
    assert (found.steps.value, found.steps.high) == (1, math.inf)
    found = time_to_target(experiment([run(4, [0.8])] * 3, [run(1, [0.5])] * 3), "after")
    assert (str(found), found.ratio.verdict) == (
        "at most 4.00 (95 %: 4.00), n = 3", "not significant",
    )  # fmt: skip


def test_where_both_arms_miss_there_is_no_ratio():
    found = time_to_target(
        experiment([run(1, [0.5]), run(1, [0.5])], [run(1, [0.9]), run(1, [0.5])]), "after"
    )
    assert found.ratio is None
    assert found.why == (
        "before missed the target in 2 of 2 runs, after missed the target in 1 of 2 runs"
    )
    table = report.target(found, "mIoU")
    assert table.rows[1][2:] == ["not in 1 s", "not in 1 s"]
    assert "missed the target in 2 of 2" in table.caption


def test_an_arm_that_starts_at_the_target_has_no_ratio():
    measured = experiment([run(9, [0.9])] * 2, [run(4, [0.9], 1.0, start=0.8)] * 2)
    found = time_to_target(measured, "after")
    assert seconds(found.after) == [0, 0]
    assert (found.ratio, found.why) == (None, "after starts above the target")
    assert report.targets(measured).rows[0][3:5] == ["0 s", "no ratio"]


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (run(1, [], status="refused"), "after refused"),
        (run(1, [], status="failed"), "a run of after ended before its first step"),
    ],
)
def test_what_never_trained_has_no_ratio(bad, why):
    found = time_to_target(experiment([run(1, [0.8])], [bad]), "after")
    assert (found.ratio, found.why) == (None, why)


def test_times_of_resumed_runs_and_of_a_part_of_the_plan_are_no_evidence():
    resumed = run(1, [0.8])
    resumed.events.insert(1, {"event": "resumed", "epoch": 1, "step": 0})
    found = time_to_target(experiment([run(9, [0.8])], [resumed]), "after")
    assert found.why == "a run of after was resumed: its times are no evidence"
    found = time_to_target(experiment([run(9, [0.8])], [run(1, [0.8])], planned=2), "after")
    assert found.why == "unfinished: 1 of 2 planned runs"


def test_pairs_are_compared_by_the_time_to_target_and_the_quality_at_the_end():
    def arm(seconds, scores, quality):
        return [run(seconds * slow, scores, quality=quality) for slow in (1, 1.1, 1)]

    compared = Experiment(
        "e", "w", {"before": Plan(), "good": Plan(epochs=2), "lossy": Plan(), "never": Plan()},
        quality="test", margin=0.005, target=METRIC, goal=0.7, planned=3,
        runs={
            "before": arm(10, [0.5, 0.7], 0.80),
            "good": arm(2, [0.7], 0.796),
            "lossy": arm(2, [0.7], 0.79),
            "never": arm(2, [0.6], 0.9),
        },
    )  # fmt: skip
    good, lossy, never = report.targets(compared).rows
    assert good == [
        "before → good", "epochs: 1 → 2", "20 s", "2 s", "10.00 [10.00, 10.00], n = 3",
        "5.00 [5.00, 5.00], n = 3", "2.00 [2.00, 2.00], n = 3", "80 → 40 samples",
        "faster, test holds",
    ]  # fmt: skip
    assert lossy[-1] == (
        "faster, test lost: difference -0.0100 [-0.0100, -0.0100], n = 3, margin 0.005"
    )
    assert never[3:] == [
        "not in 2 s", "at most 10.00 (95 %: 10.00), n = 3", "5.00 [5.00, 5.00], n = 3",
        "at most 2.00 (95 %: 2.00), n = 3", "not reached by all",
        "not significant; never missed the target in 3 of 3 runs",
    ]  # fmt: skip
    assert "reaches 0.7, fixed before measuring" in report.targets(compared).caption
