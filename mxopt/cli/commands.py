"""The commands of ``mxopt``: one function each, from the parsed arguments to an exit status.

Each function imports what it needs, so that ``mxopt doctor`` runs where MXNet cannot be imported.
"""

from __future__ import annotations

import contextlib
import os
import sys

from mxopt.cli.words import ended, read_options
from mxopt.core.errors import MxoptError

TRAIN = "mxopt.chapter.workloads:train"


def doctor(chosen) -> int:
    """Check the installation, and print how to fix what is missing."""
    from mxopt.cli import doctor

    return doctor.run(json=chosen.json, tier=chosen.tier)


def gpu_check(chosen) -> int:
    """Check what this machine's GPUs compute, and write a report to pass on."""
    from mxopt.cli import gpu_check

    return gpu_check.run(chosen.folder, chosen.quick, chosen.name)


def fetch(chosen) -> int:
    """Find or download data sets; return 1 if one is unavailable."""
    from mxopt import data

    rows = data.fetch(chosen.names or data.SOURCES, check=chosen.verify)
    return 0 if all(row.location for row in rows) else 1


def run(chosen) -> int:
    """Train a recipe in its own process, and print its figures."""
    from mxopt import measure, recipes, report
    from mxopt.chapter import lab
    from mxopt.cli import following
    from mxopt.core.plan import Plan
    from mxopt.methods.kvstore import cluster

    plan = Plan.parse(chosen.switches)
    recipes.resolve(chosen.recipe)
    options = {"recipe": chosen.recipe, **read_options(chosen.option)}
    if chosen.under and not chosen.record:
        raise MxoptError("--under needs --record, the same file for all tasks")
    record = chosen.record or lab.new_results_folder() / "run-01.jsonl"
    first = not chosen.under or cluster.task_number(chosen.under, os.environ) == 0
    if first:
        print(f"record: {record}")
    if chosen.checkpoint_steps is not None:
        options["checkpoint_steps"] = chosen.checkpoint_steps
    if chosen.checkpoints or chosen.checkpoint_steps is not None:
        options["checkpoints"] = True
        if first:
            measure.left_over(record, TRAIN, plan, options)
    hosts = cluster.read_hosts(chosen.hosts) if chosen.hosts else None
    show = following.shown(record, plan.epochs) if first else contextlib.nullcontext()
    with show:
        run = measure.run(TRAIN, plan, record, options, hosts, chosen.under)
    if not run.ok:
        return ended(run)
    if not first:
        return 0
    print(f"data: {run.only('data').get('kind', 'none')}")
    for name, value in run.figures.items():
        print(f"{report.figure_name(name):24s} {report.number(value)}")
    return 0


def slurm(chosen) -> int:
    """Print a batch script for SLURM."""
    from mxopt import recipes
    from mxopt.core.plan import Plan
    from mxopt.methods.kvstore import cluster

    given = Plan.parse(chosen.switches)
    recipes.resolve(chosen.recipe)
    read_options(chosen.option)  # the cluster has the recipe's data and may be all that has MXNet
    size = {
        "nodes": chosen.nodes,
        "gpus": chosen.gpus,
        "process_per_gpu": chosen.process_per_gpu,
    }
    plan = cluster.on_nodes(given, **size)
    words = [f"{name}={value}" for name, (_, value) in Plan().diff(plan).items()]
    options = [word for pair in chosen.option for word in ("--option", pair)]
    under = ["--under", "slurm"] if plan.processes > 1 else []
    record = chosen.record.absolute()
    command = [
        sys.executable, "-m", "mxopt", "run", chosen.recipe, *words, *options,
        *under, "--record", str(record), "--checkpoints",
    ]  # fmt: skip
    text = cluster.batch_script(
        command, **size, cores=chosen.cores, hours=chosen.hours,
        name=chosen.recipe.partition(":")[0], log=str(record.with_suffix(".log")),
        more=chosen.sbatch,
    )  # fmt: skip
    print(text, end="")
    return 0


def again(chosen) -> int:
    """Repeat a recorded run, and print the old and the new figures."""
    from mxopt import measure, report
    from mxopt.chapter import lab
    from mxopt.core import packed

    old = packed.read_run(chosen.old)
    record = chosen.record or lab.new_results_folder() / chosen.old.name
    print(f"record: {record}")
    run = measure.run(old.workload, old.plan, record, old.options)
    if not run.ok:
        return ended(run)
    print(f"{'':28s} {'then':>12s} {'now':>12s}")
    for name, value in run.figures.items():
        then = old.figures.get(name, "")
        if isinstance(value, float) and isinstance(then, float):
            then, value = report.number(then), report.number(value)
            print(f"{report.figure_name(name):28s} {then:>12s} {value:>12s}")
    return 0


def _pair(chosen):
    """Return the first plan, the changes of the second, and the options of the workload."""
    from mxopt import measure, recipes
    from mxopt.core.plan import Plan

    plan = Plan.parse(chosen.switches)
    recipes.resolve(chosen.recipe)
    changes = read_options(chosen.after, "--after")
    switches = [word for word in chosen.after if word.partition("=")[0] in plan.as_dict()]
    parsed = Plan.parse(switches, plan).as_dict()
    changes = {name: parsed.get(name, value) for name, value in changes.items()}
    options = {"recipe": chosen.recipe, **read_options(chosen.option)}
    measure.ladder(plan, {"after": changes}, options)  # refuses unknown names, writes nothing
    return plan, changes, options


def _twice(chosen) -> str:
    """Return the arm that is measured twice, for the noise; none if there is one run of each."""
    return "before" if chosen.repeats > 1 else ""


def ablate(chosen) -> int:
    """Measure levers in several orders, and print and plot the share of each."""
    from mxopt import measure, report
    from mxopt.chapter import lab
    from mxopt.report import plots

    plan, changes, options = _pair(chosen)
    levers = {name: {name: value} for name, value in changes.items()}
    folder = lab.make_folder(chosen.results or lab.new_results_folder())
    print(f"results: {folder}")
    found = measure.ablate(
        "ablation", TRAIN, plan, levers, options=options,
        repeats=chosen.repeats, folder=folder, again=_twice(chosen), seeds=True,
        figure="training_seconds",
    )  # fmt: skip
    plots.waterfall(found).savefig(folder / "ablation" / "waterfall.png", dpi=plots.DPI)
    print(report.ablation(found))
    return 1 if any(map(found.experiment.why_not, found.experiment.arms)) else 0


def compare(chosen) -> int:
    """Measure two plans in interleaved runs, and print the ratio."""
    from mxopt import measure, report
    from mxopt.chapter import lab

    plan, changes, options = _pair(chosen)
    arms, arm_options = measure.ladder(plan, {"after": changes}, options)
    planned = measure.Experiment("compare", "", arms, arm_options=arm_options)
    planned.check_effect("after", chosen.effect_of)
    folder = lab.make_folder(chosen.results or lab.new_results_folder())
    print(f"results: {folder}")
    experiment = measure.interleave(
        "compare", TRAIN, arms, repeats=chosen.repeats, folder=folder,
        arm_options=arm_options, again=_twice(chosen), seeds=True, figure="training_seconds",
        quality=chosen.quality, margin=chosen.margin,
        seen=lambda _, run: _check_quality(run, chosen.quality),
    )  # fmt: skip
    print(report.comparison(experiment))
    if chosen.quality:
        print(report.arms(experiment, {"training_seconds": "s", chosen.quality: ""}))
    return 1 if any(map(experiment.why_not, experiment.arms)) else 0


def _check_quality(run, quality: str) -> None:
    """Stop at the first run that lacks the figure of quality, before all others are measured."""
    known = [name for name, value in run.figures.items() if isinstance(value, (int, float))]
    if quality and run.ok and quality not in known:
        raise MxoptError(
            f"no figure of {run.path} is called {quality!r}, so the measurement was stopped; give "
            f"--quality one of {', '.join(known)}"
        )


def launch(chosen) -> int:
    """Replace this process by the user's script; return only after an error."""
    from mxopt.cli.launch import launch

    if chosen.tune:
        from mxopt.cli.tune import tune

        return tune(chosen.script, chosen.arguments)
    launch(chosen.script, chosen.arguments, chosen.switch)
    return 1


def reproduce(chosen) -> int:
    """Run the notebooks, and write a folder of results."""
    from mxopt.chapter.reproduce import reproduce

    reproduce(chosen.tier, chosen.results, only=chosen.only, long=chosen.long,
              resume=chosen.resume)  # fmt: skip
    return 0


def report(chosen) -> int:
    """Write the pages of a results folder again from its records."""
    from mxopt.core import atomic
    from mxopt.report import html, prose, results

    # First, because it may be refused: then nothing is written.
    text = results.update_readme(chosen.readme, chosen.results) if chosen.readme else ""
    print(results.write_page(chosen.results))
    if chosen.html:
        print(html.write(chosen.results))
    if chosen.readme:
        text = prose.updated(text, chosen.readme.resolve().parent)
        atomic.replace_text(chosen.readme, text)
        print(chosen.readme)
    return 0


def pack(chosen) -> int:
    """Pack each experiment's folder into one file, and print the files."""
    from mxopt.report import results

    for path in results.pack(chosen.results, chosen.destination):
        print(path)
    return 0


def errata(chosen) -> int:
    """Print the figures of each erratum, as printed and corrected, or write the page."""
    from mxopt.chapter import errata
    from mxopt.core import atomic

    if chosen.write:
        atomic.replace_text(chosen.write, errata.page())
        return 0
    for erratum in errata.ERRATA:
        wrong, right = erratum.show()
        where = "" if erratum.exact else ", on this machine"
        print(f"{erratum.title}: {wrong:.3g} instead of {right:.3g} ({erratum.unit}{where})")
    return 0


def _errata(page) -> list[str]:
    """Compare the page of errata with what their programs give; verification cannot import them."""
    from mxopt.chapter import errata
    from mxopt.report.verify import pages

    again = "mxopt errata --write docs/errata.md"
    return pages.difference(page, errata.page, again) if page.exists() else []


def verify(chosen) -> int:
    """Compare published pages with their records; return 1 if anything differs."""
    from mxopt.report.verify import verify

    problems = verify(chosen.results, chosen.readme)
    if chosen.readme:
        problems += _errata(chosen.readme.resolve().parent / "docs" / "errata.md")
    for problem in problems:
        print(problem)
    count = f"{len(problems)} problem{'s' if len(problems) > 1 else ''}"
    print(f"{chosen.results}: {count if problems else 'holds'}")
    return 1 if problems else 0
