"""Epochs of a part of the samples: how many, which, and that a killed run goes on."""

import pytest

from mxopt.core.errors import PlanError
from mxopt.core.plan import Plan
from mxopt.methods.progressive_sampling import FirstBatches, share
from mxopt.recipes import load
from mxopt.train.fit import fit

PLAN = Plan(
    optimizer="adam",
    learning_rate=1e-3,
    batch_size=8,
    epochs=3,
    sampling_start=0.25,
    sampling_epochs=2,
    preprocess="cached",
)
GARMENTS = {"stand_in": True, "limit": 64, "channels": [4, 8], "hidden": 16}


class Counted:
    """A loader of numbers, which go on from epoch to epoch."""

    def __init__(self):
        self.epoch = self.step = 0

    def __len__(self):
        return 10

    def __iter__(self):
        begin, self.step = self.step, 0
        self.epoch += 1
        return iter(range(10 * self.epoch + begin, 10 * self.epoch + 10))


def events_of(plan, **how):
    events = []
    figures = fit(
        load("fashion_mnist", **GARMENTS),
        plan,
        lambda event, **fields: events.append((event, fields)),
        **how,
    )
    return figures, [fields for event, fields in events if event == "epoch"]


def test_the_first_batches_of_a_loader():
    loader = FirstBatches(Counted(), 0.25)
    assert len(loader) == 3
    assert list(loader) == [10, 11, 12]
    loader.epoch, loader.step = 4, 2
    assert list(loader) == [52]


@pytest.mark.parametrize("preprocess", ["lazy", "cached", "device"])
def test_epochs_grow_until_they_have_all_samples(preprocess):
    figures, epochs = events_of(PLAN.replace(preprocess=preprocess))
    assert [epoch["samples"] for epoch in epochs] == [16, 40, 64]
    assert [epoch["step"] for epoch in epochs] == [2, 7, 15]
    assert figures["samples"] == 120


def test_the_last_epoch_is_like_that_of_any_training():
    plan = PLAN.replace(learning_rate=0.0)  # without updates the losses are those of the order
    _, fewer = events_of(plan)
    _, all_of_them = events_of(plan.replace(sampling_start=None))
    assert fewer[2]["train_loss"] == all_of_them[2]["train_loss"]
    assert fewer[0]["train_loss"] != all_of_them[0]["train_loss"]


def test_a_killed_run_goes_on(tmp_path):
    expected, _ = events_of(PLAN)

    class Killed(Exception):
        pass

    epochs = 0

    def kill(event, **fields):
        nonlocal epochs
        epochs += event == "epoch"
        if epochs == 2:
            raise Killed

    recipe = load("fashion_mnist", **GARMENTS)
    with pytest.raises(Killed):
        fit(recipe, PLAN, kill, checkpoints=tmp_path, checkpoint_steps=2)
    found = fit(recipe, PLAN, lambda *a, **k: None, checkpoints=tmp_path, checkpoint_steps=2)
    assert found["resumed_epochs"] == 1
    assert found["train_loss"] == expected["train_loss"]


def test_shares():
    assert [share(epoch, 0.1, 1) for epoch in (0, 1, 5)] == [0.1, 1, 1]
    with pytest.raises(PlanError, match=r"sampling_start=1.5 must be a share"):
        Plan(sampling_start=1.5, epochs=2)
    with pytest.raises(PlanError, match="sampling_start=0 must be a share"):
        Plan(sampling_start=0, epochs=2)
    with pytest.raises(PlanError, match="sampling_epochs=3 leaves no epoch with all samples"):
        Plan(sampling_start=0.5, sampling_epochs=3, epochs=3)
