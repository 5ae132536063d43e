import json
import math

import pytest

from mxopt.errors import RecordError
from mxopt.plan import Plan
from mxopt.records import FORMAT, RecordWriter, read_run


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


def test_a_run_without_an_end_was_killed(tmp_path):
    run = read_run(written(tmp_path / "run.jsonl", end=False))
    assert run.status == "killed"
    assert len(run.all("epoch")) == 2


def test_a_last_line_cut_short_is_left_out(tmp_path):
    path = written(tmp_path / "run.jsonl")
    path.write_bytes(path.read_bytes()[:-9])
    assert read_run(path).status == "killed"


def test_a_damaged_line_is_named(tmp_path):
    path = written(tmp_path / "run.jsonl")
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([lines[0], "{half\n", *lines[2:]]))
    with pytest.raises(RecordError, match=r"run.jsonl, line 2"):
        read_run(path)


def test_a_newer_format_is_refused(tmp_path):
    with pytest.raises(RecordError, match=f"format {FORMAT + 1}.*install a newer mxopt"):
        read_run(written(tmp_path / "run.jsonl", format=FORMAT + 1))


@pytest.mark.parametrize("content", ["", "hello\n", '{"event": "epoch", "at": 0}\n', "\xff\n"])
def test_what_is_no_record_is_refused(tmp_path, content):
    path = tmp_path / "run.jsonl"
    path.write_text(content, encoding="latin-1")
    with pytest.raises(RecordError, match=r"run\.jsonl"):
        read_run(path)


def test_a_record_is_never_overwritten(tmp_path):
    path = written(tmp_path / "run.jsonl")
    before = path.read_bytes()
    with pytest.raises(RecordError, match="never overwritten"):
        RecordWriter(path)
    assert path.read_bytes() == before


def test_a_folder_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "results").write_text("")
    with pytest.raises(RecordError, match="results"):
        RecordWriter(tmp_path / "results" / "run.jsonl")
