"""The commands of ``mxopt`` that find something: a batch, a rate, a plan, or what to try next.

As in :mod:`mxopt.cli.commands`, each function imports what it needs.
"""

from __future__ import annotations

import json

from mxopt.cli.words import assignment, ended, goal, read_options
from mxopt.core.errors import MxoptError


def find_batch(chosen) -> int:
    """Find the largest batch that trains here, and print every trial."""
    from mxopt import report
    from mxopt.chapter import lab
    from mxopt.core.plan import Plan
    from mxopt.measure import batch_size

    options = read_options(chosen.option)
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
    from mxopt.core.cache import cache_folder
    from mxopt.core.plan import Plan
    from mxopt.measure import autotune as tuning

    plan = Plan.parse(chosen.switches)
    recipes.resolve(chosen.recipe)
    job = {"recipe": chosen.recipe, **read_options(chosen.option)}
    if chosen.memory is not None:
        job["memory"] = chosen.memory * 2**20
    path = cache_folder() / "autotune.json"
    cpu = machine.cpu()
    # The seconds, too: a short search tries little, and must not answer for a longer one.
    asked = [cpu.model, cpu.physical_cores, plan.as_dict(), job, chosen.seconds]
    key = json.dumps(asked, sort_keys=True)
    best = None if chosen.again else tuning.kept(path, key)
    if best is not None:
        print(f"kept from an earlier trial ({path}); --again measures anew")
    else:
        with tempfile.TemporaryDirectory() as folder:
            record = Path(folder) / "autotune.jsonl"
            workload = "mxopt.measure.autotune:tune_loader"
            run = measure.run(workload, plan, record, {**job, "seconds": chosen.seconds})
        if not run.ok:
            return ended(run)
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
    from mxopt.report import learning_rates, plots

    plan = Plan.parse(chosen.switches)
    recipes.resolve(chosen.recipe)
    options = {"recipe": chosen.recipe, **read_options(chosen.option)}
    options.update(lowest=chosen.lowest, highest=chosen.highest, steps=chosen.steps)
    folder = lab.make_folder(chosen.results or lab.new_results_folder())
    run = measure.run(RANGE_TEST, plan, folder / "range-01.jsonl", options)
    if not run.ok:
        return ended(run)
    picture = folder / "range.png"
    learning_rates.plot(run).savefig(picture, dpi=plots.DPI, bbox_inches="tight")
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
    from mxopt.measure.ranges import Range

    plan = Plan.parse(chosen.switches)
    recipes.resolve(chosen.recipe)
    options = read_options(chosen.option)
    space = {}
    for word in chosen.space:
        name, _, text = word.partition("=")
        if name in space:
            raise MxoptError(f"--space {word!r}: {name} is given a second time; give it once")
        space[name] = Range.parse(text)
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
    words += [f"--option {assignment(*pair)}" for pair in {**options, **own}.items()]
    print(f"best of {len(study.trials)}: {chosen.objective} {report.number(study.best_value)}")
    print(f"mxopt run {chosen.recipe} {' '.join(words)}")
    return 0


def _short(value) -> str:
    return f"{value:.3g}" if isinstance(value, float) else json.dumps(value).strip('"')


def advise(chosen) -> int:
    """Say what may make a recorded run faster, and with which command to measure it."""
    from mxopt.core import packed
    from mxopt.measure.options import of_recipe
    from mxopt.report import advice, card, checklist

    run = packed.read_run(chosen.record)
    found = advice.advise(run)
    cards, processor = {one.name: one for one in card.read_cards()}, card.processor_of(run)
    for number, one in enumerate(found, 1):
        print(f"{number}. {one.switches or 'no switch'}: {one.why}.")
        if one.method:
            switch = one.switches.partition("=")[0]
            seen = card.first_measured(cards[one.method], switch, processor)
            print(f"   {cards[one.method].title}{f'; measured elsewhere: {seen}' if seen else ''}")
    print("\nThe checklist:")
    for status in checklist.statuses(run, found, cards):
        print(f"{status.state:17s} {status.line.question}\n{'':17s} {status.why}")
    changes = run.plan.diff(advice.improved(run.plan, found))
    if not changes:
        print("\nno switch is likely to help by much")
        return 0
    after = " ".join(f"{name}={value}" for name, (_, value) in changes.items())
    set_before = type(run.plan)().diff(run.plan)
    plan = " ".join(f"{name}={value}" for name, (_, value) in set_before.items())
    own = of_recipe(run.workload, run.options)
    options = " ".join(f"--option {assignment(*pair)}" for pair in own.items())
    recipe = run.options.get("recipe", "segmentation")
    print(f"\nto measure: mxopt compare {recipe} {plan} --after {after} {options}".rstrip())
    return 0


def cost(chosen) -> int:
    """Say what a recorded training cost, beside entries of public benchmarks."""
    from mxopt.core import packed
    from mxopt.report import cost as costs

    run = packed.read_run(chosen.record)
    until = goal(chosen.goal) if chosen.goal else None
    print(costs.table(run, chosen.price, until, chosen.currency))
    return 0
