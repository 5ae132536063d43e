"""Runs Python in a child process, where MXNet has not been imported yet."""

import os
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]


def run_python(code: str, *options: str, **environment: str) -> subprocess.CompletedProcess:
    """Run `code` with the interpreter of this environment and the package's folder on its path."""
    path = os.pathsep.join([str(REPOSITORY), *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.run(
        [sys.executable, *options, "-c", code],
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )
