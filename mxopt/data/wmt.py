"""WMT2016 as the chapter uses it: GluonNLP's text in byte pairs, and its vocabulary.

Training uses 100,000 pairs. Validation uses the first 1,500 pairs of newstest2016, the test its
other 1,499. GluonNLP reads all 4.5 million training pairs into memory, which takes too long for a
measured process. So they are read once, and the pairs used are kept in the cache as two parallel
files for each split.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import gluonnlp

from mxopt.core.cache import cache_folder
from mxopt.core.errors import DataError
from mxopt.data.download import FETCH_ERRORS, folder_in_one_step
from mxopt.data.hashes import missing_files

TRAINING_PAIRS, VALIDATION_PAIRS = 100_000, 1500
_FILES = tuple(
    f"{split}.{end}" for split in ("train", "validation", "test") for end in ("en", "de")
)
# How the corpus writes a dash within a word: as a separate word.
_DASH = "##AT##-##AT##"
# The ending of a byte pair that does not end its word.
_JOIN = "@@"


def prepare() -> Path:
    """Return the folder with the text, downloaded by GluonNLP if it is not in the cache.

    Raises:
        DataError: the text is not in the cache and cannot be downloaded.
    """
    folder = cache_folder() / "wmt2016-bpe"
    if missing_files(folder, _FILES):
        try:
            with folder_in_one_step(folder, _FILES) as fresh:
                _write(fresh)
        except FETCH_ERRORS as error:
            raise DataError(
                f"GluonNLP could not download WMT2016 ({error}). Connect to the network, or put "
                "GluonNLP's files under ~/.mxnet/datasets/wmt2016."
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
    """GluonNLP's vocabulary with the interface of :class:`~mxopt.data.subwords.Subwords`.

    Args:
        vocabulary: a ``gluonnlp.Vocab`` of byte pairs, in which ``@@`` ends each that does not end
            its word.
        language: language code of decoded text, for its rules of punctuation.

    Attributes:
        vocabulary: as above.
        language: as above.
        pad: index of the padding token.
        bos: index of the begin of a sentence.
        eos: index of the end of a sentence.
        note: origin of the vocabulary.
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

        Words that are in the vocabulary are kept: the corpus is already split into byte pairs. Any
        other word is split into the longest byte pairs in the vocabulary, from its beginning on,
        because GluonNLP does not publish the merges.
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
        """Return the indices of the text's byte pairs, without ``bos`` and ``eos``."""
        return self.vocabulary[self.pieces(text)]

    def decode(self, numbers: Iterable[int]) -> str:
        """Return the text of indices up to the first ``eos``."""
        kept = []
        for number in map(int, numbers):
            if number == self.eos:
                break
            if number not in (self.pad, self.bos):
                kept.append(self.vocabulary.idx_to_token[number])
        return self.plain(" ".join(kept))

    def plain(self, text: str) -> str:
        """Return text in byte pairs as ordinary text."""
        from sacremoses import MosesDetokenizer

        words = text.replace(f"{_JOIN} ", "").removesuffix(_JOIN).replace(f" {_DASH} ", "-").split()
        return MosesDetokenizer(lang=self.language).detokenize(words)
