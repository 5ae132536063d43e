"""What several commands share: reading an option, and saying how a run ended."""

from __future__ import annotations

import argparse
import json
import sys

from mxopt.core.errors import MxoptError


def ended(run) -> int:
    """Print how an unsuccessful run ended, and return the exit status.

    Args:
        run: the run.
    """
    print(f"mxopt: the run ended as {run.status}: {run.reason}", file=sys.stderr)
    return 2 if run.status == "refused" else 1


def option(word: str) -> tuple[str, object]:
    """Return name and value of an option of a recipe.

    Args:
        word: ``name=value``; the value is JSON, or else a string.

    Raises:
        MxoptError: it is not of that form.
    """
    name, equals, text = word.partition("=")
    if not equals:
        raise MxoptError(f"--option {word!r} is not understood; write NAME=VALUE, such as size=160")
    try:
        return name, json.loads(text)
    except ValueError:
        return name, text


def trained(sub: argparse.ArgumentParser, switches: str) -> None:
    """Add the arguments that say what is trained: a recipe, a plan, and options of the recipe.

    Args:
        sub: the parser of a command.
        switches: help for the plan.
    """
    sub.add_argument(
        "recipe",
        help="segmentation, translation, fashion_mnist, or your own as module:function",
    )
    sub.add_argument("switches", nargs="*", metavar="NAME=VALUE", help=switches)
    with_options(sub, "size=160")


def with_options(sub: argparse.ArgumentParser, such_as: str) -> None:
    """Add the argument for options of the recipe.

    Args:
        sub: the parser of a command.
        such_as: an option, as an example.
    """
    sub.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help=f"an option of the recipe, such as {such_as}",
    )
