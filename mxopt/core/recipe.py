"""A task: what is trained, in words that know nothing of how."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mxnet import gluon


@dataclass(frozen=True)
class Data:
    """A task's samples.

    Attributes:
        train, validation, test: data sets of raw samples, each sample a tuple of arrays.
        transform: turns one raw sample's arrays into what is batched: inputs, then labels. For
            ``image_dtype="uint8"`` it has two halves (``mxopt.methods.input_pipeline``).
        kind: ``real`` or ``stand-in``; every result says which.
        origin: where they were found, in words.
        collate: for sentences, what makes a batch's arrays (``PairBatch`` in
        ``mxopt.methods.bucketing``).
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
    """A task. It knows nothing of the switches.

    Attributes:
        name: what tables call it.
        data: ``data() -> Data``.
        network: ``network(contexts) -> gluon.Block`` with its parameters on all contexts.
        loss: ``loss(output, *labels)`` -> one loss a sample, shape (samples,) or (samples, ...).
        metric: ``metric()`` -> something with ``update(labels, outputs)`` and ``get()``, as
            ``mx.metric`` and GluonCV have them; None if there is nothing but the loss.
        inputs: how many of a batch's arrays the network takes; the rest are labels.
        score: ``score(net, data, split)`` -> further figures of a split, such as BLEU, and texts
            that belong to them, such as a signature.
        unit: what a batch's size counts and losses are averaged over.
    """

    name: str
    data: Callable[[], Data]
    network: Callable
    loss: Callable
    metric: Callable | None
    inputs: int = 1
    score: Callable | None = None
    unit: str = "sample"
