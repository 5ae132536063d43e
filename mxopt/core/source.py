"""Which code made a record: the commit of a checkout, and a hash of the package's source."""

from __future__ import annotations

import functools
import hashlib
import subprocess
from collections.abc import Iterable
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]


@functools.cache
def source_hash(package: Path = PACKAGE) -> str:
    """Return the SHA-256 of all Python files of a package, by path: names and contents.

    Args:
        package: the package's folder.
    """
    paths = package.rglob("*.py")
    return hash_of((path.relative_to(package), path.read_bytes()) for path in paths)


def hash_of(files: Iterable[tuple[Path, bytes]]) -> str:
    """Return the SHA-256 of files, by path: names and contents.

    Args:
        files: path, relative to the package, and content of each file, in any order.
    """
    found = hashlib.sha256()
    hashes = ((path, hashlib.sha256(content).hexdigest()) for path, content in files)
    for path, own in sorted(hashes):
        found.update(f"{path.as_posix()} {own}\n".encode())
    return found.hexdigest()


@functools.cache
def commit(package: Path = PACKAGE) -> str:
    """Return the commit of the checkout that holds a package.

    Args:
        package: the package's folder.

    Returns:
        The commit's hash, followed by ``+changes`` if files of the package differ from it; empty if
        the package is not in a checkout, or git is not installed.
    """
    try:
        head = _git(package, "rev-parse", "HEAD")
        tracked = _git(package, "ls-files", "--error-unmatch", "__init__.py")
        changed = _git(package, "status", "--porcelain", "--", ".")
    except (OSError, subprocess.SubprocessError):
        return ""
    return "" if not tracked else head + ("+changes" if changed else "")


def _git(folder: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", "-C", str(folder), *arguments],
        capture_output=True, text=True, check=True, timeout=30,
    ).stdout.strip()  # fmt: skip
