"""Loaders of a recipe's splits, for images and for sentences."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mxopt.core.errors import DataError, PlanError
from mxopt.core.plan import Plan
from mxopt.core.recipe import Data
from mxopt.methods.bucketing import sequences
from mxopt.methods.data_parallel.parallel import WHOLE, Share
from mxopt.methods.input_pipeline import pipeline

# Number of sentences among which the longest is searched.
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
        data: data of a recipe; its samples are sentences if it has ``collate``.
        split: ``train``, ``validation`` or ``test``.
        transform: converts the arrays of a raw sample to those that are batched; it is the one of
            ``plan.transforms`` (:func:`mxopt.methods.opencv_transforms.select`).
        plan: placement, loader, workers, bucketing and batch size.
        contexts: contexts to copy the batches to.
        share: this process's part of every training batch; the other splits are not divided.

    Raises:
        PlanError: the samples are sentences, which ``plan.loader`` does not support.
    """
    dataset, shuffle = getattr(data, split), split == "train"
    share = share if shuffle else WHOLE
    if data.collate and plan.loader != "gluon":
        raise PlanError(f"loader={plan.loader!r} is not for sentences; leave it at 'gluon'")
    if data.collate:
        return sequences.SentenceLoader(
            dataset, transform, data.collate, plan, contexts, shuffle, share
        )
    return pipeline.make_loader(dataset, transform, plan, contexts, shuffle, share)


def one_sample(data: Data, plan: Plan) -> tuple[list, int]:
    """Return arrays like a batch of one sample, and its part of ``plan.batch_size``.

    Of sentences, about the longest of the training set is taken. With ``bucketing="tokens"`` its
    part is its number of target tokens; otherwise it is 1.

    Args:
        data: data of a recipe.
        plan: the switches, for ``bucketing``.

    Raises:
        DataError: the training set is empty.
    """
    if not len(data.train):
        raise DataError("the data set is empty: training needs at least one sample")
    if not data.collate:
        parts = data.transform(*data.train[0])
        parts = (part if hasattr(part, "shape") else np.asarray(part) for part in parts)
        return [np.zeros((1, *part.shape), part.dtype) for part in parts], 1
    rows = range(0, len(data.train), max(1, len(data.train) // LOOKED_AT))
    longest = max(rows, key=lambda row: sum(map(len, data.train[row])))
    pair = data.transform(*data.train[longest])
    length = 1 + max(map(len, pair))  # and the begin or the end of the sentence
    return list(data.collate([pair], length, length)), length if plan.bucketing == "tokens" else 1
