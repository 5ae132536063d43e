"""Facts about the machine and the process, for run records."""

from __future__ import annotations

import os
import platform
import re
import sys
from dataclasses import asdict

import psutil

from mxopt.core.version import VERSION
from mxopt.machine.build import enabled_features, openmp_runtimes
from mxopt.machine.nvidia import CUDA_PACKAGES, package_version, survey_gpus
from mxopt.machine.processor import cpu, memory_available, shared_memory

VARIABLES = (
    *("MXNET_", "OMP_", "KMP_", "GOMP_", "MKL", "DNNL", "ONEDNN", "OPENBLAS_", "MALLOC", "CUDA_"),
    *("DMLC_", "MXOPT_", "LD_PRELOAD", "LD_LIBRARY_PATH", "NVIDIA_TF32_OVERRIDE"),
)
# A secret, and a text that the results page has anyway.
LEFT_OUT = ("MXOPT_JOB_TOKEN", "MXOPT_TIER_WHY")
RECORDED_PACKAGES = (
    *("numpy", "mxnet", *CUDA_PACKAGES, "gluoncv", "gluonnlp", "opencv-python-headless"),
    *("opencv-python", "pillow", "intel-openmp", "nvidia-cudnn-cu11", "nvidia-cublas-cu11"),
)


def environment() -> dict:
    """Return the facts about this process that a run record keeps, JSON-able.

    Call it in the measured process after MXNet is imported, so that the features and the OpenMP
    runtimes are those in use. It starts no process and imports no large package.
    """
    mxnet = sys.modules.get("mxnet")
    found, no_gpus = survey_gpus()
    shared = shared_memory()
    return {
        "python": platform.python_version(),
        "packages": {
            "mxopt": VERSION,
            **{name: v for name in RECORDED_PACKAGES if (v := package_version(name))},
        },
        "platform": platform.platform(),
        "cpu": asdict(cpu()),
        "memory": {
            "total": psutil.virtual_memory().total,
            "available": memory_available(),
            "shared": shared and asdict(shared),
        },
        "gpus": [asdict(gpu) for gpu in found],
        "no_gpus": no_gpus,
        "mxnet_features": enabled_features(mxnet) if hasattr(mxnet, "runtime") else None,
        "openmp": [without_folders(path) for path in openmp_runtimes()],
        "variables": {
            name: without_folders(value)
            for name, value in sorted(os.environ.items())
            if name.startswith(VARIABLES) and name not in LEFT_OUT
        },
    }


def without_folders(text: str) -> str:
    """Return the text with every absolute path replaced by its last part.

    Records are published, and folders of a machine are private.

    >>> without_folders("/home/ada/lib/libiomp5.so:/opt/x")
    'libiomp5.so:x'
    """
    return re.sub(r"(?<![\w.])/(?:[^/:\s]*/)*", "", text)
