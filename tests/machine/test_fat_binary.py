"""Kernels read from ELF files that are made here as nvcc lays them out."""

import os
import shutil
import struct
import subprocess
import sys

import mxnet
import pytest

from mxopt.machine import fat_binary

PTX, MACHINE_CODE = 1, 2


def container(*kernels):
    entries = b""
    for kind, capability, size in kernels:
        entries += struct.pack("<HHIQIIHHI", kind, 0x0101, 64, size, 0, 0, 7, 1, capability)
        entries += bytes(64 - 32) + bytes(size)
    return struct.pack("<IHHQ", fat_binary.MAGIC, 1, 16, len(entries)) + entries


def library(folder, section):
    """Compile a library with a section of these bytes."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        pytest.skip("needs a C compiler")
    (folder / "kernels").write_bytes(section)
    (folder / "a.c").write_text(
        '__asm__(".section .nv_fatbin, \\"a\\"\\n.incbin \\"kernels\\"\\n.previous");'
    )
    subprocess.run([compiler, "-shared", "-o", "a.so", "a.c"], cwd=folder, check=True)
    return folder / "a.so"


def test_all_kernels_of_all_containers_are_listed(tmp_path):
    first = container((MACHINE_CODE, 70, 200), (MACHINE_CODE, 75, 8), (PTX, 75, 40))
    second = container((MACHINE_CODE, 90, 16), (MACHINE_CODE, 120, 16))
    found = fat_binary.kernels(library(tmp_path, first + bytes(24) + second))
    assert found == {"machine code": ((7, 0), (7, 5), (9, 0), (12, 0)), "ptx": ((7, 5),)}


def test_what_only_looks_like_a_container_is_passed_over(tmp_path):
    magic = struct.pack("<I", fat_binary.MAGIC)
    fakes = magic + bytes(20) + magic + struct.pack("<HHQ", 1, 16, 1 << 40)
    real = container((MACHINE_CODE, 86, 8), (3, 99, 8))
    found = fat_binary.kernels(library(tmp_path, fakes + real + magic))
    assert found == {"machine code": ((8, 6),), "ptx": ()}


@pytest.mark.parametrize("content", [b"\x7fELF\x01" + bytes(100), b"text", struct.pack("<I", 1)])
def test_other_files_have_no_kernels(tmp_path, content):
    (tmp_path / "a.so").write_bytes(content)
    assert fat_binary.kernels(tmp_path / "a.so") == {"machine code": (), "ptx": ()}


def test_a_build_for_the_cpu_has_no_kernels():
    path = os.path.join(os.path.dirname(mxnet.__file__), "libmxnet.so")
    if not os.path.exists(path):
        pytest.skip(f"{sys.modules['mxnet'].__name__} has its library elsewhere")
    assert fat_binary.kernels(path)["machine code"] == ()
