"""Arguments of the commands that find something: advise, cost, find-batch and others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from mxopt.cli import finding
from mxopt.cli.words import above_zero, trained, whole


def add(command: Callable) -> None:
    """Add the commands that find something.

    Args:
        command: ``command(name, function, text)`` returns the parser of a new command.
    """
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

    find = command(
        "find-batch", finding.find_batch, "find the largest batch that trains on this machine"
    )
    trained(find, "the plan; its batch_size is the first that is tried")
    find.add_argument(
        "--most", type=whole(1), help="largest batch to try; default: the training set"
    )
    find.add_argument(
        "--results", type=Path, metavar="FOLDER", help="folder for the trials' records"
    )

    tune = command(
        "autotune", finding.autotune, "find how samples are loaded fastest on this machine"
    )
    trained(tune, "the plan; workers, prefetching, loader and transforms are tuned")
    tune.add_argument("--seconds", type=above_zero, default=20.0, help="of trials; default: 20")
    tune.add_argument(
        "--memory",
        type=whole(1),
        metavar="MIB",
        help="that loading may use; default: half of what is free",
    )
    tune.add_argument("--again", action="store_true", help="measure, even if a result is kept")

    rate = command(
        "find-rate", finding.find_rate, "suggest a learning rate, from one short training"
    )
    trained(rate, "the plan; its learning rate and schedule have no effect")
    rate.add_argument("--lowest", type=above_zero, default=1e-7, help="first rate; default: 1e-7")
    rate.add_argument("--highest", type=above_zero, default=10.0, help="last rate; default: 10")
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
    search.add_argument("--trials", type=whole(1), default=50, help="trials in all; default: 50")
    search.add_argument(
        "--minutes", type=above_zero, help="no trial begins later; default: no limit"
    )
    search.add_argument(
        "--objective",
        default="validation_accuracy",
        metavar="FIGURE",
        help="what is maximised, or minimised if its name ends in _loss",
    )
    search.add_argument("--sampler", choices=("tpe", "random"), default="tpe")
    search.add_argument("--pruner", choices=("hyperband", "median", "none"), default="hyperband")
    search.add_argument(
        "--results",
        type=Path,
        metavar="FOLDER",
        help="folder of the trials; a search that is there goes on; default: a new one",
    )
