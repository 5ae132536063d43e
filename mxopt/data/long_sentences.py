"""Sentences that are too long: cut, left out or refused, and counted in either case."""

from __future__ import annotations

from mxopt.core.errors import DataError, PlanError

TOO_LONG = ("cut", "refuse", "drop")


def rows_within(pairs, most: int, too_long: str = "cut") -> tuple[list[int], str]:
    """Return which pairs to take, and a note on those with too many tokens, empty without any.

    Count tokens without the begin and the end of a sentence, and leave room for those.

    Args:
        pairs: (source, target), each a list of tokens.
        most: tokens that a side may have.
        too_long: ``cut`` takes every pair, for the caller to keep the first ``most`` tokens;
            ``drop`` leaves out those with more; ``refuse`` raises.

    Raises:
        DataError: with ``refuse``, if a sentence is too long: which, how long, of how many.
        PlanError: another word than these, or ``most`` is less than 1.
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
            "more."
        )
    done = {"cut": "cut there", "drop": "left out"}[too_long]
    rows = [row for row in range(len(sizes)) if too_long == "cut" or row not in over]
    return rows, (
        f"{len(over):,} of {len(sizes):,} pairs with more than {most} tokens on a side were {done}."
    )
