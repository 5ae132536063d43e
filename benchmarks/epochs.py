"""Workload: whole epochs from files on disk, with validation, by mxopt or by PyTorch."""

from __future__ import annotations

import dataclasses
import time

from benchmarks.arms import apart, exported, run_peer
from mxopt import machine
from mxopt.core.plan import Plan


def run(plan: Plan, write, train: int, validation: int, peer: dict | None = None,
        **options) -> dict:  # fmt: skip
    """Train on Penn-Fudan's files, and validate before the first epoch and after every one.

    Args:
        plan: the switches.
        write: called with the name and the fields of each event.
        train: number of training images, the first ones of the split.
        validation: number of validation images, the first ones of the split.
        peer: if given, PyTorch trains instead of mxopt, on the same images in the same order:
            its ``network``, the ``sizes`` of that, what it is ``given``, and ``workers`` of its
            DataLoader.
        **options: options of the segmentation recipe.

    Returns:
        ``seconds`` from making the network and opening the data to the end of the last validation,
        without the import of libraries; ``first_epoch_seconds``, the part up to the end of the
        first epoch; ``samples_per_second`` trained in that time; ``train_loss``,
        ``validation_loss`` and ``validation_mIoU`` at the end; ``peak_memory_bytes`` of the process
        without its loader's workers. For a peer also ``first_validation_seconds``, the part of its
        validation before training, and ``difference`` and ``loss_difference``, by which its first
        scores and its validation loss before training differ from mxopt's.

    Raises:
        DeviceError: the peers' environment is missing, or the peer failed, for example because its
            scores or its loss differ.
    """
    from mxopt.train import fit

    if peer:
        return _peer(plan, write, train, validation, options, **peer)
    recipe = _recipe(train, validation, options)
    recipe.metric()  # imports what it needs
    ends, epochs = [], []

    def keep(event, **fields):
        write(event, **fields)
        if event == "epoch":
            ends.append(time.perf_counter())
            epochs.append(fields)

    start = time.perf_counter()
    fit.fit(recipe, plan, keep)
    return {
        "seconds": ends[-1] - start,
        "samples_per_second": sum(epoch["samples"] for epoch in epochs) / (ends[-1] - start),
        "first_epoch_seconds": ends[0] - start,
        **{name: epochs[-1][name] for name in ("train_loss", "validation_loss", "validation_mIoU")},
        "peak_memory_bytes": machine.peak_memory(),
    }


def untrained_loss(plan: Plan, train: int, validation: int, options: dict) -> float:
    """Return the validation loss of the initial weights, as training under a plan computes it.

    Args:
        plan: the switches.
        train: number of training images.
        validation: number of validation images.
        options: options of the segmentation recipe.
    """
    from mxopt.train import fit

    # An epoch at a learning rate of 0, for the validation after it.
    still = plan.replace(epochs=1, learning_rate=0.0)
    recipe = _recipe(min(train, plan.batch_size), validation, options)
    return fit.fit(recipe, still, lambda *_, **__: None)["validation_loss"]


def _recipe(train, validation, options):
    """Return the recipe with fewer images; one is tested, after the clock has stopped."""
    from mxopt import recipes

    recipe = recipes.load("segmentation", **options)

    def data():
        whole = recipe.data()
        return dataclasses.replace(
            whole, train=whole.train.take(train), validation=whole.validation.take(validation),
            test=whole.test.take(1),
        )  # fmt: skip

    return dataclasses.replace(recipe, data=data)


def _peer(plan, write, train, validation, options, given, network, sizes, workers) -> dict:
    from mxopt import recipes
    from mxopt.methods.input_pipeline.samplers import epoch_order

    data = recipes.load("segmentation", **options).data()
    orders = [epoch_order(train, True, plan.seed, epoch).tolist() for epoch in range(plan.epochs)]
    folder, _ = exported(plan, {"recipe": "segmentation", **options, "limit": plan.batch_size})
    job = {
        "network": network, "sizes": sizes, "exchange": str(folder), "given": given,
        "workers": workers, "root": str(data.train.location.path), "size": options["size"],
        "train": data.train.names[:train], "validation": data.validation.names[:validation],
        "orders": orders, "batch_size": plan.batch_size, "optimizer": plan.optimizer,
        "learning_rate": plan.learning_rate, "momentum": plan.momentum,
        "untrained_loss": apart(untrained_loss, plan, train, validation, options),
    }  # fmt: skip
    return run_peer("epochs.py", job, write)
