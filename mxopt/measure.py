"""Measuring: child processes, interleaved repeats, ratios with intervals.

Engine, threads and AMP belong to a process, so every run gets a process of its own. Arms take
turns (A B A B ...), so that a machine that slows down slows all of them. What is claimed is the
ratio of paired runs, with a 95 % interval and the number of pairs.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import statistics
import subprocess
import sys
import traceback
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from mxopt import engine, progress
from mxopt.errors import MxoptError, PlanError, RecordError
from mxopt.plan import Plan
from mxopt.records import FORMAT, RecordWriter, Run, read_run

CONFIDENCE = 0.95
# Below six pairs even the extremes of a bootstrap hold less than 95 %: 1 - 2 ** (1 - n).
PAIRS_FOR_BOOTSTRAP = 6
RESAMPLES = 9999


def run(workload: str, plan: Plan, record: str | os.PathLike, options: dict | None = None) -> Run:
    """Run a workload under a plan in a process of its own and return its record.

    Args:
        workload: ``module:function``; called as ``function(plan, write, **options)`` and returns
            a dictionary of figures.
        plan: its engine and threads become the environment of the process.
        record: the file to be written; it must not exist.
        options: JSON-able arguments of the workload.

    Returns:
        The run, whatever became of it: look at ``run.status``.

    Raises:
        RecordError: the record exists, or cannot be written.
        DeviceError: as for ``mxopt.engine.environment``.
    """
    job = {"workload": workload, "plan": plan.as_dict(), "options": options or {}}
    job["record"] = os.fspath(Path(record).absolute())
    RecordWriter(record).close()
    Path(record).unlink()
    child = subprocess.run(
        [sys.executable, "-m", "mxopt.measure"],
        input=json.dumps(job),
        env={**os.environ, **engine.environment(plan)},
        text=True,
        capture_output=True,
    )
    if not Path(record).exists():
        last = (child.stderr.strip().splitlines() or ["no message"])[-1]
        with RecordWriter(record) as writer:
            writer.write("start", format=FORMAT, **{k: v for k, v in job.items() if k != "record"})
            writer.write("end", status="failed", reason=last, figures={})
    return read_run(record)


def _child() -> None:
    """Do one job, read from standard input, and leave its record."""
    job = json.load(sys.stdin)
    plan = Plan.from_dict(job["plan"])
    with RecordWriter(job["record"]) as writer:
        writer.write("start", format=FORMAT, **{k: v for k, v in job.items() if k != "record"})
        figures, status, reason = {}, "ok", ""
        try:
            engine.check(plan)
            import mxnet  # noqa: F401  (its version and threads are part of the environment)

            from mxopt import hardware
            from mxopt.training import Diverged

            writer.write("environment", **hardware.environment())
            module, _, function = job["workload"].partition(":")
            workload = getattr(importlib.import_module(module), function)
            figures = workload(plan, writer.write, **job["options"])
        except MxoptError as error:
            status, reason = "refused", str(error)
        except Exception as error:
            diverged = type(error).__name__ == "Diverged" and isinstance(error, Diverged)
            status = "diverged" if diverged else "failed"
            reason = str(error) if diverged else f"{type(error).__name__}: {error}"
            writer.write("traceback", text=traceback.format_exc())
        writer.write("end", status=status, reason=reason, figures=figures)


@dataclass(frozen=True)
class Ratio:
    """How many times better the second arm was, pair by pair.

    Attributes:
        value: geometric mean of the pairs' ratios; above 1 means better.
        low, high: its 95 % interval.
        pairs: how many pairs of runs it is made of.
    """

    value: float
    low: float
    high: float
    pairs: int

    @property
    def verdict(self) -> str:
        """``faster``, ``slower`` or ``not significant``, by whether the interval leaves out 1."""
        if self.low > 1:
            return "faster"
        return "slower" if self.high < 1 else "not significant"

    def __str__(self):
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}], n = {self.pairs}"


def ratio(before, after, better: str = "lower") -> Ratio:
    """Return the ratio of paired figures with its 95 % interval.

    The logarithms of the ratios are averaged. From six pairs on the interval is a percentile
    bootstrap (Efron, 1979); with fewer, where a bootstrap cannot reach 95 %, it is Student's t on
    the same logarithms, which is wider. One pair has no interval: it is (0, inf).

    Args:
        before, after: figures of the runs, paired by position; all above 0.
        better: ``lower`` for seconds, ``higher`` for throughput.

    Raises:
        ValueError: there are no pairs, or a figure is not a positive number.
    """
    from scipy import stats

    before, after = np.asarray(before, float), np.asarray(after, float)
    pairs = min(len(before), len(after))
    before, after = before[:pairs], after[:pairs]
    if not pairs or not (np.isfinite([before, after]).all() and (before > 0).all()
                         and (after > 0).all()):  # fmt: skip
        raise ValueError(f"a ratio needs pairs of positive figures, not {before} and {after}")
    logs = np.log(before / after) if better == "lower" else np.log(after / before)
    mean = logs.mean()
    if pairs == 1:
        low, high = -np.inf, np.inf
    elif pairs < PAIRS_FOR_BOOTSTRAP or np.ptp(logs) == 0:
        half = stats.t.ppf((1 + CONFIDENCE) / 2, pairs - 1) * stats.sem(logs)
        low, high = mean - half, mean + half
    else:
        low, high = stats.bootstrap(
            (logs,), np.mean, confidence_level=CONFIDENCE, n_resamples=RESAMPLES,
            method="percentile", random_state=0,
        ).confidence_interval  # fmt: skip
    return Ratio(*(float(np.exp(value)) for value in (mean, low, high)), pairs)


@dataclass(frozen=True)
class Experiment:
    """Several arms of one workload, measured in turns.

    Attributes:
        name: the folder its records are in; ``title`` is what tables call it.
        workload, options: what every arm runs.
        arms: each arm's plan, the first one the baseline.
        arm_options: options of single arms that differ from ``options``.
        pairs: what is compared, as (baseline, arm); every arm with the first one if not said.
        figure: the figure that is compared, ``unit`` its unit, ``better`` its good direction.
        quality: a figure that must hold for a speed-up to be claimed, higher being better;
            ``margin`` is how much of it may be lost.
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
    pairs: list = field(default_factory=list)
    options: dict = field(default_factory=dict)
    arm_options: dict = field(default_factory=dict)
    runs: dict[str, list[Run]] = field(default_factory=dict)

    @property
    def baseline(self) -> str:
        """The name of the first arm."""
        return next(iter(self.arms))

    def compared(self) -> list[tuple[str, str]]:
        """Return the pairs of arms that are compared, as (baseline, arm)."""
        others = [arm for arm in self.arms if arm != self.baseline]
        return [tuple(pair) for pair in self.pairs] or [(self.baseline, arm) for arm in others]

    def factors(self, arm: str, baseline: str | None = None) -> dict[str, tuple]:
        """Return everything in which two arms differ: switches, then options."""
        baseline = baseline or self.baseline
        mine, theirs = ({**self.options, **self.arm_options.get(a, {})} for a in (baseline, arm))
        options = {
            name: (mine.get(name), theirs.get(name))
            for name in {**mine, **theirs}
            if mine.get(name) != theirs.get(name)
        }
        return {**self.arms[baseline].diff(self.arms[arm]), **options}

    def why_not(self, arm: str) -> str:
        """Return why an arm has no figure: the reason of its first run that did not end well."""
        bad = next((run for run in self.runs.get(arm, []) if not run.ok), None)
        return f"{bad.status}: {bad.reason}" if bad else "" if self.runs.get(arm) else "not run"

    def figures(self, arm: str, figure: str | None = None) -> list[float]:
        """Return a figure of every run of an arm; empty if any of them did not end well."""
        if self.why_not(arm):
            return []
        return [run.figures.get(figure or self.figure, float("nan")) for run in self.runs[arm]]

    def median(self, arm: str, figure: str | None = None) -> float:
        """Return the median of a figure over an arm's runs, NaN if the arm has none."""
        figures = self.figures(arm, figure)
        return statistics.median(figures) if figures else float("nan")

    def ratio(self, arm: str, baseline: str | None = None, figure: str | None = None,
              better: str | None = None) -> Ratio | None:  # fmt: skip
        """Return how many times better an arm is than the baseline; None if either has no figure.

        Args:
            arm, baseline: names of arms; the first arm is the baseline if none is given.
            figure, better: another figure than the experiment's, and its good direction.
        """
        before = self.figures(baseline or self.baseline, figure)
        after = self.figures(arm, figure)
        if not before or not after:
            return None
        return ratio(before, after, better or self.better)

    def verdict(self, arm: str, baseline: str | None = None) -> str:
        """Say in a few words what the pair shows: speed, and whether quality holds."""
        baseline = baseline or self.baseline
        found = self.ratio(arm, baseline)
        if found is None:
            bad = arm if self.why_not(arm) else baseline
            return f"not measured ({bad}: {self.why_not(bad)})"
        if not self.quality or found.verdict != "faster":
            return found.verdict
        before, after = self.median(baseline, self.quality), self.median(arm, self.quality)
        holds = after >= before - self.margin
        return f"faster, {self.quality} {'holds' if holds else f'lost: {before:.3f} to {after:.3f}'}"

    def save(self, folder: str | os.PathLike) -> None:
        """Write what was measured (not the runs, which are records already) beside the records."""
        description = {
            key: getattr(self, key)
            for key in ("name", "workload", "title", "figure", "unit", "better", "quality", "margin",
                        "pairs", "options", "arm_options")
        }  # fmt: skip
        description["arms"] = {name: plan.as_dict() for name, plan in self.arms.items()}
        path = Path(folder) / "experiment.json"
        path.write_text(json.dumps(description, indent=1) + "\n", encoding="utf-8")


def read_experiment(folder: str | os.PathLike) -> Experiment:
    """Read an experiment and the records of all its runs.

    Raises:
        RecordError: it is not an experiment's folder, or a record is damaged.
    """
    folder = Path(folder)
    try:
        description = json.loads((folder / "experiment.json").read_text(encoding="utf-8"))
        arms = {name: Plan.from_dict(plan) for name, plan in description.pop("arms").items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise RecordError(f"{folder} does not hold a readable experiment: {error}") from None
    runs = {
        arm: [read_run(path) for path in sorted(folder.glob(f"{arm}-[0-9][0-9].jsonl"))]
        for arm in arms
    }
    return Experiment(**description, arms=arms, runs=runs)


def interleave(
    name: str,
    workload: str,
    arms: dict[str, Plan],
    *,
    repeats: int,
    folder: str | os.PathLike,
    options: dict | None = None,
    arm_options: dict | None = None,
    **description,
) -> Experiment:
    """Run every arm once, then every arm again, ``repeats`` times, and keep all of it.

    Args:
        name: the experiment's name; its records go to ``folder/name``, as ``arm-01.jsonl``.
        workload: as for :func:`run`.
        arms: plans by name; the first is the baseline.
        repeats: runs of each arm.
        folder: where experiments are kept.
        options: arguments of the workload; ``arm_options`` replaces some for single arms.
        description: the other attributes of :class:`Experiment`, such as ``title``.

    Raises:
        RecordError: there is an experiment of that name already.
        PlanError: an arm's name cannot be part of a file's name.
    """
    for arm in arms:
        if not re.fullmatch(r"[\w.+-]+", arm):
            raise PlanError(f"arm {arm!r} names files: take letters, digits, and any of _ . + -")
    home = Path(folder) / name
    experiment = Experiment(
        name, workload, arms, options=options or {}, arm_options=arm_options or {},
        runs={arm: [] for arm in arms}, **description,
    )  # fmt: skip
    label = experiment.title or name
    with progress.track(label, repeats * len(arms)) as step:
        for repeat in range(1, repeats + 1):
            for arm, plan in arms.items():
                step(f"{arm}, run {repeat} of {repeats}")
                both = {**experiment.options, **experiment.arm_options.get(arm, {})}
                done = run(workload, plan, home / f"{arm}-{repeat:02d}.jsonl", both)
                experiment.runs[arm].append(done)
                if repeat == 1:
                    experiment.save(home)
    return experiment


if __name__ == "__main__":
    _child()
