"""The doctor's rows about the machine and the data: each a function from facts to a row."""

from __future__ import annotations

from collections.abc import Mapping

from mxopt.cli.doctor.check import NOTE, OK, PROBLEM, Check
from mxopt.machine import Build, Cpu, Gpu, SharedMemory

GIB = 1 << 30
# Workers hand batches over through /dev/shm and hang when it is full; a report of it under Docker's
# default of 64 MiB, mended with 1 GiB, is apache/mxnet #18224.
LEAST_SHARED_MEMORY = 64 * 1000**2
ENOUGH_SHARED_MEMORY = GIB
LITTLE_MEMORY = 4 * GIB


def check_gpus(survey: tuple[list[Gpu], str], build: Build) -> list[Check]:
    """Each GPU and whether the installed MXNet runs on it; ``survey`` as by `survey_gpus`."""
    found, reason = survey
    if not found:
        return [Check("GPU", NOTE, f"none: {reason}")]
    usable = [str(gpu.index) for gpu in found if gpu.usable]
    rows = [_check_gpu(gpu, usable) for gpu in found]
    if usable and not build.reason and build.gpus < len(usable):
        counted = f"MXNet counts {build.gpus}, the driver offers {len(usable)} it could run on"
        rows.append(Check("GPUs in MXNet", PROBLEM, counted, "see the CUDA libraries above"))
    return rows


def _check_gpu(gpu: Gpu, usable: list[str]) -> Check:
    capability = ".".join(str(part) for part in gpu.capability)
    found = (
        f"{gpu.name}, compute capability {capability}, {gpu.memory / GIB:.1f} GiB, "
        f"driver {gpu.driver}"
    )
    if gpu.usable:
        return Check(f"GPU {gpu.index}", OK, f"{found}: this MXNet runs on it")
    remedy = ""
    if usable:  # a mixed machine: MXNet would number this one too, and fail on it
        choice = ",".join(usable)
        remedy = f"export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES={choice}"
    return Check(f"GPU {gpu.index}", NOTE, f"{found}: not usable: {gpu.reason}", remedy)


def check_cpu(cpu: Cpu) -> Check:
    """The cores this process may use and their instruction sets."""
    sets = ", ".join(cpu.instruction_sets) or "none of AVX2, AVX-512, AMX"
    found = f"{cpu.model}, {cpu.physical_cores} cores, {cpu.logical_cores} threads for us; {sets}"
    return Check("CPU", OK if "avx2" in cpu.instruction_sets else NOTE, found)


def check_threads(cpu: Cpu, variables: Mapping[str, str]) -> Check:
    """How many OpenMP threads MXNet would take; ``variables`` are those of the environment."""
    for name in ("OMP_NUM_THREADS", "MXNET_OMP_MAX_THREADS"):
        if name in variables:
            return Check("Threads", OK, f"{variables[name]} in an operator, by {name}")
    # It takes hardware threads for two to a core: src/engine/openmp.cc of MXNet 1.9.
    taken = max(1, cpu.logical_cores // 2)
    if taken == cpu.physical_cores:
        return Check("Threads", OK, f"{taken} in an operator, MXNet's default here")
    return Check(
        "Threads",
        NOTE,
        f"MXNet's default here is {taken} in an operator, for {cpu.physical_cores} cores",
        f"mxopt launch, cpu_threads={cpu.physical_cores} in a plan, or export "
        f"OMP_NUM_THREADS={cpu.physical_cores}",
    )


def check_memory(available: int) -> Check:
    """Memory that can be taken now, in bytes."""
    found = f"{available / GIB:.1f} GiB available"
    if available >= LITTLE_MEMORY:
        return Check("Memory", OK, found)
    return Check("Memory", NOTE, found, "close other programs, or take the smoke tier")


def check_shared_memory(shared: SharedMemory | None) -> Check:
    """``/dev/shm``, through which the workers of a DataLoader hand over their batches."""
    remedy = "docker run --shm-size=2g, or: mount -o remount,size=2g /dev/shm"
    if shared is None:
        return Check("/dev/shm", PROBLEM, "not there: DataLoader workers cannot start", remedy)
    found = f"{shared.size / 2**20:.0f} MiB, {shared.free / 2**20:.0f} MiB free"
    if min(shared.size, shared.free) < LEAST_SHARED_MEMORY:
        return Check("/dev/shm", PROBLEM, f"{found}: DataLoader workers hang on so little", remedy)
    if shared.free < ENOUGH_SHARED_MEMORY:
        found = f"{found}: DataLoader workers may hang with large batches"
        return Check("/dev/shm", NOTE, found, remedy)
    return Check("/dev/shm", OK, found)


def check_data(name: str, here: bool, where: str) -> Check:
    """A data set or weights: where they come from, or why they cannot be had."""
    if here:
        return Check(name, OK, f"real, {where}")
    remedy = f"with a network: mxopt fetch {name}; without: put it in the folder MXOPT_DATA names"
    return Check(name, NOTE, f"no real data: {where}", remedy)
