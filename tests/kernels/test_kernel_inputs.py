"""What the kernels refuse before they compute, and values that are no finite numbers."""

import mxnet as mx
import numpy as np
import pytest
from mxnet import autograd, nd

from mxopt import kernels
from mxopt.kernels import operators

if not kernels.available():
    pytest.skip("no compiler for mxopt's kernels", allow_module_level=True)

BLOCK = [(1, 16, 8, 8), (32, 16, 1, 1), (32,), (32, 1, 3, 3), (32,), (16, 32, 1, 1), (16,)]
NORM = [(2, 8, 4, 4), (8,), (8,), (8,), (8,), (operators.DRAWS,)]
ROWS = [(5, 32), (5, 32), (32,), (32,), (operators.DRAWS,)]
TAPS = [(2, 4, 5, 6), (3, 4, 3, 3)]
WORDS = [(2, 7, 96), (2,), (operators.DRAWS,)]


def other(shapes, place, shape):
    """Return the shapes with another one at this place."""
    return [*shapes[:place], shape, *shapes[place + 1 :]]


@pytest.mark.parametrize(
    ("name", "shapes", "settings", "says"),
    [
        *(("inverted_residual", other(BLOCK, place, shape), {}, "each followed by its biases")
          for place, shape in [(1, (32, 8, 1, 1)), (2, (16,)), (3, (16, 1, 3, 3)), (4, (1,)),
                               (6, (8,))]),
        ("inverted_residual", BLOCK, {"stride": 0}, "takes stride=1"),
        ("inverted_residual", BLOCK, {"stride": 3}, "takes stride=1"),
        ("inverted_residual", BLOCK, {"stride": 2, "dilation": 2}, "stride=2 without one"),
        ("inverted_residual", BLOCK, {"stride": 2, "residual": 1}, "adds its input"),
        ("inverted_residual", [*BLOCK[:5], (8, 32, 1, 1), (8,)], {"residual": 1},
         "as many channels"),
        *(("batch_norm", other(NORM, place, (1,)), {}, "takes images") for place in range(1, 6)),
        *(("batch_norm", [*NORM, NORM[0], *other([(8,)] * 4, place, (1,))], {"added": 2},
           "takes images") for place in range(4)),
        ("residual_norm", other(ROWS, 2, (16,)), {}, "as long as it"),
        ("residual_norm", other(ROWS, 3, (16,)), {}, "as long as it"),
        ("residual_norm", [(5, 24), (5, 24), (24,), (24,), ROWS[4]], {}, "multiple of 16"),
        ("attention", WORDS, {"own": 1, "heads": 0}, "multiple of the heads"),
        ("residual_norm", ROWS, {"dropout": 1}, "below 1"),
        ("attention", WORDS, {"own": 1, "heads": 4, "dropout": -0.1}, "at least 0"),
        ("seen_taps", TAPS, {}, "takes dilations"),
        *(("seen_taps", TAPS, {"dilations": text}, says)
          for text, says in [("1 x", "must be numbers"), ("2.9", "whole numbers from 1"),
                             ("0", "whole numbers from 1"), ("-1", "whole numbers from 1"),
                             ("1e30", "whole numbers from 1")]),
        ("seen_taps", TAPS, {"dilations": "1", "mean": 2}, "mean=0 or mean=1"),
        ("seen_taps", TAPS[:1], {"mean": 1}, "takes dilations"),
        ("inverted_residual", BLOCK, {"six": "yes"}, "six=yes must be a number"),
        ("inverted_residual", BLOCK, {"stride": "1.5"}, "stride=1.5 must be a whole number"),
        ("residual_norm", ROWS, {"epsilon": "1e-5x"}, "epsilon=1e-5x must be a number"),
    ],
)  # fmt: skip
def test_wrong_shapes_and_settings_are_refused(name, shapes, settings, says):
    arrays = [nd.ones(shape) for shape in shapes]
    with pytest.raises(mx.MXNetError, match=says):
        getattr(nd, f"mxopt_{name}")(*arrays, **settings).wait_to_read()


def test_a_message_has_nothing_of_those_before_it():
    def refused():
        with pytest.raises(mx.MXNetError) as caught:
            nd.mxopt_pointwise(nd.ones((1, 2, 3, 4)), nd.ones((1, 1, 1, 1)))
        return str(caught.value)

    assert refused() == refused()


def test_true_and_false_are_one_and_zero():
    arrays = [nd.random.normal(shape=shape) for shape in BLOCK]
    for truth, number in ((True, 1), (False, 0)):
        one = nd.mxopt_inverted_residual(*arrays, residual=truth)
        np.testing.assert_array_equal(
            one.asnumpy(), nd.mxopt_inverted_residual(*arrays, residual=number).asnumpy()
        )


@pytest.mark.parametrize("six", [0, 1])
def test_an_activation_does_not_hide_what_is_not_a_number(six):
    arrays = [nd.ones(shape) for shape in BLOCK]
    arrays[0][0, 3, 2, 2] = float("nan")
    found = np.isnan(operators.inverted_residual(nd, *arrays, six=six).asnumpy())
    assert found[0, :, 1:4, 1:4].all()
    assert found.sum() == 16 * 9


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("side", [7, 14, 15])
def test_what_was_not_a_number_in_one_call_is_not_in_the_next(stride, side):
    def gradients(side, value):
        arrays = [nd.random.normal(shape=shape) for shape in [(2, 16, side, side), *BLOCK[1:]]]
        arrays[0][0, 3, 2, 2] = value
        for array in arrays:
            array.attach_grad()
        with autograd.record():
            y = operators.inverted_residual(nd, *arrays, stride=stride)
        y.backward()
        return [array.grad.asnumpy() for array in arrays]

    assert np.isnan(gradients(2 * side, float("nan"))[3]).any()
    assert all(np.isfinite(gradient).all() for gradient in gradients(side, 1))


@pytest.mark.parametrize(
    ("value", "place", "rows"),
    [("nan", 0, slice(3, 4)), ("inf", 0, slice(3, 4)), ("nan", 40, slice(None))],
)
def test_attention_does_not_hide_what_is_not_finite_in_a_query_or_a_key(value, place, rows):
    projected = nd.random.normal(shape=(1, 7, 96))
    projected[0, 3, place] = float(value)
    lengths, ones = nd.array([7]), nd.ones(operators.DRAWS)
    y = operators.self_attention(nd, projected, lengths, ones, heads=2).asnumpy()
    expected = np.zeros(y.shape, bool)
    expected[0, rows, :16] = True  # of the first head only
    np.testing.assert_array_equal(np.isnan(y), expected)


def test_relu_of_a_norm_does_not_hide_what_is_not_a_number():
    x, ones, zeros = nd.random.normal(shape=(2, 8, 4, 5)), nd.ones(8), nd.zeros(8)
    x[1, 2, 3, 4] = float("nan")
    y = operators.batch_norm(nd, x, ones, zeros, zeros, ones, nd.ones(operators.DRAWS)).asnumpy()
    assert np.isnan(y).sum() == 1
    assert np.isnan(y[1, 2, 3, 4])


def test_a_class_of_minus_infinity_is_left_out_and_no_score_is_hidden():
    x, weight, labels = (
        nd.random.normal(shape=(4, 8)),
        nd.random.normal(shape=(300, 8)),
        nd.zeros(4),
    )
    bias = nd.zeros(300)
    bias[299] = float("-inf")
    loss = operators.cross_entropy(nd, x, weight, labels, bias)
    rest = operators.cross_entropy(nd, x, weight[:299], labels, bias[:299])
    np.testing.assert_allclose(loss.asnumpy(), rest.asnumpy(), rtol=1e-6)
    weight[299, 0] = float("nan")
    assert np.isnan(operators.cross_entropy(nd, x, weight, labels, bias).asnumpy()).all()
