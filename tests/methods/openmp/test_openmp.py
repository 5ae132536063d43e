import json
import os
import subprocess
import sys

import pytest

from mxopt import machine, methods
from mxopt.core.errors import DeviceError, PlanError
from mxopt.core.plan import Plan
from mxopt.machine import libraries
from mxopt.methods import openmp


def test_a_missing_intel_openmp_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(libraries.sys, "prefix", str(tmp_path))
    with pytest.raises(DeviceError, match="pip install intel-openmp"):
        methods.environment(Plan(openmp="intel"))


def test_a_block_time_is_of_intels_openmp_only(monkeypatch):
    monkeypatch.setattr(openmp, "intel_openmp", lambda: "/lib/libiomp5.so")
    times = {None: "1", 0: "0", 200: "200"}
    for given, expected in times.items():
        found = methods.environment(Plan(openmp="intel", blocktime=given))
        assert found["KMP_BLOCKTIME"] == expected
    with pytest.raises(PlanError, match="blocktime=0 is for Intel's OpenMP; add openmp=intel"):
        Plan(blocktime=0)


MASKS = """
import json, os
import mxopt, mxnet as mx

a = mx.nd.ones((1000, 1000))
mx.nd.dot(a, a).wait_to_read()
mx.nd.Convolution(mx.nd.ones((8, 16, 64, 64)), mx.nd.ones((16, 16, 3, 3)), no_bias=True,
                  kernel=(3, 3), num_filter=16).wait_to_read()
threads = [sorted(os.sched_getaffinity(int(name))) for name in os.listdir("/proc/self/task")]
print(json.dumps({"python": sorted(os.sched_getaffinity(0)), "threads": threads}))
"""


def masks(plan, **variables):
    """Return the cores of Python's thread, and those of every thread of a process of the plan."""
    environment = {**os.environ, **methods.environment(plan), **variables}
    said = subprocess.run([sys.executable, "-c", MASKS], env=environment, text=True,
                          capture_output=True, check=True).stdout  # fmt: skip
    return json.loads(said.splitlines()[-1])


@pytest.mark.skipif(machine.cpu().physical_cores < 2, reason="needs two cores")
@pytest.mark.parametrize("openmp", ["default", "intel"])
def test_compact_affinity_pins_operators_and_neither_python_nor_the_engine(openmp):
    try:
        plan = Plan(cpu_threads=2, affinity="compact", openmp=openmp)
        methods.environment(plan)
    except DeviceError as error:
        pytest.skip(str(error))
    everywhere = sorted(os.sched_getaffinity(0))
    found = masks(plan)
    assert found["python"] == everywhere
    pinned = [cores for cores in found["threads"] if cores != everywhere]
    # The two threads of an operator, on a core each.
    assert len(pinned) == 2
    assert pinned[0] != pinned[1]
    assert len(found["threads"]) > len(pinned) + 1


def test_without_affinity_no_thread_is_pinned():
    found = masks(Plan(cpu_threads=2))
    assert all(cores == found["python"] for cores in found["threads"])


TEAMS = """
import os
import mxopt, mxnet as mx

a = mx.nd.ones((1000, 1000))
mx.nd.Convolution(mx.nd.ones((8, 16, 64, 64)), mx.nd.ones((16, 16, 3, 3)), no_bias=True,
                  kernel=(3, 3), num_filter=16).wait_to_read()
a.wait_to_read()
before = len(os.listdir("/proc/self/task"))
assert a.asnumpy().sum() == mx.nd.array(a.asnumpy()).size == 1000 * 1000
print(len(os.listdir("/proc/self/task")) - before)
"""


@pytest.mark.skipif(machine.cpu().physical_cores < 2, reason="needs two cores")
@pytest.mark.parametrize(("copies", "started"), [("parallel", 1), ("serial", 0)])
def test_serial_copies_start_no_second_team_of_threads(copies, started):
    environment = {**os.environ, **methods.environment(Plan(cpu_threads=2, copies=copies))}
    said = subprocess.run([sys.executable, "-c", TEAMS], env=environment, text=True,
                          capture_output=True, check=True).stdout  # fmt: skip
    assert int(said.splitlines()[-1]) == started
