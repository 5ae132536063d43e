import numpy as np
import pytest
import toy
from mxnet import nd

from mxopt.core.errors import PlanError
from mxopt.core.plan import Plan
from mxopt.methods.exponential_moving_average import move, warm_decay
from mxopt.train.fit import fit

PLAN = Plan(batch_size=8, epochs=3, learning_rate=0.5)


def weights_of(plan, **how):
    """Return the weights after every epoch, flat, as validation sees them."""
    seen = []

    def keep(net):
        seen.append(np.concatenate([p.data().asnumpy().ravel() for p in
                                    net.collect_params().values()]))  # fmt: skip

    fit(toy.toy(), plan, lambda event, **fields: None, on_epoch=keep, **how)
    return seen


def test_the_decay_warms_up_to_what_was_asked_for():
    decays = [warm_decay(0.9, step) for step in range(100)]
    assert decays[0] == 0
    assert decays == sorted(decays)
    assert decays[1] == pytest.approx(1 - 2 ** (-2 / 3))
    assert decays[-1] == 0.9


def test_the_average_moves_by_the_rest_of_the_decay():
    average = [nd.array([1.0, 2.0])]
    move(average, [nd.array([3.0, 2.0])], 0.75)
    np.testing.assert_allclose(average[0].asnumpy(), [1.5, 2.0])


def test_a_run_is_judged_by_the_average_of_all_its_updates():
    # One update an epoch: the weights after each are those of a run without an average.
    plan = PLAN.replace(batch_size=22)
    plain, averaged = weights_of(plan), weights_of(plan.replace(ema_decay=0.5))
    expected = plain[0].copy()
    for step, weights in enumerate(plain):
        expected += (1 - warm_decay(0.5, step)) * (weights - expected)
        np.testing.assert_allclose(averaged[step], expected, rtol=1e-5, atol=1e-7)


def test_a_resumed_run_goes_on_with_its_average(tmp_path):
    plan = PLAN.replace(ema_decay=0.8)
    whole = weights_of(plan)[-1]

    def stop(event, **fields):
        if event == "epoch" and fields["epoch"] == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(toy.toy(), plan, stop, checkpoints=tmp_path)
    np.testing.assert_array_equal(weights_of(plan, checkpoints=tmp_path)[-1], whole)


@pytest.mark.parametrize(
    ("switches", "says"),
    [({"ema_decay": 1.0}, "must be less than 1"), ({"ema_decay": 0.9, "swa_start": 1}, "take one")],
)
def test_a_decay_that_never_follows_and_two_averages_are_refused(switches, says):
    with pytest.raises(PlanError, match=says):
        PLAN.replace(**switches)
