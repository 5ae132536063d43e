import os
import subprocess
import sys
from pathlib import Path

import pytest

from mxopt import methods
from mxopt.core.errors import DeviceError
from mxopt.core.plan import Plan
from mxopt.machine import libraries
from mxopt.methods import memory_allocator as allocator


def test_huge_pages_are_refused_where_there_are_none(monkeypatch, tmp_path):
    never = tmp_path / "enabled"
    never.write_text("always madvise [never]\n")
    monkeypatch.setattr(allocator, "_KERNEL", never)
    monkeypatch.setattr(allocator.platform, "libc_ver", lambda: ("glibc", "2.36"))
    with pytest.raises(DeviceError, match="says never"):
        methods.environment(Plan(pages="huge"))
    never.write_text("always [madvise] never\n")
    assert methods.environment(Plan(pages="huge")).items() >= allocator.HUGE_PAGES.items()
    monkeypatch.setattr(allocator.platform, "libc_ver", lambda: ("glibc", "2.31"))
    with pytest.raises(DeviceError, match=r"glibc 2\.35 or newer, not glibc 2\.31"):
        methods.environment(Plan(pages="huge"))
    monkeypatch.setattr(allocator.platform, "libc_ver", lambda: ("", ""))
    with pytest.raises(DeviceError, match="not another C library"):
        methods.environment(Plan(pages="huge"))


@pytest.mark.skipif(
    allocator.no_huge_pages() is not None or not Path("/proc/self/smaps_rollup").exists(),
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
            [sys.executable, "-c", code], env={**os.environ, **methods.environment(plan)},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        sizes.append(int(child.stdout))
    # How many of the 256 MiB depends on what the kernel has left in one piece.
    assert sizes[1] > sizes[0]


@pytest.mark.parametrize("name", sorted(allocator.LIBRARIES))
def test_a_missing_allocator_is_named_with_its_package(monkeypatch, tmp_path, name):
    monkeypatch.setattr(libraries, "FOLDERS", (str(tmp_path),))
    monkeypatch.setattr(libraries.sys, "prefix", str(tmp_path))
    with pytest.raises(DeviceError, match=f"apt-get install {allocator.LIBRARIES[name][1]}"):
        methods.environment(Plan(allocator=name))
    found = tmp_path / allocator.LIBRARIES[name][0][-1]
    found.touch()
    assert methods.environment(Plan(allocator=name))["LD_PRELOAD"] == str(found)


def test_an_allocator_and_intels_openmp_are_both_preloaded(monkeypatch):
    monkeypatch.setattr(allocator, "library", lambda name: f"/lib/{name}.so")
    monkeypatch.setattr(methods.openmp, "intel_openmp", lambda: "/lib/libiomp5.so")
    found = methods.environment(Plan(allocator="jemalloc", openmp="intel"))
    assert found["LD_PRELOAD"] == "/lib/libiomp5.so:/lib/jemalloc.so"


@pytest.mark.parametrize("name", sorted(allocator.LIBRARIES))
def test_a_process_has_the_allocator_of_its_plan(name):
    try:
        variables = methods.environment(Plan(allocator=name))
    except DeviceError as error:
        pytest.skip(str(error))
    code = "import mxopt, mxnet as mx; print(open('/proc/self/maps').read())"
    child = subprocess.run([sys.executable, "-c", code], env={**os.environ, **variables},
                           capture_output=True, text=True, check=True)  # fmt: skip
    assert f"lib{name}" in child.stdout


def test_freed_blocks_of_a_mebibyte_are_returned_from_between_others():
    code = (
        "import numpy as np\n"
        "held = lambda: int(open('/proc/self/statm').read().split()[1]) * 4096 >> 20\n"
        "blocks = [(np.ones(3 << 19, 'u1'), np.ones(4096, 'u1')) for _ in range(100)]\n"
        "before, others = held(), [other for _, other in blocks]\n"
        "del blocks\n"
        "print(before - held())"
    )
    child = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **methods.environment(Plan(allocator="return"))},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert int(child.stdout) > 140  # of 150 MiB
