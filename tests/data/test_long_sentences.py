import pytest

from mxopt.core.errors import DataError, PlanError
from mxopt.data.long_sentences import rows_within

PAIRS = [([1, 2], [3]), ([1, 2, 3, 4], [5]), ([6], [7, 8, 9]), ([1], [2])]


def test_long_sentences_are_counted_and_taken_to_be_cut():
    rows, note = rows_within(PAIRS, 2, "cut")
    assert rows == [0, 1, 2, 3]
    assert note == "2 of 4 pairs with more than 2 tokens on a side were cut there."


def test_long_sentences_are_dropped_and_the_others_keep_their_numbers():
    rows, note = rows_within(PAIRS, 2, "drop")
    assert rows == [0, 3]
    assert note.endswith("were left out.")


def test_long_sentences_are_refused_by_number():
    with pytest.raises(DataError, match=r"2 of 4 pairs have more than 2 .* longest 4 \(pair 2\)"):
        rows_within(PAIRS, 2, "refuse")


@pytest.mark.parametrize("too_long", ["cut", "drop", "refuse"])
def test_nothing_is_said_where_nothing_is_too_long(too_long):
    assert rows_within(PAIRS, 4, too_long) == ([0, 1, 2, 3], "")


def test_another_word_for_long_sentences_is_refused():
    with pytest.raises(PlanError, match="too_long='shorten' is not a choice; take one of cut, ref"):
        rows_within(PAIRS, 2, "shorten")


def test_a_limit_below_one_token_is_refused():
    with pytest.raises(PlanError, match="most=0 must be at least 1"):
        rows_within(PAIRS, 0)
