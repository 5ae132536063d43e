"""Exported networks, computed by another runtime."""

import builtins
import sys

import mxnet as mx
import numpy as np
import pytest
from mxnet import autograd, gluon, nd

from mxopt.core.errors import DeviceError, PlanError
from mxopt.methods.onnx_export import to_onnx
from mxopt.methods.onnx_export.write import OPSET
from mxopt.recipes import load


def _outputs(path, *arrays):
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [one.name for one in session.get_inputs()]
    return session.run(None, dict(zip(names, (array.asnumpy() for array in arrays))))[0]


def _net():
    mx.random.seed(1)
    net = gluon.nn.HybridSequential()
    net.add(
        gluon.nn.Conv2D(8, 3, in_channels=3),
        gluon.nn.BatchNorm(),
        gluon.nn.Activation("relu"),
        gluon.nn.MaxPool2D(),
        gluon.nn.Flatten(),
        gluon.nn.Dense(5),
    )
    net.initialize(mx.init.Xavier())
    for _ in range(9):
        with autograd.record():
            output = net(nd.random.normal(1, 2, (8, 3, 12, 12)))
        output.backward()  # which updates the running statistics
    return net


def test_another_runtime_computes_the_same_for_any_number_of_samples(tmp_path):
    onnx = pytest.importorskip("onnx")
    net, images = _net(), nd.random.normal(1, 2, (4, 3, 12, 12))
    path = to_onnx(net, tmp_path / "net.onnx", images)
    more = nd.random.normal(1, 2, (7, 3, 12, 12))
    assert np.allclose(_outputs(path, more), net(more).asnumpy(), atol=1e-5)
    model = onnx.load(path)
    assert [one.version for one in model.opset_import] == [OPSET]
    # Weights that were inputs could change, so a runtime would not prepare them.
    assert [one.name for one in model.graph.input] == ["input0"]


def test_the_garments_network_and_one_that_normalises_images(tmp_path):
    pytest.importorskip("onnx")
    net = load("fashion_mnist", stand_in=True).network([mx.cpu()])
    images = nd.random.uniform(shape=(3, 1, 28, 28))
    path = to_onnx(net, tmp_path / "net.onnx", images)
    assert np.allclose(_outputs(path, images), net(images).asnumpy(), atol=1e-5)

    class Normalised(gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            return F.image.normalize(x, mean=(0.5, 0.4, 0.3), std=(0.1, 0.2, 0.3)) * 2

    images = nd.random.uniform(shape=(3, 3, 4, 4))
    path = to_onnx(Normalised(), tmp_path / "normalised.onnx", images)
    assert np.allclose(_outputs(path, images), Normalised()(images).asnumpy(), atol=1e-5)


def test_an_operator_without_a_converter_is_named(tmp_path):
    pytest.importorskip("onnx")

    class Gamma(gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            return F.gammaln(x)

    with pytest.raises(PlanError, match=r"Gamma cannot be exported: .*gammaln"):
        to_onnx(Gamma(), tmp_path / "net.onnx", nd.ones((2, 3)))
    assert not (tmp_path / "net.onnx").exists()


def test_a_wrong_converter_is_found(tmp_path, monkeypatch):
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    import onnx
    from mxnet.onnx.mx2onnx._export_onnx import MXNetGraph

    def wrong(node, **kwargs):
        [source] = (kwargs["outputs_lookup"][n][o].name for n, o, *_ in node["inputs"])
        return [onnx.helper.make_node("Neg", [source], [node["name"]])]

    monkeypatch.setitem(MXNetGraph.registry_[12], "abs", wrong)
    net = gluon.nn.HybridLambda("abs")
    with pytest.raises(PlanError, match="differs by 2 for"):
        to_onnx(net, tmp_path / "net.onnx", nd.ones((2, 3)))
    assert not (tmp_path / "net.onnx").exists()


def test_without_the_package_it_says_what_to_install(tmp_path, monkeypatch):
    real = builtins.__import__

    def missing(name, *args, **kwargs):
        if name == "onnx":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.delitem(sys.modules, "onnx", raising=False)
    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(DeviceError, match="pip install onnx onnxruntime"):
        to_onnx(_net(), tmp_path / "net.onnx", nd.ones((1, 3, 12, 12)))
