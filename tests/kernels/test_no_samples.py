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
    (plain_block, [(0, 4, 5, 6), (4, 1, 3, 3), (4,), (3, 4, 1, 1), (3,)], (0, 3, 3, 3)),
    (batch_norm, [(0, 4, 5, 6), (4,), (4,), (0, 4, 5, 6)], (0, 4, 5, 6)),
    (batch_norm, [(2, 4, 0, 6), (4,), (4,), (2, 4, 0, 6)], (2, 4, 0, 6)),
    (winograd, [(0, 4, 5, 6), (3, 4, 3, 3)], (0, 3, 5, 6)),
    (winograd, [(2, 4, 0, 6), (3, 4, 3, 3)], (2, 3, 0, 6)),
    (winograd, [(2, 4, 5, 0), (3, 4, 3, 3)], (2, 3, 5, 0)),
    (seen_taps, [(0, 4, 5, 6), (2, 4, 1, 1), (3, 4, 3, 3)], (0, 3, 5, 6)),
    (pooled_convolution, [(0, 4, 5, 6), (3, 4, 3, 3), (3,)], (0, 3, 2, 3)),
    (pooled_convolution, [(2, 4, 1, 6), (3, 4, 3, 3), (3,)], (2, 3, 0, 3)),
    (dense, [(0, 7, 33), (20, 33), (20,)], (0, 7, 20)),
    (cross_entropy, [(0, 7, 33), (300, 33), (300,)], (0, 7)),
    (norm, [(0, 7, 32), (32,), (32,)], (0, 7, 32)),
    (self_attention, [(0, 7, 96), (0,)], (0, 7, 32)),
    (attention, [(0, 7, 32), (0, 5, 64), (0,)], (0, 7, 32)),
]  # fmt: skip
if kernels.multiplies_by_tiles():
    CASES.append((pointwise, [(0, 4, 5, 6), (3, 4, 1, 1)], (0, 3, 5, 6)))
    CASES.append((pointwise, [(2, 4, 0, 6), (3, 4, 1, 1)], (2, 3, 0, 6)))


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


def test_no_words_have_no_positions():
    with mx.util.np_shape(True):
        assert operators.positions(nd, nd.ones((0, 4)), nd.ones((0,)), 4).shape == (0, 4)
