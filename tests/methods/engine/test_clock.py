"""The clock is held to work of a length that is known on every machine.

The work is an operator that uses a given time of its thread's CPU, and the assertions order events
of the test itself: a slow or busy machine makes every reading longer, and no assertion false.
"""

import math
import time

import mxnet as mx
import pytest

from mxopt.methods.engine import timed

WORK = 0.2  # seconds
PATIENCE = 30  # seconds


class Work(mx.operator.CustomOp):
    """Runs the function that the test has chosen, inside the engine."""

    inside = None

    def forward(self, is_train, req, in_data, out_data, aux):
        Work.inside()
        self.assign(out_data[0], req[0], in_data[0])


@mx.operator.register("work_of_known_length")
class WorkProp(mx.operator.CustomOpProp):
    def create_operator(self, ctx, shapes, dtypes):
        return Work()


@pytest.fixture
def enqueue(monkeypatch):
    """Return a function that enqueues an operator which calls another function."""
    mx.nd.waitall()

    def enqueue(inside):
        monkeypatch.setattr(Work, "inside", staticmethod(inside))
        return mx.nd.Custom(mx.nd.ones(1), op_type="work_of_known_length")

    yield enqueue
    mx.nd.waitall()


def burn():
    """Use ``WORK`` seconds of this thread's CPU, which take at least as long on the wall."""
    until = time.thread_time() + WORK
    while time.thread_time() < until:
        pass


def test_work_enqueued_before_the_block_is_not_counted(enqueue):
    ended = []

    def work():
        burn()
        ended.append((time.perf_counter(), time.process_time()))

    kept = enqueue(work)
    with timed() as clock:
        assert ended, "the block began before the engine was idle"
    wall, cpu = ended[0]
    assert 0 <= clock.seconds <= time.perf_counter() - wall
    assert 0 <= clock.cpu_seconds <= time.process_time() - cpu
    del kept


def test_work_enqueued_in_the_block_is_counted_to_its_end(enqueue):
    began, left = [], []

    def work():
        began.append(time.perf_counter())
        # Only after the last operator has been enqueued, so that its end is awaited or missed.
        while math.isnan(clock.enqueued) and time.perf_counter() - began[0] < PATIENCE:
            time.sleep(0.001)
        left.append(not math.isnan(clock.enqueued))
        burn()

    before = time.perf_counter(), time.process_time()
    with timed() as clock:
        kept = enqueue(work)
    assert clock.seconds - clock.enqueued >= WORK
    assert WORK <= clock.cpu_seconds <= time.process_time() - before[1]
    assert clock.seconds <= time.perf_counter() - before[0]
    assert left == [True], "`enqueued` was read after waiting"
    del kept


def test_the_readings_are_nan_until_the_block_has_ended():
    with timed() as clock:
        assert all(map(math.isnan, (clock.enqueued, clock.seconds, clock.cpu_seconds)))
    assert not any(map(math.isnan, (clock.enqueued, clock.seconds, clock.cpu_seconds)))
