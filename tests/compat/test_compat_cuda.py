"""The CUDA 11 libraries of pip are found, loaded before MXNet, and named where they are missing."""

import ctypes
import importlib.machinery
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from compat.children import REPOSITORY, run_python

from mxopt import compat
from mxopt.compat import cuda
from mxopt.core.errors import CompatError
from mxopt.machine import fat_binary, nvidia

# What MXNet 1.9.1's libmxnet.so takes from the driver: nm -D --undefined-only libmxnet.so
DRIVER_SYMBOLS = (
    "cuDeviceGet",
    "cuDevicePrimaryCtxRetain",
    "cuGetErrorString",
    "cuGraphKernelNodeGetParams",
    "cuGraphNodeGetType",
    "cuLaunchKernel",
    "cuModuleGetFunction",
    "cuModuleLoadData",
    "cuModuleLoadDataEx",
    "cuModuleUnload",
)

needs_wheels = pytest.mark.skipif(
    compat.cuda_build() is None, reason="mxnet-cu112 is not installed in this environment"
)


def fake_install(folder: Path, *names: str) -> None:
    (folder / "mxnet").mkdir()
    (folder / "mxnet" / "__init__.py").write_text("")
    for name in names:
        (folder / f"{name}-1.9.1.dist-info").mkdir()


def stub_driver(folder: Path) -> None:
    """Compile a libcuda.so.1 whose every function answers 100, CUDA_ERROR_NO_DEVICE."""
    source = folder / "driver.c"
    source.write_text("".join(f"int {name}(void) {{ return 100; }}\n" for name in DRIVER_SYMBOLS))
    options = ["-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", folder / "libcuda.so.1"]
    subprocess.run(["gcc", *options, source], check=True)


def test_the_cpu_build_needs_nothing(tmp_path, monkeypatch):
    fake_install(tmp_path, "mxnet")
    monkeypatch.syspath_prepend(tmp_path)
    assert cuda.cuda_build() is None
    assert cuda.cuda_libraries() == ()


def test_a_cuda_build_is_known_by_its_metadata(tmp_path, monkeypatch):
    fake_install(tmp_path, "mxnet_cu112")
    monkeypatch.syspath_prepend(tmp_path)
    assert cuda.cuda_build() == "mxnet-cu112"


@pytest.mark.fault(
    "machine",
    "two builds of MXNet are installed over each other",
    sees="pip uninstall --yes mxnet mxnet-cu112",
)
def test_two_builds_over_each_other_are_refused(tmp_path, monkeypatch, sees):
    fake_install(tmp_path, "mxnet", "mxnet_cu112")
    monkeypatch.syspath_prepend(tmp_path)
    with sees.raised(CompatError):
        compat.require_mxnet()


@pytest.mark.fault(
    "machine",
    "the CUDA build of MXNet finds no CUDA libraries, or no driver",
    sees="pip install nvidia-...install NVIDIA's driver",
)
def test_missing_libraries_are_named_with_their_remedy(tmp_path, monkeypatch, sees):
    fake_install(tmp_path, "mxnet_cu112")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(cuda, "_in_wheels", lambda soname: None)
    monkeypatch.setattr(cuda, "_in_system", lambda soname: None)
    with pytest.raises(CompatError) as refusal:
        cuda.load_cuda_libraries()
    for requirement in cuda.WHEELS.values():
        assert f"pip install {requirement}" in str(refusal.value)
    sees(str(refusal.value))


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc to compile a library")
def test_wheels_folders_are_searched_and_loaded(tmp_path, monkeypatch):
    folder = tmp_path / "nvidia" / "some_wheel" / "lib"
    folder.mkdir(parents=True)
    source = tmp_path / "one.c"
    source.write_text("int mxopt_test_symbol(void) { return 7; }")
    library = folder / "libmxopttest.so.1"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, source], check=True)
    fake_install(tmp_path, "mxnet_cu112")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(cuda, "WHEELS", {"libmxopttest.so.1": "some-wheel==1"})
    monkeypatch.setattr(cuda, "DRIVER", "libc.so.6")
    assert cuda.cuda_libraries()[0].path == str(library)
    cuda.load_cuda_libraries()
    # RTLD_GLOBAL: the whole process now sees the symbol.
    assert ctypes.CDLL(None).mxopt_test_symbol() == 7


def test_the_pins_agree_everywhere():
    pinned = set(cuda.WHEELS.values()) | {"mxnet-cu112==1.9.1"}
    extra = re.search(
        r"^cu112 = \[(.*?)^\]", (REPOSITORY / "pyproject.toml").read_text(), re.M | re.S
    )
    assert set(re.findall(r'"([^"]+)"', extra.group(1))) == pinned
    lines = (REPOSITORY / "requirements-cu112.txt").read_text().splitlines()
    assert {line for line in lines if not line.startswith("#")} == pinned


@pytest.mark.cuda_wheels
@needs_wheels
def test_every_library_resolves_and_mxnet_counts_no_gpus(tmp_path):
    stub_driver(tmp_path)
    code = (
        "import mxopt\n"
        "missing = [l.soname for l in mxopt.compat.cuda_libraries() if l.path is None]\n"
        "assert not missing, missing\n"
        "import mxnet\n"
        "print(mxnet.context.num_gpus(), float(mxnet.nd.ones((3,)).sum().asscalar()))"
    )
    child = run_python(code, LD_LIBRARY_PATH=str(tmp_path))
    assert child.stdout.split() == ["0", "3.0"], child.stderr


@pytest.mark.cuda_wheels
@needs_wheels
def test_without_a_driver_the_import_says_what_to_do():
    child = run_python("import mxopt, mxnet", LD_LIBRARY_PATH="")
    if cuda.cuda_libraries()[-1].path is not None:
        pytest.skip("this machine has NVIDIA's driver")
    assert "install NVIDIA's driver" in child.stderr.splitlines()[-1]


@pytest.mark.cuda_wheels
@needs_wheels
def test_the_wheels_library_has_the_kernels_that_gpus_are_judged_by():
    spec = importlib.machinery.PathFinder.find_spec("mxnet")
    found = fat_binary.kernels(Path(spec.origin).with_name("libmxnet.so"))
    assert found == {"machine code": nvidia.KERNELS, "ptx": ()}
