import io
import re
import sys

import numpy as np
import pytest
from PIL import Image

from mxopt.core.errors import DataError, DeviceError, PlanError
from mxopt.core.plan import Plan
from mxopt.data.images import read_colour, read_grey
from mxopt.methods import image_decoder
from mxopt.methods.image_decoder import DECODERS, decode_png, png
from mxopt.recipes.segmentation.recipe import segmentation
from mxopt.train.fit import fit

RANDOM = np.random.default_rng(0)


def written(mode="RGB", sides=(31, 45), **how):
    """Return a PNG file of random pixels, and its pixels as Pillow reads them."""
    bands = len(Image.new(mode, (1, 1)).getbands())
    pixels = RANDOM.integers(0, 256, (*sides, bands), np.uint8)
    image = Image.fromarray(pixels[:, :, 0] if bands == 1 else pixels).convert(mode)
    if mode == "P":
        image.putpalette(list(range(256)) * 3)
    file = io.BytesIO()
    image.save(file, "png", **how)
    with Image.open(file) as read:
        return file.getvalue(), np.asarray(read)


@pytest.mark.parametrize(("mode", "channels"), [("RGB", 3), ("L", 1)])
@pytest.mark.parametrize("sides", [(31, 45), (1, 1), (480, 3)])
def test_kornia_reads_the_numbers_that_pillow_reads(mode, channels, sides):
    content, expected = written(mode, sides)
    found = decode_png(content, channels)
    assert (found.shape, found.dtype) == ((*sides, channels), np.uint8)
    np.testing.assert_array_equal(found.reshape(expected.shape), expected)


@pytest.mark.parametrize(
    ("mode", "channels"), [("RGBA", 3), ("L", 3), ("RGB", 1), ("P", 1), ("1", 1), ("P", 3)]
)
def test_other_kinds_of_pixels_are_left_to_pillow(tmp_path, mode, channels):
    content, expected = written(mode)
    assert decode_png(content, channels) is None
    path = tmp_path / "image.png"
    path.write_bytes(content)
    if channels == 1 and mode != "RGB":
        found = read_grey(path, decode_png)
        np.testing.assert_array_equal(found, expected.astype(np.uint8))
    elif channels == 3:
        np.testing.assert_array_equal(read_colour(path, decode_png), read_colour(path))


def test_a_transparent_colour_makes_no_difference():
    content, expected = written(transparency=(1, 2, 3))
    found = decode_png(content, 3)
    assert found is None or (found == expected).all()


def test_other_files_are_left_to_pillow(monkeypatch):
    image = io.BytesIO()
    Image.new("RGB", (8, 8)).save(image, "jpeg")
    interlaced = bytearray(written()[0])
    interlaced[28] = 1
    monkeypatch.setattr(png.io, "decode_image_png_u8", lambda *_: pytest.fail("it was decoded"))
    for content in (b"", b"\x89PNG", written()[0][:20], image.getvalue(), bytes(interlaced)):
        assert decode_png(content, 3) is None


def test_a_header_of_more_pixels_than_a_photograph_has_is_left_to_pillow(monkeypatch):
    content, _ = written()
    monkeypatch.setattr(png, "_PIXELS", 31 * 45 - 1)
    monkeypatch.setattr(png.io, "decode_image_png_u8", lambda *_: pytest.fail("it was decoded"))
    assert decode_png(content, 3) is None


def test_a_damaged_file_is_named_and_pillow_says_what_is_wrong(tmp_path):
    content, _ = written()
    path = tmp_path / "image.png"
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(DataError, match=r"image\.png cannot be decoded \(Truncated"):
        read_colour(path, decode_png)


def test_the_option_decides_who_reads_and_training_is_the_same(monkeypatch):
    read, losses = set(), []

    def count(content, channels):
        read.add(content)
        return decode_png(content, channels)

    monkeypatch.setattr(png, "decode_png", count)
    for name, files in (("pillow", 0), ("kornia", 12)):
        recipe = segmentation(size=32, limit=2, image_decoder=name)
        losses.append(fit(recipe, Plan(batch_size=2), lambda event, **fields: None)["train_loss"])
        assert len(read) == files  # images and masks of three splits
    assert losses[0] == losses[1]


def test_a_folder_of_masks_is_read_by_it_too(tmp_path):
    for folder, mode in (("images", "RGB"), ("masks", "L")):
        (tmp_path / folder).mkdir()
        for number in range(7):
            (tmp_path / folder / f"{number}.png").write_bytes(written(mode)[0])
    options = {"root": str(tmp_path), "classes": 256, "size": 16}
    for mine, theirs in zip(
        *(segmentation(image_decoder=name, **options).data().train for name in DECODERS)
    ):
        for found, expected in zip(mine, theirs):
            np.testing.assert_array_equal(found.asnumpy(), expected.asnumpy())


def test_an_unknown_decoder_and_a_missing_package_are_named(monkeypatch):
    with pytest.raises(PlanError, match="image_decoder='opencv' is not a choice; take pillow or"):
        segmentation(image_decoder="opencv")
    monkeypatch.delitem(sys.modules, "mxopt.methods.image_decoder.png", raising=False)
    monkeypatch.setitem(sys.modules, "kornia_rs", None)
    with pytest.raises(DeviceError, match=re.escape("pip install 'kornia-rs>=0.2'")):
        image_decoder.find("kornia")
    assert image_decoder.find("pillow") is None
