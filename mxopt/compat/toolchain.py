"""Check before an installation whether it can succeed: ``python mxopt/compat/toolchain.py``.

GluonNLP 0.10.0 is published as source with one C extension. Without a compiler or Python's headers,
pip fails with pages of output, and with a Python that is too new it fails only at the end. This
script prints one sentence instead and exits with status 1. It uses the standard library only,
because it runs before anything is installed.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import sysconfig


def missing() -> str | None:
    """Return a sentence on what is missing to build a C extension, or ``None``."""
    command = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()[0]
    if not any(shutil.which(compiler) for compiler in (command, "gcc", "cc")):
        return (
            "GluonNLP is built from source and no C compiler was found: install one "
            "(Debian or Ubuntu: 'apt-get install gcc'; Fedora: 'dnf install gcc')."
        )
    header = os.path.join(sysconfig.get_path("include"), "Python.h")
    if not os.path.exists(header):
        release = f"{sys.version_info[0]}.{sys.version_info[1]}"
        return (
            f"GluonNLP is built from source and Python's headers are missing ({header}): install "
            f"them (Debian or Ubuntu: 'apt-get install python{release}-dev'; "
            "Fedora: 'dnf install python3-devel')."
        )
    return None


def unsuitable() -> str | None:
    """Return a sentence on why this Python cannot run mxopt, or ``None``."""
    release = f"{sys.version_info[0]}.{sys.version_info[1]}"
    if not (3, 9) <= sys.version_info[:2] <= (3, 13):
        return (
            f"mxopt needs Python 3.9 to 3.13 and this is {release} ({sys.executable}): "
            "use another one, as in 'make reproduce PYTHON=python3.12'."
        )
    if importlib.util.find_spec("ensurepip") is None:
        return (
            "This Python cannot make virtual environments: install what is missing "
            f"(Debian or Ubuntu: 'apt-get install python{release}-venv')."
        )
    return None


if __name__ == "__main__":
    sys.exit(unsuitable() or missing())
