"""CPU quota and memory limit of this process's container, from Linux control groups.

``os.cpu_count`` and ``psutil.virtual_memory`` describe the whole machine. In a container with a
limit, thread counts and memory checks based on them are wrong. Both versions of control groups are
read (https://docs.kernel.org/admin-guide/cgroup-v2.html and ``cgroup-v1/``). The limits of all
parent groups apply too.
"""

from __future__ import annotations

from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
MEMBERSHIP = Path("/proc/self/cgroup")


def cpu_quota(root: Path = ROOT, membership: Path = MEMBERSHIP) -> float | None:
    """Return the CPU time this process may use, in CPUs; None if there is no limit.

    Args:
        root: where the control groups are mounted.
        membership: file that names this process's groups.
    """
    quotas = []
    for folder in _groups("cpu", root, membership):
        quota, _, period = _text(folder / "cpu.max").partition(" ")
        if not quota:
            quota, period = (_text(folder / f"cpu.cfs_{name}_us") for name in ("quota", "period"))
        if quota.isdigit() and period.isdigit():  # neither "max" nor "-1", which mean no limit
            quotas.append(int(quota) / int(period))
    return min(quotas, default=None)


def memory_limit(root: Path = ROOT, membership: Path = MEMBERSHIP) -> int | None:
    """Return how many bytes this process's groups may allocate in all; None if there is no limit.

    Args:
        root: where the control groups are mounted.
        membership: file that names this process's groups.
    """
    return min((limit for _, limit in _memory_limits(root, membership)), default=None)


def memory_left(root: Path = ROOT, membership: Path = MEMBERSHIP) -> int | None:
    """Return how many bytes this process's groups may still allocate; None if there is no limit.

    Cached files that the kernel would drop first (``inactive_file``) count as free.

    Args:
        root: where the control groups are mounted.
        membership: file that names this process's groups.
    """
    left = []
    for folder, limit in _memory_limits(root, membership):
        used = _text(folder / "memory.current") or _text(folder / "memory.usage_in_bytes")
        if used.isdigit():
            statistics = dict(
                line.split() for line in _text(folder / "memory.stat").splitlines() if " " in line
            )
            droppable = statistics.get("total_inactive_file", statistics.get("inactive_file", 0))
            left.append(max(0, limit - int(used) + int(droppable)))
    return min(left, default=None)


def _memory_limits(root: Path, membership: Path):
    """Yield the folders of the groups that have a limit, and the limits in bytes."""
    for folder in _groups("memory", root, membership):
        limit = _text(folder / "memory.max") or _text(folder / "memory.limit_in_bytes")
        if limit.isdigit() and int(limit) < 1 << 60:  # version 1's "no limit"
            yield folder, int(limit)


def _groups(controller: str, root: Path, membership: Path):
    """Yield the folders of this process's group and of its parents, for one controller."""
    for line in _text(membership).splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        top = root / controller if controllers else root
        folder = top / path.lstrip("/")
        # Inside a container the path may be the host's and not exist here; its parents still do.
        yield from (each for each in (folder, *folder.parents) if top in (each, *each.parents))


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
