"""The workloads of stored photographs and of several record files compute what they say."""

import shutil

import numpy as np
import pytest
from mxnet import nd

from mxopt import Plan
from mxopt.chapter import storage_workloads
from mxopt.chapter.reading import consume
from mxopt.chapter.storage_workloads import photographs, several
from mxopt.core.errors import PlanError
from mxopt.data import sources

PLAN = Plan(batch_size=4, transforms="opencv")
PEOPLE = {"network": "tiny", "size": 32, "limit": 3}


def unused(event, **fields):
    """In place of a record."""


def test_reading_is_timed_without_earlier_work_and_without_a_slow_sum(monkeypatch):
    """The clock waits for the engine before the first batch is asked for."""
    happened, wait = [], nd.waitall
    arrays = [nd.array(np.full((2, 3), number), dtype="uint8") for number in (255, 1)]
    expected = sum(float(array.astype("float64").sum().asscalar()) for array in arrays)

    def waitall():
        happened.append("wait")
        wait()

    def batches():
        happened.append("batch")
        yield from arrays

    def slow(*_, **__):
        raise AssertionError("MXNet has summed")

    monkeypatch.setattr(nd, "waitall", waitall)
    monkeypatch.setattr(nd.NDArray, "sum", slow)
    found = consume(batches())
    assert happened == ["wait", "batch", "wait"]
    assert found["checksum"] == expected == 6 * 256
    assert found["images"] == 4
    assert 0 < found["first_seconds"] <= found["seconds"]


def test_photographs_in_records_are_scored_as_the_files_are():
    kinds = []

    def write(event, **fields):
        kinds.append(event)

    files = photographs(PLAN, write, cold=True, **PEOPLE)
    records = photographs(PLAN, unused, "records", cold=True, **PEOPLE)
    scores = [name for name in files if name.startswith("test_")]
    assert "test_mIoU" in scores
    assert {name: files[name] for name in scores} == {name: records[name] for name in scores}
    assert sorted(kinds) == ["data", "weights"]
    assert files["images_per_second"] == pytest.approx(3 / files["seconds"])
    assert files["bytes"] > 0


def test_photographs_of_a_given_folder_are_counted_and_read(tmp_path):
    found = sources.stand_in("penn-fudan").path
    shutil.copytree(found, tmp_path / "own")
    images = sorted((tmp_path / "own").rglob("*.png"))
    before = photographs(PLAN, unused, root=str(tmp_path / "own"), **PEOPLE)["bytes"]
    for path in images:
        path.write_bytes(path.read_bytes() + bytes(100))  # ignored by readers of PNG
    after = photographs(PLAN, unused, root=str(tmp_path / "own"), cold=True, **PEOPLE)["bytes"]
    assert after - before == 100 * 2 * PEOPLE["limit"]


def test_smaller_photographs_have_fewer_bytes_and_other_pixels():
    whole, small, coarse = (
        photographs(PLAN, unused, "records", **how, **PEOPLE)
        for how in ({}, {"side": 32}, {"side": 32, "quality": 5})
    )
    assert whole["bytes"] > 2 * small["bytes"] > 2 * coarse["bytes"]
    assert len({found["test_loss"] for found in (whole, small, coarse)}) == 3


def test_photographs_refuse_what_they_cannot_store():
    with pytest.raises(PlanError, match="storage='tape' is not a choice"):
        photographs(PLAN, unused, "tape", **PEOPLE)
    with pytest.raises(PlanError, match="side and quality are those of records"):
        photographs(PLAN, unused, quality=95, **PEOPLE)
    with pytest.raises(PlanError, match="leave them out for Penn-Fudan's"):
        photographs(PLAN, unused, classes=3, **PEOPLE)


@pytest.mark.parametrize(
    "how", [{"files": 1}, {"files": 3}, {"files": 3, "ordered": False, "pausing": 2}]
)
def test_any_number_of_files_gives_the_same_pixels(how):
    found = several(PLAN, unused, images=50, stand_in=True, **how)
    one = several(PLAN, unused, files=2, images=50, stand_in=True)
    assert found["images"] == 50
    assert found["checksum"] == one["checksum"]


def test_files_pause_at_other_batches_and_only_those(monkeypatch):
    # 60 images in three files are 20 batches of one each, so that each file pauses twice.
    paused = []
    monkeypatch.setattr(storage_workloads.time, "sleep", paused.append)
    for pausing in range(4):
        several(PLAN.replace(batch_size=1), unused, 3, True, pausing, 60, stand_in=True)
        assert paused == [storage_workloads.PAUSE] * 2 * pausing
        paused.clear()
    for earlier, expected in ((0, [10, 20]), (3, [7, 17])):
        seen, at = iter(storage_workloads._pausing(range(1, 21), earlier)), []
        for number in seen:
            at += [number] * len(paused)
            paused.clear()
        assert at == expected


def test_no_two_files_pause_at_the_same_batch(monkeypatch):
    earlier = []
    monkeypatch.setattr(
        storage_workloads, "_pausing", lambda batches, n: earlier.append(n) or batches
    )
    several(PLAN, unused, 3, True, 3, 60, stand_in=True)
    assert earlier == [0, 3, 6]


def test_files_need_images():
    with pytest.raises(PlanError, match="files=0 must be at least 1"):
        several(PLAN, unused, files=0)
    with pytest.raises(PlanError, match="pausing=3 must be at least 0 and at most the 2 files"):
        several(PLAN, unused, files=2, pausing=3)
