"""The processor and the memory that this process may use."""

from __future__ import annotations

import contextlib
import math
import os
import platform
import re
import resource
import sys
from dataclasses import dataclass
from pathlib import Path

import psutil

from mxopt.machine import cgroup

INSTRUCTION_SETS = ("fma", "avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16")
KIBIBYTE = 1024


@dataclass(frozen=True)
class Cpu:
    """The processor, and how much of it this process may use.

    Attributes:
        model: name of the processor, with the numbers of its family and model if they are known:
            virtual machines may give processors of several generations one name.
        physical_cores: cores that this process may use (by its affinity and container quota).
        logical_cores: hardware threads that it may use.
        instruction_sets: those of :data:`INSTRUCTION_SETS` that the processor supports.
    """

    model: str
    physical_cores: int
    logical_cores: int
    instruction_sets: tuple[str, ...]

    @property
    def computes_bfloat16(self) -> bool:
        """Whether oneDNN has bfloat16 operators for it, fast or slow: those need AVX-512."""
        return "avx512f" in self.instruction_sets

    @property
    def has_vnni(self) -> bool:
        """Whether oneDNN adds products of 8-bit integers in 32 bits (AVX512-VNNI).

        Without, two products are added in 16 bits first, and sums that do not fit are cut off.
        """
        return "avx512_vnni" in self.instruction_sets


@dataclass(frozen=True)
class SharedMemory:
    """``/dev/shm``, through which DataLoader workers pass batches.

    Attributes:
        size: its size in bytes.
        free: free bytes.
    """

    size: int
    free: int


def cpu() -> Cpu:
    """Return the processor, with the number of cores that this process may use."""
    try:
        description = Path("/proc/cpuinfo").read_text()
    except OSError:
        description = ""
    return read_cpu(description, os.sched_getaffinity(0), cgroup.cpu_quota())


def read_cpu(description: str, allowed: set[int], quota: float | None = None) -> Cpu:
    """Return the processor that ``/proc/cpuinfo`` describes.

    Args:
        description: the text of ``/proc/cpuinfo``.
        allowed: numbers of the hardware threads that this process may use.
        quota: CPU time it may use, in CPUs, rounded up; None for no limit.
    """
    threads = []
    for block in description.split("\n\n"):
        pairs = (line.partition(":") for line in block.splitlines())
        thread = {name.strip(): value.strip() for name, _, value in pairs}
        if int(thread.get("processor", -1)) in allowed:
            threads.append(thread)
    first = threads[0] if threads else {}
    cores = {(t.get("physical id"), t.get("core id", t["processor"])) for t in threads}
    most = math.ceil(quota) if quota else len(allowed)
    flags = first.get("flags", "").split()
    return Cpu(
        model=_model(first) or platform.processor() or platform.machine(),
        physical_cores=min(len(cores) or len(allowed), most),
        logical_cores=min(len(allowed), most),
        instruction_sets=tuple(name for name in INSTRUCTION_SETS if name in flags),
    )


def _model(thread: dict[str, str]) -> str:
    """Return the name of the processor in a block of ``/proc/cpuinfo``, or an empty string."""
    name, family, number = (thread.get(key) for key in ("model name", "cpu family", "model"))
    return f"{name} (family {family}, model {number})" if name and family and number else name or ""


def memory_available() -> int:
    """Return how many bytes can be allocated now, by the machine and by the container's limit."""
    left = cgroup.memory_left()
    available = psutil.virtual_memory().available
    return available if left is None else min(available, left)


def folder_name(model: str) -> str:
    """Return the name of the folder for a processor's records.

    >>> folder_name("Intel(R) Xeon(R) Platinum 8488C")
    'intel-xeon-platinum-8488c'

    Args:
        model: the name of the processor, :attr:`Cpu.model`.
    """
    return re.sub(r"\W+", "-", re.sub(r"\((R|TM)\)", "", model).lower()).strip("-")


def memory_used() -> int:
    """Return the bytes that this process and its children use.

    A page that several processes use counts by equal parts, so once among these, and less than
    once where others use it too.
    """
    whole = psutil.Process()
    used = 0
    for process in (whole, *whole.children(recursive=True)):
        with contextlib.suppress(psutil.Error):  # a child that has just ended
            used += process.memory_full_info().pss
    return used


def peak_memory(status: str = "/proc/self/status") -> int:
    """Return the largest memory that this process has had, in bytes.

    It is Linux's ``VmHWM``. ``ru_maxrss``, which Linux keeps when a process executes another
    program, would be that of the process that started this one, if that was larger. It is used
    where there is no ``VmHWM``.

    Args:
        status: file that describes this process.
    """
    with contextlib.suppress(OSError):
        for line in Path(status).read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * KIBIBYTE
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return largest if sys.platform == "darwin" else largest * KIBIBYTE


def shared_memory(folder: str = "/dev/shm") -> SharedMemory | None:
    """Return size and free space of ``/dev/shm``; None if it does not exist."""
    try:
        usage = psutil.disk_usage(folder)
    except OSError:
        return None
    return SharedMemory(usage.total, usage.free)
