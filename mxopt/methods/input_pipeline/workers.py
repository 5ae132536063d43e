"""Worker processes that load batches, and are watched while they do.

Why not ``gluon.data.DataLoader(num_workers=...)``? Not for speed, but for what happens when
something goes wrong:

- *a worker dies*: Gluon: it is replaced; a bare ``TimeoutError`` after two minutes, or a
  ``ConnectionResetError``. Here: ``DataError`` as soon as its batch is wanted, with signal and
  sample.
- *``/dev/shm`` is full*: Gluon: a worker dies (apache/mxnet #18224), see above. Here: checked
  before the start; named if it happens.
- *a worker hangs*: Gluon: ``TimeoutError`` without the sample. Here: ``DataError`` with it.
- *a sample raises*: Gluon: the exception, with the worker's traceback. Here: the same.
- *the parent is killed*: Gluon: workers end when their batch is done. Here: they end at once.
- *memory of a batch*: Gluon: new shared memory each time, to be cleared by the kernel and mapped
  by both sides. Here: shared buffers that are reused.

Every worker has a pipe of its own and a place in which it notes the sample it is at. Workers are
forked, which is unsafe once CUDA has been started (apache/mxnet #18734).
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
from collections.abc import Iterable, Iterator
from multiprocessing.connection import wait
from multiprocessing.pool import ExceptionWithTraceback

from mxnet import nd
from mxnet.gluon.data import dataloader  # noqa: F401  (teaches pipes NDArrays)

from mxopt.core.child import end_with_parent
from mxopt.core.errors import CapacityError, DataError
from mxopt.data import ndarray_memory as host
from mxopt.machine import shared_memory

# Seconds that a batch may take from the moment it is wanted: Gluon's own.
TIMEOUT = 120.0
# A worker's note while it is at no sample but at putting a batch together or sending it.
_BATCHING = -1


class Workers:
    """Processes that make batches of a data set's samples.

    They are forked here, so every later change of the data set stays unknown to them. Whatever
    ends this process ends them, and so does the end of the thread that made them.

    Args:
        dataset: indexed by the workers.
        count: processes.
        timeout: seconds that a batch may take.
    """

    def __init__(self, dataset, count: int, timeout: float = TIMEOUT):
        self._timeout, self._ticket = timeout, 0
        self._received: dict = {}  # by ticket, what came before it was wanted
        self._at = memoryview(mmap.mmap(-1, 8 * count)).cast("q")
        # Workers make their sockets in this process's folder, which goes when it ends.
        multiprocessing.util.get_temp_dir()
        # As Gluon does: no operator may be under way, and no garbage wait, when MXNet is forked.
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
        # Runs when this object goes or the process ends, and never in a fork of it.
        self.close = multiprocessing.util.Finalize(self, _kill, [self._processes], exitpriority=10)

    def load(self, batches: Iterable[list[int]], ahead: int) -> Iterator:
        """Yield a batch of arrays on ``mx.cpu()`` for each list of sample numbers, in their order.

        Args:
            batches: the numbers of each batch's samples.
            ahead: batches that are under way while one is waited for. A pass that was left early
                is forgotten by the next one.

        Raises:
            DataError: a worker died or took too long; the message has the sample. All workers are
                stopped.
            Exception: whatever the data set or its transform raised, with the worker's traceback.
        """
        pending: deque = deque()
        slots = slots_each(len(self._pipes), ahead)
        self._first = self._ticket
        self._received.clear()
        for samples in batches:
            turn, number = divmod(self._ticket, len(self._pipes))
            try:
                # A worker whose batches nobody takes soon takes no more work, and both would wait.
                while self._pipes[number].poll():
                    self._take(number)
                # What was in the slot is of a batch that was received, or of a pass that was left.
                self._pipes[number].send((self._ticket, turn % slots, samples))
            except (OSError, EOFError):
                raise self._lost(number, samples) from None
            pending.append((self._ticket, samples))
            self._ticket += 1
            if len(pending) > ahead:
                yield self._receive(*pending.popleft())
        while pending:
            yield self._receive(*pending.popleft())

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
            except (OSError, EOFError):  # it died between its message and the memory named in it
                raise self._lost(number, samples) from None
        batch = self._received.pop(ticket)
        if isinstance(batch, Exception):
            raise batch
        return _copied(batch)

    def _take(self, number: int) -> None:
        """Take a worker's next batch from its pipe, and keep it unless a pass that was left wanted
        it."""
        ticket, batch = self._pipes[number].recv()
        if ticket >= self._first:
            self._received[ticket] = batch

    def _lost(self, number: int, samples: list[int]) -> DataError:
        """Stop all workers and return what is to be said of one of them."""
        process = self._processes[number]
        process.join(timeout=0.5)  # until the system has its exit code
        code, at = process.exitcode, self._at[number]
        self.close()
        where = f"at sample {at}" if at != _BATCHING else f"with the batch of samples {samples}"
        if code is None:
            return DataError(
                f"a worker process has not delivered for {self._timeout:g} s, {where}: it hangs, "
                "or a batch takes longer than that; set num_workers=0 to see where"
            )
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"
        return DataError(f"a worker process {how} {where}; {_ADVICE.get(-code, _SEE)}")


_SEE = "set num_workers=0 to see why"
_ADVICE = {
    signal.SIGBUS: "/dev/shm is full: take fewer workers, less prefetch or smaller batches, or "
    "enlarge it (docker run --shm-size=2g)",
    signal.SIGKILL: "the system does so where memory is short: take fewer workers",
}


def slots_each(count: int, ahead: int) -> int:
    """Return how many batches each worker has in shared memory, so that it overwrites none that is
    still to be received: of those ahead and the one waited for, each ``count``-th is its own."""
    return ahead // count + 1


def check_shared_memory(batch: int, count: int, ahead: int) -> None:
    """Make sure that ``/dev/shm`` holds the batches that workers keep there.

    Args:
        batch: bytes of one batch.
        count: workers.
        ahead: as for :meth:`Workers.load`.

    Raises:
        CapacityError: it does not, or is not there; the message gives both sizes.
    """
    batches, shared = count * slots_each(count, ahead), shared_memory()
    needed = batch * batches
    free = shared.free if shared else 0
    if needed > free:
        raise CapacityError(
            f"{batches} batches under way need {needed / 2**20:,.1f} MiB of /dev/shm, which has "
            f"{free / 2**20:,.1f} MiB free: set num_workers=0, take less prefetch or "
            "smaller batches, or enlarge it (docker run --shm-size=2g)"
        )


def _limit_sending(pipe, seconds: float) -> None:
    """Make sending fail with an ``OSError`` after some seconds in which nobody makes room."""
    with socket.socket(fileno=os.dup(pipe.fileno())) as end:  # another name of the same socket
        limit = struct.pack("ll", int(seconds), int(seconds % 1 * 1e6))
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)


def _copied(batch):
    """Return a copy in this process's own memory: at once, where an operator waits for its turn."""
    if isinstance(batch, nd.NDArray):
        return host.copied(host.view(batch))
    return [_copied(part) for part in batch]


def _work(pipe, dataset, notes, number: int, parent: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that waits
    end_with_parent(parent)
    kept: dict = {}
    while True:
        ticket, slot, numbers = pipe.recv()
        try:
            samples = []
            for notes[number] in numbers:
                samples.append(dataset[notes[number]])
            notes[number] = _BATCHING
            batch = kept[slot] = host.batchify(samples, host.SHARED, kept.get(slot))
        except Exception as error:
            batch = ExceptionWithTraceback(error, error.__traceback__)
        pipe.send((ticket, batch))


def _kill(processes: list) -> None:
    for process in processes:
        process.kill()
    for process in processes:
        process.join()
