"""What piles up: long records, many runs, large folders. Memory is what Python allocates."""

import contextlib
import os
import tracemalloc

import pytest

from mxopt.core.errors import DataError
from mxopt.core.plan import Plan
from mxopt.core.records import RecordWriter
from mxopt.data import MaskFolder
from mxopt.measure import Experiment, ratio, read_experiment
from mxopt.report import results
from mxopt.report.verify import code, verify
from mxopt.train import progress

MIB = 2**20


@contextlib.contextmanager
def at_most(mib):
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < mib * MIB
    finally:
        tracemalloc.stop()


def write_run(path, seconds, lines=(), **figures):
    with RecordWriter(path) as writer:
        writer.begin("w", Plan(epochs=max(1, len(lines))).as_dict(), {})
        writer.write("data", kind="stand-in", train=sum(lines[0]) if lines else 0)
        for epoch, sizes in enumerate(lines):
            writer.write("steps", epoch=epoch, losses=[0.25] * len(sizes), sizes=sizes)
            writer.write("epoch", epoch=epoch, seconds=seconds, samples=sum(sizes))
        writer.write("end", status="ok", reason="", figures={"seconds": seconds, **figures})


@pytest.mark.slow
def test_a_record_of_a_million_steps_is_reported_in_four_mebibytes(tmp_path, monkeypatch):
    monkeypatch.setattr(code, "source_at", lambda *where: "")  # git's archive is no record
    lines, length = 100, progress.STEPS_A_LINE
    record = tmp_path / "long" / "before-01.jsonl"
    write_run(record, 1.0, [[4] * length] * lines, samples=4_000_000)
    Experiment("long", "w", {"before": Plan(epochs=lines)}).save(record.parent)
    results.write_page(tmp_path)  # what it imports is not what it holds
    with at_most(4):
        found = verify(tmp_path)  # which writes the page again, to compare
    assert not [problem for problem in found if results.PAGE in problem or "samples" in problem]


def test_a_thousand_runs_in_a_folder_are_read_in_order_and_reported(tmp_path):
    arms = {"before": Plan(), "after": Plan(cpu_threads=1)}
    for arm in arms:
        for number in range(1, 501):
            seconds = 1.0 + number + len(arm) * (number % 3)  # the ratios of pairs differ
            write_run(tmp_path / "many" / f"{arm}-{number:02d}.jsonl", seconds)
    Experiment("many", "w", arms).save(tmp_path / "many")
    ratio([1.0] * 10, list(range(1, 11)))  # what it imports is not what it holds
    with at_most(48):
        found = read_experiment(tmp_path / "many")
        page = results.page(tmp_path)
    for arm in arms:
        assert found.figures(arm) == [1.0 + n + len(arm) * (n % 3) for n in range(1, 501)]
    assert "- **runs**: 1000" in page
    assert "n = 500" in page


def test_fifty_thousand_images_are_listed_and_split_unread(tmp_path):
    for folder in ("images", "masks"):
        (tmp_path / folder).mkdir()
        for number in range(50_000):
            os.mknod(tmp_path / folder / f"scene-{number:05d}.png")
    with at_most(32):
        splits = {s: MaskFolder(tmp_path, s, classes=2) for s in ("train", "validation", "test")}
    assert [len(split) for split in splits.values()] == [35_296, 7352, 7352]
    assert splits["test"].names[-1] == "scene-49999"
    with pytest.raises(DataError, match=r"scene-42648\.png"):  # there is nothing in the files
        splits["test"][0]
