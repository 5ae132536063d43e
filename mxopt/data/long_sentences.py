"""Sentences that are too long: cut them, drop them or raise, and report how many there are."""

from __future__ import annotations

from mxopt.core.errors import DataError, PlanError

TOO_LONG = ("cut", "refuse", "drop")


def rows_within(pairs, most: int, too_long: str = "cut") -> tuple[list[int], str]:
    """Return which pairs to keep, given a maximum number of tokens.

    The begin and the end of a sentence are not counted as tokens; a network needs positions for
    them as well.

    Args:
        pairs: (source, target), each a list of tokens.
        most: maximum number of tokens of a side.
        too_long: ``cut`` keeps every pair, and the caller takes the first ``most`` tokens; ``drop``
            leaves out pairs with more; ``refuse`` raises.

    Returns:
        The rows of ``pairs`` to keep, and a note on the pairs with too many tokens, empty if there
        are none.

    Raises:
        DataError: a sentence is too long and ``too_long`` is ``refuse``.
        PlanError: ``too_long`` is another word, or ``most`` is less than 1.
    """
    if too_long not in TOO_LONG:
        raise PlanError(f"{too_long=} is not a choice; take one of {', '.join(TOO_LONG)}")
    if most < 1:
        raise PlanError(f"{most=} must be at least 1")
    sizes = [max(map(len, pair)) for pair in pairs]
    over = {row for row, size in enumerate(sizes) if size > most}
    if not over:
        return list(range(len(sizes))), ""
    if too_long == "refuse":
        longest = max(sizes)
        raise DataError(
            f"{len(over):,} of {len(sizes):,} pairs have more than {most} tokens on a side, the "
            f"longest {longest} (pair {sizes.index(longest) + 1:,}): cut or drop them, or allow "
            "longer ones."
        )
    done = {"cut": "cut there", "drop": "left out"}[too_long]
    rows = [row for row in range(len(sizes)) if too_long == "cut" or row not in over]
    return rows, (
        f"{len(over):,} of {len(sizes):,} pairs with more than {most} tokens on a side were {done}."
    )
