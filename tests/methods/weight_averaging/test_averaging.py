import mxnet as mx
import numpy as np
import pytest
import toy
from mxnet import nd
from mxnet.gluon import nn

from mxopt.core.errors import PlanError
from mxopt.core.plan import Plan
from mxopt.methods.weight_averaging.averaging import Average
from mxopt.train.fit import fit


def weights(net):
    return [p.list_data()[-1].asnumpy().copy() for p in net.collect_params().values()]


def small(contexts):
    net = nn.Dense(2, in_units=3)
    net.initialize(mx.init.Zero(), ctx=contexts)
    return net


def test_the_mean_is_put_and_taken_back_on_every_context():
    net = small([mx.cpu(0), mx.cpu(1)])
    average = Average(net.collect_params())
    for value in (1, 2, 6):
        net.weight.set_data(nd.full((2, 3), value))
        average.add()
    with average.in_place():
        assert [w.asnumpy().tolist() for w in net.weight.list_data()] == [[[3] * 3] * 2] * 2
    assert [w.asnumpy().tolist() for w in net.weight.list_data()] == [[[6] * 3] * 2] * 2
    average.put()
    assert net.weight.list_data()[1].asnumpy().tolist() == [[3] * 3] * 2


def test_without_a_step_the_weights_stay():
    net = small([mx.cpu()])
    net.weight.set_data(nd.full((2, 3), 5))
    average = Average(net.collect_params())
    with average.in_place():
        assert net.weight.data().asnumpy().max() == 5
    average.put()
    assert net.weight.data().asnumpy().max() == 5


def test_weights_come_back_after_an_error():
    net = small([mx.cpu()])
    average = Average(net.collect_params())
    net.weight.set_data(nd.full((2, 3), 1))
    average.add()
    net.weight.set_data(nd.full((2, 3), 9))
    with pytest.raises(ZeroDivisionError), average.in_place():
        raise ZeroDivisionError
    assert net.weight.data().asnumpy().max() == 9


def seen_at_epochs(**switches):
    seen = []
    # One step an epoch, so that every step is seen.
    plan = Plan(batch_size=22, epochs=4, learning_rate=0.5, **switches)
    fit(toy.toy(), plan, lambda *_, **__: None, lambda net: seen.append(weights(net)))
    return seen


@pytest.mark.parametrize("hybridize", ["no", "static"])
def test_a_run_shows_the_mean_of_its_steps_and_trains_on_from_the_last(hybridize):
    steps = seen_at_epochs()
    averaged = seen_at_epochs(swa_start=2, hybridize=hybridize)
    for epoch, found in enumerate(averaged):
        # Nothing is averaged in epochs 1 and 2; after 3 and 4 it is what these two left.
        expected = steps[epoch : epoch + 1] if epoch < 2 else steps[2 : epoch + 1]
        for mine, theirs in zip(found, map(np.mean, zip(*expected), [0] * len(found))):
            np.testing.assert_allclose(mine, theirs, atol=1e-6)


def test_an_average_of_nothing_is_refused():
    with pytest.raises(PlanError, match="swa_start=3 must be less than epochs=3"):
        Plan(epochs=3, swa_start=3)
