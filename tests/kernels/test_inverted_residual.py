"""The kernel of an inverted residual block: outputs and gradients beside MXNet's operators."""

import itertools
import os
import subprocess
import sys
import textwrap

import mxnet as mx
import numpy as np
import pytest
from mxnet import autograd, gluon, nd

from mxopt import kernels
from mxopt.kernels import operators

if not kernels.available():
    pytest.skip("no compiler for mxopt's kernels", allow_module_level=True)

NAMES = ("w1", "b1", "w2", "b2", "w3", "b3")


def block_of(F, x, parameters, stride, dilation, six, residual):
    """The same with MXNet's operators."""

    def activate(y):
        return F.clip(y, 0, 6) if six else F.relu(y)

    y, rest = x, list(parameters)
    if len(rest) == 6:
        w1, b1, *rest = rest
        y = activate(F.Convolution(x, w1, b1, kernel=(1, 1), num_filter=w1.shape[0]))
    w2, b2, w3, b3 = rest
    width = w2.shape[0]
    how = {"stride": (stride,) * 2, "dilate": (dilation,) * 2, "pad": (dilation,) * 2}
    y = F.Convolution(y, w2, b2, kernel=(3, 3), num_filter=width, num_group=width, **how)
    y = F.Convolution(activate(y), w3, b3, kernel=(1, 1), num_filter=w3.shape[0])
    return x + y if residual else y


def arrays(images, inputs, width, outputs, height, across, expands, context=None):
    """Random images and parameters, with gradients attached."""
    random = np.random.RandomState(0)

    def drawn(*shape):
        fan = np.prod(shape[1:]) if len(shape) > 1 else 4
        array = nd.array(random.randn(*shape) * (2 / fan) ** 0.5, ctx=context)
        array.attach_grad()
        return array

    width = width if expands else inputs
    x = nd.array(random.randn(images, inputs, height, across) * 2, ctx=context)
    x.attach_grad()
    first = [drawn(width, inputs, 1, 1), drawn(width)] if expands else []
    return x, [*first, drawn(width, 1, 3, 3), drawn(width), drawn(outputs, width, 1, 1),
               drawn(outputs)]  # fmt: skip


def outputs_and_gradients(compute, x, parameters):
    with autograd.record():
        y = compute(x)
    head = nd.array(np.random.RandomState(1).randn(*y.shape), ctx=x.context)
    y.backward(head)
    return [y.asnumpy(), *(a.grad.asnumpy() for a in (x, *parameters))]


def compare(expected, found, tolerance=1e-5):
    for ours, theirs in zip(expected, found):
        assert np.abs(ours - theirs).max() <= tolerance * max(1.0, np.abs(ours).max())


SHAPES = [
    # images, inputs, width, outputs, height, across
    (2, 8, 48, 8, 7, 9),
    (1, 3, 7, 5, 5, 4),
    (3, 4, 24, 6, 33, 17),
    (1, 5, 20, 5, 1, 1),
    (2, 16, 96, 24, 2, 31),
    # more channels than a product sums up at once
    (1, 520, 16, 530, 3, 3),
    # several strips of rows, for one thread and for two
    (1, 3, 18, 3, 131, 40),
    (3, 2, 12, 2, 97, 70),
]
KINDS = [  # stride, dilation, six, expands
    *itertools.product((1,), (1, 2), (1, 0), (1, 0)),
    *itertools.product((2,), (1,), (1, 0), (1, 0)),
    (1, 3, 1, 1),
    (1, 20, 1, 1),  # wider than a vector
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_outputs_and_gradients_are_those_of_the_operators(shape, kind):
    stride, dilation, six, expands = kind
    x, parameters = arrays(*shape, expands)
    residual = int(stride == 1 and shape[1] == shape[3])
    how = {"stride": stride, "dilation": dilation, "six": six, "residual": residual}
    expected = outputs_and_gradients(lambda x: block_of(nd, x, parameters, **how), x, parameters)
    found = outputs_and_gradients(
        lambda x: nd.mxopt_inverted_residual(x, *parameters, expands=expands, **how), x, parameters
    )
    compare(expected, found)


@pytest.mark.parametrize("six", [1, 0])
@pytest.mark.parametrize(("stride", "dilation"), [(1, 1), (1, 2), (2, 1)])
@pytest.mark.parametrize("shape", [SHAPES[0], SHAPES[2], SHAPES[-1]])
def test_an_input_that_is_activated_first(shape, stride, dilation, six):
    x, parameters = arrays(*shape, expands=False)
    how = {"stride": stride, "dilation": dilation, "six": six}
    residual = int(stride == 1 and shape[1] == shape[3])
    kernel = {"expands": 0, "clips": 1, "residual": residual, **how}

    def by_operators(x):
        active = nd.clip(x, 0, 6) if six else nd.Activation(x, "relu")
        y = block_of(nd, active, parameters, residual=0, **how)
        return x + y if residual else y

    found = outputs_and_gradients(
        lambda x: nd.mxopt_inverted_residual(x, *parameters, **kernel), x, parameters
    )
    compare(outputs_and_gradients(by_operators, x, parameters), found)


def test_gradients_beside_differences():
    x, parameters = arrays(1, 2, 12, 2, 4, 5, expands=True)
    how = {"stride": 1, "dilation": 1, "six": 1, "residual": 1, "expands": 1}
    _, *gradients = outputs_and_gradients(
        lambda x: nd.mxopt_inverted_residual(x, *parameters, **how), x, parameters
    )
    random = np.random.RandomState(2)
    head = np.random.RandomState(1).randn(1, 2, 4, 5)
    every = [x, *parameters]

    def value():
        y = nd.mxopt_inverted_residual(x, *parameters, **how)
        return float((y.asnumpy().astype("float64") * head).sum())

    for array, gradient in zip(every, gradients):
        direction = random.randn(*array.shape)
        kept, step = array.asnumpy(), 1e-3
        array[:] = kept + step * direction
        above = value()
        array[:] = kept - step * direction
        below = value()
        array[:] = kept
        assert (above - below) / (2 * step) == pytest.approx(
            (gradient * direction).sum(), rel=0.02, abs=0.02
        )


class Block(gluon.HybridBlock):
    def __init__(self, parameters, **how):
        super().__init__()
        self._how = how
        with self.name_scope():
            for name, array in zip(NAMES, parameters):
                setattr(self, name, self.params.get(name, shape=array.shape))

    def hybrid_forward(self, F, x, **parameters):
        ordered = [parameters[name] for name in NAMES]
        return operators.inverted_residual(F, x, *ordered, **self._how)


STATIC = {"static_alloc": True, "static_shape": True}


@pytest.mark.parametrize("hybridize", [{}, {"static_alloc": True}, STATIC])
def test_in_a_graph_and_on_several_contexts(hybridize):
    x, parameters = arrays(4, 8, 48, 8, 9, 9, expands=True)
    how = {"stride": 1, "dilation": 1, "six": 1, "residual": 1, "expands": 1}
    expected = outputs_and_gradients(
        lambda x: nd.mxopt_inverted_residual(x, *parameters, **how), x, parameters
    )
    contexts = [mx.cpu(0), mx.cpu(1)]
    net = Block(parameters, **how)
    net.initialize(ctx=contexts)
    for name, array in zip(NAMES, parameters):
        getattr(net, name).set_data(array)
    net.hybridize(**hybridize)
    head = nd.array(np.random.RandomState(1).randn(4, 8, 9, 9))
    for _ in range(2):
        parts = []
        with autograd.record():
            for n, context in enumerate(contexts):
                parts.append(net(x[2 * n : 2 * n + 2].as_in_context(context)))
        autograd.backward(parts, [head[:2], head[2:].as_in_context(contexts[1])])
    outputs = np.concatenate([part.asnumpy() for part in parts])
    gradients = [
        sum(getattr(net, name).grad(context).asnumpy() for context in contexts) for name in NAMES
    ]
    compare([expected[0], *expected[2:]], [outputs, *gradients])


def test_gradients_are_added_where_they_should_be():
    x, parameters = arrays(2, 8, 48, 8, 6, 6, expands=True)
    for array in parameters:
        array.attach_grad("add")
    once, twice = (
        outputs_and_gradients(
            lambda x: operators.inverted_residual(nd, x, *parameters), x, parameters
        )
        for _ in range(2)
    )
    compare(once[:2], twice[:2])
    for first, second in zip(once[2:], twice[2:]):
        np.testing.assert_allclose(second, 2 * first, rtol=1e-5, atol=1e-6)


def test_what_it_does_not_take_is_refused():
    x, parameters = arrays(1, 2, 4, 2, 3, 3, expands=True)
    with pytest.raises(mx.MXNetError):
        nd.mxopt_inverted_residual(x.astype("float64"), *parameters).wait_to_read()
    with pytest.raises(mx.MXNetError):
        nd.mxopt_inverted_residual(x[0], *parameters).wait_to_read()


@pytest.mark.parametrize("engine", ["NaiveEngine", "ThreadedEngine"])
def test_under_other_engines_and_on_one_openmp_runtime(engine):
    code = """
        import mxopt
        from mxnet import nd
        from mxopt import kernels
        kernels.load()
        x = nd.ones((2, 4, 5, 5))
        y = nd.mxopt_inverted_residual(
            x, nd.ones((8, 4, 1, 1)), nd.ones(8), nd.ones((8, 1, 3, 3)), nd.ones(8),
            nd.ones((4, 8, 1, 1)), nd.ones(4))
        print(float(y.sum().asscalar()))
        files = {line.split()[-1].split("/")[-1] for line in open("/proc/self/maps")}
        print(*(name for name in files if name.startswith(("libgomp", "libiomp", "libomp"))))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False,
        env={**os.environ, "MXNET_ENGINE_TYPE": engine},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    value, runtimes = done.stdout.splitlines()[-2:]
    # 6 in each of 8 channels after ReLU6, added up, and the bias
    assert float(value) == 2 * 4 * 25 * (8 * 6 + 1)
    assert len(runtimes.split()) == 1
