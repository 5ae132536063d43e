"""Find a data set: in the user's folder, the cache, upstream, or as a stand-in.

The first of these places that has the data set is used:

1. ``MXOPT_DATA``, a folder with one sub-folder per data set (for weights also ``MXOPT_WEIGHTS``, or
   a folder ``weights`` in or beside ``MXOPT_DATA``);
2. the cache, ``MXOPT_CACHE`` or the user's cache folder, which holds earlier downloads;
3. the upstream address, https with SHA-256;
4. the stand-in that mxopt ships as a zip archive, unpacked to the cache at first use.

>>> location = locate("penn-fudan")          # doctest: +SKIP
>>> location.kind, location.origin           # doctest: +SKIP
('stand-in', 'embedded')

Every result computed from data is marked with ``location.kind``: ``real`` or ``stand-in``.
"""

from __future__ import annotations

import os
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

from mxopt.core.cache import cache_folder
from mxopt.core.errors import DataError
from mxopt.data.download import (
    CONNECT_TIMEOUT,
    UnreachableError,
    brief,
    download,
    folder_in_one_step,
    unzip,
)
from mxopt.data.hashes import check_content, describe_missing, file_sha256, missing_files
from mxopt.data.registry import Source, source

# The archives of the stand-ins; data/README.md says what they contain and how they are made.
STAND_INS = Path(__file__).resolve().parent / "stand_ins"
# The file that marks a stand-in's folder.
STAND_IN_MARK = "STAND-IN.txt"


@dataclass(frozen=True)
class Location:
    """Where a data set was found.

    Attributes:
        name: of the data set.
        path: its folder.
        kind: ``real`` or ``stand-in``.
        origin: ``MXOPT_DATA`` (for weights also ``MXOPT_WEIGHTS``), ``cache``, ``upstream``,
            ``embedded``, or ``given folder`` if the caller named it.
        note: a sentence on why the places before it were not used; empty for the first place.
    """

    name: str
    path: Path
    kind: str
    origin: str
    note: str = ""


@dataclass(frozen=True)
class _Search:
    """Result of a search in local places only: a location, or the reasons why there is none."""

    location: Location | None = None
    passed_over: list[str] = field(default_factory=list)


def locate(name: str, *, allow_download: bool = True) -> Location:
    """Return the location of a data set, after downloading it if necessary.

    A local copy is checked by file names only; :func:`verify` hashes it. If the environment
    variable ``MXOPT_OFFLINE`` is set to any value, nothing is downloaded. Measured runs set it, so
    that they never wait for a network.

    Args:
        name: of the data set.
        allow_download: whether it may be downloaded.

    Raises:
        DataError: the name is unknown, ``MXOPT_DATA`` is not a folder or has the data set with
            files missing, a download has wrong content, or the data set is unavailable and has no
            stand-in.
    """
    wanted = source(name)
    search = _search_local(wanted)
    if search.location:
        return search.location
    passed_over = search.passed_over
    if allow_download and not os.environ.get("MXOPT_OFFLINE"):
        target = cache_folder() / wanted.folder
        try:
            download(wanted, target)
            return Location(name, target, "real", "upstream", _sentence(passed_over))
        except (UnreachableError, OSError) as error:
            passed_over.append(_clause(error))
    else:
        passed_over.append("downloading was not allowed")
    if wanted.stand_in is None:
        raise DataError(
            f"{wanted.title} was not found: {_sentence(passed_over)} Connect to the network and "
            f"run `mxopt fetch {name}`, or put {_example(wanted)} under the folder that MXOPT_DATA "
            "names."
        )
    return Location(name, _stand_in(wanted), "stand-in", "embedded", _sentence(passed_over))


def stand_in(name: str) -> Location:
    """Return the location of a data set's stand-in, even if the data set is available.

    Args:
        name: of the data set.

    Raises:
        DataError: the name is unknown, or the data set has no stand-in.
    """
    wanted = source(name)
    if wanted.stand_in is None:
        raise DataError(f"{wanted.title} has no stand-in; use the data set itself.")
    return Location(name, _stand_in(wanted), "stand-in", "embedded", "asked for.")


def given_folder(name: str, root: str | Path) -> Location:
    """Return the location of a data set whose folder the caller names.

    Args:
        name: of the data set.
        root: its folder, which counts as the real data set unless it contains ``STAND-IN.txt``.
    """
    kind = "stand-in" if (Path(root) / STAND_IN_MARK).is_file() else "real"
    return Location(name, Path(root), kind, "given folder")


def reachable(name: str) -> tuple[bool, str]:
    """Tell whether a data set is available locally or for download, without downloading it.

    Makes at most one short request per address.

    Args:
        name: of the data set.

    Returns:
        ``(True, where)`` or ``(False, why not)``.

    Raises:
        DataError: the name is unknown.
    """
    import requests

    wanted = source(name)
    try:
        search = _search_local(wanted)
    except DataError as error:
        return False, str(error)
    if search.location:
        return True, f"{search.location.path} ({search.location.origin})"
    reason = ""
    for url in wanted.urls:
        try:
            response = requests.head(url, timeout=CONNECT_TIMEOUT, allow_redirects=True)
            response.raise_for_status()
            return True, f"{url} answers; `mxopt fetch {name}` downloads it"
        except requests.RequestException as error:
            reason = reason or f"{url} does not answer ({brief(error)})"
        if wanted.archive is None:  # All files have the same host: one request is enough.
            break
    return False, _sentence([*search.passed_over, reason])


def verify(name: str) -> Location:
    """Hash every file of the local copy of a data set that :func:`locate` would return.

    Args:
        name: of the data set.

    Raises:
        DataError: there is no local copy, a file is missing, or a SHA-256 is wrong; the message
            names the file.
    """
    wanted = source(name)
    search = _search_local(wanted)
    if search.location is None:
        raise DataError(
            f"There is no local copy of {name} to check: {_sentence(search.passed_over)} "
            f"Run `mxopt fetch {name}` first."
        )
    check_content(wanted, search.location.path)
    return search.location


def _search_local(wanted: Source) -> _Search:
    passed_over = []
    for origin, folder, insist in _own_places(wanted):
        absent = missing_files(folder, wanted.required)
        if not absent:
            note = _sentence(passed_over)
            return _Search(Location(wanted.name, folder, "real", origin, note))
        if insist:
            raise DataError(describe_missing(wanted, folder, absent))
        passed_over.append(f"{origin} has no {wanted.folder}")
    if not passed_over:
        passed_over.append("MXOPT_DATA is not set")
    cached = cache_folder() / wanted.folder
    absent = missing_files(cached, wanted.required)
    if not absent:
        return _Search(Location(wanted.name, cached, "real", "cache", _sentence(passed_over)))
    partly = f"lacks {len(absent)} of its files" if cached.is_dir() else "does not have it"
    passed_over.append(f"the cache {cache_folder()} {partly}")
    return _Search(None, passed_over)


def _own_places(wanted: Source) -> list[tuple[str, Path, bool]]:
    """Return (origin, folder, insist); with ``insist`` an incomplete folder is an error."""
    places = []
    if wanted.folder == "weights" and os.environ.get("MXOPT_WEIGHTS"):
        places.append(("MXOPT_WEIGHTS", _named_folder("MXOPT_WEIGHTS"), True))
    if os.environ.get("MXOPT_DATA"):
        root = _named_folder("MXOPT_DATA")
        # If a data set's own folder exists but is incomplete, that is an error. The folder of
        # weights is shared by several data sets, and may lack some of them.
        shared = wanted.folder == "weights"
        folder = root / wanted.folder
        if shared and missing_files(folder, wanted.required):
            beside = root.parent / wanted.folder
            folder = folder if missing_files(beside, wanted.required) else beside
        places.append(("MXOPT_DATA", folder, folder.is_dir() and not shared))
    return places


def _named_folder(variable: str) -> Path:
    path = Path(os.environ[variable]).expanduser()
    if not path.is_dir():
        raise DataError(f"{variable} is set to {path}, which is not a folder: change or unset it.")
    return path


def _stand_in(wanted: Source) -> Path:
    """Return the folder of the stand-in, unpacked to the cache at first use.

    The folder's name contains the hash of the archive, so another version is unpacked separately.
    """
    archive = STAND_INS / f"{wanted.stand_in}.zip"
    cached = cache_folder() / f"{wanted.stand_in}-{file_sha256(archive)[:8]}"
    with zipfile.ZipFile(archive) as packed:
        names = packed.namelist()
    if missing_files(cached, names):
        try:
            with folder_in_one_step(cached, names) as fresh:
                unzip(archive, fresh)
        except OSError as error:
            if missing_files(cached, names):  # else another process was quicker
                raise DataError(
                    f"The stand-in for {wanted.name} cannot be written to {cached} "
                    f"({error.strerror}): set MXOPT_CACHE to a folder that can be written to."
                ) from error
    return cached


def _example(wanted: Source) -> str:
    return f"{wanted.folder}/{wanted.required[0]}" + (
        " and the rest" if wanted.required[1:] else ""
    )


def _clause(error: Exception) -> str:
    return str(error).rstrip(".")


def _sentence(clauses: list[str]) -> str:
    text = "; ".join(clause for clause in clauses if clause)
    return text[:1].upper() + text[1:] + "." if text else ""
