"""The cross entropy of a dense layer's outputs beside its definition in float64."""

import mxnet as mx
import numpy as np
import pytest
from mxnet import autograd, gluon, nd

from mxopt import kernels
from mxopt.kernels import operators

if not kernels.available():
    pytest.skip("no compiler for mxopt's kernels", allow_module_level=True)

# Blocks are of 256 rows and 256 classes; vectors of up to 16, tiles of 32.
SIZES = [
    (1, 1, 1),
    (2, 16, 15),
    (7, 33, 16),
    (255, 16, 17),
    (257, 40, 256),
    (30, 520, 257),
    (600, 19, 530),
    (300, 200, 1030),  # a thread adds up gradients over blocks of classes, in strips of rows
]


def case(rows, units, classes, seed=0):
    random = np.random.RandomState([seed, rows, units, classes])
    x, weight, bias = random.randn(rows, units), random.randn(classes, units), random.randn(classes)
    labels, head = random.randint(0, classes, rows), random.rand(rows)
    return [nd.array(each) for each in (x, weight, bias, labels, head)]


def losses_and_gradients(x, weight, bias, labels, head, between=None, **settings):
    """Return the losses and all gradients; ``between`` is called before the backward pass."""
    arrays = [each for each in (x, weight, bias) if each is not None]
    for array in arrays:
        array.attach_grad()
    with autograd.record():
        losses = operators.cross_entropy(nd, x, weight, labels, bias, **settings)
    if between:
        between()
    losses.backward(head)
    return [losses.asnumpy(), *(array.grad.asnumpy() for array in arrays)]


def expected(x, weight, bias, labels, head, smoothing=0.0):
    x, weight, head = (each.asnumpy().astype(np.float64) for each in (x, weight, head))
    scores = x @ weight.T + (0 if bias is None else bias.asnumpy())
    scores -= scores.max(axis=-1, keepdims=True)
    log_probability = scores - np.log(np.exp(scores).sum(axis=-1, keepdims=True))
    classes = len(weight)
    target = np.eye(classes)[labels.asnumpy().astype(int)] * (1 - smoothing) + smoothing / classes
    slopes = head[:, None] * (np.exp(log_probability) - target)
    found = [-(target * log_probability).sum(-1), slopes @ weight, slopes.T @ x]
    return found if bias is None else [*found, slopes.sum(axis=0)]


def compare(right, found, tolerance=1e-5):
    assert len(right) == len(found)
    for ours, theirs in zip(right, found):
        assert np.abs(ours - theirs).max() <= tolerance * max(1.0, np.abs(ours).max())


def another_pass():
    """Compute other losses, whose scores are kept instead of those before."""
    x, weight, bias, labels, _ = case(9, 4, 5, seed=1)
    operators.cross_entropy(nd, x, weight, labels, bias).wait_to_read()


@pytest.mark.parametrize("between", [None, another_pass])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize(("rows", "units", "classes"), SIZES)
def test_losses_and_gradients(rows, units, classes, biased, smoothing, between):
    x, weight, bias, labels, head = case(rows, units, classes)
    arrays = [x, weight, bias if biased else None, labels, head]
    found = losses_and_gradients(*arrays, smoothing=smoothing, between=between)
    # Scores of up to 90 are computed again in other blocks, with other last digits.
    tolerance = 3e-5 if between else 1e-5
    compare(expected(*arrays, smoothing=smoothing), found, tolerance)


def test_every_backward_pass_has_the_scores_of_its_own_forward_pass():
    cases = [case(30, 16, 40, seed) for seed in range(3)]
    for x, weight, *_ in cases:
        x.attach_grad(), weight.attach_grad()
    with autograd.record():
        found = [operators.cross_entropy(nd, x, w, labels, b) for x, w, b, labels, _ in cases]
    order = (2, 0, 1, 2)  # the last one once more
    for number in order:
        found[number].backward(cases[number][-1], retain_graph=True)
        x, weight = cases[number][:2]
        compare(expected(*cases[number])[1:3], [x.grad.asnumpy(), weight.grad.asnumpy()])


def test_scores_that_are_too_many_are_not_kept():
    x, weight, bias, labels, head = case(2**12 + 8, 2, 2**13)
    whole = losses_and_gradients(x, weight, bias, labels, head)
    halves = [
        losses_and_gradients(x[part], weight, bias, labels[part], head[part])
        for part in (slice(0, 2000), slice(2000, None))
    ]
    for number, join in enumerate((np.concatenate, np.concatenate, sum, sum)):
        compare([join([half[number] for half in halves])], [whole[number]])


if kernels.multiplies_bfloat16():

    def test_one_part_rounds_factors():
        arrays = case(40, 64, 300)
        exact, rounded = expected(*arrays), losses_and_gradients(*arrays, parts=1)
        compare(exact, rounded, tolerance=0.05)
        assert np.abs(exact[1] - rounded[1]).max() > 1e-4


def test_large_scores_do_not_overflow():
    x, weight, bias, labels, head = case(20, 16, 70)
    arrays = [1000 * x, weight, bias, labels, head]
    losses, *gradients = losses_and_gradients(*arrays, smoothing=0.1)
    np.testing.assert_allclose(losses, expected(*arrays, smoothing=0.1)[0], rtol=1e-4)
    assert all(np.isfinite(gradient).all() for gradient in gradients)


def test_more_dimensions_than_two():
    x, weight, bias, labels, head = case(12, 16, 20)
    flat = losses_and_gradients(x, weight, bias, labels, head)
    three = losses_and_gradients(
        x.reshape((3, 4, 16)), weight, bias, labels.reshape((3, 4)), head.reshape((3, 4))
    )
    assert three[0].shape == (3, 4)
    compare(flat[1:], [three[1].reshape(12, 16), *three[2:]], tolerance=0)


def test_gradients_are_added_where_they_should_be():
    x, weight, bias, labels, head = case(12, 16, 20)
    once = losses_and_gradients(x, weight, bias, labels, head)
    for array in (weight, bias):
        array.attach_grad("add")
    for _ in range(3):
        with autograd.record():
            losses = operators.cross_entropy(nd, x, weight, labels, bias)
        losses.backward(head)
    compare(3 * np.array(once[3]), bias.grad.asnumpy())
    compare(3 * np.array(once[2]), weight.grad.asnumpy())


class Loss(gluon.HybridBlock):
    def __init__(self):
        super().__init__()
        with self.name_scope():
            self.weight = self.params.get("weight", shape=(300, 33))
            self.bias = self.params.get("bias", shape=(300,))

    def hybrid_forward(self, F, x, labels, weight, bias):
        return operators.cross_entropy(F, x, weight, labels, bias, 0.1)


@pytest.mark.parametrize("hybridize", [None, {}, {"static_alloc": True, "static_shape": True}])
def test_in_a_graph_and_on_several_contexts(hybridize):
    x, weight, bias, labels, head = case(8, 33, 300)
    whole = losses_and_gradients(x, weight, bias, labels, head, smoothing=0.1)
    contexts = [mx.cpu(n) for n in range(4)]
    net = Loss()
    net.initialize(ctx=contexts)
    net.weight.set_data(weight)
    net.bias.set_data(bias)
    if hybridize is not None:
        net.hybridize(**hybridize)
    given = [gluon.utils.split_and_load(each, contexts) for each in (x, labels)]
    for _ in range(2):
        with autograd.record():
            parts = [net(*part) for part in zip(*given)]
        autograd.backward(parts, gluon.utils.split_and_load(head, contexts))
    np.testing.assert_allclose(np.concatenate([y.asnumpy() for y in parts]), whole[0], rtol=1e-5)
    for parameter, gradient in ((net.weight, whole[2]), (net.bias, whole[3])):
        summed = sum(parameter.grad(context).asnumpy() for context in contexts)
        np.testing.assert_allclose(summed, gradient, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("label", [-1, 20, np.nan])
def test_labels_that_are_no_class_are_refused(label):
    x, weight, bias, labels, _ = case(12, 16, 20)
    labels[3] = label
    with pytest.raises(mx.MXNetError, match="one of the 20 classes"):
        operators.cross_entropy(nd, x, weight, labels, bias).wait_to_read()


def test_what_it_does_not_take_is_refused():
    x, weight, bias, labels, _ = case(12, 16, 20)
    for arrays, settings in (
        ((x, weight[:, :15], labels, bias), {}),
        ((x, weight, labels[:11], bias), {}),
        ((x, weight, labels, bias[:19]), {}),
        ((x.astype("float64"), weight, labels, bias), {}),
        ((x, weight, labels, bias), {"parts": 2}),
    ):
        with pytest.raises(mx.MXNetError):
            operators.cross_entropy(nd, *arrays, **settings).wait_to_read()
