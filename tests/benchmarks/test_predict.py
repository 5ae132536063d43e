"""The parts that measure predictions: which arms there are, and what the page says of them."""

from pathlib import Path

import pytest

from benchmarks import predict
from mxopt import measure
from mxopt.core.plan import Plan
from mxopt.core.records import Run
from mxopt.kernels import build
from mxopt.measure import Experiment


@pytest.mark.parametrize(("instructions", "more"), [([], set()), (["amx_int8"], {"int8-amx"})])
@pytest.mark.parametrize("name", predict.PREDICT)
def test_arms_differ_from_int8_in_one_thing(monkeypatch, tmp_path, name, instructions, more):
    asked = {}
    monkeypatch.setattr(build, "instructions", lambda: instructions)
    monkeypatch.setattr(
        measure, "interleave", lambda name, workload, arms, **how: asked.update(how, arms=arms)
    )
    predict.part(name, 8, tmp_path)
    arms, options = asked["arms"], asked["arm_options"]
    assert arms.keys() == options.keys() == set(predict.ARMS) - {"int8-amx"} | more
    assert {pair[1] for pair in asked["pairs"]} == {"int8"} | more
    for arm in arms.keys() - {"onnxruntime"}:
        own = dict(options[arm]), dict(options["int8"])
        switches = arms[arm].diff(arms["int8"])
        differing = {key for key in own[0] | own[1] if own[0].get(key) != own[1].get(key)}
        assert len(switches) + len(differing) == (arm != "int8"), arm


def _found(milliseconds):
    runs = {
        arm: [Run(Path("x"), Plan(), "w", status="ok",
                  figures={"milliseconds": value, "test_mIoU": 0.8, "bytes": 1e6})] * 4
        for arm, value in milliseconds.items()
    }  # fmt: skip
    return Experiment(
        "predict-photograph", "w", dict.fromkeys(runs, Plan()), title="T", runs=runs,
        figure="milliseconds", unit="ms", quality="test_mIoU", margin=0.01,
        pairs=[("float32", "int8")],
    )  # fmt: skip


def test_the_page_says_which_targets_are_met():
    found = _found({"float32": 7.0, "onnxruntime-int8": 3.0, "int8": 3.5, "int8-amx": 2.0})
    words = predict.parts(found)[-1].splitlines()
    outcomes = {tuple(line.split("`")[1:4:2]): line.rpartition(": ")[2] for line in words}
    assert outcomes == {
        ("int8", "float32"): "not met.",
        ("int8", "onnxruntime-int8"): "not met.",
        ("int8-amx", "float32"): "met.",
        ("int8-amx", "onnxruntime-int8"): "met.",
    }


def test_the_page_says_if_quality_is_lost():
    found = _found({"float32": 7.0, "onnxruntime-int8": 3.0, "int8": 2.0})
    for run in found.runs["float32"]:
        run.figures["test_mIoU"] = 0.9
    first, second = predict.parts(found)[-1].splitlines()
    assert "faster, test_mIoU lost" in first
    assert "faster, test_mIoU holds" in second


def test_arms_that_were_not_measured_are_left_out():
    found = _found({"float32": 7.0, "onnxruntime-int8": 3.0, "int8": 2.0})
    assert len(predict.parts(found)[-1].splitlines()) == len(predict.TARGETS)
