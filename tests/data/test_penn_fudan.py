import os
import shutil

import mxnet as mx
import numpy as np
import pytest
from PIL import Image, ImageFile

from mxopt.core.errors import DataError
from mxopt.data import PennFudan, locate
from mxopt.data.images import read_grey
from mxopt.data.mask_folder import split_names

needs_real = pytest.mark.skipif(
    not os.environ.get("MXOPT_DATA"), reason="MXOPT_DATA names no folder with the real data"
)


@pytest.fixture
def copy(tmp_path, streets):
    """Eight street scenes that a test may damage: 6 for training, 1 and 1 held out."""
    for part, ending in (("PNGImages", ".png"), ("PedMasks", "_mask.png")):
        (tmp_path / part).mkdir()
        for number in range(1, 9):
            name = f"{part}/Street{number:05d}{ending}"
            shutil.copy(streets / name, tmp_path / name)
    return tmp_path


@pytest.mark.parametrize(
    ("count", "sizes"), [(170, (120, 25, 25)), (48, (34, 7, 7)), (7, (5, 1, 1))]
)
def test_a_split_keeps_the_chapters_proportions(count, sizes):
    names = [f"{number:03d}" for number in range(count)]
    parts = [split_names(names[::-1], split) for split in ("train", "validation", "test")]
    assert tuple(map(len, parts)) == sizes
    assert [name for part in parts for name in part] == names


def test_an_empty_split_and_an_unknown_one_are_refused():
    with pytest.raises(DataError, match="test split is empty: 6 images are too few"):
        split_names(list("abcdef"), "test")
    with pytest.raises(DataError, match="no split 'valid'; there are: train, validation, test"):
        split_names(list("abcdefgh"), "valid")


def test_a_sample_is_an_image_and_a_mask_of_ones_and_zeros(copy):
    data = PennFudan("train", root=copy)
    image, mask = data[0]
    people = read_grey(copy / "PedMasks" / f"{data.names[0]}_mask.png")
    assert isinstance(image, mx.nd.NDArray)
    assert image.dtype == mask.dtype == np.uint8
    assert image.shape == (*people.shape, 3)
    assert (mask.asnumpy()[:, :, 0] == (people > 0)).all()
    assert people.max() > 1  # Several people become one class.


def test_the_kind_of_a_given_folder_is_seen(copy, streets):
    assert PennFudan("train", root=streets).location.kind == "stand-in"
    assert PennFudan("train", root=copy).location.kind == "real"


@pytest.mark.fault(
    "network",
    "there is no network and no data",
    sees="stand-in",
    lost="the real data's figures",
)
def test_without_a_network_the_stand_in_is_used_and_named(clean, monkeypatch, sees):
    monkeypatch.setattr("mxopt.data.penn_fudan.locate", lambda name: locate(name, **OFFLINE))
    data = PennFudan("validation")
    sees(data.location.kind)
    assert data.location.origin == "embedded"
    assert len(data) == 7


OFFLINE = {"allow_download": False}


def test_numpy_samples_have_the_same_values(copy):
    data = PennFudan("train", root=copy)
    assert len(data.in_numpy()) == len(data)
    for sample, other in zip(data, data.in_numpy()):
        for array, values in zip(sample, other):
            assert (type(array), type(values)) == (mx.nd.NDArray, np.ndarray)
            assert (array.dtype, array.shape) == (values.dtype, values.shape)
            assert (array.asnumpy() == values).all()


def crop(image, mask):
    return image[:96, :96], mask[:96, :96]


def test_workers_deliver_what_one_process_delivers(copy):
    data = PennFudan("train", root=copy).transform(crop)
    alone, together = (
        [
            (image.asnumpy(), mask.asnumpy())
            for image, mask in mx.gluon.data.DataLoader(data, batch_size=4, num_workers=workers)
        ]
        for workers in (0, 2)
    )
    assert len(alone) == len(together) == 2
    for (image, mask), (other_image, other_mask) in zip(alone, together):
        assert (image == other_image).all()
        assert (mask == other_mask).all()


@pytest.mark.parametrize("victim", ["PNGImages/Street00001.png", "PedMasks/Street00001_mask.png"])
@pytest.mark.fault(
    "files",
    "an image or a mask is cut off",
    sees="cannot be decoded ... it is cut off or not an image, fetch it again or remove it",
)
def test_a_truncated_file_is_named(copy, victim, monkeypatch, sees):
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True)  # as importing GluonCV does
    content = (copy / victim).read_bytes()
    (copy / victim).write_bytes(content[: len(content) // 2])
    data = PennFudan("train", root=copy)
    with sees.raised(DataError) as refused:
        data[0]
    assert victim in str(refused.value)
    data[1]


def test_an_empty_file_is_named(copy):
    (copy / "PNGImages" / "Street00001.png").write_bytes(b"")
    with pytest.raises(DataError, match=r"Street00001\.png cannot be decoded"):
        PennFudan("train", root=copy)[0]


def test_a_mask_of_another_size_names_both_files_and_sizes(copy):
    image = Image.open(copy / "PNGImages" / "Street00002.png")
    Image.fromarray(np.zeros((10, 20), np.uint8)).save(copy / "PedMasks" / "Street00002_mask.png")
    data = PennFudan("train", root=copy)
    with pytest.raises(DataError) as refused:
        data[1]
    for part in (
        "Street00002_mask.png",
        "Street00002.png",
        "20 x 10",
        "{} x {}".format(*image.size),
    ):
        assert part in str(refused.value)


@pytest.mark.fault(
    "files", "a mask is in colours", sees="one 8-bit channel of class numbers is needed"
)
def test_a_mask_in_colours_is_refused(copy, sees):
    path = copy / "PedMasks" / "Street00001_mask.png"
    Image.open(path).convert("RGB").save(path)
    with sees.raised(DataError):
        PennFudan("train", root=copy)[0]


def test_images_and_masks_must_pair_up(copy):
    (copy / "PedMasks" / "Street00003_mask.png").unlink()
    with pytest.raises(DataError, match=r"1 image under .* without its mask: Street00003\."):
        PennFudan("train", root=copy)
    (copy / "PNGImages" / "Street00003.png").unlink()
    (copy / "PNGImages" / "Street00004.png").unlink()
    with pytest.raises(DataError, match=r"1 mask under .* without its image: Street00004\."):
        PennFudan("train", root=copy)
    shutil.rmtree(copy / "PedMasks")
    with pytest.raises(DataError, match="has no sub-folder PedMasks"):
        PennFudan("train", root=copy)


@needs_real
def test_the_real_split_is_the_chapters_in_images_and_people():
    counts = {}
    for split in ("train", "validation", "test"):
        data = PennFudan(split)
        if data.location.kind != "real":
            pytest.skip("MXOPT_DATA has no PennFudanPed")
        masks = (
            read_grey(data.location.path / "PedMasks" / f"{name}_mask.png") for name in data.names
        )
        counts[split] = (len(data), sum(len(np.unique(mask[mask > 0])) for mask in masks))
    # Images, and pedestrians as the chapter counts them.
    assert counts == {"train": (120, 307), "validation": (25, 68), "test": (25, 48)}
