import functools

import numpy as np
import pytest
import toy
from mxnet import nd

from mxopt import kernels
from mxopt.core.plan import Plan
from mxopt.methods import gradient_clipping
from mxopt.train.fit import fit

compiled = pytest.mark.skipif(not kernels.available(), reason="no compiler for mxopt's kernels")


@pytest.fixture(params=[False, pytest.param(True, marks=compiled)], ids=["mxnet", "fused"])
def clip_by_norm(request):
    return functools.partial(gradient_clipping.clip_by_norm, fused=request.param)


def test_the_joint_norm_is_bounded_and_the_direction_kept(clip_by_norm):
    gradients = [nd.array([3.0, 0.0]), nd.array([[4.0]])]
    clip_by_norm(gradients, 1.0)
    np.testing.assert_allclose(gradients[0].asnumpy(), [0.6, 0.0], rtol=1e-6)
    np.testing.assert_allclose(gradients[1].asnumpy(), [[0.8]], rtol=1e-6)


def test_a_gradient_within_the_bound_stays_as_it_is(clip_by_norm):
    gradients = [nd.array([3.0, 4.0])]
    clip_by_norm(gradients, 5.1)
    np.testing.assert_array_equal(gradients[0].asnumpy(), [3.0, 4.0])


def reference(gradients, max_norm):
    """Clip in float64."""
    gradients = [gradient.astype("float64") for gradient in gradients]
    norm = np.sqrt(sum((gradient**2).sum() for gradient in gradients))
    return [gradient * min(1.0, max_norm / norm if norm else 1.0) for gradient in gradients]


@pytest.mark.parametrize("max_norm", [1e-30, 1e-26, 1e-6, 0.5, 1.0, 100.0, 1e20, 1e30])
@pytest.mark.parametrize("size", [3e38, 1e25, 1e19, 1e5, 1.0, 1e-5, 1e-19, 1e-25, 1e-37])
def test_finite_gradients_of_any_size_are_clipped_as_in_float64(clip_by_norm, size, max_norm):
    random = np.random.RandomState(0)
    gradients = [
        (size * random.uniform(-1, 1, shape)).astype("float32") for shape in ((3, 4), (5,), (1, 1))
    ]
    expected = reference(gradients, max_norm)
    clipped = [nd.array(gradient) for gradient in gradients]
    clip_by_norm(clipped, max_norm)
    for found, wanted in zip(clipped, expected):
        if size > 1e39 * max_norm:  # float32 does not have the factor
            assert (abs(found.asnumpy()) <= 2 * max_norm).all()
        else:
            np.testing.assert_allclose(found.asnumpy(), wanted, rtol=2e-5, atol=1e-43)


def test_gradients_of_all_sizes_together(clip_by_norm):
    gradients = [np.array([value], dtype="float32") for value in (1e25, 1e-25, -1.0, 0.0, 3e25)]
    expected = reference(gradients, 1.0)
    clipped = [nd.array(gradient) for gradient in gradients]
    clip_by_norm(clipped, 1.0)
    found = np.concatenate([gradient.asnumpy() for gradient in clipped])
    np.testing.assert_allclose(found, np.concatenate(expected), rtol=1e-5, atol=1e-43)


def test_the_norm_of_many_elements_loses_no_digits(clip_by_norm):
    many = nd.ones((20_000_000,))
    clip_by_norm([many], 1.0)
    assert many[0].asscalar() == pytest.approx(20_000_000**-0.5, rel=1e-5)


def test_zeros_stay_zeros(clip_by_norm):
    zeros = [nd.zeros((2,))]
    for max_norm in (0.0, 1e-30, 1.0):
        clip_by_norm(zeros, max_norm)
        np.testing.assert_array_equal(zeros[0].asnumpy(), [0.0, 0.0])


def test_a_float16_gradient_whose_squares_overflow_float16_is_clipped(clip_by_norm):
    gradients = [nd.array([3000.0, 4000.0], dtype="float16")]
    clip_by_norm(gradients, 500.0)
    np.testing.assert_allclose(gradients[0].asnumpy(), [300.0, 400.0], rtol=2e-3)


@pytest.mark.parametrize("spoilt", ["nan", "inf", "-inf"])
@pytest.mark.parametrize("max_norm", [1e-30, 1.0])
def test_a_gradient_that_is_not_finite_makes_all_nan(clip_by_norm, spoilt, max_norm):
    gradients = [nd.array([1.0]), nd.array([float(spoilt), 2.0])]
    clip_by_norm(gradients, max_norm)
    assert np.isnan(np.concatenate([gradient.asnumpy() for gradient in gradients])).all()


@pytest.mark.parametrize("updates", ["mxnet", pytest.param("fused", marks=compiled)])
def test_clipping_bounds_every_update(updates):
    seen = []

    def keep(net):
        seen.append(np.concatenate([p.data().asnumpy().ravel() for p in
                                    net.collect_params().values()]))  # fmt: skip

    plan = Plan(batch_size=22, epochs=3, learning_rate=1.0, clip_norm=0.01, updates=updates)
    fit(toy.toy(), plan, lambda event, **fields: None, on_epoch=keep)
    assert np.linalg.norm(seen[1] - seen[0]) <= 0.01 * (1 + 1e-4)


@compiled
@pytest.mark.parametrize(("updates", "calls"), [("mxnet", 0), ("fused", 3)])
def test_fused_updates_clip_by_one_operator(monkeypatch, updates, calls):
    counted, operator = [], nd.mxopt_clip_by_norm
    monkeypatch.setattr(
        nd, "mxopt_clip_by_norm", lambda *a, **k: counted.append(len(a)) or operator(*a, **k)
    )
    plan = Plan(batch_size=22, epochs=3, learning_rate=1.0, clip_norm=0.01, updates=updates)
    fit(toy.toy(), plan, lambda event, **fields: None)
    assert len(counted) == calls
    assert min(counted, default=2) > 1
