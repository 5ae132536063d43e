"""Updates of many parameters in one call are those of MXNet's operators."""

from itertools import chain

import mxnet as mx
import numpy as np
import pytest
from mxnet import nd

from mxopt import kernels

pytestmark = pytest.mark.skipif(not kernels.available(), reason="no compiler for mxopt's kernels")

# A kernel's block is 16,384 elements.
SHAPES = [(1,), (7, 5), (130, 127), (2, 16384)]
RATES, DECAYS = [0.1, 0.02, 0.3, 0.05], [0.0, 0.1, 0.01, 0.0]


def _arrays(states: int, seed: int = 0) -> list[list[nd.NDArray]]:
    """Return a weight, a gradient and states of each shape, the last state not negative."""
    random = np.random.RandomState(seed)
    made = [[nd.array(random.randn(*shape)) for _ in range(2 + states)] for shape in SHAPES]
    return [[*first, last.abs()] for *first, last in made] if states == 2 else made


def _text(numbers) -> str:
    return " ".join(map(str, numbers))


def _compare(expected, found) -> None:
    for own, other in zip(expected, found):
        for one, two in zip(own, other):
            np.testing.assert_allclose(two.asnumpy(), one.asnumpy(), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("rescale", [1.0, 0.25])
@pytest.mark.parametrize("clip", [-1, 0.3])
@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_sgd(momentum, clip, rescale):
    expected, found = _arrays(momentum > 0), _arrays(momentum > 0)
    shared = {"rescale_grad": rescale, "clip_gradient": clip}
    for arrays, rate, decay in zip(expected, RATES, DECAYS):
        if momentum:
            nd.sgd_mom_update(*arrays, lr=rate, wd=decay, momentum=momentum, out=arrays[0],
                              **shared)  # fmt: skip
        else:
            nd.sgd_update(*arrays, lr=rate, wd=decay, out=arrays[0], **shared)
    nd.mxopt_sgd_updates(
        *chain(*found), out=[arrays[0] for arrays in found], rates=_text(RATES),
        decays=_text(DECAYS), momentum=momentum, rescale=rescale, clip=clip,
    )  # fmt: skip
    _compare(expected, found)


@pytest.mark.parametrize("rescale", [1.0, 0.25])
@pytest.mark.parametrize("clip", [-1, 0.3])
def test_adam(clip, rescale):
    expected, found = _arrays(2), _arrays(2)
    settings = {"beta1": 0.8, "beta2": 0.98, "epsilon": 1e-7}
    for arrays, rate, decay in zip(expected, RATES, DECAYS):
        nd.adam_update(*arrays, lr=rate, wd=decay, rescale_grad=rescale, clip_gradient=clip,
                       out=arrays[0], **settings)  # fmt: skip
    nd.mxopt_adam_updates(
        *chain(*found), out=[arrays[0] for arrays in found], rates=_text(RATES),
        decays=_text(DECAYS), rescale=rescale, clip=clip, **settings,
    )  # fmt: skip
    _compare(expected, found)


def test_another_array_can_take_the_weights():
    weight, gradient, to = nd.ones((40,)), nd.ones((40,)), nd.zeros((40,))
    nd.mxopt_sgd_updates(weight, gradient, out=[to], rates="0.5", decays="0")
    assert (to.asnumpy() == 0.5).all()
    assert (weight.asnumpy() == 1).all()


def test_what_is_not_finite_stays_so():
    gradient = nd.array([np.inf, -np.inf, np.nan, 1])
    weight, mean, square = nd.zeros((4,)), nd.zeros((4,)), nd.zeros((4,))
    nd.mxopt_adam_updates(weight, gradient, mean, square, out=[weight], rates="0.1", decays="0")
    assert np.isfinite(weight.asnumpy()).tolist() == [False, False, False, True]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"rates": "0.1 0.1"}, "as many rates as decays"),
        ({"rates": "", "decays": ""}, "at least one"),
        ({"rates": "fast"}, "rates=fast must be numbers"),
        ({"momentum": "much"}, "momentum=much must be a number"),
    ],
)
def test_wrong_attributes_are_refused(given, words):
    weight, gradient = nd.ones((4,)), nd.ones((4,))
    with pytest.raises(mx.MXNetError, match=words):
        nd.mxopt_sgd_updates(
            weight, gradient, out=[weight], **{"rates": "0.1", "decays": "0", **given}
        ).wait_to_read()


def test_arrays_of_different_shapes_are_refused():
    weight, gradient = nd.ones((4,)), nd.ones((5,))
    with pytest.raises(mx.MXNetError, match="shapes of their weights"):
        nd.mxopt_sgd_updates(weight, gradient, out=[weight], rates="0.1", decays="0")
