"""The rules on curves whose answer is known, and the test of a recipe."""

import contextlib
import math

import mxnet as mx
import numpy as np
import pytest
from mxnet import autograd, gluon, nd

from mxopt.cli.main import main
from mxopt.core.errors import PlanError
from mxopt.core.plan import Plan
from mxopt.measure.learning_rate import range_test
from mxopt.methods import lr_range_test as method
from mxopt.methods.lr_range_test import rules

RATES = rules.growing(1e-6, 10, 141)  # twenty a decade


def curve(fall=1e-3, least=1e-1):
    """A loss that falls fastest at one rate, is smallest at another, and explodes after it."""
    position = np.log10(RATES)
    falling = 2.3 - 2 / (1 + np.exp(-4 * (position - math.log10(fall))))
    rising = np.exp(np.clip(3 * (position - math.log10(least)) - 2, -50, 50))
    return falling + rising


def test_rates_grow_by_the_same_factor():
    rates = rules.growing(1e-3, 1, 31)
    assert (rates[0], rates[-1]) == (pytest.approx(1e-3), pytest.approx(1))
    assert np.allclose(rates[1:] / rates[:-1], 10**0.1)
    for wrong in ((1, 1, 100), (0, 1, 100), (1e-3, 1, 5)):
        with pytest.raises(PlanError):
            rules.growing(*wrong)


def test_an_average_is_corrected_for_its_start():
    assert rules.smoothed([3.0] * 5) == pytest.approx([3.0] * 5)
    assert rules.smoothed([1.0, 2.0], decay=0.5) == pytest.approx(
        [1.0, (0.25 * 1 + 0.5 * 2) / 0.75]
    )


def test_each_rule_finds_what_it_is_named_after():
    losses = curve()
    assert rules.steepest(RATES, losses) == pytest.approx(1e-3, rel=0.15)
    smallest = RATES[losses.argmin()]
    assert rules.minimum(RATES, losses) == pytest.approx(smallest / 10)
    assert rules.between(RATES, losses) == pytest.approx(
        math.sqrt(rules.steepest(RATES, losses) * smallest / 10)
    )
    # The falling part is from the first rate to the smallest loss.
    middle = math.sqrt(RATES[0] * smallest)
    assert rules.valley(RATES, losses) == pytest.approx(middle, rel=0.15)


def test_a_valley_may_have_steps_upwards():
    rates, losses = rules.growing(1, 10, 20), np.linspace(2, 1, 20)
    losses[[4, 9, 10]] += 0.3
    plain = rules.valley(rates, np.linspace(2, 1, 20))
    assert rules.valley(rates, losses) == pytest.approx(plain, rel=0.2)


def test_without_the_logarithm_the_steepest_rate_is_far_too_small():
    losses = curve()
    assert rules.steepest_in_rate(RATES, losses) < rules.steepest(RATES, losses) / 2


def test_what_follows_a_divergence_is_left_out():
    losses = np.concatenate([np.linspace(2, 1, 60), np.full(20, 100.0), [math.nan] * 61])
    rates, means = rules.usable(RATES, losses)
    assert len(rates) == len(means) <= 60 - 14
    assert rates[0] == RATES[14]
    with pytest.raises(PlanError, match="the loss diverged after 12 of 141 steps"):
        rules.usable(RATES, [1.0] * 12 + [math.inf] * 129)


def test_a_network_is_as_before_afterwards():
    mx.random.seed(0)
    net = gluon.nn.Dense(2, in_units=3)
    net.initialize()
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.1})
    x = nd.random.normal(shape=(4, 3))

    def step():
        with autograd.record():
            value = net(x).square().sum()
        value.backward()
        trainer.step(4)
        return [p.data().asnumpy().copy() for p in net.collect_params().values()]

    step()
    with method.restored(net, trainer):
        trainer.set_learning_rate(0.5)
        changed = step()
    assert trainer.learning_rate == 0.1
    again = step()
    with method.restored(net, trainer), contextlib.suppress(ZeroDivisionError):
        step()
        raise ZeroDivisionError
    assert not any(np.allclose(a, b) for a, b in zip(changed, again))
    # The same step from the same weights and moments, as if nothing had been tried.
    other = gluon.nn.Dense(2, in_units=3)
    mx.random.seed(0)
    other.initialize()
    trainer = gluon.Trainer(other.collect_params(), "adam", {"learning_rate": 0.1})
    for _ in range(2):
        with autograd.record():
            value = other(x).square().sum()
        value.backward()
        trainer.step(4)
    expected = [p.data().asnumpy() for p in other.collect_params().values()]
    assert all(np.allclose(a, b, atol=1e-6) for a, b in zip(again, expected))


def test_states_on_a_kvstore_are_refused():
    net = gluon.nn.Dense(1, in_units=2)
    net.initialize(ctx=[mx.cpu(0), mx.cpu(1)])
    trainer = gluon.Trainer(net.collect_params(), "sgd", kvstore="local", update_on_kvstore=True)
    with pytest.raises(PlanError, match="update_on_kvstore=False"), method.restored(net, trainer):
        pass


def test_a_recipe_is_trained_at_growing_rates():
    events = {}

    def write(event, **fields):
        events[event] = fields

    plan = Plan(batch_size=4, schedule="cosine", learning_rate=7.0)
    found = range_test(plan, write, "toy:toy", lowest=1e-4, highest=100, steps=60, train=64)
    rates, losses = events["range"]["rates"], events["range"]["losses"]
    assert 20 < len(losses) == len(rates) <= 60
    assert rates == pytest.approx(rules.growing(1e-4, 100, 60)[: len(rates)])
    assert losses[0] == pytest.approx(losses[1], rel=0.5)
    assert found["suggested_rate"] == found["between_rate"]
    assert 1e-3 < found["suggested_rate"] < 10
    # The first steps at so small a rate are those of the untrained network.
    half = range_test(plan.replace(grad_accumulation=2), write, "toy:toy", lowest=1e-4, highest=100,
                      steps=60, train=64)  # fmt: skip
    assert set(half) == set(found)


def test_the_command_prints_the_rules_and_leaves_a_plot(tmp_path, capsys):
    words = ["find-rate", "toy:toy", "batch_size=4", "--option", "train=64", "--lowest", "1e-4",
             "--highest", "100", "--steps", "60"]  # fmt: skip
    assert main([*words, "--results", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert said.startswith("suggested rate")
    assert said.count(" rate ") >= 5
    assert (tmp_path / "range.png").stat().st_size > 5000
    assert main([*words[:4], "train=64", "--lowest", "1", "--highest", "0.1",
                 "--results", str(tmp_path / "other")]) == 2  # fmt: skip
    assert "must be above 0 and grow" in capsys.readouterr().err
