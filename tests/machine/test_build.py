from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from mxopt import machine
from mxopt.machine.build import openmp_runtimes

FAKE_MXNET = """
from types import SimpleNamespace as Names
__version__ = "1.9.1"
enabled, disabled = Names(enabled=True), Names(enabled=False)
flags = {"CUDA": disabled, "BLAS_OPEN": enabled, "MKLDNN": enabled}
runtime = Names(Features=lambda: flags)
context = Names(num_gpus=lambda: 3)
base = Names(_LIB=None)
"""


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """Put modules, given by their source, before the installed ones in child processes."""

    def write(**sources):
        for name, source in sources.items():
            (tmp_path / name).mkdir(exist_ok=True)
            (tmp_path / name / "__init__.py").write_text(source)
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    return write


def test_build_tells_what_mxnet_says(fake):
    fake(mxnet=FAKE_MXNET, gluoncv="print('hello')", gluonnlp="import nowhere_to_be_found")
    build = machine.mxnet_build(("gluoncv", "gluonnlp"))
    assert (build.version, build.blas, build.gpus, build.reason) == ("1.9.1", "OPEN", 3, "")
    assert build.features == ("BLAS_OPEN", "MKLDNN")
    assert build.imports["gluoncv"] == ""
    assert "nowhere_to_be_found" in build.imports["gluonnlp"]
    assert set(build.libraries) == {"libgomp.so.1", "libquadmath.so.0", "libstdc++.so.6"}


def test_build_survives_an_import_that_fails(fake):
    fake(mxnet="raise OSError('libgomp.so.1: cannot open shared object file')")
    build = machine.mxnet_build()
    assert build.version is None
    assert build.reason == "OSError: libgomp.so.1: cannot open shared object file"


def test_build_survives_an_import_that_crashes(fake):
    fake(mxnet="import os; os.kill(os.getpid(), 11)")
    build = machine.mxnet_build(("gluoncv",))
    assert build.reason == "importing it ended the process by SIGSEGV"
    assert build.imports == {"gluoncv": "not tried, because MXNet ended the process"}


def test_build_blames_the_module_that_crashed(fake):
    fake(mxnet=FAKE_MXNET, gluoncv="import os; os._exit(3)")
    build = machine.mxnet_build(("gluoncv", "gluonnlp"))
    assert build.reason == ""
    assert "with status 3" in build.imports["gluoncv"]
    assert build.imports["gluonnlp"] == "not tried, because gluoncv ended the process"


def test_build_gives_up_on_an_import_that_hangs(fake):
    fake(mxnet="import time; time.sleep(60)")
    assert machine.mxnet_build(seconds=1).reason == "importing it took more than 1 s"


def test_build_of_the_installed_mxnet():
    if not machine.mxnet_packages():
        pytest.skip("no MXNet wheel is installed")
    build = machine.mxnet_build()
    assert build.reason == ""
    assert build.version in machine.mxnet_packages().values()
    assert "OPENMP" in build.features
    assert any("omp" in path for path in build.openmp)


def test_openmp_runtimes_are_told_from_their_namesakes():
    line = "7f00-7f01 r-xp 00000000 fe:00 1    {}\n"
    paths = [
        "/usr/lib/libgomp.so.1.0.0",
        "/x/sklearn.libs/libgomp-a34b3233.so.1.0.0",
        "/x/lib/libiomp5.so",
        "/x/llvm/libomp.so.5",
        "/x/scipy/_decomp.so",
        "/x/libcompat.so",
    ]
    maps = "".join(line.format(path) for path in paths * 2) + "7f02-7f03 rw-p 00000000 00:00 0\n"
    assert openmp_runtimes(maps) == sorted(paths[:4])


def test_the_wheels_blas_answers_unless_another_is_preloaded(tmp_path, monkeypatch):
    own = machine.mxnet_build().blas_library
    assert Path(own).name.startswith("libopenblas")
    assert Path(own).parent.name == "mxnet"
    other = tmp_path / "libother.so"
    source = "void cblas_sgemm(void) {}"
    command = ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(other)]
    subprocess.run(command, input=source, text=True, check=True)
    monkeypatch.setenv("LD_PRELOAD", str(other))
    assert machine.mxnet_build().blas_library == str(other)
