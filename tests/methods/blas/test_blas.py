"""Another BLAS is found or named, and computes the same."""

import os
import subprocess
import sys

import numpy as np
import pytest

from mxopt import methods
from mxopt.core.errors import DeviceError
from mxopt.core.plan import Plan
from mxopt.machine import libraries
from mxopt.methods import blas

CODE = """
import numpy as np, mxopt, mxnet as mx
r = np.random.RandomState(0)
a, b = (mx.nd.array(r.normal(size=s)) for s in ((70, 90), (90, 50)))
c, d = (mx.nd.array(r.normal(size=s)) for s in ((3, 20, 30), (3, 30, 10)))
found = [mx.nd.dot(a, b), mx.nd.batch_dot(c, d), mx.nd.linalg.gemm2(a, b)]
print(repr([float(x) for y in found for x in y.asnumpy().ravel()]))
print(open("/proc/self/maps").read())
"""


def computed(variables):
    done = subprocess.run([sys.executable, "-c", CODE], env={**os.environ, **variables},
                          capture_output=True, text=True, check=True)  # fmt: skip
    first, _, maps = done.stdout.partition("\n")
    return np.array(eval(first)), maps


@pytest.mark.parametrize("name", sorted(blas.LIBRARIES))
def test_a_missing_library_is_named_with_its_remedy(monkeypatch, tmp_path, name):
    monkeypatch.setattr(libraries, "FOLDERS", (str(tmp_path),))
    monkeypatch.setattr(libraries.sys, "prefix", str(tmp_path))
    with pytest.raises(DeviceError, match=f"needs {blas.LIBRARIES[name][0][0]}.*install"):
        methods.environment(Plan(blas=name))
    path = tmp_path / blas.LIBRARIES[name][0][-1]
    path.touch()
    assert methods.environment(Plan(blas=name))["LD_PRELOAD"] == str(path)


def test_mkl_takes_the_openmp_of_the_plan(monkeypatch):
    monkeypatch.setattr(blas, "library", lambda name: "/lib/libmkl_rt.so.3")
    monkeypatch.setattr(methods.openmp, "intel_openmp", lambda: "/lib/libiomp5.so")
    assert methods.environment(Plan(blas="mkl"))["MKL_THREADING_LAYER"] == "GNU"
    both = methods.environment(Plan(blas="mkl", openmp="intel"))
    assert both["MKL_THREADING_LAYER"] == "INTEL"
    assert both["LD_PRELOAD"] == "/lib/libiomp5.so:/lib/libmkl_rt.so.3"


@pytest.mark.parametrize("name", sorted(blas.LIBRARIES))
def test_products_are_equal_and_the_library_is_loaded(name):
    try:
        variables = methods.environment(Plan(blas=name))
    except DeviceError as error:
        pytest.skip(str(error))
    expected, _ = computed({})
    found, maps = computed(variables)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    assert os.path.realpath(variables["LD_PRELOAD"].split(":")[-1]) in maps
