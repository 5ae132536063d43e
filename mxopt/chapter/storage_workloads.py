"""Workloads: photographs that are stored smaller, and images in several record files."""

from __future__ import annotations

import dataclasses
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from mxopt.chapter.deployment import once
from mxopt.chapter.reading import consume, drop_from_cache
from mxopt.core.errors import PlanError
from mxopt.core.plan import Plan
from mxopt.data import sources

# A file that pauses does so once in as many of its batches.
PAUSE_EVERY = 10
PAUSE = 0.05  # seconds


def photographs(
    plan: Plan,
    write,
    storage: str = "files",
    side: int | None = None,
    quality: int | None = None,
    cold: bool = False,
    size: int = 240,
    limit: int | None = None,
    root: str | None = None,
    **options,
) -> dict:
    """Read the photographs for training once, and score a network on those for the test.

    Args:
        plan: the switches; ``transforms`` resizes and crops, ``batch_size`` is that of the scoring.
        write: called with the name and the fields of each event.
        storage: ``files``, as Penn-Fudan comes, or ``records`` (a record file for each split,
            written before the clock starts).
        side: the shorter side that records are resized to when they are written; None keeps their
            size.
        quality: of JPEG for the images in records, 1 to 100; None writes PNG.
        cold: whether the files are dropped from the system's cache before.
        size: side of the square that images are cropped to, in pixels.
        limit: maximum number of samples in each split; None for all.
        root: a folder in Penn-Fudan's layout; None takes Penn-Fudan.
        **options: further options of the recipe ``segmentation``, such as ``network``; it is not
            trained.

    Returns:
        ``seconds``, ``cpu_seconds`` and ``images_per_second`` of reading, decoding, resizing and
        cropping all images and masks once, ``bytes`` of these files, and the test split's figures.

    Raises:
        PlanError: there is no such storage, or it has no such option.
    """
    from mxopt import recipes
    from mxopt.data import PennFudan
    from mxopt.methods.engine.clock import timed
    from mxopt.methods.kvstore import stores
    from mxopt.methods.opencv_transforms import select
    from mxopt.train.setup import prepare
    from mxopt.train.step import evaluate

    if storage not in ("files", "records"):
        raise PlanError(f"storage={storage!r} is not a choice; take one of files, records")
    if storage == "files" and (side or quality):
        raise PlanError("side and quality are those of records; take storage='records'")
    if "classes" in options:
        raise PlanError("classes are those of masks in folders; leave them out for Penn-Fudan's")
    made = recipes.load("segmentation", size=size, limit=limit, root=root, **options)
    data = made.data()
    with tempfile.TemporaryDirectory() as folder:
        if storage == "files":
            pairs = PennFudan("train", root).files()[:limit]
            paths = [path for pair in pairs for path in pair]
        else:
            data = _in_records(data, Path(folder), side, quality)
            paths = [Path(folder) / "train.rec"]
        if cold:
            drop_from_cache(paths)
        transform = select(data.transform, plan)
        with timed() as clock:
            for index in range(len(data.train)):
                for array in transform.compact(*data.train[index]):
                    array.wait_to_read()
        run, _ = prepare(
            dataclasses.replace(made, data=lambda: data),
            plan,
            once(write),
            True,
            stores.for_plan(plan),
        )
        return {
            "seconds": clock.seconds,
            "cpu_seconds": clock.cpu_seconds,
            "images_per_second": len(data.train) / clock.seconds,
            "bytes": sum(path.stat().st_size for path in paths),
            **evaluate(run, "test"),
        }


def several(
    plan: Plan,
    write,
    files: int = 4,
    ordered: bool = True,
    pausing: int = 0,
    images: int = 20_000,
    stand_in: bool = False,
) -> dict:
    """Read images of garments from one record file or from several at the same time, once.

    Args:
        plan: batch size, and ``num_workers``, the threads that decode each file (at least one).
        write: called with the name and the fields of each event.
        files: number of record files; with one, no thread of ours is between it and the loop.
        ordered: whether every file has its turn, or the batch that is ready first is next.
        pausing: number of files that pause for ``PAUSE`` seconds before each tenth of their
            batches, as on a disk that others use too; each file at other batches.
        images: number of images in all files.
        stand_in: whether to take the drawn garments even if the real ones are available.

    Returns:
        The figures of :func:`mxopt.chapter.reading.consume`; ``checksum`` is the same for any
        number of files and any order.

    Raises:
        PlanError: there are fewer images than files, no file, or fewer files than pause.
    """
    from mxopt.data.fashion_mnist import FashionMNIST
    from mxopt.methods.record_files import arrays, interleaved, write_images

    if not 1 <= files <= images:
        raise PlanError(f"files={files} must be at least 1 and at most the {images} images")
    if not 0 <= pausing <= files:
        raise PlanError(f"pausing={pausing} must be at least 0 and at most the {files} files")
    root = sources.stand_in("fashion-mnist").path if stand_in else None
    garments = FashionMNIST("train", root).take(images)
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{number}.rec" for number in range(files)]
        for number, path in enumerate(paths):
            write_images(garments.shard(files, number), path)
        threads = max(1, plan.num_workers)
        readers: list[Iterable] = [
            arrays(path, (1, 28, 28), plan.batch_size, threads=threads, dtype="uint8")
            for path in paths
        ]
        for number in range(pausing):
            readers[number] = _pausing(readers[number], number * PAUSE_EVERY // pausing)
        batches = interleaved(readers, ordered) if files > 1 else readers[0]
        found = consume(images for images, _ in batches)
    write("data", kind="stand-in" if stand_in else "real", images=found["images"])
    return found


def _in_records(data, folder: Path, side: int | None, quality: int | None):
    """Return the same data, whose splits are read from record files in a folder."""
    from mxopt.methods.record_files import RecordPairs, write_pairs

    splits = {}
    for name in ("train", "validation", "test"):
        path = write_pairs(getattr(data, name), folder / f"{name}.rec", quality, side)
        splits[name] = RecordPairs(path)
    return dataclasses.replace(data, **splits)


def _pausing(batches: Iterable, earlier: int) -> Iterator:
    """Yield the batches, and pause before one of ``PAUSE_EVERY``, ``earlier`` than the tenth."""
    for number, batch in enumerate(batches, 1):
        if (number + earlier) % PAUSE_EVERY == 0:
            time.sleep(PAUSE)
        yield batch
