"""What several commands share: reading an option, and saying how a run ended."""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import shlex
import sys
from collections.abc import Callable, Iterable

from mxopt.core.errors import MxoptError
from mxopt.core.plan import Plan, choices


def ended(run) -> int:
    """Print how an unsuccessful run ended, and return the exit status.

    Args:
        run: the run.
    """
    print(f"mxopt: the run ended as {run.status}: {run.reason}", file=sys.stderr)
    return 2 if run.status == "refused" else 1


def option(word: str, argument: str = "--option") -> tuple[str, object]:
    """Return name and value of an option of a recipe.

    Args:
        word: ``name=value``; the value is JSON, or else a string.
        argument: the argument that has the word, for the message.

    Raises:
        MxoptError: it is not of that form.
    """
    name, equals, text = word.partition("=")
    if not equals:
        raise MxoptError(
            f"{argument} {word!r} is not understood; write NAME=VALUE, such as size=160"
        )
    try:
        return name, json.loads(text)
    except ValueError:
        return name, text


def read_options(words: Iterable[str], argument: str = "--option") -> dict[str, object]:
    """Return the options of a recipe, by name.

    Args:
        words: as for :func:`option`.
        argument: the argument that has the words, for messages.

    Raises:
        MxoptError: a word is not of that form, or a name is given twice.
    """
    found: dict[str, object] = {}
    for word in words:
        name, value = option(word, argument)
        if name in found:
            raise MxoptError(f"{argument} {word!r}: {name} is given a second time; give it once")
        found[name] = value
    return found


def assignment(name: str, value) -> str:
    """Return the word that :func:`option` reads as this name and value, quoted for a shell.

    >>> assignment("size", 96), assignment("network", "tiny"), assignment("stand_in", True)
    ('size=96', 'network=tiny', 'stand_in=true')

    Args:
        name: name of an option.
        value: its value, which JSON can represent.
    """
    plain = f"{name}={value}"
    text = plain if isinstance(value, str) and option(plain)[1] == value else None
    return shlex.quote(text or f"{name}={json.dumps(value)}")


def goal(word: str) -> tuple[str, float]:
    """Return name and value of a figure that is to be reached.

    Args:
        word: ``figure=value``.

    Raises:
        MxoptError: it is not of that form, or the value is not a finite number.
    """
    name, _, text = word.partition("=")
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not name or not math.isfinite(value):
        raise MxoptError(
            f"--goal {word!r} is not understood; write FIGURE=VALUE with a number, such as "
            "validation_accuracy=0.9"
        )
    return name, value


def whole(least: int, most: int | None = None) -> Callable[[str], int]:
    """Return a function that reads a whole number, for ``type`` of an argument.

    Args:
        least: the smallest number that is allowed.
        most: the largest one; None for no limit.
    """
    limits = f"of at least {least}" if most is None else f"from {least} to {most}"

    def read(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if value < least or (most is not None and value > most):
            raise argparse.ArgumentTypeError(f"{text!r} must be a whole number {limits}")
        return value

    return read


def above_zero(text: str) -> float:
    """Return a finite number above 0, for ``type`` of an argument.

    Args:
        text: the number.

    Raises:
        argparse.ArgumentTypeError: it is no such number.
    """
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} must be a finite number above 0")
    return value


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
    sub.add_argument(
        "switches",
        nargs="*",
        metavar="NAME=VALUE",
        help=f"{switches}; the end of `mxopt run --help` lists all switches",
    )
    with_options(sub, "size=160")


def list_of_switches() -> str:
    """Return all switches of a plan with their values, one on each line."""
    lines = []
    for switch in dataclasses.fields(Plan):
        values = " | ".join(choices(switch.name))
        if "least" in switch.metadata:
            kind = "a whole number" if switch.type.startswith("int") else "a number"
            values = f"{kind} of at least {switch.metadata['least']}; default: {switch.default}"
        lines.append(f"  {switch.name:20s} {values or f'default: {switch.default}'}")
    return "\n".join(lines)


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


def collect(chosen: argparse.Namespace, rest: list[str]) -> None:
    """Add the words of a plan that stand behind a named argument to the plan's other words.

    ``argparse`` reads the words of a plan in one place only, and returns those behind another
    argument, as in ``mxopt run segmentation --option size=96 epochs=2``, as unknown.

    Args:
        chosen: the parsed arguments; ``switches`` is extended, ``parser`` is the command's.
        rest: the arguments that ``argparse`` did not know.
    """
    if hasattr(chosen, "switches") and all(
        "=" in word and not word.startswith("-") for word in rest
    ):
        chosen.switches = [*chosen.switches, *rest]
    elif rest:
        chosen.parser.error(f"unrecognized arguments: {' '.join(rest)}")
