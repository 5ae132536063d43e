"""Batches of sentence pairs of different lengths: which pairs share a batch, and its padding.

There are three functions. Each uses every pair once an epoch, in an order that depends only on the
seed and the epoch:

=================  ==========================  ====================================================
function           size of a batch             padded to
=================  ==========================  ====================================================
``as_they_come``   number of pairs             its own longest source and its own longest target
``by_length``      number of pairs             the end of its bucket of lengths
``by_tokens``      number of target tokens,    the end of its bucket of lengths
                   padding included
=================  ==========================  ====================================================

A hybridised network sets up its graph again for every new shape. Buckets keep the number of shapes
small: one for each bucket, and one for the remaining pairs, the same in every epoch.

With gradient accumulation, the batches of an update are ``parts`` of one batch of their total size:
pairs of one bucket, with the same update as that batch. Their sizes are equal or differ by one
pair, which gives two shapes in place of one.

>>> lengths = [(3, 4), (4, 4), (9, 8), (3, 3)]
>>> describe(by_length(lengths, batch_size=2, buckets=2), lengths)
'2 batches of 2 shapes, 26.9 % padding'

(GluonNLP's FixedBucketSampler is not used because it draws from NumPy's global generator and cannot
limit the number of tokens.)
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np

from mxopt.core.errors import DataError, PlanError
from mxopt.methods.input_pipeline.samplers import epoch_order


class PlannedBatch(NamedTuple):
    """The pairs of a batch, and the lengths that they are padded to.

    Attributes:
        rows: numbers of the pairs in the data set.
        source: length of the sources in tokens.
        target: length of the targets in tokens.
    """

    rows: list[int]
    source: int
    target: int

    @property
    def shape(self) -> tuple[int, int, int]:
        """The shape that a graph is set up for: (pairs, source length, target length)."""
        return len(self.rows), self.source, self.target


def as_they_come(
    lengths, batch_size: int, seed: int | None = None, epoch: int = 0
) -> list[PlannedBatch]:
    """Return batches of ``batch_size`` pairs of any lengths; the last may be smaller.

    Args:
        lengths: (source, target) lengths of all pairs in tokens, shape (pairs, 2).
        batch_size: number of pairs in a batch.
        seed: seed of the order; None keeps the order of the data set.
        epoch: number of the epoch; each has another order.

    Raises:
        DataError: there are no pairs.
        PlanError: ``batch_size`` is less than 1.
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
    """Return batches of ``batch_size`` pairs of similar length.

    Pairs that do not fill the last batch of their bucket are moved to the next bucket, so that
    only one batch of an epoch is smaller.

    Args:
        lengths: (source, target) lengths of all pairs in tokens, shape (pairs, 2).
        batch_size: number of pairs in a batch.
        buckets: largest number of buckets; their ends are chosen to need the least padding.
        seed: seed of the order; None gives the shortest pairs first.
        epoch: number of the epoch; each has another order.
        parts: number of batches of an update. If the last update has fewer pairs than this, each
            is a batch.

    Raises:
        DataError: there are no pairs.
        PlanError: a number is less than 1.
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
    """Return batches of similar cost: up to ``tokens`` target tokens, padding included.

    Args:
        lengths: (source, target) lengths of all pairs in tokens, shape (pairs, 2).
        tokens: target tokens in a batch; a batch has more pairs if they are short. With ``parts``
            it is the mean of an update's batches, of which one may exceed it by less than a
            sentence.
        buckets: largest number of buckets; their ends are chosen to need the least padding.
        seed: seed of the order; None gives the shortest pairs first.
        epoch: number of the epoch; each has another order.
        parts: number of batches of an update. If the last update has fewer pairs than this, each
            is a batch.

    Raises:
        DataError: there are no pairs.
        PlanError: a number is less than 1, or the longest sentence does not fit.
    """
    lengths = _checked(lengths, tokens=tokens, buckets=buckets, parts=parts)
    ends = bucket_ends(lengths, buckets)
    if ends[-1] > tokens:
        raise PlanError(
            f"{tokens=} is less than the longest sentence, {ends[-1]} tokens with padding; "
            f"take at least {ends[-1]}, or limit the length of sentences"
        )
    return _in_buckets(lengths, {end: parts * tokens // end for end in ends}, seed, epoch, parts)


def bucket_ends(lengths, buckets: int) -> list[int]:
    """Return the ends of the buckets that need the fewest tokens: lengths to pad to, ascending.

    A pair belongs to the first bucket whose end is not less than the longer of its sides. The
    solution is exact, by dynamic programming over the lengths that occur: the best k buckets up to
    a length are the best k - 1 buckets up to some shorter length, and one more.

    Args:
        lengths: (source, target) lengths of all pairs in tokens, shape (pairs, 2).
        buckets: largest number of buckets.
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
    """Fill the updates of each bucket, and split them into batches.

    ``sizes`` has the number of pairs in an update for each bucket's end, ascending.
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
    """Return sentences as one padded array, int32 of shape (sentences, length).

    Args:
        rows: lists of tokens.
        value: token to pad with.
        length: length to pad to; that of the longest sentence if not given.

    Raises:
        DataError: a sentence is longer than ``length``.
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
    """Return the share of padding in all source and target tokens of the batches, 0 to 1.

    Args:
        batches: the batches.
        lengths: (source, target) lengths of all pairs in tokens, shape (pairs, 2).
    """
    lengths = np.asarray(lengths)
    computed = sum(len(batch.rows) * (batch.source + batch.target) for batch in batches)
    real = sum(int(lengths[batch.rows].sum()) for batch in batches)
    return 1 - real / computed


def shapes(batches: list[PlannedBatch]) -> Counter:
    """Return the number of batches of each shape (pairs, source length, target length)."""
    return Counter(batch.shape for batch in batches)


def describe(batches: list[PlannedBatch], lengths) -> str:
    """Return a summary of an epoch's batches: their number, their shapes, their padding.

    Args:
        batches: the batches.
        lengths: (source, target) lengths of all pairs in tokens, shape (pairs, 2).
    """
    share = 100 * padding_share(batches, lengths)
    return f"{len(batches):,} batches of {len(shapes(batches)):,} shapes, {share:.1f} % padding"


def _checked(lengths, **numbers: int) -> np.ndarray:
    for name, number in numbers.items():
        if number < 1:
            raise PlanError(f"{name}={number!r} must be at least 1")
    lengths = np.asarray(lengths)
    if not lengths.size:
        raise DataError("there are no pairs of sentences to make batches of")
    return lengths
