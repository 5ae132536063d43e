"""Compile the operators of :mod:`mxopt.kernels` with the system's g++, once for each machine.

    python -m mxopt.kernels

``CXX`` may name another compiler, and ``CXXFLAGS`` more options for it. The library is kept in the
user's cache, under a hash of everything that it depends on: the sources, MXNet's interface for
libraries, compiler and options, and the processor whose instructions it uses.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mxopt.core.cache import cache_folder
from mxopt.core.errors import DeviceError

SOURCES = Path(__file__).with_name("src")
# As fast as the processor allows, with the results of IEEE arithmetic but for fused multiply-adds.
# MXNet's wheel is linked to the system's libgomp, so both use one OpenMP runtime.
FLAGS = (
    *("-std=c++17", "-O3", "-march=native", "-fno-math-errno", "-fopenmp", "-fPIC", "-shared"),
    # Some compilers link libstdc++ statically. If its symbols could be bound to those of another
    # one in the process, the first text that is formatted would end it.
    "-Wl,--exclude-libs,ALL",
)


def compiler() -> str | None:
    """Return the path of g++ (or that in ``CXX``), or None if there is none."""
    return shutil.which(os.environ.get("CXX") or "g++")


def flags() -> tuple[str, ...]:
    """Return the compiler's options: ``FLAGS``, and those in ``CXXFLAGS``."""
    without = ("-mno-amx-tile",) if "amx_tile" in instructions() and not tiles_allowed() else ()
    return (*FLAGS, *without, *shlex.split(os.environ.get("CXXFLAGS", "")))


def instructions() -> list[str]:
    """Return the processor's instruction sets, as Linux names them; none if it does not say."""
    described = Path("/proc/cpuinfo")
    text = described.read_text() if described.exists() else ""
    found = re.search(r"^flags.*", text, re.MULTILINE)
    return found[0].split() if found else []


def tiles_allowed() -> bool:
    """Ask Linux whether this process may use the tile registers of Intel's AMX, and return it."""
    arch_prctl, request_permission, tile_data = 158, 0x1023, 18  # in Linux's headers for x86_64
    return ctypes.CDLL(None).syscall(arch_prctl, request_permission, tile_data) == 0


def library() -> Path:
    """Return the path at which the library for this machine is kept, built or not.

    Raises:
        DeviceError: MXNet is not installed.
    """
    digest = hashlib.sha256()
    interface = ("include/mxnet/lib_api.h", "src/lib_api.cc")
    for path in (*sorted(SOURCES.iterdir()), *map(mxnet_folder().joinpath, interface)):
        digest.update(path.read_bytes())
    command = compiler()
    changed = command and Path(command).stat().st_mtime_ns  # another version at the same path
    digest.update(repr((flags(), command, changed, instructions())).encode())
    return cache_folder() / "kernels" / f"{digest.hexdigest()[:16]}.so"


def mxnet_folder() -> Path:
    """Return the folder of the installed MXNet, without importing it."""
    found = importlib.util.find_spec("mxnet")
    if found is None:
        raise DeviceError("MXNet is not installed; run: make setup")
    return Path(found.origin).parent


def build() -> Path:
    """Compile the library unless it is there, and return its path.

    Raises:
        DeviceError: there is no compiler; it failed, and the message ends with what it printed; or
            the cache cannot be written to.
    """
    path = library()
    if path.exists():
        return path
    command = compiler()
    if not command:
        raise DeviceError(
            "mxopt's kernels need g++, which was not found: install it "
            "(Debian or Ubuntu: 'apt-get install g++'; Fedora: 'dnf install gcc-c++')"
        )
    sources = [*sorted(SOURCES.glob("*.cc")), mxnet_folder() / "src" / "lib_api.cc"]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            _compile(command, sources, Path(folder)).replace(path)
    except OSError as error:
        raise DeviceError(
            f"mxopt's kernels cannot be kept in {path.parent} ({error.strerror}); "
            "set MXOPT_CACHE to a folder that can be written to"
        ) from None
    return path


def _compile(command: str, sources: list[Path], folder: Path) -> Path:
    """Compile the sources, as many at once as there are processors, and return the library."""
    shared = (*flags(), f"-I{mxnet_folder() / 'include'}")

    def run(*more: str | Path) -> None:
        done = subprocess.run([command, *shared, *map(str, more)], capture_output=True, text=True)
        if done.returncode:
            raise DeviceError(f"{command} could not compile mxopt's kernels: {done.stderr[-2000:]}")

    objects = [folder / f"{source.stem}.o" for source in sources]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda source, to: run("-c", source, "-o", to), sources, objects))
    run(*objects, "-o", folder / "kernels.so")
    return folder / "kernels.so"
