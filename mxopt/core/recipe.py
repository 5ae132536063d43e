"""Recipes: what is trained (data, network, loss, metric), independent of the switches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mxnet import gluon


@dataclass(frozen=True)
class Data:
    """The samples of a recipe.

    Attributes:
        train: training set of raw samples, each a tuple of arrays.
        validation: validation set, likewise.
        test: test set, likewise.
        transform: converts the arrays of one raw sample to the arrays that are batched: inputs,
            then labels. For ``image_dtype="uint8"`` it has two parts, ``compact`` and ``expand``
            (``mxopt.methods.input_pipeline.pipeline``).
        kind: ``real`` or ``stand-in``; stated with every result.
        origin: description of where the samples come from.
        collate: for sentences, a callable that makes a batch's arrays (``PairBatch`` of
            ``mxopt.methods.bucketing``); None for images.
    """

    train: gluon.data.Dataset
    validation: gluon.data.Dataset
    test: gluon.data.Dataset
    transform: Callable
    kind: str
    origin: str = ""
    collate: Callable | None = None


@dataclass(frozen=True)
class Recipe:
    """A training task, independent of the switches.

    Attributes:
        name: name of the recipe in tables.
        data: ``data() -> Data``.
        network: ``network(contexts) -> gluon.Block`` with its parameters on all contexts.
        loss: ``loss(output, *labels)`` -> one loss for each sample, shape (samples,) or
            (samples, ...).
        metric: ``metric()`` -> an object with ``update(labels, outputs)`` and ``get()``, such as
            a metric of ``mx.metric`` or GluonCV; None if only the loss is reported.
        inputs: number of a batch's arrays that are inputs of the network; the rest are labels.
        score: ``score(net, data, split)`` -> further figures of a split, such as BLEU, and
            strings that describe them, such as a signature; None if there are none.
        unit: what a batch's size counts and losses are averaged over: ``sample`` or ``token``.
    """

    name: str
    data: Callable[[], Data]
    network: Callable
    loss: Callable
    metric: Callable | None
    inputs: int = 1
    score: Callable | None = None
    unit: str = "sample"
