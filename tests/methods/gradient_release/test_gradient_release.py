"""Memory of gradients is given back in the engine's order, and training computes the same."""

import os
import subprocess
import sys

import mxnet as mx
import numpy as np
import psutil
import pytest
from mxnet import autograd, gluon, nd

from mxopt import methods
from mxopt.core.errors import PlanError
from mxopt.core.plan import Plan
from mxopt.methods.gradient_release import give_back
from mxopt.recipes import load
from mxopt.train import fit

MIB = 2**20


def resident():
    """Memory of this process that is in use, in MiB."""
    return psutil.Process().memory_info().rss / MIB


def test_the_memory_is_returned_and_can_be_written_again():
    array = nd.ones((64, MIB // 4))
    array.wait_to_read()
    before = resident()
    give_back(array)
    nd.waitall()
    assert before - resident() > 60
    assert float(array.sum().asscalar()) < 2 * 1024  # at most a page at both ends is left
    array[:] = 3
    assert float(array.mean().asscalar()) == 3
    assert resident() > before - 4


ORDER = """
from mxopt import compat
from mxnet import nd
from mxopt.methods.gradient_release import give_back
array = nd.ones((16, 2**18))
read = []
for value in range(2, 12):
    read.append(array * 1)
    give_back(array)
    array[:] = value
assert [float(each.min().asscalar()) for each in read] == list(range(1, 11))
assert float(array.min().asscalar()) == 11
for _ in range(100):  # and arrays that nothing else holds
    give_back(nd.ones((4, 2**10)))
"""


@pytest.mark.parametrize("engine", ["ThreadedEnginePerDevice", "ThreadedEngine", "NaiveEngine"])
def test_what_is_enqueued_before_reads_it_and_what_is_enqueued_later_stays(engine):
    env = {**os.environ, **methods.environment(Plan(engine=engine))}
    subprocess.run([sys.executable, "-c", ORDER], env=env, check=True, timeout=300)


@pytest.mark.parametrize(("begin", "end"), [(1500, 12000), (3, 19997), (100, 900), (0, 20000)])
def test_memory_beside_it_is_left_alone(begin, end):
    array = nd.arange(20000) + 1
    give_back(array[begin:end])  # MXNet's slice has the same memory
    left, whole = array.asnumpy(), np.arange(20000, dtype="float32") + 1
    np.testing.assert_array_equal(left[:begin], whole[:begin])
    np.testing.assert_array_equal(left[end:], whole[end:])
    kept = np.count_nonzero(left[begin:end])
    assert kept < 2 * 1024 if end - begin > 2 * 1024 else kept == end - begin


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_an_array_in_a_layout_of_onednn_and_a_sparse_one_are_left_alone():
    net = gluon.nn.Conv2D(64, 3, in_channels=64)
    net.initialize()
    before = net.weight.data().asnumpy()
    net(nd.ones((2, 64, 16, 16))).wait_to_read()  # a prediction leaves the weight in such a layout
    give_back(net.weight.data())
    np.testing.assert_array_equal(net.weight.data().asnumpy(), before)
    rows = nd.ones((2000, 100)).tostype("row_sparse")
    give_back(rows)
    assert (rows.asnumpy() == 1).all()


def test_gradients_of_several_contexts_are_released():
    contexts = [mx.cpu(0), mx.cpu(1)]
    net = gluon.nn.Dense(1000, in_units=1000)
    net.initialize(ctx=contexts)
    with autograd.record():
        losses = [net(nd.ones((2, 1000), ctx=context)) for context in contexts]
    autograd.backward(losses)
    for gradient in net.weight.list_grad():
        give_back(gradient)
    sums = [float(gradient.abs().sum().asscalar()) for gradient in net.weight.list_grad()]
    assert max(sums) <= 2 * 2 * 1024  # each element was 2


@pytest.mark.parametrize("switches", [{}, {"hybridize": "static"}, {"devices": "cpu:0-1"},
                                      {"clip_norm": 0.1}])  # fmt: skip
def test_training_computes_the_same(switches):
    losses = []
    for gradients in ("kept", "released"):
        seen = []

        def write(event, seen=seen, **figures):
            if event == "epoch":
                seen.append(figures["train_loss"])

        recipe = load("segmentation", network="tiny", size=48, limit=12)
        plan = Plan(epochs=3, momentum=0.9, gradients=gradients, **switches)
        fit.fit(recipe, plan, write, evaluate=False)
        losses.append(seen)
    assert losses[0] == losses[1]
    assert len(set(losses[0])) == 3


@pytest.mark.parametrize(
    ("switches", "says"),
    [
        ({"devices": "gpu:0"}, "gradients are on devices='gpu:0'"),
        ({"grad_accumulation": 2}, "with grad_accumulation=2"),
    ],
)
def test_what_would_do_nothing_is_refused(switches, says):
    with pytest.raises(PlanError, match=says):
        Plan(gradients="released", **switches)
