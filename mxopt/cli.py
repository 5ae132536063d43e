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

    reproduce = command("reproduce", _reproduce, "run the notebooks and leave a folder of results")
    reproduce.add_argument("--tier", **tiers)
    reproduce.add_argument("--results", type=Path, help="the folder; a new one if not given")
    reproduce.add_argument("--only", default="", help="one notebook, such as 8_2")
    reproduce.add_argument("--long", action="store_true", help="also what takes up to two hours")

    report = command("report", _report, "write RESULTS.md again from the records of a folder")
    report.add_argument("results", type=Path)
    report.add_argument("--readme", type=Path, help="also renew the table in this README")
    return parser


def _doctor(chosen) -> int:
    from mxopt import doctor

    return doctor.run(json=chosen.json, tier=chosen.tier)


def _fetch(chosen) -> int:
    from mxopt import datasets

    rows = datasets.fetch(chosen.names or datasets.SOURCES, check=chosen.verify)
    return 0 if all(row.location for row in rows) else 1


def _run(chosen) -> int:
    from mxopt import lab, measure, recipes, report
    from mxopt.plan import Plan

    plan = Plan.parse(chosen.switches)
    recipes.resolve(chosen.recipe)
    options = {"recipe": chosen.recipe, **dict(_option(word) for word in chosen.option)}
    record = chosen.record or lab.new_results_folder() / "run-01.jsonl"
    print(f"record: {record}")
    run = measure.run("mxopt.workloads:train", plan, record, options)
    if not run.ok:
        print(f"mxopt: the run ended as {run.status}: {run.reason}", file=sys.stderr)
        return 2 if run.status == "refused" else 1
    print(f"data: {run.only('data').get('kind', 'none')}")
    for name, value in run.figures.items():
        print(f"{report.figure_name(name):24s} {report.number(value)}")
    return 0


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

    reproduce(chosen.tier, chosen.results, only=chosen.only, long=chosen.long)
    return 0


def _report(chosen) -> int:
    from mxopt import results

    print(results.write_page(chosen.results))
    if chosen.readme:
        text = results.update_readme(chosen.readme, chosen.results)
        chosen.readme.write_text(text, encoding="utf-8")
        print(chosen.readme)
    return 0


if __name__ == "__main__":
    sys.exit(main())
