"""Within an epoch: a run that was left at any stop is the run that never was."""

import dataclasses
import json
import math
import os
import subprocess
import sys
import textwrap
from types import SimpleNamespace

import mxnet as mx
import needs
import numpy as np
import pytest
import toy
from mxnet import autograd, gluon
from mxnet.gluon import nn
from test_checkpoint import PLANS, train, undisturbed, with_dropout

from mxopt.core.errors import DataError, PlanError
from mxopt.core.plan import Plan
from mxopt.core.recipe import Data, Recipe
from mxopt.methods.bucketing.sequences import PairBatch, SentenceLoader
from mxopt.train import checkpoint, progress


def moved(image, label):
    """A transform that draws from both generators."""
    image, label = toy.flat_transform(image, label)
    return image + 0.1 * mx.nd.random.normal(shape=image.shape) + 0.1 * np.random.normal(), label


def augmented():
    return toy.toy(
        network=with_dropout,
        data=lambda: dataclasses.replace(toy.toy().data(), transform=moved),
    )


class Resizable:
    """A transform that says it is resized, and then draws random numbers."""

    def __call__(self, image, label):
        return toy.flat_transform(image, label)

    def resized(self, side):
        return moved


def early_augmented():
    """The first epoch takes another transform."""
    return toy.toy(data=lambda: dataclasses.replace(toy.toy().data(), transform=Resizable()))


class Embedded(nn.HybridBlock):
    """Guesses each target word from its own number, which dropout hides now and then."""

    def __init__(self):
        super().__init__()
        self.layers = nn.HybridSequential()
        self.layers.add(
            nn.Embedding(50, 8), nn.Dropout(0.3), nn.Dense(50, flatten=False, in_units=8)
        )

    def hybrid_forward(self, F, source, shifted, source_length, target_length):
        return self.layers(shifted)


def sentences():
    random = np.random.RandomState(0)

    def pairs(count):
        sizes = random.randint(1, 9, count)
        return gluon.data.SimpleDataset([(random.randint(4, 50, n).tolist(),) * 2 for n in sizes])

    def network(contexts):
        net = Embedded()
        net.initialize(mx.init.Xavier(), ctx=contexts)
        return net

    def loss(output, words):
        return -mx.nd.pick(mx.nd.log_softmax(output), words).sum(axis=1, keepdims=True)

    collate = PairBatch(SimpleNamespace(pad=0, bos=2, eos=3))
    splits = pairs(43), pairs(7), pairs(5)
    return Recipe(
        "sentences", lambda: Data(*splits, lambda *pair: pair, "stand-in", collate=collate),
        network, loss, None, inputs=4, unit="token",
    )  # fmt: skip


# Of 6 steps an epoch, with stops after 2 and 4, unless it is said otherwise.
POSITIONS = {
    **{name: (plan, None) for name, plan in PLANS.items() if name != "accumulated"},
    "augmented": (Plan(batch_size=4, epochs=4, momentum=0.9), augmented),
    "the first epoch augmented": (
        Plan(batch_size=4, epochs=4, momentum=0.9, progressive_resizing=16), early_augmented
    ),
    "kept on the host": (Plan(batch_size=4, epochs=4, preprocess="cached"), None),
    "by worker processes": (Plan(batch_size=4, epochs=4, num_workers=2), None),
    "accumulated": (Plan(batch_size=2, epochs=4, grad_accumulation=3, schedule="poly"), None),
    "sentences": (Plan(batch_size=8, epochs=4, learning_rate=1.0), sentences),
    "sentences, a static graph": (
        Plan(batch_size=64, epochs=4, bucketing="tokens", hybridize="static"), sentences
    ),
    "sentences by tokens": (
        Plan(batch_size=64, epochs=4, bucketing="tokens", preprocess="device"), sentences
    ),
}  # fmt: skip


@pytest.mark.quick(6)
@pytest.mark.parametrize("name", POSITIONS)
def test_a_run_goes_on_within_an_epoch_as_if_nothing_had_happened(tmp_path, name):
    plan, recipe = POSITIONS[name]
    how = {"recipe": recipe and recipe(), "checkpoint_steps": 2, "checks": 3}
    events: list = []
    whole, losses = train(plan, seen=events, **how)
    every = 3 if plan.grad_accumulation == 3 else 2
    count = len(losses) // plan.epochs
    # Within the first epoch, in the middle of another, and as late as it can be.
    for epoch, step in ((0, every), (1, every), (2, every * ((count - 1) // every))):
        folder, resumed = tmp_path / f"{epoch}-{step}", []
        none, begun = train(plan, folder, f"step {epoch * count + step}", **how)
        second, rest = train(plan, folder, seen=resumed, **how)
        assert none is None
        assert [f for e, f in resumed if e == "resumed"] == [{"epoch": epoch, "step": step}]
        assert (second["resumed_epochs"], second["resumed_steps"]) == (epoch, step)
        assert begun + rest == losses
        if name == "two contexts":  # as in test_checkpoint: validation differs
            continue
        assert len(rest) == len(losses) - epoch * count - step
        for kind in ("epoch", "check"):
            expected = [without_times(f) for e, f in events if e == kind]
            found = [without_times(f) for e, f in resumed if e == kind]
            assert found == expected[len(expected) - len(found) :]
        assert len([e for e, _ in resumed if e == "epoch"]) == plan.epochs - epoch
        assert without_times(second) == {
            **without_times(whole), "resumed_epochs": epoch, "resumed_steps": step,
        }  # fmt: skip


def without_times(figures):
    return {name: value for name, value in figures.items() if "second" not in name}


def test_the_seconds_of_an_epoch_that_was_left_are_those_of_both_its_halves(tmp_path):
    plan, halves = PLANS["momentum"], []
    train(plan, tmp_path, "step 4", checkpoint_steps=2, checks=3)
    manifest = tmp_path / "epoch-0000-step-0000004.json"
    before = json.loads(manifest.read_text())["progress"]["seconds"]
    figures, _ = train(plan, tmp_path, seen=halves, checkpoint_steps=2, checks=3)
    epochs = [fields["seconds"] for event, fields in halves if event == "epoch"]
    assert epochs[0] > before > 0
    assert figures["seconds"] == pytest.approx(sum(epochs))


def test_an_epoch_no_longer_than_the_interval_learns_what_it_did_before():
    plain, shorter = (undisturbed("momentum", n)[1] for n in (1000, 2))
    assert train(PLANS["momentum"], checkpoint_steps=6)[1] == plain
    # In a longer one dropout begins anew at each stop, and before it nothing differs.
    assert shorter[:2] == plain[:2]
    assert shorter != plain


@needs.bfloat16
def test_the_loss_scale_goes_on_within_an_epoch(tmp_path):
    """AMP rewrites MXNet's operators for a whole process, hence another one."""
    code = """
        import json, sys
        from pathlib import Path
        import mxopt, test_progress
        from mxopt.core.plan import Plan
        plan = Plan(batch_size=4, epochs=4, precision="bfloat16", momentum=0.9)
        out = []
        whole, left = (Path(folder) for folder in sys.argv[1:])
        for folder, stop in ((whole, None), (left, "step 8"), (left, None)):
            # The seventh step and the eighth overflow, whichever process takes them.
            recipe = test_progress.overflowing_at({6, 7} if len(out) < 2 else set())
            out.append(test_progress.train(
                plan, folder, stop, recipe, checkpoint_steps=2))
        print(json.dumps(out))
    """
    child = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), tmp_path / "whole", tmp_path / "left"],
        capture_output=True, text=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert child.returncode == 0, child.stderr
    (whole, losses), (_, begun), (second, rest) = json.loads(child.stdout)
    assert whole["skipped_steps"] == second["skipped_steps"] == 2
    assert (second["resumed_epochs"], second["resumed_steps"]) == (1, 2)
    assert begun + rest == losses
    assert without_times({**second, **whole}) == without_times(second)
    scales = [
        json.loads((tmp_path / name / "epoch-0004.json").read_text())["loss_scale"]
        for name in ("whole", "left")
    ]
    assert scales[0] == scales[1]
    assert scales[0]["_loss_scale"] == 2**14


def overflowing_at(steps):
    """Some of a process's steps have gradients that are no numbers."""
    entropy, taken = gluon.loss.SoftmaxCrossEntropyLoss(), []

    def loss(output, label):
        losses = entropy(output, label)
        if not autograd.is_recording():
            return losses
        taken.append(1)
        return losses + mx.nd.sqrt(0 * losses) if len(taken) - 1 in steps else losses

    return toy.toy(loss=loss)


def test_stops_are_whole_updates_and_never_an_epoch_s_end():
    assert list(progress.stops(11, 4)) == [4, 8]
    assert list(progress.stops(11, 4, accumulation=3)) == [6]
    assert list(progress.stops(4, 4)) == list(progress.stops(3, 4)) == []


def test_stops_that_cannot_be_are_refused_before_anything_is_read():
    recipe = toy.toy(data=lambda: pytest.fail("it was read"))
    for every in (0, 10_001, 2.5):
        with pytest.raises(PlanError, match=f"checkpoint_steps={every} must be a whole number"):
            train(Plan(), recipe=recipe, checkpoint_steps=every)


def test_every_stop_has_a_seed_of_its_own():
    places = [(e, s, w) for e in range(20) for s in range(0, 5000, 50) for w in range(4)]
    plans = [Plan(seed=seed) for seed in range(3)]
    seeds = {progress.seed(plan, *place) for plan in plans for place in places}
    assert len(seeds) == len(plans) * len(places)
    assert progress.seed(Plan(seed=7), 0, 0, 0) == 7


def test_the_last_two_checkpoints_are_kept_in_the_order_of_their_numbers(tmp_path):
    train(PLANS["momentum"], tmp_path, "step 8", checkpoint_steps=2)
    assert {path.stem for path in tmp_path.iterdir()} == {"epoch-0001", "epoch-0001-step-0000002"}
    assert checkpoint.newest(tmp_path).stem == "epoch-0001-step-0000002"


def test_a_checkpoint_of_another_version_is_refused(tmp_path):
    train(PLANS["momentum"], tmp_path, stop=2)
    for path in tmp_path.glob("*.json"):
        manifest = json.loads(path.read_text())
        del manifest["format"], manifest["sha256"]["json"]
        manifest["sha256"]["json"] = checkpoint._own_sha256(manifest)
        path.write_text(json.dumps(manifest))
    with pytest.raises(PlanError, match="the version of mxopt that wrote it differs"):
        train(PLANS["momentum"], tmp_path)


@pytest.mark.fault(
    "sharing",
    "a run finds checkpoints with other steps between them",
    sees="epoch-0000-step-0000002.json is a checkpoint of something else (checkpoint_steps=2 "
    "differs)",
)
def test_checkpoints_at_other_steps_are_refused(tmp_path, sees):
    train(PLANS["momentum"], tmp_path, "step 2", checkpoint_steps=2)
    with sees.raised(PlanError):
        train(PLANS["momentum"], tmp_path, checkpoint_steps=3)


@pytest.mark.fault(
    "files",
    "the training set has changed since a run was killed within an epoch",
    sees="the checkpoint was left at step 2 of 6, and now an epoch has 5",
)
def test_an_epoch_of_other_data_is_not_gone_on_with(tmp_path, sees):
    how = {"checkpoint_steps": 2}
    train(PLANS["momentum"], tmp_path, "step 2", **how)
    with sees.raised(DataError):
        train(PLANS["momentum"], tmp_path, recipe=toy.toy(20, network=with_dropout), **how)


def test_a_static_graph_meets_its_largest_batch_first(monkeypatch):
    seen, loss = [], sentences().loss

    def watched(output, words):
        seen.append(output.shape[:2])
        return loss(output, words)

    recipe = dataclasses.replace(sentences(), loss=watched)
    plan = Plan(batch_size=64, bucketing="tokens", hybridize="static")
    _, rehearsed = train(plan, recipe=recipe, evaluate=False)
    largest, *others = seen
    assert math.prod(largest) >= max(map(math.prod, others))
    seen.clear()
    monkeypatch.delattr(SentenceLoader, "largest")
    _, plain = train(plan, recipe=recipe, evaluate=False)
    assert seen == others
    assert len(plain) == len(others)
    assert rehearsed == plain  # The generators are seeded again after it.
