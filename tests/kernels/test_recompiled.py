"""The kernels' own tests once more, by several threads and compiled in other ways."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from mxopt import kernels
from mxopt.kernels import build

HERE = Path(__file__).parent
MODULES = [
    "test_batch_norm.py",
    "test_clip_by_norm.py",
    "test_convolutions.py",
    "test_cross_entropy.py",
    "test_dense.py",
    "test_drawn_sizes.py",
    "test_inverted_residual.py",
    "test_kernel_inputs.py",
    "test_no_samples.py",
    "test_normalize.py",
    "test_pointwise.py",
    "test_pooled_convolution.py",
    "test_transformer_kernels.py",
    "test_updates.py",
]
SANITIZED = "-fsanitize=address,undefined -fno-sanitize-recover=all -g -O1"


def _library(name: str) -> str:
    """Return the path of one of the compiler's libraries; its bare name if there is none."""
    asked = [build.compiler(), f"-print-file-name={name}"]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()


def _passes(*modules: str, **environment) -> None:
    """Run modules of tests in another process."""
    paths = [str(HERE / module) for module in modules]
    command = [sys.executable, "-m", "pytest", *paths, "-p", "no:cacheprovider"]
    environment = {**os.environ, **environment}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert " passed" in done.stdout
    assert "skipped" not in done.stdout


def _recompiled(module: str, folder: Path, options: str, **environment) -> None:
    """Run a module of tests with kernels compiled with more options."""
    _passes(module, CXXFLAGS=options, MXOPT_CACHE=str(folder), **environment)


@pytest.mark.timeout(300)
@pytest.mark.skipif(not kernels.available(), reason="no compiler for mxopt's kernels")
def test_by_three_threads():
    # Tests have one thread each, since several run at the same time.
    _passes(*MODULES, OMP_NUM_THREADS="3", OMP_WAIT_POLICY="passive")


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("module", MODULES)
def test_nothing_outside_of_an_array_is_read_or_written(module, tmp_path):
    if not build.compiler() or not os.path.isabs(_library("libasan.so")):
        pytest.skip("no compiler with AddressSanitizer")
    _recompiled(
        module,
        tmp_path,
        SANITIZED,
        LD_PRELOAD=f"{_library('libasan.so')}:{_library('libubsan.so')}",
        ASAN_OPTIONS="detect_leaks=0",  # MXNet keeps its own memory until the process ends
    )


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(platform.machine() != "x86_64", reason="instructions of x86")
@pytest.mark.parametrize("instructions", ["haswell", "x86-64"])
@pytest.mark.parametrize("module", MODULES)
def test_without_avx512_and_without_avx(module, instructions, tmp_path):
    if not build.compiler():
        pytest.skip("no compiler")
    _recompiled(module, tmp_path, f"-march={instructions} -Wno-psabi")


@pytest.mark.slow
@pytest.mark.skipif(not kernels.available(), reason="no compiler for mxopt's kernels")
def test_a_static_libstdcxx_stays_inside(tmp_path, monkeypatch):
    monkeypatch.setenv("CXXFLAGS", "-O0 -static-libstdc++")
    monkeypatch.setenv("MXOPT_CACHE", str(tmp_path))
    listed = ["nm", "-D", "--defined-only", str(build.build())]
    symbols = subprocess.run(listed, capture_output=True, text=True, check=True).stdout
    assert "_opCallFCompute" in symbols
    assert "_ZNSt6locale7classicEv" not in symbols


@pytest.mark.slow
@pytest.mark.skipif(not kernels.multiplies_by_tiles(), reason="a processor without AMX")
@pytest.mark.parametrize("module", ["test_dense.py", "test_cross_entropy.py"])
def test_without_tiles(module, tmp_path):
    _recompiled(module, tmp_path, "-mno-amx-tile")
