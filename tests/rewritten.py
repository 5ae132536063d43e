"""Helpers of the tests of rewritten networks."""

import numpy as np
from mxnet import autograd


def gradients(net, x, parameters):
    """Return the gradients of the sum of squared outputs, by name; that of x is ``input``."""
    x = x.copy()
    x.attach_grad()
    with autograd.record():
        loss = (net(x) ** 2).sum()
    loss.backward()
    found = {name: p.grad().asnumpy().copy() for name, p in parameters.items()
             if p.grad_req != "null"}  # fmt: skip
    return {**found, "input": x.grad.asnumpy()}


def assert_same(plain, rewritten):
    """Assert that gradients of two networks are equal up to rounding."""
    assert plain.keys() == rewritten.keys()
    for name, expected in plain.items():
        largest = max(1, np.abs(expected).max())
        np.testing.assert_allclose(rewritten[name], expected, atol=1e-4 * largest, err_msg=name)
