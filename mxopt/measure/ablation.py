"""Ablation: how much each lever contributes to a speed-up, where levers interact.

Three figures for every lever. *Alone*: its effect when only this lever is added. *Left out*: what
is lost when only this lever is missing. *Share*: its part of the whole, averaged over the orders in
which the levers can be added (Shapley, "A value for n-person games", 1953). The effects alone and
left out do not multiply to the whole. The shares do: they are averages of logarithms, and their
product is the ratio of the first arm to the last.

Up to four levers are measured in every order, and the shares are exact. With more levers, orders
are sampled, each with its reverse, and the interval of a share includes the error of sampling.
"""

from __future__ import annotations

import itertools
import math
import random
from dataclasses import dataclass

import numpy as np

from mxopt.core.errors import PlanError
from mxopt.core.plan import Plan
from mxopt.measure.experiment import Experiment
from mxopt.measure.interleave import interleave, ladder
from mxopt.measure.statistics import Ratio, interval

# The largest number of levers that are measured in every order, which takes 2 ** 4 arms.
EXACT_LEVERS = 4
BEFORE, AFTER = "before", "after"


@dataclass(frozen=True)
class Ablation:
    """The effects of levers, computed from an experiment that has ``orders``.

    Attributes:
        experiment: has an arm for every step of every order; see :func:`arm_name`.
    """

    experiment: Experiment

    @property
    def orders(self) -> list[tuple[str, ...]]:
        """The orders in which the levers were added."""
        return [tuple(order) for order in self.experiment.orders]

    @property
    def levers(self) -> tuple[str, ...]:
        """The names of the levers, as in the first order."""
        return self.orders[0]

    @property
    def exact(self) -> bool:
        """Whether the orders are all possible ones."""
        return len(self.orders) == math.factorial(len(self.levers))

    def whole(self) -> Ratio | None:
        """Return how many times better all levers together are than none.

        Returns:
            None if one of the two arms has no figure.
        """
        return self.experiment.ratio(AFTER, BEFORE)

    def alone(self, lever: str) -> Ratio | None:
        """Return the effect of a lever that is added alone; None if an arm has no figure."""
        return self.experiment.ratio(arm_name([lever], self.levers), BEFORE)

    def left_out(self, lever: str) -> Ratio | None:
        """Return the effect of a lever added to all others; None if an arm has no figure."""
        others = [other for other in self.levers if other != lever]
        return self.experiment.ratio(AFTER, arm_name(others, self.levers))

    def share(self, lever: str) -> Ratio | None:
        """Return the share of a lever in the whole; None if an arm has no figure."""
        logs = {arm: np.log(self.experiment.figures(arm)) for arm in self.experiment.arms}
        if not all(map(len, logs.values())):
            return None
        gains = []
        for order in self.orders:
            place = order.index(lever)
            without, with_it = order[:place], order[: place + 1]
            gains.append(
                logs[arm_name(without, self.levers)] - logs[arm_name(with_it, self.levers)]
            )
        sign = 1 if self.experiment.better == "lower" else -1
        value, _, high = interval(sign * np.mean(gains, axis=0))
        half = high - value
        if not self.exact:
            # The orders are a sample: their spread widens the interval, as an independent error.
            # An order and its reverse are not independent; their mean is one value of the sample.
            means = np.mean(gains, axis=1).reshape(-1, 2).mean(axis=1)
            mean, _, high = interval(means)
            half = math.hypot(half, high - mean)
        ends = (float(np.exp(log)) for log in (value, value - half, value + half))
        return Ratio(*ends, len(gains[0]))

    def interaction(self) -> float:
        """Return the whole divided by the product of the effects of all levers alone.

        Returns:
            Below 1 the levers overlap; NaN if an arm has no figure.
        """
        alone = [self.alone(lever) for lever in self.levers]
        if not self.whole() or not all(alone):
            return math.nan
        return self.whole().value / math.prod(found.value for found in alone)


def arm_name(levers, all_levers) -> str:
    """Return the name of the arm that has certain levers.

    Args:
        levers: names of the levers that the arm has, in any order.
        all_levers: names of all levers of the ablation.

    Returns:
        ``before`` for none, ``after`` for all, otherwise their names joined by ``+``.
    """
    chosen = [lever for lever in all_levers if lever in set(levers)]
    if len(chosen) == len(all_levers):
        return AFTER
    return "+".join(chosen) or BEFORE


def orders(levers, samples: int = 12, seed: int = 0) -> list[tuple[str, ...]]:
    """Return the orders in which levers are added.

    Args:
        levers: names of the levers.
        samples: how many orders are sampled, reverses included, if there are more than four levers.
        seed: of the sampling.

    Returns:
        Every order of up to four levers, and of more levers if there are no more than ``samples``;
        otherwise a sample, each order followed by its reverse.

    Raises:
        PlanError: there are no levers.
    """
    levers = list(levers)
    if not levers:
        raise PlanError("an ablation needs at least one lever")
    if len(levers) <= EXACT_LEVERS or samples >= math.factorial(len(levers)):
        return list(itertools.permutations(levers))
    generator, found = random.Random(seed), [tuple(levers), tuple(levers[::-1])]
    while len(found) < samples:
        order = tuple(generator.sample(levers, len(levers)))
        if order not in found:
            found += [order, order[::-1]]
    return found


def ablate(
    name: str,
    workload: str,
    before: Plan,
    levers: dict[str, dict],
    *,
    options: dict | None = None,
    samples: int = 12,
    **how,
) -> Ablation:
    """Measure the arms of an ablation in interleaved runs.

    Args:
        name: name of the experiment, as for :func:`mxopt.measure.interleave`.
        workload: ``module:function``, as for :func:`mxopt.measure.interleave`.
        before: the plan without any lever.
        levers: ``{lever: {name: value}}``, what each changes: switches of the plan and options of
            the workload.
        options: options of the workload without any lever.
        samples: number of orders that are sampled if there are more than four levers.
        **how: other arguments of :func:`mxopt.measure.interleave`; it needs ``repeats`` and
            ``folder``.

    Returns:
        The measured ablation.

    Raises:
        PlanError: two levers change the same switch or option, or there are no levers.
    """
    changed = [key for changes in levers.values() for key in changes]
    twice = sorted({key for key in changed if changed.count(key) > 1})
    if twice:
        raise PlanError(f"two levers change {twice[0]}; make one lever of them")
    names = tuple(levers)
    chosen = orders(names, samples)
    coalitions = [order[:size] for order in chosen for size in range(len(names) + 1)]
    coalitions += [(lever,) for lever in names]
    coalitions += [tuple(other for other in names if other != lever) for lever in names]
    arms, arm_options = {}, {}
    for coalition in sorted(coalitions, key=len):
        arm = arm_name(coalition, names)
        changes = {key: value for lever in coalition for key, value in levers[lever].items()}
        plans, its_options = ladder(before, {arm: changes}, options or {}, workload)
        arms[arm], arm_options[arm] = plans[arm], its_options[arm]
    return Ablation(
        interleave(name, workload, arms, arm_options=arm_options, orders=chosen, pairs=[], **how)
    )
