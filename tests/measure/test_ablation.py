import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from mxopt import report
from mxopt.core.errors import PlanError
from mxopt.core.plan import Plan
from mxopt.core.records import Run
from mxopt.measure import Experiment, read_experiment
from mxopt.measure.ablation import AFTER, BEFORE, Ablation, ablate, arm_name, orders
from mxopt.report import plots, results

LEVERS = ("a", "b", "c")


def ablation(seconds, levers=LEVERS, repeats=3, samples=12, better="lower"):
    """An ablation whose arm with some levers takes ``seconds(levers)``, the same in every run."""
    chosen = orders(levers, samples)
    arms = {arm_name(order[:size], levers): order[:size]
            for order in chosen for size in range(len(levers) + 1)}  # fmt: skip
    for lever in levers:
        arms.setdefault(lever, (lever,))
    runs = {
        arm: [Run(Path("x"), Plan(), "w", status="ok", figures={"seconds": seconds(set(chosen))})]
        * repeats
        for arm, chosen in arms.items()
    }
    arms = dict.fromkeys(arms, Plan())
    return Ablation(Experiment("e", "w", arms, better=better, orders=chosen, runs=runs))


def test_levers_that_do_not_touch_each_other_have_the_same_share_everywhere():
    factors = {"a": 2.0, "b": 1.5, "c": 1.0}
    found = ablation(lambda chosen: 60 / math.prod(factors[lever] for lever in chosen))
    assert found.exact
    for lever, factor in factors.items():
        for ratio in (found.share(lever), found.alone(lever)):
            assert ratio.value == pytest.approx(factor)
    assert found.whole().value == pytest.approx(3)
    assert found.interaction() == pytest.approx(1)


def test_a_lever_that_needs_another_shares_the_gain_with_it():
    found = ablation(lambda chosen: 1 if {"a", "b"} <= chosen else 4)
    assert found.alone("a").value == 1
    assert found.left_out("a") is None or found.left_out("a").value == 4
    assert found.share("a").value == found.share("b").value == pytest.approx(2)
    assert found.share("c").value == pytest.approx(1)
    assert found.interaction() == pytest.approx(4)


@given(st.dictionaries(st.frozensets(st.sampled_from(LEVERS)), st.floats(0.01, 100)))
def test_shares_multiply_to_the_whole(times):
    found = ablation(lambda chosen: times.get(frozenset(chosen), 1.0))
    product = math.prod(found.share(lever).value for lever in LEVERS)
    assert product == pytest.approx(found.whole().value)


def test_sampled_shares_multiply_to_the_whole_and_say_how_sure_they_are():
    levers = tuple("abcdef")
    found = ablation(lambda chosen: 100 - len(chosen) ** 2 - 20 * ("a" in chosen), levers)
    assert not found.exact
    assert len(found.orders) == 12
    shares = [found.share(lever) for lever in levers]
    assert math.prod(share.value for share in shares) == pytest.approx(found.whole().value)
    # Every run of an arm took the same time: what is left of the interval is the sample of orders.
    assert all(share.low < share.value < share.high for share in shares)


def test_orders_come_with_their_reverse():
    found = orders("abcdef", samples=10)
    assert len(set(found)) == 10
    assert all(order[::-1] in found for order in found)
    assert orders("abcdef", samples=10) == found
    assert found[0] == tuple("abcdef")
    with pytest.raises(PlanError, match="at least one lever"):
        orders([])


@pytest.mark.timeout(30)
@pytest.mark.parametrize("samples", [119, 120, 121, 1000])
def test_no_more_orders_are_sampled_than_there_are(samples):
    found = orders("abcde", samples)
    assert len(found) == len(set(found)) == 120


def test_an_order_and_its_reverse_count_once_in_the_interval():
    """Twelve orders are six independent pairs."""
    levers = tuple("abcdef")
    random = np.random.RandomState(0)
    times = {}
    found = ablation(
        lambda chosen: times.setdefault(frozenset(chosen), math.exp(random.normal())), levers
    )
    gains = np.array([
        math.log(times[frozenset(order[: order.index("a")])]
                 / times[frozenset(order[: order.index("a") + 1])])
        for order in found.orders
    ])  # fmt: skip
    pairs = gains.reshape(6, 2).mean(axis=1)
    half = stats.t.ppf(0.975, 5) * pairs.std(ddof=1) / math.sqrt(6)
    share = found.share("a")
    assert math.log(share.high / share.value) == pytest.approx(half)
    assert math.log(share.value / share.low) == pytest.approx(half)


def test_a_sample_of_orders_measured_once_has_no_error_of_the_runs():
    share = ablation(lambda chosen: 100 - len(chosen), tuple("abcdef"), repeats=1).share("a")
    assert (share.low, share.high) == (0, math.inf)


def test_throughput_is_better_when_higher():
    found = ablation(lambda chosen: 2.0 ** len(chosen), better="higher")
    assert found.share("a").value == pytest.approx(2)


def test_an_ablation_is_measured_and_shown(tmp_path, in_process):
    levers = {"batch": {"batch_size": 8}, "value": {"value": 2.0}}
    found = ablate("ablation", "toy:sleepy", Plan(), levers, repeats=1, folder=tmp_path)
    assert list(found.experiment.arms) == [BEFORE, "batch", "value", AFTER]
    assert found.experiment.factors("value") == {"value": ("default", 2.0)}
    assert found.experiment.arms[AFTER].batch_size == 8
    assert len(list((tmp_path / "ablation").glob("*.jsonl"))) == 4
    table = report.ablation(found)
    assert [row[0] for row in table.rows] == ["batch", "value", "all of them"]
    assert "every order" in table.caption
    assert Ablation(read_experiment(tmp_path / "ablation")).share("batch") == found.share("batch")
    assert "## ablation" in results.page(tmp_path)
    assert "every order" in results.page(tmp_path)
    axes = plots.waterfall(found).axes[0]
    assert len(axes.patches) == 3  # two levers, and both


def test_levers_that_change_the_same_switch_are_refused(tmp_path):
    levers = {"a": {"batch_size": 8}, "b": {"batch_size": 16}}
    with pytest.raises(PlanError, match="two levers change batch_size"):
        ablate("x", "toy:sleepy", Plan(), levers, repeats=1, folder=tmp_path)
    assert arm_name(["b", "a"], ("a", "b", "c")) == "a+b"
