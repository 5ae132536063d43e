"""The stand-in of Fashion-MNIST: what ships is what the code draws."""

import draw_garments
import numpy as np
import pytest

from mxopt.data import FashionMNIST
from mxopt.data.sources import STAND_INS, stand_in


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    folder = tmp_path_factory.mktemp("garments")
    draw_garments.generate(folder)
    return folder


def test_the_shipped_garments_are_what_the_code_draws(drawn):
    shipped = stand_in("fashion-mnist").path
    assert {p.name for p in drawn.iterdir()} == {p.name for p in shipped.iterdir()}
    for split in ("train", "validation", "test"):
        ours, theirs = (FashionMNIST(split, folder) for folder in (drawn, shipped))
        assert (ours._images == theirs._images).all()
        assert (ours._labels == theirs._labels).all()
    assert (STAND_INS / "garments.zip").stat().st_size < 400_000


def test_the_splits_have_all_classes_and_say_what_they_are(drawn):
    for split, count in (("train", 1350), ("validation", 150), ("test", 500)):
        data = FashionMNIST(split, drawn)
        assert data.location.kind == "stand-in"
        assert len(data) == count
        assert np.bincount(data._labels, minlength=10).min() > 0.05 * count


def test_no_image_is_drawn_twice(drawn):
    images = np.concatenate([FashionMNIST(split, drawn)._images for split in ("train", "test")])
    assert len(np.unique(images.reshape(len(images), -1), axis=0)) == len(images)
