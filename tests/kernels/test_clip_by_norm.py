"""Gradients are clipped by one operator as in float64."""

import mxnet as mx
import numpy as np
import pytest
from mxnet import autograd, gluon, nd

from mxopt import kernels

pytestmark = pytest.mark.skipif(not kernels.available(), reason="no compiler for mxopt's kernels")

# A thread's block is 16,384 elements.
SHAPES = [(1,), (7, 5), (16383,), (2, 8192), (16385,), (3, 5, 4099)]


def _gradients() -> list[np.ndarray]:
    random = np.random.RandomState(0)
    return [random.randn(*shape).astype("float32") for shape in SHAPES]


def _norm(gradients) -> float:
    return np.sqrt(sum((gradient.astype("float64") ** 2).sum() for gradient in gradients))


@pytest.mark.parametrize("share", [0.1, 1.5])
@pytest.mark.parametrize("in_place", [True, False])
def test_odd_sizes_and_many_blocks(share, in_place):
    given = _gradients()
    arrays = [nd.array(gradient) for gradient in given]
    to = arrays if in_place else [nd.zeros(shape) for shape in SHAPES]
    bound = share * _norm(given)
    nd.mxopt_clip_by_norm(*arrays, out=to, arrays=len(arrays), max_norm=bound)
    for before, after, kept in zip(given, to, arrays):
        np.testing.assert_allclose(after.asnumpy(), before * min(1, share), rtol=1e-6)
        if not in_place:
            np.testing.assert_array_equal(kept.asnumpy(), before)


def test_an_array_without_elements_changes_nothing():
    with mx.util.np_shape(True):
        arrays = [nd.array([3.0]), nd.zeros((0, 2)), nd.array([4.0])]
        nd.mxopt_clip_by_norm(*arrays, out=arrays, arrays=3, max_norm=2.5)
        assert [array.asnumpy().tolist() for array in arrays] == [[1.5], [], [2.0]]


def test_gradients_that_onednn_has_computed():
    images, found = nd.random.uniform(shape=(2, 64, 16, 16)), []
    for operator in (False, True):
        mx.random.seed(1)
        net = gluon.nn.HybridSequential()
        net.add(gluon.nn.Conv2D(64, 3, in_channels=64), gluon.nn.Dense(128, in_units=64 * 14 * 14))
        net.initialize(mx.init.Uniform(0.1))
        net.hybridize(static_alloc=True, static_shape=True)
        net(images)
        with autograd.record():
            loss = (net(images) ** 2).mean()
        loss.backward()
        gradients = [parameter.grad() for parameter in net.collect_params().values()]
        if operator:
            nd.mxopt_clip_by_norm(*gradients, out=gradients, arrays=4, max_norm=0.5)
        found.append([gradient.asnumpy() for gradient in gradients])
    whole, clipped = found
    assert _norm(whole) > 0.6
    for before, after in zip(whole, clipped):
        np.testing.assert_allclose(after, before * 0.5 / _norm(whole), rtol=1e-4, atol=1e-9)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"arrays": 0}, "at least one gradient"),
        ({"max_norm": -1.0}, "at least 0"),
        ({"max_norm": float("nan")}, "max_norm=nan must be a number"),
        ({"max_norm": "short"}, "max_norm=short must be a number"),
    ],
)
def test_wrong_attributes_are_refused(given, words):
    gradient = nd.ones((4,))
    with pytest.raises(mx.MXNetError, match=words):
        nd.mxopt_clip_by_norm(gradient, out=[gradient], **{"arrays": 1, "max_norm": 1.0, **given})
    with pytest.raises(mx.MXNetError, match="at least 0"):
        nd.mxopt_clip_by_norm(gradient, out=[gradient], arrays=1)
