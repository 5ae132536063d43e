"""The command ``mxopt``: its words. What each does is in :mod:`mxopt.cli.commands`."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from mxopt import __version__
from mxopt.cli import commands
from mxopt.core.errors import MxoptError


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
    words = parser.add_subparsers(required=True, metavar="command")

    def command(name, function, text):
        sub = words.add_parser(name, help=text, description=text)
        sub.set_defaults(command=function)
        return sub

    tiers = {"choices": ("smoke", "cpu", "gpu"), "help": "instead of the best this machine can do"}
    doctor = command(
        "doctor", commands.doctor, "say what is here, what is missing, and how to mend it"
    )
    doctor.add_argument("--json", action="store_true", help="print for machines")
    doctor.add_argument("--tier", **tiers)

    fetch = command(
        "fetch", commands.fetch, "find data sets and weights, downloading what is missing"
    )
    fetch.add_argument("names", nargs="*", help="data sets; all of them if none is named")
    fetch.add_argument("--verify", action="store_true", help="hash the files that are here already")

    run = command("run", commands.run, "train a recipe under a plan, in a process of its own")
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

    again = command(
        "again", commands.again, "run what a record holds once more, beside what it holds"
    )
    again.add_argument(
        "old", type=Path, metavar="RECORD", help="such as 8_2/levers/static-01.jsonl"
    )
    again.add_argument("--record", type=Path, help="where the new record goes")

    compare = command(
        "compare", commands.compare, "measure two plans in turns, and say what differs"
    )
    ablate = command("ablate", commands.ablate, "say how much of a speed-up is each switch's")
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

    launch = command(
        "launch", commands.launch, "run a Gluon script of yours in a faster environment"
    )
    launch.add_argument("--switch", action="append", default=[], metavar="NAME=VALUE",
                        help="of a plan, such as openmp=intel, instead of the usual")  # fmt: skip
    launch.add_argument("script", help="a Python file")
    launch.add_argument("arguments", nargs=argparse.REMAINDER, help="its own arguments")

    reproduce = command(
        "reproduce", commands.reproduce, "run the notebooks and leave a folder of results"
    )
    reproduce.add_argument("--tier", **tiers)
    reproduce.add_argument("--results", type=Path, help="the folder; a new one if not given")
    reproduce.add_argument("--only", default="", help="one notebook, such as 8_2")
    reproduce.add_argument("--resume", action="store_true", help="go on in an interrupted folder")
    reproduce.add_argument("--long", action="store_true", help="also what takes up to two hours")

    report = command(
        "report", commands.report, "write RESULTS.md again from the records of a folder"
    )
    report.add_argument("results", type=Path)
    report.add_argument("--html", action="store_true", help="also write report.html")
    report.add_argument("--readme", type=Path, help="also renew the table in this README")

    pack = command("pack", commands.pack, "pack each experiment's folder of records into one file")
    pack.add_argument("results", type=Path, help="a results folder, or one experiment's")
    pack.add_argument("destination", type=Path, help="the folder that gets the files")

    errata = command("errata", commands.errata, "show the chapter's errors of method, both ways")
    errata.add_argument("--write", type=Path, metavar="FILE", help="write the page, print nothing")

    verify = command(
        "verify", commands.verify, "compute published results again from their records"
    )
    verify.add_argument("results", type=Path)
    verify.add_argument("--readme", type=Path, help="also compare the table in this README")
    return parser


if __name__ == "__main__":
    sys.exit(main())
