from __future__ import annotations

import dataclasses
import sys

import pytest
from made_up_gpus import CPU_BUILD, DRIVER, GPU_BUILD, FakeNvml, gpu

from mxopt import machine
from mxopt.machine import nvidia


@pytest.mark.parametrize(
    ("capability", "runs"),
    [
        ((3, 7), False),
        ((5, 0), True),
        ((5, 2), True),
        ((6, 1), True),
        ((7, 0), True),
        ((7, 5), True),
        ((8, 0), True),
        ((8, 6), True),
        ((8, 9), True),
        ((9, 0), False),
        ((10, 0), False),
        ((12, 0), False),
    ],
)
def test_kernels_run_on_their_major_version_and_later_minor_ones(capability, runs):
    assert machine.runs_on(capability) is runs


def test_a_kernel_does_not_run_on_an_earlier_minor_version():
    assert not machine.runs_on((8, 0), kernels=((8, 6),))


@pytest.mark.parametrize(
    ("capability", "driver", "packages", "words"),
    [
        ((9, 0), DRIVER, GPU_BUILD, "9.0 (Hopper)"),
        ((12, 0), DRIVER, GPU_BUILD, "(Blackwell)"),
        ((3, 7), DRIVER, GPU_BUILD, "(Kepler)"),
        ((7, 0), "440.33.01", GPU_BUILD, "install 450.80.02 or newer"),
        ((7, 0), DRIVER, CPU_BUILD, "pip install 'mxopt[cu112]'"),
        ((7, 0), DRIVER, {}, "no MXNet wheel is installed"),
        ((7, 0), DRIVER, {**CPU_BUILD, **GPU_BUILD}, "installed over each other"),
    ],
)
def test_why_a_gpu_is_unusable(capability, driver, packages, words):
    assert words in nvidia.why_unusable(capability, driver, packages)


def test_a_gpu_is_usable_with_the_cuda_build_and_a_driver_for_it():
    assert nvidia.why_unusable((7, 5), "450.80.02", GPU_BUILD) == ""


@pytest.mark.parametrize(
    ("setting", "seen"),
    [
        (None, [True, True, True]),
        ("", [False, False, False]),
        ("-1", [False, False, False]),
        ("1", [False, True, False]),
        ("2, 0", [True, False, True]),
        ("0,-1,2", [True, False, False]),
        ("GPU-20", [False, False, True]),
        ("MIG-GPU-0/1/0", [True, True, True]),
    ],
)
def test_cuda_visible_devices(setting, seen):
    assert [nvidia.visible(i, f"GPU-{i}0000000", setting) for i in range(3)] == seen


def test_survey_describes_each_gpu(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    nvml = FakeNvml(("Tesla V100", [7, 0]), ("NVIDIA H100", [9, 0]), ("Tesla T4", [7, 5]))
    found, reason = machine.survey_gpus(GPU_BUILD, nvml)
    assert dataclasses.replace(found[0], uuid="") == gpu()
    assert [one.usable for one in found] == [True, False, False]
    assert found[2].reason == "hidden by CUDA_VISIBLE_DEVICES"
    assert reason == ""
    assert not nvml.open


@pytest.mark.parametrize(
    ("nvml", "words"),
    [
        (FakeNvml(error=FakeNvml.NVMLError_LibraryNotFound()), "no NVIDIA driver"),
        (FakeNvml(error=FakeNvml.NVMLError("Driver/library version mismatch")), "mismatch"),
        (FakeNvml(), "lists no GPU"),
    ],
)
def test_survey_says_why_there_are_no_gpus(nvml, words):
    found, reason = machine.survey_gpus(GPU_BUILD, nvml)
    assert found == []
    assert words in reason


def test_survey_without_nvidia_ml_py(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert "nvidia-ml-py is not installed" in machine.survey_gpus(GPU_BUILD)[1]


HOPPER = {"machine code": ((8, 0), (9, 0)), "ptx": ((9, 0),)}


@pytest.mark.parametrize(
    ("capability", "words"),
    [((9, 0), ""), ((10, 0), ""), ((8, 6), ""), ((7, 0), "this build of MXNet holds kernels for")],
)
def test_a_build_of_ones_own_is_judged_by_its_own_kernels(capability, words):
    found = nvidia.why_unusable(capability, "999.1", {"mxnet": "1.9.1"}, HOPPER)
    assert found.startswith("compute capability") if words else found == ""
    assert words in found


def test_the_library_is_found_as_mxnet_finds_it(monkeypatch, tmp_path):
    monkeypatch.setattr(nvidia.fat_binary, "kernels", lambda path: {"file": str(path)})
    nvidia.own_kernels.cache_clear()
    assert nvidia.own_kernels()["file"].endswith("libmxnet.so")
    (tmp_path / "libmxnet.so").touch()
    monkeypatch.setenv("LD_LIBRARY_PATH", f"/nowhere:{tmp_path}")
    nvidia.own_kernels.cache_clear()
    assert nvidia.own_kernels() == {"file": str(tmp_path / "libmxnet.so")}
    monkeypatch.setenv("MXNET_LIBRARY_PATH", "/nowhere/libmxnet.so")
    nvidia.own_kernels.cache_clear()
    assert nvidia.own_kernels() == {}
    nvidia.own_kernels.cache_clear()


def test_a_gpu_that_the_driver_lost_does_not_hide_the_others():
    nvml = FakeNvml(("Tesla V100", [7, 0]), ("Tesla V100", [7, 0]), lost=0)
    found, _ = machine.survey_gpus(GPU_BUILD, nvml)
    assert [one.usable for one in found] == [False, True]
    assert "GPU is lost" in found[0].reason
    assert machine.show_only(found[1:])["CUDA_VISIBLE_DEVICES"] == "GPU-10000000"
