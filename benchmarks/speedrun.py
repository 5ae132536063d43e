"""``docs/records/fashion_mnist.md``: the time to two accuracies, one change after the other.

Each measurement is one file of records in ``docs/records/fashion_mnist``, named after its day. The
page is generated from them: ``python -m benchmarks.speedrun``; a new measurement is added with
``python -m benchmarks.speedrun FOLDER``, the folder of ``python -m benchmarks fashion_mnist``.
"""

from __future__ import annotations

import dataclasses
import statistics
import sys
from pathlib import Path

from benchmarks import given
from benchmarks.beside import is_peer
from benchmarks.goal import GOAL
from mxopt import measure, report
from mxopt.core import atomic
from mxopt.measure import Experiment, time_to_target
from mxopt.measure.target import bounded
from mxopt.report.tables import factors

RECORDS = Path(__file__).parents[1] / "docs" / "records"
NAME = "fashion_mnist"
ABOUT = """# Fashion-MNIST on two cores

How fast does the network of [the guide](../../guides/accelerate_training.ipynb) learn to tell
garments apart? The clock runs while images are prepared and while the network is trained,
compilation included; it stands still during validation, and while Python and the libraries are
imported and files are read. The goals are accuracies on the 6,000 images of the validation split,
chosen before measuring, and are looked for ten times an epoch. Every run begins with new weights;
arms that are compared have the same ones, and the same order of images, in each pair of runs. The
test accuracy is that at the end of the run. Batch size, learning rate and schedule were chosen in
trainings of mxopt with a seed that is not measured, whose records were not kept; PyTorch is given
the same ones.

How many times sooner an arm reaches 91 % is the product of two ratios: how many times faster a step
is, preparation of the images included, and how many times fewer steps it needs. From `batch-256` on
a step has four times as many images. Arms that do not change what is learned still round
differently, so that the accuracy may cross the goal some checks earlier or later: for these, only
the time of a step says which is faster.

Each row adds one change to the row before it, but for the last one, *A/A*: it repeats the arm of
the row before, and shows the noise of the measurement. *Log* is the file with all events of the
runs. The newest measurement comes first; others are of other processors and older levers, so
compare within one.

To measure it yourself: `make peers`, then
`python -m benchmarks fashion_mnist --folder results/mine`, {minutes} minutes on the processor of
the newest measurement.
A record of yours is welcome: add a lever to `GOAL` in `benchmarks/goal.py`, measure, run
`python -m benchmarks.speedrun results/mine`, and send both files."""


def add(folder: Path, records: Path = RECORDS / NAME) -> Path:
    """Pack a new measurement beside the others, and return its file.

    Args:
        folder: the folder that ``python -m benchmarks fashion_mnist --folder`` has filled.
        records: the folder with a file for each measurement.

    Raises:
        FileExistsError: there is a measurement of that day.
        FileNotFoundError: the folder has none.
    """
    found = [path for path in folder.glob(f"records/*/{NAME}") if path.is_dir()]
    if not found:
        raise FileNotFoundError(f"there is no measurement of {NAME} below {folder}/records")
    experiment = measure.read_experiment(found[0])
    path = records / f"{_day(experiment)}.jsonl"
    if path.exists():
        raise FileExistsError(f"{path} is a measurement of the same day; move it first")
    records.mkdir(parents=True, exist_ok=True)
    measure.pack(found[0], path)
    return path


def text(records: Path = RECORDS / NAME) -> str:
    """Return the page's Markdown, the newest measurement first.

    Args:
        records: the folder with a file for each measurement.
    """
    known = {
        path: measure.read_experiment(path)
        for path in sorted(records.glob("*.jsonl"), reverse=True)
    }
    newest = next(iter(known.values()))
    ends = [run.events[-1]["at"] for runs in newest.runs.values() for run in runs]
    minutes = round(sum(ends) / 60)
    parts = [ABOUT.format(minutes=minutes)]
    for path, experiment in known.items():
        first = experiment.runs[experiment.baseline][0]
        cpu = first.only("environment")["cpu"]
        parts += [
            f"## {_day(experiment)}, {cpu['model']}, {cpu['logical_cores']} cores",
            str(ladder(experiment, f"{records.name}/{path.name}")),
            whole(experiment),
            *noise(experiment),
            "PyTorch with the settings of the last row. *Times sooner* is that of this row:",
            str(peers(experiment)),
        ]
    return "\n\n".join(parts) + "\n"


def ladder(experiment: Experiment, log: str) -> report.Table:
    """Return a table of mxopt's arms, one for each change, and of the A/A pair.

    Args:
        experiment: the measurement.
        log: its file, as the page links to it.
    """
    names, rows = own(experiment), []
    steps = [(str(number), *pair) for number, pair in enumerate(zip([None, *names], names), 1)]
    if experiment.again:
        steps.append(("A/A", *experiment.same_arms))
    for number, before, arm in steps:
        run = experiment.runs[arm][0]
        rows.append([
            number, _day(experiment), f"`{run.commit[:8]}`",
            factors(experiment.factors(arm, before)) if before else "as the guide begins",
            *_times(experiment, arm), *_sooner(experiment, arm, before),
            _accuracy(experiment, arm), f"[{arm}]({log})",
        ])  # fmt: skip
    return report.Table(["", "date", "commit", "what changed", *_columns(), "test accuracy", "log"],
                        rows)  # fmt: skip


def whole(experiment: Experiment) -> str:
    """Return a sentence on mxopt's last arm relative to the first one.

    Args:
        experiment: the measurement.
    """
    first, *_, last = own(experiment)
    sooner, step, steps = _sooner(experiment, last, first)
    return (f"`{last}` relative to `{first}`, times sooner: {sooner}; times faster a step: {step}; "
            f"times fewer steps: {steps}.")  # fmt: skip


def noise(experiment: Experiment) -> list[str]:
    """Return a paragraph on what the A/A pair shows; none without one.

    Args:
        experiment: the measurement.
    """
    if not experiment.again:
        return []
    first, again = experiment.same_arms
    sooner = time_to_target(experiment, again, baseline=first).ratio
    whole = experiment.ratio(again, first)
    judged = [f"{ratio} ({experiment.judge(ratio, again, first)})" if ratio else "not measured"
              for ratio in (sooner, whole)]  # fmt: skip
    return [f"`{again}` repeats `{first}`. Times sooner: {judged[0]}. Times faster, over all "
            f"epochs: {judged[1]}."]  # fmt: skip


def peers(experiment: Experiment) -> report.Table:
    """Return a table of PyTorch's arms beside mxopt's last one.

    Args:
        experiment: the measurement.
    """
    last, rows = own(experiment)[-1], []
    for arm, options in experiment.arm_options.items():
        if is_peer(experiment, arm):
            has = ", ".join(given.of(options["peer"])) or "as installed"
            rows.append([arm, has, *_times(experiment, arm), *_sooner(experiment, last, arm),
                         _accuracy(experiment, arm)])  # fmt: skip
    return report.Table(["arm", "what it is given", *_columns(), "test accuracy"], rows)


def own(experiment: Experiment) -> list[str]:
    """Return the names of mxopt's arms, each with one change more than the arm before."""
    return [
        arm for arm in experiment.arms if arm != experiment.again and not is_peer(experiment, arm)
    ]


def _columns() -> list[str]:
    goals = (f"to {goal:.0%}" for goal in GOAL["goals"])
    return [*goals, "times sooner [95 %]", "of it: times faster a step", "of it: times fewer steps"]


def _times(experiment: Experiment, arm: str) -> list[str]:
    """Return the median seconds to each goal, or in how many runs it was missed."""
    cells = []
    for goal in GOAL["goals"]:
        found = time_to_target(dataclasses.replace(experiment, goal=goal), arm).after
        missed = sum(not run.reached for run in found)
        seconds = statistics.median(run.seconds for run in found)
        cells.append(
            f"missed in {missed} of {len(found)}" if missed else report.number(seconds, "s")
        )
    return cells


def _sooner(experiment: Experiment, arm: str, before: str | None) -> list[str]:
    """Return the ratio of the times to the last goal, and its two factors."""
    if not before:
        return ["", "", ""]
    found = time_to_target(experiment, arm, baseline=before)
    if not found.ratio:
        return [f"no ratio: {found.why}", "", ""]
    return [bounded(found.ratio, found.bound), str(found.step or ""),
            bounded(found.steps, found.bound) if found.steps else ""]  # fmt: skip


def _accuracy(experiment: Experiment, arm: str) -> str:
    return f"{experiment.median(arm, 'test_accuracy'):.1%}"


def _day(experiment: Experiment) -> str:
    return experiment.runs[experiment.baseline][0].started[:10]


def main(arguments: list[str]) -> None:
    """Add a measurement, if a folder is named, and write the page."""
    if arguments:
        print(add(Path(arguments[0])))
    page = RECORDS / f"{NAME}.md"
    atomic.replace_text(page, text())
    print(page)


if __name__ == "__main__":
    main(sys.argv[1:])
