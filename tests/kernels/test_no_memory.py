"""A kernel that needs more memory than there is. AddressSanitizer would end the process."""

import mxnet as mx
import pytest
from mxnet import nd

from mxopt import kernels
from mxopt.kernels import operators

if not kernels.available():
    pytest.skip("no compiler for mxopt's kernels", allow_module_level=True)


def test_scores_that_memory_cannot_hold_are_refused():
    words = 8_000_000  # 64e12 scores: more bytes than a process of Linux has addresses for
    projected, ones = nd.ones((1, words, 3)), nd.ones(operators.DRAWS)
    with pytest.raises(mx.MXNetError, match="alloc"):
        operators.self_attention(nd, projected, nd.array([words]), ones).wait_to_read()
    assert operators.self_attention(nd, projected[:, :2], nd.array([2]), ones).sum().asscalar() == 2
