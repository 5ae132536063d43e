import json
import math
import time
from datetime import datetime

import pytest
import toy

from mxopt.core import records
from mxopt.core.errors import RecordError
from mxopt.core.plan import Plan
from mxopt.core.records import FORMAT, RecordWriter, being_written, read_run
from mxopt.train.fit import fit


def written(path, *, end=True, **start):
    with RecordWriter(path) as writer:
        header = {"format": FORMAT, "workload": "a:b", "plan": Plan(batch_size=7).as_dict()}
        writer.write("start", **{**header, **start})
        writer.write("epoch", loss=0.5)
        writer.write("epoch", loss=math.nan)
        if end:
            writer.write("end", status="ok", figures={"seconds": 2.0, "loss": -math.inf})
    return path


def test_a_record_reads_back_as_it_was_written(tmp_path):
    run = read_run(written(tmp_path / "deep" / "run.jsonl"))
    assert run.plan == Plan(batch_size=7)
    assert run.ok
    assert run.figures == {"seconds": 2.0, "loss": -math.inf}
    assert run.only("epoch")["loss"] == 0.5
    assert math.isnan(run.all("epoch")[1]["loss"])


def test_a_run_knows_what_it_was_and_when(tmp_path):
    with RecordWriter(tmp_path / "run.jsonl") as writer:
        writer.begin("a:b", Plan(epochs=3).as_dict(), {"size": 96})
    run = read_run(tmp_path / "run.jsonl")
    assert (run.workload, run.plan, run.options) == ("a:b", Plan(epochs=3), {"size": 96})
    assert run.started.startswith("20")
    assert run.started.endswith("+00:00")


def test_a_record_is_strict_json(tmp_path):
    lines = written(tmp_path / "run.jsonl").read_text().splitlines()
    for line in lines:
        json.loads(line, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))


@pytest.mark.fault(
    "files",
    "a record has no end",
    sees="the process ended without writing its result",
    lost="the run's figures; its epochs are there",
)
def test_a_run_without_an_end_was_killed(tmp_path, sees):
    run = read_run(written(tmp_path / "run.jsonl", end=False))
    assert run.status == "killed"
    sees(run.reason)
    assert len(run.all("epoch")) == 2


@pytest.mark.fault("files", "a record's last line is cut off", sees="killed", lost="the line")
def test_a_last_line_cut_short_is_left_out(tmp_path, sees):
    path = written(tmp_path / "run.jsonl")
    path.write_bytes(path.read_bytes()[:-9])
    sees(read_run(path).status)


@pytest.mark.fault(
    "files",
    "a record's line is damaged",
    sees="run.jsonl, line 2: not an event of a run",
)
def test_a_damaged_line_is_named(tmp_path, sees):
    path = written(tmp_path / "run.jsonl")
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([lines[0], "{half\n", *lines[2:]]))
    with sees.raised(RecordError):
        read_run(path)


@pytest.mark.fault(
    "files",
    "a record was written by a newer mxopt",
    sees="install a newer mxopt to read it",
)
def test_a_newer_format_is_refused(tmp_path, sees):
    with sees.raised(RecordError):
        read_run(written(tmp_path / "run.jsonl", format=FORMAT + 1))


@pytest.mark.parametrize("content", ["", "hello\n", '{"event": "epoch", "at": 0}\n', "\xff\n"])
@pytest.mark.fault("files", "a record is empty, or some other file", sees="run.jsonl")
def test_what_is_no_record_is_refused(tmp_path, content, sees):
    path = tmp_path / "run.jsonl"
    path.write_text(content, encoding="latin-1")
    with sees.raised(RecordError):
        read_run(path)


@pytest.mark.fault(
    "sharing",
    "a record of that name is there already",
    sees="records are never overwritten; choose another results folder",
)
def test_a_record_is_never_overwritten(tmp_path, sees):
    path = written(tmp_path / "run.jsonl")
    before = path.read_bytes()
    with sees.raised(RecordError):
        RecordWriter(path)
    assert path.read_bytes() == before


@pytest.mark.fault(
    "disk",
    "the results folder cannot be written to",
    sees="choose a results folder that can be written to",
)
def test_a_folder_that_is_a_file_is_refused(tmp_path, sees):
    (tmp_path / "results").write_text("")
    with sees.raised(RecordError):
        RecordWriter(tmp_path / "results" / "run.jsonl")


@pytest.mark.fault(
    "disk",
    "the disk is full when a record is written",
    lost="what came after",
    sees="run.jsonl (No space left on device); free some space",
)
def test_a_full_disk_is_said_and_what_was_written_stays(tmp_path, sees):
    path = tmp_path / "run.jsonl"
    with RecordWriter(path) as writer:
        writer.begin("a:b", Plan().as_dict(), {})
        writer._file.close()
        writer._file = open("/dev/full", "w")  # noqa: SIM115
        with sees.raised(RecordError):
            writer.write("epoch", loss=0.5)
    assert read_run(path).status == "killed"


def test_a_record_at_work_is_told_from_one_that_was_killed(tmp_path):
    with RecordWriter(tmp_path / "run.jsonl") as writer:
        assert being_written(writer.path)
    assert not being_written(writer.path)


@pytest.mark.fault(
    "machine",
    "the clock is set back during a run",
    sees="0 times below zero",
    lost="nothing but the order of experiments on a page",
)
def test_a_clock_that_is_set_back_changes_no_duration(tmp_path, monkeypatch, sees):
    hours = iter(range(23, 0, -1))

    class Clock(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime(2026, 1, 1, next(hours), tzinfo=tz)

    monkeypatch.setattr(time, "time", lambda: 3600.0 * next(hours))
    monkeypatch.setattr(records, "datetime", Clock)
    with RecordWriter(tmp_path / "run.jsonl") as writer:
        writer.begin("toy", Plan().as_dict(), {})
        figures = fit(toy.toy(), Plan(epochs=2), writer.write)
        writer.write("end", status="ok", figures=figures)
    run = read_run(tmp_path / "run.jsonl")
    times = [event["at"] for event in run.events]
    assert times == sorted(times)
    seconds = [value for name, value in run.figures.items() if "second" in name]
    seconds += [event["seconds"] for event in run.events if "seconds" in event]
    assert len(seconds) > 5
    sees(f"{sum(value < 0 for value in seconds)} times below zero")
