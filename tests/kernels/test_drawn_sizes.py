"""The kernels at sizes that Hypothesis draws: outputs and gradients beside MXNet's operators.

MXNet computes them in float64: its own sums in float32 are less exact than those of some kernels.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mxnet import autograd, nd

from mxopt import kernels
from mxopt.kernels import operators

if not kernels.available():
    pytest.skip("no compiler for mxopt's kernels", allow_module_level=True)

NONE = nd.ones(operators.DRAWS)  # draws of a network that predicts
some = settings(max_examples=40)
few, small, sizes, channels = (st.integers(1, n) for n in (3, 9, 40, 130))
seeds, either = st.integers(0, 2**31), st.sampled_from([0, 1])


def normal(seed, *shapes):
    """Random arrays, those of filters and weights divided by the root of what is summed up."""
    random = np.random.RandomState(seed)
    scales = [1, *(np.prod(shape[1:]) ** -0.5 for shape in shapes[1:])]
    return [nd.array(random.randn(*shape) * scale) for shape, scale in zip(shapes, scales)]


def agree(kernel, operator, arrays, seed, tolerance=2e-5):
    """Assert that outputs and gradients are those of the operator."""
    found = []
    for compute, dtype in ((operator, "float64"), (kernel, "float32")):
        own = [array.astype(dtype) for array in arrays]
        for array in own:
            array.attach_grad()
        with autograd.record():
            outputs = compute(*own)
        outputs = outputs if isinstance(outputs, list) else [outputs]
        random = np.random.RandomState(seed)
        autograd.backward(
            outputs,
            [nd.array(random.randn(*y.shape).astype("float32"), dtype=dtype) for y in outputs],
        )
        found.append([each.asnumpy() for each in (*outputs, *(array.grad for array in own))])
    assert len(found[0]) == len(found[1])
    for expected, values in zip(*found):
        assert values.shape == expected.shape
        assert np.abs(values - expected).max() <= tolerance * max(1, np.abs(expected).max())


def convolution(x, weight, bias=None, **how):
    """MXNet's, padded so that all sides stay the same at stride 1."""
    side, dilation = weight.shape[2], how.pop("dilation", 1)
    how = {"dilate": (dilation,) * 2, "pad": (dilation * (side // 2),) * 2, **how}
    arrays = [x, weight] if bias is None else [x, weight, bias]
    return nd.Convolution(*arrays, kernel=(side, side), num_filter=weight.shape[0],
                          no_bias=bias is None, **how)  # fmt: skip


@some
@given(channels, channels, channels, st.booleans(), seeds)
def test_dense(rows, inputs, units, biased, seed):
    arrays = normal(seed, (rows, inputs), (units, inputs), (units,))[: 2 + biased]
    agree(
        lambda *a: operators.dense(nd, *a),
        lambda *a: nd.FullyConnected(*a, num_hidden=units, no_bias=not biased, flatten=False),
        arrays, seed,
    )  # fmt: skip


@some
@given(st.integers(1, 300), small, st.integers(2, 600), st.sampled_from([0.0, 0.1]), seeds)
def test_cross_entropy(rows, units, classes, smoothing, seed):
    labels = nd.array(np.random.RandomState(seed).randint(0, classes, rows))

    def expected(x, weight):
        scores = nd.FullyConnected(x, weight, num_hidden=classes, no_bias=True)
        logs = nd.log_softmax(scores)
        return -(1 - smoothing) * nd.pick(logs, labels) - smoothing * nd.mean(logs, axis=1)

    agree(
        lambda x, weight: operators.cross_entropy(nd, x, weight, labels, smoothing=smoothing),
        expected, normal(seed, (rows, units), (classes, units)), seed,
    )  # fmt: skip


@some
@given(channels, st.integers(1, 20), seeds)
def test_residual_norm(rows, units, seed):
    shape = (rows, 16 * units)
    agree(
        lambda *a: operators.residual_norm(nd, *a, NONE),
        lambda x, change, *scales: nd.LayerNorm(x + change, *scales),
        [
            *normal(seed, shape),
            *normal(seed + 1, shape),
            *normal(seed, (1,), *[(16 * units,)] * 2)[1:],
        ],
        seed,
    )


def attention(query, memory, hidden, heads):
    """The attention of samples to their memory, by MXNet's operators."""

    def split(x):
        x = x.reshape((0, 0, heads, -1)).transpose((0, 2, 1, 3))
        return x.reshape((-3, 0, 0))

    units = query.shape[2]
    keys, values = (split(memory[:, :, n * units : (n + 1) * units]) for n in range(2))
    scores = nd.batch_dot(split(query), keys, transpose_b=True) * (units // heads) ** -0.5
    weights = nd.softmax(scores + nd.array(hidden.repeat(heads, axis=0) * -1e9, dtype=query.dtype))
    read = nd.batch_dot(weights, values).reshape((-4, -1, heads, 0, 0))
    return read.transpose((0, 2, 1, 3)).reshape((0, 0, -3))


@some
@given(st.data(), few, sizes, sizes, few, sizes, either, st.booleans(), seeds)
def test_attention(data, samples, queries, keys, heads, width, causal, packed, seed):
    """Of samples with padding, and of the same in one row without any."""
    keys = queries if causal else keys
    several = st.lists(st.integers(1, queries), min_size=samples, max_size=samples)
    asked = data.draw(several)
    known = asked if causal else [data.draw(st.integers(1, keys)) for _ in asked]
    steps, units = np.arange(keys), heads * width
    hidden = np.broadcast_to(steps >= np.array(known)[:, None, None], (samples, queries, keys))
    if causal:
        hidden = hidden | (steps > np.arange(queries)[:, None])

    def real(x, lengths):
        return nd.concat(*(row[:n] for row, n in zip(x, lengths)), dim=0).expand_dims(0)

    def expected(query, memory):
        return real(attention(query, memory, hidden, heads), asked)

    def found(query, memory):
        one_row = packed and samples > 1
        if one_row:
            query, memory = real(query, asked), real(memory, known)
        read = operators.attention(
            nd, query, memory, nd.array(asked), nd.array(known), NONE, heads=heads, causal=causal
        )
        return read if one_row else real(read, asked)

    arrays = [
        *normal(seed, (samples, queries, units)),
        *normal(seed + 1, (samples, keys, 2 * units)),
    ]
    agree(found, expected, arrays, seed)


@some
@given(few, channels, sizes, sizes, sizes, st.integers(1, 14), seeds)
def test_winograd(images, inputs, filters, height, width, dilation, seed):
    agree(
        lambda *a: operators.winograd(nd, *a, dilation=dilation),
        lambda *a: convolution(*a, dilation=dilation),
        normal(seed, (images, inputs, height, width), (filters, inputs, 3, 3)), seed,
    )  # fmt: skip


# Filters, their side, and a dilation.
branch = st.tuples(sizes, st.sampled_from([1, 3]), sizes)


@some
@given(few, sizes, st.lists(branch, min_size=1, max_size=3), sizes, sizes, st.booleans(), seeds)
def test_seen_taps(images, inputs, branches, height, width, mean, seed):
    dilations = [dilation if side == 3 else 1 for _, side, dilation in branches]
    weights = [(filters, inputs, side, side) for filters, side, _ in branches]

    def expected(x, *weights):
        found = [convolution(x, w, dilation=d) for w, d in zip(weights, dilations)]
        return [*found, nd.mean(x, axis=(2, 3), keepdims=True)] if mean else found

    agree(
        lambda *a: operators.seen_taps(nd, *a, dilations=dilations, mean=mean),
        expected, normal(seed, (images, inputs, height, width), *weights), seed,
    )  # fmt: skip


@some
@given(few, channels, channels, sizes, sizes, seeds)
def test_pointwise(images, inputs, filters, height, width, seed):
    agree(
        lambda *a: operators.pointwise(nd, *a), convolution,
        normal(seed, (images, inputs, height, width), (filters, inputs, 1, 1)), seed,
    )  # fmt: skip


@some
@given(few, sizes, sizes, sizes, st.sampled_from([0, 1, 2]), seeds)
def test_batch_norm(images, channels, height, width, added, seed):
    shape, random = (images, channels, height, width), np.random.RandomState(seed)
    means, spreads = [nd.zeros(channels)] * 2, [nd.ones(channels)] * 2
    trains = nd.array([0, 2] * (operators.DRAWS // 2))
    scales = [nd.array(random.uniform(0.5, 2, channels)) for _ in range(4)]
    arrays = [*normal(seed, shape), *normal(seed + 1, shape), *scales]

    def norm(x, gamma, beta):
        statistics = nd.zeros_like(gamma), nd.ones_like(gamma)
        return nd.BatchNorm(x, gamma, beta, *statistics, fix_gamma=False, eps=1e-2)

    def expected(x, other, gamma, beta, *second):
        y = norm(x, gamma, beta)
        return y + (norm(other, *second) if added == 2 else other) if added else y

    def found(x, other, gamma, beta, *second):
        both = [each.copy() for each in (*means, *spreads)]
        return operators.batch_norm(
            nd, x, gamma, beta, both[0], both[2], trains, other if added else None,
            (*second, both[1], both[3]) if added == 2 else (), relu=0, epsilon=1e-2,
        )  # fmt: skip

    agree(found, expected, arrays, seed)


def halves(seed, *shapes):
    """Arrays of small whole numbers, whose sums are exact; biases lie between two of them.

    So no sum is where ReLU6 has a corner.
    """
    random = np.random.RandomState(seed)
    return [nd.array(random.randint(-2, 3, shape) + 0.5 * (len(shape) == 1)) for shape in shapes]


@some
@given(few, sizes, channels, sizes, sizes, sizes, st.sampled_from([(1, 1), (1, 2), (1, 5), (2, 1)]),
       either, either, either, seeds)  # fmt: skip
def test_inverted_residual(
    images, inputs, width, outputs, height, across, how, six, expands, residual, seed
):
    (stride, dilation), width = how, width if expands else inputs
    residual = residual if stride == 1 else 0
    outputs = inputs if residual else outputs
    first = [(width, inputs, 1, 1), (width,)] if expands else []
    shapes = [*first, (width, 1, 3, 3), (width,), (outputs, width, 1, 1), (outputs,)]
    arrays = halves(seed, (images, inputs, height, across), *shapes)

    def active(y):
        return nd.clip(y, 0, 6) if six else nd.relu(y)

    def expected(x, *parameters):
        y, rest = x, parameters
        if expands:
            y, rest = active(convolution(x, *rest[:2])), rest[2:]
        y = convolution(y, *rest[:2], dilation=dilation, stride=(stride,) * 2, num_group=width)
        y = convolution(active(y), *rest[2:])
        return x + y if residual else y

    agree(
        lambda *a: operators.inverted_residual(
            nd, *a, stride=stride, dilation=dilation, six=six, expands=expands, residual=residual
        ),
        expected, arrays, seed,
    )  # fmt: skip


@some
@given(few, sizes, sizes, st.integers(2, 40), st.integers(2, 40), seeds)
def test_pooled_convolution(images, inputs, filters, height, width, seed):
    shapes = (images, inputs, height, width), (filters, inputs, 3, 3), (filters,)
    agree(
        lambda *a: operators.pooled_convolution(nd, *a),
        lambda *a: nd.Pooling(
            nd.relu(convolution(*a)), kernel=(2, 2), stride=(2, 2), pool_type="max"
        ),
        halves(seed, *shapes), seed,
    )  # fmt: skip
