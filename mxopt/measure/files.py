"""Where experiments are on disk: in folders of records, or packed into one file each."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path

from mxopt.core.errors import RecordError

DESCRIPTION = "experiment.json"


def find_experiments(folder: str | os.PathLike) -> list[Path]:
    """Return every experiment in a folder or below it, each a folder or a packed file.

    Args:
        folder: where to look; a packed file is returned as it is.

    Raises:
        RecordError: one is there as both, or a file cannot be read.
    """
    if Path(folder).is_file():
        return [Path(folder)]
    folders = {path.parent for path in Path(folder).rglob(DESCRIPTION)}
    files = {path for path in Path(folder).rglob("*.jsonl")
             if path.parent not in folders and not _is_record(path)}  # fmt: skip
    for path in sorted(folders):
        if packed_path(path) in files:
            raise RecordError(
                f"{path} and {packed_path(path)} are the same experiment, in a folder and packed; "
                "delete one"
            )
    return sorted(folders | files)


def record_files(folder: Path, arms: Iterable[str]) -> dict[str, dict[int, Path]]:
    """Return each arm's records by number, in order: arm-01.jsonl, ..., arm-100.jsonl, ..."""
    found: dict = {arm: {} for arm in arms}
    for path in folder.glob("*.jsonl"):
        arm, _, number = path.stem.rpartition("-")
        if arm in found and number.isdecimal():
            found[arm][int(number)] = path
    return {arm: dict(sorted(paths.items())) for arm, paths in found.items()}


def packed_path(folder: str | os.PathLike) -> Path:
    """Return the file that a folder is packed into if it stays beside it."""
    folder = Path(folder)
    return folder.with_name(f"{folder.name}.jsonl")


def plots_folder(experiment: Path) -> Path:
    """Return the folder that holds an experiment's plots, whether it is packed or not."""
    return experiment.with_suffix("") if experiment.is_file() else experiment


def _is_record(path: Path) -> bool:
    """Whether a file is the record of one run, and so not a packed experiment."""
    try:
        with path.open("rb") as file:
            event = json.loads(file.readline())
    except OSError as error:
        raise RecordError(f"cannot read {path} ({error.strerror})") from None
    except (ValueError, RecursionError):
        return False
    return isinstance(event, dict) and event.get("event") == "start"
