from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mxopt.core.errors import DataError, PlanError
from mxopt.methods.bucketing.bucketing import (
    as_they_come,
    bucket_ends,
    by_length,
    by_tokens,
    describe,
    pad,
    padding_share,
    shapes,
)

some_lengths = st.lists(st.tuples(st.integers(1, 40), st.integers(1, 40)), min_size=1, max_size=80)
seeds = st.integers(0, 2**31)


def ways(lengths, size, buckets, seed, epoch):
    """The batches of all three ways; a batch by tokens holds at least one longest sentence."""
    tokens = size * (max(map(max, lengths)) + 1)
    more = {"seed": seed, "epoch": epoch}
    return [
        as_they_come(lengths, size, **more),
        by_length(lengths, size, buckets, **more),
        by_tokens(lengths, tokens, buckets, **more),
    ]


@given(
    some_lengths,
    st.integers(1, 9),
    st.integers(1, 5),
    st.one_of(st.none(), seeds),
    st.integers(0, 3),
)
def test_every_pair_comes_once_and_fits(lengths, size, buckets, seed, epoch):
    for batches in ways(lengths, size, buckets, seed, epoch):
        rows = [row for batch in batches for row in batch.rows]
        assert sorted(rows) == list(range(len(lengths)))
        for batch in batches:
            assert all(lengths[row][0] <= batch.source for row in batch.rows)
            assert all(lengths[row][1] <= batch.target for row in batch.rows)
        assert 0 <= padding_share(batches, lengths) < 1


@given(some_lengths, st.integers(1, 9), st.integers(1, 5), seeds)
def test_the_order_is_that_of_seed_and_epoch(lengths, size, buckets, seed):
    np.random.seed(seed % 100)
    first = ways(lengths, size, buckets, seed, 3)
    np.random.seed(seed % 100 + 1)  # The process's own generator has no say.
    assert ways(lengths, size, buckets, seed, 3) == first


def test_each_epoch_has_an_order_of_its_own_and_no_seed_leaves_it():
    lengths = [(1 + number % 7, 1 + number % 7) for number in range(200)]
    for one, other in zip(ways(lengths, 8, 4, 0, 0), ways(lengths, 8, 4, 0, 1)):
        assert one != other
        assert {frozenset(batch.rows) for batch in one}.isdisjoint(
            frozenset(batch.rows) for batch in other
        )
    plain, bucketed, _ = ways(lengths, 8, 4, None, 0)
    assert [row for batch in plain for row in batch.rows] == list(range(200))
    assert [batch.source for batch in bucketed] == sorted(batch.source for batch in bucketed)


@given(some_lengths, st.integers(1, 9), st.integers(1, 5), seeds)
def test_all_batches_are_full_but_one_and_shapes_are_few(lengths, size, buckets, seed):
    for batches in ways(lengths, size, buckets, seed, 0)[:2]:
        partial = [batch for batch in batches if len(batch.rows) != size]
        assert len(partial) == bool(len(lengths) % size)
    for way in (1, 2):
        batches = ways(lengths, size, buckets, seed, 0)[way]
        assert len(shapes(batches)) <= buckets + 1
        assert shapes(batches) == shapes(ways(lengths, size, buckets, seed, 1)[way])


@given(some_lengths, st.integers(40, 300), st.integers(1, 5), seeds)
def test_a_budget_of_tokens_is_kept_and_used(lengths, tokens, buckets, seed):
    batches = by_tokens(lengths, tokens, buckets, seed)
    assert all(len(batch.rows) * batch.target <= tokens for batch in batches)
    full = [batch for batch in batches if (len(batch.rows) + 1) * batch.target > tokens]
    assert len(batches) - len(full) <= 1


@given(some_lengths, st.integers(40, 90), st.integers(1, 9), st.integers(1, 5), seeds)
def test_parts_of_an_update_are_those_of_one_large_batch(lengths, tokens, size, parts, seed):
    for whole, cut in (
        (
            by_tokens(lengths, parts * tokens, 3, seed),
            by_tokens(lengths, tokens, 3, seed, parts=parts),
        ),
        (by_length(lengths, parts * size, 3, seed), by_length(lengths, size, 3, seed, parts=parts)),
    ):
        updates = [cut[start : start + parts] for start in range(0, len(cut), parts)]
        joined = [
            ([row for part in update for row in part.rows], update[0].target) for update in updates
        ]
        expected = [(batch.rows, batch.target) for batch in whole]
        assert sorted(joined) == sorted(expected)
        short = [batch for batch in whole if len(batch.rows) < parts]
        kept = [(batch.rows, batch.target) for batch in whole if batch not in short]
        assert joined[: len(kept)] == kept
        for update in updates:
            sizes = [len(part.rows) for part in update]
            assert max(sizes) - min(sizes) <= 1
            assert len(update) == min(parts, sum(sizes))


@given(
    st.lists(st.integers(1, 12), min_size=1, max_size=20),
    st.integers(1, 4),
)
def test_no_other_bucket_ends_need_less_padding(longest, count):
    ends = bucket_ends([(length, 1) for length in longest], count)

    def tokens(ends):
        return sum(min(end for end in ends if end >= length) for length in longest)

    candidates = sorted(set(longest))
    rest, top = candidates[:-1], candidates[-1:]
    best = min(
        tokens([*chosen, *top])
        for some in range(min(count, len(candidates)))
        for chosen in combinations(rest, some)
    )
    assert ends == sorted(set(ends))
    assert len(ends) <= count
    assert tokens(ends) == best


def test_buckets_pad_less_than_pairs_as_they_come():
    random = np.random.RandomState(0)
    lengths = random.randint(5, 50, 2000)[:, None] + random.randint(0, 3, (2000, 2))
    plain, bucketed, by_budget = ways(lengths.tolist(), 32, 8, 0, 0)
    assert padding_share(plain, lengths) > 0.4
    assert padding_share(bucketed, lengths) < 0.15
    assert padding_share(by_budget, lengths) < 0.15


def test_the_padding_share_counts_both_sides():
    lengths = [(1, 4), (3, 2)]
    (batch,) = as_they_come(lengths, 2)
    assert batch.shape == (2, 3, 4)
    assert padding_share([batch], lengths) == pytest.approx(1 - 10 / 14)
    assert describe([batch], lengths) == "1 batches of 1 shapes, 28.6 % padding"


def test_numbers_that_make_no_batches_are_refused():
    with pytest.raises(PlanError, match="batch_size=0 must be at least 1"):
        as_they_come([(1, 1)], 0)
    with pytest.raises(PlanError, match=r"tokens=40 is less than .* longest .*, 41 tokens with"):
        by_tokens([(3, 41)], 40, parts=2)
    with pytest.raises(DataError, match="no pairs of sentences"):
        by_length([], 4)


@given(st.lists(st.lists(st.integers(5, 99), max_size=12), min_size=1, max_size=6))
def test_padding_keeps_the_tokens_and_fills_the_rest(rows):
    padded = pad(rows, 0)
    assert padded.dtype == np.int32
    assert padded.shape == (len(rows), max(map(len, rows)))
    for row, line in zip(rows, padded):
        assert line[: len(row)].tolist() == row
        assert not line[len(row) :].any()


def test_padding_to_a_length_refuses_what_is_longer():
    assert pad([[5]], 1, length=3).tolist() == [[5, 1, 1]]
    with pytest.raises(DataError, match="a sentence of 4 tokens does not fit into 3"):
        pad([[5, 5, 5, 5]], 0, length=3)
