import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import mxnet as mx
import pytest
import toy
from mxnet.gluon import nn

from mxopt import checkpoint
from mxopt.errors import PlanError
from mxopt.measure import Experiment
from mxopt.plan import Plan
from mxopt.records import Run, read_run
from mxopt.training import fit


class Stopped(Exception):
    pass


def with_dropout(contexts):
    net = nn.HybridSequential()
    net.add(nn.Conv2D(4, 3), nn.BatchNorm(), nn.Activation("relu"), nn.Dropout(0.5), nn.Dense(2))
    net.initialize(mx.init.Xavier(), ctx=contexts)
    return net


def train(plan, folder=None, stop=None):
    """Return the figures and every step's loss; stop in the middle of an epoch if one is named."""
    losses = []

    def write(event, **fields):
        if event == "steps":
            if fields["epoch"] == stop:
                raise Stopped
            losses.extend(fields["losses"])

    try:
        figures = fit(toy.toy(network=with_dropout), plan, write, checkpoints=folder)
    except Stopped:
        figures = None
    return figures, losses


PLANS = {
    "momentum": Plan(batch_size=4, epochs=4, momentum=0.9),
    "adam, averaged": Plan(batch_size=4, epochs=4, optimizer="adam", learning_rate=0.01,
                           average_from=1, schedule="cosine", warmup_epochs=1),
    "a graph": Plan(batch_size=4, epochs=4, momentum=0.9, hybridize="static"),
    "accumulated": Plan(batch_size=4, epochs=4, accumulation=4, clip_norm=1.0),
    "kept on the device": Plan(batch_size=4, epochs=4, preprocess="device"),
    "two contexts": Plan(batch_size=4, epochs=4, devices="cpu:0-1", momentum=0.9),
}  # fmt: skip


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("stop", [1, 3])
def test_a_run_goes_on_as_if_nothing_had_happened(tmp_path, name, stop):
    plan = PLANS[name]
    whole, losses = train(plan)
    first, begun = train(plan, tmp_path, stop)
    assert first is None
    second, rest = train(plan, tmp_path)
    assert second["resumed_epochs"] == stop
    if name == "two contexts":  # batch norm keeps one mean a context, a checkpoint their mean
        assert begun + rest == pytest.approx(losses, rel=0.2)
        return
    assert begun + rest == losses
    for figure in ("test_loss", "test_accuracy", "train_loss", "samples"):
        assert second[figure] == whole[figure]


def test_a_damaged_checkpoint_is_passed_over_for_the_one_before(tmp_path):
    plan = PLANS["momentum"]
    _, losses = train(plan)
    train(plan, tmp_path, stop=3)
    assert sorted(path.name for path in tmp_path.glob("*.json")) == [
        "epoch-0002.json", "epoch-0003.json",
    ]  # fmt: skip
    newest = tmp_path / "epoch-0003.params"
    newest.write_bytes(newest.read_bytes()[:-1] + b"x")
    figures, rest = train(plan, tmp_path)
    assert figures["resumed_epochs"] == 2
    assert rest == losses[2 * 6 :]
    for path in tmp_path.glob("*.json"):
        path.write_text("{")
    figures, _ = train(plan, tmp_path)
    assert "resumed_epochs" not in figures


def test_a_crash_while_writing_leaves_the_last_good_one(tmp_path, monkeypatch):
    plan = PLANS["momentum"]
    train(plan, tmp_path, stop=2)

    def crash(*_):
        raise Stopped

    monkeypatch.setattr(checkpoint.os, "replace", crash)
    assert train(plan, tmp_path)[0] is None
    monkeypatch.undo()
    assert train(plan, tmp_path)[0]["resumed_epochs"] == 2


def test_a_checkpoint_of_another_plan_is_refused(tmp_path):
    train(PLANS["momentum"], tmp_path, stop=2)
    with pytest.raises(PlanError, match=r"epoch-0002.json.*learning_rate.*another folder"):
        train(PLANS["momentum"].replace(learning_rate=0.2), tmp_path)


def test_a_killed_command_goes_on_where_it_was(tmp_path):
    words = ["toy:toy", "batch_size=4", "epochs=4", "momentum=0.9", "--option", "train=1200"]
    command = [sys.executable, "-m", "mxopt.cli", "run", *words, "--checkpoints", "--record"]
    paths = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}

    def start(record):
        return subprocess.Popen([*command, str(record)], env={**os.environ, **paths},
                                stdout=subprocess.DEVNULL, start_new_session=True)  # fmt: skip

    whole, record = tmp_path / "whole.jsonl", tmp_path / "killed.jsonl"
    assert start(whole).wait() == 0
    assert not whole.with_suffix(".checkpoints").exists()
    killed = start(record)
    folder = record.with_suffix(".checkpoints")
    while killed.poll() is None and not list(folder.glob("epoch-*.json")):
        time.sleep(0.01)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.wait()
    done = json.loads(max(folder.glob("epoch-*.json")).read_text())["progress"]["epoch"]
    assert start(record).wait() == 0
    expected, resumed = read_run(whole), read_run(record)
    assert resumed.only("resumed")["epoch"] == done
    assert [e["losses"] for e in resumed.all("steps")] == [
        e["losses"] for e in expected.all("steps")[done:]
    ]
    assert resumed.figures["test_loss"] == expected.figures["test_loss"]
    assert record.with_suffix(".killed-1").exists()


def test_times_of_a_resumed_run_are_no_evidence():
    def run(**figures):
        return Run(
            Path("x"), Plan(), "w", status="ok", figures={"seconds": 1.0, "acc": 0.9, **figures}
        )

    runs = {"before": [run()] * 3, "after": [run(), run(resumed_epochs=2), run()]}
    experiment = Experiment("e", "w", dict.fromkeys(runs, Plan()), runs=runs)
    assert experiment.ratio("after") is None
    assert experiment.verdict("after") == "a run was resumed: its times are no evidence"
    assert experiment.median("after", "acc") == 0.9
