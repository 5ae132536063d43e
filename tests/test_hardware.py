from __future__ import annotations

import json
import platform
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from mxopt import hardware
from mxopt.errors import DeviceError, PlanError
from mxopt.hardware import facts, nvidia, processor
from mxopt.hardware.build import openmp_runtimes

GPU_BUILD = {"mxnet-cu112": "1.9.1"}
CPU_BUILD = {"mxnet": "1.9.1"}
DRIVER = "535.129.03"
NO_GPUS = ([], "no NVIDIA driver on this machine")
REAL, NO_DATA = (True, "/data/PennFudanPed (cache)"), (False, "its address does not answer")


def gpu(capability=(7, 0), reason="", name="Tesla V100", index=0) -> hardware.Gpu:
    return hardware.Gpu(index, name, capability, 16 << 30, DRIVER, not reason, reason)


class FakeNvml:
    """As much of ``pynvml`` as is read, for GPUs given as (name, capability)."""

    class NVMLError(Exception):
        pass

    class NVMLError_LibraryNotFound(NVMLError):
        pass

    def __init__(self, *gpus, error=None):
        self.gpus, self.error, self.open = gpus, error, False

    def nvmlInit(self):
        if self.error:
            raise self.error
        self.open = True

    def nvmlShutdown(self):
        self.open = False

    def nvmlDeviceGetCount(self):
        return len(self.gpus)

    def nvmlDeviceGetHandleByIndex(self, index):
        return index

    def nvmlDeviceGetName(self, handle):
        return self.gpus[handle][0]

    def nvmlDeviceGetCudaComputeCapability(self, handle):
        return self.gpus[handle][1]

    def nvmlDeviceGetMemoryInfo(self, handle):
        return SimpleNamespace(total=16 << 30)

    def nvmlDeviceGetUUID(self, handle):
        return f"GPU-{handle}0000000"

    def nvmlSystemGetDriverVersion(self):
        return DRIVER


# -- which GPUs MXNet's kernels run on -------------------------------------------------------------


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
    assert hardware.runs_on(capability) is runs


def test_a_kernel_does_not_run_on_an_earlier_minor_version():
    assert not hardware.runs_on((8, 0), kernels=((8, 6),))


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
    found, reason = hardware.survey_gpus(GPU_BUILD, nvml)
    assert found[0] == gpu()
    assert [one.usable for one in found] == [True, False, False]
    assert found[2].reason == "hidden by CUDA_VISIBLE_DEVICES"
    assert reason == ""
    assert not nvml.open


@pytest.mark.parametrize(
    ("nvml", "words"),
    [
        (FakeNvml(error=FakeNvml.NVMLError_LibraryNotFound()), "no NVIDIA driver"),
        (FakeNvml(error=FakeNvml.NVMLError("Driver/library version mismatch")), "mismatch"),
        (FakeNvml(), "knows no GPU"),
    ],
)
def test_survey_says_why_there_are_no_gpus(nvml, words):
    found, reason = hardware.survey_gpus(GPU_BUILD, nvml)
    assert found == []
    assert words in reason


def test_survey_without_nvidia_ml_py(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert "nvidia-ml-py is not installed" in hardware.survey_gpus(GPU_BUILD)[1]


# -- processor and memory --------------------------------------------------------------------------


def cpuinfo(threads, flags="fpu fma avx2 avx512f avx512_vnni") -> str:
    return "\n\n".join(
        f"processor\t: {thread}\nmodel name\t: Made-up 9000\nphysical id\t: {package}\n"
        f"core id\t\t: {core}\nflags\t\t: {flags}"
        for thread, package, core in threads
    )


# Two packages with two cores each, two threads a core.
EIGHT_THREADS = cpuinfo([(i, i // 2 % 2, i % 2) for i in range(8)])


def test_cpu_counts_threads_of_one_core_once():
    cpu = processor.read_cpu(EIGHT_THREADS, set(range(8)))
    assert (cpu.physical_cores, cpu.logical_cores) == (4, 8)
    assert cpu.model == "Made-up 9000"
    assert cpu.instruction_sets == ("fma", "avx2", "avx512f", "avx512_vnni")


def test_cpu_keeps_to_the_affinity():
    cpu = processor.read_cpu(EIGHT_THREADS, {0, 4, 1})
    assert (cpu.physical_cores, cpu.logical_cores) == (2, 3)


def test_cpu_keeps_to_the_quota():
    cpu = processor.read_cpu(EIGHT_THREADS, set(range(8)), quota=2.5)
    assert (cpu.physical_cores, cpu.logical_cores) == (3, 3)


def test_cpu_without_a_description():
    cpu = processor.read_cpu("", {0, 1})
    assert (cpu.physical_cores, cpu.logical_cores, cpu.instruction_sets) == (2, 2, ())
    assert cpu.model


def test_memory_is_no_more_than_the_container_leaves(monkeypatch):
    monkeypatch.setattr(processor.cgroup, "memory_left", lambda: 1000)
    assert hardware.memory_available() == 1000
    monkeypatch.setattr(processor.cgroup, "memory_left", lambda: None)
    assert hardware.memory_available() > 1000


def test_shared_memory(tmp_path):
    shared = hardware.shared_memory(str(tmp_path))
    assert 0 < shared.free <= shared.size
    assert hardware.shared_memory(str(tmp_path / "absent")) is None


# -- the build of MXNet, asked of a child process --------------------------------------------------

FAKE_MXNET = """
from types import SimpleNamespace as Names
__version__ = "1.9.1"
enabled, disabled = Names(enabled=True), Names(enabled=False)
flags = {"CUDA": disabled, "BLAS_OPEN": enabled, "MKLDNN": enabled}
runtime = Names(Features=lambda: flags)
context = Names(num_gpus=lambda: 3)
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
    build = hardware.mxnet_build(("gluoncv", "gluonnlp"))
    assert (build.version, build.blas, build.gpus, build.reason) == ("1.9.1", "OPEN", 3, "")
    assert build.features == ("BLAS_OPEN", "MKLDNN")
    assert build.imports["gluoncv"] == ""
    assert "nowhere_to_be_found" in build.imports["gluonnlp"]
    assert set(build.libraries) == {"libgomp.so.1", "libquadmath.so.0", "libstdc++.so.6"}


def test_build_survives_an_import_that_fails(fake):
    fake(mxnet="raise OSError('libgomp.so.1: cannot open shared object file')")
    build = hardware.mxnet_build()
    assert build.version is None
    assert build.reason == "OSError: libgomp.so.1: cannot open shared object file"


def test_build_survives_an_import_that_crashes(fake):
    fake(mxnet="import os; os.kill(os.getpid(), 11)")
    build = hardware.mxnet_build(("gluoncv",))
    assert build.reason == "importing it ended the process by SIGSEGV"
    assert build.imports == {"gluoncv": "not tried, because MXNet ended the process"}


def test_build_blames_the_module_that_crashed(fake):
    fake(mxnet=FAKE_MXNET, gluoncv="import os; os._exit(3)")
    build = hardware.mxnet_build(("gluoncv", "gluonnlp"))
    assert build.reason == ""
    assert "with status 3" in build.imports["gluoncv"]
    assert build.imports["gluonnlp"] == "not tried, because gluoncv ended the process"


def test_build_gives_up_on_an_import_that_hangs(fake):
    fake(mxnet="import time; time.sleep(60)")
    assert hardware.mxnet_build(seconds=1).reason == "importing it took more than 1 s"


def test_build_of_the_installed_mxnet():
    if not hardware.mxnet_packages():
        pytest.skip("no MXNet wheel is installed")
    build = hardware.mxnet_build()
    assert build.reason == ""
    assert build.version in hardware.mxnet_packages().values()
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


# -- the facts of a run record ---------------------------------------------------------------------


def test_environment_is_ready_for_json_and_tells_the_essentials(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.setenv("SOME_PASSWORD", "secret")
    facts = json.loads(json.dumps(hardware.environment()))
    assert facts["python"] == platform.python_version()
    assert {"mxopt", "numpy"} <= set(facts["packages"])
    assert facts["cpu"]["logical_cores"] >= 1
    assert facts["memory"]["total"] >= facts["memory"]["available"] > 0
    assert facts["variables"]["OMP_NUM_THREADS"] == "3"
    assert "secret" not in json.dumps(facts)
    assert bool(facts["gpus"]) != bool(facts["no_gpus"])


def test_environment_does_not_import_mxnet_but_reads_one_that_is_there():
    code = (
        "import sys, json; from mxopt import hardware; first = hardware.environment();"
        "hardware.pick_tier('cpu'); hardware.gpus(); assert 'mxnet' not in sys.modules;"
        "import mxnet; second = hardware.environment();"
        "print(json.dumps([first['mxnet_features'], second['mxnet_features']]))"
    )
    if not hardware.mxnet_packages():
        pytest.skip("no MXNet wheel is installed")
    root = Path(hardware.__file__).parents[2]
    told = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True
    )
    before, after = json.loads(told.stdout)
    assert before is None
    assert "OPENMP" in after


# -- the tier --------------------------------------------------------------------------------------


def test_a_usable_gpu_makes_the_gpu_tier():
    survey = ([gpu(), gpu(index=1, name="Tesla T4")], "")
    tier = hardware.pick_tier(survey=survey)
    assert tier == hardware.Tier("gpu", "2 usable GPUs (Tesla V100, Tesla T4)")


def test_real_data_makes_the_cpu_tier():
    tier = hardware.pick_tier(survey=NO_GPUS, real_data=REAL)
    assert tier.name == "cpu"
    assert "no NVIDIA driver" in tier.why
    assert REAL[1] in tier.why


def test_neither_makes_the_smoke_tier():
    tier = hardware.pick_tier(survey=NO_GPUS, real_data=NO_DATA)
    assert tier.name == "smoke"
    assert NO_DATA[1] in tier.why


def test_a_hopper_gpu_falls_to_the_cpu_tier_and_is_told_so():
    hopper = FakeNvml(("NVIDIA H100", [9, 0]))
    tier = hardware.pick_tier(survey=hardware.survey_gpus(GPU_BUILD, hopper), real_data=REAL)
    assert tier.name == "cpu"
    assert "GPU 0, NVIDIA H100: compute capability 9.0 (Hopper)" in tier.why


@pytest.mark.parametrize("name", ["smoke", "cpu"])
def test_a_tier_asked_for_is_taken(name):
    assert hardware.pick_tier(name, survey=([gpu()], "")) == hardware.Tier(name, "asked for")


def test_gpu_tier_asked_for():
    tier = hardware.pick_tier("gpu", survey=([gpu()], ""))
    assert tier == hardware.Tier("gpu", "asked for, 1 usable GPU (Tesla V100)")


@pytest.mark.parametrize(
    ("survey", "words"),
    [(NO_GPUS, "no NVIDIA driver"), (([gpu((9, 0), "too new (Hopper)")], ""), "Hopper")],
)
def test_gpu_tier_asked_for_in_vain_says_why(survey, words):
    with pytest.raises(DeviceError, match=words):
        hardware.pick_tier("gpu", survey=survey)


def test_unknown_tier_names_the_known_ones():
    with pytest.raises(PlanError, match=r"'tpu'.* smoke, cpu, gpu"):
        hardware.pick_tier("tpu")


def test_real_data_is_asked_of_the_data_room(monkeypatch):
    from mxopt import datasets

    monkeypatch.setattr(datasets, "reachable", lambda name: (name == "penn-fudan", "here"))
    assert hardware.pick_tier(survey=NO_GPUS).name == "cpu"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("/home/ada/lib/libiomp5.so", "libiomp5.so"),
        ("/a/b.so:/c/d.so", "b.so:d.so"),
        ("granularity=fine,compact,1,0", "granularity=fine,compact,1,0"),
        ("cpu/2", "cpu/2"),
        ("/data/", ""),
    ],
)
def test_a_record_keeps_no_folders_of_the_machine(text, kept):
    assert facts.without_folders(text) == kept
