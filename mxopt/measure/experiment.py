"""Experiments: several arms of one workload, their runs, and ratios and verdicts from these."""

from __future__ import annotations

import json
import os
import re
import statistics
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from mxopt.core import atomic
from mxopt.core.errors import PlanError
from mxopt.core.plan import Plan
from mxopt.core.records import Run
from mxopt.measure import claims
from mxopt.measure.files import DESCRIPTION
from mxopt.measure.statistics import Ratio, ratio

AGAIN = "-again"


@dataclass(frozen=True)
class Experiment:
    """Several arms of one workload, measured in interleaved runs.

    Attributes:
        name: its name on disk.
        workload: what every arm runs, ``module:function``.
        arms: the plan of each arm, by name; the first arm is the baseline.
        title: its name in tables; ``name`` if empty.
        figure: the figure that is compared.
        unit: unit of the figure.
        better: ``lower`` or ``higher``, which figures are better.
        quality: a figure that must hold for a speed-up to be claimed, higher being better; empty
            for none.
        margin: how much of ``quality`` may be lost.
        target: a figure of epochs, higher being better. If given, arms are also compared by the
            time until they first reach ``goal`` (:func:`time_to_target`).
        goal: value of ``target`` to be reached, fixed before measuring and the same for all seeds.
        pairs: the pairs that are compared, as (baseline, arm); None compares every arm with the
            first one, an empty list compares nothing.
        headline: the pairs for the README, as (baseline, arm), named before measuring.
        again: name of the arm that repeats another arm, called ``<arm>-again``. The ratio of the
            two shows the noise of the measurement itself (A/A). Empty for none.
        planned: number of runs of each arm, fixed before measuring; 0 if an old description does
            not have it.
        seeds: whether each repeat has its own seed, the same for every arm.
        options: options of the workload, for all arms.
        arm_options: ``{arm: options}``, added to ``options`` for single arms.
        orders: for an ablation, the orders in which its levers were added (``measure.ablation``).
        resumed: number of runs that were read from an earlier, interrupted measurement.
        runs: the runs of each arm, in order.
    """

    name: str
    workload: str
    arms: dict[str, Plan]
    title: str = ""
    figure: str = "seconds"
    unit: str = "s"
    better: str = "lower"
    quality: str = ""
    margin: float = 0.0
    target: str = ""
    goal: float | None = None
    pairs: list | None = None
    headline: list = field(default_factory=list)
    again: str = ""
    planned: int = 0
    seeds: bool = False
    options: dict = field(default_factory=dict)
    arm_options: dict = field(default_factory=dict)
    orders: list = field(default_factory=list)
    resumed: int = 0
    runs: dict[str, list[Run]] = field(default_factory=dict)

    @property
    def baseline(self) -> str:
        """The name of the first arm."""
        return next(iter(self.arms))

    @property
    def same_arms(self) -> tuple[str, str] | None:
        """The A/A pair: an arm, and the arm that repeats it; None without one."""
        return (self.again.removesuffix(AGAIN), self.again) if self.again else None

    def compared(self) -> list[tuple[str, str]]:
        """Return the pairs of arms that are compared, as (baseline, arm); the A/A pair is last."""
        if self.pairs is None:
            others = [arm for arm in self.arms if arm not in (self.baseline, self.again)]
            pairs = [(self.baseline, arm) for arm in others]
        else:
            pairs = [tuple(pair) for pair in self.pairs]
        return [*pairs, self.same_arms] if pairs and self.again else pairs

    def factors(self, arm: str, baseline: str | None = None) -> dict[str, tuple]:
        """Return everything in which two arms differ: switches, then options of the workload.

        Args:
            arm: name of the arm.
            baseline: name of the arm it is compared with; the first one if None.

        Returns:
            ``{name: (baseline's value, arm's value)}``; an option that is not given is shown as
            ``default``.
        """
        baseline = baseline or self.baseline
        mine, theirs = ({**self.options, **self.arm_options.get(a, {})} for a in (baseline, arm))
        options = {
            name: (mine.get(name, "default"), theirs.get(name, "default"))
            for name in {**mine, **theirs}
            if mine.get(name) != theirs.get(name)
        }
        return {**self.arms[baseline].diff(self.arms[arm]), **options}

    def check_effect(self, arm: str, switch: str | None = None) -> None:
        """Make sure that an arm differs from the first one, and only in the named switch.

        Args:
            arm: name of the arm.
            switch: the only switch or option that may differ; None allows any.

        Raises:
            PlanError: they do not differ, or differ in something other than ``switch``.
        """
        differing = self.factors(arm)
        if not differing:
            raise PlanError(f"{arm} is the same as {self.baseline}: give it something to change")
        others = [name for name in differing if name != switch]
        if switch and (others or switch not in differing):
            raise PlanError(
                f"this would not be the effect of {switch}, for what differs is "
                f"{', '.join(differing)}; change {switch} alone, or ask for no effect"
            )

    def why_not(self, arm: str) -> str:
        """Return why an arm has no figure: the reason of its first run that did not succeed.

        Returns:
            Empty if all of its runs succeeded.
        """
        bad = next((run for run in self.runs.get(arm, []) if not run.ok), None)
        if bad is None:
            return "" if self.runs.get(arm) else "not run"
        # The reasons of a divergence and of a refusal are complete without the status.
        explained = bad.status in ("diverged", "refused")
        return bad.reason if explained else f"{bad.status}: {bad.reason}"

    def figures(self, arm: str, figure: str | None = None) -> list[float]:
        """Return a figure of every run of an arm.

        Args:
            arm: name of the arm.
            figure: name of the figure; the experiment's if None.

        Returns:
            Empty if a run did not succeed. Times are empty as well if a run was resumed from a
            checkpoint, because they are then not comparable.
        """
        if self.why_not(arm) or ("second" in (figure or self.figure) and self.was_resumed(arm)):
            return []
        return [run.figures.get(figure or self.figure, float("nan")) for run in self.runs[arm]]

    def was_resumed(self, arm: str) -> bool:
        """Return whether a run of an arm was interrupted and resumed from a checkpoint."""
        return any("resumed_epochs" in run.figures for run in self.runs.get(arm, []))

    def median(self, arm: str, figure: str | None = None) -> float:
        """Return the median of a figure over the runs of an arm.

        Args:
            arm: name of the arm.
            figure: name of the figure; the experiment's if None.

        Returns:
            The median, or NaN if the arm has no figures.
        """
        figures = self.figures(arm, figure)
        return statistics.median(figures) if figures else float("nan")

    def ratio(
        self, arm: str, baseline: str | None = None, figure: str | None = None
    ) -> Ratio | None:
        """Return how many times better an arm is than the baseline.

        Args:
            arm: name of the arm.
            baseline: name of the arm it is compared with; the first one if None.
            figure: name of the figure, better in the same direction as the experiment's, which is
                taken if None.

        Returns:
            The ratio of paired runs, or None if either arm has no figures.
        """
        before = self.figures(baseline or self.baseline, figure)
        after = self.figures(arm, figure)
        if not before or not after:
            return None
        return ratio(before, after, self.better)

    def unfinished(self, arm: str, baseline: str) -> str:
        """Return how many of the planned runs two arms have; empty if they have all of them.

        A result that is read before all planned runs are there could be picked by its value.

        Args:
            arm: name of the arm.
            baseline: name of the arm it is compared with.
        """
        done = min(len(self.runs.get(name, [])) for name in (arm, baseline))
        return f"unfinished: {done} of {self.planned} planned runs" if done < self.planned else ""

    def verdict(self, arm: str, baseline: str | None = None) -> str:
        """Return what a pair of arms shows: its speed, and whether start and quality are equal.

        Args:
            arm: name of the arm.
            baseline: name of the arm it is compared with; the first one if None.

        Returns:
            A few words, such as ``faster, test_mIoU holds`` (:mod:`mxopt.measure.claims`); why
            there is no ratio, if there is none.
        """
        baseline = baseline or self.baseline
        found = self.ratio(arm, baseline)
        if found is None:
            bad = next((a for a in (arm, baseline) if self.why_not(a)), None)
            if bad is None:
                return "a run was resumed: its times are no evidence"
            return f"{bad} {self.runs[bad][0].status if self.runs.get(bad) else 'was not run'}"
        return self.judge(found, arm, baseline)

    def judge(self, found: Ratio, arm: str, baseline: str) -> str:
        """Return what a ratio of two arms shows (:func:`mxopt.measure.claims.judge`).

        Args:
            found: the ratio.
            arm: name of the arm.
            baseline: name of the arm it is compared with.
        """
        return self.unfinished(arm, baseline) or claims.judge(self, found, arm, baseline)

    def save(self, folder: str | os.PathLike) -> None:
        """Write the description of the experiment beside its records, without the runs."""
        description = {key: value for key, value in vars(self).items() if key != "runs"}
        description["arms"] = {name: plan.as_dict() for name, plan in self.arms.items()}
        atomic.replace_text(Path(folder) / DESCRIPTION, json.dumps(description, indent=1) + "\n")


def check_names(arms: Iterable[str]) -> None:
    """Make sure that the names of arms can be part of file names.

    Raises:
        PlanError: a name has characters other than letters, digits and ``_ . + -``.
    """
    for arm in arms:
        if not re.fullmatch(r"[\w.+-]+", arm):
            raise PlanError(f"arm {arm!r} names files: take letters, digits, and any of _ . + -")
