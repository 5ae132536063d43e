import pytest

from mxopt import methods
from mxopt.core.errors import DeviceError
from mxopt.core.plan import Plan
from mxopt.methods import openmp


def test_a_missing_intel_openmp_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(openmp.sys, "prefix", str(tmp_path))
    with pytest.raises(DeviceError, match="pip install intel-openmp"):
        methods.environment(Plan(openmp="intel"))
