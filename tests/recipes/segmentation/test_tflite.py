import numpy as np
import pytest
import tflite
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


@pytest.mark.parametrize("depthwise", [False, True])
def test_a_convolution_is_read_with_its_numbers_and_options(written, depthwise):
    [found] = read(written(one_convolution(WEIGHT, BIAS, depthwise=depthwise)))
    expected = (WEIGHT - 3) * 0.5
    expected = expected.transpose((3, 0, 1, 2) if depthwise else (0, 3, 1, 2))
    assert found.weight.dtype == found.bias.dtype == np.float32
    np.testing.assert_array_equal(found.weight, expected)
    np.testing.assert_array_equal(found.bias, [2, -35001.5])
    assert (found.stride, found.dilation) == ((2, 1), (1, 2))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "bytes 4 to 7 are b''"),
        (b"\x89PNG\r\n\x1a\n" * 9, "not b'TFL3'"),
        (one_convolution(WEIGHT, BIAS, identifier=b"TFL2"), "b'TFL2'"),
        (one_convolution(WEIGHT, BIAS, version=2), "version 2, not 3"),
        (one_convolution(WEIGHT, BIAS, weight_buffer=9), "9 of Buffers is missing"),
        (one_convolution(WEIGHT, BIAS, scales=[0.5, 0.25]), "'weight' has 2 scales"),
        (one_convolution(WEIGHT, BIAS, scales=[float("nan")]), "scale nan"),
        (one_convolution(WEIGHT, BIAS, scales=[]), "'weight' has 0 scales"),
        (one_convolution(WEIGHT, BIAS, weight_buffer=0), "'weight' has no values in the file"),
        (one_convolution(WEIGHT, BIAS, shape=(2, 3, 3, 4)), "54 values and the shape (2,"),
        (one_convolution(WEIGHT, BIAS, shape=[1] * 9), "has 9 axes"),
        (one_convolution(WEIGHT, BIAS, shape=(-2, -3, 3, 3)), "the shape (-2,"),
        (one_convolution(WEIGHT, BIAS, operators=0), "has 0 operators"),
        (one_convolution(WEIGHT, BIAS, operators=10_001), "has 10001 operators"),
        (SMALL[: len(SMALL) // 2], "points outside the file"),
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
    """Whatever the bytes: a ``DataError`` that names the file, or float32 arrays of its numbers."""
    path.write_bytes(content)
    try:
        with np.errstate(over="ignore"):
            found = read(path)
    except DataError as error:
        assert str(path) in str(error)  # noqa: PT017
        return
    for convolution in found:
        assert convolution.weight.dtype == convolution.bias.dtype == np.float32
        assert convolution.weight.size <= len(content)


@settings(max_examples=300)
@given(data=st.data())
def test_damage_never_ends_in_another_error(tmp_path_factory, data):
    damage(tmp_path_factory, data, SMALL, st.integers(0, len(SMALL) - 1))


@settings(max_examples=100)
@given(data=st.data())
def test_damage_to_the_published_file_never_does_either(tmp_path_factory, weights, data):
    content = weights.read_bytes()
    # Most of the file is weights, any byte of which is as good as another: aim at the rest.
    model = tflite.Model.GetRootAs(content)
    buffers = [model.Buffers(index) for index in range(model.BuffersLength())]
    runs = max((b.DataAsNumpy().tobytes() for b in buffers if not b.DataIsNone()), key=len)
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
    convolutions = read(weights)
    with np.load(archive) as expected:
        assert len(expected.files) == 2 * len(convolutions) == 110
        for key in expected.files:
            order, name, _, part = key.split("|")
            array = expected[key]
            if array.ndim == 4:
                array = array.transpose((3, 0, 1, 2) if "DEPTHWISE" in name else (0, 3, 1, 2))
            found = getattr(convolutions[int(order)], part)
            np.testing.assert_allclose(found, array, rtol=1e-6, err_msg=key)
