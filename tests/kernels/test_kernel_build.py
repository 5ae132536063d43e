"""The library of kernels: where it is kept, and what is said without a compiler."""

import os
import platform
import re
import subprocess
import sys

import pytest

from mxopt import kernels
from mxopt.core.errors import DeviceError
from mxopt.kernels import build


@pytest.fixture
def empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MXOPT_CACHE", str(tmp_path))
    return tmp_path


def test_without_a_compiler_the_message_says_what_to_install(empty_cache, monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert build.compiler() is None
    with pytest.raises(DeviceError, match=r"need g\+\+, which was not found: install it"):
        build.build()
    assert not list(empty_cache.rglob("*.so"))


@pytest.mark.skipif(not build.compiler(), reason="no compiler")
def test_where_there_is_a_compiler_the_kernels_are_built():
    # Their own tests are skipped where they cannot be loaded.
    assert build.build() == build.library()
    kernels.load()


def test_what_a_compiler_prints_is_shown_and_nothing_is_left(empty_cache, monkeypatch, tmp_path):
    failing = tmp_path / "c++"
    failing.write_text("#!/bin/sh\necho no space left >&2\nexit 1\n")
    failing.chmod(0o755)
    monkeypatch.setenv("CXX", str(failing))
    with pytest.raises(DeviceError, match="could not compile mxopt's kernels: no space left"):
        build.build()
    assert [path.name for path in (empty_cache / "kernels").iterdir()] == []


@pytest.mark.skipif(not build.compiler(), reason="no compiler")
def test_a_cache_that_cannot_be_written_to_is_named(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MXOPT_CACHE", str(tmp_path / "file"))
    with pytest.raises(DeviceError, match=r"file/kernels \(.*\); set MXOPT_CACHE"):
        build.build()


def test_a_failure_is_not_tried_again(monkeypatch):
    tried = []

    def fail():
        tried.append(1)
        raise DeviceError("it failed")

    monkeypatch.setattr(kernels, "_library", None)
    monkeypatch.setattr(kernels, "_failure", None)
    monkeypatch.setattr(build, "build", fail)
    for _ in range(2):
        assert not kernels.available()
        with pytest.raises(DeviceError, match="it failed"):
            kernels.load()
    assert len(tried) == 1


def test_another_source_or_compiler_is_another_library(monkeypatch, tmp_path):
    kept = build.library()
    assert build.library() == kept
    copied = tmp_path / "src"
    copied.mkdir()
    for path in build.SOURCES.iterdir():
        (copied / path.name).write_bytes(path.read_bytes())
    monkeypatch.setattr(build, "SOURCES", copied)
    assert build.library() == kept
    (copied / "matrix.h").rename(tmp_path / "kept.h")
    (copied / "matrix.h").write_text("// another one")
    assert build.library() != kept
    (copied / "matrix.h").write_bytes((tmp_path / "kept.h").read_bytes())
    monkeypatch.setenv("CXXFLAGS", "-O1 -DNAME='a b'")
    assert build.library() != kept
    assert build.flags()[-2:] == ("-O1", "-DNAME=a b")


@pytest.mark.parametrize("allowed", [True, False])
def test_tiles_are_left_out_where_linux_does_not_allow_them(allowed, monkeypatch):
    monkeypatch.setattr(build, "instructions", lambda: ["fpu", "amx_tile"])
    monkeypatch.setattr(build, "tiles_allowed", lambda: allowed)
    assert ("-mno-amx-tile" in build.flags()) is not allowed
    monkeypatch.setattr(build, "instructions", lambda: ["fpu"])  # older compilers do not know it
    assert "-mno-amx-tile" not in build.flags()


def test_a_file_that_is_no_library_is_refused_by_name(empty_cache):
    path = build.library()
    path.parent.mkdir(parents=True)
    path.write_bytes(b"no library")
    code = "import mxopt\nfrom mxopt import kernels\nkernels.load()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                          env=os.environ, check=False)  # fmt: skip
    assert done.returncode == 1
    assert f"DeviceError: MXNet cannot load {path}" in done.stderr


@pytest.mark.quick(3)
@pytest.mark.skipif(platform.machine() != "x86_64", reason="instructions of x86")
@pytest.mark.parametrize(
    ("instructions", "tuned", "register"),
    [
        ("skylake-avx512", "icelake-server", "zmm"),
        ("haswell", "generic", "ymm"),
        ("x86-64", "generic", "xmm"),
        ("skylake-avx512", "znver3", "zmm"),
        ("skylake-avx512", "generic", "zmm"),
    ],
)
def test_a_vector_is_one_register_and_stays_there(instructions, tuned, register, tmp_path):
    if not build.compiler():
        pytest.skip("no compiler")
    source, assembly = tmp_path / "tile.cc", tmp_path / "tile.s"
    source.write_text(
        '#include "matrix.h"\nnamespace mxopt {\n'
        "template void product_tile<kRows, kVectors, Strided>"
        "(long, Strided, const float*, long, const float*, long, float*, long);\n"
        "void clip(float* v) { store(v, clipped(load(v), 6)); }\n}\n"
    )
    options = [*(flag for flag in build.FLAGS if "march" not in flag), "-Wno-psabi"]
    subprocess.run(
        [build.compiler(), *options, f"-march={instructions}", f"-mtune={tuned}", "-S",
         f"-I{build.SOURCES}", str(source), "-o", str(assembly)],
        check=True,
    )  # fmt: skip
    text = assembly.read_text()
    assert f"%{register}" in text
    assert not re.search(r"\tv?mov[au]ps\t.*\(%r[sb]p", text), "vectors are kept on the stack"
    assert register != "zmm" or "%ymm" not in text
