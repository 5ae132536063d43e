"""What a peer's process runs with: variables, libraries, versions, and how often it compiled."""

import os
import re
import resource
import sys
from pathlib import Path

import torch

VARIABLES = ("OMP_", "KMP_", "GOMP_", "MKL", "DNNL", "ONEDNN", "MALLOC", "THP_", "TORCH", "LD_PRE")
# What an arm is given, and the library that the process then must have loaded.
NEEDED = {
    "launcher": ("libiomp5", "libtcmalloc"),
    "mkl_intel_kernels": ("libmkl_intel_cpu",),
}


def loaded() -> list[str]:
    """Return the names of the shared libraries of OpenMP, allocators and BLAS in this process."""
    paths = re.findall(r"/\S+\.so\S*", Path("/proc/self/maps").read_text())
    names = {Path(path).name for path in paths}
    kinds = ("libiomp", "libgomp", "libomp", "libtcmalloc", "libjemalloc", "libmkl", "libopenblas")
    return sorted(name for name in names if name.startswith(kinds))


def check_loaded(given: dict) -> None:
    """Make sure that the libraries that an arm is given are loaded.

    Args:
        given: what the arm is given.

    Raises:
        SystemExit: one is missing.
    """
    for name, libraries in NEEDED.items():
        for library in libraries if given.get(name) else ():
            if not any(found.startswith(library) for found in loaded()):
                sys.exit(f"{name} needs {library}, which is not loaded; run: make peers")


def peak_memory() -> int:
    """Return the peak memory of this process in bytes.

    As ``mxopt.machine.peak_memory``, which the peers' environment cannot import.
    """
    found = re.search(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text())
    kibibytes = int(found[1]) if found else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return kibibytes * 1024


def compilations() -> int:
    """Return how many graphs torch.compile has compiled in this process."""
    if "torch._dynamo" not in sys.modules:
        return 0
    return torch._dynamo.utils.counters["stats"]["unique_graphs"]


def facts() -> dict:
    """Return versions, BLAS, libraries and variables, which JSON can represent."""
    # One line has all settings of the build, those of its compiler among them.
    lines = torch.__config__.show().replace("Build settings: ", "").splitlines()
    build = (part.strip(" -") for line in lines for part in line.split(", "))
    return {
        "torch": torch.__version__,
        "built_with": [line for line in build if re.search("(?i)mkl|CPU capability", line)],
        "loaded": loaded(),
        "processors": sorted(os.sched_getaffinity(0)),
        "variables": {
            name: re.sub(r"(?<![\w.])/(?:[^/:\s]*/)*", "", value)
            for name, value in sorted(os.environ.items())
            if name.startswith(VARIABLES)
        },
    }
