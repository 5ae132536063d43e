"""Checks of the notebooks' exercises: each tells right from wrong, and gives a hint.

A check never raises and needs no solution: it tries the reader's answer on cases that it makes
itself. It prints one line, which begins with ``right`` or ``not yet``, and returns whether it is
right. Each notebook imports the module with its own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

CHECKS: dict[str, Callable] = {}


class _NotYet(Exception):
    """An answer is wrong; the message is the hint."""


def checked(function: Callable) -> Callable:
    """Return a check made of a function of the answers, which gives hints with :func:`must`."""

    @functools.wraps(function)
    def check(*answers) -> bool:
        if any(answer is None or answer is ... for answer in answers):
            print("not yet: there is no answer in the cell above")
            return False
        try:
            function(*answers)
        except _NotYet as hint:
            print(f"not yet: {hint}")
            return False
        except Exception as error:
            print(f"not yet: your code raised {type(error).__name__}: {error}")
            return False
        print("right")
        return True

    CHECKS[function.__name__] = check
    return check


def must(fact: bool, hint: str) -> None:
    """End a check with a hint unless something is true of the answer.

    Args:
        fact: what has to be true.
        hint: what is printed otherwise.
    """
    if not fact:
        raise _NotYet(hint)
