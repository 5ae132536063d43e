"""Rows of the doctor's table about the machine and the data: functions from facts to rows."""

from __future__ import annotations

from collections.abc import Mapping

from mxopt.cli.doctor.check import NOTE, OK, PROBLEM, Check
from mxopt.machine import Build, Cpu, Gpu, SharedMemory, warnings

GIB = 1 << 30
# Workers pass batches through /dev/shm and hang when it is full: apache/mxnet #18224 reports this
# with Docker's default of 64 MiB, and that 1 GiB solved it.
LEAST_SHARED_MEMORY = 64 * 1000**2
ENOUGH_SHARED_MEMORY = GIB
LITTLE_MEMORY = 4 * GIB


def check_gpus(survey: tuple[list[Gpu], str], build: Build) -> list[Check]:
    """Return a row for each GPU: whether the installed MXNet can use it.

    Args:
        survey: what ``mxopt.machine.survey_gpus`` returned.
        build: the installed MXNet.
    """
    found, reason = survey
    if not found:
        return [Check("GPU", NOTE, f"none: {reason}")]
    usable = [str(gpu.index) for gpu in found if gpu.usable]
    rows = [_check_gpu(gpu, usable) for gpu in found]
    if usable and not build.reason and build.gpus < len(usable):
        counted = f"MXNet sees {build.gpus} of {len(usable)} usable GPUs"
        rows.append(Check("GPUs in MXNet", PROBLEM, counted, "see the CUDA libraries above"))
    return rows


def _check_gpu(gpu: Gpu, usable: list[str]) -> Check:
    capability = ".".join(str(part) for part in gpu.capability)
    found = (
        f"{gpu.name}, compute capability {capability}, {gpu.memory / GIB:.1f} GiB, "
        f"driver {gpu.driver}"
    )
    if gpu.usable:
        return Check(f"GPU {gpu.index}", OK, f"{found}: usable")
    remedy = ""
    if usable:  # MXNet would count this GPU as well, and fail on it
        choice = ",".join(usable)
        remedy = f"export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES={choice}"
    return Check(f"GPU {gpu.index}", NOTE, f"{found}: not usable: {gpu.reason}", remedy)


def check_cpu(cpu: Cpu) -> Check:
    """Return the row of the cores that this process may use and their instruction sets."""
    sets = ", ".join(cpu.instruction_sets) or "none of AVX2, AVX-512, AMX"
    found = (
        f"{cpu.model}, {cpu.physical_cores} cores, {cpu.logical_cores} threads available; {sets}"
    )
    if not cpu.computes_bfloat16:
        found += "; no bfloat16, which needs AVX-512"
    if not cpu.has_vnni:
        found += "; int8 sums may be cut off, because there is no AVX512-VNNI"
    return Check("CPU", OK if "avx2" in cpu.instruction_sets else NOTE, found)


def check_threads(cpu: Cpu, variables: Mapping[str, str]) -> Check:
    """Return the row of the number of OpenMP threads that MXNet would use.

    Args:
        cpu: the processor.
        variables: the environment's variables.
    """
    for name in ("OMP_NUM_THREADS", "MXNET_OMP_MAX_THREADS"):
        if name in variables:
            return Check("Threads", OK, f"{variables[name]} per operator, set by {name}")
    # MXNet assumes two hardware threads per core: src/engine/openmp.cc of MXNet 1.9.
    taken = max(1, cpu.logical_cores // 2)
    if taken == cpu.physical_cores:
        return Check("Threads", OK, f"{taken} per operator, MXNet's default here")
    return Check(
        "Threads",
        NOTE,
        f"MXNet's default here is {taken} per operator, with {cpu.physical_cores} cores",
        f"use mxopt launch, set cpu_threads={cpu.physical_cores} in plans, or export "
        f"OMP_NUM_THREADS={cpu.physical_cores}",
    )


def check_variables(cpu: Cpu, variables: Mapping[str, str]) -> list[Check]:
    """Return a row for each inherited variable that is known to hold a library back.

    Args:
        cpu: the processor.
        variables: the environment's variables.
    """
    rows = []
    for line in warnings(variables, cpu):
        found, _, _ = line.partition(";")
        rows.append(Check("Environment", NOTE, found, f"unset {line.partition('=')[0]}"))
    return rows


def check_memory(available: int) -> Check:
    """Return the row of the memory that is available now, in bytes."""
    found = f"{available / GIB:.1f} GiB available"
    if available >= LITTLE_MEMORY:
        return Check("Memory", OK, found)
    return Check("Memory", NOTE, found, "close other programs, or use the smoke tier")


def check_shared_memory(shared: SharedMemory | None) -> Check:
    """Return the row of ``/dev/shm``, through which DataLoader workers pass their batches."""
    remedy = "docker run --shm-size=2g, or: mount -o remount,size=2g /dev/shm"
    if shared is None:
        return Check("/dev/shm", PROBLEM, "missing: DataLoader workers cannot start", remedy)
    found = f"{shared.size / 2**20:.0f} MiB, {shared.free / 2**20:.0f} MiB free"
    if min(shared.size, shared.free) < LEAST_SHARED_MEMORY:
        return Check("/dev/shm", PROBLEM, f"{found}: too small, DataLoader workers hang", remedy)
    if shared.free < ENOUGH_SHARED_MEMORY:
        found = f"{found}: DataLoader workers may hang with large batches"
        return Check("/dev/shm", NOTE, found, remedy)
    return Check("/dev/shm", OK, found)


def check_data(name: str, here: bool, where: str) -> Check:
    """Return the row of a data set or weights: where they come from, or why they are unavailable.

    Args:
        name: the data set.
        here: whether the real data is available.
        where: where it comes from, or why it is unavailable.
    """
    if here:
        return Check(name, OK, f"real, {where}")
    remedy = f"mxopt fetch {name}; without a network, put it into the folder named by MXOPT_DATA"
    return Check(name, NOTE, f"unavailable: {where}", remedy)
