"""Number formats, against NumPy's where NumPy has them."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mxopt.methods.precision import FORMATS, lost, rounded

NAMED = {form.name: form for form in FORMATS}


@pytest.mark.parametrize("name", ["float16", "float32"])
def test_limits_are_those_of_numpy(name):
    form, info = NAMED[name], np.finfo(name)
    assert form.largest == info.max
    assert form.smallest_normal == info.tiny
    assert form.smallest == info.smallest_subnormal
    assert form.spacing == info.eps


@pytest.mark.parametrize(
    ("name", "largest", "smallest"),
    [
        # Micikevicius et al., "FP8 Formats for Deep Learning", table 1.
        ("float8_e5m2", 57_344, 2**-16),
        ("float8_e4m3", 448, 2**-9),
        ("bfloat16", 3.3895313892515355e38, 2**-133),
    ],
)
def test_limits_of_other_formats(name, largest, smallest):
    assert NAMED[name].largest == largest
    assert NAMED[name].smallest == smallest


@given(st.floats(-1e6, 1e6) | st.floats(-1e-6, 1e-6))
def test_rounding_is_that_of_numpy(value):
    with np.errstate(over="ignore"):
        expected = float(np.float16(value))
    # NumPy rounds numbers just above the largest one down to it, as the standard says.
    found = float(rounded(value, NAMED["float16"]))
    assert found == expected


@given(st.floats(-3e38, 3e38))
def test_bfloat16_keeps_the_upper_bits(value):
    found = np.float32(rounded(np.float32(value), NAMED["bfloat16"]))
    if math.isfinite(found):
        assert found.view(np.uint32) & 0xFFFF == 0
        assert abs(float(found) - np.float32(value)) <= abs(np.float32(value)) * 2**-8 + 1e-40


def test_what_is_beyond():
    assert rounded([1e9, -1e9], NAMED["float16"]).tolist() == [math.inf, -math.inf]
    assert np.isnan(rounded(1e9, NAMED["float8_e4m3"]))


def test_lost_gradients():
    gradients = [0.0, 1e-9, 1e-3, 1.0, -1e-9]
    assert lost(gradients) == (0.5, 0.0)
    assert lost(gradients, 2**10) == (0.0, 0.0)
    assert lost(gradients, 2**17) == (0.0, 0.25)
    assert lost([0.0]) == (0.0, 0.0)
