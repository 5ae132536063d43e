"""The kernels of a Transformer's layers beside MXNet's operators, with and without dropout."""

import subprocess
import sys

import mxnet as mx
import numpy as np
import pytest
from mxnet import autograd, nd

from mxopt import kernels
from mxopt.kernels import operators

if not kernels.available():
    pytest.skip("no compiler for mxopt's kernels", allow_module_level=True)

NONE = nd.ones(64)  # draws of a network that predicts


def outputs_and_gradients(compute, arrays):
    for array in arrays:
        array.attach_grad()
    with autograd.record():
        y = compute(*arrays)
    y.backward(nd.array(np.random.RandomState(1).randn(*y.shape)))
    return [y.asnumpy(), *(array.grad.asnumpy() for array in arrays)]


def compare(expected, found, tolerance=1e-5):
    for ours, theirs in zip(expected, found):
        assert np.abs(ours - theirs).max() <= tolerance * max(1.0, np.abs(ours).max())


def drawn(*shape, seed=0):
    return nd.array(np.random.RandomState(seed).randn(*shape))


@pytest.mark.parametrize("shape", [(3, 5, 32), (7, 16), (1, 1, 256)])
def test_a_normalised_sum(shape):
    arrays = [drawn(*shape), drawn(*shape, seed=1), drawn(shape[-1], seed=2), drawn(shape[-1])]
    expected = outputs_and_gradients(
        lambda x, change, gamma, beta: nd.LayerNorm(x + change, gamma, beta, eps=1e-5), arrays
    )
    found = outputs_and_gradients(lambda *a: nd.mxopt_residual_norm(*a, NONE, dropout=0.3), arrays)
    compare(expected, found)


def attention(query, key, value, lengths, heads, causal):
    """The same with MXNet's operators."""
    samples, queries, units = query.shape
    keys, width = key.shape[1], units // heads

    def split(x):
        x = x.reshape((samples, -1, heads, width)).transpose((0, 2, 1, 3))
        return x.reshape((-3, 0, 0))

    scores = nd.batch_dot(split(query), split(key), transpose_b=True) / width**0.5
    steps = np.arange(keys)[None, None]
    hidden = steps > np.arange(queries)[None, :, None] if causal else (
        steps >= lengths.asnumpy()[:, None, None]
    )  # fmt: skip
    hidden = np.broadcast_to(hidden, (samples, queries, keys)).repeat(heads, axis=0)
    weights = nd.softmax(scores + nd.array(hidden * -1e9), axis=-1)
    out = nd.batch_dot(weights, split(value)).reshape((samples, heads, queries, width))
    return out.transpose((0, 2, 1, 3)).reshape((0, 0, -3))


@pytest.mark.parametrize(
    ("samples", "queries", "keys", "units", "heads", "causal"),
    [(2, 5, 5, 64, 4, 1), (3, 7, 19, 64, 2, 0), (1, 1, 1, 16, 1, 0), (2, 33, 33, 256, 4, 1),
     (4, 18, 17, 48, 4, 0)],
)  # fmt: skip
def test_attention(samples, queries, keys, units, heads, causal):
    arrays = [drawn(samples, queries, units), drawn(samples, keys, units, seed=1),
              drawn(samples, keys, units, seed=2)]  # fmt: skip
    lengths = nd.array(np.random.RandomState(3).randint(1, keys + 1, samples))
    expected = outputs_and_gradients(
        lambda q, k, v: attention(q, k, v, lengths, heads, causal), arrays
    )
    settings = {"heads": heads, "causal": causal, "dropout": 0.1}
    found = outputs_and_gradients(
        lambda q, k, v: operators.attention(
            nd, q, nd.concat(k, v, dim=2), lengths, lengths, NONE, **settings
        ),
        arrays,
    )
    compare(expected, found)
    if queries == keys:
        found = outputs_and_gradients(
            lambda q, k, v: operators.self_attention(
                nd, nd.concat(q, k, v, dim=2), lengths, NONE, **settings
            ),
            arrays,
        )
        compare(expected, found)


def in_one_row(array, lengths):
    """Return the first words of each sample, (1, words, units)."""
    rows = [row[: int(n)] for row, n in zip(array, lengths.asnumpy())]
    return nd.concat(*rows, dim=0).expand_dims(0)


def arranged(packed, queries, keys, operator, rest=0):
    """Return ``operator`` of padded arrays as a function, which may put their samples in a row.

    ``rest`` words of padding are then behind the last sample.
    """

    def compute(q, *memory):
        arrays = [q, nd.concat(*memory, dim=2)] if memory else [q]
        if packed:
            arrays = [in_one_row(*pair) for pair in zip(arrays, (queries, keys))]
            padding = [nd.ones((1, rest, array.shape[2])) for array in arrays] if rest else []
            arrays = [nd.concat(*pair, dim=1) for pair in zip(arrays, padding)] or arrays
            return operator(*arrays)[:, : int(queries.sum().asscalar())]
        return in_one_row(operator(*arrays), queries)

    return compute


@pytest.mark.parametrize("rest", [0, 5])
@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_attention_of_samples_in_one_row(causal, dropout, rest):
    # Where all samples have the full length, even the dropped elements are the same.
    short, full = ([3, 9, 1, 6], [2, 1, 8, 5]), ([9] * 4, [8] * 4)
    given = draws() if dropout else NONE
    queries, keys = map(nd.array, full if dropout else short)
    settings = {"heads": 4, "dropout": dropout}
    arrays = [drawn(4, 9, 64), drawn(4, 8, 64, seed=1), drawn(4, 8, 64, seed=2)]

    def across(q, memory):
        return operators.attention(nd, q, memory, queries, keys, given, **settings)

    def own(words):
        return operators.self_attention(nd, words, queries, given, causal=causal, **settings)

    for operator, inputs in ((across, arrays), (own, [drawn(4, 9, 192, seed=3)])):
        expected, found = (
            outputs_and_gradients(arranged(packed, queries, keys, operator, rest), inputs)
            for packed in (False, True)
        )
        compare(expected, found)


@pytest.mark.parametrize("own", [True, False])
def test_padding_behind_the_last_sample_has_zeros(own):
    lengths, words = nd.array([3, 2]), 5
    inputs = [drawn(1, 9, 192)] if own else [drawn(1, 8, 64), drawn(1, 9, 128)]
    operator = operators.self_attention if own else operators.attention
    for array in inputs:
        array.attach_grad()
        array.grad[:] = np.nan  # what memory may hold before an operator writes to it
    with autograd.record():
        read = operator(nd, *inputs, *([lengths] if own else [lengths] * 2), NONE, heads=4)
    read.backward(nd.ones_like(read))
    for rows in (read, *(array.grad for array in inputs)):
        assert np.isfinite(rows.asnumpy()).all()
        assert rows[:, :words].abs().sum().asscalar() > 0
        assert (rows[:, words:] == 0).asnumpy().all()


@pytest.mark.parametrize("packed", [False, True])
def test_every_head_of_every_sample_drops_others(packed):
    words = nd.tile(drawn(1, 9, 16), (3, 1, 12))  # the same for all samples and heads
    if packed:
        words = words.reshape((1, 27, 192))
    mx.random.seed(0)
    lengths = nd.array([9, 9, 9])
    read = operators.self_attention(nd, words, lengths, draws(), heads=4, dropout=0.5)
    heads = read.reshape((3, 9, 4, 16)).transpose((0, 2, 1, 3)).reshape((12, -1)).asnumpy()
    assert len(np.unique(heads, axis=0)) == 12


# Errors of operators are raised when someone waits, possibly for something else: in another process
# they cannot be raised in a later test.
REFUSED = """
import mxopt
from mxnet import MXNetError, nd
from mxopt import kernels
from mxopt.kernels import operators
kernels.load()
row, draws = nd.ones((1, 7, 48)), nd.ones(64)
for compute in (
    lambda: operators.self_attention(nd, row, nd.array([3, 5]), draws),
    lambda: operators.self_attention(nd, row, nd.array([-2, 9]), draws),
    lambda: operators.positions(nd, nd.ones((1, 7)), nd.array([2, 5]), 4),
    lambda: operators.positions(nd, nd.ones((1, 7)), nd.array([-1, 4]), 4),
):
    try:
        compute().wait_to_read()
        print("not refused")
    except MXNetError as error:
        print(str(error).replace("\\n", " "))
"""


def test_lengths_that_do_not_divide_the_row_are_refused():
    done = subprocess.run(
        [sys.executable, "-c", REFUSED], capture_output=True, text=True, check=True
    )
    together, negative, too_long, below_zero = done.stdout.splitlines()
    assert "the lengths of samples in one row must not add up to more" in together
    assert "none may be negative" in negative
    assert "a sentence of 5 words: it must have at least 0, at most the 4" in too_long
    assert "a sentence of -1 words" in below_zero


def test_a_sample_without_keys_reads_nothing():
    words = drawn(2, 3, 48)
    for length in (0, -5):
        read = operators.self_attention(nd, words, nd.array([length, 3]), NONE)
        assert not read[0].asnumpy().any()
        assert read[1].asnumpy().all()


def test_a_sample_that_overflowed_does_not_reach_the_next_one():
    lengths = nd.array([16, 9, 16, 9, 16, 9])
    values = np.random.RandomState(0).randn(1, 75, 48).astype("float32")
    values[0, :16] = np.inf
    projected = nd.array(values)
    (y, gradient) = outputs_and_gradients(
        lambda x: operators.self_attention(nd, x, lengths, NONE, heads=1, causal=0, dropout=0.1),
        [projected],
    )
    assert not np.isfinite(y[0, :16]).any()
    assert np.isfinite(y[0, 16:]).all()
    assert np.isfinite(gradient[0, 16:]).all()


def test_positions_of_words():
    lengths = nd.array([2, 4, 1])
    padded = operators.positions(nd, nd.ones((3, 5)), lengths, 4).asnumpy()
    assert padded.tolist() == [[0, 1, -1, -1, -1], [0, 1, 2, 3, -1], [0, -1, -1, -1, -1]]
    row = operators.positions(nd, nd.ones((1, 7)), lengths, 4).asnumpy()
    assert row.tolist() == [[0, 1, 0, 1, 2, 3, 0]]


def draws():
    with autograd.train_mode():
        return nd.Dropout(nd.ones(64), p=0.5)


def dropped(salt=0, seed=5):
    """What the kernel adds to zeros after dropout of 0.25, before it is normalised."""
    mx.random.seed(seed)
    ones, zeros = nd.ones((400, 256)), nd.zeros((400, 256))
    change = ones.copy()
    change.attach_grad()
    with autograd.record():
        y = nd.mxopt_residual_norm(zeros, change, nd.ones(256), nd.zeros(256), draws(),
                                   dropout=0.25, salt=salt, epsilon=1e-12)  # fmt: skip
    return y.asnumpy()


def test_dropout_depends_on_the_seed_the_salt_and_the_position():
    first = dropped()
    kept = first > 0
    assert abs(kept.mean() - 0.75) < 0.005
    assert abs(kept.mean(axis=0) - 0.75).max() < 0.1
    assert abs(np.corrcoef(kept[:-1].ravel(), kept[1:].ravel())[0, 1]) < 0.01
    assert abs(np.corrcoef(kept[:, :-1].ravel(), kept[:, 1:].ravel())[0, 1]) < 0.01
    np.testing.assert_array_equal(first, dropped())
    for other in (dropped(salt=1), dropped(seed=6)):
        assert abs(np.corrcoef(kept.ravel(), (other > 0).ravel())[0, 1]) < 0.01


def test_gradients_pass_where_nothing_was_dropped():
    mx.random.seed(0)
    given = draws()
    x, change, gamma, beta = drawn(6, 32), drawn(6, 32, seed=1), drawn(32, seed=2), drawn(32)

    def compute(x, change, gamma, beta):
        return nd.mxopt_residual_norm(x, change, gamma, beta, given, dropout=0.4)

    _, dx, dchange, *_ = outputs_and_gradients(compute, [x, change, gamma, beta])
    kept = dchange != 0
    assert 0.4 < kept.mean() < 0.8
    np.testing.assert_allclose(dchange[kept], dx[kept] / 0.6, rtol=1e-5)
    masked = nd.array(kept / 0.6)
    expected = outputs_and_gradients(
        lambda x, change, gamma, beta: nd.LayerNorm(x + change * masked, gamma, beta, eps=1e-5),
        [x, change, gamma, beta],
    )
    compare(expected, outputs_and_gradients(compute, [x, change, gamma, beta]))


def test_attention_with_dropout_beside_differences():
    mx.random.seed(0)
    given, lengths = draws(), nd.array([3, 5])
    arrays = [drawn(2, 4, 32), drawn(2, 5, 32, seed=1), drawn(2, 5, 32, seed=2)]

    def compute(q, k, v):
        memory = nd.concat(k, v, dim=2)
        return operators.attention(nd, q, memory, lengths, lengths, given, heads=2, dropout=0.3)

    _, *gradients = outputs_and_gradients(compute, arrays)
    head = np.random.RandomState(1).randn(2, 4, 32)

    def value():
        return float((compute(*arrays).asnumpy().astype("float64") * head).sum())

    for array, gradient in zip(arrays, gradients):
        kept, direction, step = array.asnumpy(), np.random.RandomState(4).randn(*array.shape), 1e-3
        array[:] = kept + step * direction
        above = value()
        array[:] = kept - step * direction
        below = value()
        array[:] = kept
        assert (above - below) / (2 * step) == pytest.approx(
            (gradient * direction).sum(), rel=0.01, abs=0.01
        )


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(mx.MXNetError):
        nd.mxopt_residual_norm(drawn(2, 17), drawn(2, 17), drawn(17), drawn(17), NONE)
    words, ones = drawn(2, 3, 32), nd.ones(2)
    for memory, lengths, heads in (
        (drawn(2, 3, 63), ones, 1),  # not twice the units
        (drawn(3, 3, 64), ones, 1),  # other samples
        (drawn(2, 3, 64), nd.ones(3), 1),
        (drawn(2, 3, 64), ones, 5),
    ):
        with pytest.raises(mx.MXNetError):
            operators.attention(nd, words, memory, lengths, lengths, NONE, heads=heads)
    with pytest.raises(mx.MXNetError):
        operators.attention(nd, words, drawn(2, 3, 64), nd.ones(3), ones, NONE)
    with pytest.raises(mx.MXNetError):
        operators.self_attention(nd, drawn(2, 3, 64), ones, NONE)  # not a multiple of three
