from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from rich.console import Console

from mxopt import compat
from mxopt import data as datasets
from mxopt import machine as hardware
from mxopt.cli import doctor
from mxopt.cli.doctor import NOTE, OK, PROBLEM, Check, machine, software
from mxopt.compat import CudaLibrary
from mxopt.core.errors import PlanError
from mxopt.machine import Build, Cpu, Gpu, SharedMemory

BUILD = Build(
    version="1.9.1",
    features=("BLAS_OPEN", "MKLDNN"),
    openmp=("/usr/lib/libgomp.so.1",),
    blas="OPEN",
    libraries={"libgomp.so.1": "/usr/lib/libgomp.so.1"},
    imports={"gluoncv": "", "gluonnlp": ""},
)
BROKEN = Build(reason="OSError: libgomp.so.1: cannot open shared object file")
V100 = Gpu(0, "Tesla V100", (7, 0), 16 << 30, "535.129.03", True)
H100 = Gpu(1, "NVIDIA H100", (9, 0), 80 << 30, "535.129.03", False, "9.0 (Hopper): no kernels")


def row(rows: list[Check], name: str) -> Check:
    return next(each for each in rows if each.name == name)


def test_a_missing_package_does_not_end_the_examination(monkeypatch):
    def reachable(name):
        raise ModuleNotFoundError("No module named 'pooch'", name="pooch")

    monkeypatch.setattr(datasets, "reachable", reachable)
    rows, _ = doctor.examine("cpu")
    found = [each for each in rows if "No module named 'pooch'; pip install pooch" in each.found]
    assert len(found) >= len(datasets.SOURCES)
    assert all(each.status != OK for each in found)


# -- rows about software ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "status"),
    [((3, 8, 20), PROBLEM), ((3, 9, 0), OK), ((3, 13, 9), OK), ((3, 14, 0), PROBLEM)],
)
def test_python(version, status):
    assert software.check_python(version).status == status


@pytest.mark.parametrize(
    ("version", "status"),
    [("1.26.4", OK), ("2.4.6", OK), ("3.0.0", PROBLEM), (None, PROBLEM)],
)
def test_numpy(version, status):
    check = software.check_numpy(version)
    assert check.status == status
    assert check.remedy == ("pip install numpy==1.26.4" if status == PROBLEM else "")


def test_mxnet_that_imports():
    rows = software.check_mxnet({"mxnet": "1.9.1"}, BUILD)
    assert [each.status for each in rows] == [OK, OK]
    assert "CPU build" in rows[0].found
    assert "MKLDNN" in rows[1].found


def test_mxnet_of_another_version_is_noted():
    (check, _) = software.check_mxnet({"mxnet": "1.8.0"}, Build(version="1.8.0"))
    assert check.status == NOTE


def test_a_build_for_cuda_that_is_not_from_a_wheel_is_left_alone():
    own = Build(version="1.9.1+cu124", features=("CUDA",), blas="OPEN", gpus=1)
    for packages in ({}, {"mxnet": "1.9.1+cu124"}):
        check = software.check_mxnet(packages, own)[0]
        assert (check.status, check.remedy) == (OK, "")
        assert "CUDA build" in check.found


def test_mxnet_that_is_not_installed():
    (check,) = software.check_mxnet({}, Build(reason="not installed"))
    assert check.status == PROBLEM
    assert "pip install mxnet==1.9.1" in check.remedy


def test_mxnet_that_does_not_import():
    (check,) = software.check_mxnet({"mxnet-cu112": "1.9.1"}, BROKEN)
    assert check.status == PROBLEM
    assert "libgomp.so.1" in check.found
    assert "mxnet-cu112==1.9.1" in check.remedy


def test_two_builds_of_mxnet_at_once():
    rows = software.check_mxnet({"mxnet": "1.9.1", "mxnet-cu112": "1.9.1"}, BUILD)
    check = row(rows, "MXNet packages")
    assert check.status == PROBLEM
    assert "pip uninstall -y mxnet mxnet-cu112" in check.remedy


@pytest.mark.parametrize(
    ("version", "build", "status"),
    [
        ("0.10.0", BUILD, OK),
        (None, BUILD, PROBLEM),
        ("0.10.0", BROKEN, NOTE),
        ("0.10.0", Build(imports={"gluonnlp": "ImportError: no"}), PROBLEM),
    ],
)
def test_gluonnlp(version, build, status):
    check = software.check_module("gluonnlp", version, build)
    assert check.status == status
    assert ("pip install" in check.remedy) is (status == PROBLEM)


def test_gluoncv_is_never_installed_with_its_dependencies():
    broken = Build(imports={"gluoncv": "ImportError: no"})
    for version, build in [(None, BUILD), ("0.10.5", broken)]:
        assert "--no-deps" in software.check_module("gluoncv", version, build).remedy


@pytest.mark.parametrize(
    ("missing", "gluonnlp", "status"),
    [
        (None, None, OK),
        ("no C compiler was found: apt-get install gcc", "0.10.0", NOTE),
        ("no C compiler was found: apt-get install gcc", None, PROBLEM),
    ],
)
def test_compiler_matters_only_until_gluonnlp_is_installed(missing, gluonnlp, status):
    check = software.check_compiler(missing, gluonnlp)
    assert check.status == status
    assert check.remedy == ("apt-get install gcc" if missing else "")


def test_kernels_are_optional():
    assert software.check_kernels(True, None).status == software.OK
    assert "by /usr/bin/g++" in software.check_kernels(False, "/usr/bin/g++").found
    missing = software.check_kernels(False, None)
    assert missing.status == software.NOTE
    assert "apt-get install g++" in missing.remedy


def test_patches_group_the_names_of_numpy():
    patches = [SimpleNamespace(name=name) for name in ("import hook", "numpy.bool", "numpy.NaN")]
    assert software.check_patches(patches).found == "import hook; 2 NumPy names (bool, NaN)"
    assert software.check_patches([]).found == "none needed"


def test_a_missing_system_library_is_named_with_its_package():
    libraries = {"libgomp.so.1": "/usr/lib/libgomp.so.1", "libquadmath.so.0": None}
    found, missing = software.check_system_libraries(libraries)
    assert found.status == OK
    assert missing.status == PROBLEM
    assert "libquadmath0" in missing.remedy


def test_a_missing_cuda_library_is_named_with_what_installs_it():
    libraries = [
        CudaLibrary("libcudart.so.11.0", "/x/libcudart.so.11.0", "pip install a==1"),
        CudaLibrary("libcudnn.so.8", None, "pip install nvidia-cudnn-cu11==8.9.6.50"),
    ]
    found, wheel = software.check_cuda_libraries(libraries)
    assert found == Check("libcudart.so.11.0", OK, "/x/libcudart.so.11.0")
    remedy = "pip install nvidia-cudnn-cu11==8.9.6.50"
    assert wheel == Check("libcudnn.so.8", PROBLEM, "missing", remedy)


@pytest.mark.parametrize(
    ("runtimes", "status"),
    [(("/a/libgomp.so.1",), OK), (("/a/libgomp.so.1", "/b/libiomp5.so"), NOTE), ((), NOTE)],
)
def test_openmp(runtimes, status):
    assert software.check_openmp(Build(version="1.9.1", openmp=runtimes)).status == status


def test_the_blas_that_answers_is_named():
    found = software.check_blas(Build(version="1.9.1", blas_library="/a/libmkl_rt.so.3"))
    assert found.status == OK
    assert found.found.startswith("/a/libmkl_rt.so.3")
    assert software.check_blas(BROKEN).status == NOTE


# -- rows about the machine ------------------------------------------------------------------------


def test_no_gpu_is_noted_with_its_reason():
    (check,) = machine.check_gpus(([], "no NVIDIA driver"), BUILD)
    assert check.status == NOTE
    assert "no NVIDIA driver" in check.found


def test_gpus_tell_capability_and_whether_this_mxnet_runs_on_them():
    usable, hopper = machine.check_gpus(([V100, H100], ""), Build(version="1.9.1", gpus=1))
    assert usable.status == OK
    assert "compute capability 7.0, 16.0 GiB" in usable.found
    assert hopper.status == NOTE
    assert "Hopper" in hopper.found
    assert "CUDA_VISIBLE_DEVICES=0" in hopper.remedy


def test_a_usable_gpu_that_mxnet_does_not_count_is_a_problem():
    rows = machine.check_gpus(([V100], ""), Build(version="1.9.1", gpus=0))
    assert row(rows, "GPUs in MXNet").status == PROBLEM


@pytest.mark.parametrize(
    ("sets", "status", "lacks"),
    [
        (("avx2", "avx512f", "avx512_vnni"), OK, []),
        (("avx2", "avx512f"), OK, ["int8"]),
        (("fma", "avx2"), OK, ["bfloat16", "int8"]),
        ((), NOTE, ["bfloat16", "int8"]),
    ],
)
def test_cpu(sets, status, lacks):
    check = machine.check_cpu(Cpu("Made-up 9000", 4, 8, sets))
    assert check.status == status
    assert "4 cores, 8 threads" in check.found
    assert [name for name in ("bfloat16", "int8") if name in check.found] == lacks


def test_an_inherited_variable_that_holds_a_library_back_is_a_row_with_its_fix():
    cpu = Cpu("Made-up 9000", 4, 8, ("avx2", "avx512f"))
    (check,) = machine.check_variables(cpu, {"OPENBLAS_CORETYPE": "Haswell", "HOME": "/root"})
    assert check.status == NOTE
    assert check.found == "OPENBLAS_CORETYPE=Haswell keeps OpenBLAS from this processor's AVX-512"
    assert check.remedy == "unset OPENBLAS_CORETYPE"


@pytest.mark.parametrize(
    ("physical", "logical", "variables", "status", "found"),
    [
        (4, 8, {}, OK, "4 per operator"),
        (2, 2, {}, NOTE, "1 per operator, with 2 cores"),
        (2, 2, {"OMP_NUM_THREADS": "2"}, OK, "2 per operator, set by OMP_NUM_THREADS"),
        (1, 1, {}, OK, "1 per operator"),
    ],
)
def test_threads(physical, logical, variables, status, found):
    check = machine.check_threads(Cpu("Made-up 9000", physical, logical, ()), variables)
    assert check.status == status
    assert found in check.found
    assert ("OMP_NUM_THREADS=2" in check.remedy) == (status == NOTE)


@pytest.mark.parametrize(("gib", "status"), [(16, OK), (2, NOTE)])
def test_memory(gib, status):
    assert machine.check_memory(gib << 30).status == status


@pytest.mark.parametrize(
    ("shared", "status"),
    [
        (SharedMemory(8 << 30, 8 << 30), OK),
        (SharedMemory(64 << 20, 64 << 20), NOTE),  # what Docker gives
        (SharedMemory(32 << 20, 32 << 20), PROBLEM),
        (SharedMemory(8 << 30, 1 << 20), PROBLEM),
        (None, PROBLEM),
    ],
)
def test_shared_memory(shared, status):
    check = machine.check_shared_memory(shared)
    assert check.status == status
    assert ("--shm-size" in check.remedy) is (status != OK)


def test_data():
    assert machine.check_data("penn-fudan", True, "/data (cache)").status == OK
    absent = machine.check_data("penn-fudan", False, "its address does not answer")
    assert absent.status == NOTE
    assert "mxopt fetch penn-fudan" in absent.remedy


# -- the whole -------------------------------------------------------------------------------------


@pytest.fixture
def bench(monkeypatch):
    """Set what is found here, so that the whole does not depend on the machine or a network."""

    def be(build=BUILD, survey=([], "no NVIDIA driver"), packages=None, data=(True, "/data")):
        packages = {"mxnet": "1.9.1"} if packages is None else packages
        monkeypatch.setattr(hardware, "mxnet_build", lambda also: build)
        monkeypatch.setattr(hardware, "mxnet_packages", lambda: packages)
        monkeypatch.setattr(hardware, "survey_gpus", lambda packages: survey)
        monkeypatch.setattr(hardware, "shared_memory", lambda: SharedMemory(8 << 30, 8 << 30))
        monkeypatch.setattr(datasets, "reachable", lambda name: data)
        monkeypatch.setattr(doctor, "package_version", lambda name: "1.26.4")
        monkeypatch.setenv("COLUMNS", "80")

    return be


def test_a_sound_machine_leaves_with_0(bench, capsys):
    bench()
    assert doctor.run() == 0
    assert "The cpu tier can run on this machine." in capsys.readouterr().out


def test_a_problem_leaves_with_1_and_is_named(bench, capsys):
    bench(build=BROKEN)
    assert doctor.run(tier="smoke") == 1
    assert "The smoke tier cannot run; fix first: MXNet." in capsys.readouterr().out


def test_a_gpu_that_cannot_be_used_falls_to_the_cpu_tier_and_leaves_with_0(bench, capsys):
    bench(survey=([H100], ""))
    assert doctor.run() == 0
    assert "The cpu tier can run on this machine." in capsys.readouterr().out


def test_asking_for_gpus_in_vain_leaves_with_1(bench, capsys):
    bench()
    assert doctor.run(tier="gpu") == 1
    assert "no NVIDIA driver" in capsys.readouterr().out


def test_an_unknown_tier_is_refused_before_anything_is_looked_at(monkeypatch):
    monkeypatch.setattr(hardware, "mxnet_build", lambda also: pytest.fail("looked"))
    with pytest.raises(PlanError, match="smoke, cpu, gpu"):
        doctor.run(tier="tpu")


def test_every_data_set_and_the_weights_have_a_row(bench):
    bench()
    assert set(datasets.SOURCES) <= {each.name for each in doctor.checks()}


def test_libraries_of_a_cuda_build_have_rows(bench, monkeypatch):
    bench(build=BROKEN, packages={"mxnet-cu112": "1.9.1"})
    missing = CudaLibrary("libcuda.so.1", None, "install NVIDIA's driver")
    monkeypatch.setattr(compat, "cuda_libraries", lambda: (missing,))
    assert row(doctor.checks(), "libcuda.so.1").remedy == "install NVIDIA's driver"


def test_json_is_for_machines(bench, capsys):
    bench(build=BROKEN)
    assert doctor.run(json=True) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["can_run"] is False
    assert told["tier"]["name"] == "cpu"
    mxnet = next(check for check in told["checks"] if check["name"] == "MXNet")
    assert mxnet["status"] == PROBLEM
    assert set(mxnet) == {"name", "status", "found", "remedy"}


def test_json_without_a_tier(bench, capsys):
    bench()
    assert doctor.run(json=True, tier="gpu") == 1
    assert json.loads(capsys.readouterr().out)["tier"] is None


def test_table_is_readable_at_80_columns_without_colour():
    console = Console(width=80, record=True, color_system=None)
    console.print(doctor.table([Check("deeplab-mobilenetv2", PROBLEM, "x " * 90, "pip install y")]))
    lines = console.export_text().splitlines()
    assert max(map(len, lines)) <= 80
    assert sum(line.count("x ") + line.endswith("x") for line in lines[1:-1]) == 90
    assert lines[1].startswith("deeplab-mobilenetv2  problem  x x")
    assert lines[-1].strip() == "fix: pip install y"


def test_brackets_in_what_was_found_are_not_taken_for_markup():
    console = Console(width=80, record=True, color_system=None)
    console.print(doctor.table([Check("MXNet", PROBLEM, "-", "pip install 'mxopt[cu112]'")]))
    assert "mxopt[cu112]" in console.export_text()
