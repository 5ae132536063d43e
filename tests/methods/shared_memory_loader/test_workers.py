import gc
import multiprocessing
import os
import signal
import time

import pytest
from faults import within
from mxnet import nd
from sick import BATCHES, Sick, alive, die

from mxopt.core.errors import DataError
from mxopt.data import ndarray_memory as host
from mxopt.methods.shared_memory_loader import workers
from mxopt.methods.shared_memory_loader.workers import Workers


def loaded(watched, ahead=2):
    return [batch.asnumpy()[:, 0].tolist() for batch in watched.load(BATCHES, ahead)]


def unreadable():
    raise DataError("photo-7.png cannot be decoded")


@pytest.mark.parametrize("ahead", [0, 1, 7])
def test_batches_come_in_order_pass_after_pass(ahead):
    watched = Workers(Sick(), 2)
    assert loaded(watched, ahead) == BATCHES
    left_early = watched.load(BATCHES, ahead)
    assert next(left_early).asnumpy()[0, 0] == 0
    assert loaded(watched, ahead) == BATCHES
    assert not watched._received  # what was left is not kept


@pytest.mark.parametrize("ahead", [0, 1, 7])
def test_no_batch_is_overwritten_by_those_that_were_made_meanwhile(ahead):
    watched, kept = Workers(Sick(), 2), []
    for _ in range(2):
        for batch in watched.load(BATCHES, ahead):
            time.sleep(0.02)  # until the workers have done all that was asked of them
            kept.append(batch)
    assert [batch.asnumpy()[:, 0].tolist() for batch in kept] == 2 * BATCHES


@pytest.mark.parametrize("ahead", [0, 1, 7])
def test_a_function_that_reads_at_once_gets_the_workers_own_memory(ahead):
    given = []

    def first_column(batch):
        given.append(batch.context)
        time.sleep(0.02)  # until the workers have done all that was asked of them
        return batch.asnumpy()[:, 0].tolist()

    watched = Workers(Sick(), 2)
    for _ in range(2):
        assert list(watched.load(BATCHES, ahead, first_column)) == BATCHES
    assert set(given) == {host.SHARED}
    assert loaded(watched) == BATCHES  # it is not kept for later passes


class Counted(Sick):
    """Counts how often each of its samples is loaded, in all processes."""

    def __init__(self):
        super().__init__()
        self.counts = multiprocessing.Array("i", 12)

    def __getitem__(self, index):
        with self.counts.get_lock():
            self.counts[index] += 1
        return super().__getitem__(index)


@pytest.mark.parametrize("ahead", [0, 1, 2, 7])
def test_what_follows_is_begun_before_it_is_asked_for_and_made_once(ahead):
    samples = Counted()
    watched = Workers(samples, 2)
    for _ in range(2):
        found = [
            batch.asnumpy()[:, 0].tolist() for batch in watched.load(BATCHES, ahead, None, BATCHES)
        ]
        assert found == BATCHES
    begun = min(ahead, 4) * 3
    assert within(5, lambda: samples.counts[:] == [3] * begun + [2] * (12 - begun))
    assert loaded(watched, ahead) == BATCHES
    assert samples.counts[:] == [3] * 12
    assert loaded(watched, ahead) == BATCHES


@pytest.mark.parametrize("ahead", [1, 2, 7])
def test_what_was_begun_is_discarded_if_something_else_is_asked_for(ahead):
    watched = Workers(Sick(), 2)
    for expected in (BATCHES[::-1], BATCHES[:1], BATCHES[1:]):
        list(watched.load(BATCHES, ahead, following=BATCHES))
        assert [b.asnumpy()[:, 0].tolist() for b in watched.load(expected, ahead)] == expected


def test_what_was_begun_is_discarded_if_fewer_batches_are_to_be_ahead():
    """Otherwise more would be under way than there is memory for."""
    watched, found = Workers(Sick(), 2), []
    list(watched.load(BATCHES, 7, following=BATCHES))
    for batch in watched.load(2 * BATCHES, 1):
        time.sleep(0.02)  # until the workers have done all that was asked of them
        found.append(batch.asnumpy()[:, 0].tolist())
    assert found == 2 * BATCHES


def test_memory_is_mapped_once_until_a_batch_has_another_shape():
    watched = Workers(Sick(), 1)
    batches = [[0, 1], [2, 3], [4], [5, 6], [7, 8]]
    maps = []
    for batch, numbers in zip(watched.load(batches, 0), batches):
        assert batch.asnumpy()[:, 0].tolist() == numbers
        [array] = watched._shared.values()
        maps.append(array)
    assert [left is right for left, right in zip(maps, maps[1:])] == [True, False, False, True]


@pytest.mark.timeout(30)
def test_any_number_of_batches_may_be_under_way():
    """More than the pipe to a worker and the one back hold together, some hundreds each."""
    batches = [[number % 12] for number in range(1500)]
    found = [batch.asnumpy()[0, 0] for batch in Workers(Sick(), 1).load(batches, 1400)]
    assert found == [number for [number] in batches]


@pytest.mark.timeout(30)
def test_a_worker_that_hangs_is_noticed_while_it_takes_no_more_batches():
    watched = Workers(Sick(lambda: time.sleep(300)), 1, timeout=0.5)
    with pytest.raises(DataError, match=r"has not delivered for 0\.5 s, at sample 7"):
        list(watched.load([[7]] * 5000, 4900))


@pytest.mark.fault(
    "workers",
    "a worker is killed",
    lost="the steps since the last checkpoint",
    sees="a worker process was killed by SIGKILL at sample 7; the system does so "
    "where memory is short",
)
def test_a_worker_that_is_killed_is_noticed_at_once_with_its_sample(sees):
    watched = Workers(Sick(die), 2)
    start = time.monotonic()
    with sees.raised(DataError):
        loaded(watched)
    assert time.monotonic() - start < workers.TIMEOUT / 4
    assert not any(process.is_alive() for process in watched._processes)
    with pytest.raises(DataError, match="a worker process"):
        loaded(watched)


@pytest.mark.fault(
    "workers",
    "a worker fills up `/dev/shm`",
    lost="the steps since the last checkpoint",
    sees="was killed by SIGBUS at sample 7; /dev/shm is full",
)
def test_a_worker_that_finds_shared_memory_full_says_so(sees):
    with sees.raised(DataError):
        loaded(Workers(Sick(lambda: die(signal.SIGBUS)), 2))


@pytest.mark.fault(
    "workers",
    "a worker hangs, or crawls",
    lost="the steps since the last checkpoint",
    sees="a worker process has not delivered for 0.5 s, at sample 7: it hangs",
)
def test_a_worker_that_hangs_is_noticed_in_the_stated_time(monkeypatch, sees):
    hangs, wait = multiprocessing.Event(), workers.wait
    # On a busy machine a worker may take half a second to get as far as that.
    monkeypatch.setattr(workers, "wait", lambda *these: hangs.wait(30) and wait(*these))
    watched = Workers(Sick(lambda: hangs.set() or time.sleep(30)), 2, timeout=0.5)
    with sees.raised(DataError):
        next(watched.load([[6, 7, 8]], 0))
    assert not any(process.is_alive() for process in watched._processes)


@pytest.mark.fault("workers", "a worker meets a damaged file", sees="photo-7.png cannot be decoded")
def test_a_worker_s_error_is_the_data_set_s_own(sees):
    with sees.raised(DataError) as refused:
        loaded(Workers(Sick(unreadable), 2))
    assert "in unreadable" in str(refused.value.__cause__)


@pytest.mark.parametrize("end", ["SIGKILL", "SIGTERM", "SIGINT", "error", "return"])
@pytest.mark.fault(
    "workers",
    "the training process is killed, interrupted, fails or ends while workers are busy",
    sees="0 processes and 0 segments of shared memory stay behind",
    lost="the steps since the last checkpoint",
)
def test_nothing_of_the_workers_outlives_the_process(end, sees):
    # Arrays in shared memory count their holders, and a fork would let go of those here once more.
    gc.collect()
    nd.waitall()
    ours, theirs = multiprocessing.Pipe()

    def train():
        signal.signal(signal.SIGINT, signal.default_int_handler)
        watched = Workers(Sick(lambda: time.sleep(30)), 2)
        passing = watched.load(BATCHES, 2)
        next(passing)
        theirs.send([process.pid for process in watched._processes])
        if end == "error":
            raise ValueError("on purpose")
        if end != "return":
            list(passing)

    process = multiprocessing.get_context("fork").Process(target=train)
    process.start()
    assert ours.poll(30)
    pids = ours.recv()
    if end.startswith("SIG"):
        assert len(alive(pids)) == 2
        os.kill(process.pid, getattr(signal, end))
    process.join(5)
    if end == "SIGINT" and process.exitcode is None:
        # Python ignores an interrupt that arrives while an object is deleted: once more.
        os.kill(process.pid, signal.SIGINT)
    process.join(5)
    assert process.exitcode is not None
    within(10, lambda: not alive(pids))
    # MXNet names a segment after the process that made it.
    made = tuple(f"mx_{pid:x}_" for pid in [process.pid, *pids])
    left = [name for name in os.listdir("/dev/shm") if name.startswith(made)]
    sees(f"{len(alive(pids))} processes and {len(left)} segments of shared memory stay behind")
