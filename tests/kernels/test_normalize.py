"""The function that normalises images, beside MXNet's operators."""

import os

import numpy as np
import pytest
from mxnet import nd

from mxopt import kernels

if not kernels.available():
    pytest.skip("no compiler for mxopt's kernels", allow_module_level=True)

MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def photographs(*shape):
    return np.random.RandomState(0).randint(0, 256, shape).astype(np.uint8)


def normalized(pixels):
    samples, height, width, _ = pixels.shape
    planes = np.full((samples, 3, height, width), np.nan, np.float32)
    kernels.normalize(pixels, MEAN, DEVIATION, planes)
    return planes


def by_mxnet(pixels):
    tensor = nd.image.to_tensor(nd.array(pixels, dtype="uint8"))
    return nd.image.normalize(tensor, MEAN, DEVIATION).asnumpy()


@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 5, 3), (3, 17, 31), (1, 64, 48), (2, 1, 257)])
def test_images_of_any_size_are_as_mxnet_s_operators_make_them(shape):
    pixels = photographs(*shape, 3)
    np.testing.assert_array_equal(normalized(pixels), by_mxnet(pixels))


def test_a_part_of_an_image_is_read_as_it_lies():
    pixels = photographs(2, 20, 30, 3)[:, 3:17, 5:22]
    np.testing.assert_array_equal(normalized(pixels), by_mxnet(np.ascontiguousarray(pixels)))


def test_no_images_give_none():
    assert normalized(photographs(0, 4, 4, 3)).shape == (0, 3, 4, 4)


@pytest.mark.parametrize(
    ("shape", "dtype", "planes", "to"),
    [
        ((1, 4, 4, 4), np.uint8, (1, 4, 4, 4), np.float32),
        ((1, 4, 5, 3), np.uint8, (1, 3, 5, 4), np.float32),
        ((2, 4, 4, 3), np.uint8, (1, 3, 4, 4), np.float32),
        ((1, 4, 4, 3), np.int32, (1, 3, 4, 4), np.float32),
        ((1, 4, 4, 3), np.uint8, (1, 3, 4, 4), np.float64),
    ],
)
def test_other_shapes_and_dtypes_are_refused(shape, dtype, planes, to):
    with pytest.raises(ValueError, match="must be"):
        kernels.normalize(np.zeros(shape, dtype), MEAN, DEVIATION, np.zeros(planes, to))


def test_planes_that_do_not_lie_in_one_piece_are_refused():
    planes = np.zeros((1, 3, 4, 8), np.float32)[..., ::2]
    with pytest.raises(ValueError, match="one piece"):
        kernels.normalize(photographs(1, 4, 4, 3), MEAN, DEVIATION, planes)


def test_planes_that_cannot_be_written_are_refused():
    planes = np.zeros((1, 3, 4, 4), np.float32)
    planes.setflags(write=False)
    with pytest.raises(ValueError, match="writable"):
        kernels.normalize(photographs(1, 4, 4, 3), MEAN, DEVIATION, planes)


@pytest.mark.parametrize("constants", [((0.5,), DEVIATION), (MEAN, (0.2,) * 4)])
def test_other_than_three_constants_are_refused(constants):
    planes = np.zeros((1, 3, 4, 4), np.float32)
    with pytest.raises(ValueError, match="3 numbers each"):
        kernels.normalize(photographs(1, 4, 4, 3), *constants, planes)


def test_a_forked_process_can_call_it():
    pixels, expected = photographs(1, 6, 7, 3), by_mxnet(photographs(1, 6, 7, 3))
    child = os.fork()
    if not child:
        os._exit(0 if (normalized(pixels) == expected).all() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
