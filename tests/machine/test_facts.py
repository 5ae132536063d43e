from __future__ import annotations

import json
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from mxopt import machine
from mxopt.machine import variables


def test_environment_is_ready_for_json_and_tells_the_essentials(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.setenv("SOME_PASSWORD", "secret")
    monkeypatch.setenv("MXOPT_JOB_TOKEN", "secret")
    facts = json.loads(json.dumps(machine.environment()))
    assert facts["python"] == platform.python_version()
    assert {"mxopt", "numpy"} <= set(facts["packages"])
    assert facts["cpu"]["logical_cores"] >= 1
    assert facts["memory"]["total"] >= facts["memory"]["available"] > 0
    assert facts["variables"]["OMP_NUM_THREADS"] == "3"
    assert "secret" not in json.dumps(facts)
    assert bool(facts["gpus"]) != bool(facts["no_gpus"])


def test_environment_has_the_limits_and_warns_of_what_no_plan_has_set(monkeypatch):
    monkeypatch.setenv("DNNL_MAX_CPU_ISA", "SSE41")
    found = json.loads(json.dumps(machine.environment()))
    assert found["limits"].keys() == {"cpus", "memory"}
    assert any(line.startswith("DNNL_MAX_CPU_ISA=SSE41 keeps oneDNN") for line in found["warnings"])
    chosen = machine.environment({"DNNL_MAX_CPU_ISA": "SSE41"})
    assert not any("DNNL" in line for line in chosen["warnings"])


def test_environment_does_not_import_mxnet_but_reads_one_that_is_there():
    code = (
        "import sys, json; from mxopt import machine; first = machine.environment();"
        "from mxopt.chapter import tiers; tiers.pick_tier('cpu'); machine.gpus();"
        "assert 'mxnet' not in sys.modules;"
        "import mxnet; second = machine.environment();"
        "print(json.dumps([first['mxnet_features'], second['mxnet_features']]))"
    )
    if not machine.mxnet_packages():
        pytest.skip("no MXNet wheel is installed")
    root = Path(machine.__file__).parents[2]
    told = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True
    )
    before, after = json.loads(told.stdout)
    assert before is None
    assert "OPENMP" in after


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
    assert variables.without_folders(text) == kept
