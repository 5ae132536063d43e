"""Ablation: how much of a speed-up is each lever's, when levers lean on each other.

Three answers for every lever. *Alone*: what it gives on top of nothing. *Left out*: what is lost
when it alone is missing from all. *Share*: its part of the whole, averaged over the orders in which
the levers can be added (Shapley, "A value for n-person games", 1953). Alone and left out do not
make up the whole; shares do: they are averaged as logarithms, and multiplied they are the ratio of
the first arm to the last.

With few levers every order counts and the shares are exact. With more, orders are sampled, each
with its reverse, and ``sampled`` says how many; the interval of a share then holds that error too.
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
from mxopt.measure.statistics import Ratio, ratio

# 2 ** 4 arms are the most that all orders together may need.
EXACT_LEVERS = 4
BEFORE, AFTER = "before", "after"


@dataclass(frozen=True)
class Ablation:
    """What an experiment with ``orders`` says of its levers.

    Attributes:
        experiment: every arm that an order passes through; see :func:`arm_name`.
    """

    experiment: Experiment

    @property
    def orders(self) -> list[tuple[str, ...]]:
        """The orders in which the levers were added."""
        return [tuple(order) for order in self.experiment.orders]

    @property
    def levers(self) -> tuple[str, ...]:
        """The levers' names, in the first order."""
        return self.orders[0]

    @property
    def exact(self) -> bool:
        """Whether the orders are all that there are."""
        return len(self.orders) == math.factorial(len(self.levers))

    def whole(self) -> Ratio | None:
        """Return how many times better all levers together are than none."""
        return self.experiment.ratio(AFTER, BEFORE)

    def alone(self, lever: str) -> Ratio | None:
        """Return what a lever gives on top of nothing."""
        return self.experiment.ratio(arm_name([lever], self.levers), BEFORE)

    def left_out(self, lever: str) -> Ratio | None:
        """Return what a lever gives on top of all others."""
        others = [other for other in self.levers if other != lever]
        return self.experiment.ratio(AFTER, arm_name(others, self.levers))

    def share(self, lever: str) -> Ratio | None:
        """Return a lever's part of the whole; None if an arm has no figure."""
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
        runs = np.mean(gains, axis=0)
        found = ratio(np.exp(sign * runs), np.ones_like(runs))
        if self.exact:
            return found
        # The orders are a sample: their spread widens the interval, the two errors independent.
        spread = 1.96 * np.std(np.mean(gains, axis=1), ddof=1) / math.sqrt(len(self.orders))
        low, high = (math.hypot(math.log(end / found.value), spread) for end in
                     (found.low, found.high))  # fmt: skip
        return Ratio(found.value, found.value * math.exp(-low), found.value * math.exp(high),
                     found.pairs)  # fmt: skip

    def interaction(self) -> float:
        """Return the whole divided by the product of all levers alone: below 1, they overlap."""
        alone = [self.alone(lever) for lever in self.levers]
        if not self.whole() or not all(alone):
            return math.nan
        return self.whole().value / math.prod(found.value for found in alone)


def arm_name(levers, all_levers) -> str:
    """Return the arm with these levers: ``before``, ``after``, or their names joined by ``+``."""
    chosen = [lever for lever in all_levers if lever in set(levers)]
    if len(chosen) == len(all_levers):
        return AFTER
    return "+".join(chosen) or BEFORE


def orders(levers, samples: int = 12, seed: int = 0) -> list[tuple[str, ...]]:
    """Return every order of up to four levers; of more, ``samples`` orders with their reverses.

    Raises:
        PlanError: there are no levers.
    """
    levers = list(levers)
    if not levers:
        raise PlanError("an ablation needs at least one lever")
    if len(levers) <= EXACT_LEVERS:
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
    """Measure every arm that the levers' orders pass through, in turns.

    Args:
        name, workload: as for :func:`mxopt.measure.interleave`.
        before: the plan without any lever.
        levers: for each what it changes: switches of the plan, and options of the workload.
        options: of the workload, without any lever.
        samples: orders, if there are too many to run all.
        how: what :func:`mxopt.measure.interleave` takes, ``repeats`` and ``folder`` at least.

    Raises:
        PlanError: two levers change the same thing, so that their order would matter.
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
