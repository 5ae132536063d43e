"""Whole trainings without and with one switch: what is run, and what the page says of them."""

from pathlib import Path

import pytest

from benchmarks import processor_page, training
from benchmarks.cases import STEPS
from benchmarks.parts import PARTS
from benchmarks.training import LEARNING, TRAINING
from mxopt import measure
from mxopt.core.plan import Plan
from mxopt.core.records import Run
from mxopt.measure import Experiment


@pytest.mark.parametrize("name", TRAINING)
def test_both_arms_train_on_everything_and_differ_in_the_switch_alone(monkeypatch, name):
    found = {}
    monkeypatch.setattr(
        measure, "interleave", lambda *a, **k: found.update(workload=a[1], arms=a[2], **k)
    )
    PARTS[name](name, 6, Path("nowhere"))
    (first, one), (last, other) = TRAINING[name]["changes"].items()
    assert found["pairs"] == [(first, last)]
    assert found["workload"] == "mxopt.chapter.workloads:train"
    assert list(found["arms"]) == [first, last]
    assert not found["arms"][first].diff(found["arms"][last])
    options = found["arm_options"]
    assert {**options[first], **other} == {**options[last], **one}
    assert options[first] != options[last]
    assert options[last]["limit"] is None
    assert found["seeds"]
    assert found["margin"] > 0
    for switch, value in {**LEARNING, **STEPS["transformer"]["levers"]["fused-updates"]}.items():
        assert getattr(found["arms"][last], switch) == value, switch


def trained(worse=0.0):
    """Return an experiment whose last arm is faster, and its translations worse by so much."""
    plans = {"float32": Plan(seed=1), "bfloat16": Plan(seed=1)}
    seconds, chrf = {"float32": 30.0, "bfloat16": 20.0}, {"float32": 30.0, "bfloat16": 30.0 - worse}
    runs = {
        arm: [Run(Path("x"), plan, "w", status="ok",
                  figures={"training_seconds": seconds[arm] + extra, "test_chrf": chrf[arm]},
                  events=[{"event": "environment", "cpu": {"model": "C", "logical_cores": 2}},
                          {"event": "check", "progress": 0, "validation_chrf": 0.0},
                          {"event": "epoch", "train_loss": 1.0}])
              for extra in (0.0, 0.1, 0.2)]
        for arm, plan in plans.items()
    }  # fmt: skip
    return Experiment(
        "training-bfloat16", "w", plans, title="T", runs=runs, planned=3, figure="training_seconds",
        quality="test_chrf", margin=1.0, pairs=[("float32", "bfloat16")],
        arm_options={"float32": {"dense": "float32"}, "bfloat16": {"dense": "bfloat16"}},
    )  # fmt: skip


@pytest.mark.parametrize(("worse", "said"), [(0.5, "faster, test_chrf holds"),
                                             (2.0, "faster, test_chrf lost")])  # fmt: skip
def test_the_page_says_whether_the_scores_hold(worse, said):
    shown = processor_page.trainings({"training-bfloat16": trained(worse)})
    text = "\n\n".join(map(str, shown))
    assert said in text
    assert "1.50 [" in text
    assert f"| {30 - worse:g} |" in text
    assert training.ABOUT in text
    assert processor_page.trainings({}) == []
