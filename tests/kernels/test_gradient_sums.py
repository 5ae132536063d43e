"""Gradients of an array that many kernels read, and the loading that makes sure of them."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from mxnet import autograd, gluon, nd

from mxopt import kernels
from mxopt.kernels import operators

if not kernels.available():
    pytest.skip("no compiler for mxopt's kernels", allow_module_level=True)


class Readers(gluon.HybridBlock):
    """The sum of many dense layers of one hidden array."""

    def __init__(self, count, by_kernels):
        super().__init__()
        self.by_kernels = by_kernels
        with self.name_scope():
            self.first = gluon.nn.Dense(16, in_units=16, flatten=False)
            self.weights = [
                self.params.get(f"reader{n}", shape=(16, 16), init="xavier") for n in range(count)
            ]
        for weight in self.weights:
            self._reg_params[weight.name] = weight

    def hybrid_forward(self, F, x, **weights):
        hidden = self.first(x)

        def dense(weight):
            if self.by_kernels:
                return operators.dense(F, hidden, weight)
            return F.FullyConnected(hidden, weight, num_hidden=16, no_bias=True, flatten=False)

        return sum(dense(weight) for weight in weights.values())


def gradient_of_the_first_layer(count, by_kernels, **hybridize):
    net = Readers(count, by_kernels)
    net.initialize()
    for n, parameter in enumerate(net.collect_params().values()):
        values = np.random.RandomState(n).randn(*parameter.shape) / 4
        parameter.set_data(nd.array(values))
    if hybridize:
        net.hybridize(**hybridize)
    with autograd.record():
        total = (net(nd.array(np.random.RandomState(99).randn(5, 16))) ** 2).sum()
    total.backward()
    return net.first.weight.grad().asnumpy()


@pytest.mark.parametrize("count", [7, 8, 9, 20])
@pytest.mark.parametrize("hybridize", [{}, {"static_alloc": False}, {"static_alloc": True}])
def test_an_array_that_many_kernels_read_gets_all_their_gradients(count, hybridize):
    expected = gradient_of_the_first_layer(count, by_kernels=False)
    found = gradient_of_the_first_layer(count, by_kernels=True, **hybridize)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


def printed(program, **variables):
    """Return what a Python program prints in a new process with these variables."""
    surroundings = {name: value for name, value in os.environ.items() if name != kernels.SUMS}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env={**surroundings, **variables}, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


LOAD = """
    from mxopt import kernels
    from mxopt.core.errors import DeviceError
    try:
        kernels.load()
        print("loaded")
    except DeviceError as error:
        print(error)
"""


def test_a_process_whose_variable_lets_mxnet_add_in_place_gets_no_kernels():
    said = printed(LOAD, **{kernels.SUMS: "20"})
    assert f"{kernels.SUMS}=20" in said
    assert "leave the variable out" in said


def test_a_process_that_trained_before_mxopt_was_imported_gets_no_kernels():
    said = printed(f"""
    import os
    import mxopt
    del os.environ["{kernels.SUMS}"]  # as it is when MXNet is imported without mxopt
    import mxnet as mx
    x = mx.nd.ones(1)
    x.attach_grad()
    with mx.autograd.record():
        y = x * x
    y.backward()
    os.environ["{kernels.SUMS}"] = "{kernels.NEVER}"
    {LOAD}""")
    assert "Import mxopt before anything is trained" in said


def test_several_threads_can_load_the_kernels_at_once():
    said = printed("""
    from concurrent.futures import ThreadPoolExecutor
    from mxopt import kernels
    with ThreadPoolExecutor(8) as pool:
        print(list(pool.map(lambda _: kernels.load(), range(8))))
    """)
    assert said.strip() == str([None] * 8)
