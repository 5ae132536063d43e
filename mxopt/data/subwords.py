"""Subwords: one vocabulary for both languages, of pieces that rare words can be put together from.

    >>> subwords = train_subwords(["Ein Hund läuft.", "A dog runs."], size=40)
    >>> subwords.decode(subwords.encode("Ein Hund läuft."))
    'Ein Hund läuft.'

Byte-pair encoding (R. Sennrich, B. Haddow, A. Birch, 2016, arXiv:1508.07909) by Google's
SentencePiece, in one thread, so that the same lines give the same vocabulary, byte by byte.
"""

from __future__ import annotations

import hashlib
import io
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

import sentencepiece

from mxopt.core.errors import DataError
from mxopt.data.download import file_sha256

PAD, UNKNOWN, BOS, EOS = range(4)
# Bytes; a longer line would be left out of the training of the vocabulary without a word.
_LONGEST_LINE = 1 << 20
_UNKNOWN_SIGN = "\N{DOUBLE QUESTION MARK}"


class Subwords:
    """A trained vocabulary: text to numbers and back.

    ``pad``, ``unknown``, ``bos`` and ``eos`` are 0, 1, 2 and 3 in every vocabulary; ``len()`` is
    the number of pieces with these. ``note`` says, if it is so, that the vocabulary came out
    smaller than asked; ``path`` is its file, or None if it is not kept. Can be pickled, as worker
    processes need.

    Args:
        model: a SentencePiece model, as bytes.
        size: how many pieces were asked for.
        path: where the model is kept.
    """

    pad, unknown, bos, eos = PAD, UNKNOWN, BOS, EOS

    def __init__(self, model: bytes, size: int, path: Path | None = None):
        self._processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        self.path = path
        self.note = ""
        if len(self) < size:
            self.note = (
                f"The vocabulary has {len(self):,} pieces and not {size:,}: "
                "there is no more to be found in so little text."
            )

    def __len__(self):
        return self._processor.get_piece_size()

    def encode(self, text: str) -> list[int]:
        """Return the numbers of the text's pieces, without ``bos`` and ``eos``.

        A character that is in no line of the training text becomes ``unknown``.
        """
        return self._processor.encode(text, num_threads=1)

    def encode_pairs(self, pairs: Iterable[tuple[str, str]]) -> list[tuple[list[int], list[int]]]:
        """Return ``encode`` of both sides of every pair."""
        return [(self.encode(source), self.encode(target)) for source, target in pairs]

    def decode(self, numbers: Iterable[int]) -> str:
        """Return the text of numbers up to the first ``eos``; ``pad`` and ``bos`` are nothing.

        ``unknown`` is shown as ⁇. Takes what a beam search gives, numbers of NumPy's too.
        """
        kept = []
        for number in map(int, numbers):
            if number == EOS:
                break
            if number not in (PAD, BOS):
                kept.append(number)
        return " ".join(self._processor.decode(kept).split())

    def plain(self, text: str) -> str:
        """Return a sentence of the data as a person writes it: these are so already."""
        return text

    def pieces(self, text: str) -> list[str]:
        """Return the pieces themselves, a low line where a word begins, to look at."""
        return self._processor.encode(text, out_type=str, num_threads=1)


def train_subwords(lines: Iterable[str], size: int, folder: str | Path | None = None) -> Subwords:
    """Learn a vocabulary from text, both languages together, or read the one learned before.

    Args:
        lines: sentences of both languages.
        size: pieces wanted, with the four special ones. Too little text gives fewer, and ``note``
            says so.
        folder: where the vocabulary is kept for next time, under a name made of the lines and the
            size; None keeps nothing. A kept file is checked by SHA-256, and learned anew if it
            is not what was written.

    Raises:
        DataError: there is no text, or it has more different characters than ``size`` leaves room
            for, or the folder cannot be written to.
    """
    lines = [line for line in lines if line.strip()]
    if not lines:
        raise DataError("There is no text to learn subwords from: give at least one line.")
    if folder is None:
        return Subwords(_trained(lines, size), size)
    path = Path(folder) / f"subwords-{size}-{_fingerprint(lines)}.model"
    model = _kept(path)
    if model is None:
        model = _trained(lines, size)
        _keep(model, path)
    return Subwords(model, size, path)


def _trained(lines: list[str], size: int) -> bytes:
    characters = len({character for line in lines for character in line})
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines),
            model_writer=model,
            model_type="bpe",
            vocab_size=size,
            hard_vocab_limit=False,
            character_coverage=1.0,
            max_sentence_length=_LONGEST_LINE,
            pad_id=PAD,
            unk_id=UNKNOWN,
            bos_id=BOS,
            eos_id=EOS,
            unk_surface=_UNKNOWN_SIGN,
            num_threads=1,
            minloglevel=2,
        )
    except (RuntimeError, OSError) as error:
        raise DataError(
            f"A vocabulary of {size:,} subwords cannot be learned from text with {characters:,} "
            f"different characters: each of them needs a place, and so do {EOS + 1} special "
            "subwords, so ask for more."
        ) from error
    return model.getvalue()


def _fingerprint(lines: list[str]) -> str:
    digest = hashlib.sha256(sentencepiece.__version__.encode())
    for line in lines:
        digest.update(line.encode("utf-8") + b"\n")
    return digest.hexdigest()[:16]


def _kept(path: Path) -> bytes | None:
    """Return the kept model if it is there and whole."""
    try:
        expected = path.with_suffix(".sha256").read_text().split()[0]
        return path.read_bytes() if file_sha256(path) == expected else None
    except (OSError, IndexError, UnicodeDecodeError):
        return None


def _keep(model: bytes, path: Path) -> None:
    """Write the model and its SHA-256, each in one step; several processes may do so at once."""
    line = f"{hashlib.sha256(model).hexdigest()}  {path.name}\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        for target, content in ((path.with_suffix(".sha256"), line.encode()), (path, model)):
            handle, scratch = tempfile.mkstemp(prefix=f".{target.name}-", dir=path.parent)
            with os.fdopen(handle, "wb") as stream:
                stream.write(content)
            os.replace(scratch, target)
    except OSError as error:
        raise DataError(
            f"The vocabulary cannot be written to {path} ({error.strerror}): name a folder that "
            "can be written to."
        ) from error
