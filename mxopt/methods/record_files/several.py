"""Several record files, read at the same time by a thread each."""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from mxopt.methods.record_files.files import native_reader

_END = object()


def arrays(path: str | Path, shape: tuple[int, int, int], batch_size: int, **options) -> Iterator:
    """Yield the batches of a record file as arrays of their own, without the last one's filling.

    :func:`~mxopt.methods.record_files.files.native_reader` writes a later batch over an earlier
    one, so that its batches cannot be kept.

    Args:
        path: of the file, ``name.rec``.
        shape: (channels, height, width) of an image.
        batch_size: number of samples of a batch.
        **options: further arguments of ``native_reader``.

    Yields:
        Images (samples, channels, height, width) and labels (samples,).
    """
    for batch in native_reader(path, shape, batch_size, **options):
        size = batch_size - batch.pad
        yield batch.data[0][:size].copy(), batch.label[0][:size].copy()


def interleaved(readers: Sequence[Iterable], ordered: bool = True, ahead: int = 2) -> Iterator:
    """Yield the batches of several readers, each of which is read by a thread of its own.

    Args:
        readers: iterables of batches that may be kept, such as :func:`arrays` of one file each.
        ordered: whether every reader has its turn, in the same order each time. Otherwise the batch
            that is ready first is next, so that a slow file stops nobody, and the order differs
            from run to run. Every batch comes once either way.
        ahead: number of batches of each reader that are kept ready.

    Yields:
        The batches.

    Raises:
        Exception: what a reader raises, when its turn has come.
    """
    together = queue.Queue(ahead * len(readers))
    places = [queue.Queue(ahead) if ordered else together for _ in readers]
    stopped = threading.Event()
    for reader, place in zip(readers, places):
        threading.Thread(target=_fill, args=(reader, place, stopped), daemon=True).start()
    turns = deque(places)
    try:
        while turns:
            place = turns.popleft()
            batch, error = place.get()
            if error is not None:
                raise error
            if batch is not _END:
                yield batch
                turns.append(place)
    finally:
        stopped.set()


def _fill(reader: Iterable, place: queue.Queue, stopped: threading.Event) -> None:
    """Put a reader's batches, or its error, and its end into a queue until nobody wants them."""

    def put(batch, error=None):
        while not stopped.is_set():
            try:
                return place.put((batch, error), timeout=0.1)
            except queue.Full:
                pass

    try:
        for batch in reader:
            put(batch)
            if stopped.is_set():
                return
        put(_END)
    except Exception as error:  # it is raised where the batches are taken
        put(None, error)
