"""Gluon's ``DataLoader`` with worker processes, and errors where it would wait forever.

Gluon makes and passes every batch. But its ``multiprocessing.Pool`` replaces a worker that died and
waits for the batch that nobody makes, and stopping the pool may wait forever for a lock that a
dead worker held, even one that it stopped itself. So the processes are watched while a batch is
waited for, and they are stopped when none of them holds that lock.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import time
from collections.abc import Iterator
from multiprocessing import pool as pools
from multiprocessing.util import Finalize

from mxnet.gluon.data import DataLoader

from mxopt.core.child import end_with_parent
from mxopt.core.errors import DataError
from mxopt.methods.shared_memory_loader.workers import TIMEOUT, how_it_ended

# Seconds between two looks at the processes while a batch is waited for.
_INTERVAL = 0.2
# Seconds that a worker has to finish sending a batch before it is stopped.
_SENDING_TIMEOUT = 1.0
_SEE = "set num_workers=0 to see why, or take loader='shared_memory', which names the sample"
# The process whose workers are being forked; 0 at other times.
_parent = 0


class GluonWorkers:
    """Iterable over the batches of an epoch, which Gluon's worker processes make.

    The processes are forked when this object is made, and end with this process.

    Args:
        dataset: data set, indexed by the workers.
        batches: sampler of batches.
        count: number of processes.
        ahead: number of further batches that are loaded while one is waited for.
        timeout: time limit of a batch in seconds, from the moment it is waited for.
        **pinned: ``pin_memory`` and ``pin_device_id`` of Gluon's loader.
    """

    def __init__(
        self, dataset, batches, count: int, ahead: int, timeout: float = TIMEOUT, **pinned
    ):
        with _ending_with_this_process():
            self._loader = DataLoader(
                dataset, batch_sampler=batches, num_workers=count, prefetch=ahead, timeout=timeout,
                **pinned,
            )  # fmt: skip
        pool = self._pool = self._loader._worker_pool
        processes, submit = list(pool._pool), pool.apply_async
        self.processes = processes
        pool.apply_async = lambda *task: _Result(submit(*task), processes)
        # Gluon calls it after an error, and when the loader is deleted.
        pool.terminate = Finalize(None, _stop, [pool], exitpriority=20)

    def __iter__(self) -> Iterator:
        """Yield the batches, as arrays in memory that is shared with a worker.

        Raises:
            DataError: a worker died, or took longer than the time limit; all are stopped then.
            Exception: the data set or its transform raised it; it has the worker's traceback.
        """
        if self._pool._state != pools.RUN:
            raise DataError("the worker processes were stopped after an error: make a new loader")
        try:
            yield from self._loader
        except (OSError, EOFError) as error:
            if isinstance(error.__cause__, pools.RemoteTraceback):
                raise
            # The worker that made the batch died before its memory was opened here.
            raise _lost(self.processes, str(error)) from error


class _Result:
    """A batch that a pool will deliver, as long as all its processes live."""

    def __init__(self, result: pools.ApplyResult, processes: list):
        self._result, self._processes = result, processes

    def get(self, timeout: float):
        deadline = time.monotonic() + timeout
        while not self._result.ready():
            if any(process.exitcode is not None for process in self._processes):
                raise _lost(self._processes)
            if time.monotonic() > deadline:
                raise DataError(
                    f"the worker processes have not delivered a batch for {timeout:g} s: one of "
                    f"them hangs, or a batch takes longer than that; {_SEE}"
                )
            self._result.wait(_INTERVAL)
        return self._result.get()


def _lost(processes: list, error: str = "") -> DataError:
    for process in processes:
        process.join(timeout=0.5 / len(processes))  # until the exit code is available
    codes = [process.exitcode for process in processes if process.exitcode is not None]
    # The others may have been stopped meanwhile.
    codes.sort(key=lambda code: code in (0, -signal.SIGTERM))
    return DataError(f"a worker process {how_it_ended(codes[0], _SEE) if codes else error}")


def _stop(pool) -> None:
    """Stop a pool, without waiting for locks that dead processes hold."""
    pool._terminate.cancel()
    pool._state = pool._worker_handler._state = pools.TERMINATE
    pool._change_notifier.put(None)
    pool._worker_handler.join()  # it would replace the processes
    # While it is held here, no process is killed with it, or in the middle of sending a batch.
    sending = pool._outqueue._wlock
    held = sending.acquire(timeout=_SENDING_TIMEOUT)
    for process in pool._pool:
        process.kill()
        process.join()
    if held:  # otherwise a dead process has it, and the threads end with this process
        sending.release()
        _end_threads(pool)


def _end_threads(pool) -> None:
    """End the two threads that pass on tasks and results of a pool without processes."""
    pool._task_handler._state = pool._result_handler._state = pools.TERMINATE
    pool._outqueue.put(None)  # a result may be waited for that nobody makes
    tasks = pool._inqueue._reader
    while pool._task_handler.is_alive():  # it may wait for a pipe that is full
        if tasks.poll(0.01):
            os.read(tasks.fileno(), 1 << 16)  # a dead process may have read a part
    pool._result_handler.join()


@contextlib.contextmanager
def _ending_with_this_process():
    """Have processes that are forked in the block end with this one, even if it is killed."""
    global _parent
    _parent = os.getpid()
    try:
        yield
    finally:
        _parent = 0


def _after_fork() -> None:
    if _parent:
        end_with_parent(_parent)
        # Arrays in shared memory count their holders: what is garbage here must not be freed twice.
        gc.freeze()


os.register_at_fork(after_in_child=_after_fork)
