import os
import subprocess
import sys
from pathlib import Path

import pytest

from mxopt.core.errors import DeviceError
from mxopt.core.plan import ENGINES, Plan
from mxopt.methods.engine import variables as engine


def test_only_what_the_plan_sets_is_in_the_environment():
    assert engine.environment(Plan()) == {"MXNET_ENGINE_TYPE": "ThreadedEnginePerDevice"}
    variables = engine.environment(Plan(engine_threads=3, cpu_threads=2, affinity="compact"))
    assert variables["MXNET_CPU_WORKER_NTHREADS"] == "3"
    assert variables["OMP_NUM_THREADS"] == "2"
    assert variables["OMP_PROC_BIND"] == "close"
    assert "MALLOC_MMAP_THRESHOLD_" in engine.environment(Plan(allocator="return"))
    assert "MALLOC_MMAP_MAX_" in engine.environment(Plan(allocator="keep"))


@pytest.mark.parametrize("name", ENGINES)
def test_mxnet_starts_the_engine_of_the_plan(name):
    code = "import mxopt, mxnet as mx; mx.nd.ones(1).wait_to_read()"
    variables = {**engine.environment(Plan(engine=name)), "MXNET_ENGINE_INFO": "1"}
    child = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **variables},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert f"MXNet start using engine: {name}\n" in child.stderr


@pytest.mark.fault(
    "machine",
    "a process runs another engine than its plan's",
    sees="MXNET_ENGINE_TYPE=ThreadedEnginePerDevice",
)
def test_a_process_under_another_engine_is_refused(monkeypatch, sees):
    monkeypatch.setenv("MXNET_ENGINE_TYPE", "NaiveEngine")
    with sees.raised(DeviceError):
        engine.check(Plan())
    engine.check(Plan(engine="NaiveEngine"))


def test_a_missing_intel_openmp_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(engine.sys, "prefix", str(tmp_path))
    with pytest.raises(DeviceError, match="pip install intel-openmp"):
        engine.environment(Plan(openmp="intel"))


def test_huge_pages_are_refused_where_there_are_none(monkeypatch, tmp_path):
    never = tmp_path / "enabled"
    never.write_text("always madvise [never]\n")
    monkeypatch.setattr(engine, "_KERNEL", never)
    monkeypatch.setattr(engine.platform, "libc_ver", lambda: ("glibc", "2.36"))
    with pytest.raises(DeviceError, match="says never"):
        engine.environment(Plan(pages="huge"))
    never.write_text("always [madvise] never\n")
    assert engine.environment(Plan(pages="huge")).items() >= engine.HUGE_PAGES.items()
    monkeypatch.setattr(engine.platform, "libc_ver", lambda: ("glibc", "2.31"))
    with pytest.raises(DeviceError, match=r"glibc 2\.35 or newer, not glibc 2\.31"):
        engine.environment(Plan(pages="huge"))
    monkeypatch.setattr(engine.platform, "libc_ver", lambda: ("", ""))
    with pytest.raises(DeviceError, match="not another C library"):
        engine.environment(Plan(pages="huge"))


@pytest.mark.skipif(
    engine.no_huge_pages() is not None or not Path("/proc/self/smaps_rollup").exists(),
    reason="no huge pages here, or no way to count them",
)
def test_a_process_with_huge_pages_has_them():
    code = (
        "import mxopt, mxnet as mx, re; x = mx.nd.ones((64, 1024, 1024)); x.wait_to_read()\n"
        "found = re.findall(r'AnonHugePages: +(\\d+)', open('/proc/self/smaps_rollup').read())\n"
        "print(sum(map(int, found)) // 1024)"
    )
    sizes = []
    for plan in (Plan(), Plan(pages="huge")):
        child = subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, **engine.environment(plan)},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        sizes.append(int(child.stdout))
    # How many of the 256 MiB depends on what the kernel has left in one piece.
    assert sizes[1] > sizes[0]


def test_timed_waits_for_the_work():
    from mxnet import nd

    a = nd.random.uniform(shape=(1500, 1500))
    a.wait_to_read()
    with engine.timed() as clock:
        for _ in range(5):
            a = nd.dot(a, a) / 1500
    # Enqueueing is part of the whole, and on an asynchronous engine not all of it.
    assert 0 < clock.enqueued < clock.seconds
