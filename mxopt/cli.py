"""The command ``mxopt``."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from mxopt import __version__
from mxopt.errors import MxoptError


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit status: 0 done, 1 failed, 2 the input was wrong."""
    parser = _parser()
    chosen = parser.parse_args(arguments)
    try:
        return chosen.command(chosen) or 0
    except MxoptError as error:
        print(f"mxopt: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("mxopt: stopped", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # Whoever read the output has seen enough, as `head` does; Python must not flush again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mxopt", description="Audited training-speed switches for MXNet."
    )
    parser.add_argument("--version", action="version", version=f"mxopt {__version__}")
    commands = parser.add_subparsers(required=True, metavar="command")

    def command(name, function, text):
        sub = commands.add_parser(name, help=text, description=text)
        sub.set_defaults(command=function)
        return sub

    tiers = {"choices": ("smoke", "cpu", "gpu"), "help": "instead of the best this machine can do"}
    doctor = command("doctor", _doctor, "say what is here, what is missing, and how to mend it")
    doctor.add_argument("--json", action="store_true", help="print for machines")
    doctor.add_argument("--tier", **tiers)

    fetch = command("fetch", _fetch, "find data sets and weights, downloading what is missing")
    fetch.add_argument("names", nargs="*", help="data sets; all of them if none is named")
    fetch.add_argument("--verify", action="store_true", help="hash the files that are here already")

    run = command("run", _run, "train a recipe under a plan, in a process of its own")
    run.add_argument("recipe", help="segmentation, or module:function for one of your own")
    run.add_argument("switches", nargs="*", help="the plan, such as batch_size=8 epochs=4")
    run.add_argument("--option", action="append", default=[], metavar="NAME=VALUE",
                     help="an option of the recipe, such as size=160")  # fmt: skip
    run.add_argument("--record", type=Path, help="where the record goes")
    run.add_argument("--checkpoints", action="store_true",
                     help="keep the last two of those after each epoch and every 1,000 steps of it;"
                     " the same command goes on after a crash")  # fmt: skip
    run.add_argument("--checkpoint-steps", type=int, metavar="STEPS",
                     help="checkpoints after every so many steps of an epoch")  # fmt: skip
    where = run.add_mutually_exclusive_group()
    where.add_argument("--hosts", type=Path, metavar="FILE",
                       help="machines to start the plan's processes on by ssh")  # fmt: skip
    where.add_argument("--under", choices=("slurm", "mpi"), default="",
                       help="this is one task of many, started by these")  # fmt: skip

    again = command("again", _again, "run what a record holds once more, beside what it holds")
    again.add_argument(
        "old", type=Path, metavar="RECORD", help="such as 8_2/levers/static-01.jsonl"
    )
    again.add_argument("--record", type=Path, help="where the new record goes")

    compare = command("compare", _compare, "measure two plans in turns, and say what differs")
    ablate = command("ablate", _ablate, "say how much of a speed-up is each switch's")
    for sub in (compare, ablate):
        sub.add_argument("recipe", help="segmentation, or module:function for one of your own")
        sub.add_argument("switches", nargs="*", help="the plan of before, such as batch_size=8")
        sub.add_argument("--after", nargs="+", required=True, metavar="NAME=VALUE",
                         help="what after changes: switches, or options of the recipe")  # fmt: skip
        sub.add_argument("--option", action="append", default=[], metavar="NAME=VALUE",
                         help="an option of the recipe, such as size=160")  # fmt: skip
        sub.add_argument("--repeats", type=int, default=6, help="runs of each plan (6)")
        sub.add_argument("--results", type=Path, help="the folder; a new one if not given")
    compare.add_argument("--effect-of", metavar="NAME",
                         help="refuse to compare if anything but this switch differs")  # fmt: skip
    compare.add_argument("--quality", default="", metavar="FIGURE",
                         help="what a speed-up must not cost, such as test_mIoU")  # fmt: skip
    compare.add_argument("--margin", type=float, default=0.0, help="how much of it may be lost")

    launch = command("launch", _launch, "run a Gluon script of yours in a faster environment")
    launch.add_argument("--switch", action="append", default=[], metavar="NAME=VALUE",
                        help="of a plan, such as openmp=intel, instead of the usual")  # fmt: skip
    launch.add_argument("script", help="a Python file")
    launch.add_argument("arguments", nargs=argparse.REMAINDER, help="its own arguments")

    reproduce = command("reproduce", _reproduce, "run the notebooks and leave a folder of results")
    reproduce.add_argument("--tier", **tiers)
    reproduce.add_argument("--results", type=Path, help="the folder; a new one if not given")
    reproduce.add_argument("--only", default="", help="one notebook, such as 8_2")
    reproduce.add_argument("--resume", action="store_true", help="go on in an interrupted folder")
    reproduce.add_argument("--long", action="store_true", help="also what takes up to two hours")

    report = command("report", _report, "write RESULTS.md again from the records of a folder")
    report.add_argument("results", type=Path)
    report.add_argument("--html", action="store_true", help="also write report.html")
    report.add_argument("--readme", type=Path, help="also renew the table in this README")

    errata = command("errata", _errata, "show the chapter's errors of method, both ways")
    errata.add_argument("--write", type=Path, metavar="FILE", help="write the page, print nothing")

    verify = command("verify", _verify, "compute published results again from their records")
    verify.add_argument("results", type=Path)
    verify.add_argument("--readme", type=Path, help="also compare the table in this README")
    return parser


def _doctor(chosen) -> int:
    from mxopt import doctor

    return doctor.run(json=chosen.json, tier=chosen.tier)


def _fetch(chosen) -> int:
    from mxopt import datasets

    rows = datasets.fetch(chosen.names or datasets.SOURCES, check=chosen.verify)
    return 0 if all(row.location for row in rows) else 1


def _run(chosen) -> int:
    from mxopt import cluster, lab, measure, recipes, report
    from mxopt.plan import Plan

    plan = Plan.parse(chosen.switches)
    recipes.resolve(chosen.recipe)
    options = {"recipe": chosen.recipe, **dict(_option(word) for word in chosen.option)}
    if chosen.under and not chosen.record:
        raise MxoptError("--under needs --record: a name of its own for each task is none for all")
    record = chosen.record or lab.new_results_folder() / "run-01.jsonl"
    first = not chosen.under or cluster.task_number(chosen.under, os.environ) == 0
    if first:
        print(f"record: {record}")
    if chosen.checkpoint_steps is not None:
        options["checkpoint_steps"] = chosen.checkpoint_steps
    if chosen.checkpoints or chosen.checkpoint_steps is not None:
        options["checkpoints"] = True
        if first:
            measure.left_over(record, "mxopt.workloads:train", plan, options)
    hosts = cluster.read_hosts(chosen.hosts) if chosen.hosts else None
    run = measure.run("mxopt.workloads:train", plan, record, options, hosts, chosen.under)
    if not run.ok:
        return _ended(run)
    if not first:
        return 0
    print(f"data: {run.only('data').get('kind', 'none')}")
    for name, value in run.figures.items():
        print(f"{report.figure_name(name):24s} {report.number(value)}")
    return 0


def _again(chosen) -> int:
    from mxopt import lab, measure, records, report

    old = records.read_run(chosen.old)
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
    """Say how a run ended that did not end well, and return the exit status."""
    print(f"mxopt: the run ended as {run.status}: {run.reason}", file=sys.stderr)
    return 2 if run.status == "refused" else 1


def _pair(chosen):
    """Return the plan of before, what after changes, and the options of the workload."""
    from mxopt import recipes
    from mxopt.plan import Plan

    plan = Plan.parse(chosen.switches)
    recipes.resolve(chosen.recipe)
    changes = dict(_option(word) for word in chosen.after)
    switches = [word for word in chosen.after if word.partition("=")[0] in plan.as_dict()]
    parsed = Plan.parse(switches, plan).as_dict()
    changes = {name: parsed.get(name, value) for name, value in changes.items()}
    return plan, changes, {"recipe": chosen.recipe, **dict(_option(word) for word in chosen.option)}


def _ablate(chosen) -> int:
    from mxopt import lab, measure, plots, report

    plan, changes, options = _pair(chosen)
    levers = {name: {name: value} for name, value in changes.items()}
    folder = lab.make_folder(chosen.results or lab.new_results_folder())
    print(f"results: {folder}")
    found = measure.ablate(
        "ablation", "mxopt.workloads:train", plan, levers, options=options,
        repeats=chosen.repeats, folder=folder, seeds=True, figure="training_seconds",
    )  # fmt: skip
    plots.waterfall(found).savefig(folder / "ablation" / "waterfall.png", dpi=130)
    print(report.ablation(found))
    return 1 if any(map(found.experiment.why_not, found.experiment.arms)) else 0


def _compare(chosen) -> int:
    from mxopt import lab, measure, report

    plan, changes, options = _pair(chosen)
    arms, arm_options = measure.ladder(plan, {"after": changes}, options)
    planned = measure.Experiment("compare", "", arms, arm_options=arm_options)
    planned.check_effect("after", chosen.effect_of)
    folder = lab.make_folder(chosen.results or lab.new_results_folder())
    print(f"results: {folder}")
    experiment = measure.interleave(
        "compare", "mxopt.workloads:train", arms, repeats=chosen.repeats, folder=folder,
        arm_options=arm_options, seeds=True, figure="training_seconds",
        quality=chosen.quality, margin=chosen.margin,
    )  # fmt: skip
    print(report.comparison(experiment))
    if chosen.quality:
        print(report.arms(experiment, {"training_seconds": "s", chosen.quality: ""}))
    return 1 if any(map(experiment.why_not, arms)) else 0


def _launch(chosen) -> int:
    from mxopt.launch import launch

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


def _reproduce(chosen) -> int:
    from mxopt.reproduce import reproduce

    reproduce(chosen.tier, chosen.results, only=chosen.only, long=chosen.long,
              resume=chosen.resume)  # fmt: skip
    return 0


def _report(chosen) -> int:
    from mxopt import files, report_page, results

    print(results.write_page(chosen.results))
    if chosen.html:
        print(report_page.write(chosen.results))
    if chosen.readme:
        text = results.update_readme(chosen.readme, chosen.results)
        files.replace_text(chosen.readme, text)
        print(chosen.readme)
    return 0


def _errata(chosen) -> int:
    from mxopt import errata, files

    if chosen.write:
        files.replace_text(chosen.write, errata.page())
        return 0
    for erratum in errata.ERRATA:
        wrong, right = erratum.show()
        where = "" if erratum.exact else ", on this machine"
        print(f"{erratum.title}: {wrong:.3g} instead of {right:.3g} ({erratum.unit}{where})")
    return 0


def _verify(chosen) -> int:
    from mxopt.verify import verify

    problems = verify(chosen.results, chosen.readme)
    for problem in problems:
        print(problem)
    count = f"{len(problems)} problem{'s' if len(problems) > 1 else ''}"
    print(f"{chosen.results}: {count if problems else 'holds'}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
