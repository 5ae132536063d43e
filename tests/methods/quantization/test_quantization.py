"""Quantised networks: close to float32, saved in a quarter of the bytes, refused if they lose."""

import dataclasses
import json
import subprocess
import sys

import mxnet as mx
import numpy as np
import pytest
from mxnet import autograd, gluon, nd

from mxopt import machine
from mxopt.core.errors import DataError, PlanError
from mxopt.methods import quantization
from mxopt.methods.graph_rewrites import folded
from mxopt.methods.quantization import convert, packed


def _net():
    """A network with a depthwise convolution, a batch norm that saw data."""
    net = gluon.nn.HybridSequential()
    net.add(
        gluon.nn.Conv2D(8, 3, in_channels=3, use_bias=False),
        gluon.nn.BatchNorm(),
        gluon.nn.Activation("relu"),
        gluon.nn.Conv2D(8, 3, groups=8, in_channels=8),
        gluon.nn.MaxPool2D(),
        gluon.nn.Flatten(),
        gluon.nn.Dense(5),
    )
    mx.random.seed(3)
    net.initialize(mx.init.Xavier())
    for _ in range(9):
        with autograd.record():
            output = net(nd.random.normal(2, 3, (16, 3, 12, 12)))
        output.backward()  # which updates the running statistics
    assert abs(net[1].running_mean.data()).max().asscalar() > 0.1
    return net


@pytest.fixture
def images():
    mx.random.seed(5)
    return nd.random.normal(2, 3, (16, 3, 12, 12))


@pytest.mark.quick(2)  # the best of all is chosen in a test below
@pytest.mark.parametrize("calibration", quantization.CALIBRATIONS)
def test_outputs_are_close_to_float32_and_the_network_stays_as_it_is(images, calibration):
    net = _net()
    before = net(images).asnumpy()
    made = quantization.quantize(net, [images[:8], images[8:]], calibration)
    error = np.abs(made(images).asnumpy() - before)
    assert 0 < error.max() < 0.1 * np.abs(before).max(), "not quantised, or far off"
    assert error.mean() < 0.02 * np.abs(before).max()
    assert (net(images).asnumpy() == before).all()
    assert not net._active, "the caller's network was hybridised"


def test_every_layer_computes_in_integers(images):
    made = quantization.quantize(_net(), [images], reduce_range=False)
    names = packed.quantized_weights(made._cached_graph[1].tojson())
    assert len(names) == 3


@pytest.mark.parametrize(("activation", "layers"), [("relu", 3), ("tanh", 2)])
def test_a_reduced_range_leaves_out_dense_layers_of_signed_inputs(images, activation, layers):
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Conv2D(8, 3, in_channels=3), gluon.nn.Activation("relu"), gluon.nn.Flatten())
    net.add(gluon.nn.Dense(16), gluon.nn.Activation(activation), gluon.nn.Dense(5))
    mx.random.seed(3)
    net.initialize(mx.init.Xavier())
    expected = net(images).asnumpy()
    made = quantization.quantize(net, [images], reduce_range=True)
    assert len(packed.quantized_weights(made._cached_graph[1].tojson())) == layers
    error = np.abs(made(images).asnumpy() - expected)
    assert error.max() < 0.1 * np.abs(expected).max()


def test_a_reduced_range_leaves_a_bit_where_outputs_are_never_negative(images):
    whole, reduced = (
        [
            (float(node["attrs"]["min_calib_range"]), float(node["attrs"]["max_calib_range"]))
            for node in json.loads(made._cached_graph[1].tojson())["nodes"]
            if "min_calib_range" in node.get("attrs", {})
        ]
        for made in (
            quantization.quantize(_net(), [images], reduce_range=way) for way in (False, True)
        )
    )
    assert {low < 0 for low, _ in whole} == {True, False}
    for (low, high), found in zip(whole, reduced):
        assert found == pytest.approx((low, high if low < 0 else 2 * high))


def _has(monkeypatch, *sets):
    cpu = dataclasses.replace(machine.cpu(), instruction_sets=sets)
    monkeypatch.setattr(machine, "cpu", lambda: cpu)


@pytest.fixture
def without_vnni(monkeypatch):
    _has(monkeypatch, "fma", "avx2")


def test_with_vnni_all_bits_are_used_and_the_file_says_so(images, monkeypatch, tmp_path):
    _has(monkeypatch, "avx2", "avx512f", "avx512_vnni")
    ways = []
    original = convert._in_int8
    monkeypatch.setattr(convert, "_in_int8", lambda *how: ways.append(how[-1]) or original(*how))
    quantization.save_int8(quantization.quantize(_net(), [images]), tmp_path / "net.npz")
    assert ways == [False]
    assert quantization.load_int8(tmp_path / "net.npz").needs_vnni
    assert not quantization.quantize(_net(), [images], reduce_range=True).needs_vnni


@pytest.mark.parametrize("closer", [False, True])
def test_without_vnni_the_closer_network_is_kept(images, without_vnni, monkeypatch, closer):
    made, net, original = {}, _net(), convert._in_int8

    def spoiled(traced, batches, calibration, percentile, reduced):
        made[reduced] = original(traced, batches, calibration, percentile, reduced)
        if reduced != closer:
            *_, bias = made[reduced].collect_params().values()
            bias.set_data(bias.data() + 9)
        return made[reduced]

    monkeypatch.setattr(convert, "_in_int8", spoiled)
    assert quantization.quantize(net, [images[:8], images[8:]]) is made[closer]


def test_a_file_from_vnni_warns_without(images, tmp_path, without_vnni, recwarn):
    for reduced in (False, True):
        made = quantization.quantize(_net(), [images], reduce_range=reduced)
        assert not made.needs_vnni
        made.needs_vnni = not reduced  # as on a processor that has it
        quantization.save_int8(made, tmp_path / f"{reduced}.npz")
    quantization.load_int8(tmp_path / "True.npz")
    assert not [found for found in recwarn if "VNNI" in str(found.message)]
    with pytest.warns(UserWarning, match=r"False.npz.*VNNI.*score"):
        again = quantization.load_int8(tmp_path / "False.npz")
    assert again.needs_vnni


def test_a_saved_network_computes_exactly_the_same_in_another_process(images, tmp_path):
    net = _net()
    made = quantization.quantize(net, [images])
    path, inputs, outputs = (str(tmp_path / name) for name in ("n.npz", "x.npy", "y.npy"))
    written = quantization.save_int8(made, path)
    np.save(inputs, images.asnumpy())
    np.save(outputs, made(images).asnumpy())
    code = f"""
import mxopt, numpy as np
from mxnet import nd
from mxopt.methods.quantization import load_int8
found = load_int8({path!r})(nd.array(np.load({inputs!r}))).asnumpy()
assert (found == np.load({outputs!r})).all(), abs(found - np.load({outputs!r})).max()
"""
    subprocess.run([sys.executable, "-c", code], check=True)
    assert written == (tmp_path / "n.npz").stat().st_size


def test_a_saved_network_has_a_quarter_of_the_bytes(tmp_path):
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Dense(512, in_units=512))
    net.initialize()
    net.save_parameters(str(tmp_path / "float32.params"))
    made = quantization.quantize(net, [nd.random.uniform(shape=(4, 512))])
    written = quantization.save_int8(made, tmp_path / "n.npz")
    assert written < 0.27 * (tmp_path / "float32.params").stat().st_size


def test_weights_are_those_that_the_operator_computes_with():
    # Seen through an identity: columns of the weights, up to one factor of the inputs' scale.
    mx.random.seed(2)
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Dense(6, in_units=16, use_bias=False))
    net.initialize(mx.init.Normal(1))
    made = quantization.quantize(net, [nd.eye(16)])
    seen = made(nd.eye(16)).asnumpy().T
    integers, ranges = packed._on_grid(net[0].weight.data().asnumpy())
    weights = integers * ranges[:, None] / 127.5
    factor = (seen * weights).sum() / (weights * weights).sum()
    assert np.allclose(seen, factor * weights, atol=1e-5)
    assert 0.99 < factor < 1.01


@pytest.mark.parametrize("row", [[0.0, 0.0], [-1.0, 0.999], [1.0, -1.0], [3.0, 1e-9], [-2.0, -1.5]])
def test_snapped_weights_stay_where_they_are(row):
    once = packed.snapped(np.array([row, [0.3, -0.7]], np.float32))
    assert (packed.snapped(once) == once).all()
    assert np.abs(once[0]).max() == np.float32(max(map(abs, row)))


def test_the_best_calibration_is_taken_and_a_loss_refused(images, monkeypatch):
    net = _net()
    truth = net(images)

    def score(found):
        return -float((found(images) - truth).abs().mean().asscalar())

    made, scores = quantization.calibrated(net, [images], score, margin=1.0)
    assert scores["float32"] == 0
    assert score(made) == max(scores[name] for name in quantization.CALIBRATIONS) < 0
    with pytest.raises(PlanError, match=r"int8 loses more than margin=0 .*minmax.*entropy"):
        quantization.calibrated(net, [images], score, margin=0.0)


def _given_away(array):
    """Return an array's handle, which its receiver frees, as one of MXNet's monitor."""
    handle, array.handle = array.handle.value, mx.base.NDArrayHandle()
    return handle


def test_percentiles_leave_out_outliers():
    collector = convert.Percentiles(90)
    values = nd.concat(nd.arange(-50, 51), nd.array([1e6]), dim=0)
    collector.collect(b"layer", _given_away(values))
    low, high = collector.min_max_dict["layer"]
    assert -50 < low < -40
    assert 40 < high < 51
    collector.collect(b"positive", _given_away(nd.arange(1, 100)))
    assert collector.min_max_dict["positive"][0] == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"calibration": "kl"}, "take one of minmax, percentile, entropy"),
        ({"percentile": 0.999}, "percentile=0.999 must be above 50"),
        ({"batches": []}, "no batch to calibrate with"),
    ],
)
def test_what_cannot_be_is_refused(images, arguments, words):
    with pytest.raises(PlanError, match=words):
        quantization.quantize(_net(), **{"batches": [images], **arguments})


def test_other_files_and_networks_are_refused(images, tmp_path):
    (tmp_path / "text.npz").write_text("no archive")
    with pytest.raises(DataError, match=r"text.npz is no file of save_int8"):
        quantization.load_int8(tmp_path / "text.npz")
    np.savez(tmp_path / "other.npz", values=np.zeros(2))
    with pytest.raises(DataError, match=r"other.npz is no file of save_int8"):
        quantization.load_int8(tmp_path / "other.npz")
    with pytest.raises(PlanError, match="no layer of this network computes in int8"):
        quantization.save_int8(folded(_net(), images), tmp_path / "n.npz")


def test_the_sources_example_by_hand():
    # "Deep Learning with Python", 3rd edition, chapter 18, rounds and saturates by hand.
    integers, scale = quantization.to_int8([0.98, 0.41, -1.0, -3.2])
    assert integers.dtype == np.int8
    assert integers.tolist() == [39, 16, -40, -127]
    back = quantization.dequantized(integers, scale)
    assert np.abs(back - [0.98, 0.41, -1.0, -3.2]).max() <= scale.item() / 2
    each, scales = quantization.to_int8([[1.0, 2.0], [0.0, 0.0]], axis=0)
    assert each.tolist() == [[64, 127], [0, 0]]
    assert scales.shape == (2, 1)
    with pytest.raises(ValueError, match="not finite"):
        quantization.to_int8([1.0, np.inf])


def test_folded_networks_compute_the_same_without_batch_norms(images):
    net = _net()
    made = folded(net, images)
    assert not any("gamma" in name for name in made.collect_params())
    assert np.allclose(made(images).asnumpy(), net(images).asnumpy(), atol=1e-4)
    # A batch norm whose convolution is read elsewhere too has to stay.
    block = gluon.nn.HybridSequential()
    block.add(gluon.nn.BatchNorm(in_channels=3), *net)
    block[0].initialize()
    kept = folded(block, images)
    assert np.allclose(kept(images).asnumpy(), block(images).asnumpy(), atol=1e-4)
    assert any("gamma" in name for name in kept.collect_params())
