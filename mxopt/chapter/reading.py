"""Workload: read the images of a data set that is stored in different ways, and train nothing."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from mxopt.core.cache import cache_folder
from mxopt.core.errors import PlanError
from mxopt.core.plan import Plan
from mxopt.data import sources
from mxopt.data.ndarray_memory import memory
from mxopt.methods.engine.clock import timed

# How the images are stored and who reads them.
STORAGE = ("files", "record", "native")


def read(
    plan: Plan,
    write,
    storage: str = "files",
    images: int = 20_000,
    cold: bool = False,
    folder: str | None = None,
    stand_in: bool = False,
) -> dict:
    """Read images of garments, as PNG files or from a record file, once.

    Args:
        plan: batch size, ``num_workers`` (threads, with ``storage="native"``), and seed.
        write: called with the name and the fields of each event.
        storage: ``files`` (a file for each image, Gluon's ``ImageFolderDataset``), ``record`` (a
            record file, Gluon's ``ImageRecordDataset``), or ``native`` (the record file, read by
            MXNet's ``ImageRecordIter``).
        images: number of images.
        cold: whether the files are dropped from the system's cache before.
        folder: where the images are stored; they are written if they are not there. None takes a
            folder of the cache.
        stand_in: whether to take the drawn garments even if the real ones are available.

    Returns:
        ``images_per_second`` and ``seconds`` of one pass over all images, decoded and in batches;
        ``first_seconds`` until the first batch; ``bytes`` of all files, ``checksum``, the sum of
        all pixels, the same for all kinds of storage.

    Raises:
        PlanError: there is no such storage.
    """
    if storage not in STORAGE:
        raise PlanError(f"storage={storage!r} is not a choice; take one of {', '.join(STORAGE)}")
    home = stored(Path(folder) if folder else cache_folder() / "stored", images, stand_in)
    paths = sorted(home.glob("images/*/*.png")) if storage == "files" else [home / "all.rec"]
    if cold:
        drop_from_cache(paths)
    size = sum(path.stat().st_size for path in paths)
    found = consume(_batches(plan, home, storage))
    write("data", kind="stand-in" if stand_in else "real", origin=home.name, images=found["images"])
    return {**found, "bytes": size}


def consume(batches: Iterable) -> dict:
    """Add up all pixels of batches, and return how long it took to get them.

    The sum reads every pixel, so that reading is complete. It is NumPy's: MXNet's takes twenty
    times as long, and would be most of the time of a fast reader.

    Args:
        batches: of images on the host, uint8, each of shape (samples, ...).

    Returns:
        ``seconds``, ``images``, ``images_per_second``, ``first_seconds`` until the first batch, and
        ``checksum``, the sum of all pixels.
    """
    first, total, count = None, 0.0, 0
    with timed() as clock:
        begin = time.perf_counter()
        for batch in batches:
            total += float(memory(batch).sum(dtype="float64"))
            count += len(batch)
            first = first or time.perf_counter() - begin
    return {
        "seconds": clock.seconds,
        "images": count,
        "images_per_second": count / clock.seconds,
        "first_seconds": first,
        "checksum": total,
    }


def stored(folder: Path, images: int, stand_in: bool = False) -> Path:
    """Return a folder with the images as files and as a record file; write them if necessary.

    Args:
        folder: gets a folder for this number of images.
        images: number of images of Fashion-MNIST's training split.
        stand_in: whether to take the drawn garments.
    """
    import cv2

    from mxopt.data.fashion_mnist import FashionMNIST
    from mxopt.methods.record_files.files import write_images

    home = folder / f"{'drawn-' * stand_in}garments-{images}"
    if home.exists():
        return home
    unfinished = folder / f".{home.name}-{os.getpid()}"
    root = sources.stand_in("fashion-mnist").path if stand_in else None
    garments = FashionMNIST("train", root).take(images)
    for index in range(len(garments)):
        image, label = garments[index]
        path = unfinished / "images" / str(label) / f"{index:05d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        cv2.imwrite(str(path), image.asnumpy())
    write_images(garments, unfinished / "all.rec")
    try:
        unfinished.rename(home)
    except OSError:  # another process was faster
        shutil.rmtree(unfinished)
    return home


def drop_from_cache(paths: list[Path]) -> None:
    """Ask the system to forget the content of files, so that they are read from the disk again.

    Args:
        paths: files that are not being written.
    """
    os.sync()
    for path in paths:
        handle = os.open(path, os.O_RDONLY)
        try:
            os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(handle)


def _batches(plan: Plan, home: Path, storage: str) -> Iterator:
    """Yield every image once, in batches of uint8."""
    from mxnet import gluon

    from mxopt.methods.record_files.files import native_reader

    if storage == "native":
        reader = native_reader(home / "all.rec", (1, 28, 28), plan.batch_size,
                               max(1, plan.num_workers), dtype="uint8")  # fmt: skip
        for batch in reader:
            yield batch.data[0][: plan.batch_size - batch.pad]
        return
    kinds = gluon.data.vision.datasets
    found = (
        kinds.ImageFolderDataset(str(home / "images"), flag=0)
        if storage == "files"
        else kinds.ImageRecordDataset(str(home / "all.rec"), flag=0)
    )
    loader = gluon.data.DataLoader(found, plan.batch_size, num_workers=plan.num_workers)
    for images, _ in loader:
        yield images
