"""Facts about the installed MXNet build, read in a short child process."""

from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import textwrap
from dataclasses import dataclass, field
from pathlib import Path

from mxopt.core.errors import CompatError, MxoptError
from mxopt.machine import libraries

OPENMP_RUNTIMES = ("libgomp", "libiomp5", "libomp")
# System libraries that the wheels' libmxnet.so and libgfortran.so.3 need (`readelf -d`), and the
# Debian packages that have them. Small container images lack the first two.
SYSTEM_LIBRARIES = {
    "libgomp.so.1": "libgomp1",
    "libquadmath.so.0": "libquadmath0",
    "libstdc++.so.6": "libstdc++6",
}
_TOLD = "mxopt-build "


@dataclass(frozen=True)
class Build:
    """Facts about an MXNet build.

    Attributes:
        version: ``mxnet.__version__``; None if the import failed.
        features: enabled compile-time features.
        openmp: paths of the OpenMP runtimes that importing MXNet loaded.
        blas: the BLAS feature, such as ``OPEN`` or ``MKL``.
        blas_library: path of the library whose matrix products MXNet calls.
        gpus: number of GPUs that MXNet counts.
        libraries: path of each of :data:`SYSTEM_LIBRARIES`; None if it is missing.
        imports: for each further module, why its import failed; empty if it did not.
        reason: why the import of MXNet failed; empty if it did not.
    """

    version: str | None = None
    features: tuple[str, ...] = ()
    openmp: tuple[str, ...] = ()
    blas: str | None = None
    blas_library: str | None = None
    gpus: int = 0
    libraries: dict[str, str | None] = field(default_factory=dict)
    imports: dict[str, str] = field(default_factory=dict)
    reason: str = ""


def openmp_runtimes(maps: str | None = None) -> list[str]:
    """Return the paths of the OpenMP runtimes that a process has loaded.

    Args:
        maps: content of the process's ``/proc/PID/maps``; of this process's if not given.
    """
    # Wheels bundle theirs under names such as libgomp-a34b3233.so.1.
    named = re.compile(rf"({'|'.join(OPENMP_RUNTIMES)})[-.].*so")
    return [path for path in _mapped_files(maps) if named.match(os.path.basename(path))]


def _mapped_files(maps: str | None = None) -> list[str]:
    if maps is None:
        try:
            maps = Path("/proc/self/maps").read_text()
        except OSError:
            return []
    columns = (line.split(None, 5) for line in maps.splitlines())
    return sorted({column[5] for column in columns if len(column) == 6})


def mxnet_build(also: tuple[str, ...] = (), seconds: float = 120) -> Build:
    """Import MXNet in a child process and return the facts about its build; never raises.

    Args:
        also: further modules to import there after MXNet (``gluoncv``, ``gluonnlp``).
        seconds: time limit of the child process.
    """
    code = (
        "import sys; sys.path.append(sys.argv[1]); "
        "from mxopt.machine.build import tell; tell(sys.argv[2:])"
    )
    command = [sys.executable, "-c", code, str(Path(__file__).parents[2]), *also]
    try:
        child = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=seconds
        )
    except subprocess.TimeoutExpired:
        return Build(reason=f"importing it took more than {seconds:g} s")
    told = {"imports": {}}
    for line in child.stdout.splitlines():
        if line.startswith(_TOLD):
            fact = json.loads(line[len(_TOLD) :])
            told["imports"].update(fact.pop("imports", {}))
            told.update(fact)
    # The import that ended the process is the first one without a report.
    end = _last_words(child)
    if "version" not in told and "reason" not in told:
        told["reason"], end = end, "not tried, because MXNet ended the process"
    for module in also:
        if module not in told["imports"]:
            told["imports"][module] = end
            end = f"not tried, because {module} ended the process"
    return Build(**{name: tuple(v) if isinstance(v, list) else v for name, v in told.items()})


def tell(also) -> None:
    """Import MXNet and print the facts of a :class:`Build`; runs in the child of `mxnet_build`.

    Args:
        also: further modules to import.
    """

    def say(**facts):
        print("\n" + _TOLD + json.dumps(facts), flush=True)

    try:
        from mxopt import compat

        if importlib.util.find_spec("mxnet") is None:
            raise CompatError("not installed")
        compat.require_mxnet()
        import mxnet

        features = enabled_features(mxnet)
        blas = next((name[5:] for name in features if name.startswith("BLAS_")), None)
        openmp = openmp_runtimes()
        count = mxnet.context.num_gpus()
        say(version=mxnet.__version__, features=features, blas=blas, openmp=openmp, gpus=count)
        loaded = getattr(getattr(mxnet, "base", None), "_LIB", None)
        say(blas_library=libraries.answering("cblas_sgemm", loaded))
    except (Exception, SystemExit) as error:
        say(reason=_one_line(error))
    say(libraries={soname: _load(soname) for soname in SYSTEM_LIBRARIES})
    for module in also:
        try:
            importlib.import_module(module)
            say(imports={module: ""})
        except (Exception, SystemExit) as error:
            say(imports={module: _one_line(error)})


def _load(soname: str) -> str | None:
    """Load a shared library into this process and return its path; None if it is missing."""
    try:
        ctypes.CDLL(soname)
    except OSError:
        return None
    files = _mapped_files()
    return next((path for path in files if os.path.basename(path).startswith(soname)), soname)


def enabled_features(mxnet) -> list[str]:
    """Return the enabled compile-time features of an imported MXNet."""
    return [name for name, feature in mxnet.runtime.Features().items() if feature.enabled]


def _one_line(error: BaseException) -> str:
    words = textwrap.shorten(str(error), 300)
    return words if isinstance(error, MxoptError) else f"{type(error).__name__}: {words}"


def _last_words(child) -> str:
    if child.returncode < 0:
        return f"importing it ended the process by {signal.Signals(-child.returncode).name}"
    last = (child.stderr.strip().splitlines() or ["no message"])[-1]
    return f"importing it ended the process with status {child.returncode} ({last})"
