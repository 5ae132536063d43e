"""The commands of ``mxopt``: one function each, from the parsed arguments to an exit status.

Each function imports what it needs, so that ``mxopt doctor`` runs where MXNet cannot be imported.
"""

from __future__ import annotations

import json
import os
import sys

from mxopt.core.errors import MxoptError

# Options of the workload that trains, which are none of a recipe.
_OF_TRAINING = ("recipe", "evaluate", "checks", "keep", "checkpoints", "checkpoint_steps")


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
    from mxopt.core.plan import Plan
    from mxopt.methods.kvstore import cluster

    plan = Plan.parse(chosen.switches)
    recipes.resolve(chosen.recipe)
    options = {"recipe": chosen.recipe, **dict(_option(word) for word in chosen.option)}
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
            measure.left_over(record, "mxopt.chapter.workloads:train", plan, options)
    hosts = cluster.read_hosts(chosen.hosts) if chosen.hosts else None
    run = measure.run("mxopt.chapter.workloads:train", plan, record, options, hosts, chosen.under)
    if not run.ok:
        return _ended(run)
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


def find_batch(chosen) -> int:
    """Find the largest batch that trains here, and print every trial."""
    from mxopt import report
    from mxopt.chapter import lab
    from mxopt.core.plan import Plan
    from mxopt.measure import batch_size

    options = dict(_option(word) for word in chosen.option)
    folder = chosen.results or lab.new_results_folder()
    print(f"records: {folder}")

    def show(run):
        said = f"{run.status}: {run.reason}"
        if run.ok:
            rates = (name for name in run.figures if name.endswith("_per_second"))
            rate = report.number(run.figures[next(rates)])
            said = f"{rate} a second, {report.number(run.figures['peak_memory'], 'MiB')}"
        print(f"batch_size={run.plan.batch_size:<6d} {said}", flush=True)

    plan = Plan.parse(chosen.switches)
    found = batch_size.search(chosen.recipe, plan, folder, options, chosen.most, show)
    print(f"largest batch that trains here: {found}")
    return 0 if found else 1


def autotune(chosen) -> int:
    """Print how samples are loaded fastest, and keep it for this machine."""
    import tempfile
    from pathlib import Path

    from mxopt import machine, measure, recipes, report
    from mxopt.core.plan import Plan
    from mxopt.data import sources
    from mxopt.measure import autotune as tuning

    plan = Plan.parse(chosen.switches)
    recipes.resolve(chosen.recipe)
    job = {"recipe": chosen.recipe, **dict(_option(word) for word in chosen.option)}
    path = sources.cache_folder() / "autotune.json"
    cpu = machine.cpu()
    key = json.dumps([cpu.model, cpu.physical_cores, plan.as_dict(), job], sort_keys=True)
    best = None if chosen.again else tuning.kept(path, key)
    if best is not None:
        print(f"kept from an earlier trial ({path}); --again measures anew")
    else:
        with tempfile.TemporaryDirectory() as folder:
            record = Path(folder) / "autotune.jsonl"
            workload = "mxopt.measure.autotune:tune_loader"
            run = measure.run(workload, plan, record, {**job, "seconds": chosen.seconds})
        if not run.ok:
            return _ended(run)
        for trial in run.all("trial"):
            words = " ".join(f"{name}={value}" for name, value in trial["settings"].items())
            print(f"{report.number(trial['samples_per_second']):>8s} samples a second  {words}")
        best = run.figures["settings"]
        tuning.keep(path, key, best)
    changes = plan.diff(plan.replace(**best))
    words = " ".join(f"{name}={value}" for name, (_, value) in changes.items())
    print(f"fastest here: {words or 'the plan as it is'}")
    return 0


def find_rate(chosen) -> int:
    """Suggest a learning rate, and plot the losses that it was read from."""
    from mxopt import measure, recipes, report
    from mxopt.chapter import lab
    from mxopt.core.plan import Plan
    from mxopt.measure.learning_rate import RANGE_TEST
    from mxopt.report import learning_rates

    plan = Plan.parse(chosen.switches)
    recipes.resolve(chosen.recipe)
    options = {"recipe": chosen.recipe, **dict(_option(word) for word in chosen.option)}
    options.update(lowest=chosen.lowest, highest=chosen.highest, steps=chosen.steps)
    folder = lab.make_folder(chosen.results or lab.new_results_folder())
    run = measure.run(RANGE_TEST, plan, folder / "range-01.jsonl", options)
    if not run.ok:
        return _ended(run)
    picture = folder / "range.png"
    learning_rates.plot(run).savefig(picture, dpi=130, bbox_inches="tight")
    for name, value in run.figures.items():
        if name.endswith("_rate"):
            print(f"{report.figure_name(name):24s} {value:.3g}")
    print(f"plot: {picture}")
    return 0


def search(chosen) -> int:
    """Search hyper-parameters, and print every trial and the best plan."""
    from mxopt import recipes, report
    from mxopt.chapter import lab
    from mxopt.core.plan import Plan
    from mxopt.measure import search as searching

    plan = Plan.parse(chosen.switches)
    recipes.resolve(chosen.recipe)
    options = dict(_option(word) for word in chosen.option)
    space = {}
    for word in chosen.space:
        name, _, text = word.partition("=")
        space[name] = searching.Range.parse(text)
    folder = chosen.results or lab.new_results_folder()
    print(f"trials: {folder}")

    def seen(number, run):
        own = {name: run.plan.as_dict().get(name, run.options.get(name)) for name in space}
        values = " ".join(f"{name}={_short(value)}" for name, value in own.items())
        score = run.figures.get(chosen.objective)
        said = run.reason if score is None else f"{chosen.objective} {report.number(score)}"
        print(f"trial {number}: {values}: {said}", flush=True)

    study = searching.search(
        chosen.recipe, plan, space, folder, options=options, trials=chosen.trials,
        minutes=chosen.minutes, objective=chosen.objective, sampler=chosen.sampler,
        pruner=chosen.pruner, seen=seen,
    )  # fmt: skip
    best, own = searching.best_plan(plan, study)
    words = [f"{name}={value}" for name, (_, value) in Plan().diff(best).items()]
    words += [f"--option {name}={json.dumps(v)}" for name, v in {**options, **own}.items()]
    print(f"best of {len(study.trials)}: {chosen.objective} {report.number(study.best_value)}")
    print(f"mxopt run {chosen.recipe} {' '.join(words)}")
    return 0


def _short(value) -> str:
    return f"{value:.3g}" if isinstance(value, float) else json.dumps(value).strip('"')


def advise(chosen) -> int:
    """Say what may make a recorded run faster, and with which command to measure it."""
    from mxopt.core import packed
    from mxopt.report import advice, card

    run = packed.read_run(chosen.record)
    found = advice.advise(run)
    cards = {one.name: one for one in card.read_cards()} if found else {}
    for number, one in enumerate(found, 1):
        print(f"{number}. {one.switches or 'no switch'}: {one.why}.")
        if one.method:
            seen = card.first_measured(cards[one.method], one.switches.partition("=")[0])
            print(f"   {cards[one.method].title}{f'; measured elsewhere: {seen}' if seen else ''}")
    changes = run.plan.diff(advice.improved(run.plan, found))
    if not changes:
        print("no switch is likely to help by much")
        return 0
    after = " ".join(f"{name}={value}" for name, (_, value) in changes.items())
    set_before = type(run.plan)().diff(run.plan)
    plan = " ".join(f"{name}={value}" for name, (_, value) in set_before.items())
    own = {name: run.options[name] for name in run.options if name not in _OF_TRAINING}
    options = " ".join(f"--option {name}={value}" for name, value in own.items())
    recipe = run.options.get("recipe", "segmentation")
    print(f"\nto measure: mxopt compare {recipe} {plan} --after {after} {options}".rstrip())
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
        return _ended(run)
    print(f"{'':28s} {'then':>12s} {'now':>12s}")
    for name, value in run.figures.items():
        then = old.figures.get(name, "")
        if isinstance(value, float) and isinstance(then, float):
            then, value = report.number(then), report.number(value)
            print(f"{report.figure_name(name):28s} {then:>12s} {value:>12s}")
    return 0


def _ended(run) -> int:
    """Print how an unsuccessful run ended, and return the exit status."""
    print(f"mxopt: the run ended as {run.status}: {run.reason}", file=sys.stderr)
    return 2 if run.status == "refused" else 1


def _pair(chosen):
    """Return the first plan, the changes of the second, and the options of the workload."""
    from mxopt import measure, recipes
    from mxopt.core.plan import Plan

    plan = Plan.parse(chosen.switches)
    recipes.resolve(chosen.recipe)
    changes = dict(_option(word) for word in chosen.after)
    switches = [word for word in chosen.after if word.partition("=")[0] in plan.as_dict()]
    parsed = Plan.parse(switches, plan).as_dict()
    changes = {name: parsed.get(name, value) for name, value in changes.items()}
    options = {"recipe": chosen.recipe, **dict(_option(word) for word in chosen.option)}
    measure.ladder(plan, {"after": changes}, options)  # refuses unknown names, writes nothing
    return plan, changes, options


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
        "ablation", "mxopt.chapter.workloads:train", plan, levers, options=options,
        repeats=chosen.repeats, folder=folder, seeds=True, figure="training_seconds",
    )  # fmt: skip
    plots.waterfall(found).savefig(folder / "ablation" / "waterfall.png", dpi=130)
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
        "compare", "mxopt.chapter.workloads:train", arms, repeats=chosen.repeats, folder=folder,
        arm_options=arm_options, seeds=True, figure="training_seconds",
        quality=chosen.quality, margin=chosen.margin,
    )  # fmt: skip
    print(report.comparison(experiment))
    if chosen.quality:
        print(report.arms(experiment, {"training_seconds": "s", chosen.quality: ""}))
    return 1 if any(map(experiment.why_not, arms)) else 0


def launch(chosen) -> int:
    """Replace this process by the user's script; return only after an error."""
    from mxopt.cli.launch import launch

    if chosen.tune:
        from mxopt.cli.tune import tune

        return tune(chosen.script, chosen.arguments)
    launch(chosen.script, chosen.arguments, chosen.switch)
    return 1


def _option(word: str) -> tuple[str, object]:
    name, equals, text = word.partition("=")
    if not equals:
        raise MxoptError(f"--option {word!r} is not understood; write NAME=VALUE, such as size=160")
    try:
        return name, json.loads(text)
    except ValueError:
        return name, text


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

    print(results.write_page(chosen.results))
    if chosen.html:
        print(html.write(chosen.results))
    if chosen.readme:
        text = results.update_readme(chosen.readme, chosen.results)
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

    return pages.difference(page, errata.page) if page.exists() else []


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
