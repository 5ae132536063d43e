"""A speed-up is claimed only from the same start, and only where quality is shown to hold."""

import math
from pathlib import Path

import pytest

from mxopt.core.plan import Plan
from mxopt.core.records import Run
from mxopt.measure import Experiment

FIGURES = {"slow": [2.0, 2.1, 2.0, 2.2], "fast": [1.0, 1.0, 1.1, 1.0]}


def run(seconds, quality, start=0.3, weights="a", parameters=10, seed=0):
    """A run of training; ``start`` is its score at step 0, None if it is not recorded."""
    events = [{"event": "weights", "hash": weights, "parameters": parameters}]
    if start is not None:
        events += [{"event": "check", "progress": 0.0, "seconds": 0.0, "step": 0,
                    "validation_mIoU": start}]  # fmt: skip
    events += [
        {"event": "check", "progress": 0.5, "seconds": 1.0, "validation_mIoU": 0.7},
        {"event": "epoch", "seconds": 2.0, "train_loss": 0.5, "validation_mIoU": 0.8},
    ]
    figures = {"seconds": seconds, "test_mIoU": quality}
    return Run(Path("x"), Plan(seed=seed), "w", status="ok", figures=figures, events=events)


def experiment(gained=(0.0, 0.0, 0.0, 0.0), before=None, after=None, **more):
    """Two arms, whose test_mIoU differs by ``gained`` in each pair of runs."""
    scores = (0.80, 0.85, 0.90, 0.82)
    seeds = enumerate(zip(FIGURES["slow"], FIGURES["fast"], scores, gained))
    runs = {"slow": [], "fast": []}
    for seed, (slow, fast, score, gain) in seeds:
        runs["slow"].append(run(slow, score, seed=seed, **(before or {})))
        runs["fast"].append(run(fast, score + gain, seed=seed, **(after or {})))
    how = {"quality": "test_mIoU", "margin": 0.01, **more}
    return Experiment("e", "w", dict.fromkeys(runs, Plan()), runs=runs, **how)


@pytest.mark.parametrize(
    ("gained", "verdict"),
    [
        ((0.0, 0.001, -0.001, 0.0), "faster, test_mIoU holds"),
        ((0.02, 0.03, 0.02, 0.03), "faster, test_mIoU holds"),
        # The medians are equal, and yet a loss above the margin is possible.
        (
            (-0.03, 0.03, -0.02, 0.02),
            "faster, test_mIoU not shown to hold: difference +0.0000 [-0.0468, +0.0468], n = 4, "
            "margin 0.01",
        ),
        (
            (-0.05, -0.05, -0.06, -0.06),
            "faster, test_mIoU lost: difference -0.0550 [-0.0642, -0.0458], n = 4, margin 0.01",
        ),
        ((math.nan, 0.0, 0.0, 0.0), "faster, test_mIoU not measured"),
    ],
)
def test_quality_holds_if_the_interval_of_the_difference_is_above_minus_the_margin(gained, verdict):
    assert experiment(gained).verdict("fast") == verdict


def test_equal_quality_holds_without_a_margin():
    assert experiment(margin=0.0).verdict("fast") == "faster, test_mIoU holds"


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        ({"start": 0.284}, {"start": 0.877},
         "not the same start: validation_mIoU 0.284 and 0.877 at step 0"),
        ({"start": 0.284}, {"start": math.nan},
         "not the same start: validation_mIoU 0.284 and nan at step 0"),
        ({"start": 0.300}, {"start": 0.305}, "faster, test_mIoU holds"),
        ({"start": None}, {}, "faster, start not recorded"),
        ({}, {"start": None}, "faster, start not recorded"),
        ({"weights": "a"}, {"weights": "b"},
         "not the same start: other initial weights with the same seed, 0"),
        ({"weights": "a"}, {"weights": "b", "parameters": 11}, "faster, test_mIoU holds"),
    ],
)  # fmt: skip
def test_a_training_speed_up_needs_the_same_start(before, after, verdict):
    assert experiment(before=before, after=after).verdict("fast") == verdict


def test_the_start_of_older_runs_of_pytorch_is_their_check_at_step_0():
    found = experiment()
    for one in found.runs["slow"]:
        del one.events[1]["progress"]
    assert found.verdict("fast") == "faster, test_mIoU holds"
    found.runs["slow"][0].events[1]["step"] = 5
    assert found.verdict("fast") == "faster, start not recorded"


def test_one_pair_that_starts_apart_is_enough():
    found = experiment()
    found.runs["fast"][2].events[1]["validation_mIoU"] = 0.6
    assert found.verdict("fast") == "not the same start: validation_mIoU 0.300 and 0.600 at step 0"


def test_a_training_without_quality_makes_no_claim_about_it():
    assert experiment(quality="").verdict("fast") == "faster, quality not compared"
    assert experiment(quality="").verdict("slow", "fast") == "slower"


def test_what_trains_nothing_needs_no_start():
    found = experiment()
    for runs in found.runs.values():
        for one in runs:
            one.events.clear()
    assert found.verdict("fast") == "faster, test_mIoU holds"


def test_the_same_arm_twice_shows_the_noise():
    found = experiment(again="slow-again")
    found.arms["slow-again"], found.runs["slow-again"] = Plan(), found.runs["slow"]
    assert found.compared() == [("slow", "fast"), ("slow", "slow-again")]
    assert found.verdict("slow-again", "slow") == "A/A: the harness's own noise"
    found.runs["slow-again"] = found.runs["fast"]
    assert found.verdict("slow-again", "slow") == (
        "A/A: the same arm twice comes out faster; smaller effects show nothing"
    )


def test_a_score_is_better_or_worse_and_not_faster():
    scored = {"figure": "test_mIoU", "unit": "", "better": "higher", "quality": ""}
    found = experiment((0.05, 0.06, 0.05, 0.06), **scored)
    assert found.verdict("fast") == "better"
    assert found.verdict("slow", "fast") == "worse"
    assert experiment((0.05, -0.06, 0.05, -0.06), **scored).verdict("fast") == "not significant"
