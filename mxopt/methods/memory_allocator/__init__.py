"""Memory allocator: glibc's malloc or another one, what it keeps, and the size of pages."""

from __future__ import annotations

import platform
from pathlib import Path

from mxopt.core.errors import DeviceError
from mxopt.machine import libraries
from mxopt.methods.method import Method

# By default malloc maps blocks above a threshold (128 KiB, growing to 32 MiB) and unmaps them when
# they are freed: the kernel clears every page again for the next array. See mallopt(3). One arena,
# because further ones, for the engine's threads, would consist of mapped blocks.
KEEP_MEMORY = {
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(2**40),
    "MALLOC_TOP_PAD_": str(2**26),
}
# A fixed threshold does not grow with the largest freed block. With one of 4 MiB, a ResNet-50's
# smaller blocks stay in the heap when they are freed, between blocks in use.
RETURN_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(2**20)}
# malloc requests transparent huge pages, with 1/512 of the page faults. See "Memory Allocation
# Tunables" of glibc's manual, and the kernel's "Transparent Hugepage Support".
HUGE_PAGES = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
# Libraries in place of glibc's malloc: their files, the newest name first, and Debian's package.
LIBRARIES = {
    "jemalloc": (("libjemalloc.so.2", "libjemalloc.so"), "libjemalloc2"),
    "tcmalloc": (
        ("libtcmalloc_minimal.so.4", "libtcmalloc.so.4", "libtcmalloc.so"),
        "libtcmalloc-minimal4",
    ),
}
_KERNEL = Path("/sys/kernel/mm/transparent_hugepage/enabled")


class MemoryAllocator(Method):
    """Sets the variables of glibc's malloc, or preloads another one."""

    switches = ("allocator", "pages")

    @classmethod
    def environment(cls, plan):
        """Return the variables of malloc.

        Raises:
            DeviceError: ``pages="huge"``, and this system does not support it; or the allocator's
                library is not installed.
        """
        variables = {}
        if plan.allocator == "keep":
            variables.update(KEEP_MEMORY)
        if plan.allocator == "return":
            variables.update(RETURN_MEMORY)
        if plan.allocator in LIBRARIES:
            variables["LD_PRELOAD"] = str(library(plan.allocator))
        if plan.pages == "huge":
            if why := no_huge_pages():
                raise DeviceError(f"pages='huge' does nothing here: {why}; take pages='default'")
            variables.update(HUGE_PAGES)
        return variables


def library(allocator: str) -> Path:
    """Return the path of an allocator's shared library.

    Args:
        allocator: a key of ``LIBRARIES``.

    Raises:
        DeviceError: it is not installed.
    """
    files, package = LIBRARIES[allocator]
    return libraries.find(files, f"allocator={allocator!r}", f"apt-get install {package}")


def no_huge_pages() -> str | None:
    """Return why huge pages are unavailable on this system; None if they are available."""
    library, version = platform.libc_ver()
    if library != "glibc" or tuple(map(int, version.split(".")[:2])) < (2, 35):
        name = library or "another C library"
        return f"it needs glibc 2.35 or newer, not {name} {version}".strip()
    if not _KERNEL.exists() or "[never]" in _KERNEL.read_text():
        return f"the kernel offers none ({_KERNEL} says never, or does not exist)"
    return None
