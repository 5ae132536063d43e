"""The command ``mxopt`` and its arguments.

:mod:`mxopt.cli.commands` and :mod:`mxopt.cli.finding` have what they do.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from mxopt import __version__
from mxopt.cli import commands, finding
from mxopt.core.errors import MxoptError


def main(arguments: list[str] | None = None) -> int:
    """Run one command.

    Args:
        arguments: the command and its arguments; those of the process if None.

    Returns:
        The exit status: 0 for success, 1 for failure, 2 for wrong input, 130 if interrupted.
    """
    parser = _parser()
    if os.getcwd() not in sys.path:  # for recipes of the user
        sys.path.append(os.getcwd())
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
        # The reader closed the pipe, as `head` does; Python must not flush again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mxopt",
        description="Switch MXNet's training optimisations on and off, and measure them.",
    )
    parser.add_argument("--version", action="version", version=f"mxopt {__version__}")
    subcommands = parser.add_subparsers(required=True, metavar="command")

    def command(name, function, text):
        sub = subcommands.add_parser(name, help=text, description=text)
        sub.set_defaults(command=function)
        return sub

    def trained(sub, switches):
        sub.add_argument(
            "recipe",
            help="segmentation, translation, fashion_mnist, or your own as module:function",
        )
        sub.add_argument("switches", nargs="*", metavar="NAME=VALUE", help=switches)
        sub.add_argument(
            "--option",
            action="append",
            default=[],
            metavar="NAME=VALUE",
            help="an option of the recipe, such as size=160",
        )

    tiers = {
        "choices": ("smoke", "cpu", "gpu"),
        "help": "default: the best that this machine supports",
    }
    doctor = command(
        "doctor", commands.doctor, "check the installation, and print how to fix what is missing"
    )
    doctor.add_argument("--json", action="store_true", help="print JSON")
    doctor.add_argument("--tier", **tiers)

    gpu_check = command(
        "gpu-check", commands.gpu_check, "check what the GPUs of this machine compute (10 minutes)"
    )
    gpu_check.add_argument("--quick", action="store_true", help="smaller sizes: two minutes")
    gpu_check.add_argument("--name", default="", help="name of the machine in the files")
    gpu_check.add_argument(
        "--folder", type=Path, default=Path("."), help="where the report is written; default: here"
    )

    fetch = command(
        "fetch", commands.fetch, "find data sets and weights, and download what is missing"
    )
    fetch.add_argument("names", nargs="*", help="data sets; default: all")
    fetch.add_argument(
        "--verify", action="store_true", help="also hash files that are already here"
    )

    run = command("run", commands.run, "train a recipe once, in its own process")
    trained(run, "the plan, such as batch_size=8 epochs=4")
    run.add_argument(
        "--record",
        type=Path,
        metavar="FILE",
        help="file for the run's record; default: in a new folder in results",
    )
    run.add_argument(
        "--checkpoints",
        action="store_true",
        help="write a checkpoint after each epoch and after every 1,000 steps, and keep"
        " the last two; the same command continues after a crash",
    )
    run.add_argument(
        "--checkpoint-steps",
        type=int,
        metavar="STEPS",
        help="steps between checkpoints within an epoch; implies --checkpoints",
    )
    where = run.add_mutually_exclusive_group()
    where.add_argument(
        "--hosts",
        type=Path,
        metavar="FILE",
        help="hosts, one per line, to start the plan's processes on by ssh",
    )
    where.add_argument(
        "--under",
        choices=("slurm", "mpi"),
        default="",
        help="this process is one task of a job started by SLURM or MPI",
    )

    slurm = command(
        "slurm", commands.slurm, "print a SLURM batch script that trains a recipe on several nodes"
    )
    trained(slurm, "the plan; processes, kvstore and devices follow from the nodes")
    slurm.add_argument("--nodes", type=int, required=True, help="number of nodes")
    slurm.add_argument("--gpus", type=int, default=0, help="GPUs of each node; default: none")
    slurm.add_argument(
        "--process-per-gpu",
        action="store_true",
        help="one process for each GPU; default: one for each node, with all its GPUs",
    )
    slurm.add_argument("--cores", type=int, default=1, help="cores of each process; default: 1")
    slurm.add_argument("--hours", type=float, default=24, help="limit of the job; default: 24")
    slurm.add_argument(
        "--record",
        type=Path,
        required=True,
        metavar="FILE",
        help="file for the run's record, on a disk that all nodes share",
    )
    slurm.add_argument(
        "--sbatch",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a further option of sbatch, such as partition=short",
    )

    again = command(
        "again", commands.again, "repeat a recorded run, and print the old and the new figures"
    )
    again.add_argument(
        "old", type=Path, metavar="RECORD", help="such as 8_2/levers/static-01.jsonl"
    )
    again.add_argument("--record", type=Path, metavar="FILE", help="file for the new record")

    advise = command(
        "advise", finding.advise, "say what may make a recorded run faster, and how to measure it"
    )
    advise.add_argument("record", type=Path, help="such as results/mine/run-01.jsonl")

    cost = command("cost", finding.cost, "say what a recorded training cost, beside benchmarks")
    cost.add_argument("record", type=Path, help="such as results/mine/run-01.jsonl")
    cost.add_argument("--price", type=float, required=True, help="price of an hour of this machine")
    cost.add_argument("--currency", default="USD", help="currency of the price; default: USD")
    cost.add_argument(
        "--goal", metavar="FIGURE=VALUE", help="count until then, such as validation_accuracy=0.9"
    )

    compare = command(
        "compare", commands.compare, "measure two plans in interleaved runs, and print the ratio"
    )
    ablate = command(
        "ablate", commands.ablate, "measure how much each switch contributes to a speed-up"
    )
    for sub in (compare, ablate):
        trained(sub, "the first plan, such as batch_size=8")
        sub.add_argument(
            "--after",
            nargs="+",
            required=True,
            metavar="NAME=VALUE",
            help="changes of the second plan: switches, or options of the recipe",
        )
        sub.add_argument("--repeats", type=int, default=6, help="runs of each plan; default: 6")
        sub.add_argument(
            "--results",
            type=Path,
            metavar="FOLDER",
            help="folder for records and plots; default: a new one in results",
        )
    compare.add_argument(
        "--effect-of", metavar="NAME", help="refuse to measure if anything but this switch differs"
    )
    compare.add_argument(
        "--quality",
        default="",
        metavar="FIGURE",
        help="figure that must not fall for a speed-up to count, such as test_mIoU",
    )
    compare.add_argument(
        "--margin", type=float, default=0.0, help="largest allowed loss of quality; default: 0"
    )

    find = command(
        "find-batch", finding.find_batch, "find the largest batch that trains on this machine"
    )
    trained(find, "the plan; its batch_size is the first that is tried")
    find.add_argument("--most", type=int, help="largest batch to try; default: the training set")
    find.add_argument(
        "--results", type=Path, metavar="FOLDER", help="folder for the trials' records"
    )

    tune = command(
        "autotune", finding.autotune, "find how samples are loaded fastest on this machine"
    )
    trained(tune, "the plan; workers, prefetching, loader and transforms are tuned")
    tune.add_argument("--seconds", type=float, default=20, help="of trials; default: 20")
    tune.add_argument("--again", action="store_true", help="measure, even if a result is kept")

    rate = command(
        "find-rate", finding.find_rate, "suggest a learning rate, from one short training"
    )
    trained(rate, "the plan; its learning rate and schedule have no effect")
    rate.add_argument("--lowest", type=float, default=1e-7, help="first rate; default: 1e-7")
    rate.add_argument("--highest", type=float, default=10.0, help="last rate; default: 10")
    rate.add_argument("--steps", type=int, default=120, help="updates in between; default: 120")
    rate.add_argument(
        "--results", type=Path, metavar="FOLDER", help="folder for the record and the plot"
    )

    search = command(
        "search", finding.search, "search hyper-parameters with Optuna, each trial in its process"
    )
    trained(search, "the plan; what is searched is in --space")
    search.add_argument(
        "--space",
        nargs="+",
        required=True,
        metavar="NAME=RANGE",
        help="float:LOW:HIGH, int:LOW:HIGH[:STEP], both with :log if wanted, choice:A,B, or bool",
    )
    search.add_argument("--trials", type=int, default=50, help="trials in all; default: 50")
    search.add_argument("--minutes", type=float, help="no trial begins later; default: no limit")
    search.add_argument(
        "--objective", default="validation_accuracy", metavar="FIGURE", help="what is maximised"
    )
    search.add_argument("--sampler", choices=("tpe", "random"), default="tpe")
    search.add_argument("--pruner", choices=("hyperband", "median", "none"), default="hyperband")
    search.add_argument(
        "--results",
        type=Path,
        metavar="FOLDER",
        help="folder of the trials; a search that is there goes on; default: a new one",
    )

    launch = command(
        "launch", commands.launch, "run your own Gluon script with faster environment settings"
    )
    launch.add_argument(
        "--switch",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="switch of a plan to set in addition, such as openmp=intel",
    )
    launch.add_argument(
        "--tune",
        action="store_true",
        help="try several environments on the script for a minute, and print the fastest",
    )
    launch.add_argument("script", help="Python file")
    launch.add_argument("arguments", nargs=argparse.REMAINDER, help="arguments of the script")

    reproduce = command(
        "reproduce", commands.reproduce, "run the notebooks and write a folder of results"
    )
    reproduce.add_argument("--tier", **tiers)
    reproduce.add_argument(
        "--results",
        type=Path,
        metavar="FOLDER",
        help="folder for the results; default: a new one in results",
    )
    reproduce.add_argument(
        "--only", default="", metavar="NOTEBOOK", help="run one notebook, such as 8_2"
    )
    reproduce.add_argument(
        "--resume", action="store_true", help="continue an interrupted run; needs --results"
    )
    reproduce.add_argument(
        "--long", action="store_true", help="add measurements that take up to two hours"
    )

    report = command("report", commands.report, "write RESULTS.md from the records of a folder")
    report.add_argument("results", type=Path)
    report.add_argument("--html", action="store_true", help="also write report.html")
    report.add_argument("--readme", type=Path, help="also update the table in this README")

    pack = command("pack", commands.pack, "pack each experiment's folder of records into one file")
    pack.add_argument("results", type=Path, help="a results folder, or one experiment's")
    pack.add_argument("destination", type=Path, help="the folder that gets the files")

    errata = command(
        "errata", commands.errata, "run the chapter's measurement errors: as printed and corrected"
    )
    errata.add_argument(
        "--write", type=Path, metavar="FILE", help="write the page instead of printing"
    )

    verify = command("verify", commands.verify, "check published results against their records")
    verify.add_argument("results", type=Path)
    verify.add_argument("--readme", type=Path, help="also compare the table in this README")
    return parser


if __name__ == "__main__":
    sys.exit(main())
