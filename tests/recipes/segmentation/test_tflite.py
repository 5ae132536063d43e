import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tflite_writer import one_convolution

from mxopt.core.errors import DataError
from mxopt.recipes.segmentation.tflite import read

WEIGHT = np.arange(2 * 3 * 3 * 3).reshape(2, 3, 3, 3)
BIAS = [7, -70000]
SMALL = one_convolution(WEIGHT, BIAS)


@pytest.fixture
def written(tmp_path):
    def write(content):
        path = tmp_path / "net.tflite"
        path.write_bytes(content)
        return path

    return write


@pytest.mark.parametrize("name", ["CONV_2D", "DEPTHWISE_CONV_2D"])
def test_a_convolution_is_read_with_its_numbers_and_options(written, name):
    [operator] = read(written(one_convolution(WEIGHT, BIAS, name=name)))
    assert operator.name == name
    assert operator.options == {
        "padding": "same", "stride": (2, 1), "dilation": (1, 2), "activation": "relu6",
    }  # fmt: skip
    image, weight, bias = operator.inputs
    assert (image.name, image.shape, image.stored) == ("input", (1, 8, 8, 3), None)
    assert weight.values().dtype == bias.values().dtype == np.float32
    np.testing.assert_array_equal(weight.values(), (WEIGHT - 3) * 0.5)
    np.testing.assert_array_equal(bias.values(), [2, -35001.5])
    assert [tensor.shape for tensor in operator.outputs] == [(1, 4, 4, 2)]
    with pytest.raises(DataError, match="'input' has no numbers"):
        image.values()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "bytes 4 to 7 are b''"),
        (b"\x89PNG\r\n\x1a\n" * 9, "not b'TFL3'"),
        (one_convolution(WEIGHT, BIAS, identifier=b"TFL2"), "b'TFL2'"),
        (one_convolution(WEIGHT, BIAS, version=2), "version 2, not 3"),
        (one_convolution(WEIGHT, BIAS, weight_buffer=9), "buffer 9 is missing, there are 3"),
        (one_convolution(WEIGHT, BIAS, scales=[0.5, 0.25]), "'weight' has 2 scales"),
        (one_convolution(WEIGHT, BIAS, scale=float("nan")), "scale nan"),
        (one_convolution(WEIGHT, BIAS, shape=(2, 3, 3, 4)), "54 bytes, which shape"),
        (one_convolution(WEIGHT, BIAS, shape=(-2, -3, 3, 3)), "shape"),
        (one_convolution(WEIGHT, BIAS, operators=0), "no operators"),
        (one_convolution(WEIGHT, BIAS, operators=10_001), "claims 10001 items"),
        (SMALL[: len(SMALL) - 30], "leads astray"),
    ],
)
def test_what_cannot_be_read_is_said_in_one_sentence_with_the_name(written, content, reason):
    path = written(content)
    with pytest.raises(DataError) as caught:
        read(path)
    message = str(caught.value)
    assert str(path) in message
    assert reason in message
    assert message.endswith("fetch them again.")


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(DataError, match="nowhere"):
        read(tmp_path / "nowhere.tflite")


def read_or_refuse(path, content):
    """Whatever the bytes: a ``DataError``, or operators whose stored numbers can be had."""
    path.write_bytes(content)
    try:
        operators = read(path)
    except DataError as error:
        assert str(path) in str(error)  # noqa: PT017
        return
    stored = [t for o in operators for t in o.inputs if t.stored is not None]
    assert all(tensor.stored.nbytes <= len(content) for tensor in stored)
    with np.errstate(over="ignore"):
        assert all(tensor.values().shape == tensor.shape for tensor in stored)


@settings(max_examples=300, deadline=2000)
@given(data=st.data())
def test_damage_never_ends_in_another_error(tmp_path_factory, data):
    damage(tmp_path_factory, data, SMALL, st.integers(0, len(SMALL) - 1))


@settings(max_examples=100, deadline=5000)
@given(data=st.data())
def test_damage_to_the_published_file_never_does_either(tmp_path_factory, weights, data):
    content = weights.read_bytes()
    # Most of the file is weights, any byte of which is as good as another: aim at the rest.
    arrays = [t.stored for o in read(weights) for t in o.inputs if t.stored is not None]
    runs = bytes(max(arrays, key=lambda array: array.nbytes))
    start = content.index(runs)
    positions = st.integers(0, start) | st.integers(start + len(runs), len(content) - 1)
    damage(tmp_path_factory, data, content, positions)


def damage(tmp_path_factory, data, content, positions):
    path = tmp_path_factory.getbasetemp() / "damaged.tflite"
    position = data.draw(positions)
    if data.draw(st.booleans()):
        read_or_refuse(path, content[:position])
    else:
        flipped = bytearray(content)
        flipped[position] ^= data.draw(st.integers(1, 255))
        read_or_refuse(path, bytes(flipped))


def test_the_published_weights_are_those_dequantised_elsewhere(weights):
    archive = weights.with_suffix(".dequant.npz")
    if not archive.is_file():
        pytest.skip(f"there is no {archive.name} beside the weights")
    convolutions = [o for o in read(weights) if o.name.endswith("CONV_2D")]
    with np.load(archive) as expected:
        assert len(expected.files) == 2 * len(convolutions) == 110
        for key in expected.files:
            order, name, _, part = key.split("|")
            operator = convolutions[int(order)]
            assert operator.name == name
            tensor = operator.inputs[1 if part == "weight" else 2]
            np.testing.assert_allclose(tensor.values(), expected[key], rtol=1e-6, err_msg=key)
