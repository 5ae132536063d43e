"""The input pipeline for sentences: planned batches of padded tokens.

It corresponds to :mod:`mxopt.methods.input_pipeline`, for samples that differ in length.
``plan.bucketing`` selects which sentences share a batch, ``plan.preprocess`` when they are
converted to tokens:

============  =========================================  =========================================
placement     tokens are made                            tokens are kept
============  =========================================  =========================================
``lazy``      again in every epoch                       not at all
``cached``    once                                       as lists on the host
``device``    once                                       as one padded array on the device
============  =========================================  =========================================
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
from mxnet import nd

from mxopt.core.errors import DataError, PlanError
from mxopt.core.plan import Plan
from mxopt.methods.bucketing import bucketing
from mxopt.methods.data_parallel.parallel import WHOLE, Share, split_and_load
from mxopt.methods.input_pipeline.loaders import Batch

# Words in a row of several sentences are padded to a multiple of this. MXNet keeps a product's
# compiled form and memory, some MB in all layers, for every number of rows that it has seen.
MULTIPLE = 32


class PairBatch:
    """Makes the arrays of a batch from pairs of token lists.

    Args:
        vocabulary: object whose ``pad``, ``bos`` and ``eos`` are the tokens for padding, begin and
            end of a sentence.
        packed: whether sentences are one after the other in one row, with padding behind the last
            one only, up to a multiple of ``MULTIPLE``.

    Attributes:
        vocabulary: as above.
        packed: as above.
    """

    def __init__(self, vocabulary, packed: bool = False):
        self.vocabulary, self.packed = vocabulary, packed

    def __call__(self, pairs, source: int | None = None, target: int | None = None) -> tuple:
        """Return the inputs and the labels of a translation network, all int32.

        Args:
            pairs: source tokens and target tokens of each sample.
            source: length to pad the sources to, with the end-of-sentence token; that of the
                longest if not given.
            target: length to pad the targets to, likewise.

        Returns:
            Source tokens (samples, source length); target tokens after a begin-of-sentence token
            (samples, target length); numbers of real source tokens (samples,) and of real target
            tokens (samples,); target tokens before an end-of-sentence token (samples, target
            length). If packed, tokens have the shape (1, all of them, and padding).
        """
        own = self.vocabulary
        sources = [[*tokens, own.eos] for tokens, _ in pairs]
        shifted = [[own.bos, *tokens] for _, tokens in pairs]
        words = [[*tokens, own.eos] for _, tokens in pairs]
        lengths = (np.array([len(row) for row in rows], np.int32) for rows in (sources, words))
        if self.packed:
            sources, shifted, words = (
                [list(itertools.chain(*rows))] for rows in (sources, shifted, words)
            )
            source, target = (
                None if len(pairs) == 1 else -(-len(ids[0]) // MULTIPLE) * MULTIPLE
                for ids in (sources, shifted)
            )
        return (
            bucketing.pad(sources, own.pad, length=source),
            bucketing.pad(shifted, own.pad, length=target),
            *lengths,
            bucketing.pad(words, own.pad, length=target),
        )


class SentenceLoader:
    """Loads each pair of sentences once an epoch, in padded batches.

    A batch's ``size`` is its number of real target tokens in all processes, over which losses are
    averaged.

    Args:
        dataset: raw pairs.
        transform: converts a raw pair to (source tokens, target tokens).
        collate: a :class:`PairBatch`.
        plan: bucketing, placement, batch size and seed.
        contexts: contexts to copy the batches to.
        shuffle: whether each epoch has another order.
        share: this process's part of every batch; all of it if not given.

    Attributes:
        epoch: number of the next epoch, from 0.
        step: number of its first batches to skip.

    Raises:
        DataError: the data set is empty.
        PlanError: a switch does not support sentences.
    """

    def __init__(
        self, dataset, transform: Callable, collate: PairBatch, plan: Plan, contexts, shuffle,
        share: Share = WHOLE,
    ):  # fmt: skip
        if not len(dataset):
            raise DataError("the data set is empty: a loader needs at least one sentence")
        if plan.preprocess == "roundtrip" or plan.num_workers:
            raise PlanError(
                f"preprocess={plan.preprocess!r} with num_workers={plan.num_workers} does "
                "not support sentences; take lazy, cached or device, and num_workers=0"
            )
        if plan.image_dtype != "float32":
            raise PlanError(
                f"image_dtype={plan.image_dtype!r} is not for sentences; leave it at 'float32'"
            )
        if plan.preprocess == "device" and len(contexts) > 1:
            raise PlanError(
                f"preprocess='device' keeps sentences on one device, not on {len(contexts)}; "
                "take preprocess='cached'"
            )
        if collate.packed and (plan.preprocess == "device" or len(contexts) > 1):
            raise PlanError(
                f"packed=True puts the sentences of a batch in one row, which {len(contexts)} "
                f"devices and preprocess={plan.preprocess!r} cannot divide; take one device and "
                "preprocess='cached'"
            )
        self._dataset, self._transform, self._collate = dataset, transform, collate
        self._plan, self._contexts, self._shuffle = plan, contexts, shuffle
        self._share = share
        self.epoch = self.step = 0
        self._kept = self._resident = None
        pairs = [transform(*dataset[row]) for row in range(len(dataset))]
        # Each side has one more token, for the begin or the end of the sentence.
        self._lengths = np.array([[len(source) + 1, len(target) + 1] for source, target in pairs])
        if plan.preprocess == "cached":
            self._kept = pairs
        elif plan.preprocess == "device":
            self._resident = [nd.array(a, contexts[0], a.dtype) for a in collate(pairs)]

    def batches(self, epoch: int) -> list[bucketing.PlannedBatch]:
        """Return the batches of an epoch: their pairs, and the lengths to pad to."""
        plan, seed = self._plan, self._plan.seed if self._shuffle else None
        if plan.bucketing == "none":
            return bucketing.as_they_come(self._lengths, plan.batch_size, seed, epoch)
        by = {"length": bucketing.by_length, "tokens": bucketing.by_tokens}[plan.bucketing]
        return by(
            self._lengths, plan.batch_size, seed=seed, epoch=epoch, parts=plan.grad_accumulation
        )

    def __len__(self):
        return len(self.batches(0))

    def __iter__(self):
        batches = self.batches(self.epoch)[self.step :]
        self.epoch, self.step = self.epoch + 1, 0
        yield from map(self._batch, batches)

    def largest(self) -> Batch:
        """Return the batch of the first epoch that has the most tokens, those of padding too."""

        def size(batch):
            if self._collate.packed:
                return self._lengths[batch.rows].sum()
            return len(batch.rows) * (batch.source + batch.target)

        return self._batch(max(self.batches(0), key=size))

    def _batch(self, batch) -> Batch:
        size = int(self._lengths[batch.rows, 1].sum())
        own = self._share.of(batch.rows)
        arrays = self._arrays(batch._replace(rows=own or batch.rows[:1]))
        if self._collate.packed:
            [context] = self._contexts
            shards = [tuple(array.as_in_context(context) for array in arrays)]
        else:
            shards = split_and_load(arrays, self._contexts)
        return Batch(shards, size, not own)

    def _arrays(self, batch):
        if self._resident:
            rows = nd.array(batch.rows, self._contexts[0], dtype="int32")
            taken = [nd.take(array, rows) for array in self._resident]
            lengths = (batch.source, batch.target, None, None, batch.target)
            return [a if n is None else a[:, :n] for a, n in zip(taken, lengths)]
        if self._kept:
            pairs = [self._kept[row] for row in batch.rows]
        else:
            pairs = [self._transform(*self._dataset[row]) for row in batch.rows]
        arrays = self._collate(pairs, batch.source, batch.target)
        # from_numpy makes no copy, which would wait for the operators of the previous step.
        return [nd.from_numpy(array) for array in arrays]
