"""Training the garments' network, by mxopt or PyTorch: the workload, and its experiments.

The goal of one is an accuracy; ``mxopt.measure.target`` finds when each run reached it.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.arms import apart, exported, run_peer
from benchmarks.cases import FUSED, KEEP, SERIAL, STATIC, THREADS
from benchmarks.given import COMPILE, LAST, TUNED
from benchmarks.sizes import SIZES
from mxopt import machine, measure
from mxopt.core.plan import Plan

WORK = "benchmarks.goal:run"
# Options of the recipe that a peer's network has too.
SHARED = ("bias", "hidden", "channels")

# Training to an accuracy on the validation split, chosen before measuring: the guide's network, as
# its source trains it but for the learning rate, then one lever more in each arm.
GOAL = {
    "title": "Fashion-MNIST to 91 % on two cores",
    "plan": {
        "optimizer": "adam",
        "beta2": 0.999,
        "learning_rate": 1e-3,
        "batch_size": 64,
        "epochs": 4,
        "preprocess": "cached",
    },
    "goals": (0.90, 0.91),
    "checks": 10,
    "levers": {
        "batched": {"transform_batch": 1_000, "preprocess": "device"},
        "launch": {**THREADS, **KEEP},
        "static": STATIC,
        "optimized": {"graph_rewrites": "usual"},
        "batch-256": {"batch_size": 256, "learning_rate": 2e-3},
        "cosine": {"schedule": "cosine", "warmup_epochs": 0.2, "learning_rate": 3e-3},
        "copies": SERIAL,
        "kernel": {"graph_rewrites": "usual+pooled_convolution"},
        "updates": FUSED,
    },
    "peers": {
        "eager": {},
        "channels_last": LAST,
        "compile": {**LAST, **COMPILE},
        "tuned": {**LAST, **TUNED},
        "tuned-compile": {**LAST, **TUNED, **COMPILE},
    },
    "headline": "tuned",
}
# One epoch by MXNet's operators, then by kernels, each added to those before, beside all peers. An
# arm has all levers up to the one named.
EPOCH = {
    "title": "One epoch of Fashion-MNIST, batches of 256",
    "arms": {"operators": "copies", "kernel": "kernel", "updates": "updates"},
    "target": 1.3,
}


def run(plan: Plan, write, checks: int = 10, peer: dict | None = None, **options) -> dict:
    """Train the recipe ``fashion_mnist``.

    Args:
        plan: the switches.
        write: called with the name and the fields of each event.
        checks: number of validations in each epoch.
        peer: if given, PyTorch trains instead of mxopt, from the same weights, with the same images
            in the same order at the same learning rates: what it is ``given``.
        **options: options of the recipe.

    Returns:
        The figures of :func:`mxopt.train.fit.fit`, of which a peer has most, and
        ``peak_memory_bytes``.

    Raises:
        DeviceError: the peers' environment is missing, or the peer failed, for example because its
            scores differ.
    """
    from mxopt import recipes
    from mxopt.train import fit

    if peer is not None:
        return _peer(plan, write, checks, options, **peer)
    found = fit.fit(recipes.load("fashion_mnist", **options), plan, write, checks=checks)
    return {**found, "peak_memory_bytes": machine.peak_memory()}


def _peer(plan, write, checks, options, given) -> dict:
    folder, _ = exported(plan, {"recipe": "fashion_mnist", **options, "limit": 8})
    made = apart(export, folder, plan, options)
    steps = -(-made["samples"] // plan.batch_size)
    job = {
        "network": "GarmentNet", "exchange": str(folder), "given": given,
        "sizes": {name: options[name] for name in SHARED if name in options},
        "rates": made["rates"], "beta2": plan.beta2, "weight_decay": plan.weight_decay,
        "batch_size": plan.batch_size, "smoothing": plan.label_smoothing,
        "stops": sorted({*(round(steps * number / checks) for number in range(1, checks)), steps}),
    }  # fmt: skip
    found = run_peer("goal.py", job, write)
    write("setup", preprocessing_seconds=found["preprocessing_seconds"])
    for event in found.pop("events"):
        write(event.pop("event"), **event)
    return found


def export(folder: Path, plan: Plan, options: dict) -> dict:
    """Write the images of all splits and their order, unless they are there.

    Args:
        folder: gets ``train.npz``, ``validation.npz``, ``test.npz`` and ``orders.npy``.
        plan: determines the order.
        options: options of the recipe.

    Returns:
        ``samples`` of the training split, and ``rates``, the learning rate of every step.
    """
    from mxopt import recipes
    from mxopt.methods.input_pipeline.samplers import epoch_order
    from mxopt.methods.lr_schedule import learning_rate

    data = recipes.load("fashion_mnist", **options).data()
    count = len(data.train)
    orders = [epoch_order(count, True, plan.seed, epoch) for epoch in range(plan.epochs)]
    if not (folder / "orders.npy").exists():
        for name in ("train", "validation", "test"):
            images, labels = zip(*getattr(data, name))
            images = np.stack([image.asnumpy()[:, :, 0] for image in images])
            np.savez(folder / f"{name}.npz", images=images, labels=np.array(labels))
        np.save(folder / "orders.npy", np.stack(orders))  # it is written last
    steps = -(-count // plan.batch_size)
    rates = [float(learning_rate(plan, step, steps)) for step in range(steps * plan.epochs)]
    return {"samples": count, "rates": rates}


def part(name: str, repeats: int, folder: Path) -> measure.Experiment:
    """Measure the time to an accuracy: each lever, added to those before, and the peers.

    Args:
        name: name of the part.
        repeats: number of runs of each arm.
        folder: folder of experiments.
    """
    arms, options = measure.ladder(
        Plan(**GOAL["plan"]), GOAL["levers"], {"checks": GOAL["checks"]}, WORK
    )
    names = list(arms)
    for peer, given in GOAL["peers"].items():
        arms[peer] = arms[names[-1]]
        options[peer] = {**options[names[-1]], "peer": {"given": given}}
    pairs = [*((peer, names[-1]) for peer in GOAL["peers"]), *zip(names, names[1:]),
             (names[0], names[-1])]  # fmt: skip
    return measure.interleave(
        name, WORK, arms, arm_options=options, repeats=repeats, folder=folder,
        seeds=True, again=names[-1], title=GOAL["title"], pairs=pairs, figure="training_seconds",
        quality="test_accuracy", margin=0.01, target="validation_accuracy", goal=GOAL["goals"][-1],
        headline=[(GOAL["headline"], names[-1])],
    )  # fmt: skip


def epoch(name: str, repeats: int, folder: Path) -> measure.Experiment:
    """Measure an epoch of the garments' network without and with kernels, and the peers.

    Args:
        name: name of the part.
        repeats: number of runs of each arm.
        folder: folder of experiments.
    """
    arms, own = _one_epoch()
    names = list(arms)
    first, last = names[0], names[-1]
    for peer, given in GOAL["peers"].items():
        arms[peer], own[peer] = arms[first], {**own[first], "peer": {"given": given}}
    return measure.interleave(
        name, WORK, arms, arm_options=own, repeats=repeats, folder=folder, again=last,
        title=EPOCH["title"], figure="training_seconds", quality="test_accuracy", margin=0.01,
        pairs=[*zip(names, names[1:]), *((peer, last) for peer in GOAL["peers"])],
        headline=[(GOAL["headline"], last)],
    )  # fmt: skip


def sizes(name: str, repeats: int, folder: Path) -> measure.Experiment:
    """Measure an epoch with all kernels, and peers, at other sizes of a batch.

    Args:
        name: name of the part.
        repeats: number of runs of each arm.
        folder: folder of experiments.
    """
    own = SIZES[name]
    plans, options = _one_epoch()
    first, *_, last = plans
    arms, arm_options, pairs = {}, {}, []
    for size, change in own["sizes"].items():
        arms[size], arm_options[size] = plans[last].replace(**change), options[last]
        for peer in own["peers"]:
            arm = f"{size}-{peer}"
            arms[arm] = plans[first].replace(**change)
            arm_options[arm] = {**options[first], "peer": {"given": GOAL["peers"][peer]}}
            pairs.append((arm, size))
    return measure.interleave(
        name, WORK, arms, arm_options=arm_options, repeats=repeats, folder=folder,
        title=own["title"], figure="training_seconds", quality="test_accuracy", margin=0.01,
        pairs=pairs, again=next(iter(own["sizes"])),
    )  # fmt: skip


def _one_epoch() -> tuple[dict[str, Plan], dict]:
    """Return the plans and the options of one epoch, both by name of the arm."""
    plans, options = measure.ladder(Plan(**GOAL["plan"]), GOAL["levers"], {"checks": 1}, WORK)
    arms = {arm: plans[lever].replace(epochs=1) for arm, lever in EPOCH["arms"].items()}
    return arms, {arm: options[lever] for arm, lever in EPOCH["arms"].items()}
