"""Writing files atomically, and the error for a file that cannot be written."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable
from pathlib import Path

from mxopt.core.errors import RecordError


def replace_text(path: str | os.PathLike, text: str) -> None:
    """Write a UTF-8 text file atomically: a reader finds the old content or the new, never a part.

    Args:
        path: file to write; it is replaced if it exists. A device such as ``/dev/stdout`` is
            written to directly.
        text: the new content.

    Raises:
        RecordError: the file cannot be written; the old content is unchanged.
    """
    replace_bytes(path, text.encode("utf-8"))


def replace_bytes(path: str | os.PathLike, content: bytes) -> None:
    """Write a file atomically, as :func:`replace_text`.

    Args:
        path: file to write; it is replaced if it exists.
        content: the new content.

    Raises:
        RecordError: the file cannot be written; the old content is unchanged.
    """
    path = Path(path)
    scratch = path.with_name(f".{path.name}-{os.getpid()}")
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(content)  # a device, such as /dev/stdout, stays one
            return
        with scratch.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(scratch, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            scratch.unlink()
        raise unwritable(path, error) from None


def by_number(paths: Iterable[Path]) -> list[Path]:
    """Return files sorted by the numbers in their names: 9 before 10, and 10 before 10-2."""
    return sorted(paths, key=lambda path: [int(digits) for digits in re.findall(r"\d+", path.stem)])


def unwritable(path: str | os.PathLike, error: OSError) -> RecordError:
    """Return the error for a file that cannot be written: the reason, and what to do.

    Args:
        path: the file.
        error: what the system reported.
    """
    return RecordError(
        f"cannot write {path} ({error.strerror or error}); free some space, or choose a folder "
        "that can be written to"
    )
