import numpy as np
import pytest
import toy
from mxnet import nd

from mxopt.core.plan import Plan
from mxopt.methods.gradient_clipping_by_value import clip_by_value
from mxopt.train.fit import fit


def test_each_number_is_bounded_by_itself():
    gradients = [nd.array([3.0, -0.5, float("nan")]), nd.array([[-4.0]])]
    clip_by_value(gradients, 1.0)
    np.testing.assert_array_equal(gradients[0].asnumpy(), [1.0, -0.5, np.nan])
    np.testing.assert_array_equal(gradients[1].asnumpy(), [[-1.0]])


@pytest.mark.parametrize("devices", ["cpu:0", "cpu:0-1"])
def test_no_weight_moves_further_than_the_bound_times_the_learning_rate(devices):
    seen = []

    def keep(net):
        seen.append(np.concatenate([p.data().asnumpy().ravel() for p in
                                    net.collect_params().values()]))  # fmt: skip

    plan = Plan(batch_size=22, epochs=2, learning_rate=1.0, clip_value=0.01, devices=devices)
    fit(toy.toy(), plan, lambda event, **fields: None, on_epoch=keep)
    moved = np.abs(seen[1] - seen[0])
    assert moved.max() == pytest.approx(0.01, rel=1e-3)
