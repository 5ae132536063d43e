"""Compile the operators of :mod:`mxopt.kernels` with the system's g++, once for each machine.

    python -m mxopt.kernels.build

``CXX`` may name another compiler, and ``CXXFLAGS`` more options for it. The library is kept in the
user's cache, under a hash of everything that it depends on: the sources, MXNet's version, compiler
and options, and the processor whose instructions it uses.
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
from pathlib import Path

from mxopt.core.errors import DeviceError
from mxopt.data.sources import cache_folder

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
    found = re.search(r"^flags.*", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
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
    for path in (*sorted(SOURCES.iterdir()), mxnet_folder() / "src" / "lib_api.cc"):
        digest.update(path.read_bytes())
    digest.update(repr((flags(), compiler(), instructions(), blas().exists())).encode())
    return cache_folder() / "kernels" / f"{digest.hexdigest()[:16]}.so"


def mxnet_folder() -> Path:
    """Return the folder of the installed MXNet, without importing it."""
    found = importlib.util.find_spec("mxnet")
    if found is None:
        raise DeviceError("MXNet is not installed; run: make setup")
    return Path(found.origin).parent


def blas() -> Path:
    """Return the path of the OpenBLAS that MXNet's wheel contains, and MXNet loads."""
    return mxnet_folder() / "libopenblas.so.0"


def build() -> Path:
    """Compile the library unless it is there, and return its path.

    Raises:
        DeviceError: there is no compiler, or it failed; the message ends with what it printed.
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
    mxnet = mxnet_folder()
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(f".{os.getpid()}")
    done = subprocess.run(
        [command, *flags(), f"-I{mxnet / 'include'}", *map(str, sorted(SOURCES.glob("*.cc"))),
         str(mxnet / "src" / "lib_api.cc"), "-o", str(unfinished),
         *(("-DMXOPT_WITH_BLAS", str(blas())) if blas().exists() else ())],
        capture_output=True, text=True,
    )  # fmt: skip
    if done.returncode:
        unfinished.unlink(missing_ok=True)
        raise DeviceError(f"{command} could not compile mxopt's kernels: {done.stderr[-2000:]}")
    unfinished.replace(path)
    return path


if __name__ == "__main__":
    print(build())
