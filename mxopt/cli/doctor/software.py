"""Rows of the doctor's table about installed software: functions from facts to rows."""

from __future__ import annotations

from collections.abc import Iterable

from mxopt.cli.doctor.check import NOTE, OK, PROBLEM, Check
from mxopt.compat import CudaLibrary
from mxopt.machine.build import SYSTEM_LIBRARIES, Build

INSTALL = {
    "gluoncv": "pip install --no-deps gluoncv==0.10.5.post0",
    "gluonnlp": "pip install gluonnlp==0.10.0",
}


def check_python(version) -> Check:
    """Return the row of Python, 3.9 to 3.13.

    Args:
        version: as ``sys.version_info``.
    """
    found = ".".join(str(part) for part in version[:3])
    if (3, 9) <= tuple(version[:2]) <= (3, 13):
        return Check("Python", OK, found)
    return Check("Python", PROBLEM, found, "make a virtual environment with Python 3.9 to 3.13")


def check_numpy(version: str | None) -> Check:
    """Return the row of NumPy: 1.x, or 2.x, where the names that MXNet needs are restored."""
    major = int(version.split(".")[0]) if version else 0
    if major in (1, 2):
        return Check("NumPy", OK, version)
    found = f"{version}, newer than mxopt supports" if version else "not installed"
    return Check("NumPy", PROBLEM, found, "pip install numpy==1.26.4")


def check_mxnet(packages: dict[str, str], build: Build) -> list[Check]:
    """Return rows about MXNet: whether it imports, its build, and that only one is installed.

    Args:
        packages: the installed builds, ``{package: version}``.
        build: what importing MXNet showed.
    """
    installed = " and ".join(f"{name} {version}" for name, version in packages.items())
    rows = []
    if len(packages) > 1:
        found = f"{installed} are both installed and overwrite each other's files"
        remedy = f"pip uninstall -y {' '.join(packages)}, then install one of them again"
        rows.append(Check("MXNet packages", PROBLEM, found, remedy))
    if not packages and build.reason:
        remedy = "pip install mxnet==1.9.1 (with an NVIDIA GPU: pip install 'mxopt[cu112]')"
        return [Check("MXNet", PROBLEM, build.reason, remedy)]
    if build.reason:
        remedy = f"pip install --no-deps --force-reinstall {next(iter(packages))}==1.9.1"
        remedy = "" if rows else f"fix the problems below first; if none remain: {remedy}"
        return [*rows, Check("MXNet", PROBLEM, f"{installed}: {build.reason}", remedy)]
    kind = "CUDA" if "CUDA" in build.features else "CPU"
    found = f"{build.version}, {kind} build ({installed or 'not from a wheel'}), BLAS {build.blas}"
    # A build of one's own may add to the version, such as 1.9.1+cu124.
    status = OK if build.version.partition("+")[0] == "1.9.1" else NOTE
    remedy = "" if status == OK else "mxopt supports 1.9.1: pip install mxnet==1.9.1"
    rows.append(Check("MXNet", status, found, remedy))
    return [*rows, Check("MXNet features", OK, ", ".join(build.features))]


def check_module(name: str, version: str | None, build: Build) -> Check:
    """Return the row of GluonCV or GluonNLP: whether it is installed and imports.

    Args:
        name: ``gluoncv`` or ``gluonnlp``.
        version: the installed version; None if it is not installed.
        build: what importing MXNet and these modules showed.
    """
    title = {"gluoncv": "GluonCV", "gluonnlp": "GluonNLP"}[name]
    if version is None:
        return Check(title, PROBLEM, "not installed", INSTALL[name])
    if build.reason:
        return Check(title, NOTE, f"{version}; not checked, because MXNet cannot be imported")
    reason = build.imports.get(name, "")
    if reason:
        remedy = INSTALL[name].replace("install", "install --force-reinstall --no-deps", 1)
        return Check(title, PROBLEM, f"{version}; {reason}", remedy.replace(" --no-deps", "", 1))
    return Check(title, OK, version)


def check_compiler(missing: str | None, gluonnlp: str | None) -> Check:
    """Return the row of the C compiler and Python's headers, which installing GluonNLP needs.

    Args:
        missing: what :func:`mxopt.compat.toolchain.missing` returned.
        gluonnlp: the installed version; without it a missing compiler is a problem.
    """
    if missing is None:
        return Check("C compiler", OK, "found, with Python's headers")
    found, _, remedy = missing.partition(": ")
    return Check("C compiler", NOTE if gluonnlp else PROBLEM, found, remedy)


def check_kernels(compiled: bool, compiler: str | None) -> Check:
    """Return the row of mxopt's own operators, without which everything else works.

    Args:
        compiled: whether they are compiled for this machine already.
        compiler: path of g++, None if there is none.
    """
    if compiled:
        return Check("Kernels", OK, "compiled for this machine")
    if compiler:
        return Check("Kernels", OK, f"will be compiled by {compiler} at their first use")
    found = (
        "no C++ compiler: kernels=true and graph_rewrites=inverted_residual, fewer_products, "
        "plain_layout or pooled_convolution are unavailable"
    )
    return Check("Kernels", NOTE, found, "apt-get install g++ (or the equivalent of your system)")


def check_patches(patches) -> Check:
    """Return the row of the :mod:`mxopt.compat` patches that are active in this process."""
    names = [patch.name for patch in patches]
    of_numpy = [name.split(".", 1)[1] for name in names if name.startswith("numpy.")]
    found = [name for name in names if not name.startswith("numpy.")]
    if of_numpy:
        found.append(f"{len(of_numpy)} NumPy names ({', '.join(of_numpy)})")
    return Check("Patches", OK, "; ".join(found) or "none needed")


def check_system_libraries(libraries: dict[str, str | None]) -> list[Check]:
    """Return a row for each system library of MXNet; ``{soname: path, or None if missing}``."""
    return [
        Check(soname, OK, path)
        if path
        else Check(
            soname,
            PROBLEM,
            "missing, or cannot be loaded",
            f"apt-get install {SYSTEM_LIBRARIES[soname]} (or the equivalent of your system)",
        )
        for soname, path in libraries.items()
    ]


def check_cuda_libraries(libraries: Iterable[CudaLibrary]) -> list[Check]:
    """Return a row for each library that the CUDA build of MXNet loads.

    Args:
        libraries: as :func:`mxopt.compat.cuda_libraries` returns them; none for a CPU build.
    """
    return [
        Check(library.soname, OK, library.path)
        if library.path
        else Check(library.soname, PROBLEM, "missing", library.remedy)
        for library in libraries
    ]


def check_openmp(build: Build) -> Check:
    """Return the row of the OpenMP runtimes that importing MXNet loaded."""
    found = ", ".join(build.openmp)
    if build.reason:
        return Check("OpenMP runtime", NOTE, "unknown, because MXNet cannot be imported")
    if len(build.openmp) == 1:
        return Check("OpenMP runtime", OK, found)
    if not build.openmp:
        return Check("OpenMP runtime", NOTE, "none loaded: each operator runs on one thread")
    remedy = "unset LD_PRELOAD, unless a plan's openmp switch set it"
    return Check("OpenMP runtime", NOTE, f"several, competing for the cores: {found}", remedy)


def check_blas(build: Build) -> Check:
    """Return the row of the library that answers ``dot``, ``batch_dot`` and linear algebra."""
    if build.reason or not build.blas_library:
        return Check("BLAS", NOTE, "unknown")
    return Check("BLAS", OK, f"{build.blas_library}; mxopt launch --tune measures others")
