"""Arguments of the commands for a machine, for the notebooks, and for results."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from mxopt.cli import commands, storing
from mxopt.cli.words import whole, with_options

_TIERS = {
    "choices": ("smoke", "cpu", "gpu"),
    "help": "default: the best that this machine supports",
}


def add(command: Callable) -> None:
    """Add the commands for a machine, for the notebooks, and for results.

    Args:
        command: ``command(name, function, text)`` returns the parser of a new command.
    """
    doctor = command(
        "doctor", commands.doctor, "check the installation, and print how to fix what is missing"
    )
    doctor.add_argument("--json", action="store_true", help="print JSON")
    doctor.add_argument("--tier", **_TIERS)

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

    records = command(
        "write-records", storing.write_records, "write a recipe's images into one record file"
    )
    records.add_argument("recipe", help="segmentation, fashion_mnist, or yours, module:function")
    records.add_argument("file", type=Path, help="a new file, such as train.rec")
    records.add_argument("--split", choices=("train", "validation", "test"), default="train")
    records.add_argument(
        "--quality", type=whole(1, 100), help="of JPEG, 1 to 100; default: PNG, no loss"
    )
    records.add_argument("--side", type=whole(1), help="shorter side that images are resized to")
    with_options(records, "limit=1000")

    launch = command(
        "launch", commands.launch, "run your own Gluon script with faster environment settings"
    )
    launch.add_argument(
        "--switch",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="switch of a plan to set in addition, such as openmp=intel; only those that are"
        " environment variables",
    )
    launch.add_argument(
        "--tune",
        action="store_true",
        help="try several environments on the script for some minutes, and print the fastest",
    )
    launch.add_argument("script", help="Python file")
    launch.add_argument("arguments", nargs=argparse.REMAINDER, help="arguments of the script")

    reproduce = command(
        "reproduce", commands.reproduce, "run the notebooks and write a folder of results"
    )
    reproduce.add_argument("--tier", **_TIERS)
    reproduce.add_argument(
        "--results",
        type=Path,
        metavar="FOLDER",
        help="folder for the results; default: a new one in results",
    )
    reproduce.add_argument(
        "--only",
        default="",
        metavar="NAME",
        help="run the notebooks whose names begin so: 8_2 is one, 8_ are the chapter's",
    )
    reproduce.add_argument(
        "--resume", action="store_true", help="continue an interrupted run; needs --results"
    )
    reproduce.add_argument(
        "--long", action="store_true", help="add measurements that take several hours"
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
