from __future__ import annotations

import subprocess
import sys

from mxopt import machine
from mxopt.machine import processor


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


def test_processors_of_one_name_are_told_apart_by_family_and_model():
    numbered = EIGHT_THREADS.replace("model name", "cpu family\t: 25\nmodel\t\t: 17\nmodel name")
    cpu = processor.read_cpu(numbered, set(range(8)))
    assert cpu.model == "Made-up 9000 (family 25, model 17)"


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
    assert machine.memory_available() == 1000
    monkeypatch.setattr(processor.cgroup, "memory_left", lambda: None)
    assert machine.memory_available() > 1000


def test_shared_memory(tmp_path):
    shared = machine.shared_memory(str(tmp_path))
    assert 0 < shared.free <= shared.size
    assert machine.shared_memory(str(tmp_path / "absent")) is None


def printed(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return int(done.stdout)


PEAK = "from mxopt import machine; print(machine.peak_memory())"


def test_the_peak_is_that_of_the_process_and_not_of_the_one_that_started_it():
    child = f"subprocess.run([sys.executable, '-c', {PEAK!r}])"
    large = f"import subprocess, sys; x = b'x' * 2**29; {child}"
    assert 2**23 < printed(large) < 2**28


def test_the_peak_counts_memory_that_was_freed():
    assert printed(f"x = b'x' * 2**29; del x; {PEAK}") > 2**29


def test_the_peak_is_known_without_proc():
    assert machine.peak_memory("/nowhere") >= 2**23
