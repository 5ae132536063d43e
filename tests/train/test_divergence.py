import math
import os
import subprocess
import sys

import needs
import numpy as np
import pytest
import toy
from mxnet import autograd, gluon, nd

from mxopt.core.errors import Diverged
from mxopt.core.plan import Plan
from mxopt.core.records import read_run
from mxopt.train import divergence
from mxopt.train.fit import fit

ENTROPY = gluon.loss.SoftmaxCrossEntropyLoss()


def spoiled(after):
    """A loss that is no number after so many steps."""
    steps = []

    def loss(output, label):
        steps.append(autograd.is_recording())
        losses = ENTROPY(output, label)
        return losses if sum(steps) <= after else losses * math.nan

    return loss


def train(plan, folder=None, checkpoint_steps=1000, **recipe):
    fit(
        toy.toy(**recipe), plan, lambda event, **fields: None,
        checkpoints=folder, checkpoint_steps=checkpoint_steps,
    )  # fmt: skip


def test_a_divergence_later_on_is_named_by_its_step():
    with pytest.raises(Diverged, match=r"step 12: loss inf; lower learning_rate"):
        divergence.check_losses([0.5, math.inf, math.nan], steps_before=10)


@pytest.mark.fault(
    "numbers",
    "a loss is no number, in a run with `--checkpoints`",
    sees="diverged at step 16: loss nan...the last good weights are in ...epoch-0002.params",
    lost="the steps since the last checkpoint",
)
def test_after_a_loss_that_is_no_number_the_last_good_weights_are_kept_and_named(tmp_path, sees):
    plan = Plan(batch_size=4, epochs=5)  # 6 steps an epoch
    with sees.raised(Diverged):
        train(plan, tmp_path, loss=spoiled(15))
    assert {path.stem for path in tmp_path.iterdir()} == {"epoch-0001", "epoch-0002"}
    for array in nd.load(str(tmp_path / "epoch-0002.params")).values():
        assert np.isfinite(array.asnumpy()).all()


@pytest.mark.fault(
    "numbers",
    "the last step before a checkpoint spoils the weights, which its losses do not show",
    sees="diverged at step 1: its update left weights not finite...none was written yet",
    lost="the steps since the checkpoint before",
)
@pytest.mark.parametrize(
    ("devices", "size", "every"), [("cpu:0", 22, 1000), ("cpu:0-1", 22, 1000), ("cpu:0", 11, 1)]
)
def test_weights_that_the_last_step_spoiled_are_not_kept(tmp_path, devices, size, every, sees):
    plan = Plan(batch_size=size, learning_rate=1e38, weight_decay=1e3, devices=devices)
    with sees.raised(Diverged):
        train(plan, tmp_path, every)
    assert not any(tmp_path.iterdir())


@pytest.mark.fault(
    "numbers",
    "only the loss of the validation or the test is infinite",
    sees="diverged by step 6: ..._loss is inf",
    lost="the steps since the last checkpoint",
)
@pytest.mark.parametrize(("calls", "split"), [(4, "validation"), (6, "test")])
def test_a_loss_of_validation_or_test_that_is_infinite_is_no_success(calls, split, sees):
    # Once by the estimate of memory, two batches of validation before the first step, then two
    # batches of each split.
    judged = []

    def loss(output, label):
        losses = ENTROPY(output, label)
        if autograd.is_recording():
            return losses
        judged.append(1)
        return losses / 0 if len(judged) == calls else losses

    with sees.raised(Diverged) as found:
        train(Plan(batch_size=4), loss=loss)
    assert f"{split}_loss" in str(found.value)


@needs.bfloat16
@pytest.mark.fault(
    "numbers",
    "under AMP, gradients overflow whatever the loss scale",
    sees="ended as diverged: diverged at step 29: its gradients overflow without a loss scale too, "
    "after 17 skipped steps; lower learning_rate",
    lost="the steps since the last checkpoint",
)
def test_overflows_that_no_loss_scale_mends_end_the_command(tmp_path, sees):
    record = tmp_path / "run.jsonl"
    words = "toy:overflowing batch_size=4 epochs=9 precision=bfloat16 --checkpoints --record"
    child = subprocess.run(
        [sys.executable, "-m", "mxopt", "run", *words.split(), record],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True, text=True,
    )  # fmt: skip
    # From 65536 the scale is halved 16 times before it is 1, where the 17th overflow is the last.
    newest = record.with_suffix(".checkpoints") / "epoch-0004.params"
    assert child.returncode == 1
    sees(child.stderr)
    assert str(newest) in child.stderr
    run = read_run(record)
    assert run.status == "diverged"
    assert len(run.all("epoch")) == 4
    assert sum(len(steps["losses"]) for steps in run.steps()) == 29
    assert {path.stem for path in newest.parent.iterdir()} == {"epoch-0003", "epoch-0004"}
