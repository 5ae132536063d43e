"""Hashes of data sets: of one file, of many, and whether they are what was registered."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from mxopt.core.errors import DataError
from mxopt.data.registry import Source


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of one file's bytes, in hexadecimal."""
    digest = hashlib.sha256()
    with open(path, "rb") as stream:
        for chunk in iter(lambda: stream.read(1 << 20), b""):
            digest.update(chunk)
    return digest.hexdigest()


def tree_sha256(root: Path, members: Iterable[str]) -> str:
    """Return one SHA-256 over many files: of lines ``name, two spaces, SHA-256``, sorted by name.

    Line ends of ``.txt`` files are read as a single line feed, because unpacking and version
    control may change them.

    Args:
        root: a folder.
        members: names of files, relative to ``root``, with forward slashes.
    """
    digest = hashlib.sha256()
    for name in sorted(members):
        if name.endswith(".txt"):
            content = (root / name).read_bytes().replace(b"\r\n", b"\n")
            sha256 = hashlib.sha256(content).hexdigest()
        else:
            sha256 = file_sha256(root / name)
        digest.update(f"{name}  {sha256}\n".encode())
    return digest.hexdigest()


def missing_files(root: Path, names: Iterable[str]) -> list[str]:
    """Return the names that are not files in a folder, in the given order.

    Args:
        root: the folder.
        names: relative to ``root``.
    """
    return [name for name in names if not (root / name).is_file()]


def check_content(source: Source, root: Path) -> None:
    """Hash every file of a data set.

    Args:
        source: the data set.
        root: its folder.

    Raises:
        DataError: files are missing, or the SHA-256 of a file (for an archive, of the folder) is
            wrong; the message names them, and both hashes.
    """
    absent = missing_files(root, source.archive.members if source.archive else source.required)
    if absent:
        raise DataError(describe_missing(source, root, absent))
    if source.archive:
        compare_hash(
            f"{root} ({len(source.archive.members)} files together)",
            source.archive.tree_sha256,
            tree_sha256(root, source.archive.members),
        )
    for file in source.files:
        compare_hash(str(root / file.name), file.sha256, file_sha256(root / file.name))


def compare_hash(what: str, expected: str, found: str) -> None:
    """Check that two hashes are equal.

    Args:
        what: was hashed, for the error message.
        expected: SHA-256 in hexadecimal.
        found: SHA-256 in hexadecimal.

    Raises:
        DataError: they differ; the message has both.
    """
    if expected != found:
        raise DataError(
            f"{what} has SHA-256 {found} where {expected} was expected: "
            "the file is damaged or was changed, so it is not used; delete it and fetch it again."
        )


def describe_missing(source: Source, root: Path, absent: list[str]) -> str:
    """Return a sentence with the number of missing files and the names of the first three.

    Args:
        source: the data set.
        root: its folder.
        absent: names of the missing files.
    """
    named = ", ".join(absent[:3]) + (", ..." if len(absent) > 3 else "")
    total = len(source.archive.members) if source.archive else len(source.required)
    noun = "file" if len(absent) == 1 else "files"
    return (
        f"{source.name} at {root} is incomplete: {len(absent)} {noun} missing of {total} "
        f"({named}); complete the folder or remove it."
    )
