"""Intervals cover the truth as often as they say, also where noise has heavy tails."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mxopt.measure import difference, ratio
from mxopt.measure.statistics import Ratio, interval

EXPERIMENTS = 20_000


def log_normal(random, shape):
    return random.normal(0, 0.1, shape)


def heavy_tails(random, shape):
    return 0.1 * random.standard_t(3, shape)


def occasional_slow_runs(random, shape):
    """Return noise of 5 %; in one run of ten, something else slows the machine down."""
    slow = random.uniform(size=shape) < 0.1
    return random.normal(0, 0.05, shape) + slow * random.exponential(0.7, shape)


def coverage(before, after, pairs, seed=0):
    """Return the share of simulated experiments whose interval contains the true ratio of 2.

    Both runs of a pair share a slowdown of the machine, which a paired interval must not see.
    """
    random = np.random.RandomState(seed)
    shape = EXPERIMENTS, pairs
    slowdown = np.exp(0.5 * random.standard_t(3, shape))
    first = 2 * slowdown * np.exp(before(random, shape))
    second = slowdown * np.exp(after(random, shape))
    _, low, high = interval(np.log(first / second))
    return float(np.mean((low <= math.log(2)) & (math.log(2) <= high)))


@pytest.mark.parametrize("noise", [log_normal, heavy_tails, occasional_slow_runs])
@pytest.mark.parametrize("pairs", [2, 3, 6, 12, 24])
def test_intervals_cover_the_truth_as_often_as_they_say(noise, pairs):
    found = coverage(noise, noise, pairs)
    print(f"{noise.__name__}, {pairs} pairs: {found:.3f}")
    assert found >= 0.93
    if noise is log_normal:
        assert found <= 0.97  # not by being too wide


def test_rare_slow_runs_of_one_arm_alone_are_a_known_limit():
    """Six runs mostly contain none of the rare slow runs that only one arm has.

    No interval of so few runs can know about them. The truth here includes them.
    """
    mean = 0.1 * 0.7  # of occasional_slow_runs
    found = coverage(lambda r, shape: occasional_slow_runs(r, shape) - mean, log_normal, 6)
    print(f"rare slow runs in one arm alone, 6 pairs: {found:.3f}")
    assert 0.75 < found < 0.9


def test_an_interval_is_students_t_on_logarithms():
    found = ratio(np.exp([0.1, 0.2, 0.3]), [1.0, 1.0, 1.0])
    half = 4.302653 * 0.1 / math.sqrt(3)  # the 97.5 % point of t with two degrees of freedom
    expected = [math.exp(value) for value in (0.2, 0.2 - half, 0.2 + half)]
    assert [found.value, found.low, found.high] == pytest.approx(expected, rel=1e-6)
    found = difference([0.5, 0.6, 0.7], [0.6, 0.8, 1.0])
    assert [found.value, found.low, found.high] == pytest.approx([0.2, 0.2 - half, 0.2 + half])
    assert str(found) == "+0.2000 [-0.0484, +0.4484], n = 3"


def test_one_pair_says_nothing_about_its_error():
    assert (ratio([2.0], [1.0]).low, ratio([2.0], [1.0]).high) == (0, math.inf)
    assert (difference([2.0], [1.0]).low, difference([2.0], [1.0]).high) == (-math.inf, math.inf)


def test_ratio_is_the_geometric_mean_of_pairs():
    assert ratio([4, 9], [2, 3]).value == pytest.approx(6**0.5)
    assert ratio([2, 3], [4, 9], better="higher").value == pytest.approx(6**0.5)


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        ([2.0, 2.1, 1.9], [1.0, 1.0, 1.0], "faster"),
        ([1.0, 1.0, 1.0], [2.0, 2.1, 1.9], "slower"),
        ([1.0, 2.0, 1.0], [2.0, 1.0, 1.1], "not significant"),
        ([5.0], [1.0], "not significant"),
        ([2.0, 2.1, 1.9, 2.0, 2.2, 2.0], [1.0] * 6, "faster"),
        # A percentile bootstrap of these six pairs excludes 1: [1.01, 1.17].
        ([1.0, 1.02, 1.26, 1.21, 1.0, 1.06], [1.0] * 6, "not significant"),
    ],
)
def test_a_speed_up_is_claimed_only_if_the_interval_leaves_out_one(before, after, verdict):
    assert ratio(before, after).verdict == verdict


def test_one_pair_is_shown_without_an_interval():
    assert str(ratio([3.0], [2.0])) == "1.50 (no interval), n = 1"
    assert str(difference([0.5], [0.75])) == "+0.2500 (no interval), n = 1"
    assert str(ratio([3.0, 3.0], [2.0, 2.0])) == "1.50 [1.50, 1.50], n = 2"
    assert str(difference([0.5, 0.5], [0.25, 0.25])) == "-0.2500 [-0.2500, -0.2500], n = 2"


@pytest.mark.parametrize(
    ("value", "low", "high", "shown"),
    [
        (1.25, 1.004, 1.5, "1.250 [1.004, 1.500]"),  # not [1.00, 1.50], which may contain 1 or not
        (0.99, 0.98, 0.9998, "0.9900 [0.9800, 0.9998]"),
        (1.02, 0.997, 1.04, "1.020 [0.997, 1.040]"),
        (1.0, 1.0, 1.0, "1.00 [1.00, 1.00]"),  # such as equal numbers of steps
        (1.1, 1.0, 1.2, "1.10 [1.00, 1.20]"),
        (1.0, 0.999999, 1.000001, "1.00 [1.00, 1.00]"),
        (1.0, 0.99, 1.01, "1.00 [0.99, 1.01]"),
    ],
)
def test_an_end_of_a_ratio_is_not_rounded_to_1(value, low, high, shown):
    assert str(Ratio(value, low, high, 6)) == f"{shown}, n = 6"


@pytest.mark.parametrize("bad", [[math.nan], [0.0], [-1.0], [math.inf], []])
def test_a_ratio_of_no_figures_is_refused(bad):
    with pytest.raises(ValueError, match="positive figures"):
        ratio(bad, [1.0])


@pytest.mark.parametrize("bad", [[math.nan], [math.inf], []])
def test_a_difference_of_no_figures_is_refused(bad):
    with pytest.raises(ValueError, match="finite figures"):
        difference(bad, [1.0])


@given(st.lists(st.floats(0.1, 10), min_size=2, max_size=12))
def test_arms_that_change_places_invert_the_ratio_and_its_interval(figures):
    forth, back = ratio(figures, [1.0] * len(figures)), ratio([1.0] * len(figures), figures)
    inverse = 1 / forth.value, 1 / forth.high, 1 / forth.low
    assert (back.value, back.low, back.high) == pytest.approx(inverse)
