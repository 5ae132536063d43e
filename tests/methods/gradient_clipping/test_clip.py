import numpy as np
import toy
from mxnet import nd

from mxopt.core.plan import Plan
from mxopt.methods.gradient_clipping import clip_by_norm
from mxopt.train.fit import fit


def test_the_joint_norm_is_bounded_and_the_direction_kept():
    gradients = [nd.array([3.0, 0.0]), nd.array([[4.0]])]
    clip_by_norm(gradients, 1.0)
    np.testing.assert_allclose(gradients[0].asnumpy(), [0.6, 0.0], rtol=1e-6)
    np.testing.assert_allclose(gradients[1].asnumpy(), [[0.8]], rtol=1e-6)


def test_a_gradient_within_the_bound_stays_as_it_is():
    gradients = [nd.array([3.0, 4.0])]
    clip_by_norm(gradients, 5.1)
    np.testing.assert_array_equal(gradients[0].asnumpy(), [3.0, 4.0])


def test_a_gradient_that_is_no_number_spoils_all_and_one_that_overflows_becomes_zero():
    spoilt = [nd.array([1.0]), nd.array([float("nan")])]
    clip_by_norm(spoilt, 1.0)
    assert np.isnan(spoilt[0].asscalar())
    large = [nd.array([1e30, 1.0])]
    clip_by_norm(large, 1.0)
    np.testing.assert_array_equal(large[0].asnumpy(), [0.0, 0.0])


def test_clipping_bounds_every_update():
    seen = []

    def keep(net):
        seen.append(np.concatenate([p.data().asnumpy().ravel() for p in
                                    net.collect_params().values()]))  # fmt: skip

    plan = Plan(batch_size=22, epochs=3, learning_rate=1.0, clip_norm=0.01)
    fit(toy.toy(), plan, lambda event, **fields: None, on_epoch=keep)
    assert np.linalg.norm(seen[1] - seen[0]) <= 0.01 * (1 + 1e-4)
