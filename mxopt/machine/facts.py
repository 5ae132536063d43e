"""Facts about the machine and the process, for run records."""

from __future__ import annotations

import dataclasses
import os
import platform
import sys
from collections.abc import Mapping
from dataclasses import asdict

import psutil

from mxopt.core.version import VERSION
from mxopt.machine.build import enabled_features, openmp_runtimes
from mxopt.machine.nvidia import CUDA_PACKAGES, package_version, survey_gpus
from mxopt.machine.processor import cpu, memory_available, shared_memory
from mxopt.machine.variables import limits, recorded, warnings, without_folders

RECORDED_PACKAGES = (
    *("numpy", "mxnet", *CUDA_PACKAGES, "gluoncv", "gluonnlp", "opencv-python-headless"),
    *("opencv-python", "pillow", "kornia-rs", "intel-openmp"),
    *("nvidia-cudnn-cu11", "nvidia-cublas-cu11"),
)


def environment(chosen: Mapping[str, str] | None = None) -> dict:
    """Return the facts about this process that a run record keeps, JSON-able.

    Call it in the measured process after MXNet is imported, so that the features and the OpenMP
    runtimes are those in use. It starts no process and imports no large package.

    Args:
        chosen: environment variables that the run's plan has set; ``warnings`` is about others.
    """
    mxnet = sys.modules.get("mxnet")
    found, no_gpus = survey_gpus()
    processor = cpu()
    shared = shared_memory()
    return {
        "python": platform.python_version(),
        "packages": {
            "mxopt": VERSION,
            **{name: v for name in RECORDED_PACKAGES if (v := package_version(name))},
        },
        "platform": platform.platform(),
        "cpu": asdict(processor),
        "memory": {
            "total": psutil.virtual_memory().total,
            "available": memory_available(),
            "shared": shared and asdict(shared),
        },
        # Without the serial-like name, which tells one machine from all others.
        "gpus": [asdict(dataclasses.replace(gpu, uuid="")) for gpu in found],
        "no_gpus": no_gpus,
        "mxnet_features": enabled_features(mxnet) if hasattr(mxnet, "runtime") else None,
        "openmp": [without_folders(path) for path in openmp_runtimes()],
        "limits": limits(),
        "variables": recorded(),
        "warnings": warnings(os.environ, processor, chosen),
    }
