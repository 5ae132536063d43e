import functools
import json
import multiprocessing
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

from mxopt.core import atomic
from mxopt.core.errors import PlanError, RecordError
from mxopt.core.plan import Plan
from mxopt.core.records import RecordWriter, Run, read_run
from mxopt.measure import Experiment
from mxopt.train import checkpoint
from mxopt.train.fit import fit


class Stopped(Exception):
    pass


def with_dropout(contexts):
    net = nn.HybridSequential()
    net.add(nn.Conv2D(4, 3), nn.BatchNorm(), nn.Activation("relu"), nn.Dropout(0.5), nn.Dense(2))
    net.initialize(mx.init.Xavier(), ctx=contexts)
    return net


def train(plan, folder=None, stop=None, recipe=None, seen=None, **how):
    """Return the figures and every step's loss.

    Stop within an epoch, or at a step of the whole run, ``"step 7"``, if one is named; ``seen`` is
    a list for the other events.
    """
    losses = []

    def write(event, **fields):
        if event == "steps":
            if stop in (fields["epoch"], f"step {len(losses)}"):
                raise Stopped
            losses.extend(fields["losses"])
        elif seen is not None:
            seen.append((event, fields))

    try:
        recipe = recipe or toy.toy(network=with_dropout)
        figures = fit(recipe, plan, write, checkpoints=folder, **how)
    except Stopped:
        figures = None
    return figures, losses


PLANS = {
    "momentum": Plan(batch_size=4, epochs=4, momentum=0.9),
    "adam, averaged": Plan(batch_size=4, epochs=4, optimizer="adam", learning_rate=0.01,
                           swa_start=1, schedule="cosine", warmup_epochs=1),
    "a graph": Plan(batch_size=4, epochs=4, momentum=0.9, hybridize="static"),
    "accumulated": Plan(batch_size=4, epochs=4, grad_accumulation=4, clip_norm=1.0),
    "kept on the device": Plan(batch_size=4, epochs=4, preprocess="device"),
    "two contexts": Plan(batch_size=4, epochs=4, devices="cpu:0-1", momentum=0.9),
}  # fmt: skip


@functools.cache
def undisturbed(name, checkpoint_steps=1000):
    """Return the figures and losses of a plan's run that nothing stops, trained once for all."""
    return train(PLANS[name], checkpoint_steps=checkpoint_steps)


@pytest.mark.quick(len(PLANS))
@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("stop", [1, 3])
def test_a_run_goes_on_as_if_nothing_had_happened(tmp_path, name, stop):
    plan = PLANS[name]
    whole, losses = undisturbed(name)
    first, begun = train(plan, tmp_path, stop)
    assert first is None
    second, rest = train(plan, tmp_path)
    assert second["resumed_epochs"] == stop
    assert begun + rest == losses
    if name == "two contexts":  # batch norm keeps one mean a context, a checkpoint their mean
        return
    for figure in ("test_loss", "test_accuracy", "train_loss", "samples"):
        assert second[figure] == whole[figure]


def half(content):
    return content[: len(content) // 2]


def flipped(content):
    return content[:-9] + bytes([content[-9] ^ 1]) + content[-8:]


@pytest.mark.quick(3)
@pytest.mark.parametrize("damage", [half, flipped])
@pytest.mark.parametrize("end", ["params", "states", "json"])
@pytest.mark.fault(
    "files",
    "the newest checkpoint is damaged, in any of its three files",
    sees="resumed epochs 2",
    lost="the steps since the checkpoint before",
)
def test_a_damaged_checkpoint_is_passed_over_for_the_one_before(tmp_path, end, damage, sees):
    plan = PLANS["momentum"]
    _, losses = undisturbed("momentum")
    train(plan, tmp_path, stop=3)
    assert sorted(path.name for path in tmp_path.glob("*.json")) == [
        "epoch-0002.json", "epoch-0003.json",
    ]  # fmt: skip
    newest = tmp_path / f"epoch-0003.{end}"
    newest.write_bytes(damage(newest.read_bytes()))
    figures, rest = train(plan, tmp_path)
    sees(f"resumed epochs {figures['resumed_epochs']}")
    assert rest == losses[2 * 6 :]


def test_a_manifest_that_says_other_numbers_is_a_damaged_one(tmp_path):
    train(PLANS["momentum"], tmp_path, stop=2)
    path = tmp_path / "epoch-0002.json"
    path.write_text(path.read_text().replace('"epoch": 2', '"epoch": 3'))
    assert train(PLANS["momentum"], tmp_path)[0]["resumed_epochs"] == 1


def test_a_checkpoint_of_an_older_version_leaves_out_what_it_did_not_count(tmp_path):
    """It counted fewer waits, as ``waiting_seconds``."""
    plan = PLANS["momentum"]
    figures, losses = undisturbed("momentum")
    train(plan, tmp_path, stop=2)
    path = tmp_path / "epoch-0002.json"
    manifest = json.loads(path.read_text())
    for fields in (manifest["progress"], manifest["progress"]["totals"]):
        fields["waiting_seconds"] = fields.pop("device_waiting_seconds")
    manifest["sha256"]["json"] = checkpoint._own_sha256(manifest)
    path.write_text(json.dumps(manifest))
    resumed, rest = train(plan, tmp_path)
    assert rest == losses[2 * 6 :]
    assert figures.keys() - resumed.keys() == {"device_waiting_seconds"}
    assert resumed.keys() - figures.keys() == {"resumed_epochs", "resumed_steps"}


@pytest.mark.fault(
    "runs",
    "the process dies before a checkpoint is whole",
    sees="resumed epochs 2",
    lost="the steps since the checkpoint before",
)
def test_a_crash_while_writing_leaves_the_last_good_one(tmp_path, monkeypatch, sees):
    plan = PLANS["momentum"]
    train(plan, tmp_path, stop=2)

    def crash(*_):
        raise Stopped

    monkeypatch.setattr(atomic.os, "replace", crash)
    assert train(plan, tmp_path)[0] is None
    monkeypatch.undo()
    sees(f"resumed epochs {train(plan, tmp_path)[0]['resumed_epochs']}")


@pytest.mark.fault(
    "sharing",
    "a run finds the checkpoints of another plan",
    sees="epoch-0002.json is a checkpoint of something else (learning_rate differs)",
)
def test_a_checkpoint_of_another_plan_is_refused(tmp_path, sees):
    train(PLANS["momentum"], tmp_path, stop=2)
    with sees.raised(PlanError):
        train(PLANS["momentum"].replace(learning_rate=0.2), tmp_path)


@pytest.mark.fault(
    "runs",
    "a run with `--checkpoints` is killed, and the same command given again",
    sees="resumed epochs...resumed steps",
    lost="the steps since the last checkpoint: at most 1,000, or what `--checkpoint-steps` says",
)
@pytest.mark.quick(1)
@pytest.mark.parametrize("where", [["--checkpoint-steps", "20"], ["--checkpoints"]])
@pytest.mark.parametrize("delay", [0, 0.15])
def test_a_killed_command_goes_on_where_it_was(tmp_path, sees, where, delay):
    words = ["toy:toy", "batch_size=4", "epochs=4", "momentum=0.9", "--option", "train=600"]
    command = [sys.executable, "-m", "mxopt", "run", *words, *where, "--record"]
    paths = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}

    def start(record):
        return subprocess.Popen([*command, str(record)], env={**os.environ, **paths},
                                stdout=subprocess.PIPE, text=True,
                                start_new_session=True)  # fmt: skip

    whole, record = tmp_path / "whole.jsonl", tmp_path / "killed.jsonl"
    assert start(whole).wait() == 0
    assert not whole.with_suffix(".checkpoints").exists()
    killed = start(record)
    folder = record.with_suffix(".checkpoints")
    while killed.poll() is None and not list(folder.glob("epoch-*.json")):
        time.sleep(0.01)
    time.sleep(delay)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.wait()
    done = json.loads(atomic.by_number(folder.glob("epoch-*.json"))[-1].read_text())["progress"]
    again = start(record)
    sees(again.communicate()[0])
    assert again.returncode == 0
    expected, resumed = read_run(whole), read_run(record)
    assert resumed.only("resumed")["epoch"] == done["epoch"]
    assert resumed.only("resumed")["step"] == done["step"]
    before, after = ([n for e in run.steps() for n in e["losses"]] for run in (expected, resumed))
    assert after == before[done["steps"] :]
    assert resumed.figures["test_loss"] == expected.figures["test_loss"]
    assert record.with_suffix(".killed-1").exists()


PHASES = {
    "it reads data": "data",
    "it sets up": "setup",
    "it trains": "steps",
    "it has validated": "epoch",
    "it writes weights": (mx.nd, "save"),
    "it writes the rest": (mx.nd, "load"),
    "it writes the manifest": (os, "replace"),
    "it deletes the oldest checkpoint": (Path, "unlink"),
}


@pytest.mark.quick(len(PHASES))
@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize(
    ("every", "late"), [(1000, "epoch-0002.json"), (4, "epoch-0001-step-0000004.json")]
)
@pytest.mark.fault(
    "runs",
    "a run is killed while it reads data, sets up, trains, validates, or at "
    "any step of writing a checkpoint",
    lost="the steps since the last checkpoint",
    sees="the process ended without writing its result",
)
def test_a_run_killed_in_any_phase_goes_on_as_if_nothing_had_happened(
    tmp_path, phase, every, late, sees
):
    plan, folder, record = PLANS["momentum"], tmp_path / "kept", tmp_path / "run.jsonl"

    def at(place):
        if place == PHASES[phase] and ((folder / late).exists() or place in ("data", "setup")):
            os.kill(os.getpid(), signal.SIGKILL)

    def killed():
        if isinstance(PHASES[phase], tuple):
            owner, name = PHASES[phase]
            original = getattr(owner, name)
            setattr(owner, name, lambda *a, **k: at((owner, name)) or original(*a, **k))
        with RecordWriter(record) as writer:
            writer.begin("toy", plan.as_dict(), {})

            def write(event, **fields):
                writer.write(event, **fields)
                at(event)

            recipe = toy.toy(network=with_dropout)
            fit(recipe, plan, write, checkpoints=folder, checkpoint_steps=every)

    process = multiprocessing.get_context("fork").Process(target=killed)
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL
    sees(read_run(record).reason)
    whole, losses = undisturbed("momentum", every)
    figures, rest = train(plan, folder, checkpoint_steps=every)
    done = 6 * figures.get("resumed_epochs", 0) + figures.get("resumed_steps", 0)
    assert done >= (0 if phase in ("it reads data", "it sets up") else {1000: 12, 4: 10}[every])
    assert rest == losses[done:]
    assert figures["test_loss"] == whole["test_loss"]


@pytest.mark.fault(
    "disk",
    "the disk is full when a checkpoint is written",
    sees="cannot write ...epoch-0003 (MXNet could not write all of it); free some space",
    lost="the steps since the checkpoint before",
)
@pytest.mark.parametrize("short", [1, 700])
def test_a_full_disk_leaves_the_checkpoints_before(tmp_path, little_disk, short, sees):
    plan = PLANS["momentum"]
    _, losses = undisturbed("momentum")
    train(plan, tmp_path, stop=2)
    room = (tmp_path / "epoch-0002.states").stat().st_size - short
    with little_disk(room), sees.raised(RecordError):
        train(plan, tmp_path)
    figures, rest = train(plan, tmp_path)
    assert figures["resumed_epochs"] == 2
    assert rest == losses[2 * 6 :]


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
