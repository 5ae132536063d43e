"""Failures of Gluon's worker processes: an error each time, and never a loader that waits on."""

import gc
import multiprocessing
import os
import signal
import sys
import threading
import time

import pytest
import toy
from faults import within
from mxnet import cpu, gluon, nd
from sick import BATCHES, Sick, alive, die

from mxopt.core.errors import CapacityError, DataError
from mxopt.core.plan import Plan
from mxopt.machine import SharedMemory
from mxopt.methods.input_pipeline import loaders, pipeline, space
from mxopt.methods.input_pipeline.gluon_workers import GluonWorkers


def unreadable():
    raise FileNotFoundError("photo-7.png is missing")


def workers(happens=lambda: None, ahead=2, **options):
    return GluonWorkers(Sick(happens), BATCHES, 2, ahead, **options)


def numbers(batches):
    return [batch.asnumpy()[:, 0].tolist() for batch in batches]


@pytest.mark.parametrize("ahead", [0, 1, 7])
def test_batches_come_in_order_pass_after_pass(ahead):
    made = workers(ahead=ahead)
    assert numbers(made) == BATCHES
    assert next(iter(made)).asnumpy()[0, 0] == 0  # and the rest is left
    assert numbers(made) == BATCHES


@pytest.mark.timeout(60)
def test_hundreds_of_batches_may_be_under_way():
    batches = [[number % 12] for number in range(600)]
    found = GluonWorkers(Sick(), batches, 1, 400)
    assert [batch.asnumpy()[0, 0] for batch in found] == [number for [number] in batches]


@pytest.mark.timeout(120)
@pytest.mark.parametrize("threads", [1, 2])
def test_workers_compute_although_the_engine_was_at_work_when_they_were_forked(threads):
    """Operators in the parent before and between, with all its threads."""

    def large(index):
        return nd.dot(nd.ones((300, 300)), nd.ones((300, 300)))[0, :2] * 0 + index

    data = gluon.data.SimpleDataset(range(12)).transform(large)
    for _ in range(5):
        square = nd.dot(nd.ones((600, 600)), nd.ones((600, 600)))
        assert numbers(GluonWorkers(data, BATCHES, threads, 4)) == BATCHES
        assert square[0, 0].asscalar() == 600


@pytest.mark.fault(
    "workers",
    "a worker of Gluon's loader is killed",
    lost="the steps since the last checkpoint",
    sees="a worker process was killed by SIGKILL; the system does so where memory is short",
)
@pytest.mark.timeout(60)
def test_a_worker_that_is_killed_is_noticed(sees):
    made, start = workers(die), time.monotonic()
    with sees.raised(DataError):
        numbers(made)
    assert time.monotonic() - start < 10
    assert within(10, lambda: not alive([process.pid for process in made.processes]))
    with pytest.raises(DataError, match="make a new loader"):
        numbers(made)


@pytest.mark.timeout(60)
def test_a_worker_that_dies_while_it_waits_for_work_does_not_stop_the_loader_from_being_stopped():
    """It holds the lock of the queue, for which multiprocessing would wait forever."""
    made = workers()
    assert numbers(made) == BATCHES
    time.sleep(0.5)
    for process in made.processes:
        os.kill(process.pid, signal.SIGKILL)
    time.sleep(0.5)
    with pytest.raises(DataError, match="killed by SIGKILL"):
        numbers(made)
    left = [process.pid for process in made._pool._pool]
    assert within(10, lambda: not alive(left))


@pytest.mark.fault(
    "workers",
    "a worker of Gluon's loader hangs",
    lost="the steps since the last checkpoint",
    sees="the worker processes have not delivered a batch for 0.5 s: one of them hangs",
)
@pytest.mark.timeout(60)
def test_a_worker_that_hangs_is_noticed_in_the_stated_time(sees):
    made = workers(lambda: time.sleep(60), timeout=0.5)
    with sees.raised(DataError):
        numbers(made)
    assert within(10, lambda: not alive([process.pid for process in made.processes]))


def test_a_data_set_s_own_error_is_raised_with_its_traceback():
    with pytest.raises(FileNotFoundError, match="photo-7") as refused:
        numbers(workers(unreadable))
    assert "in unreadable" in str(refused.value.__cause__)


@pytest.mark.timeout(60)
def test_a_worker_that_is_stopped_while_it_delivers_does_not_keep_the_loader_from_being_stopped():
    """It dies with the lock of the queue, for which multiprocessing would wait forever."""

    def deliver():
        frame = sys._getframe()
        while "outqueue" not in frame.f_locals:
            frame = frame.f_back
        frame.f_locals["outqueue"]._wlock.acquire()
        time.sleep(60)

    made = workers(deliver, timeout=0.5)
    with pytest.raises(DataError, match="one of them hangs"):
        numbers(made)
    assert within(10, lambda: not alive([process.pid for process in made.processes]))


@pytest.mark.timeout(60)
@pytest.mark.parametrize("under_way", [0, 1, 400])
def test_a_loader_that_is_deleted_leaves_no_thread(under_way):
    before = threading.active_count()
    made = GluonWorkers(Sick(), [[number % 12] for number in range(600)], 2, 400)
    passing = iter(made)
    for _ in range(under_way):
        next(passing)
    del passing, made
    gc.collect()
    assert within(10, lambda: threading.active_count() == before)


@pytest.mark.parametrize("end", ["SIGKILL", "SIGTERM", "error", "return"])
@pytest.mark.timeout(120)
def test_nothing_of_the_workers_outlives_the_process(end):
    # Arrays in shared memory count their holders, and a fork would let go of those here once more.
    gc.collect()
    nd.waitall()
    ours, theirs = multiprocessing.Pipe()

    def train():
        made = workers(lambda: time.sleep(30))
        passing = iter(made)
        next(passing)
        theirs.send([process.pid for process in made.processes])
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
    process.join(10)
    assert process.exitcode is not None
    assert within(10, lambda: not alive(pids))
    made = tuple(f"mx_{pid:x}_" for pid in [process.pid, *pids])
    assert not [name for name in os.listdir("/dev/shm") if name.startswith(made)]


@pytest.mark.parametrize(
    ("switches", "batches"),
    [({}, 6), ({"prefetch": 9}, 11), ({"loader": "shared_memory"}, 6)],
)
@pytest.mark.fault(
    "workers",
    "`/dev/shm` is too small for the batches under way",
    sees="batches under way need 0.0 MiB of /dev/shm, which has 0.0 MiB free: set num_workers=0",
)
def test_a_small_shared_memory_is_seen_before_any_worker_starts(
    monkeypatch, sees, switches, batches
):
    for name in ("workers.Workers", "gluon_workers.GluonWorkers"):
        module, cls = name.split(".")
        monkeypatch.setattr(
            getattr(loaders, module), cls, lambda *a: pytest.fail("they were started")
        )
    plan = Plan(batch_size=4, num_workers=2, **switches)
    # An image (1, 4, 4) float32 and a label int32, four of each in a batch.
    needed = batches * 4 * (16 * 4 + 4)
    monkeypatch.setattr(space, "shared_memory", lambda: SharedMemory(needed, needed - 1))
    with sees.raised(CapacityError):
        pipeline.make_loader(toy.samples(11), toy.flat_transform, plan, [cpu()])
    monkeypatch.setattr(space, "shared_memory", lambda: SharedMemory(needed, needed))
    with pytest.raises(pytest.fail.Exception, match="they were started"):
        pipeline.make_loader(toy.samples(11), toy.flat_transform, plan, [cpu()])
