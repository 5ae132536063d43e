from __future__ import annotations

import pytest

from mxopt.machine import cgroup


@pytest.fixture
def group(tmp_path):
    """Write a group's files below a made-up root; returns what the functions take."""

    def write(membership: str, files: dict[str, str]) -> dict:
        (tmp_path / "membership").write_text(membership)
        for name, text in files.items():
            path = tmp_path / "root" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return {"root": tmp_path / "root", "membership": tmp_path / "membership"}

    return write


def test_quota_of_version_2(group):
    where = group("0::/a/b\n", {"a/b/cpu.max": "150000 100000\n"})
    assert cgroup.cpu_quota(**where) == 1.5


def test_quota_of_version_1(group):
    files = {"cpu/cpu.cfs_quota_us": "400000\n", "cpu/cpu.cfs_period_us": "100000\n"}
    assert cgroup.cpu_quota(**group("4:cpuset:/\n3:cpu,cpuacct:/\n", files)) == 4.0


@pytest.mark.parametrize(
    ("membership", "files"),
    [
        ("0::/\n", {"cpu.max": "max 100000\n"}),
        ("1:cpu:/\n", {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}),
        ("", {}),
    ],
)
def test_no_quota(group, membership, files):
    assert cgroup.cpu_quota(**group(membership, files)) is None


def test_the_tightest_group_above_counts(group):
    files = {"a/cpu.max": "100000 100000", "a/b/cpu.max": "300000 100000", "cpu.max": "max 100000"}
    assert cgroup.cpu_quota(**group("0::/a/b\n", files)) == 1.0


def test_groups_of_the_host_that_are_not_here_are_passed_over(group):
    where = group("0::/docker/0123\n", {"cpu.max": "200000 100000"})
    assert cgroup.cpu_quota(**where) == 2.0


def test_memory_of_version_2_counts_droppable_files_as_free(group):
    files = {
        "memory.max": "1000\n",
        "memory.current": "700\n",
        "memory.stat": "anon 400\ninactive_file 200\n",
    }
    assert cgroup.memory_left(**group("0::/\n", files)) == 500
    assert cgroup.memory_limit(**group("0::/\n", files)) == 1000


def test_memory_of_version_1(group):
    files = {
        "memory/x/memory.limit_in_bytes": "1000\n",
        "memory/x/memory.usage_in_bytes": "700\n",
        "memory/x/memory.stat": "inactive_file 1\ntotal_inactive_file 100\n",
        "memory/memory.limit_in_bytes": "9223372036854771712\n",
        "memory/memory.usage_in_bytes": "900\n",
    }
    assert cgroup.memory_left(**group("4:memory:/x\n", files)) == 400


def test_no_memory_limit(group):
    files = {"memory.max": "max\n", "memory.current": "5\n"}
    assert cgroup.memory_left(**group("0::/\n", files)) is None
    assert cgroup.memory_limit(**group("0::/\n", files)) is None
