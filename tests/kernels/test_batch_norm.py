"""The kernel of batch normalisation, a sum and ReLU: beside MXNet's operators and float64."""

import mxnet as mx
import numpy as np
import pytest
from mxnet import autograd, gluon, nd

from mxopt import kernels
from mxopt.kernels import operators

if not kernels.available():
    pytest.skip("no compiler for mxopt's kernels", allow_module_level=True)

NAMES = ("x", "gamma", "beta", "other", "gamma2", "beta2")
SHAPES = [(2, 5, 7, 9), (1, 16, 1, 1), (3, 33, 16, 2), (4, 3, 60, 60), (1, 2, 3, 5)]
RUNNING = ("mean", "variance", "mean2", "variance2")
TRAINS, PREDICTS = nd.array([0, 2] * (operators.DRAWS // 2)), nd.ones(operators.DRAWS)


def drawn(shape, seed=0):
    """The arrays of a batch norm, and the gradient of its output."""
    random, channels = np.random.RandomState(seed), shape[1]
    made = {"x": random.randn(*shape) * 3 + 1, "gamma": random.uniform(0.5, 2, channels),
            "beta": random.randn(channels), "mean": random.randn(channels),
            "variance": random.uniform(0.5, 2, channels), "other": random.randn(*shape),
            "head": random.randn(*shape), "gamma2": random.uniform(0.5, 2, channels),
            "beta2": random.randn(channels), "mean2": random.randn(channels),
            "variance2": random.uniform(0.5, 2, channels)}  # fmt: skip
    return {name: nd.array(values) for name, values in made.items()}


def plain(a, added, relu, **how):
    how = {"fix_gamma": False, "eps": 1e-3, "momentum": 0.8, **how}
    y = nd.BatchNorm(a["x"], a["gamma"], a["beta"], a["mean"], a["variance"], **how)
    if added == 1:
        y = y + a["other"]
    if added == 2:
        y = y + nd.BatchNorm(a["other"], *second(a), **how)
    return nd.relu(y) if relu else y


def second(a):
    return [a[name] for name in ("gamma2", "beta2", "mean2", "variance2")]


def ours(a, added, relu, trains=True):
    return operators.batch_norm(
        nd, a["x"], a["gamma"], a["beta"], a["mean"], a["variance"], TRAINS if trains else PREDICTS,
        a["other"] if added else None, second(a) if added == 2 else (),
        relu=int(relu), epsilon=1e-3, momentum=0.8,
    )  # fmt: skip


def computed(arrays, compute, train_mode=True):
    """The output, the gradients and what becomes of the running statistics."""
    arrays = {name: array.copy() for name, array in arrays.items()}
    for name in NAMES:
        arrays[name].attach_grad()
    with autograd.record(train_mode=train_mode):
        y = compute(arrays)
    y.backward(arrays["head"])
    found = {name: arrays[name].grad for name in NAMES}
    found.update({name: arrays[name] for name in RUNNING}, y=y)
    return {name: array.asnumpy() for name, array in found.items()}


def compare(expected, found, tolerance=1e-5):
    for name, values in expected.items():
        assert np.abs(values - found[name]).max() <= tolerance * max(1.0, np.abs(values).max()), (
            name
        )


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("added", [0, 1, 2])
@pytest.mark.parametrize("shape", SHAPES)
def test_it_computes_what_mxnets_operators_do(shape, added, relu):
    arrays = drawn(shape)
    expected = computed(arrays, lambda a: plain(a, added, relu))
    for name in RUNNING if added == 2 else RUNNING[:2]:
        assert (expected[name] != arrays[name].asnumpy()).all()
    compare(expected, computed(arrays, lambda a: ours(a, added, relu)))


@pytest.mark.parametrize("added", [0, 1, 2])
@pytest.mark.parametrize("shape", SHAPES)
def test_in_prediction_it_takes_the_running_statistics(shape, added):
    arrays = drawn(shape)
    expected = computed(arrays, lambda a: plain(a, added, True, use_global_stats=True))
    found = computed(arrays, lambda a: ours(a, added, True, trains=False), train_mode=False)
    compare(expected, found)
    for name in RUNNING:
        np.testing.assert_array_equal(found[name], arrays[name].asnumpy())


@pytest.mark.parametrize("added", [1, 2])
def test_its_gradients_are_those_of_differences_in_float64(added):
    arrays = drawn((2, 3, 3, 4))
    found = computed(arrays, lambda a: ours(a, added, True))
    exact = {name: array.asnumpy().astype("float64") for name, array in arrays.items()}

    def norm(x, gamma, beta):
        mean, variance = x.mean((0, 2, 3), keepdims=True), x.var((0, 2, 3), keepdims=True)
        gamma, beta = gamma[:, None, None], beta[:, None, None]
        return (x - mean) / np.sqrt(variance + 1e-3) * gamma + beta

    def loss():
        y, other = norm(exact["x"], exact["gamma"], exact["beta"]), exact["other"]
        y = y + (norm(other, exact["gamma2"], exact["beta2"]) if added == 2 else other)
        return (np.maximum(y, 0) * exact["head"]).sum()

    for name in NAMES:
        numbers, gradient = exact[name].ravel(), found[name].ravel()
        for n, number in enumerate(numbers):
            moved = []
            for change in (1e-6, -1e-6):
                numbers[n] = number + change
                moved.append(loss())
            numbers[n] = number
            assert gradient[n] == pytest.approx((moved[0] - moved[1]) / 2e-6, abs=1e-4)


class Layer(gluon.HybridBlock):
    def __init__(self):
        super().__init__()
        with self.name_scope():
            for name, null in (("gamma", 0), ("beta", 0), ("mean", 1), ("variance", 1)):
                shape, how = (4,), {"grad_req": "null"} if null else {}
                setattr(self, name, self.params.get(name, shape=shape, init="ones", **how))
            self.ones = self.params.get_constant("ones", np.ones(operators.DRAWS))

    def hybrid_forward(self, F, x, gamma, beta, mean, variance, ones):
        draws = operators.draws(F, ones)
        return operators.batch_norm(F, x, gamma, beta, mean, variance, draws, epsilon=1e-5)


@pytest.mark.parametrize("hybridize", [False, True])
def test_in_a_graph_and_on_several_contexts(hybridize):
    contexts = [mx.cpu(n) for n in range(4)]
    net, norm = Layer(), gluon.nn.BatchNorm(in_channels=4)
    for each in (net, norm):
        each.initialize(ctx=contexts)
        if hybridize:
            each.hybridize(static_alloc=True, static_shape=True)
    norm.running_mean.set_data(nd.ones(4))
    net.beta.set_data(nd.zeros(4))
    x = nd.random.normal(shape=(8, 4, 5, 5))
    for _ in range(2):
        parts = gluon.utils.split_and_load(x, contexts)
        with autograd.record():
            found = [net(part) for part in parts]
            expected = [nd.relu(norm(part)) for part in parts]
        autograd.backward(found + expected)
        assert max(float((a - b).abs().max().asscalar()) for a, b in zip(found, expected)) < 1e-5
        for ours, theirs in ((net.gamma, norm.gamma), (net.beta, norm.beta)):
            for one, other in zip(ours.list_grad(), theirs.list_grad()):
                np.testing.assert_allclose(one.asnumpy(), other.asnumpy(), atol=1e-4)
    for ours, theirs in ((net.mean, norm.running_mean), (net.variance, norm.running_var)):
        for one, other in zip(ours.list_data(), theirs.list_data()):
            np.testing.assert_allclose(one.asnumpy(), other.asnumpy(), atol=1e-6)
    predicted = norm(x.as_in_context(contexts[0]))
    np.testing.assert_allclose(
        net(x.as_in_context(contexts[0])).asnumpy(), nd.relu(predicted).asnumpy(), atol=1e-5
    )


def test_what_it_does_not_take_is_refused():
    good = drawn((2, 3, 4, 4))
    bad = {"x": nd.ones((2, 3, 4)), "gamma": nd.ones(4), "other": nd.ones((2, 3, 4, 1)),
           "gamma2": nd.ones(4), "beta": good["beta"].astype("float64")}  # fmt: skip
    for name, array in bad.items():
        with pytest.raises(mx.MXNetError):
            ours({**good, name: array}, 2, True).wait_to_read()
    with pytest.raises(mx.MXNetError):
        nd.mxopt_batch_norm(*[good[n] for n in ("x", "gamma", "beta", "mean", "variance")], TRAINS,
                            added=3).wait_to_read()  # fmt: skip
