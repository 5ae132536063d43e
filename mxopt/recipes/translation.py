"""Translation: English to German with a Transformer.

The chapter's third recipe. Sentences are cut into subwords of one vocabulary for both languages,
the network learns to name each next target word, and what it can is judged by translations: BLEU
and chrF of beam search against what people wrote.

    >>> mxopt run translation bucketing=tokens batch_size=2048 optimizer=adam ...  # doctest: +SKIP
"""

from __future__ import annotations

import functools

import mxnet as mx
from mxnet import gluon

from mxopt import bucketing
from mxopt.errors import PlanError
from mxopt.networks.transformer import Translator, translator
from mxopt.networks.transformer_pieces import PIECES
from mxopt.networks.translation_loss import TranslationLoss, TranslatorLoss
from mxopt.sequences import PairBatch
from mxopt.training import Data, Recipe
from mxopt.translate import bleu_and_chrf, translate_all

LOSSES = ("one-hot", "pick", "fused")


class WithLoss(gluon.HybridBlock):
    """A translator and the loss of its scores, as one block.

    Takes what the translator takes and then the words that should have come out; returns the
    losses (samples,), each the sum over a sentence's words.
    """

    def __init__(self, net, loss, **kwargs):
        super().__init__(**kwargs)
        self.translator, self.loss = net, loss

    def hybrid_forward(self, F, source, target, source_length, target_length, words):
        """Return the losses of the samples, (samples,)."""
        scores = self.translator(source, target, source_length, target_length)
        return self.loss(scores, words, target_length)


def translation(
    root: str | None = None,
    source: str = "en",
    target: str = "de",
    stand_in: bool = False,
    limit: int | None = None,
    vocabulary: int = 8000,
    longest: int = 100,
    too_long: str = "cut",
    layers: int = 3,
    units: int = 256,
    heads: int = 4,
    hidden: int = 1024,
    dropout: float = 0.1,
    smoothing: float = 0.1,
    fast: bool = False,
    loss: str = "one-hot",
    beam: int = 4,
    scored: int | None = None,
) -> Recipe:
    """Return the translation recipe.

    Args:
        root: a folder with ``train``, ``validation`` and ``test`` files in two languages
            (``mxopt.datasets.ParallelFolder``); ``None`` takes Multi30k, or its stand-in.
        source, target: the endings of the files in ``root``.
        stand_in: whether to take the stand-in even where Multi30k is to be had.
        limit: at most so many pairs of each split; ``None`` for all.
        vocabulary: how many subwords, of both languages together.
        longest: subwords that a sentence may have; ``too_long`` is what happens to a pair with
            more: ``cut`` it there, ``drop`` it, or ``refuse`` the data.
        layers, units, heads, hidden, dropout: of ``mxopt.networks.transformer.translator``.
        smoothing: of the labels.
        fast: whether attention, norms and dropout are computed by operators that are quick on a
            CPU, instead of GluonNLP's cells: the same numbers.
        loss: ``one-hot`` (as GluonNLP's label smoothing), ``pick`` (without a table of targets) or
            ``fused`` (in one graph with the network): the same numbers.
        beam: width of the beam search that translates the test split; validation is greedy.
        scored: how many sentences of the validation split are translated; ``None`` for all.

    Raises:
        PlanError: there is no such loss, or as for the network.
    """
    if loss not in LOSSES:
        raise PlanError(f"loss={loss!r} is not a choice; take one of {', '.join(LOSSES)}")

    @functools.cache
    def prepared():
        return _data(root, source, target, stand_in, limit, vocabulary, longest, too_long)

    def network(contexts):
        words = len(prepared().collate.vocabulary)
        net = translator(
            words, layers, units, heads, hidden, dropout,
            max_length=longest + 1, fast=PIECES if fast else (),
        )  # fmt: skip
        net.initialize(mx.init.Xavier(), ctx=contexts)
        if loss == "fused":
            return TranslatorLoss(net, smoothing)
        return WithLoss(net, TranslationLoss(words, smoothing, loss))

    def score(net, data, split):
        pairs = list(getattr(data, split))
        if split == "validation":
            pairs = pairs[:scored]
        sentences, references = zip(*pairs)
        found = translate(net.translator, data, sentences, beam if split == "test" else 1)
        return bleu_and_chrf(found, references)

    return Recipe(
        name=f"translation, {layers} layers of {units}",
        data=prepared,
        network=network,
        loss=lambda losses: losses,
        metric=None,
        inputs=5,
        score=score,
        unit="token",
    )


def translate(net: Translator, data: Data, sentences, beam: int = 4) -> list[str]:
    """Translate sentences with a trained network.

    Args:
        net: what a recipe's network holds as ``translator``.
        data: of the recipe, which knows how sentences are cut into subwords.
        sentences: text in the source language.
        beam: width of the beam search; 1 is greedy.
    """
    sources = [data.transform(sentence, "")[0] for sentence in sentences]
    vocabulary = data.collate.vocabulary
    return [vocabulary.decode(ids) for ids in translate_all(net, sources, beam=beam)]


def _data(root, source, target, stand_in, limit, vocabulary, longest, too_long):
    from mxopt.datasets import Multi30k, ParallelFolder, sources
    from mxopt.datasets.subwords import train_subwords

    names = ("train", "validation", "test")
    if root:
        kind, origin = "real", "given folder"
        splits = {name: ParallelFolder(root, name, source, target) for name in names}
    else:
        found = sources.stand_in("multi30k") if stand_in else sources.locate("multi30k")
        kind, origin = found.kind, found.origin
        splits = {name: Multi30k(name, found.path) for name in names}
    if limit:
        splits = {name: part.take(min(limit, len(part))) for name, part in splits.items()}
    lines = [line for pair in splits["train"] for line in pair]
    subwords = train_subwords(lines, vocabulary, sources.cache_folder() / "subwords")

    def encode(*pair):
        return tuple(subwords.encode(text)[:longest] for text in pair)

    notes = [origin]
    for name, part in splits.items():
        ids = [tuple(map(subwords.encode, pair)) for pair in part]
        limited = bucketing.limit_length(ids, longest, too_long)
        splits[name] = gluon.data.SimpleDataset([part[row] for row in limited.rows])
        notes += [f"{name}: {limited.note}"] if limited.note else []
    origin = " ".join(notes)
    return Data(**splits, transform=encode, kind=kind, origin=origin, collate=PairBatch(subwords))
