"""Reading Penn-Fudan by the loaders of mxopt and PyTorch: the workload, and its experiment."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from benchmarks.arms import run_peer
from benchmarks.cases import READING, THREADS, WORKERS
from mxopt import machine, measure
from mxopt.core.plan import Plan


def load(
    plan: Plan, write, peer: dict | None = None, size: int = 480, epochs: int = 8,
    image_decoder: str = "pillow",
) -> dict:  # fmt: skip
    """Read Penn-Fudan's training split through a loader, and train nothing.

    The workers of mxopt's own loader begin an epoch while the one before it ends; PyTorch's begin
    it when it is asked for, which its ``DataLoader`` has no option to change.

    Args:
        plan: determines where preprocessing runs, workers and batch size.
        write: called with the name and the fields of each event.
        peer: if given, PyTorch's DataLoader reads instead, with ``workers`` processes, and
            delivers uint8 if it is given ``uint8``, and decodes with kornia-rs if ``kornia``.
        size: side of the square to which images are cropped, in pixels.
        epochs: how often the split is read; the first epoch is reported separately.
        image_decoder: what mxopt's data set decodes with.

    Returns:
        ``samples_per_second`` of the median later epoch, ``first_epoch_seconds`` with preparation,
        ``peak_memory_bytes`` of the process without its workers.

    Raises:
        DeviceError: the peers' environment is missing, or the peer failed.
    """
    from mxopt import recipes
    from mxopt.chapter import workloads

    options = {"network": "tiny", "size": size, "image_decoder": image_decoder}
    if not peer:
        found = workloads.load(plan, write, epochs=epochs, **options)
        return {
            "samples_per_second": found["samples"] / found["seconds"],
            "first_epoch_seconds": found["first_epoch_seconds"],
            "peak_memory_bytes": machine.peak_memory(),
        }
    data = recipes.load("segmentation", **options).data()
    samples = [data.transform(*data.train[number]) for number in range(plan.batch_size)]
    with tempfile.TemporaryDirectory() as folder:
        expected = Path(folder) / "expected.npz"
        images, masks = (np.stack([part.asnumpy() for part in parts]) for parts in zip(*samples))
        np.savez(expected, images=images, masks=masks)
        job = {
            "root": str(data.train.location.path), "names": data.train.names, "size": size,
            "batch_size": plan.batch_size, "epochs": epochs, "expected": str(expected), **peer,
        }  # fmt: skip
        return run_peer("loader.py", job, write)


def part(name: str, repeats: int, folder: Path) -> measure.Experiment:
    """Measure the loaders of mxopt and PyTorch, reading Penn-Fudan's training split.

    Args:
        name: name of the part.
        repeats: number of runs of each arm.
        folder: folder of experiments.
    """
    before = Plan(batch_size=4, cpu_threads=THREADS["cpu_threads"])
    plan = before.replace(**READING)
    workers = plan.replace(**WORKERS)
    # `kernels` is last: it is compared with the peers. `cached` reads no file after preparing.
    keep = workers.replace(image_dtype="uint8", allocator="keep")
    arms = {"before": before, "opencv": plan, "cached": plan.replace(preprocess="cached"),
            "cached-uint8": plan.replace(preprocess="cached", image_dtype="uint8"),
            # Not Gluon's loader, whose stack of uint8 is slow.
            "cached-rows": plan.replace(preprocess="cached", image_dtype="uint8",
                                        loader="shared_memory"),
            "workers": workers, "workers-uint8": workers.replace(image_dtype="uint8"),
            "kornia": workers.replace(image_dtype="uint8"),
            "keep": keep, "kernels": keep.replace(transforms="kernels")}  # fmt: skip
    decoder, uint8 = {"image_decoder": "kornia"}, {"uint8": True}
    kornia = {**uint8, "kornia": True}
    peers = {"torch": {"workers": 0}, "torch-workers": {"workers": 2},
             "torch-workers-uint8": {"workers": 2, "given": uint8},
             "torch-kornia": {"workers": 2, "given": kornia},
             "torch-keep": {"workers": 2, "given": {**kornia, "keep": True}},
             "torch-one-thread": {"workers": 2, "given": {**kornia, "keep": True,
                                                          "one_thread": True}}}  # fmt: skip
    pairs = [("before", "opencv"), ("opencv", "cached"), ("cached", "cached-uint8"),
             ("cached-uint8", "cached-rows"),
             ("opencv", "workers"), ("workers", "workers-uint8"), ("workers-uint8", "kornia"),
             ("kornia", "keep"), ("keep", "kernels"),
             ("torch-workers-uint8", "workers-uint8")]  # fmt: skip
    pairs += [(peer, "kernels") for peer in peers]
    arms.update(dict.fromkeys(peers, plan))
    return measure.interleave(
        name, "benchmarks.loader:load", arms, repeats=repeats, folder=folder, again="kernels",
        arm_options={**dict.fromkeys(("kornia", "keep", "kernels"), decoder),
                     **{arm: {"peer": peer} for arm, peer in peers.items()}},
        title="Penn-Fudan's loader, 480 px, batches of 4", figure="samples_per_second", unit="",
        better="higher", pairs=pairs, headline=[("torch-one-thread", "kernels")],
    )  # fmt: skip
