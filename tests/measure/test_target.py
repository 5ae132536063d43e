import math
from pathlib import Path

import pytest

from mxopt import report
from mxopt.core.plan import Plan
from mxopt.core.records import Run
from mxopt.measure import Experiment, history, time_to_target


def run(seconds, scores, preparation=0.0, status="ok"):
    epochs = [{"event": "epoch", "seconds": seconds, "validation_mIoU": score} for score in scores]
    events = [{"event": "setup", "preprocessing_seconds": preparation}, *epochs]
    return Run(Path("x"), Plan(), "w", status=status, events=events)


def experiment(before, after):
    return Experiment("e", "w", {"b": Plan(), "a": Plan()}, runs={"b": before, "a": after})


def test_the_target_is_what_the_baseline_of_the_same_seed_ended_with():
    found = time_to_target(
        experiment(
            [run(10, [0.5, 0.8, 0.7]), run(10, [0.5, 0.6, 0.9])],
            [run(4, [0.6, 0.75], 1.0), run(4, [0.95], 1.0)],
        ),
        "a",
        "validation_mIoU",
    )
    assert found.targets == [0.7, 0.9]
    assert found.before == [20, 30]  # the first run had reached its own end before the end
    assert found.after == [9, 5]
    assert found.ratio.value == pytest.approx(math.sqrt(20 / 9 * 30 / 5))


def test_a_check_within_an_epoch_counts_from_where_the_epoch_began():
    events = [
        {"event": "setup", "preprocessing_seconds": 1},
        {"event": "check", "seconds": 4, "validation_mIoU": 0.5},
        {"event": "epoch", "seconds": 10, "validation_mIoU": 0.6, "train_loss": 2.0},
        {"event": "check", "seconds": 3, "validation_mIoU": 0.8},
        {"event": "epoch", "seconds": 8, "validation_mIoU": 0.7, "train_loss": 1.0},
    ]
    checked = Run(Path("x"), Plan(), "w", status="ok", events=events)
    assert history(checked, "validation_mIoU") == [(4, 0.5), (10, 0.6), (13, 0.8), (18, 0.7)]
    assert history(checked, "train_loss") == [(10, 2.0), (18, 1.0)]
    found = time_to_target(experiment([run(20, [0.7])], [checked]), "a", "validation_mIoU")
    assert found.after == [1 + 10 + 3]


def test_a_target_never_reached_gives_no_ratio():
    found = time_to_target(
        experiment([run(1, [0.5])] * 2, [run(1, [0.6]), run(1, [0.4])]), "a", "validation_mIoU"
    )
    assert found.ratio is None
    assert found.missed == 1
    table = report.target(found, "mIoU")
    assert table.rows[1][-1] == "never"
    assert "1 of 2 runs never reached" in table.caption


def test_a_run_that_did_not_end_well_is_no_pair():
    found = time_to_target(
        experiment([run(1, [0.5])], [run(1, [0.9], status="diverged")]), "a", "validation_mIoU"
    )
    assert (found.targets, found.ratio) == ([], None)


def test_pairs_are_compared_by_the_time_to_target_and_the_quality_at_the_end():
    def arm(seconds, scores, quality):
        runs = [run(seconds, scores), run(seconds * 1.1, scores), run(seconds, scores)]
        for one in runs:
            one.figures["test"] = quality
        return runs

    compared = Experiment(
        "e", "w", {"before": Plan(), "good": Plan(epochs=2), "lossy": Plan(), "never": Plan()},
        quality="test", margin=0.005, target="validation_mIoU",
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
        "faster, test holds",
    ]  # fmt: skip
    assert lossy[-1] == (
        "faster, test lost: difference -0.0100 [-0.0100, -0.0100], n = 3, margin 0.005"
    )
    assert never[3:] == ["infinite", "no ratio", "3 of 3 runs never reached the target"]
