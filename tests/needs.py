"""Marks of tests that need what not every processor has."""

import pytest

from mxopt import machine

bfloat16 = pytest.mark.skipif(
    not machine.cpu().computes_bfloat16, reason="bfloat16 needs a processor with AVX-512"
)
