"""Worker processes that load batches, with errors that name the sample.

What they do otherwise than those of ``gluon.data.DataLoader``, by itself:

- *a worker dies*: Gluon replaces it and raises a ``TimeoutError`` without details after two
  minutes, or a ``ConnectionResetError``. Here: ``DataError`` with signal and sample, as soon as the
  batch is needed.
- *a worker hangs*: Gluon raises ``TimeoutError`` without the sample. Here: ``DataError`` with it.
- *``/dev/shm`` fills up*: in Gluon a worker dies (apache/mxnet #18224), see above. Here the error
  names the cause.
- *a sample raises an exception*: both raise it with the worker's traceback.
- *the parent is killed*: Gluon's workers end after their current batch. Here they end at once.
- *memory of a batch*: Gluon allocates new shared memory for every batch, which the kernel clears
  and both processes map. Here shared buffers are reused, and mapped once.
- *between epochs*: Gluon's workers have nothing to do until the next epoch is asked for, which then
  waits for its first batch. Here they can be told what will be asked for.

Every worker has its own pipe and a shared number that tells which sample it is loading. Workers are
forked, which is unsafe after CUDA was initialised (apache/mxnet #18734).
"""

from __future__ import annotations

import gc
import mmap
import multiprocessing
import multiprocessing.util
import os
import signal
import socket
import struct
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from multiprocessing.connection import wait
from multiprocessing.pool import ExceptionWithTraceback

from mxnet import nd
from mxnet.gluon.data import dataloader  # noqa: F401  (lets pipes carry NDArrays)

from mxopt.core.child import end_with_parent
from mxopt.core.errors import DataError
from mxopt.data import ndarray_memory as host

# Time limit of a batch in seconds, from the moment it is waited for; as in Gluon.
TIMEOUT = 120.0
# A worker's number while it assembles or sends a batch instead of loading a sample.
_BATCHING = -1


class Workers:
    """Processes that make batches from a data set's samples.

    They are forked when this object is made, so later changes of the data set do not affect them.
    They end with this process, and with the thread that made them.

    Args:
        dataset: data set, indexed by the workers.
        count: number of processes.
        timeout: time limit of a batch in seconds.
    """

    def __init__(self, dataset, count: int, timeout: float = TIMEOUT):
        self._timeout, self._ticket, self._first = timeout, 0, 0
        self._begun: tuple = 0, deque()  # of the next iteration, and how many were to be ahead
        self._received: dict = {}  # by ticket, batches that arrived before they were waited for
        self._shared: dict = {}  # by worker and slot, its memory, which is mapped only once
        self._at = memoryview(mmap.mmap(-1, 8 * count)).cast("q")
        # Workers make their sockets in this process's folder, which is removed when it ends.
        multiprocessing.util.get_temp_dir()
        # As in Gluon: before a fork of MXNet, operators must be finished and garbage collected.
        nd.waitall()
        gc.collect()
        nd.waitall()
        context = multiprocessing.get_context("fork")
        self._processes, self._pipes = [], []
        for number in range(count):
            ours, theirs = context.Pipe()
            arguments = theirs, dataset, self._at, number, os.getpid()
            process = context.Process(target=_work, args=arguments, daemon=True)
            process.start()
            theirs.close()
            _limit_sending(ours, timeout)
            self._processes.append(process)
            self._pipes.append(ours)
        # Runs when this object is deleted or the process ends, and never in a fork of it.
        self.close = multiprocessing.util.Finalize(self, _kill, [self._processes], exitpriority=10)

    def load(
        self,
        batches: Iterable[list[int]],
        ahead: int,
        finish: Callable | None = None,
        following: Iterable[list[int]] = (),
    ) -> Iterator:
        """Yield a batch of arrays on ``mx.cpu()`` for each list of sample numbers, in order.

        If an iteration is abandoned, the next one discards its batches.

        Args:
            batches: the sample numbers of each batch.
            ahead: number of further batches that are loaded while one is waited for.
            finish: function of a batch, whose result is yielded; a copy if not given. Its arrays
                are the workers' memory, which later batches overwrite: the function must have read
                them when it returns.
            following: the sample numbers of batches that will probably be asked for next. The first
                ones are begun when all of ``batches`` are, and discarded if the next iteration
                asks for others. It is read then, not now.

        Raises:
            DataError: a worker died or took too long; the message has the sample. All workers are
                stopped.
            Exception: the data set or its transform raised it; it has the worker's traceback.
        """
        self._finish = finish or _copied
        batches, following = iter(batches), iter(following)
        pending, first = self._continued(batches, ahead)
        for samples in chain(first, batches):
            pending.append(self._sent(samples, ahead))
            if len(pending) > ahead:
                yield self._receive(*pending.popleft())
        for _ in range(len(pending)):
            for samples in islice(following, 1):
                pending.append(self._sent(samples, ahead))
            yield self._receive(*pending.popleft())
        self._begun = ahead, pending

    def _continued(self, batches: Iterator, ahead: int) -> tuple[deque, list]:
        """Return the batches that were begun already, and otherwise those read to find it out."""
        (before, begun), self._begun = self._begun, (0, deque())
        first = list(islice(batches, len(begun)))
        if before == ahead and first == [samples for _, samples in begun]:
            return begun, []
        self._first = self._ticket
        self._received.clear()
        return deque(), first

    def _sent(self, samples: list[int], ahead: int) -> tuple[int, list[int]]:
        """Have a worker make a batch, and return the batch's ticket and samples."""
        ticket, (lap, number) = self._ticket, divmod(self._ticket, len(self._pipes))
        slot = lap % slots_each(len(self._pipes), ahead)
        try:
            # A worker that cannot send its batches receives no work, and both would wait.
            while self._pipes[number].poll():
                self._take(number)
            # The slot's old batch was received already, or its iteration was abandoned.
            self._pipes[number].send((ticket, slot, samples))
        except (OSError, EOFError):
            raise self._lost(number, samples) from None
        self._ticket += 1
        return ticket, samples

    def _receive(self, ticket: int, samples: list[int]):
        number = ticket % len(self._pipes)
        pipe, process = self._pipes[number], self._processes[number]
        deadline = time.monotonic() + self._timeout
        while ticket not in self._received:
            ready = wait([pipe, process.sentinel], max(0, deadline - time.monotonic()))
            if pipe not in ready:
                raise self._lost(number, samples)
            try:
                self._take(number)
            except (OSError, EOFError):  # it died after its message, before the memory was opened
                raise self._lost(number, samples) from None
        batch = self._received.pop(ticket)
        if isinstance(batch, Exception):
            raise batch
        return self._finish(batch)

    def _take(self, number: int) -> None:
        """Receive a worker's next batch, and keep it unless its iteration was abandoned."""
        ticket, slot, batch = self._pipes[number].recv()
        if batch is None:
            batch = self._shared[number, slot]
        elif not isinstance(batch, Exception):
            self._shared[number, slot] = batch
        if ticket >= self._first:
            self._received[ticket] = batch

    def _lost(self, number: int, samples: list[int]) -> DataError:
        """Stop all workers and return the error for one of them."""
        process = self._processes[number]
        process.join(timeout=0.5)  # until its exit code is available
        code, at = process.exitcode, self._at[number]
        self.close()
        where = f"at sample {at}" if at != _BATCHING else f"with the batch of samples {samples}"
        if code is None:
            return DataError(
                f"a worker process has not delivered for {self._timeout:g} s, {where}: it hangs, "
                "or a batch takes longer than that; set num_workers=0 to see where"
            )
        return DataError(f"a worker process {how_it_ended(code, _SEE, where)}")


_SEE = "set num_workers=0 to see why"
_ADVICE = {
    signal.SIGBUS: "/dev/shm is full: take fewer workers, less prefetch or smaller batches, or "
    "enlarge it (docker run --shm-size=2g)",
    signal.SIGKILL: "the system does so where memory is short: take fewer workers",
}


def slots_each(count: int, ahead: int) -> int:
    """Return how many batches each worker must keep in shared memory.

    Each worker makes every ``count``-th batch, and must not overwrite one that is not received yet:
    the batch that is waited for, or one of those ahead.

    Args:
        count: number of workers.
        ahead: number of further batches that are loaded while one is waited for.
    """
    return ahead // count + 1


def how_it_ended(code: int, advice: str, where: str = "") -> str:
    """Return how a worker process ended, and what to do.

    Args:
        code: its exit code.
        advice: what to do if the code does not tell.
        where: what it was doing.
    """
    how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"
    return f"{' '.join(filter(None, (how, where)))}; {_ADVICE.get(-code, advice)}"


def _limit_sending(pipe, seconds: float) -> None:
    """Make sending fail with an ``OSError`` after some seconds of waiting for the reader."""
    with socket.socket(fileno=os.dup(pipe.fileno())) as end:  # another name of the same socket
        limit = struct.pack("ll", int(seconds), int(seconds % 1 * 1e6))
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)


def _copied(batch):
    """Return a copy in this process's memory, made at once instead of by a queued operator."""
    if isinstance(batch, nd.NDArray):
        return host.copied(host.view(batch))
    return [_copied(part) for part in batch]


def _work(pipe, dataset, notes, number: int, parent: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is handled by the parent
    end_with_parent(parent)
    kept: dict = {}
    while True:
        ticket, slot, numbers = pipe.recv()
        try:
            samples = []
            for notes[number] in numbers:
                samples.append(dataset[notes[number]])
            notes[number] = _BATCHING
            before = kept.get(slot)
            batch = kept[slot] = host.batchify(samples, host.SHARED, before)
            if _same(before, batch):
                batch = None  # the parent has mapped its memory already
        except Exception as error:
            batch = ExceptionWithTraceback(error, error.__traceback__)
        pipe.send((ticket, slot, batch))


def _same(before, batch) -> bool:
    """Return whether two batches are the same arrays."""
    if isinstance(batch, list) and isinstance(before, list):
        return all(map(_same, before, batch))
    return batch is before


def _kill(processes: list) -> None:
    for process in processes:
        process.kill()
    for process in processes:
        process.join()
