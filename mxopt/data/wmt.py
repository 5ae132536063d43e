"""WMT2016 as the chapter takes it: GluonNLP's text in byte pairs, and a vocabulary of those.

100,000 pairs to train on, and newstest2016 for the rest: its first 1,500 pairs for validation, the
other 1,499 for the test. GluonNLP keeps all 4.5 million training pairs in memory, which a measured
process should not have to wait for; so they are read once, and what is wanted is kept in the cache
as two parallel files a split.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import gluonnlp

from mxopt.core.errors import DataError
from mxopt.data.download import FETCH_ERRORS, folder_in_one_step, missing_files
from mxopt.data.sources import cache_folder

TRAINING_PAIRS, VALIDATION_PAIRS = 100_000, 1500
_FILES = tuple(
    f"{split}.{end}" for split in ("train", "validation", "test") for end in ("en", "de")
)
# How the corpus writes a dash within a word: as a word of its own.
_DASH = "##AT##-##AT##"
# What a byte pair that goes on in the next one ends with.
_JOIN = "@@"


def prepare() -> Path:
    """Return the folder with the text, fetched by GluonNLP if it is not in the cache.

    Raises:
        DataError: it is neither here nor to be had.
    """
    folder = cache_folder() / "wmt2016-bpe"
    if missing_files(folder, _FILES):
        try:
            with folder_in_one_step(folder, _FILES) as fresh:
                _write(fresh)
        except FETCH_ERRORS as error:
            raise DataError(
                f"WMT2016, which GluonNLP fetches, is not to be had ({error}). Connect to the "
                "network, or put GluonNLP's files under ~/.mxnet/datasets/wmt2016."
            ) from error
    return folder


def _write(folder: Path) -> None:
    train = gluonnlp.data.WMT2016BPE("train")
    news = gluonnlp.data.WMT2016BPE("newstest2016")
    rows = {
        "train": (train, range(min(TRAINING_PAIRS, len(train)))),
        "validation": (news, range(VALIDATION_PAIRS)),
        "test": (news, range(VALIDATION_PAIRS, len(news))),
    }
    for split, (dataset, chosen) in rows.items():
        for side, ending in enumerate(("en", "de")):
            lines = (dataset[row][side] + "\n" for row in chosen)
            (folder / f"{split}.{ending}").write_text("".join(lines), encoding="utf-8")


class BytePairs:
    """GluonNLP's vocabulary, with what a recipe asks of one (see ``Subwords``).

    Args:
        vocabulary: a ``gluonnlp.Vocab`` of byte pairs, where ``@@`` ends what goes on.
        language: of the text that comes out, for the rules of its punctuation.
    """

    note = "of GluonNLP"

    def __init__(self, vocabulary: gluonnlp.Vocab, language: str = "de"):
        self.vocabulary, self.language = vocabulary, language
        self.pad = vocabulary[vocabulary.padding_token]
        self.bos = vocabulary[vocabulary.bos_token]
        self.eos = vocabulary[vocabulary.eos_token]

    def __len__(self):
        return len(self.vocabulary)

    def pieces(self, text: str) -> list[str]:
        """Return the text's byte pairs.

        The corpus is in byte pairs already, which are taken as they are. Any other word is cut
        into the longest that the vocabulary has: GluonNLP does not publish the merges.
        """
        pieces = []
        for word in text.split():
            if word in self.vocabulary:
                pieces.append(word)
            else:
                for part in re.findall(r"\w+|[^\w\s]", word):
                    pieces += self._cut(part)
        return pieces

    def _cut(self, word: str) -> list[str]:
        pieces = []
        while len(word) > 1 and word not in self.vocabulary:
            lengths = range(len(word) - 1, 0, -1)
            length = next((n for n in lengths if word[:n] + _JOIN in self.vocabulary), 1)
            pieces.append(word[:length] + _JOIN)
            word = word[length:]
        return [*pieces, word]

    def encode(self, text: str) -> list[int]:
        """Return the numbers of the text's byte pairs, without begin and end."""
        return self.vocabulary[self.pieces(text)]

    def decode(self, numbers: Iterable[int]) -> str:
        """Return the text of numbers up to the first ``eos``."""
        kept = []
        for number in map(int, numbers):
            if number == self.eos:
                break
            if number not in (self.pad, self.bos):
                kept.append(self.vocabulary.idx_to_token[number])
        return self.plain(" ".join(kept))

    def plain(self, text: str) -> str:
        """Return text in byte pairs as a person writes it."""
        from sacremoses import MosesDetokenizer

        words = text.replace(f"{_JOIN} ", "").removesuffix(_JOIN).replace(f" {_DASH} ", "-").split()
        return MosesDetokenizer(lang=self.language).detokenize(words)
