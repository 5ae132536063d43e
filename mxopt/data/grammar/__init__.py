"""The stand-in for Multi30k: English sentences and their German, made by a grammar of our own.

90 nouns with gender and all their forms, 31 adjectives, 80 verbs; four cases, prepositions that
ask for one or another of them, verbs that come apart, the perfect with its participle at the end,
subordinate clauses with the verb last, inversion, questions, negation, pronouns whose gender is the
noun's. Every English sentence has one German sentence. Millions can be said; they are for tests,
for CI and for trying things out without a network, and figures made from them say ``stand-in``.

    >>> pairs = splits(train=1000, validation=10, test=10)      # doctest: +SKIP
    >>> pairs["test"][0]                                        # doctest: +SKIP
    ('...', '...')

No sentence is in two splits. Beyond that, some word pairs (an adjective with a noun, a verb with
its object) are in no training sentence at all, and every second sentence of validation and test has
one: whoever gets those right knows the words, not the sentences.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from random import Random

from mxopt.data.grammar.sentences import draw_sentence
from mxopt.data.grammar.speaker import Speaker

SIZES = {"train": 2000, "validation": 200, "test": 200}
# Raise this when the sentences change: copies made by older code are then no longer used.
EDITION = 1
STAND_IN_MARK = "STAND-IN.txt"
_MARK_TEXT = f"""Sentences, edition {EDITION}, made by mxopt.data.grammar: a stand-in for
Multi30k, not captions of photographs. Licence: Apache-2.0.
"""
_LANGUAGES = ("en", "de")
# One word pair in so many is kept out of training.
_ONE_IN = 8


def file_names() -> tuple[str, ...]:
    """Return every file of the stand-in, relative to its folder."""
    texts = (f"{split}.{language}" for split in SIZES for language in _LANGUAGES)
    return (STAND_IN_MARK, *texts)


def generate(folder: str | Path) -> None:
    """Write the whole stand-in into ``folder``, as :class:`mxopt.data.ParallelFolder` reads it.

    Raises ``OSError`` if the folder cannot be written to.
    """
    folder = Path(folder)
    for split, pairs in splits().items():
        for language, lines in zip(_LANGUAGES, zip(*pairs)):
            text = "".join(f"{line}\n" for line in lines)
            (folder / f"{split}.{language}").write_bytes(text.encode("utf-8"))
    (folder / STAND_IN_MARK).write_text(_MARK_TEXT, encoding="utf-8")


def splits(
    train: int = SIZES["train"],
    validation: int = SIZES["validation"],
    test: int = SIZES["test"],
    seed: int = 1,
) -> dict[str, list[tuple[str, str]]]:
    """Return the pairs (English, German) of each split.

    The same numbers give the same sentences on every Python. No sentence comes twice. Validation
    and test do not depend on the size of the training split, and a larger one begins with the
    sentences of a smaller one.
    """
    said: set[str] = set()
    made = {}
    for split, count in (("test", test), ("validation", validation), ("train", train)):
        sentences = _sentences(f"{split} {seed}")
        made[split] = []
        while len(made[split]) < count:
            wants_new = split != "train" and len(made[split]) % 2 == 0
            english, german, is_new = next(sentences)
            if english not in said and is_new == wants_new:
                said.add(english)
                made[split].append((english, german))
    return {split: made[split] for split in SIZES}


def is_held_out(word_pair: tuple[str, str]) -> bool:
    """Say whether two words, an adjective or a verb and a noun, are kept out of training."""
    return zlib.crc32(" ".join(word_pair).encode("utf-8")) % _ONE_IN == 0


def _sentences(seed: str) -> Iterator[tuple[str, str, bool]]:
    """Yield sentences without end, and whether each has a word pair kept out of training."""
    speaker = Speaker(Random(seed))
    while True:
        speaker.word_pairs.clear()
        english, german = draw_sentence(speaker)
        yield english, german, any(map(is_held_out, speaker.word_pairs))
