"""Environment variables that numerical libraries read: what a record keeps, and what to warn of.

A variable that a shell, a container image or a cluster has set is inherited by every measured
process. Some make a library several times slower, without a message of its own.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping

from mxopt.machine import cgroup
from mxopt.machine.processor import Cpu

RECORDED = (
    *("MXNET_", "OMP_", "KMP_", "GOMP_", "MKL_", "OPENBLAS_", "GOTO_", "DNNL_", "ONEDNN_"),
    *("MALLOC_", "GLIBC_TUNABLES", "LD_PRELOAD", "LD_LIBRARY_PATH", "CUDA_", "NCCL_", "NVIDIA_"),
    *("DMLC_", "MXOPT_"),
)
SECRET = re.compile("TOKEN|KEY|PASSWORD|PASSWD|SECRET|CREDENTIAL", re.IGNORECASE)
# A text that the results page has anyway.
LEFT_OUT = ("MXOPT_TIER_WHY",)

# Kernels of OpenBLAS for processors with AVX-512, and those without even AVX2
# (https://github.com/OpenMathLib/OpenBLAS, cpuid.h and dynamic.c).
_AVX512_KERNELS = ("skylakex", "cooperlake", "sapphirerapids")
_OLD_KERNELS = ("prescott", "core2", "penryn", "dunnington", "nehalem", "sandybridge", "atom",
                "athlon", "opteron", "opteron_sse3", "barcelona", "bobcat", "bulldozer",
                "piledriver", "steamroller")  # fmt: skip


def recorded(variables: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the variables that a record keeps: no secrets, and no folders of the machine.

    Args:
        variables: the environment.
    """
    return {
        name: without_folders(without_logins(value))
        for name, value in sorted(variables.items())
        if name.startswith(RECORDED) and name not in LEFT_OUT and not SECRET.search(name)
    }


def without_folders(text: str) -> str:
    """Return the text with every absolute path replaced by its last part.

    Records are published, and folders of a machine are private.

    >>> without_folders("/home/ada/lib/libiomp5.so:/opt/x")
    'libiomp5.so:x'
    """
    return re.sub(r"(?<![\w.])/(?:[^/:\s]*/)*", "", text)


def without_logins(text: str) -> str:
    """Return the text without the user names and passwords of addresses.

    >>> without_logins("https://ada:1815@mirror.example/x")
    'https://mirror.example/x'
    """
    return re.sub(r"(://)[^/\s@]*@", r"\1", text)


def limits() -> dict[str, float | int | None]:
    """Return the limits of this process's control groups: CPUs and bytes; None for no limit."""
    return {"cpus": cgroup.cpu_quota(), "memory": cgroup.memory_limit()}


def warnings(
    variables: Mapping[str, str], cpu: Cpu, chosen: Mapping[str, str] | None = None
) -> list[str]:
    """Return one line for each variable that is known to hold a library back.

    Args:
        variables: the environment.
        cpu: the processor.
        chosen: variables that a plan has set on purpose; they are not warned of.
    """
    inherited = {n: v for n, v in variables.items() if (chosen or {}).get(n) != v and v != ""}
    lines = []
    for name, value in inherited.items():
        why = next((rule(value, cpu) for names, rule in _RULES if name in names), "")
        if why:
            lines.append(f"{name}={without_folders(value)} {why}; to measure without it: unset it")
    return sorted(lines)


def _openblas(value: str, cpu: Cpu) -> str:
    kernel, sets = value.lower(), cpu.instruction_sets
    if "avx512f" in sets and kernel not in _AVX512_KERNELS:
        return "keeps OpenBLAS from this processor's AVX-512"
    if "avx2" in sets and kernel in _OLD_KERNELS:
        return "keeps OpenBLAS from this processor's AVX2"
    return ""


def _threads(value: str, cpu: Cpu) -> str:
    number = value.partition(",")[0].strip()  # a list has one number for each nested level
    few = number.isdigit() and int(number) < cpu.physical_cores
    return f"limits an operator to {number} of {cpu.physical_cores} cores" if few else ""


def _isa(value: str, cpu: Cpu) -> str:
    all_of_them = value.upper() in ("ALL", "DEFAULT")
    return "" if all_of_them else "keeps oneDNN from later instruction sets"


def _when(condition: Callable[[str], bool], why: str) -> Callable[[str, Cpu], str]:
    return lambda value, cpu: why if condition(value) else ""


def _on(value: str) -> bool:
    return value.lower() not in ("0", "false", "no", "off", "none")


def _off(value: str) -> bool:
    return not _on(value)


_RULES: list[tuple[tuple[str, ...], Callable[[str, Cpu], str]]] = [
    (("OPENBLAS_CORETYPE",), _openblas),
    (
        ("OMP_NUM_THREADS", "OMP_THREAD_LIMIT", "MXNET_OMP_MAX_THREADS", "MKL_NUM_THREADS",
         "OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS"), _threads,
    ),
    (("DNNL_MAX_CPU_ISA", "ONEDNN_MAX_CPU_ISA"), _isa),
    (
        ("DNNL_PRIMITIVE_CACHE_CAPACITY", "ONEDNN_PRIMITIVE_CACHE_CAPACITY"),
        _when(lambda v: v == "0", "makes oneDNN compile its kernels again in every call"),
    ),
    (
        ("DNNL_VERBOSE", "ONEDNN_VERBOSE", "MKL_VERBOSE"),
        _when(_on, "makes the library print every call"),
    ),
    (("MKL_CBWR",), _when(lambda v: v.upper() not in ("AUTO", "OFF"), "restricts MKL's kernels")),
    (
        ("MXNET_ENGINE_TYPE",),
        _when(lambda v: v == "NaiveEngine", "runs one operator at a time, inside the call"),
    ),
    (
        ("MXNET_MKLDNN_ENABLED", "MXNET_ONEDNN_ENABLED"),
        _when(_off, "keeps MXNet from oneDNN"),
    ),
    (
        ("MXNET_EXEC_BULK_EXEC_TRAIN", "MXNET_EXEC_BULK_EXEC_INFERENCE"),
        _when(_off, "makes the engine schedule every operator by itself"),
    ),
    (("MXNET_PROFILER_AUTOSTART",), _when(_on, "profiles every operator")),
    (("MXNET_CUDNN_AUTOTUNE_DEFAULT",), _when(_off, "keeps cuDNN from choosing its fastest")),
    (("OMP_PROC_BIND",), _when(_on, "pins threads to cores")),
    (("GOMP_CPU_AFFINITY",), _when(lambda v: True, "pins threads to cores")),
    (
        ("KMP_AFFINITY",),
        _when(lambda v: not {"none", "disabled"} & set(v.split(",")), "pins threads to cores"),
    ),
    (("LD_PRELOAD",), _when(lambda v: True, "replaces functions of other libraries")),
    (("MALLOC_CHECK_", "MALLOC_PERTURB_"), _when(lambda v: v != "0", "makes glibc check memory")),
    (("CUDA_LAUNCH_BLOCKING",), _when(_on, "makes every kernel's start wait for its end")),
    (("NVIDIA_TF32_OVERRIDE",), _when(_off, "keeps the GPU's matrix units from float32")),
    (("NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE"), _when(_on, "keeps GPUs from the fast path")),
]  # fmt: skip
