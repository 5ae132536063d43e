"""Experiments: several arms of one workload, what was measured of them, and what that shows."""

from __future__ import annotations

import json
import os
import re
import statistics
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from mxopt.core import atomic, old_names, packed
from mxopt.core.errors import PlanError, RecordError
from mxopt.core.plan import Plan
from mxopt.core.records import Run, read_run
from mxopt.measure.files import DESCRIPTION, record_files
from mxopt.measure.statistics import Ratio, ratio


@dataclass(frozen=True)
class Experiment:
    """Several arms of one workload, measured in turns.

    Attributes:
        name: what it was measured as; ``title`` is what tables call it.
        workload, options: what every arm runs.
        arms: each arm's plan, the first one the baseline.
        arm_options: options of single arms that differ from ``options``.
        pairs: what is compared, as (baseline, arm): every arm with the first one if None is given,
            nothing if it is empty.
        figure: the figure that is compared, ``unit`` its unit, ``better`` its good direction.
        quality: a figure that must hold for a speed-up to be claimed, higher being better;
            ``margin`` is how much of it may be lost.
        target: a figure of epochs, higher being better; given, arms are compared as well by the
            time until they first reach what the baseline ended with (:func:`time_to_target`).
        orders: of an ablation, the orders in which its levers were added (``measure.ablation``).
        resumed: runs that an earlier, interrupted measurement had left.
        runs: each arm's runs, in order.
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
    pairs: list | None = None
    options: dict = field(default_factory=dict)
    arm_options: dict = field(default_factory=dict)
    orders: list = field(default_factory=list)
    resumed: int = 0
    runs: dict[str, list[Run]] = field(default_factory=dict)

    @property
    def baseline(self) -> str:
        """The name of the first arm."""
        return next(iter(self.arms))

    def compared(self) -> list[tuple[str, str]]:
        """Return the pairs of arms that are compared, as (baseline, arm)."""
        if self.pairs is None:
            return [(self.baseline, arm) for arm in self.arms if arm != self.baseline]
        return [tuple(pair) for pair in self.pairs]

    def factors(self, arm: str, baseline: str | None = None) -> dict[str, tuple]:
        """Return everything in which two arms differ: switches, then options of the workload.

        An option that is not given is called ``default``.
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
        """Make sure that two arms differ, and if a switch is named, in nothing but that one.

        Raises:
            PlanError: they do not differ, or what differs would not be the effect of that switch.
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
        """Return why an arm has no figure: the reason of its first run that did not end well."""
        bad = next((run for run in self.runs.get(arm, []) if not run.ok), None)
        if bad is None:
            return "" if self.runs.get(arm) else "not run"
        # A divergence and a refusal explain themselves; what failed or was killed is named so.
        explained = bad.status in ("diverged", "refused")
        return bad.reason if explained else f"{bad.status}: {bad.reason}"

    def figures(self, arm: str, figure: str | None = None) -> list[float]:
        """Return a figure of every run of an arm; empty if any of them did not end well.

        Times of a run that was resumed within are no evidence, and empty as well.
        """
        if self.why_not(arm) or ("second" in (figure or self.figure) and self.was_resumed(arm)):
            return []
        return [run.figures.get(figure or self.figure, float("nan")) for run in self.runs[arm]]

    def was_resumed(self, arm: str) -> bool:
        """Whether a run of an arm was interrupted and went on from a checkpoint."""
        return any("resumed_epochs" in run.figures for run in self.runs.get(arm, []))

    def median(self, arm: str, figure: str | None = None) -> float:
        """Return the median of a figure over an arm's runs, NaN if the arm has none."""
        figures = self.figures(arm, figure)
        return statistics.median(figures) if figures else float("nan")

    def ratio(
        self, arm: str, baseline: str | None = None, figure: str | None = None
    ) -> Ratio | None:
        """Return how many times better an arm is than the baseline; None if either has no figure.

        Args:
            arm, baseline: names of arms; the first arm is the baseline if none is given.
            figure: another figure than the experiment's, with the same good direction.
        """
        before = self.figures(baseline or self.baseline, figure)
        after = self.figures(arm, figure)
        if not before or not after:
            return None
        return ratio(before, after, self.better)

    def verdict(self, arm: str, baseline: str | None = None) -> str:
        """Say in a few words what the pair shows: speed, and whether quality holds."""
        baseline = baseline or self.baseline
        found = self.ratio(arm, baseline)
        if found is None:
            bad = next((a for a in (arm, baseline) if self.why_not(a)), None)
            if bad is None:
                return "a run was resumed: its times are no evidence"
            return f"{bad} {self.runs[bad][0].status if self.runs.get(bad) else 'was not run'}"
        return self.judge(found, arm, baseline)

    def judge(self, found: Ratio, arm: str, baseline: str) -> str:
        """Say what a ratio of two arms shows; faster is only faster where quality holds."""
        if not self.quality or found.verdict != "faster":
            return found.verdict
        before, after = self.median(baseline, self.quality), self.median(arm, self.quality)
        if after >= before - self.margin:
            return f"faster, {self.quality} holds"
        return f"faster, {self.quality} lost: {before:.3f} to {after:.3f}"

    def save(self, folder: str | os.PathLike) -> None:
        """Write what was measured (not the runs, which are records already) beside the records."""
        description = {key: value for key, value in vars(self).items() if key != "runs"}
        description["arms"] = {name: plan.as_dict() for name, plan in self.arms.items()}
        atomic.replace_text(Path(folder) / DESCRIPTION, json.dumps(description, indent=1) + "\n")


def read_experiment(path: str | os.PathLike) -> Experiment:
    """Read an experiment and the records of all its runs.

    Args:
        path: the folder that it was measured into, or the file that this was packed into.

    Raises:
        RecordError: it holds no experiment, or a record is damaged.
    """
    path = Path(path)
    is_packed = path.is_file()
    description, runs = packed.read_packed(path) if is_packed else ({}, {})
    try:
        if not is_packed:
            description = json.loads((path / DESCRIPTION).read_text(encoding="utf-8"))
        arms = _renamed(description)
        check_names(arms)
        description["workload"] = old_names.workload(description["workload"])
        experiment = Experiment(**description, arms=arms, runs=runs)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise RecordError(f"{path} does not hold a readable experiment: {error}") from None
    if not is_packed:
        for arm, records in record_files(path, arms).items():
            runs[arm] = [read_run(record) for record in records.values()]
    return experiment


def _renamed(description: dict) -> dict[str, Plan]:
    """Bring an experiment's description to today's names, and return the plans of its arms."""
    options, own = description.get("options", {}), description.get("arm_options", {})
    arms = {}
    for name, plan in description.pop("arms").items():
        switches, _ = old_names.renamed(plan, {**options, **own.get(name, {})})
        arms[name] = Plan.from_dict(switches)
    description["options"] = old_names.renamed({}, options)[1]
    description["arm_options"] = {arm: old_names.renamed({}, o)[1] for arm, o in own.items()}
    return arms


def check_names(arms: Iterable[str]) -> None:
    """Make sure that the arms' names can be part of a file's name.

    Raises:
        PlanError: one cannot.
    """
    for arm in arms:
        if not re.fullmatch(r"[\w.+-]+", arm):
            raise PlanError(f"arm {arm!r} names files: take letters, digits, and any of _ . + -")
