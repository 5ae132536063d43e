"""Choose the stand-in of Multi30k from the English-German sentence pairs of Tatoeba.

    python data/choose_tatoeba.py deu.txt [mxopt/data/stand_ins/tatoeba.zip]

``deu.txt`` is the file of https://www.manythings.org/anki/deu-eng.zip: one pair on a line, English
and German, separated by a tab. The same file always gives the same pairs. The docstring of
``choose`` has the rule, ``data/README.md`` the licence and the version of the file that was used.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections import Counter
from hashlib import sha256
from pathlib import Path

from packing import pack

from mxopt.data.sources import STAND_IN_MARK, STAND_INS

SIZES = {"test": 200, "validation": 200, "train": 3600}
LEAST_WORDS, MOST_WORDS = 3, 7
# Maximum number of different words of each language.
ENGLISH_WORDS, GERMAN_WORDS = 250, 350
_ONE_SENTENCE = re.compile(r"(?:[^\W\d_]|[ ,'])+[.!?]")
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_MARK_TEXT = """A stand-in for Multi30k: English-German sentence pairs of Tatoeba, not captions.
Attribution: www.manythings.org/anki and tatoeba.org, whose contributors wrote the sentences.
Licence: Creative Commons Attribution 2.0 France, https://creativecommons.org/licenses/by/2.0/fr/
Changes: chosen and split by data/choose_tatoeba.py of mxopt; no sentence was edited.
"""


def read(path: str | Path) -> list[tuple[str, str]]:
    """Return the pairs (English, German) of Tatoeba's file, in the order of the file.

    Args:
        path: of ``deu.txt``.
    """
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    return [tuple(line.split("\t")[:2]) for line in lines]


def words(sentence: str) -> tuple[str, ...]:
    """Return a sentence's words in lower case, without punctuation."""
    return tuple(word.lower() for word in _WORD.findall(sentence))


def choose(
    pairs: list[tuple[str, str]],
    sizes: dict[str, int] = SIZES,
    english_words: int = ENGLISH_WORDS,
    german_words: int = GERMAN_WORDS,
) -> dict[str, list[tuple[str, str]]]:
    """Return the pairs of each split.

    1. Keep pairs in which both sides are one sentence of 3 to 7 words, without digits, quotation
       marks and dashes.
    2. Of these keep the pairs whose words are all among the most frequent ones of their language.
    3. Keep the first pair of each English sentence and of each German sentence. Sentences are equal
       if their words are, ignoring case and punctuation. So no sentence is in two splits.
    4. Sort by SHA-256 of the English sentence, and fill one split after the other.

    Args:
        pairs: (English, German), in the order of the file.
        sizes: number of pairs by split, in the order in which the splits are filled.
        english_words: number of English words that step 2 allows, counted in the pairs of step 1.
        german_words: number of German words that step 2 allows.

    Raises:
        ValueError: too few pairs are left for these sizes.
    """
    short = [pair for pair in pairs if all(map(_is_short_sentence, pair))]
    frequent = [
        {word for word, _ in Counter(_all_words(side)).most_common(most)}
        for side, most in zip(zip(*short), (english_words, german_words))
    ]
    kept, seen = [], (set(), set())
    for pair in short:
        sides = tuple(map(words, pair))
        known = all(map(set.issuperset, frequent, sides))
        if known and not any(side in found for side, found in zip(sides, seen)):
            kept.append(pair)
            for side, found in zip(sides, seen):
                found.add(side)
    if len(kept) < sum(sizes.values()):
        raise ValueError(f"{len(kept)} pairs are left, {sum(sizes.values())} are needed")
    ordered = iter(sorted(kept, key=lambda pair: sha256(pair[0].encode()).digest()))
    return {split: [next(ordered) for _ in range(size)] for split, size in sizes.items()}


def _is_short_sentence(text: str) -> bool:
    count = len(words(text))
    return LEAST_WORDS <= count <= MOST_WORDS and bool(_ONE_SENTENCE.fullmatch(text))


def _all_words(sentences):
    return (word for sentence in sentences for word in words(sentence))


def write(splits: dict[str, list[tuple[str, str]]], archive: str | Path) -> None:
    """Write the splits into a zip file, in the layout of ``mxopt.data.ParallelFolder``.

    Args:
        splits: pairs (English, German) by split.
        archive: the zip file; an existing one is replaced.
    """
    with tempfile.TemporaryDirectory() as scratch:
        for split, pairs in splits.items():
            for language, sentences in zip(("en", "de"), zip(*pairs)):
                text = "".join(f"{sentence}\n" for sentence in sentences)
                Path(scratch, f"{split}.{language}").write_bytes(text.encode())
        Path(scratch, STAND_IN_MARK).write_bytes(_MARK_TEXT.encode())
        pack(scratch, archive)


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    target = sys.argv[2] if sys.argv[2:] else STAND_INS / "tatoeba.zip"
    write(choose(read(sys.argv[1])), target)
    print(f"{sum(SIZES.values())} pairs written to {target}")
