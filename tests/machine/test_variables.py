import pytest

from mxopt import methods
from mxopt.core.plan import Plan
from mxopt.machine import Cpu, variables, warnings

AVX512 = Cpu("Made-up 9000", 4, 8, ("fma", "avx2", "avx512f"))
AVX2 = Cpu("Made-up 8000", 4, 8, ("fma", "avx2"))


@pytest.mark.parametrize(
    "name",
    ["MXNET_ENABLE_GPU_P2P", "OMP_SCHEDULE", "KMP_BLOCKTIME", "GOMP_SPINCOUNT", "MKL_DYNAMIC",
     "OPENBLAS_L2_SIZE", "DNNL_JIT_DUMP", "ONEDNN_VERBOSE", "LD_PRELOAD", "MALLOC_ARENA_MAX",
     "GLIBC_TUNABLES", "CUDA_VISIBLE_DEVICES", "NCCL_DEBUG"],
)  # fmt: skip
def test_variables_of_the_libraries_are_recorded(name):
    assert variables.recorded({name: "1"}) == {name: "1"}


@pytest.mark.parametrize(
    "name",
    ["MXOPT_JOB_TOKEN", "MXNET_S3_KEY", "CUDA_PASSWORD", "NCCL_Secret", "OMP_credentials", "HOME",
     "AWS_ACCESS", "TOX_OMP_X"],
)  # fmt: skip
def test_secrets_and_other_variables_are_not(name):
    assert variables.recorded({name: "x"}) == {}


def test_logins_in_addresses_and_folders_are_left_out():
    found = variables.recorded(
        {"MXNET_GLUON_REPO": "https://ada:1815@mirror.example/", "LD_PRELOAD": "/home/ada/x.so"}
    )
    assert "ada" not in str(found)
    assert "1815" not in str(found)
    assert found["LD_PRELOAD"] == "x.so"


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("OPENBLAS_CORETYPE", "Haswell", "AVX-512"),
        ("OPENBLAS_CORETYPE", "Nehalem", "AVX-512"),
        ("OMP_NUM_THREADS", "1", "1 of 4 cores"),
        ("OMP_NUM_THREADS", "2,1", "2 of 4 cores"),
        ("OPENBLAS_NUM_THREADS", "1", "1 of 4 cores"),
        ("DNNL_MAX_CPU_ISA", "AVX2", "oneDNN"),
        ("ONEDNN_MAX_CPU_ISA", "sse41", "oneDNN"),
        ("MXNET_ENGINE_TYPE", "NaiveEngine", "one operator at a time"),
        ("MXNET_MKLDNN_ENABLED", "0", "oneDNN"),
        ("DNNL_VERBOSE", "1", "print"),
        ("GOMP_CPU_AFFINITY", "0", "pins"),
        ("KMP_AFFINITY", "granularity=fine,compact", "pins"),
        ("OMP_PROC_BIND", "close", "pins"),
        ("LD_PRELOAD", "/lib/x.so", "LD_PRELOAD=x.so replaces"),
        ("CUDA_LAUNCH_BLOCKING", "1", "wait"),
    ],
)
def test_a_variable_that_holds_a_library_back_is_warned_of(name, value, why):
    [line] = warnings({name: value, "HOME": "/root"}, AVX512)
    assert line.startswith(f"{name}=")
    assert why in line
    assert line.endswith("unset it")


@pytest.mark.parametrize(
    ("name", "value", "cpu"),
    [
        ("OPENBLAS_CORETYPE", "SkylakeX", AVX512),
        ("OPENBLAS_CORETYPE", "Haswell", AVX2),
        ("OPENBLAS_CORETYPE", "Zen", AVX2),
        ("OMP_NUM_THREADS", "4", AVX512),
        ("OMP_NUM_THREADS", "", AVX512),
        ("DNNL_MAX_CPU_ISA", "ALL", AVX512),
        ("DNNL_VERBOSE", "0", AVX512),
        ("OMP_PROC_BIND", "false", AVX512),
        ("KMP_AFFINITY", "none", AVX512),
        ("MXNET_ENGINE_TYPE", "ThreadedEnginePerDevice", AVX512),
    ],
)
def test_a_harmless_value_is_not_warned_of(name, value, cpu):
    assert warnings({name: value}, cpu) == []


def test_what_a_plan_has_set_on_purpose_is_not_warned_of():
    plan = Plan(engine="NaiveEngine", cpu_threads=1, affinity="compact")
    chosen = methods.environment(plan)
    assert len(warnings(chosen, AVX512)) == 3
    assert warnings(chosen, AVX512, chosen) == []
    # The shell's value, where the plan wants another one.
    assert len(warnings({"OMP_NUM_THREADS": "2"}, AVX512, chosen)) == 1
