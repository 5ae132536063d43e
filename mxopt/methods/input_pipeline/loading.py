"""Loaders of a recipe's splits: of images or of sentences."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mxopt.core.errors import DataError
from mxopt.core.plan import Plan
from mxopt.core.recipe import Data
from mxopt.methods.bucketing import sequences
from mxopt.methods.data_parallel.parallel import WHOLE, Share
from mxopt.methods.input_pipeline import pipeline

# The longest sentence is searched among so many.
LOOKED_AT = 10_000


def make_loader(
    data: Data,
    split: str,
    transform: Callable,
    plan: Plan,
    contexts: list,
    share: Share = WHOLE,
):
    """Return the loader of a split.

    Args:
        data: of a recipe; with ``collate`` its samples are sentences.
        split: ``train``, ``validation`` or ``test``.
        transform: turns a raw sample into what is batched.
        plan: placement, workers, bucketing, batch size.
        contexts: where the batches are wanted.
        share: this process's part of every training batch; the other splits are not shared.
    """
    dataset, shuffle = getattr(data, split), split == "train"
    share = share if shuffle else WHOLE
    if data.collate:
        return sequences.SentenceLoader(
            dataset, transform, data.collate, plan, contexts, shuffle, share
        )
    return pipeline.make_loader(dataset, transform, plan, contexts, shuffle, share)


def one_sample(data: Data, plan: Plan) -> tuple[list, int]:
    """Return arrays like those of a batch of one sample, and how much of ``plan.batch_size`` it is.

    A sentence is about the longest of the training set; with ``bucketing="tokens"`` it counts as
    many as it has target tokens, and everything else counts 1.

    Args:
        data: of a recipe.
        plan: its bucketing.

    Raises:
        DataError: the training set is empty.
    """
    if not len(data.train):
        raise DataError("the data set is empty: training needs at least one sample")
    if not data.collate:
        parts = data.transform(*data.train[0])
        parts = (part if hasattr(part, "shape") else np.asarray(part) for part in parts)
        return [np.empty((1, *part.shape), part.dtype) for part in parts], 1
    rows = range(0, len(data.train), max(1, len(data.train) // LOOKED_AT))
    longest = max(rows, key=lambda row: sum(map(len, data.train[row])))
    pair = data.transform(*data.train[longest])
    length = 1 + max(map(len, pair))  # and the begin or the end of the sentence
    return list(data.collate([pair], length, length)), length if plan.bucketing == "tokens" else 1
