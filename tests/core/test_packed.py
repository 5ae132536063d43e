"""A packed experiment that is damaged is refused, and the message gives the line."""

import json
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mxopt.core.errors import MxoptError, RecordError
from mxopt.core.packed import FORMAT, joined, read_packed, read_run
from mxopt.core.plan import Plan

PLAN = Plan().as_dict()
LINES = [
    {"event": "experiment", "format": FORMAT, "lines": 12, "name": "demo",
     "arms": {"a": PLAN, "b": PLAN}},
    {"event": "machine", "machine": 1, "python": "3.11.7", "memory": {"total": 9}},
    {"event": "start", "arm": "a", "run": 1, "format": 1, "workload": "m:f", "plan": PLAN},
    {"event": "environment", "machine": 1, "at": 0.5, "memory": {"available": 7}},
    {"event": "steps", "losses": [0.1, "nan"]},
    {"event": "end", "status": "ok", "figures": {"seconds": 0.30000000000000004}},
    {"event": "start", "arm": "b", "run": 1, "format": 1, "workload": "m:f", "plan": PLAN},
    {"event": "steps", "losses": [0.2]},
    {"event": "end", "status": "refused", "reason": "no GPU", "figures": {}},
    {"event": "start", "arm": "a", "run": 2, "format": 1, "workload": "m:f", "plan": PLAN},
    {"event": "steps", "losses": [0.3]},
    {"event": "end", "status": "ok", "figures": {"seconds": "inf"}},
]  # fmt: skip


def write(folder, lines):
    path = folder / "demo.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_runs_are_read_with_their_machine_and_their_own_steps(tmp_path):
    description, runs = read_packed(write(tmp_path, LINES))
    assert description == {"name": "demo", "arms": {"a": PLAN, "b": PLAN}}
    first, second = runs["a"]
    assert first.events == [
        {"event": "environment", "at": 0.5, "python": "3.11.7",
         "memory": {"total": 9, "available": 7}}
    ]  # fmt: skip
    assert (first.figures["seconds"], second.figures["seconds"]) == (0.1 + 0.2, float("inf"))
    assert [[step["losses"] for step in run.steps()] for run in (*runs["b"], second)] == [
        [[0.2]], [[0.3]]
    ]  # fmt: skip
    assert runs["b"][0].status == "refused"
    assert str(second.path).endswith("demo.jsonl/a-02.jsonl")


def test_one_run_is_read_by_its_name(tmp_path):
    path = write(tmp_path, LINES)
    assert read_run(path / "a-02.jsonl") == read_packed(path)[1]["a"][1]
    such_as = re.escape(f", such as {path}/a-01.jsonl (arms: a, b)")
    with pytest.raises(RecordError, match=r"demo.jsonl holds no run a-03; name one .*" + such_as):
        read_run(path / "a-03.jsonl")
    with pytest.raises(RecordError, match=r"packed experiment; name a run in it" + such_as):
        read_run(path)
    record = tmp_path / "a-02.jsonl"
    record.write_text("".join(json.dumps(line) + "\n" for line in LINES[-3:]))
    assert read_run(record).figures == read_run(path / "a-02.jsonl").figures


@pytest.mark.parametrize("count", range(len(LINES)))
def test_a_file_that_ends_early_is_refused(tmp_path, count):
    with pytest.raises(RecordError, match=rf"demo.jsonl, line {max(1, count)}: "):
        read_packed(write(tmp_path, LINES[:count]))


def test_a_file_cut_within_any_line_is_refused(tmp_path):
    path = write(tmp_path, LINES)
    content = path.read_bytes()
    for length in range(0, len(content) - 1, 29):
        path.write_bytes(content[:length])
        line = max(1, len(content[:length].splitlines()))
        with pytest.raises(RecordError, match=rf"demo.jsonl, line {line}: "):
            read_packed(path)


def test_a_line_too_many_is_refused(tmp_path):
    with pytest.raises(RecordError, match=r"line 13: .* 12 lines"):
        read_packed(write(tmp_path, [*LINES, {"event": "epoch"}]))


@pytest.mark.parametrize(
    ("line", "change", "says"),
    [
        (1, {"event": "start"}, "not the description of an experiment"),
        (1, {"arms": None}, "not the description of an experiment"),
        (1, {"format": FORMAT + 1}, "install a newer mxopt"),
        (2, {"machine": 2}, "machine 1 expected"),
        (3, {"event": "epoch"}, "'epoch' comes before the start of a run"),
        (3, {"plan": None}, "its first line is not a start"),
        (3, {"plan": {"bach_size": 4}}, "bach_size"),
        (4, {"machine": 2}, "there is no machine 2"),
        (7, {"arm": "c"}, "a run of 'c', which is not an arm"),
        (7, {"run": 0}, "a run of b has the number 0"),
        (7, {"run": 2}, "run 2 of b, but run 1 is missing"),
        (10, {"run": 1}, "run 1 of a occurs twice"),
        (10, {"run": 3}, "run 3 of a, but run 2 is missing"),
    ],
)
def test_a_damaged_line_is_named(tmp_path, line, change, says):
    lines = [*LINES[: line - 1], {**LINES[line - 1], **change}, *LINES[line:]]
    with pytest.raises(RecordError, match=says) as error:
        read_packed(write(tmp_path, lines))
    assert f"demo.jsonl, line {line}" in str(error.value) or "newer" in says


def test_a_line_that_is_no_event_is_named(tmp_path):
    path = write(tmp_path, LINES)
    lines = path.read_bytes().splitlines(keepends=True)
    for damaged in (b"{half\n", b"\xff\n", b"[]\n", b"{}\n", b"[" * 100_000 + b"\n"):
        path.write_bytes(b"".join([*lines[:6], damaged, *lines[7:]]))
        with pytest.raises(RecordError, match=r"demo.jsonl, line 7: not an event of a run"):
            read_packed(path)


@settings(max_examples=200,
          suppress_health_check=[HealthCheck.function_scoped_fixture])  # fmt: skip
@given(data=st.data())
def test_damage_is_said_or_read_over(tmp_path, data):
    path = write(tmp_path, LINES)
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(content) - 1))
        content[place : place + 1] = data.draw(st.binary(max_size=3))
    path.write_bytes(content)
    try:
        read_packed(path)
    except MxoptError as error:
        assert str(error)  # noqa: PT017


def test_dictionaries_are_joined_as_deep_as_they_are():
    assert joined({"a": {"b": 1, "c": {}}, "d": 2}, {"a": {"c": {"e": None}}, "f": [1]}) == {
        "a": {"b": 1, "c": {"e": None}}, "d": 2, "f": [1],
    }  # fmt: skip
