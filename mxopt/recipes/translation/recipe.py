"""Translation: English to German with a Transformer.

The chapter's third recipe. Sentences are split into subwords of one vocabulary for both languages,
and the network learns to predict each next target word. It is evaluated by translating with beam
search and computing BLEU and chrF against human translations.

    >>> mxopt run translation bucketing=tokens batch_size=2048 optimizer=adam ...  # doctest: +SKIP
"""

from __future__ import annotations

import dataclasses
import functools

import mxnet as mx
from mxnet import gluon

from mxopt.core.cache import cache_folder
from mxopt.core.errors import DataError, PlanError
from mxopt.core.option_values import check_limit
from mxopt.core.recipe import Data, Recipe
from mxopt.data import Multi30k, ParallelFolder, sources, wmt
from mxopt.data.long_sentences import rows_within
from mxopt.data.subwords import train_subwords
from mxopt.methods.bucketing.sequences import PairBatch
from mxopt.recipes.translation.beam_search import bleu_and_chrf, translate_all
from mxopt.recipes.translation.cpu_operators import PIECES
from mxopt.recipes.translation.kernel_operators import BFLOAT16, KERNELS
from mxopt.recipes.translation.loss import TranslationLoss, TranslatorLoss
from mxopt.recipes.translation.transformer import (
    MODEL,
    Translator,
    transformer_en_de_512,
    translator,
)

LANGUAGES = ("en", "de")
LOSSES = ("one-hot", "pick", "fused")
PRECISIONS = ("float32", BFLOAT16)
SPLITS = ("train", "validation", "test")


class WithLoss(gluon.HybridBlock):
    """A translator and the loss of its scores, as one block.

    Takes the translator's inputs and then the correct words (samples, target length); returns the
    losses (samples,) float32, each summed over the words of a sentence.

    Args:
        net: a :class:`~mxopt.recipes.translation.transformer.Translator`.
        loss: ``loss(scores, words, target_length)`` -> losses (samples,).

    Attributes:
        translator: ``net``.
        loss: as above.
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
    pretrained: bool = False,
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
    cpu_operators: bool = False,
    kernels: bool = False,
    dense: str = "float32",
    packed: bool = False,
    loss: str = "one-hot",
    beam: int = 4,
    scored: int | None = None,
) -> Recipe:
    """Return the translation recipe.

    Args:
        root: a folder with ``train``, ``validation`` and ``test`` files in two languages
            (``mxopt.data.ParallelFolder``); ``None`` takes Multi30k, or its stand-in.
        source: file name ending of the language in ``root`` to translate from.
        target: file name ending of the language in ``root`` to translate to.
        stand_in: whether to take the stand-in even if Multi30k is available.
        pretrained: whether to take the chapter's data and network: WMT2016 in GluonNLP's byte
            pairs, and GluonNLP's ``transformer_en_de_512`` trained on WMT2014. ``vocabulary``,
            ``layers``, ``units``, ``heads``, ``hidden`` and ``dropout`` are those of that network.
        limit: maximum number of pairs in each split; ``None`` for all.
        vocabulary: number of subwords, of both languages together.
        longest: maximum length of a sentence, in subwords.
        too_long: what to do with a pair that has a longer sentence: ``cut`` it to ``longest``,
            ``drop`` the pair, or ``refuse`` the data.
        layers: number of layers of the encoder, and of the decoder.
        units: width of a state.
        heads: number of attention heads; must divide ``units``.
        hidden: width inside the feed-forward sublayers.
        dropout: probability of dropping an element in training.
        smoothing: share of the target that label smoothing spreads over the vocabulary.
        cpu_operators: whether to compute attention, norms and dropout by operators that are fast on
            a CPU instead of GluonNLP's cells; the results are equal.
        kernels: whether to compute them by mxopt's own operators (:mod:`mxopt.kernels`) instead,
            which are compiled for the machine; the results are equal.
        dense: precision in which dense layers multiply: ``float32``, or, with ``kernels``,
            ``bfloat16``, to which factors are rounded; sums, parameters and gradients are float32.
        packed: whether the sentences of a batch are one after the other without padding between
            them, which then is not computed; with ``kernels`` and ``loss=fused``. The results are
            equal.
        loss: ``one-hot`` (as GluonNLP's label smoothing), ``pick`` (without a table of targets) or
            ``fused`` (in one graph with the network); the results are equal.
        beam: width of the beam search that translates the test split; validation is greedy.
        scored: number of sentences of the validation split to translate; ``None`` for all.

    Raises:
        PlanError: there is no such loss or precision, ``limit`` is less than 1, ``source`` or
            ``target`` is given without ``root``, ``dense=bfloat16`` without ``kernels``,
            ``packed`` without ``kernels`` and ``loss=fused``, or ``heads`` does not divide
            ``units``; or, when the network is made, ``cpu_operators`` or
            ``kernels`` was chosen on a GPU, or this processor cannot multiply bfloat16.
        DeviceError: when the network is made, if ``kernels`` cannot be compiled here.
        DataError: when the data is loaded, if it is unavailable or damaged.
    """
    check_limit(limit)
    if root is None and (source, target) != LANGUAGES:
        raise PlanError(
            f"source={source!r} and target={target!r} name files of your own text: give its folder "
            "as root=..., or leave them out for English to German"
        )
    if loss not in LOSSES:
        raise PlanError(f"loss={loss!r} is not a choice; take one of {', '.join(LOSSES)}")
    if dense not in PRECISIONS:
        raise PlanError(f"dense={dense!r} is not a choice; take one of {', '.join(PRECISIONS)}")
    if dense == BFLOAT16 and not kernels:
        raise PlanError("dense='bfloat16' is computed by mxopt's kernels: add kernels=true")

    if packed and not (kernels and loss == "fused"):
        raise PlanError(
            "packed=True, sentences without padding, is computed by mxopt's kernels and the fused "
            "loss: add kernels=true loss=fused"
        )

    @functools.cache
    def prepared():
        if pretrained:
            found = _wmt(limit, longest, too_long)
        else:
            text = _text(root, source, target, stand_in)
            found = _data(*text, limit, vocabulary, longest, too_long)
        collate = PairBatch(found.collate.vocabulary, packed)
        return dataclasses.replace(found, collate=collate)

    def network(contexts):
        for name, chosen in (("cpu_operators", cpu_operators), ("kernels", kernels)):
            if chosen and contexts[0].device_type == "gpu":
                raise PlanError(
                    f"{name}=True is for a CPU: on a GPU MXNet's own operators are faster; "
                    f"take {name}=False"
                )
        words = len(prepared().collate.vocabulary)
        pieces = (KERNELS,) if kernels else PIECES if cpu_operators else ()
        pieces += (BFLOAT16,) if dense == BFLOAT16 else ()
        if pretrained:
            net, _, _ = transformer_en_de_512(fast=pieces, context=contexts)
        else:
            net = translator(words, layers, units, heads, hidden, dropout, longest + 1, fast=pieces)
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
        return bleu_and_chrf(found, list(map(data.collate.vocabulary.plain, references)))

    return Recipe(
        name=MODEL if pretrained else f"translation, {layers} layers of {units}",
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
        net: the attribute ``translator`` of the recipe's network.
        data: the recipe's data, with the vocabulary of subwords.
        sentences: strings in the source language.
        beam: width of the beam search; 1 is greedy.

    Returns:
        One translation for each sentence.
    """
    words = [data.transform(sentence, "")[0] for sentence in sentences]
    vocabulary = data.collate.vocabulary
    found = translate_all(net, words, beam=beam, bos=vocabulary.bos, eos=vocabulary.eos)
    return [vocabulary.decode(ids) for ids in found]


def _text(root, source, target, stand_in):
    """Return (kind, origin, splits by name) of the text."""
    if root:
        return "real", "given folder", {n: ParallelFolder(root, n, source, target) for n in SPLITS}
    found = sources.stand_in("multi30k") if stand_in else sources.locate("multi30k")
    return found.kind, found.origin, {name: Multi30k(name, found.path) for name in SPLITS}


def fetch_pretrained():
    """Download the chapter's data and weights, so that measured processes need no network.

    Raises:
        DataError: the text or the weights are unavailable.
    """
    wmt.prepare()
    try:
        transformer_en_de_512()
    except wmt.FETCH_ERRORS as error:
        raise DataError(
            f"GluonNLP could not download the weights of {MODEL} ({error}). "
            "Connect to the network, or put GluonNLP's files under ~/.mxnet/models."
        ) from error


def _wmt(limit, longest, too_long):
    folder = wmt.prepare()
    splits = {name: ParallelFolder(folder, name) for name in SPLITS}
    _, source, target = transformer_en_de_512(pretrained=False)
    if source.idx_to_token != target.idx_to_token:
        raise DataError(
            f"the source and target vocabularies of {MODEL} ({len(source):,} and {len(target):,} "
            "words) must be the same and are not; use the files that GluonNLP 0.10 publishes"
        )
    return _data("real", "GluonNLP", splits, limit, wmt.BytePairs(target), longest, too_long)


def _data(kind, origin, splits, limit, vocabulary, longest, too_long):
    """Return the recipe's data; ``vocabulary`` is a vocabulary, or the size of one to train."""
    if limit:
        splits = {name: part.take(min(limit, len(part))) for name, part in splits.items()}
    subwords = vocabulary
    if isinstance(vocabulary, int):
        lines = [line for pair in splits["train"] for line in pair]
        subwords = train_subwords(lines, vocabulary, cache_folder() / "subwords")

    def encode(*pair):
        return tuple(subwords.encode(text)[:longest] for text in pair)

    notes = [origin]
    for name, part in splits.items():
        ids = [tuple(map(subwords.encode, pair)) for pair in part]
        rows, note = rows_within(ids, longest, too_long)
        splits[name] = gluon.data.SimpleDataset([part[row] for row in rows])
        notes += [f"{name}: {note}"] if note else []
    origin = " ".join(notes)
    return Data(**splits, transform=encode, kind=kind, origin=origin, collate=PairBatch(subwords))
