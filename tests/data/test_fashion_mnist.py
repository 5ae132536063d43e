import gzip
import os
import struct

import mxnet as mx
import numpy as np
import pytest

from mxopt.core.errors import DataError
from mxopt.data import FashionMNIST, fashion_mnist, reachable


def pack(array):
    return gzip.compress(
        struct.pack(f">{1 + array.ndim}i", 0x800 + array.ndim, *array.shape) + array.tobytes()
    )


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Seven training images, the last two of which are for validation, and three for the test."""
    monkeypatch.setattr(fashion_mnist, "VALIDATION_SHARE", 3)
    for stem, count in (("train", 7), ("t10k", 3)):
        labels = np.arange(count, dtype=np.uint8)
        images = np.zeros((count, 28, 28), np.uint8) + labels[:, None, None]
        (tmp_path / f"{stem}-images-idx3-ubyte.gz").write_bytes(pack(images))
        (tmp_path / f"{stem}-labels-idx1-ubyte.gz").write_bytes(pack(labels))
    return tmp_path


@pytest.mark.parametrize(
    ("split", "labels"), [("train", [0, 1, 2, 3, 4]), ("validation", [5, 6]), ("test", [0, 1, 2])]
)
def test_the_last_training_images_are_the_validation_split(folder, split, labels):
    data = FashionMNIST(split, folder)
    assert [label for _, label in data] == labels
    assert len(data) == len(labels)
    assert [image.asnumpy().max() for image, _ in data] == labels


def test_a_sample_is_an_image_with_a_channel_and_an_int(folder):
    image, label = FashionMNIST("train", folder)[3]
    assert (type(image), image.shape, image.dtype) == (mx.nd.NDArray, (28, 28, 1), np.uint8)
    assert type(label) is int


@pytest.mark.parametrize("workers", [0, 1])
def test_a_loader_makes_batches(folder, workers):
    loader = mx.gluon.data.DataLoader(FashionMNIST("train", folder), 5, num_workers=workers)
    ((images, labels),) = loader
    assert images.shape == (5, 28, 28, 1)
    assert labels.asnumpy().tolist() == [0, 1, 2, 3, 4]


def test_damaged_files_are_named(folder):
    labels = folder / "train-labels-idx1-ubyte.gz"
    whole = labels.read_bytes()
    for content, message in (
        (whole[:20], "cannot be read"),
        (gzip.compress(b"hello"), "not a complete IDX file"),
        (gzip.compress(gzip.decompress(whole)[:-1]), "not a complete IDX file"),
        (pack(np.zeros(6, np.uint8)), r"shape \(7, 28, 28\) and 6 labels"),
    ):
        labels.write_bytes(content)
        with pytest.raises(DataError, match=message):
            FashionMNIST("train", folder)
    labels.unlink()
    with pytest.raises(DataError, match=r"train-labels-idx1-ubyte\.gz cannot be read"):
        FashionMNIST("train", folder)
    with pytest.raises(DataError, match="no split 'val'; there are: train, validation, test"):
        FashionMNIST("val", folder)


@pytest.mark.skipif(
    not os.environ.get("MXOPT_DATA"), reason="MXOPT_DATA names no folder with the real data"
)
def test_the_real_splits_have_the_stated_sizes_and_all_classes():
    if not reachable("fashion-mnist")[0]:
        pytest.skip("MXOPT_DATA has no fashion-mnist")
    for split, count in (("train", 54_000), ("validation", 6_000), ("test", 10_000)):
        data = FashionMNIST(split)
        assert data.location.kind == "real"
        assert len(data) == count
        counts = np.bincount([data[row][1] for row in range(0, count, 10)])
        assert len(counts) == len(fashion_mnist.CLASSES)
        assert counts.min() > 0.08 * count / 10
