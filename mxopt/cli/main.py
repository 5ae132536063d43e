"""The command ``mxopt``.

:mod:`mxopt.cli.training`, :mod:`mxopt.cli.searching` and :mod:`mxopt.cli.publishing` have the
arguments of the commands, :mod:`mxopt.cli.commands` and :mod:`mxopt.cli.finding` what they do.
"""

from __future__ import annotations

import argparse
import os
import sys

from mxopt import __version__
from mxopt.cli import publishing, searching, training
from mxopt.cli.words import collect
from mxopt.core.errors import MxoptError


def main(arguments: list[str] | None = None) -> int:
    """Run one command.

    Args:
        arguments: the command and its arguments; those of the process if None.

    Returns:
        The exit status: 0 for success, 1 for failure, 2 for wrong input, 130 if interrupted.
    """
    chosen, rest = _parser().parse_known_args(arguments)
    collect(chosen, rest)
    try:
        folder = os.getcwd()
    except FileNotFoundError:
        print("mxopt: the working folder was deleted; change to another one (cd)", file=sys.stderr)
        return 2
    if folder not in sys.path:  # for recipes of the user
        sys.path.append(folder)
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
        sub.set_defaults(command=function, parser=sub)
        return sub

    for group in (publishing, training, searching):
        group.add(command)
    return parser


if __name__ == "__main__":
    sys.exit(main())
