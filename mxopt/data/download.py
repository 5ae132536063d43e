"""Fetch a data set once, check it, and put it in place in one step or not at all.

Everything happens in a temporary folder beside the target: download, hash, unpacking, hash of what
was unpacked. Only a data set that passed is renamed into place, so whoever finds the target folder
finds it whole, and a broken connection, a wrong hash or Ctrl-C leaves nothing behind.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import stat
import sys
import tempfile
import time
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from mxopt.core.errors import DataError
from mxopt.data.registry import Source

# Seconds to connect, and to wait for the next bytes. A machine without a network has to find out
# quickly; a slow server that did answer may take its time.
CONNECT_TIMEOUT = 3.05
READ_TIMEOUT = 15.0
# Seconds for which a host that could not be reached is not asked again: a recipe looks for its data
# once per split, and should wait for a missing network once.
FORGET_AFTER = 60.0
# What GluonNLP's and GluonCV's downloads raise without a network, or when an answer is not what was
# asked for.
FETCH_ERRORS = (OSError, RuntimeError, ValueError, AssertionError)
_unreachable_since: dict[str, float] = {}


class UnreachableError(DataError):
    """No address of a data set answered; another place may still have it."""


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of one file's bytes, in hexadecimal."""
    digest = hashlib.sha256()
    with open(path, "rb") as stream:
        for chunk in iter(lambda: stream.read(1 << 20), b""):
            digest.update(chunk)
    return digest.hexdigest()


def tree_sha256(root: Path, members: Iterable[str]) -> str:
    """Return one SHA-256 over many files: of lines ``name, two spaces, SHA-256``, sorted by name.

    ``members`` are names relative to ``root`` with forward slashes. Line ends of ``.txt`` files are
    read as a bare line feed, because unpackers and version control change them.
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
    """Return those of ``names`` that are not files under ``root``, in the given order."""
    return [name for name in names if not (root / name).is_file()]


def check_content(source: Source, root: Path) -> None:
    """Hash every file of ``source`` under ``root``.

    Raises ``DataError`` naming the files that are missing, or the file (for an archive: the folder)
    whose SHA-256 is wrong, with the hash expected and the hash found.
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
    """Raise ``DataError`` naming ``what`` and both hashes unless they are equal."""
    if expected != found:
        raise DataError(
            f"{what} has SHA-256 {found} where {expected} was expected: "
            "the file is damaged or was changed, so it is not used; delete it and fetch it again."
        )


def describe_missing(source: Source, root: Path, absent: list[str]) -> str:
    """Return one sentence that names the first few of the ``absent`` files and counts them all."""
    named = ", ".join(absent[:3]) + (", ..." if len(absent) > 3 else "")
    total = len(source.archive.members) if source.archive else len(source.required)
    noun = "file" if len(absent) == 1 else "files"
    return (
        f"{source.name} at {root} is incomplete: {len(absent)} {noun} missing of {total} "
        f"({named}); complete the folder or take it away."
    )


@contextmanager
def folder_in_one_step(target: Path, required: Iterable[str]) -> Iterator[Path]:
    """Yield an empty temporary folder that becomes ``target`` if the block ends well.

    Whatever goes wrong inside, the temporary folder goes away and ``target`` is as it was before. A
    ``target`` that already has all ``required`` files (another process was quicker) is kept.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        fresh = scratch / "fresh"
        fresh.mkdir()
        yield fresh
        if missing_files(target, required):
            if target.exists():
                os.rename(target, scratch / "replaced")
            os.rename(fresh, target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def download(source: Source, target: Path) -> None:
    """Fetch ``source`` from its address into the folder ``target``, checked and in one step.

    Raises ``UnreachableError`` where no address answers with the data, and ``DataError`` where one
    answers with something of another hash, or with an archive that is damaged or writes outside its
    folder.
    """
    if source.archive is None:
        with folder_in_one_step(target, source.required) as fresh:
            for file in source.files:
                retrieve(file.url, fresh / file.name, file.sha256)
        return

    with tempfile.TemporaryDirectory(prefix="mxopt-") as scratch:
        packed = Path(scratch) / f"{source.folder}.zip"
        failures = []
        for url in source.archive.urls:
            try:
                retrieve(url, packed, source.archive.sha256)
                break
            except UnreachableError as error:
                failures.append(str(error))
        else:
            raise UnreachableError(" ".join(failures))
        with folder_in_one_step(target, source.required) as fresh:
            unpacked = fresh.parent / "unpacked"
            unzip(packed, unpacked)
            check_content(source, unpacked / source.folder)
            fresh.rmdir()
            os.rename(unpacked / source.folder, fresh)


def retrieve(url: str, path: Path, sha256: str | None) -> None:
    """Download ``url`` to ``path`` with pooch, once more from the start if the connection breaks
    or the bytes are wrong. If it fails, ``path`` does not exist afterwards.

    Args:
        url: where from.
        path: where to; must not exist.
        sha256: of the bytes; None to not check it here.

    Raises:
        UnreachableError: the address does not answer, or breaks off twice.
        DataError: the bytes have another SHA-256.
    """
    import pooch
    import requests

    host = urlsplit(url).netloc
    if time.monotonic() - _unreachable_since.get(host, -FORGET_AFTER) < FORGET_AFTER:
        raise UnreachableError(f"{url} did not answer a moment ago.")
    pooch.get_logger().setLevel(logging.WARNING)
    http = pooch.HTTPDownloader(
        progressbar=sys.stderr.isatty(), timeout=(CONNECT_TIMEOUT, READ_TIMEOUT)
    )

    def fetch(*request):
        try:
            http(*request)
        except (requests.ConnectionError, requests.Timeout, requests.HTTPError) as error:
            if not isinstance(error, requests.HTTPError):
                _unreachable_since[host] = time.monotonic()
            # pooch retries after errors of requests only: asking again would not help here.
            raise UnreachableError(f"{url} does not answer ({brief(error)}).") from error

    store = pooch.create(
        path.parent, "", registry={path.name: sha256}, urls={path.name: url}, retry_if_failed=1
    )
    try:
        store.fetch(path.name, downloader=fetch)
    except requests.RequestException as error:
        raise UnreachableError(f"{url} broke off twice ({brief(error)}).") from error
    except ValueError as error:
        raise DataError(
            f"{path.name} from {url} has another SHA-256 than was expected, twice, so it is not "
            f"used ({error})"
        ) from error


def brief(error: Exception) -> str:
    """Return an HTTP error's status, or the name of the error's type: enough for one sentence."""
    response = getattr(error, "response", None)
    return f"HTTP {response.status_code}" if response is not None else type(error).__name__


def unzip(packed: Path, target: Path) -> None:
    """Unpack a zip file member by member, refusing any that would land outside ``target``.

    Raises ``DataError`` for an absolute name, a name with ``..``, a link, or a damaged archive; the
    caller owns ``target`` and throws it away.
    """
    try:
        with zipfile.ZipFile(packed) as archive:
            for member in archive.infolist():
                check_member(packed, member)
                if member.is_dir():
                    continue
                path = target / member.filename
                path.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(member) as stream, open(path, "wb") as out:
                    shutil.copyfileobj(stream, out)
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise DataError(
            f"{packed.name} is not a whole zip file ({error}); fetch it again."
        ) from error


def check_member(packed: Path, member: zipfile.ZipInfo) -> None:
    """Raise ``DataError`` if a zip member's name or type could write outside the target folder."""
    name = member.filename.replace("\\", "/")
    outside = name.startswith("/") or ":" in name or ".." in PurePosixPath(name).parts
    if outside or stat.S_ISLNK(member.external_attr >> 16):
        raise DataError(
            f"{packed.name} was refused: its member {member.filename!r} would be written "
            "outside the data folder."
        )
