"""The kernels of 3 x 3 convolutions: outputs and gradients beside MXNet's operators."""

import mxnet as mx
import numpy as np
import pytest
from mxnet import autograd, nd

from mxopt import kernels
from mxopt.kernels import operators

if not kernels.available():
    pytest.skip("no compiler for mxopt's kernels", allow_module_level=True)


def plain(x, weight, dilation):
    """The same with MXNet's operator."""
    pad = (dilation * (weight.shape[2] // 2),) * 2
    how = {"kernel": weight.shape[2:], "dilate": (dilation,) * 2, "pad": pad, "no_bias": True}
    return nd.Convolution(x, weight, num_filter=weight.shape[0], **how)


def plain_branches(x, *weights, dilations):
    mean = nd.Pooling(x, global_pool=True, pool_type="avg")
    return [*map(plain, [x] * len(weights), weights, dilations), mean]


def drawn(*shapes, seed=0):
    """Random arrays with gradients attached, whose products add up to some ones."""
    random = np.random.RandomState(seed)
    made = [nd.array(random.randn(*shapes[0]))]
    made += [nd.array(random.randn(*shape) / np.prod(shape[1:]) ** 0.5) for shape in shapes[1:]]
    for array in made:
        array.attach_grad()
    return made


def outputs_and_gradients(compute, arrays):
    with autograd.record():
        found = compute(*arrays)
    found = found if isinstance(found, list) else [found]
    heads = [nd.array(np.random.RandomState(n).randn(*y.shape)) for n, y in enumerate(found)]
    autograd.backward(found, heads)
    return [each.asnumpy() for each in (*found, *(array.grad for array in arrays))]


def compare(expected, found, tolerance=1e-5):
    assert len(expected) == len(found)
    for ours, theirs in zip(expected, found):
        assert np.abs(ours - theirs).max() <= tolerance * max(1.0, np.abs(ours).max())


SHAPES = [
    # images, inputs, filters, height, width
    (2, 5, 7, 9, 6),
    (1, 16, 16, 1, 1),
    (3, 33, 20, 13, 31),
    (1, 4, 3, 2, 70),
    (1, 4, 3, 9, 32),
    (1, 520, 530, 5, 4),  # more channels than a product sums up at once
]


@pytest.mark.parametrize("dilation", [1, 2, 3, 4, 8, 12, 40])
@pytest.mark.parametrize("shape", SHAPES)
def test_winograd_computes_a_convolution(shape, dilation):
    images, inputs, filters, *sides = shape
    arrays = drawn((images, inputs, *sides), (filters, inputs, 3, 3))
    expected = outputs_and_gradients(lambda x, w: plain(x, w, dilation), arrays)
    found = outputs_and_gradients(lambda x, w: nd.mxopt_winograd(x, w, dilation=dilation), arrays)
    compare(expected, found)


def test_winograd_computes_more_windows_than_at_once():
    arrays = drawn((60, 520, 16, 4), (530, 520, 3, 3))
    expected = outputs_and_gradients(lambda x, w: plain(x, w, 1), arrays)
    compare(expected, outputs_and_gradients(nd.mxopt_winograd, arrays))


def test_winograd_is_almost_as_exact_as_the_usual_sum():
    x, weight = drawn((2, 512, 16, 16), (8, 512, 3, 3))
    exact = np.zeros((2, 8, 16, 16))
    padded = np.pad(x.asnumpy().astype("float64"), ((0, 0), (0, 0), (1, 1), (1, 1)))
    for row in range(3):
        for column in range(3):
            seen = padded[:, :, row : row + 16, column : column + 16]
            exact += np.einsum("ncyx,kc->nkyx", seen, weight.asnumpy()[:, :, row, column])
    error, usual = (
        np.sqrt(np.mean((y.asnumpy() - exact) ** 2))
        for y in (nd.mxopt_winograd(x, weight), plain(x, weight, 1))
    )
    assert 0 < usual < error < 3e-6
    assert error < 3 * usual  # with points at whole numbers it would be four times as large


@pytest.mark.parametrize("dilations", [(1, 1), (1, 3), (1, 12), (1, 40, 2)])
@pytest.mark.parametrize("shape", SHAPES)
def test_branches_compute_convolutions_and_a_mean(shape, dilations):
    images, inputs, filters, *sides = shape
    weights = [(filters, inputs, 1, 1), (4, inputs, 3, 3), (filters, inputs, 3, 3)]
    arrays = drawn((images, inputs, *sides), *weights[: len(dilations)])
    expected = outputs_and_gradients(lambda *a: plain_branches(*a, dilations=dilations), arrays)
    found = outputs_and_gradients(
        lambda *a: operators.seen_taps(nd, *a, dilations=dilations, mean=True), arrays
    )
    compare(expected, found)


def test_a_single_branch_without_a_mean():
    arrays = drawn((2, 40, 7, 8), (3, 40, 3, 3))
    expected = outputs_and_gradients(lambda x, w: plain(x, w, 5), arrays)
    compare(
        expected,
        outputs_and_gradients(lambda x, w: operators.seen_taps(nd, x, w, dilations=[5]), arrays),
    )


@pytest.mark.parametrize("operator", ["winograd", "seen_taps"])
def test_what_they_do_not_take_is_refused(operator):
    call, how = getattr(nd, f"mxopt_{operator}"), {"dilations": "1", "dilation": 1}
    x, weight = drawn((1, 2, 4, 4), (3, 2, 3, 3))
    for bad in (x.astype("float64"), x[0], nd.ones((1, 3, 4, 4))):
        with pytest.raises(mx.MXNetError):
            call(bad, weight, **how).wait_to_read()
    with pytest.raises(mx.MXNetError):
        call(x, nd.ones((3, 2, 5, 5)), **how).wait_to_read()


def test_a_dilation_below_one_is_refused():
    with pytest.raises(mx.MXNetError, match="dilation"):
        nd.mxopt_winograd(nd.ones((1, 2, 4, 4)), nd.ones((3, 2, 3, 3)), dilation=0)
