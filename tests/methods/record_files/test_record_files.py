"""Record files hold what was written, in every process and for every reader."""

import numpy as np
import pytest
from mxnet import gluon

from mxopt import Plan
from mxopt.chapter import reading
from mxopt.cli.main import main
from mxopt.core.errors import DataError, PlanError
from mxopt.data.fashion_mnist import FashionMNIST
from mxopt.methods.record_files import RecordPairs, native_reader, write_images, write_pairs


@pytest.fixture
def garments():
    random = np.random.RandomState(0)
    return [(random.randint(0, 256, (28, 28, 1)).astype("uint8"), n % 10) for n in range(11)]


@pytest.fixture
def pairs():
    random = np.random.RandomState(1)
    sizes = [(20 + n, 30 + 2 * n) for n in range(9)]
    return [(random.randint(0, 256, (*s, 3)).astype("uint8"),
             random.randint(0, 2, (*s, 1)).astype("uint8")) for s in sizes]  # fmt: skip


def test_gluon_reads_the_images_and_classes(tmp_path, garments):
    path = write_images(garments, tmp_path / "new" / "all.rec")
    found = gluon.data.vision.ImageRecordDataset(str(path), flag=0)
    assert len(found) == 11
    for (image, label), (expected, number) in zip(found, garments):
        assert (image.asnumpy() == expected).all()
        assert label == number
    assert [file.name for file in sorted(path.parent.iterdir())] == ["all.idx", "all.rec"]


@pytest.mark.parametrize("threads", [1, 2])
def test_the_native_reader_reads_them_too(tmp_path, garments, threads):
    path = write_images(garments, tmp_path / "all.rec")
    images, labels = [], []
    for batch in native_reader(path, (1, 28, 28), 4, threads, dtype="uint8"):
        images += list(batch.data[0].asnumpy()[: 4 - batch.pad, 0])
        labels += list(batch.label[0].asnumpy()[: 4 - batch.pad])
    assert labels == [label for _, label in garments]
    assert all((a == b[:, :, 0]).all() for a, (b, _) in zip(images, garments))


def test_shuffled_it_reads_every_image_once_in_another_order(tmp_path, garments):
    path = write_images(garments, tmp_path / "all.rec")
    orders = []
    for seed in (0, 1):
        reader = native_reader(path, (1, 28, 28), 11, shuffle=True, seed=seed, dtype="uint8")
        sums = next(iter(reader)).data[0].astype("float32").sum(axis=(1, 2, 3)).asnumpy()
        orders.append(sums.tolist())
    expected = [float(image.sum()) for image, _ in garments]
    assert sorted(orders[0]) == sorted(orders[1]) == sorted(expected)
    assert orders[0] != orders[1]


def test_parts_are_read_by_different_processes(tmp_path, garments):
    path = write_images(garments, tmp_path / "all.rec")
    seen = []
    for part in range(2):
        for batch in native_reader(path, (1, 28, 28), 1, part=(part, 2), dtype="uint8"):
            seen.append(float(batch.data[0].astype("float32").sum().asscalar()))
    assert sorted(seen) == sorted(float(image.sum()) for image, _ in garments)


@pytest.mark.parametrize("workers", [0, 2])
def test_images_and_masks_are_read_in_any_process(tmp_path, pairs, workers):
    found = RecordPairs(write_pairs(pairs, tmp_path / "pairs.rec"))
    assert len(found) == 9
    loader = gluon.data.DataLoader(found, 1, num_workers=workers)
    for (image, mask), (expected, true) in zip(loader, pairs):
        assert (image.asnumpy()[0] == expected).all()
        assert (mask.asnumpy()[0] == true).all()


def test_smaller_copies_keep_their_classes(tmp_path, pairs):
    found = RecordPairs(write_pairs(pairs, tmp_path / "small.rec", quality=95, side=10))
    for image, mask in found:
        assert min(image.shape[:2]) == 10
        assert mask.shape == (*image.shape[:2], 1)
        assert set(np.unique(mask.asnumpy())) <= {0, 1}


def test_what_cannot_be_written_or_read_is_named(tmp_path, garments):
    with pytest.raises(DataError, match="no sample"):
        write_images([], tmp_path / "a.rec")
    with pytest.raises(DataError, match=r"has to end in \.rec"):
        write_images(garments, tmp_path / "a.records")
    with pytest.raises(DataError, match="does not exist; write it"):
        RecordPairs(tmp_path / "b.rec")
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match="cannot be written"):
        write_images(garments, tmp_path / "file" / "a.rec")
    assert not list(tmp_path.glob("*.rec"))


@pytest.mark.parametrize("write", [write_images, write_pairs])
@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"quality": 300}, "quality=300 must be from 1 to 100"),
        ({"quality": -1}, "quality=-1 must be from 1 to 100"),
        ({"side": -4}, "side=-4 must be at least 1 pixel"),
        ({"side": 0}, "side=0 must be at least 1 pixel"),
    ],
)
def test_numbers_out_of_range_are_refused(tmp_path, pairs, write, given, says):
    with pytest.raises(DataError, match=says):
        write(pairs, tmp_path / "new" / "a.rec", **given)
    assert not list(tmp_path.iterdir())


def test_a_folder_without_files_of_its_own_is_named(garments):
    with pytest.raises(DataError, match=r"/proc/x\.rec cannot be written \([^[]*\); free"):
        write_images(garments, "/proc/x.rec")


def test_a_full_disk_is_named(tmp_path, garments, little_disk):
    with little_disk(1000), pytest.raises(DataError, match=r"all\.rec cannot be written"):
        write_images(garments, tmp_path / "all.rec")
    assert not list(tmp_path.iterdir())


def test_a_failure_leaves_no_half_file(tmp_path, garments):
    class Broken(list):
        def __getitem__(self, index):
            if index == 3:
                raise DataError("image 3 is damaged")
            return super().__getitem__(index)

    with pytest.raises(DataError, match="image 3"):
        write_images(Broken(garments), tmp_path / "all.rec")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("storage", reading.STORAGE)
def test_every_storage_gives_the_same_pixels(tmp_path, storage):
    plan = Plan(batch_size=8)
    found = reading.read(plan, lambda *a, **k: None, storage, 20, True, str(tmp_path))
    images = FashionMNIST("train").take(20)
    assert found["checksum"] == sum(float(image.asnumpy().sum()) for image, _ in images)
    assert found["bytes"] > 0
    assert 0 < found["first_seconds"] <= found["seconds"]
    with pytest.raises(PlanError, match="storage='tape' is not a choice"):
        reading.read(plan, lambda *a, **k: None, "tape")


def test_the_command_writes_images_and_pairs(tmp_path, capsys):
    garments = ["--option", "stand_in=true", "--option", "limit=12"]
    assert main(["write-records", "fashion_mnist", str(tmp_path / "g.rec"), *garments]) == 0
    assert "g.rec: 12 samples" in capsys.readouterr().out
    assert sum(len(b.data[0]) for b in native_reader(tmp_path / "g.rec", (1, 28, 28), 4)) == 12
    people = ["--split", "test", "--side", "32", "--option", "limit=3"]
    assert main(["write-records", "segmentation", str(tmp_path / "p.rec"), *people]) == 0
    pairs = RecordPairs(tmp_path / "p.rec")
    assert len(pairs) == 3
    assert min(pairs[0][0].shape[:2]) == 32
    assert main(["write-records", "translation", str(tmp_path / "t.rec")]) == 2
    assert "not images with a label or a mask" in capsys.readouterr().err
    before = (tmp_path / "g.rec").read_bytes()
    assert main(["write-records", "fashion_mnist", str(tmp_path / "g.rec"), *garments]) == 2
    assert "g.rec exists already; delete it" in capsys.readouterr().err
    assert (tmp_path / "g.rec").read_bytes() == before


@pytest.mark.parametrize("given", [("--side", "-4"), ("--quality", "300"), ("--quality", "-1")])
def test_the_command_refuses_numbers_out_of_range(tmp_path, capsys, given):
    with pytest.raises(SystemExit) as stop:
        main(["write-records", "fashion_mnist", str(tmp_path / "g.rec"), *given])
    assert stop.value.code == 2
    assert f"{given[0]}: '{given[1]}' must be a whole number" in capsys.readouterr().err
