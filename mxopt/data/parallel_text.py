"""Two files of text that say the same in two languages, line by line, as a Gluon data set.

    >>> train = ParallelText("train.en", "train.de")         # doctest: +SKIP
    >>> train[0]                                             # doctest: +SKIP
    ('A dog runs.', 'Ein Hund läuft.')

Your own languages in a folder of their own, ``my/train.en``, ``my/train.fr``, ``my/test.en`` ...:

    >>> ParallelFolder("my", "train", source="en", target="fr")      # doctest: +SKIP

:func:`read_pairs` does the reading.
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
# A folder's name for each split; the first that is there is read.
_SPLIT_NAMES = {"train": ("train",), "validation": ("validation", "val"), "test": ("test",)}


class Pairs(NamedTuple):
    """What :func:`read_pairs` found: the pairs, and the lines where one side or both are empty."""

    pairs: list[tuple[str, str]]
    left_out: list[int]


def read_lines(path: str | Path) -> list[str]:
    """Return the lines of a UTF-8 file, plain or packed with gzip, without blanks at their ends.

    A line ends with a line feed, carriage return before it or not, and with nothing else: Unicode
    knows more line separators, but two files cut at those would no longer match. A byte order mark
    is dropped. Raises ``DataError`` for a file that is missing, empty, not UTF-8 (the message has
    the line's number, counted from 1) or a damaged gzip file.
    """
    try:
        content = Path(path).read_bytes()
        if content.startswith(_GZIP_MARK):
            content = gzip.decompress(content)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path} is not a whole gzip file ({error}): pack it again.") from error
    except OSError as error:
        raise DataError(
            f"{path} cannot be read ({error.strerror or error}): name a text file."
        ) from error
    content = content[len(_BYTE_ORDER_MARK) :] if content.startswith(_BYTE_ORDER_MARK) else content
    if not content:
        raise DataError(f"{path} is empty: it must have one sentence on each line.")
    lines = content.split(b"\n")
    if not lines[-1]:
        lines.pop()  # The end of the last line, not the beginning of another.
    return [_decoded(line, number, path) for number, line in enumerate(lines, 1)]


def read_pairs(source: str | Path, target: str | Path) -> Pairs:
    """Read two files of parallel text; line i of one says what line i of the other says.

    Returns:
        The pairs whose sides both have text, in order, and the numbers (from 1) of the lines that
        were left out because a side is empty.

    Raises:
        DataError: as for :func:`read_lines`; or the files differ in their number of lines, or no
            pair is left.
    """
    sources, targets = read_lines(source), read_lines(target)
    if len(sources) != len(targets):
        raise DataError(
            f"{source} has {len(sources):,} lines and {target} has {len(targets):,}: "
            "line by line they must say the same, so give both the same number of lines."
        )
    pairs = list(zip(sources, targets))
    left_out = [number for number, pair in enumerate(pairs, 1) if not all(pair)]
    pairs = [pair for pair in pairs if all(pair)]
    if not pairs:
        raise DataError(
            f"{source} and {target} have no line with text in both: "
            f"{_counted(len(left_out), 'line')}, each empty in one of them at least."
        )
    return Pairs(pairs, left_out)


class ParallelText(gluon.data.SimpleDataset):
    """Pairs of sentences: sample i is ``(source, target)``, two strings.

    ``left_out`` holds the numbers (from 1) of the lines left out because a side is empty, and
    ``note`` says so in a sentence (empty where there are none). Raises ``DataError`` as
    :func:`read_pairs` does.
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
    """One split of a folder of your own: ``train.en`` and ``train.de`` for the training split.

    The validation split is called ``validation`` or ``val``; every file may be packed
    (``train.en.gz``).

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
    """Return the two files of a split, as :class:`ParallelFolder` names them.

    Raises ``DataError`` for an unknown split, or naming the files that were looked for in vain.
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
    """Return what ``choices`` has for ``split``, or raise ``DataError`` listing its names."""
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
            f"{path} is not UTF-8: line {number} has the byte 0x{line[error.start]:02x} where no "
            "such byte can stand; save the file as UTF-8."
        ) from None


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
