"""The code that made the runs of an experiment: one version, without changes."""

from __future__ import annotations

import functools
import io
import re
import subprocess
import tarfile
from collections.abc import Iterable
from pathlib import Path

from mxopt.core import source
from mxopt.core.records import Run


def check(runs: Iterable[Run], root: Path = source.PACKAGE.parent) -> list[str]:
    """Return what is wrong with the code that made the runs of an experiment.

    Args:
        runs: all runs of the experiment.
        root: a checkout; if it has the commit, the hash of its source is compared.

    Returns:
        The problems; empty if there are none.
    """
    known: dict = {}
    for run in runs:
        known.setdefault((run.commit, run.source), run.path)
    problems = []
    # Commits may differ in what is not the package, such as a notebook's text, if that can be seen.
    same = len({written for _, written in known}) == 1
    if len(known) > 1 and not (same and all(source_at(c, root) == s for c, s in known)):
        made = ", ".join(f"{c[:10] or 'no commit'} / {s[:10]} ({p})" for (c, s), p in known.items())
        problems.append(f"the runs were made by different code (commit / source): {made}")
    for (commit, written), path in known.items():
        if commit.endswith("+changes"):
            problems.append(f"{path}: its commit {commit} has changes that nobody can look up")
        elif not re.fullmatch("[0-9a-f]{40,64}", commit):
            problems.append(f"{path}: names no commit; measure in a clone of the repository")
        elif (own := source_at(commit, root)) and own != written:
            problems.append(f"{path}: its source is {written}, that of its commit is {own}")
    return problems


@functools.lru_cache(None)
def source_at(commit: str, root: Path) -> str:
    """Return the source hash of the package at a commit; empty if git cannot tell.

    Args:
        commit: the commit's hash.
        root: a folder of the checkout, which holds the package.
    """
    command = ["git", "-C", str(root), "archive", "--format=tar", commit]
    command.append(":(glob)mxopt/**/*.py")
    try:
        archive = subprocess.run(command, capture_output=True, check=True, timeout=60).stdout
    except (OSError, subprocess.SubprocessError):
        return ""
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        return source.hash_of(
            (Path(member.name).relative_to("mxopt"), files.extractfile(member).read())
            for member in files
            if member.isfile()
        )
