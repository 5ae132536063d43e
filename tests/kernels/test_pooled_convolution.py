"""A convolution with ReLU and maxima: outputs and gradients beside those of MXNet's operators."""

import mxnet as mx
import numpy as np
import pytest
from mxnet import autograd, gluon, nd

from mxopt import kernels
from mxopt.kernels import operators

if not kernels.available():
    pytest.skip("no compiler for mxopt's kernels", allow_module_level=True)


def drawn(*shape, seed=0):
    values = np.random.RandomState(seed).randn(*shape)
    return nd.array(values / max(1, np.prod(shape[1:])) ** 0.5 if shape[2:] == (3, 3) else values)


def plain(F, x, weight, bias):
    filters = weight.shape[0]
    y = F.Convolution(x, weight, bias, kernel=(3, 3), pad=(1, 1), num_filter=filters)
    return F.Pooling(F.relu(y), kernel=(2, 2), stride=(2, 2), pool_type="max")


def computed(compute, *arrays, head):
    arrays = [array.copy() for array in arrays]
    for array in arrays:
        array.attach_grad()
    with autograd.record():
        y = compute(nd, *arrays)
    y.backward(head)
    return [each.asnumpy() for each in (y, *(array.grad for array in arrays))]


# Images, channels, rows, columns, filters. Vectors are of up to 16 numbers. Computed at once are 32
# filters of two windows, and six vectors of a row; or, without AVX-512 and from 11 channels on,
# two lines, six positions and two vectors at a time.
SIZES = [
    (2, 1, 28, 28, 32),
    (3, 32, 14, 14, 64),
    (1, 1, 2, 2, 1),
    (2, 5, 9, 6, 7),
    (1, 16, 7, 21, 33),
    (2, 33, 6, 35, 40),
    (1, 40, 4, 4, 70),
    (1, 11, 2, 2, 3),
    (1, 12, 3, 3, 17),
]


@pytest.mark.parametrize(("images", "channels", "rows", "columns", "filters"), SIZES)
def test_it_computes_what_mxnets_operators_do(images, channels, rows, columns, filters):
    arrays = [drawn(images, channels, rows, columns), drawn(filters, channels, 3, 3, seed=1),
              drawn(filters, seed=2) / 2]  # fmt: skip
    head = drawn(images, filters, rows // 2, columns // 2, seed=3)
    expected = computed(plain, *arrays, head=head)
    found = computed(operators.pooled_convolution, *arrays, head=head)
    for ours, theirs in zip(found, expected):
        assert ours.shape == theirs.shape
        assert np.abs(ours - theirs).max() <= 1e-5 * max(1, np.abs(theirs).max())


@pytest.mark.parametrize("channels", [1, 16])
def test_a_gradient_goes_to_the_first_of_equal_maxima(channels):
    x, weight = nd.zeros((1, channels, 4, 4)), nd.zeros((1, channels, 3, 3))
    bias = nd.ones((1,))
    weight[0, 0, 1, 1] = 1
    _, dx, _, dbias = computed(operators.pooled_convolution, x, weight, bias,
                               head=nd.arange(1, 5).reshape((1, 1, 2, 2)))  # fmt: skip
    expected = np.zeros((4, 4))
    expected[::2, ::2] = [[1, 2], [3, 4]]
    np.testing.assert_array_equal(dx[0, 0], expected)
    assert dbias == 10


def test_nothing_comes_through_relu_at_zero():
    x, weight, bias = nd.ones((2, 3, 4, 4)), nd.zeros((5, 3, 3, 3)), nd.zeros((5,))
    found = computed(operators.pooled_convolution, x, weight, bias, head=nd.ones((2, 5, 2, 2)))
    assert not any(each.any() for each in found)


def test_what_is_no_number_stays_that():
    x, weight, bias = nd.ones((1, 3, 4, 4)), nd.ones((5, 3, 3, 3)), nd.zeros((5,))
    bias[2] = np.nan
    y = operators.pooled_convolution(nd, x, weight, bias).asnumpy()
    assert np.isnan(y[:, 2]).all()
    assert np.isfinite(np.delete(y, 2, axis=1)).all()


class Layer(gluon.HybridBlock):
    def __init__(self):
        super().__init__()
        with self.name_scope():
            self.weight = self.params.get("weight", shape=(20, 3, 3, 3))
            self.bias = self.params.get("bias", shape=(20,))

    def hybrid_forward(self, F, x, weight, bias):
        return operators.pooled_convolution(F, x, weight, bias)


@pytest.mark.parametrize("adds", [False, True])
@pytest.mark.parametrize("hybridize", [None, {}, {"static_alloc": True, "static_shape": True}])
def test_in_a_graph_and_on_several_contexts(hybridize, adds):
    x, weight, bias = drawn(8, 3, 6, 6), drawn(20, 3, 3, 3, seed=1), drawn(20, seed=2)
    head = drawn(8, 20, 3, 3, seed=3)
    whole = computed(operators.pooled_convolution, x, weight, bias, head=head)
    contexts = [mx.cpu(n) for n in range(4)]
    net = Layer()
    net.initialize(ctx=contexts)
    net.weight.set_data(weight)
    net.bias.set_data(bias)
    net.collect_params().setattr("grad_req", "add" if adds else "write")
    if hybridize is not None:
        net.hybridize(**hybridize)
    for _ in range(2):
        with autograd.record():
            parts = [net(part) for part in gluon.utils.split_and_load(x, contexts)]
        autograd.backward(parts, gluon.utils.split_and_load(head, contexts))
    np.testing.assert_allclose(np.concatenate([y.asnumpy() for y in parts]), whole[0], rtol=1e-5)
    for parameter, gradient in ((net.weight, whole[2]), (net.bias, whole[3])):
        summed = sum(parameter.grad(context).asnumpy() for context in contexts)
        np.testing.assert_allclose(summed, (1 + adds) * gradient, rtol=1e-4, atol=1e-4)


def test_what_it_does_not_take_is_refused():
    x, weight, bias = drawn(1, 2, 4, 4), drawn(3, 2, 3, 3), drawn(3)
    for bad in (
        (x.astype("float64"), weight, bias),
        (x[0], weight, bias),
        (nd.ones((1, 3, 4, 4)), weight, bias),
        (x, nd.ones((3, 2, 1, 1)), bias),
        (x, weight, nd.ones((4,))),
    ):
        with pytest.raises(mx.MXNetError):
            operators.pooled_convolution(nd, *bad).wait_to_read()
