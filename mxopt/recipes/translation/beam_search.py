"""Translate with a trained network: beam search over many sentences at once, BLEU and chrF.

GluonNLP's one-step decoder computes all earlier words again for each new one, and its
``BeamSearchSampler`` copies all states and a table of every candidate at each step. Here the keys
and values of each word are kept, the encoder's output is stored once for all beams of a sentence,
and a finished sentence is removed from the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import sacrebleu
from mxnet import autograd

from mxopt.core.errors import DataError, PlanError
from mxopt.recipes.translation.decoder import Decoder
from mxopt.recipes.translation.transformer import Translator

BOS, EOS = 2, 3
# From the length penalty of Wu et al., "Google's Neural Machine Translation System" (2016), eq. 14.
_PENALTY_OFFSET = 5


def translate_all(
    net: Translator,
    sources: Sequence[Sequence[int]],
    beam: int = 4,
    alpha: float = 1.0,
    max_length: int | None = None,
    bos: int = BOS,
    eos: int = EOS,
    batch_size: int = 64,
) -> list[list[int]]:
    """Translate sentences by beam search.

    Args:
        net: a translator with its parameters on one context.
        sources: word ids of each sentence, without ``bos`` and ``eos``.
        beam: hypotheses kept for a sentence; 1 takes the most likely word at each step (greedy).
        alpha: exponent of the length penalty ((5 + length) / 6) ** alpha, which divides
            log-probabilities; 0 favours short translations.
        max_length: maximum number of words of a translation, ``eos`` included; if not given, twice
            the words of its source plus 10, where ``eos`` counts as a word of the source.
        bos: id of the begin of a sentence.
        eos: id of the end of a sentence.
        batch_size: number of sentences searched together; they are sorted by length.

    Returns:
        The word ids of each translation, in the order of the sources, without ``bos`` and ``eos``.

    Raises:
        PlanError: ``beam`` or ``batch_size`` is less than 1, or ``alpha`` is less than 0.
        DataError: a source, or ``max_length``, is longer than the network's table of positions.
    """
    if beam < 1 or batch_size < 1:
        raise PlanError(f"beam={beam} and batch_size={batch_size} must be at least 1")
    if alpha < 0:
        raise PlanError(f"alpha={alpha} would reward short translations; take 0 or more")
    if max_length is not None and max_length > net.max_target_length:
        raise DataError(
            f"max_length={max_length} is too long: this network has positions for "
            f"{net.max_target_length} words; take at most that many"
        )
    order = sorted(range(len(sources)), key=lambda row: len(sources[row]))
    translations: list = [None] * len(sources)
    for start in range(0, len(order), batch_size):
        rows = order[start : start + batch_size]
        chosen = [[*sources[row], eos] for row in rows]
        limits = [max_length or 2 * len(source) + 10 for source in chosen]
        limits = np.minimum(limits, net.max_target_length)
        for row, words in zip(rows, _search(net, chosen, beam, alpha, limits, bos, eos)):
            translations[row] = words
    return translations


class Hypothesis(NamedTuple):
    """The begin of a translation, as the search holds it after a step.

    Attributes:
        words: word ids; a finished one ends with ``eos``.
        score: its log-probability, divided by the length penalty.
        parent: its place among the hypotheses of the step before, of which it is the continuation;
            0 in the first step.
        alive: whether the search continues it.
    """

    words: tuple[int, ...]
    score: float
    parent: int
    alive: bool


def search_steps(
    net: Translator,
    source: Sequence[int],
    beam: int = 4,
    alpha: float = 1.0,
    bos: int = BOS,
    eos: int = EOS,
) -> list[list[Hypothesis]]:
    """Return what the search for one translation holds after each of its steps.

    Args:
        net: a translator with its parameters on one context.
        source: word ids, without ``bos`` and ``eos``.
        beam: as for :func:`translate_all`, whose translation is the first hypothesis of the last
            step.
        alpha: as for :func:`translate_all`.
        bos: id of the begin of a sentence.
        eos: id of the end of a sentence.

    Returns:
        For each step its hypotheses, the best first.
    """
    steps: list = []

    def watch(*arrays):
        fields = zip(*(array[0].tolist() for array in arrays))
        held = [Hypothesis(tuple(words), *others) for words, *others in fields]
        # With few words to choose from, some places of the first steps stay empty.
        steps.append([one for one in held if np.isfinite(one.score)])

    limits = np.minimum([2 * (len(source) + 1) + 10], net.max_target_length)
    _search(net, [[*source, eos]], beam, alpha, limits, bos, eos, watch)
    return steps


def bleu_and_chrf(hypotheses: Sequence[str], references: Sequence[str]) -> dict:
    """Score translations against one reference each.

    Args:
        hypotheses: the translations.
        references: the correct translations, in the same order.

    Returns:
        ``bleu`` and ``chrf``, both 0 to 100, and sacrebleu's ``bleu_signature`` and
        ``chrf_signature``, without which such scores cannot be compared (Post, "A Call for
        Clarity in Reporting BLEU Scores", 2018).

    Raises:
        DataError: there are no sentences, or the two numbers of sentences differ.
    """
    if len(hypotheses) != len(references) or not references:
        raise DataError(
            f"{len(hypotheses)} translations cannot be scored against {len(references)} "
            "references; give one reference for each, and at least one"
        )
    scores = {}
    for name, metric in (("bleu", sacrebleu.BLEU()), ("chrf", sacrebleu.CHRF())):
        scores[name] = metric.corpus_score(list(hypotheses), [list(references)]).score
        scores[f"{name}_signature"] = str(metric.get_signature())
    return scores


def _search(
    net, sources, beam, alpha, limits, bos, eos, watch: Callable | None = None
) -> list[list[int]]:
    """Return the best translation of each source; all sources are one batch.

    ``watch`` is called after each step with the words, scores, parents and whether they are alive.
    """

    def penalty(length):
        return ((_PENALTY_OFFSET + length) / (_PENALTY_OFFSET + 1)) ** alpha

    with autograd.predict_mode():
        decoder = Decoder(net, sources)
        rows = np.arange(len(sources))  # which source a row of the arrays below belongs to
        best: list = [None] * len(sources)
        # A source begins with one hypothesis. words is (rows, beam, length), the others (rows,
        # beam).
        words = np.zeros((len(rows), 1, 0), np.int64)
        logs = np.zeros((len(rows), 1))
        alive = np.ones((len(rows), 1), bool)
        scores = np.zeros((len(rows), 1))
        last = np.full((len(rows), 1), bos)
        length = 0
        while len(rows):
            length += 1
            ids, gains = decoder.step(last, beam)
            # Candidates: each live hypothesis with each of its likeliest words; each finished one.
            candidates = np.where(alive[..., None], (logs[..., None] + gains) / penalty(length),
                                  -np.inf)  # fmt: skip
            width = candidates.shape[2]
            flat = np.concatenate(
                [candidates.reshape(len(rows), -1), np.where(alive, -np.inf, scores)], axis=1
            )
            top = np.argsort(-flat, axis=1, kind="stable")[:, :beam]
            scores = np.take_along_axis(flat, top, axis=1)
            grown = alive.shape[1] * width
            new = top < grown
            parents = np.where(new, top // width, top - grown)
            word = np.where(
                new, np.take_along_axis(ids.reshape(len(rows), -1), np.minimum(top, grown - 1), 1),
                eos,
            )  # fmt: skip
            extended = np.take_along_axis(words, parents[..., None], axis=1)
            words = np.concatenate([extended, word[..., None]], axis=2)
            alive = new & (word != eos) & np.isfinite(scores)
            logs = np.where(alive, scores * penalty(length), -np.inf)
            if watch:
                watch(words, scores, parents, alive)

            # The best possible score of a live hypothesis: no further loss of log-probability,
            # divided by the penalty at the longest length.
            hope = (logs / penalty(limits[rows])[:, None]).max(axis=1)
            done = (hope <= scores[:, 0]) & ~alive[:, 0] | (length >= limits[rows])
            for row in np.flatnonzero(done):
                best[rows[row]] = _until(words[row, 0].tolist(), eos)
            keep = np.flatnonzero(~done)
            decoder.keep(keep, parents[keep])
            rows, words, logs, alive, scores, last = (
                a[keep] for a in (rows, words, logs, alive, scores, word)
            )
    return best


def _until(words: list[int], end: int) -> list[int]:
    return words[: words.index(end)] if end in words else words
