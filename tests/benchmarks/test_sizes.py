"""Comparisons at other sizes: equal work in both, and what the page shows."""

import dataclasses
from pathlib import Path

import pytest

from benchmarks import sizes
from benchmarks.cases import STEPS
from benchmarks.goal import GOAL
from benchmarks.parts import PARTS
from benchmarks.sizes import SIZES
from mxopt import measure
from mxopt.core.plan import Plan
from mxopt.core.records import Run
from mxopt.measure import Experiment


def asked(monkeypatch, name):
    found = {}
    monkeypatch.setattr(measure, "interleave", lambda *a, **k: found.update(arms=a[2], **k))
    PARTS[name](name, 6, Path("nowhere"))
    return found


@pytest.mark.parametrize("name", SIZES)
def test_peers_do_the_work_of_the_arm_that_they_are_compared_with(monkeypatch, name):
    found, how = asked(monkeypatch, name), SIZES[name]
    assert found["again"] in how["sizes"]
    given = STEPS[how["case"]]["peers"] if "case" in how else GOAL["peers"]
    assert [pair[1] for pair in found["pairs"]] == [s for s in how["sizes"] for _ in how["peers"]]
    for peer, own in found["pairs"]:
        plans = [found["arms"][arm] for arm in (own, peer)]
        assert len({plan.batch_size * plan.grad_accumulation for plan in plans}) == 1
        assert len({(plan.epochs, plan.optimizer, plan.learning_rate) for plan in plans}) == 1
        options = found["arm_options"][peer]
        assert options["peer"]["given"] == given[peer.removeprefix(f"{own}-")]
        for option, value in how["sizes"][own].items():
            for arm in (own, peer):
                known = {**found["arms"][arm].as_dict(), **found["arm_options"][arm]}
                assert known[option] == value, (arm, option)
            network = options["peer"].get("sizes", {})
            assert network.get(option, value) == value


def test_the_networks_of_peers_grow_too(monkeypatch):
    found = asked(monkeypatch, "sizes-transformer")
    for arm, options in found["arm_options"].items():
        if "peer" in options:
            assert options["peer"]["sizes"].keys() == STEPS["transformer"]["sizes"].keys()
            assert options["peer"]["sizes"]["dropout"] == 0.1
            assert options["peer"]["sizes"]["layers"] == (4 if arm.startswith("4-layers") else 3)


@pytest.mark.parametrize("name", SIZES)
def test_no_size_is_that_of_the_case(monkeypatch, name):
    case = STEPS.get(SIZES[name].get("case"), {"plan": GOAL["plan"], "options": {}})
    known = {**case.get("sizes", {}), **case["plan"], **case["options"]}
    if "case" not in SIZES[name]:
        known["batch_size"] = GOAL["levers"]["batch-256"]["batch_size"]
    for change in SIZES[name]["sizes"].values():
        assert any(known[option] != value for option, value in change.items() if option != "limit")


def test_the_page_shows_every_size_beside_every_peer():
    arms = {"small": 6.0, "small-tuned": 4.0, "large": 3.0, "large-tuned": None}
    runs = {
        arm: [Run(Path("x"), Plan(), "w", status="ok" if speed else "refused", reason="r",
                  figures={"samples_per_second": speed, "peak_memory_bytes": 2**21})]
        for arm, speed in arms.items()
    }  # fmt: skip
    found = Experiment(
        "sizes-resnet", "w", dict.fromkeys(arms, Plan()), title="T", runs=runs, better="higher",
        figure="samples_per_second", pairs=[("small-tuned", "small"), ("large-tuned", "large")],
    )  # fmt: skip
    found.runs["small-again"], found.arms["small-again"] = found.runs["small"], Plan()
    about, table = sizes.parts([dataclasses.replace(found, again="small-again")])
    assert about == sizes.ABOUT
    first, second, twice = table.splitlines()[2:]
    assert first.startswith("| T | small | tuned | 6 | 4 | 1.50")
    assert "2 / 2 MiB" in first
    assert "| T | large | tuned |  |  | not measured |" in second
    assert twice.startswith("| T | small-again | none: mxopt twice | 6 | 6 | 1.00")
    assert "A/A: the harness's own noise" in twice
