"""Integers by AMX: asked for where it can be had, refused elsewhere, with the same results."""

import os
import subprocess
import sys

import pytest

from mxopt.core.errors import DeviceError
from mxopt.core.plan import Plan
from mxopt.kernels import build
from mxopt.methods.quantization import Quantization, amx

# Prints the kernels that oneDNN uses, by its own variable, and then the scores.
PROGRAM = """
import mxopt
import mxnet as mx
from mxnet import gluon, nd
from mxopt.methods.quantization import quantize

mx.random.seed(0)
net = gluon.nn.HybridSequential()
net.add(gluon.nn.Conv2D(64, 3, in_channels=64), gluon.nn.Flatten(), gluon.nn.Dense(8))
net.initialize(mx.init.Xavier())
images = nd.random.normal(shape=(8, 64, 12, 12))
print("scores", quantize(net, [images])(images).asnumpy().tobytes().hex())
"""


def _run(variables):
    environment = {name: text for name, text in os.environ.items() if name not in amx.VARIABLES}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM], capture_output=True, text=True,
        env={**environment, "MKLDNN_VERBOSE": "1", **variables},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    *kernels, scores = done.stdout.splitlines()
    return any("amx_int8" in line for line in kernels), scores


@pytest.fixture
def with_amx(monkeypatch):
    monkeypatch.setattr(build, "instructions", lambda: ["amx_tile", "amx_int8"])
    return monkeypatch


def test_only_a_plan_with_amx_sets_the_variable(with_amx):
    with_amx.setattr(build, "tiles_allowed", lambda: True)
    assert Quantization.environment(Plan()) == {}
    assert Quantization.environment(Plan(onednn="amx")) == {"DNNL_MAX_CPU_ISA": "AVX512_CORE_AMX"}


def test_a_processor_without_it_is_named(monkeypatch):
    monkeypatch.setattr(build, "instructions", lambda: ["avx512f"])
    with pytest.raises(DeviceError, match="needs a processor with AMX"):
        Quantization.environment(Plan(onednn="amx"))


def test_a_system_that_refuses_its_registers_is_named(with_amx):
    with_amx.setattr(build, "tiles_allowed", lambda: False)
    with pytest.raises(DeviceError, match="Linux does not let this process use"):
        Quantization.environment(Plan(onednn="amx"))


@pytest.mark.parametrize(("value", "asked"), [("AVX512_CORE_AMX", 1), ("AVX2", 0), (None, 0)])
def test_registers_are_asked_for_where_onednn_will_use_them(monkeypatch, value, asked):
    calls = []
    monkeypatch.setattr(build, "tiles_allowed", lambda: calls.append(1))
    monkeypatch.delenv("DNNL_MAX_CPU_ISA", raising=False)
    if value:
        monkeypatch.setenv("DNNL_MAX_CPU_ISA", value)
    amx._allow()
    assert len(calls) == asked


if "amx_int8" in build.instructions() and build.tiles_allowed():

    def test_tiles_compute_the_same_integers():
        used, expected = _run({})
        assert not used
        assert _run(amx.environment()) == (True, expected)
