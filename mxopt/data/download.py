"""Download a data set, check it, and put it in place in one step or not at all.

A data set is downloaded, hashed, unpacked and hashed again in a temporary folder beside the target.
Only if all checks pass is it renamed into place. So the target folder is always complete, and a
broken connection, a wrong hash or Ctrl-C leaves nothing behind.
"""

from __future__ import annotations

import logging
import os
import shutil
import stat
import sys
import tempfile
import time
import warnings
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from mxopt.core.errors import DataError
from mxopt.data.hashes import check_content, missing_files
from mxopt.data.registry import Source

# Seconds to connect, and to wait for the next bytes. A missing network should be noticed quickly; a
# slow server that did answer gets more time.
CONNECT_TIMEOUT = 3.05
READ_TIMEOUT = 15.0
# Seconds for which an unreachable host is not tried again: a recipe looks for its data once per
# split, and should wait for a missing network only once.
FORGET_AFTER = 60.0
# What GluonNLP's and GluonCV's downloads raise without a network, or if the answer is not the file.
FETCH_ERRORS = (OSError, RuntimeError, ValueError, AssertionError)
_unreachable_since: dict[str, float] = {}


class UnreachableError(DataError):
    """No address of a data set answered; it may still be available elsewhere."""


@contextmanager
def folder_in_one_step(target: Path, required: Iterable[str]) -> Iterator[Path]:
    """Yield an empty temporary folder that becomes ``target`` if the block does not raise.

    If the block raises, the temporary folder is removed and ``target`` is unchanged. A ``target``
    that already has all required files, written by another process meanwhile, is kept.

    Args:
        target: the folder to make.
        required: names of the files, relative to ``target``, that make it complete.
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
    """Download a data set into a folder, checked and in one step.

    Args:
        source: the data set.
        target: the folder.

    Raises:
        UnreachableError: no address answers with the data.
        DataError: the data has another hash, or is an archive that is damaged or would write
            outside its folder.
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
    """Download a file with pooch.

    If the connection breaks or the hash is wrong, the download is repeated once from the start. If
    that fails too, ``path`` does not exist afterwards.

    Args:
        url: address of the file.
        path: where to write it; must not exist.
        sha256: of the file; ``None`` if it is not checked here.

    Raises:
        UnreachableError: the address does not answer, or the connection breaks twice.
        DataError: the file has another SHA-256.
    """
    import requests

    with warnings.catch_warnings():
        # pooch's progress bar looks for widgets at import, and warns in a notebook without them.
        warnings.filterwarnings("ignore", message="IProgress not found")
        import pooch

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
            # pooch repeats after errors of requests only; here, repeating would not help.
            raise UnreachableError(f"{url} does not answer ({brief(error)}).") from error

    store = pooch.create(
        path.parent, "", registry={path.name: sha256}, urls={path.name: url}, retry_if_failed=1
    )
    try:
        store.fetch(path.name, downloader=fetch)
    except requests.RequestException as error:
        raise UnreachableError(f"The connection to {url} broke twice ({brief(error)}).") from error
    except ValueError as error:
        raise DataError(
            f"{path.name} from {url} has another SHA-256 than was expected, twice, so it is not "
            f"used ({error})"
        ) from error


def brief(error: Exception) -> str:
    """Return an HTTP error's status, or the name of the error's type, for use in a sentence."""
    response = getattr(error, "response", None)
    return f"HTTP {response.status_code}" if response is not None else type(error).__name__


def unzip(packed: Path, target: Path) -> None:
    """Unpack a zip file.

    Args:
        packed: the zip file.
        target: a new folder; after an error the caller has to remove it.

    Raises:
        DataError: the archive is damaged, or a member could be written outside ``target``.
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
            f"{packed.name} is not a complete zip file ({error}); fetch it again."
        ) from error


def check_member(packed: Path, member: zipfile.ZipInfo) -> None:
    """Check that a zip member cannot be written outside the target folder.

    Args:
        packed: the zip file, for the error message.
        member: one of its members.

    Raises:
        DataError: the member has an absolute name or a name with ``..``, or is a link.
    """
    name = member.filename.replace("\\", "/")
    outside = name.startswith("/") or ":" in name or ".." in PurePosixPath(name).parts
    if outside or stat.S_ISLNK(member.external_attr >> 16):
        raise DataError(
            f"{packed.name} was refused: its member {member.filename!r} would be written "
            "outside the data folder."
        )
