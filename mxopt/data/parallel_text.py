"""Parallel text as a Gluon data set: two files, line i of one translates line i of the other.

    >>> train = ParallelText("train.en", "train.de")         # doctest: +SKIP
    >>> train[0]                                             # doctest: +SKIP
    ('A dog runs.', 'Ein Hund läuft.')

A folder with the files of all splits, ``my/train.en``, ``my/train.fr``, ``my/test.en`` ...:

    >>> ParallelFolder("my", "train", source="en", target="fr")      # doctest: +SKIP

:func:`read_pairs` reads two files into a list.
"""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import NamedTuple

from mxnet import gluon

from mxopt.core.errors import DataError

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_GZIP_MARK = b"\x1f\x8b"
# Names of each split's files; the first that exists is read.
_SPLIT_NAMES = {"train": ("train",), "validation": ("validation", "val"), "test": ("test",)}


class Pairs(NamedTuple):
    """Result of :func:`read_pairs`.

    Attributes:
        pairs: (source, target), two strings, neither empty.
        left_out: numbers (from 1) of the lines left out because a side is empty.
    """

    pairs: list[tuple[str, str]]
    left_out: list[int]


def read_lines(path: str | Path) -> list[str]:
    """Return the lines of a UTF-8 file, plain or compressed with gzip.

    White space at both ends of a line is removed, and so is a byte order mark. Lines end with a
    line feed, with or without a carriage return before it. Unicode's other line separators do not
    end a line, because two files split at those would no longer match.

    Args:
        path: of the file.

    Raises:
        DataError: the file is missing, empty, a damaged gzip file, or not UTF-8; then the message
            has the number of the line, from 1.
    """
    try:
        content = Path(path).read_bytes()
        if content.startswith(_GZIP_MARK):
            content = gzip.decompress(content)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path} is not a complete gzip file ({error}): pack it again.") from error
    except OSError as error:
        raise DataError(
            f"{path} cannot be read ({error.strerror or error}): name a text file."
        ) from error
    content = content[len(_BYTE_ORDER_MARK) :] if content.startswith(_BYTE_ORDER_MARK) else content
    if not content:
        raise DataError(f"{path} is empty: it must have one sentence on each line.")
    lines = content.split(b"\n")
    if not lines[-1]:
        lines.pop()  # What follows the last line feed is not a line.
    return [_decoded(line, number, path) for number, line in enumerate(lines, 1)]


def read_pairs(source: str | Path, target: str | Path) -> Pairs:
    """Read two files of parallel text, in which lines of the same number translate each other.

    Args:
        source: file to translate from.
        target: file to translate to.

    Returns:
        The pairs in which both sides have text, in order, and the numbers (from 1) of the lines
        left out because a side is empty.

    Raises:
        DataError: as for :func:`read_lines`; or the files differ in their number of lines, or no
            pair is left.
    """
    sources, targets = read_lines(source), read_lines(target)
    if len(sources) != len(targets):
        raise DataError(
            f"{source} has {len(sources):,} lines and {target} has {len(targets):,}: each line "
            "needs its translation, so give files with the same number of lines."
        )
    pairs = list(zip(sources, targets))
    left_out = [number for number, pair in enumerate(pairs, 1) if not all(pair)]
    pairs = [pair for pair in pairs if all(pair)]
    if not pairs:
        raise DataError(
            f"{source} and {target} have no line with text in both: "
            f"{_counted(len(left_out), 'line')}, each empty in at least one of them; give files "
            "with text on the same lines."
        )
    return Pairs(pairs, left_out)


class ParallelText(gluon.data.SimpleDataset):
    """Pairs of sentences: sample i is ``(source, target)``, two strings.

    Args:
        source: file to translate from.
        target: file to translate to.

    Attributes:
        left_out: numbers (from 1) of the lines left out because a side is empty.
        note: a sentence on these lines; empty if there are none.

    Raises:
        DataError: as for :func:`read_pairs`.
    """

    def __init__(self, source: str | Path, target: str | Path):
        pairs, self.left_out = read_pairs(source, target)
        count = len(self.left_out)
        self.note = (
            f"{_counted(count, 'pair')} of {source} and {target} left out: a side is empty."
            if count
            else ""
        )
        super().__init__(pairs)


class ParallelFolder(ParallelText):
    """One split of a folder of parallel text, such as ``train.en`` and ``train.de``.

    The files of the validation split are named ``validation`` or ``val``; every file may be
    compressed (``train.en.gz``).

    Args:
        root: the folder.
        split: ``train``, ``validation`` or ``test``.
        source: ending of the files to translate from.
        target: ending of the files to translate to.

    Raises:
        DataError: there is no such split or file, or as for :func:`read_pairs`.
    """

    def __init__(self, root: str | Path, split: str, source: str = "en", target: str = "de"):
        super().__init__(*find_files(root, split, source, target))


def find_files(root: str | Path, split: str, source: str, target: str) -> tuple[Path, Path]:
    """Return the source and the target file of a split of a folder.

    Args:
        root: as for :class:`ParallelFolder`.
        split: as for :class:`ParallelFolder`.
        source: as for :class:`ParallelFolder`.
        target: as for :class:`ParallelFolder`.

    Raises:
        DataError: the split is unknown, or there are no such files; the message names them.
    """
    root = Path(root)
    names = known_split(split, _SPLIT_NAMES)
    for name in names:
        files = [_plain_or_packed(root / f"{name}.{ending}") for ending in (source, target)]
        if all(files):
            return tuple(files)
    wanted = " or ".join(f"{name}.{source} and {name}.{target}" for name in names)
    raise DataError(f"{root} does not have {wanted} (.gz allowed): put the files there.")


def known_split(split: str, choices: dict):
    """Return the entry of a split.

    Args:
        split: name of the split.
        choices: an entry for each split, by name.

    Raises:
        DataError: there is no such split; the message lists the names.
    """
    if split not in choices:
        raise DataError(f"There is no split {split!r}; there are: {', '.join(choices)}.")
    return choices[split]


def _plain_or_packed(path: Path) -> Path | None:
    packed = path.with_name(path.name + ".gz")
    return next((file for file in (path, packed) if file.is_file()), None)


def _decoded(line: bytes, number: int, path) -> str:
    try:
        return line.decode("utf-8").strip()
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path} is not UTF-8: line {number} has the byte 0x{line[error.start]:02x}, which is "
            "invalid there; save the file as UTF-8."
        ) from None


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
