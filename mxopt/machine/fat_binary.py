"""The GPU kernels in a library that nvcc has compiled, read from its file.

nvcc puts kernels into the section ``.nv_fatbin`` of an ELF file, as containers one after the other.
A container has a header of 16 bytes (magic number, version, size of the header, size of the rest)
and entries, each with a header of its own: at byte 0 its kind, at 4 the size of this header, at 8
the size of what follows it, and at 28 the compute capability times ten. Kind 1 is PTX, which the
driver can compile for newer GPUs, and kind 2 machine code, which runs on one generation. The layout
is not documented by NVIDIA; it is that of ``fatbinary_section.h`` and of what nvcc writes into
assembly (``--keep``), and ``cuobjdump --list-elf`` shows the same list.
"""

from __future__ import annotations

import mmap
import struct
from pathlib import Path

MAGIC = 0xBA55ED50
_CONTAINER = struct.Struct("<IHHQ")
_ENTRY = struct.Struct("<HHIQIIHHI")
_PTX, _MACHINE_CODE = 1, 2


def kernels(path: str | Path) -> dict[str, tuple[tuple[int, int], ...]]:
    """Return the compute capabilities that a library has kernels for.

    Args:
        path: an ELF file of 64 bits.

    Returns:
        ``{"machine code": ((7, 0), ...), "ptx": (...)}``, each sorted; both are empty for a library
        without GPU kernels, and for a file that is not such an ELF file.
    """
    found: dict[int, set] = {_PTX: set(), _MACHINE_CODE: set()}
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        begin, end = _section(content, b".nv_fatbin")
        while (begin := content.find(MAGIC.to_bytes(4, "little"), begin, end)) >= 0:
            begin = _read_container(content, begin, end, found)
    return {
        "machine code": tuple(sorted(found[_MACHINE_CODE])),
        "ptx": tuple(sorted(found[_PTX])),
    }


def _section(content: mmap.mmap, name: bytes) -> tuple[int, int]:
    """Return where a section of an ELF file begins and ends; (0, 0) if there is none."""
    if content[:5] != b"\x7fELF\x02":  # of 64 bits
        return 0, 0
    [table] = struct.unpack_from("<Q", content, 40)
    size, count, of_names = struct.unpack_from("<HHH", content, 58)
    headers = [struct.unpack_from("<IIQQQQ", content, table + n * size) for n in range(count)]
    names = headers[of_names][4] if headers else 0
    for name_at, _, _, _, begin, length in headers:
        start = names + name_at
        if content[start : start + len(name) + 1] == name + b"\0":
            return begin, begin + length
    return 0, 0


def _read_container(content: mmap.mmap, begin: int, end: int, found: dict[int, set]) -> int:
    """Add the capabilities of a container's kernels; return where to look for the next one."""
    _, version, header, size = _CONTAINER.unpack_from(content, begin)
    at, last = begin + header, begin + header + size
    if version != 1 or header != _CONTAINER.size or last > end:
        return begin + 4  # four bytes that only look like the magic number
    while at + _ENTRY.size <= last:
        kind, _, header, size, *_, capability = _ENTRY.unpack_from(content, at)
        if kind in found:
            found[kind].add(divmod(capability, 10))
        if not header:
            break
        at += header + size
    return last
