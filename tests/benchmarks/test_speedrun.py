"""Training to an accuracy, by mxopt and by PyTorch, and the page of the record."""

import dataclasses
import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from benchmarks import arms, goal, speedrun
from benchmarks.beside import is_peer
from benchmarks.given import GIVEN, TUNED
from benchmarks.goal import GOAL
from mxopt import measure
from mxopt.core.plan import Plan
from mxopt.core.records import Run
from mxopt.measure import Experiment

PEERS = Path(os.environ.get("MXOPT_PEERS", ".venv-peers/bin/python"))
needs_peers = pytest.mark.skipif(not PEERS.exists(), reason="needs the peers' environment")
OPTIONS = {"stand_in": True, "limit": 200, "hidden": 16}
PLAN = Plan(optimizer="adam", beta2=0.999, learning_rate=1e-3, weight_decay=0.005, batch_size=32,
            epochs=2, preprocess="cached", schedule="cosine", warmup_epochs=0.5)  # fmt: skip


def trained(**more):
    events = []
    figures = goal.run(PLAN, lambda event, **own: events.append({"event": event, **own}), 4,
                       **OPTIONS, **more)  # fmt: skip
    return figures, [e for e in events if e["event"] in ("check", "epoch")]


def test_it_is_validated_as_often_as_asked_and_before_the_first_step():
    figures, events = trained()
    assert [event["step"] for event in events] == [0, 2, 4, 5, 7, 9, 11, 12, 14]
    assert figures["validation_accuracy"] == events[-1]["validation_accuracy"]


@needs_peers
@pytest.mark.parametrize("given", [{}, {"channels_last": True}, {"compile": True}])
def test_a_peer_trains_the_same_network_on_the_same_images(given):
    own, ours = trained()
    other, theirs = trained(peer={"given": given})
    assert [(e["event"], e["step"]) for e in theirs] == [(e["event"], e["step"]) for e in ours]
    checks = [[e["progress"] for e in events if e["event"] == "check"] for events in (ours, theirs)]
    assert checks[0] == checks[1]
    for one, peer in zip(ours, theirs):
        assert peer["validation_loss"] == pytest.approx(one["validation_loss"], abs=1e-3)
        assert peer["validation_accuracy"] == pytest.approx(one["validation_accuracy"], abs=0.011)
    for name in ("train_loss", "test_loss"):
        assert other[name] == pytest.approx(own[name], abs=2e-3)
    assert other["difference"] < 1e-4
    assert theirs[0]["seconds"] == 0 < theirs[1]["seconds"] < theirs[2]["seconds"]


@needs_peers
def test_a_peer_reads_its_files_before_the_clock_starts(tmp_path):
    np.savez(tmp_path / "train.npz", images=np.ones((2, 28, 28), np.uint8), labels=np.arange(2))
    code = f"""
import sys
from pathlib import Path
sys.path.insert(0, {str(arms.HERE / "peers")!r})
import goal
path = Path({str(tmp_path)!r}) / "train.npz"
raw = goal.read(path)
path.write_bytes(b"")
images, labels = goal.prepared(raw, {{"given": {{}}}})
assert images.shape == (2, 1, 28, 28) and labels.tolist() == [0, 1]
"""
    subprocess.run([str(PEERS), "-c", code], check=True)


def test_every_lever_is_one_row_and_peers_train_as_the_last_one(monkeypatch):
    found = {}
    monkeypatch.setattr(measure, "interleave", lambda *a, **k: found.update(arms=a[2], **k))
    goal.part("fashion_mnist", 3, Path("nowhere"))
    last = list(GOAL["levers"])[-1]
    assert list(found["arms"]) == ["before", *GOAL["levers"], *GOAL["peers"]]
    for peer in GOAL["peers"]:
        assert found["arms"][peer] == found["arms"][last]
        own = dict(found["arm_options"][peer])
        assert own.pop("peer") == {"given": GOAL["peers"][peer]}
        assert own == found["arm_options"][last]
        assert (peer, last) in found["pairs"]
    assert found["goal"] == max(GOAL["goals"])
    assert any(TUNED.items() <= given.items() for given in GOAL["peers"].values())
    assert {name for given in GOAL["peers"].values() for name in given} <= GIVEN.keys()


def test_an_epoch_is_measured_switch_by_switch_and_beside_every_peer(monkeypatch):
    found = {}
    monkeypatch.setattr(measure, "interleave", lambda *a, **k: found.update(arms=a[2], **k))
    goal.epoch("garments", 8, Path("nowhere"))
    operators, kernel, updates, *peers = found["arms"]
    assert peers == list(GOAL["peers"])
    assert list(found["arms"][operators].diff(found["arms"][kernel])) == ["graph_rewrites"]
    assert list(found["arms"][kernel].diff(found["arms"][updates])) == ["updates"]
    assert {found["arms"][arm].epochs for arm in found["arms"]} == {1}
    for peer in peers:
        assert found["arm_options"][peer] == {
            **found["arm_options"][updates], "peer": {"given": GOAL["peers"][peer]},
        }  # fmt: skip
        assert found["arms"][peer] == found["arms"][operators]
    ours = {(operators, kernel), (kernel, updates)}
    assert set(found["pairs"]) == ours | {(peer, updates) for peer in peers}


def reached(at, accuracy=0.92, status="ok", steps=9):
    """A run that is at 90 % after ``at`` seconds and at 91 % after twice as many, and ``steps``."""
    events = [
        {"event": "environment", "cpu": {"model": "A processor", "logical_cores": 2}},
        {"event": "setup", "preprocessing_seconds": 0.0},
        {"event": "check", "step": 0, "seconds": 0.0, "validation_accuracy": 0.1},
        {"event": "check", "step": 5, "seconds": at, "validation_accuracy": 0.901},
        {
            "event": "epoch",
            "step": steps,
            "seconds": 2 * at,
            "validation_accuracy": accuracy,
            "at": 90,
        },
    ]
    return Run(
        Path("x"),
        Plan(),
        "w",
        status=status,
        events=events,
        commit="0123456789",
        started="2026-01-02T03:04:05",
        figures={"test_accuracy": 0.9, "seconds": 2 * at},
        read_all=lambda: iter(events),
    )


def measured(last=0.92):
    arms = {"before": Plan(), "quick": Plan(batch_size=8), "eager": Plan(batch_size=8)}
    runs = {
        "before": [reached(8.0), reached(9.0)],
        "quick": [reached(4.0, steps=18), reached(4.5, last, steps=18)],
        "eager": [reached(6.0), reached(6.75)],
    }
    return Experiment(
        "fashion_mnist", "w", arms, runs=runs, arm_options={"eager": {"peer": {"given": {}}}},
        target="validation_accuracy", goal=0.91, quality="test_accuracy", margin=0.01, planned=2,
        pairs=[("before", "quick"), ("eager", "quick")],
    )  # fmt: skip


def test_the_tables_have_both_times_what_changed_and_the_ratio():
    first, second = speedrun.ladder(measured(), "log.jsonl").rows
    assert first[1:4] == ["2026-01-02", "`01234567`", "as the guide begins"]
    assert first[4:9] == ["8.5 s", "17 s", "", "", ""]
    assert second[3:6] == ["batch_size: 4 → 8", "4.25 s", "8.5 s"]
    factors = [f"{value} [{value}, {value}], n = 2" for value in ("2.00", "4.00", "0.50")]
    assert second[6:9] == factors
    assert second[9:] == ["90.0%", "[quick](log.jsonl)"]
    [peer] = speedrun.peers(measured()).rows
    assert peer[:4] == ["eager", "as installed", "6.38 s", "12.8 s"]
    assert peer[4].startswith("1.50 [1.50, 1.50]")
    said = speedrun.whole(measured())
    assert said.startswith("`quick` relative to `before`, times sooner: 2.00 [2.00, 2.00], n = 2;")
    assert said.endswith("times fewer steps: 0.50 [0.50, 0.50], n = 2.")


def test_the_same_arm_twice_is_shown_with_its_verdict():
    found = measured()
    assert speedrun.noise(found) == []
    runs = {**found.runs, "quick-again": [reached(4.4), reached(4.95)]}
    arms = {**found.arms, "quick-again": found.arms["quick"]}
    found = dataclasses.replace(found, arms=arms, runs=runs, again="quick-again")
    *_, row = speedrun.ladder(found, "log.jsonl").rows
    assert (row[0], row[3]) == ("A/A", "nothing")
    assert row[6].startswith("0.91 [0.91, 0.91]")
    [said] = speedrun.noise(found)
    assert said.startswith("`quick-again` repeats `quick`. Times sooner: 0.91 [0.91, 0.91], n = 2")
    assert said.count("A/A: the same arm twice comes out slower") == 2


def test_a_goal_that_was_missed_is_no_time():
    _, second = speedrun.ladder(measured(last=0.905), "log.jsonl").rows
    assert second[4:6] == ["4.25 s", "missed in 1 of 2"]
    assert "at most" in second[6]
    assert "at most" not in second[7]
    assert "at most" in second[8]


def test_a_measurement_is_added_once(tmp_path, monkeypatch):
    experiment, home = measured(), tmp_path / "records" / "cpu" / "fashion_mnist"
    home.mkdir(parents=True)
    monkeypatch.setattr(measure, "read_experiment", lambda path: experiment)
    monkeypatch.setattr(measure, "pack", lambda source, path: path.write_text(json.dumps("x")))
    assert speedrun.add(tmp_path, tmp_path / "kept").name == "2026-01-02.jsonl"
    assert "## 2026-01-02, A processor, 2 cores" in speedrun.text(tmp_path / "kept")
    with pytest.raises(FileExistsError, match="same day"):
        speedrun.add(tmp_path, tmp_path / "kept")
    with pytest.raises(FileNotFoundError, match="no measurement of fashion_mnist"):
        speedrun.add(tmp_path / "kept")


@pytest.mark.skipif(not (speedrun.RECORDS / speedrun.NAME).exists(), reason="nothing is measured")
def test_the_page_is_that_of_its_records():
    page = speedrun.RECORDS / f"{speedrun.NAME}.md"
    assert page.read_text(encoding="utf-8") == speedrun.text()
    newest = sorted((speedrun.RECORDS / speedrun.NAME).glob("*.jsonl"))[-1]
    experiment = measure.read_experiment(newest)
    assert speedrun.own(experiment)[1:] == list(GOAL["levers"])
    assert [arm for arm in experiment.arms if is_peer(experiment, arm)] == list(GOAL["peers"])
