"""Arguments of the commands that train: run, slurm, again, compare, ablate."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from mxopt.cli import commands
from mxopt.cli.words import list_of_switches, trained, whole


def add(command: Callable) -> None:
    """Add the commands that train.

    Args:
        command: ``command(name, function, text)`` returns the parser of a new command.
    """
    run = command("run", commands.run, "train a recipe once, in its own process")
    trained(run, "the plan, such as batch_size=8 epochs=4")
    run.formatter_class = argparse.RawDescriptionHelpFormatter
    run.epilog = (
        "switches of a plan; the first value is the default:\n"
        f"{list_of_switches()}\n"
        "`python -m pydoc mxopt.core.plan.Plan` says what each does."
    )
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
        "old",
        type=Path,
        metavar="RECORD",
        help="such as 8_2/levers/static-01.jsonl; of a packed experiment the file and a run in it,"
        " 8_2/levers.jsonl/static-01.jsonl",
    )
    again.add_argument("--record", type=Path, metavar="FILE", help="file for the new record")

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
        sub.add_argument(
            "--repeats",
            type=whole(1),
            default=6,
            help="runs of each plan; with two or more, the first plan has as many again, "
            "which show the noise; default: 6",
        )
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
