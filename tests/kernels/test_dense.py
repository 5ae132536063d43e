"""The dense layer beside products of NumPy: of float32, and of factors rounded to bfloat16."""

from functools import partial

import mxnet as mx
import numpy as np
import pytest
from mxnet import autograd, gluon, nd

from mxopt import kernels
from mxopt.kernels import operators

if not kernels.available():
    pytest.skip("no compiler for mxopt's kernels", allow_module_level=True)


PARTS = [1, 3] if kernels.multiplies_bfloat16() else [3]


def full(F, x, weight, bias):
    return F.FullyConnected(
        *filter(lambda each: each is not None, (x, weight, bias)), num_hidden=weight.shape[0],
        no_bias=bias is None, flatten=False,
    )  # fmt: skip


def rounded(x):
    """Round to the nearest bfloat16, ties to even."""
    bits = np.asarray(x, np.float32).view(np.uint32)
    bits = bits + 0x7FFF + (bits >> 16 & 1)
    return (bits & 0xFFFF0000).view(np.float32).astype(np.float64)


def drawn(*shape, seed=0):
    return nd.array(np.random.RandomState(seed).randn(*shape))


def outputs_and_gradients(x, weight, bias, head, compute=operators.dense):
    arrays = [each for each in (x, weight, bias) if each is not None]
    for array in arrays:
        array.attach_grad()
    with autograd.record():
        y = compute(nd, x, weight, bias)
    y.backward(head)
    return [y.asnumpy(), *(array.grad.asnumpy() for array in arrays)]


def expected(x, weight, bias, head, parts=1):
    """What the kernel computes; of float64 with three parts."""
    factors = rounded if parts == 1 else lambda values: values.astype(np.float64)
    x, weight, head = (factors(each.asnumpy()) for each in (x, weight, head))
    y = x @ weight.T + (0 if bias is None else bias.asnumpy())
    flat = (-1, head.shape[-1])
    found = [y, head @ weight, head.reshape(flat).T @ x.reshape(-1, x.shape[-1])]
    return found if bias is None else [*found, None]


# The sizes of blocks are 8 and 128 rows, 16, 48 and 1,024 columns, 2, 32 and 1,024 elements of a
# sum; with tiles 16 and 32 rows and columns, 256 columns, 32, 256 and 512 elements.
SIZES = [
    (1, 1, 1),
    (3, 2, 5),
    (7, 31, 15),
    (8, 32, 16),
    (17, 33, 49),
    (128, 64, 48),
    (129, 257, 97),
    (300, 40, 130),
    (20, 1024, 33),
    (5, 1025, 64),
    (1030, 19, 18),
    (9, 2300, 20),
    (600, 200, 300),  # in float32, strips of rows whose sums have two parts
    (40, 250, 530),
    (70, 600, 300),
    (149, 259, 67),
    (6, 20, 1040),
]


@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize(("rows", "inputs", "units"), SIZES)
def test_products_of_rounded_factors(rows, inputs, units, biased, parts):
    x, weight, head = drawn(rows, inputs), drawn(units, inputs, seed=1), drawn(rows, units, seed=2)
    bias = drawn(units, seed=3) if biased else None
    compute = partial(operators.dense, parts=parts)
    found = outputs_and_gradients(x, weight, bias, head, compute)
    for ours, theirs in zip(expected(x, weight, bias, head, parts), found):
        if ours is None:  # the gradient of the bias is a sum in float32
            ours = head.asnumpy().sum(axis=0)
        np.testing.assert_allclose(theirs, ours, rtol=1e-4, atol=1e-5 * max(1, np.abs(ours).max()))


@pytest.mark.parametrize("scale", [1.0, 1e-15, 1e15])
def test_three_parts_are_as_exact_as_float32(scale):
    x, weight, head = drawn(300, 700), drawn(40, 700, seed=1), drawn(300, 40, seed=2)
    x, head = x * scale, head * scale
    exact = expected(x, weight, None, head, 3)
    found = {
        name: outputs_and_gradients(x, weight, None, head, compute)
        for name, compute in {
            "float32": full,
            "parts": partial(operators.dense, parts=3),
        }.items()
    }
    for position, right in enumerate(exact):
        usual, ours = (
            np.sqrt(np.mean((found[name][position].reshape(right.shape) - right) ** 2))
            for name in ("float32", "parts")
        )
        assert ours <= usual or not kernels.multiplies_by_tiles()
        assert 0 < ours < 4e-7 * np.sqrt(np.mean(right**2))


@pytest.mark.parametrize("parts", PARTS)
def test_beside_the_layer_of_mxnet(parts):
    x, weight, bias = drawn(3, 5, 64), drawn(24, 64, seed=1), drawn(24, seed=2)
    head = drawn(3, 5, 24, seed=3)
    theirs = outputs_and_gradients(x, weight, bias, head, full)
    ours = outputs_and_gradients(x, weight, bias, head, partial(operators.dense, parts=parts))
    *theirs, their_bias = theirs
    *ours, our_bias = ours
    for one, other in zip(theirs, ours):
        assert one.shape == other.shape
        most = np.abs(one - other).max() / np.abs(one).max()
        # Each factor is off by at most 2 ** -9 of its size, and the errors do not add up.
        assert 0 < most < 2**-7 if parts == 1 else most < 1e-6
    np.testing.assert_allclose(our_bias, their_bias, rtol=1e-5)


if 1 in PARTS:

    def test_numbers_that_no_product_may_change():
        x = nd.array([[np.inf, 1], [np.nan, 1], [-np.inf, 1], [3e38, 0], [1e-38, 0]])
        found = operators.dense(nd, x, nd.array([[1, 1]]), parts=1).asnumpy().ravel()
        np.testing.assert_array_equal(found[:3], [np.inf, np.nan, -np.inf])
        np.testing.assert_allclose(found[3], 3e38, rtol=0.01)
        assert 0 <= found[4] < 1.1e-38  # the instruction may take subnormal factors for 0


class Layer(gluon.HybridBlock):
    def __init__(self):
        super().__init__()
        with self.name_scope():
            self.weight = self.params.get("weight", shape=(20, 33))
            self.bias = self.params.get("bias", shape=(20,))

    def hybrid_forward(self, F, x, weight, bias):
        return operators.dense(F, x, weight, bias)


@pytest.mark.parametrize("hybridize", [None, {}, {"static_alloc": True, "static_shape": True}])
def test_in_a_graph_and_on_several_contexts(hybridize):
    x, weight, bias = drawn(8, 33), drawn(20, 33, seed=1), drawn(20, seed=2)
    head = drawn(8, 20, seed=3)
    whole = outputs_and_gradients(x, weight, bias, head)
    contexts = [mx.cpu(n) for n in range(4)]
    net = Layer()
    net.initialize(ctx=contexts)
    net.weight.set_data(weight)
    net.bias.set_data(bias)
    if hybridize is not None:
        net.hybridize(**hybridize)
    for _ in range(2):
        with autograd.record():
            parts = [net(part) for part in gluon.utils.split_and_load(x, contexts)]
        autograd.backward(parts, gluon.utils.split_and_load(head, contexts))
    np.testing.assert_allclose(np.concatenate([y.asnumpy() for y in parts]), whole[0], rtol=1e-5)
    for parameter, gradient in ((net.weight, whole[2]), (net.bias, whole[3])):
        summed = sum(parameter.grad(context).asnumpy() for context in contexts)
        np.testing.assert_allclose(summed, gradient, rtol=1e-4, atol=1e-5)


def test_gradients_are_added_where_they_should_be():
    x, weight, bias = drawn(4, 33), drawn(20, 33, seed=1), drawn(20, seed=2)
    for array in (x, weight, bias):
        array.attach_grad("add")
    for _ in range(3):
        with autograd.record():
            y = operators.dense(nd, x, weight, bias)
        y.backward()
    np.testing.assert_allclose(bias.grad.asnumpy(), 12, rtol=1e-6)
    three = 3 * x.asnumpy().sum(axis=0)
    np.testing.assert_allclose(weight.grad.asnumpy(), np.tile(three, (20, 1)), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("parts", [0, 2, *({1} - {*PARTS})])
def test_numbers_of_parts_that_it_cannot_compute_are_refused(parts):
    with pytest.raises(mx.MXNetError, match="parts=3"):
        operators.dense(nd, drawn(2, 5), drawn(3, 5), parts=parts).wait_to_read()


def test_what_it_does_not_take_is_refused():
    for x, weight, bias in (
        (drawn(2, 5), drawn(3, 4), drawn(3)),
        (drawn(2, 5), drawn(3, 5), drawn(4)),
        (drawn(2, 5), drawn(3, 5, 1), drawn(3)),
        (drawn(2, 5).astype("float64"), drawn(3, 5), drawn(3)),
    ):
        with pytest.raises(mx.MXNetError):
            operators.dense(nd, x, weight, bias).wait_to_read()
