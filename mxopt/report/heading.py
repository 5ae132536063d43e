"""The first paragraphs of a results page: where, how and by which code it was measured."""

from __future__ import annotations

from pathlib import Path

from mxopt.measure import Experiment


def lines(facts: dict, experiments: list[tuple[Path, Experiment]]) -> list[str]:
    """Return the paragraphs above the results: where and how they were measured.

    Args:
        facts: what no record contains, such as the tier, by name.
        experiments: paths and experiments of the folder.
    """
    runs = [run for _, e in experiments for arm in e.runs.values() for run in arm]
    items = [f"- **{name}**: {value}" for name, value in facts.items()]
    items += machine(next((run.only("environment") for run in runs if run.events), {}))
    kinds = sorted({run.only("data").get("kind", "") for run in runs} - {""})
    counts = {status: sum(run.status == status for run in runs) for status in
              ("ok", "refused", "diverged", "failed", "killed")}  # fmt: skip
    ended = ", ".join(f"{count} {status}" for status, count in counts.items() if count)
    items.append(f"- **data**: {' and '.join(kinds) or 'none read'}")
    items.append(f"- **runs**: {len(runs)}, each in a process of its own ({ended})")
    items.append(f"- **commit**: {_commits(experiments)}")
    return [
        "\n".join(items),
        "Every figure below is computed from the run records in this folder. A ratio is the "
        "geometric mean over pairs of interleaved runs, with its 95 % interval; above 1 is better. "
        "A speed-up is claimed only if the interval excludes 1, both arms start the same, and the "
        "interval of the difference in quality lies above minus the margin. The pair `arm → "
        "arm-again` measures the same arm twice. An option that an arm does not set is shown as "
        "`default`.",
    ]


def _commits(experiments: list[tuple[Path, Experiment]]) -> str:
    """Return the commits that made the experiments; of which notebooks or which of their sections.

    Arms that are compared are always from one commit; sections of a notebook may be from several.
    """
    made = {path: _commit(experiment) for path, experiment in experiments}
    of: dict[str, list[str]] = {}
    for path, experiment in experiments:
        notebook = path.parent.name
        one = len({commit for other, commit in made.items() if other.parent == path.parent}) == 1
        name = notebook if one else f"{notebook}: {experiment.title or experiment.name}"
        if name not in of.setdefault(made[path], []):
            of[made[path]].append(name)
    if len(of) == 1:
        return next(iter(of))
    return "; ".join(f"{commit} ({', '.join(names)})" for commit, names in of.items())


def _commit(experiment: Experiment) -> str:
    commits = {run.commit[:10] for runs in experiment.runs.values() for run in runs}
    return " and ".join(sorted(filter(None, commits))) or "not recorded"


def machine(environment: dict) -> list[str]:
    """Return processor, GPUs and software of an ``environment`` event, as Markdown items."""
    if not environment:
        return []
    cpu, packages = environment.get("cpu", {}), environment.get("packages", {})
    gpus = [gpu.get("name", "?") for gpu in environment.get("gpus", [])]
    shown = ("mxnet", "mxnet-cu112", "gluoncv", "gluonnlp", "numpy", "mxopt")
    versions = ", ".join(f"{name} {packages[name]}" for name in shown if name in packages)
    sets = ", ".join(cpu.get("instruction_sets", []))
    return [
        f"- **processor**: {cpu.get('model')}, {cpu.get('logical_cores')} cores, {sets}",
        f"- **GPUs**: {', '.join(gpus) or 'none'}",
        f"- **software**: Python {environment.get('python')}, {versions}",
    ]
