"""Files of experiments: a folder of records for each, or one packed file for each."""

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
        folder: where to look; the path of a packed file is returned as it is.

    Returns:
        The paths, sorted.

    Raises:
        RecordError: an experiment exists both as a folder and packed, or a file cannot be read.
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
    """Return the records of each arm: arm-01.jsonl, ..., arm-100.jsonl, ...

    Args:
        folder: folder of the experiment.
        arms: names of the arms.

    Returns:
        ``{arm: {number: path}}``, in the order of the numbers.
    """
    found: dict = {arm: {} for arm in arms}
    for path in folder.glob("*.jsonl"):
        arm, _, number = path.stem.rpartition("-")
        if arm in found and number.isdecimal():
            found[arm][int(number)] = path
    return {arm: dict(sorted(paths.items())) for arm, paths in found.items()}


def packed_path(folder: str | os.PathLike) -> Path:
    """Return the path beside a folder of the file that it would be packed into."""
    folder = Path(folder)
    return folder.with_name(f"{folder.name}.jsonl")


def plots_folder(experiment: Path) -> Path:
    """Return the folder that holds an experiment's plots, whether it is packed or not."""
    return experiment.with_suffix("") if experiment.is_file() else experiment


def _is_record(path: Path) -> bool:
    """Return whether a file is the record of one run, and not a packed experiment."""
    try:
        with path.open("rb") as file:
            event = json.loads(file.readline())
    except OSError as error:
        raise RecordError(f"cannot read {path} ({error.strerror})") from None
    except (ValueError, RecursionError):
        return False
    return isinstance(event, dict) and event.get("event") == "start"
