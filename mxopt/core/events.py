"""Events of run records, each encoded as one line of JSON."""

from __future__ import annotations

import hashlib
import json
import math
import os

from mxopt.core.errors import RecordError

FORMAT = 1


def line_of(event: dict) -> str:
    """Return an event as a line of JSON; :func:`event_of` restores its floats exactly."""
    return json.dumps(_encodable(event), allow_nan=False) + "\n"


def canonical(event: dict) -> bytes:
    """Return an event as bytes that do not depend on the order of its fields, for hashing."""
    return json.dumps(_encodable(event), allow_nan=False, sort_keys=True).encode()


def event_of(line: str | bytes) -> dict:
    """Return the event encoded in a line.

    Raises:
        ValueError: the line does not encode an event.
    """
    try:
        text = line if isinstance(line, str) else line.decode()
        event = json.loads(text)
        if 'nan"' in text or 'inf"' in text:  # in few lines
            event = _decoded(event)
        event["event"]
    except (TypeError, KeyError, RecursionError) as error:
        raise ValueError(f"not an event: {error}") from None
    return event


class Seal:
    """A running SHA-256 of the events of a run.

    It shows that a record was changed after it was written. Who changes a record and computes the
    hash again is not found out by it.
    """

    def __init__(self):
        self._hash = hashlib.sha256()

    def add(self, event: dict) -> str:
        """Add an event, and return the hash of all events so far; a field ``seal`` is left out."""
        self._hash.update(canonical({k: v for k, v in event.items() if k != "seal"}))
        return self._hash.hexdigest()


def check_start(path: str | os.PathLike, event: dict) -> None:
    """Check that an event is the start of a run, in a format that this version can read.

    Args:
        path: file (and line) to name in the message.
        event: the event.

    Raises:
        RecordError: it is not a start, or the format is newer.
    """
    written = event.get("format", 0)
    whole = isinstance(event.get("plan"), dict) and "workload" in event and type(written) is int
    if event["event"] != "start" or not whole:
        raise RecordError(f"{path} is not a run record: its first line is not a start")
    if written > FORMAT:
        raise RecordError(
            f"{path} has record format {event['format']}, and this mxopt reads up to {FORMAT}; "
            "install a newer mxopt to read it"
        )


_WORDS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def _encodable(value):
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    if isinstance(value, dict):
        return {str(key): _encodable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_encodable(item) for item in value]
    if hasattr(value, "item") and getattr(value, "shape", None) == ():
        return _encodable(value.item())
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return value


def _decoded(value):
    if isinstance(value, str):
        return _WORDS.get(value, value)
    if isinstance(value, dict):
        return {key: _decoded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_decoded(item) for item in value]
    return value
