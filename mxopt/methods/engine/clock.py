"""A clock that waits for the engine when it starts and when it stops."""

from __future__ import annotations

import contextlib
import time


class Stopwatch:
    """The readings of :func:`timed`; NaN until the block has ended.

    Attributes:
        enqueued: seconds until the last operator was enqueued.
        seconds: seconds until the last operator was computed.
        cpu_seconds: CPU seconds of the process in that time, summed over all of its threads.
    """

    enqueued: float = float("nan")
    seconds: float = float("nan")
    cpu_seconds: float = float("nan")


@contextlib.contextmanager
def timed():
    """Time a ``with`` block, waiting for the engine before the clock starts and before it stops.

    Yields:
        A :class:`Stopwatch`. After the block, ``seconds`` is its time, ``cpu_seconds`` the CPU
        time that it took, and ``enqueued`` the time that a clock without waiting would have shown.
    """
    from mxnet import nd

    nd.waitall()
    watch = Stopwatch()
    start, cpu_start = time.perf_counter(), time.process_time()
    yield watch
    watch.enqueued = time.perf_counter() - start
    nd.waitall()
    watch.seconds = time.perf_counter() - start
    watch.cpu_seconds = time.process_time() - cpu_start
