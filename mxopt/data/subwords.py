"""Subwords: one vocabulary for both languages, with pieces from which rare words are composed.

    >>> subwords = train_subwords(["Ein Hund läuft.", "A dog runs."], size=40)
    >>> subwords.decode(subwords.encode("Ein Hund läuft."))
    'Ein Hund läuft.'

Byte-pair encoding (R. Sennrich, B. Haddow, A. Birch, 2016, arXiv:1508.07909) by Google's
SentencePiece, in one thread, so that the same lines give the same vocabulary, byte for byte.
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
from mxopt.data.hashes import file_sha256

PAD, UNKNOWN, BOS, EOS = range(4)
# In bytes; SentencePiece leaves longer lines out of training without a message.
_LONGEST_LINE = 1 << 20
_UNKNOWN_SIGN = "\N{DOUBLE QUESTION MARK}"


class Subwords:
    """A trained vocabulary, which encodes text and decodes indices.

    ``len()`` is the number of pieces, the four special ones included. Can be pickled, as worker
    processes need.

    Args:
        model: a SentencePiece model, as bytes.
        size: number of pieces that was requested.
        path: file of the model, if it is kept.

    Attributes:
        pad: index of padding, 0.
        unknown: index of an unknown character, 1.
        bos: index of the begin of a sentence, 2.
        eos: index of the end of a sentence, 3.
        note: a sentence if the vocabulary is smaller than requested, else empty.
        path: as above.
    """

    pad, unknown, bos, eos = PAD, UNKNOWN, BOS, EOS

    def __init__(self, model: bytes, size: int, path: Path | None = None):
        self._processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        self.path = path
        self.note = ""
        if len(self) < size:
            self.note = (
                f"The vocabulary has {len(self):,} pieces and not {size:,}: "
                "the text is too short for more."
            )

    def __len__(self):
        return self._processor.get_piece_size()

    def encode(self, text: str) -> list[int]:
        """Return the indices of the text's pieces, without ``bos`` and ``eos``.

        A character that does not occur in the training text becomes ``unknown``.
        """
        return self._processor.encode(text, num_threads=1)

    def decode(self, numbers: Iterable[int]) -> str:
        """Return the text of indices up to the first ``eos``; ``pad`` and ``bos`` are left out.

        ``unknown`` is shown as ⁇.

        Args:
            numbers: indices; NumPy's integers are accepted.
        """
        kept = []
        for number in map(int, numbers):
            if number == EOS:
                break
            if number not in (PAD, BOS):
                kept.append(number)
        return " ".join(self._processor.decode(kept).split())

    def plain(self, text: str) -> str:
        """Return a sentence of the data as ordinary text: here, unchanged."""
        return text

    def pieces(self, text: str) -> list[str]:
        """Return the pieces as strings, with a low line where a word begins."""
        return self._processor.encode(text, out_type=str, num_threads=1)


def train_subwords(lines: Iterable[str], size: int, folder: str | Path | None = None) -> Subwords:
    """Train a vocabulary on text of both languages, or read a kept one.

    Args:
        lines: sentences of both languages.
        size: number of pieces, the four special ones included. A short text gives fewer, and
            ``note`` says so.
        folder: where to keep the vocabulary, under a name made from ``lines`` and ``size``;
            ``None`` keeps nothing. A kept file is checked by SHA-256, and trained again if it is
            damaged.

    Raises:
        DataError: there is no text, or it has more different characters than ``size`` allows, or
            the folder cannot be written to.
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
            f"different characters: it needs one subword for each of them and {EOS + 1} special "
            "ones, so increase its size."
        ) from error
    return model.getvalue()


def _fingerprint(lines: list[str]) -> str:
    digest = hashlib.sha256(sentencepiece.__version__.encode())
    for line in lines:
        digest.update(line.encode("utf-8") + b"\n")
    return digest.hexdigest()[:16]


def _kept(path: Path) -> bytes | None:
    """Return the kept model, or None if it is missing or damaged."""
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
