"""The kernels given a batch without samples, which MXNet has with NumPy's shapes only."""

import mxnet as mx
import numpy as np
import pytest
from mxnet import autograd, nd

from mxopt import kernels
from mxopt.kernels import operators

if not kernels.available():
    pytest.skip("no compiler for mxopt's kernels", allow_module_level=True)

NONE = nd.ones(operators.DRAWS)


def block(x, *parameters):
    return operators.inverted_residual(nd, x, *parameters, residual=1)


def plain_block(x, *parameters):
    return operators.inverted_residual(nd, x, *parameters, stride=2, expands=0)


def norm(x, gamma, beta):
    return operators.residual_norm(nd, x, x, gamma, beta, NONE, dropout=0.1)


def self_attention(words, lengths):
    return operators.self_attention(nd, words, lengths, NONE, heads=2)


def attention(query, memory, lengths):
    return operators.attention(nd, query, memory, lengths, lengths, NONE, heads=2)


def dense(x, weight, bias):
    return operators.dense(nd, x, weight, bias)


def cross_entropy(x, weight, bias):
    return operators.cross_entropy(nd, x, weight, nd.ones(x.shape[:-1]), bias)


def pooled_convolution(x, weight, bias):
    return operators.pooled_convolution(nd, x, weight, bias)


def batch_norm(x, gamma, beta, other):
    running = nd.ones(4), nd.ones(4)
    return operators.batch_norm(nd, x, gamma, beta, *running, 2 * NONE, other)


def pointwise(x, weight):
    return operators.pointwise(nd, x, weight)


def winograd(x, weight):
    return operators.winograd(nd, x, weight, dilation=2)


def seen_taps(x, *weights):
    return operators.seen_taps(nd, x, *weights, dilations=(1, 4))[1]


# Operator, shapes of its inputs, shape of its output.
CASES = [
    (block, [(0, 4, 5, 6), (8, 4, 1, 1), (8,), (8, 1, 3, 3), (8,), (4, 8, 1, 1), (4,)],
     (0, 4, 5, 6)),
    (block, [(2, 4, 0, 6), (8, 4, 1, 1), (8,), (8, 1, 3, 3), (8,), (4, 8, 1, 1), (4,)],
     (2, 4, 0, 6)),
    (block, [(2, 4, 5, 0), (8, 4, 1, 1), (8,), (8, 1, 3, 3), (8,), (4, 8, 1, 1), (4,)],
     (2, 4, 5, 0)),
    (plain_block, [(0, 4, 5, 6), (4, 1, 3, 3), (4,), (3, 4, 1, 1), (3,)], (0, 3, 3, 3)),
    (plain_block, [(2, 4, 0, 6), (4, 1, 3, 3), (4,), (3, 4, 1, 1), (3,)], (2, 3, 0, 3)),
    (batch_norm, [(0, 4, 5, 6), (4,), (4,), (0, 4, 5, 6)], (0, 4, 5, 6)),
    (batch_norm, [(2, 4, 0, 6), (4,), (4,), (2, 4, 0, 6)], (2, 4, 0, 6)),
    (winograd, [(0, 4, 5, 6), (3, 4, 3, 3)], (0, 3, 5, 6)),
    (winograd, [(2, 4, 0, 6), (3, 4, 3, 3)], (2, 3, 0, 6)),
    (winograd, [(2, 4, 5, 0), (3, 4, 3, 3)], (2, 3, 5, 0)),
    (seen_taps, [(0, 4, 5, 6), (2, 4, 1, 1), (3, 4, 3, 3)], (0, 3, 5, 6)),
    (pointwise, [(0, 4, 5, 6), (3, 4, 1, 1)], (0, 3, 5, 6)),
    (pointwise, [(2, 4, 0, 6), (3, 4, 1, 1)], (2, 3, 0, 6)),
    (pooled_convolution, [(0, 4, 5, 6), (3, 4, 3, 3), (3,)], (0, 3, 2, 3)),
    (pooled_convolution, [(2, 4, 1, 6), (3, 4, 3, 3), (3,)], (2, 3, 0, 3)),
    (dense, [(0, 7, 33), (20, 33), (20,)], (0, 7, 20)),
    (cross_entropy, [(0, 7, 33), (300, 33), (300,)], (0, 7)),
    (norm, [(0, 7, 32), (32,), (32,)], (0, 7, 32)),
    (self_attention, [(0, 7, 96), (0,)], (0, 7, 32)),
    (attention, [(0, 7, 32), (0, 5, 64), (0,)], (0, 7, 32)),
]  # fmt: skip


@pytest.mark.parametrize(("compute", "shapes", "output"), CASES)
def test_no_samples_give_no_output_and_gradients_of_zero(compute, shapes, output):
    with mx.util.np_shape(True):
        arrays = [nd.ones(shape) for shape in shapes]
        for array in arrays:
            array.attach_grad()
            array.grad[:] = 7
        with autograd.record():
            y = compute(*arrays)
        y.backward()
        assert y.shape == output
        for array in arrays[1:]:
            np.testing.assert_array_equal(array.grad.asnumpy(), np.zeros(array.shape))


def test_without_inputs_a_layer_gives_its_bias_and_a_convolution_the_gradient_of_its_bias():
    with mx.util.np_shape(True):
        x, weight, bias = nd.ones((5, 0)), nd.ones((3, 0)), nd.array([1, 2, 3])
        images, filters = nd.ones((2, 0, 4, 4)), nd.ones((3, 0, 3, 3))
        bias.attach_grad()
        with autograd.record():
            y = dense(x, weight, bias)
        y.backward()
        np.testing.assert_array_equal(y.asnumpy(), np.tile([1, 2, 3], (5, 1)))
        np.testing.assert_array_equal(bias.grad.asnumpy(), [5, 5, 5])
        with autograd.record():
            y = pooled_convolution(images, filters, bias)
        y.backward()
        np.testing.assert_array_equal(y.asnumpy()[0, :, 0, 0], [1, 2, 3])
        np.testing.assert_array_equal(bias.grad.asnumpy(), [8, 8, 8])


def test_running_statistics_stay_as_they_are_without_samples():
    with mx.util.np_shape(True):
        x, ones = nd.ones((0, 4, 5, 6)), nd.ones(4)
        mean, variance = nd.array([1, 2, 3, 4]), nd.array([5, 6, 7, 8])
        operators.batch_norm(nd, x, ones, ones, mean, variance, 2 * NONE)
        np.testing.assert_array_equal(mean.asnumpy(), [1, 2, 3, 4])
        np.testing.assert_array_equal(variance.asnumpy(), [5, 6, 7, 8])


def test_no_words_have_no_positions():
    with mx.util.np_shape(True):
        assert operators.positions(nd, nd.ones((0, 4)), nd.ones((0,)), 4).shape == (0, 4)
