"""The kernel of 1 x 1 convolutions: outputs and gradients beside MXNet's and beside float64."""

import mxnet as mx
import numpy as np
import pytest
from mxnet import autograd, nd

from mxopt import kernels

if not kernels.available():
    pytest.skip("no compiler for mxopt's kernels", allow_module_level=True)


def drawn(*shape, seed=0):
    values = np.random.RandomState(seed).randn(*shape)
    return nd.array(values / max(1, np.prod(shape[1:])) ** 0.5 if shape[2:] == (1, 1) else values)


def plain(x, weight):
    return nd.Convolution(x, weight, kernel=(1, 1), num_filter=weight.shape[0], no_bias=True)


def computed(compute, x, weight, head):
    x, weight = x.copy(), weight.copy()
    x.attach_grad()
    weight.attach_grad()
    with autograd.record():
        y = compute(x, weight)
    y.backward(head)
    return [each.asnumpy() for each in (y, x.grad, weight.grad)]


@pytest.mark.parametrize(
    ("images", "channels", "filters", "rows", "columns"),
    [
        (2, 5, 7, 9, 6),
        (1, 16, 16, 1, 1),
        (3, 33, 20, 13, 31),
        (1, 600, 530, 5, 4),  # more channels and filters than are computed at once,
        (2, 40, 30, 30, 41),  # and more pixels
        (2, 20, 70, 6, 5),  # more filters than channels: each thread has some of them
    ],
)
def test_it_computes_what_mxnets_operator_does(images, channels, filters, rows, columns):
    x, weight = drawn(images, channels, rows, columns), drawn(filters, channels, 1, 1, seed=1)
    head = drawn(images, filters, rows, columns, seed=2)
    expected = computed(plain, x, weight, head)
    for ours, theirs in zip(computed(nd.mxopt_pointwise, x, weight, head), expected):
        assert np.abs(ours - theirs).max() <= 1e-5 * max(1, np.abs(theirs).max())


def test_it_is_about_as_exact_as_float32():
    x, weight = drawn(2, 512, 17, 17), drawn(96, 512, 1, 1, seed=1)
    head = drawn(2, 96, 17, 17, seed=2)
    a, w, h = (each.asnumpy().astype("float64") for each in (x, weight, head))
    exact = [np.einsum("fc,ncyx->nfyx", w[:, :, 0, 0], a),
             np.einsum("fc,nfyx->ncyx", w[:, :, 0, 0], h),
             np.einsum("nfyx,ncyx->fc", h, a)[:, :, None, None]]  # fmt: skip
    ours, theirs = (
        [np.sqrt(np.mean((found - true) ** 2)) for found, true in zip(each, exact)]
        for each in (computed(f, x, weight, head) for f in (nd.mxopt_pointwise, plain))
    )
    # Without tiles, MXNet's error at sizes of a ResNet is the same; at this one it is smaller.
    most = 1.25 if kernels.multiplies_by_tiles() else 3
    for own, other in zip(ours, theirs):
        assert 0 < own < most * other


def test_what_it_does_not_take_is_refused():
    x, weight = drawn(1, 2, 4, 4), drawn(3, 2, 1, 1)
    for bad in (x.astype("float64"), x[0], nd.ones((1, 3, 4, 4))):
        with pytest.raises(mx.MXNetError):
            nd.mxopt_pointwise(bad, weight).wait_to_read()
    with pytest.raises(mx.MXNetError):
        nd.mxopt_pointwise(x, nd.ones((3, 2, 3, 3))).wait_to_read()
