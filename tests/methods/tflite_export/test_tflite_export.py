"""Networks as TensorFlow Lite files: read back, and computed by its interpreter where it is."""

import mxnet as mx
import numpy as np
import pytest
import tflite
from mxnet import autograd, gluon, nd

from mxopt.core.errors import PlanError
from mxopt.methods.tflite_export import operators, to_tflite
from mxopt.recipes import load
from mxopt.recipes.segmentation.tflite import IDENTIFIER

nn = gluon.nn


class Residual(gluon.HybridBlock):
    """A sum, a concatenation and depthwise filters."""

    def __init__(self):
        super().__init__()
        with self.name_scope():
            self.wide = nn.Conv2D(8, 3, padding=1, use_bias=False, in_channels=4)
            self.norm = nn.BatchNorm()
            self.depthwise = nn.Conv2D(8, 3, padding=2, dilation=2, groups=8, in_channels=8)
            self.last = nn.Dense(5)

    def hybrid_forward(self, F, x):
        x = F.clip(self.norm(self.wide(x)), 0, 6)
        x = F.concat(x, x + self.depthwise(x), dim=1)
        x = F.Dropout(F.Pooling(x, global_pool=True, pool_type="avg"))
        return F.softmax(self.last(x))


def trained(net, shape):
    mx.random.seed(1)
    net.initialize(mx.init.Xavier())
    for _ in range(5):
        with autograd.record():
            output = net(nd.random.normal(1, 2, shape))
        output.backward()  # which updates running statistics
    return net


def parts_of(path):
    model = tflite.Model.GetRootAs(path.read_bytes())
    graph = model.Subgraphs(0)
    names = {number: name for name, number in vars(tflite.BuiltinOperator).items()}
    codes = [
        names[model.OperatorCodes(graph.Operators(n).OpcodeIndex()).BuiltinCode()]
        for n in range(graph.OperatorsLength())
    ]
    return model, graph, codes


def test_the_garments_network(tmp_path):
    net = load("fashion_mnist", stand_in=True).network([mx.cpu()])
    path = to_tflite(net, tmp_path / "net.tflite", nd.random.uniform(shape=(3, 1, 28, 28)))
    model, graph, codes = parts_of(path)
    assert path.read_bytes()[4:8] == IDENTIFIER
    assert codes == [
        *("PAD", "CONV_2D", "RELU", "MAX_POOL_2D") * 2,
        *("TRANSPOSE", "RESHAPE", "FULLY_CONNECTED", "FULLY_CONNECTED"),
    ]
    begin = graph.Tensors(graph.Inputs(0))
    assert begin.ShapeAsNumpy().tolist() == [1, 28, 28, 1]
    assert begin.ShapeSignatureAsNumpy().tolist() == [-1, 28, 28, 1]
    end = graph.Tensors(graph.Outputs(0))
    assert end.ShapeSignatureAsNumpy().tolist() == [-1, 10]
    weights = net.collect_params(".*conv0_weight")
    [first] = [p.data().asnumpy() for p in weights.values()]
    tensor = graph.Tensors(graph.Operators(1).Inputs(1))
    kept = model.Buffers(tensor.Buffer()).DataAsNumpy().view("float32")
    assert np.array_equal(kept.reshape(tensor.ShapeAsNumpy()), first.transpose((0, 2, 3, 1)))


@pytest.mark.parametrize(
    ("net", "shape"),
    [
        (Residual, (4, 4, 9, 12)),
        (lambda: nn.HybridSequential(prefix="a_"), (2, 3, 8, 8)),
    ],
)
def test_the_interpreter_computes_the_same(tmp_path, net, shape):
    interpreter = pytest.importorskip("ai_edge_litert.interpreter")
    made = net()
    if isinstance(made, nn.HybridSequential):
        made.add(
            nn.Conv2D(6, (3, 2), strides=(2, 1), padding=(1, 0), activation="tanh"),
            nn.AvgPool2D(2),
            nn.Flatten(),
            nn.Dense(7, activation="sigmoid"),
            nn.Dense(3, use_bias=False),
        )
    trained(made, shape)
    images = nd.random.normal(1, 2, (5, *shape[1:]))
    path = to_tflite(made, tmp_path / "net.tflite", images[:2])
    reader = interpreter.Interpreter(model_path=str(path))
    [begin], [end] = reader.get_input_details(), reader.get_output_details()
    reader.resize_tensor_input(begin["index"], images.transpose((0, 2, 3, 1)).shape)
    reader.allocate_tensors()
    reader.set_tensor(begin["index"], images.transpose((0, 2, 3, 1)).asnumpy())
    reader.invoke()
    assert np.allclose(reader.get_tensor(end["index"]), made(images).asnumpy(), atol=1e-5)


def test_normalised_images(tmp_path):
    class Normalised(gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            return F.image.normalize(x, mean=(0.5, 0.4, 0.3), std=(0.1, 0.2, 0.3))

    path = to_tflite(Normalised(), tmp_path / "net.tflite", nd.ones((2, 3, 4, 5)))
    model, graph, codes = parts_of(path)
    assert codes == ["SUB", "DIV"]
    tensor = graph.Tensors(graph.Operators(1).Inputs(1))
    kept = model.Buffers(tensor.Buffer()).DataAsNumpy().view("float32")
    assert np.allclose(kept, [0.1, 0.2, 0.3])


class Refused(gluon.HybridBlock):
    def __init__(self, compute):
        super().__init__()
        self._compute = compute

    def hybrid_forward(self, F, x):
        return self._compute(F, x)


@pytest.mark.parametrize(
    ("compute", "says"),
    [
        (lambda F, x: F.gammaln(x), "no counterpart for the operator gammaln"),
        (lambda F, x: F.sum(x), "no counterpart for the operator sum"),
        (lambda F, x: F.clip(x, 0, 5), r"clips to \[0.*, 5.*\], not to \[0, 6\]"),
        (lambda F, x: F.softmax(x, axis=1), "softmax along another axis"),
        (lambda F, x: F.concat(x, x, dim=2), "joins arrays along axis 2"),
        (lambda F, x: F.Pooling(x, kernel=(2, 2), pad=(1, 1)), r"pads with pad=\(1, 1\)"),
        (lambda F, x: F.Activation(x, "softsign"), "has the activation 'softsign'"),
        (lambda F, x: F.broadcast_add(x, F.Pooling(x, global_pool=True)), "two shapes"),
    ],
)
def test_what_cannot_be_expressed_is_named(tmp_path, compute, says):
    with pytest.raises(PlanError, match=f"Refused cannot be exported.*{says}"):
        to_tflite(Refused(compute), tmp_path / "net.tflite", nd.ones((2, 4, 6, 6)))
    assert not (tmp_path / "net.tflite").exists()


def test_a_wrong_conversion_is_found(tmp_path, monkeypatch):
    pytest.importorskip("ai_edge_litert.interpreter")
    real = operators.Conversion._fully_connected

    def wrong(self, name, own, x, weight, bias=None):
        return real(self, name, own, x, weight + 0.01, bias)

    monkeypatch.setitem(operators._CONVERTERS, "FullyConnected", wrong)
    net = trained(nn.Dense(3), (2, 4))
    with pytest.raises(PlanError, match="the exported Dense differs by"):
        to_tflite(net, tmp_path / "net.tflite", nd.ones((2, 4)))
    assert not (tmp_path / "net.tflite").exists()
