"""A clock that waits for the engine at both edges."""

from __future__ import annotations

import contextlib
import time


class Stopwatch:
    """The two readings of :func:`timed`, in seconds."""

    enqueued: float = float("nan")
    seconds: float = float("nan")


@contextlib.contextmanager
def timed():
    """Time a block, waiting for the engine before the clock starts and before it stops.

    Yields a :class:`Stopwatch` whose ``seconds`` is there when the block has ended, and whose
    ``enqueued`` is the time until the last operator was merely enqueued: what a clock that does
    not wait would have shown.
    """
    from mxnet import nd

    nd.waitall()
    watch = Stopwatch()
    start = time.perf_counter()
    yield watch
    watch.enqueued = time.perf_counter() - start
    nd.waitall()
    watch.seconds = time.perf_counter() - start
