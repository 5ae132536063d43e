"""Batches of sentence pairs that differ in length: which go together, and how far they are padded.

Three ways, from the plain to the thrifty, each visiting every pair once an epoch in an order that
depends on nothing but seed and epoch:

=================  ==========================  ====================================================
way                a batch holds               padded to
=================  ==========================  ====================================================
``as_they_come``   so many pairs               its own longest source and its own longest target
``by_length``      so many pairs               the end of its bucket of lengths
``by_tokens``      so many target tokens, with the end of its bucket of lengths
                   padding
=================  ==========================  ====================================================

Each shape a network has not met costs a graph set-up once it is hybridised. Buckets keep the shapes
few: one for each, and one more for what is left over at the end, the same in every epoch.

Where gradients are added up before an update, its batches are ``parts`` of one batch so many times
as large: sentences of one bucket, and the same update as that batch makes at once. They are of
equal size or differ by a pair, which makes two shapes of one.

>>> lengths = [(3, 4), (4, 4), (9, 8), (3, 3)]
>>> describe(by_length(lengths, batch_size=2, buckets=2), lengths)
'2 batches of 2 shapes, 26.9 % padding'

(GluonNLP's FixedBucketSampler draws from NumPy's one generator for the whole process, and knows no
budget in tokens; therefore not that one.)
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np

from mxopt.core.errors import DataError, PlanError
from mxopt.methods.input_pipeline.samplers import epoch_order


class PlannedBatch(NamedTuple):
    """The pairs of a batch, by their numbers in the data, and the lengths they are padded to."""

    rows: list[int]
    source: int
    target: int

    @property
    def shape(self) -> tuple[int, int, int]:
        """Pairs, source length, target length: what a network's graph is set up for."""
        return len(self.rows), self.source, self.target


def as_they_come(
    lengths, batch_size: int, seed: int | None = None, epoch: int = 0
) -> list[PlannedBatch]:
    """Return batches of ``batch_size`` pairs, whatever their lengths; the last is smaller.

    Args:
        lengths: (source, target) of every pair in tokens, shape (pairs, 2).
        batch_size: pairs in a batch.
        seed: of the order; None leaves the pairs in theirs.
        epoch: each has an order of its own.

    Raises:
        DataError: there is no pair.
        PlanError: a number is less than 1.
    """
    lengths = _checked(lengths, batch_size=batch_size)
    order = epoch_order(len(lengths), seed is not None, seed, epoch)
    batches = []
    for start in range(0, len(order), batch_size):
        rows = order[start : start + batch_size]
        source, target = lengths[rows].max(axis=0).tolist()
        batches.append(PlannedBatch(rows.tolist(), source, target))
    return batches


def by_length(
    lengths,
    batch_size: int,
    buckets: int = 10,
    seed: int | None = None,
    epoch: int = 0,
    parts: int = 1,
) -> list[PlannedBatch]:
    """Return batches of ``batch_size`` pairs of about the same length.

    Pairs that do not fill a last batch in their bucket move up into the next one, so that only one
    batch an epoch is smaller.

    Args:
        lengths, batch_size, seed, epoch: as for :func:`as_they_come`; without a seed the shortest
            come first.
        buckets: at most so many; their ends are those that need the least padding.
        parts: batches of an update. If there are too few pairs for the last update's, it has as
            many batches as pairs, and ends the epoch.

    Raises:
        DataError, PlanError: as for :func:`as_they_come`.
    """
    lengths = _checked(lengths, batch_size=batch_size, buckets=buckets, parts=parts)
    ends = bucket_ends(lengths, buckets)
    return _in_buckets(lengths, {end: parts * batch_size for end in ends}, seed, epoch, parts)


def by_tokens(
    lengths,
    tokens: int,
    buckets: int = 10,
    seed: int | None = None,
    epoch: int = 0,
    parts: int = 1,
) -> list[PlannedBatch]:
    """Return batches of about the same work: up to ``tokens`` target tokens, padding included.

    Args:
        tokens: target tokens in a batch; short sentences make batches of many. With ``parts`` it
            is their mean, which one of them can exceed by less than a sentence.
        lengths, buckets, seed, epoch, parts: as for :func:`by_length`.

    Raises:
        DataError: there is no pair.
        PlanError: a number is less than 1, or not even one of the longest sentences fits.
    """
    lengths = _checked(lengths, tokens=tokens, buckets=buckets, parts=parts)
    ends = bucket_ends(lengths, buckets)
    if ends[-1] > tokens:
        raise PlanError(
            f"{tokens=} holds not one sentence of the longest, {ends[-1]} tokens with padding; "
            f"take at least {ends[-1]}, or limit the length of sentences"
        )
    return _in_buckets(lengths, {end: parts * tokens // end for end in ends}, seed, epoch, parts)


def bucket_ends(lengths, buckets: int) -> list[int]:
    """Return the lengths to pad to, rising, that need the fewest tokens with so many buckets.

    A pair belongs into the first bucket that holds the longer of its sides. Solved exactly, by
    dynamic programming over the lengths there are: the best k buckets up to a length are the best
    k - 1 up to some shorter one, and one more.
    """
    longest = np.asarray(lengths).max(axis=1)
    ends, counts = np.unique(longest, return_counts=True)
    up_to = np.concatenate([[0], np.cumsum(counts)])
    best = np.where(up_to == 0, 0.0, np.inf)  # Tokens for the first i lengths without a bucket.
    begins = []
    for _ in range(min(buckets, len(ends))):
        # cost[i, j]: the last bucket holds the lengths i to j - 1, padded to the last of them.
        cost = best[:-1, None] + (up_to[None, 1:] - up_to[:-1, None]) * ends[None, :]
        cost[np.tril_indices(len(ends), -1)] = np.inf
        begins.append(cost.argmin(axis=0))
        best = np.concatenate([[np.inf], cost.min(axis=0)])
    chosen, stop = [], len(ends)
    for begin in reversed(begins):
        chosen.append(int(ends[stop - 1]))
        stop = int(begin[stop - 1])
    return chosen[::-1]


def _in_buckets(
    lengths: np.ndarray, sizes: dict[int, int], seed, epoch, parts: int
) -> list[PlannedBatch]:
    """Fill each bucket's updates and cut them into their batches.

    ``sizes`` has the pairs in an update for each bucket's end, rising.
    """
    random = None if seed is None else np.random.RandomState([seed, epoch])
    longest = lengths.max(axis=1)
    batches, left_over, begin = [], np.empty(0, int), 0
    for end, size in sizes.items():
        rows = np.concatenate([left_over, np.flatnonzero((longest > begin) & (longest <= end))])
        if random:
            random.shuffle(rows)
        full = len(rows) - len(rows) % size
        for start in range(0, full, size):
            batches.append(PlannedBatch(rows[start : start + size].tolist(), end, end))
        left_over, begin = rows[full:], end
    if len(left_over):
        batches.append(PlannedBatch(left_over.tolist(), begin, begin))
    if random:
        batches = [batches[i] for i in random.permutation(len(batches))]
    batches.sort(key=lambda batch: len(batch.rows) < parts)
    return [
        batch._replace(rows=rows.tolist())
        for batch in batches
        for rows in np.array_split(batch.rows, min(parts, len(batch.rows)))
    ]


def pad(rows, value: int, length: int | None = None) -> np.ndarray:
    """Return sentences of tokens as one int32 array (sentences, length), filled up with ``value``.

    The length is that of the longest, or ``length``. Raises ``DataError`` if that is too short for
    one of them.
    """
    longest = max(map(len, rows), default=0)
    length = longest if length is None else length
    if longest > length:
        raise DataError(f"a sentence of {longest} tokens does not fit into {length}")
    padded = np.full((len(rows), length), value, np.int32)
    for number, row in enumerate(rows):
        padded[number, : len(row)] = row
    return padded


def padding_share(batches: list[PlannedBatch], lengths) -> float:
    """Return which part of the tokens computed, source and target together, is padding: 0 to 1."""
    lengths = np.asarray(lengths)
    computed = sum(len(batch.rows) * (batch.source + batch.target) for batch in batches)
    real = sum(int(lengths[batch.rows].sum()) for batch in batches)
    return 1 - real / computed


def shapes(batches: list[PlannedBatch]) -> Counter:
    """Return how many batches there are of each shape (pairs, source length, target length)."""
    return Counter(batch.shape for batch in batches)


def describe(batches: list[PlannedBatch], lengths) -> str:
    """Return one line on an epoch's batches: how many, of how many shapes, how much padding."""
    share = 100 * padding_share(batches, lengths)
    return f"{len(batches):,} batches of {len(shapes(batches)):,} shapes, {share:.1f} % padding"


def _checked(lengths, **numbers: int) -> np.ndarray:
    for name, number in numbers.items():
        if number < 1:
            raise PlanError(f"{name}={number!r} must be at least 1")
    lengths = np.asarray(lengths)
    if not lengths.size:
        raise DataError("there is not one pair of sentences to make batches of")
    return lengths
