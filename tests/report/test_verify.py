"""Published results are recomputed, and every way to spoil them is seen."""

import json
import re
import shutil
from pathlib import Path

import pytest

from mxopt.cli.main import main
from mxopt.report import results
from mxopt.report.verify import verify

README = Path(__file__).parents[2] / "README.md"
RECORDS = README.parent / "docs" / "results"
EXPERIMENT = Path("8_2") / "segmentation.jsonl"


@pytest.fixture
def copy(tmp_path):
    return Path(shutil.copytree(RECORDS, tmp_path / "results"))


def spoil(path, event, change):
    """Apply a change to every event of that name in the first run of a packed experiment."""
    lines, runs = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()], 0
    for line in lines:
        runs += line["event"] == "start"
        if line["event"] == event and runs == 1:
            change(line)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def remove_last_run(path):
    first, *lines = path.read_text(encoding="utf-8").splitlines()
    last = max(n for n, line in enumerate(lines) if json.loads(line)["event"] == "start")
    lines = [json.dumps({**json.loads(first), "lines": 1 + last}), *lines[:last]]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_what_the_repository_shows_holds(capsys):
    assert verify(RECORDS, README) == []
    assert main(["verify", str(RECORDS), "--readme", str(README)]) == 0
    assert capsys.readouterr().out == f"{RECORDS}: holds\n"


SPOILED = {
    "another figure": ("end", lambda e: e["figures"].update(seconds=1.0), "RESULTS.md: line"),
    "NaN": ("end", lambda e: e["figures"].update(test_mIoU="nan"), "success, and its test_mIoU"),
    "an infinite figure": (
        "end",
        lambda e: e["figures"].update(test_loss="inf"),
        "its test_loss is infinite",
    ),
    "a loss that is no number": (
        "steps",
        lambda e: e["losses"].append("nan"),
        r"\d of its steps' losses are not finite",
    ),
    "a killed run": ("end", lambda e: e.update(event="gone"), "RESULTS.md: line"),
    "no reason": ("end", lambda e: e.update(status="failed"), "ended as failed without a reason"),
    "another plan": ("start", lambda e: e["plan"].update(batch_size=8), "plan.*batch_size"),
    "other options": ("start", lambda e: e["options"].update(size=96), "its options"),
    "fewer samples": ("steps", lambda e: e["sizes"].pop(), "its steps hold 324 samples"),
    "less data": ("data", lambda e: e.update(train=100), "its plan asks for 300"),
    "an epoch less": (
        "epoch",
        lambda e: e.update(event="check" if e["epoch"] == 1 else "epoch"),
        "trained 2 epochs, its plan asks for 3",
    ),
}


@pytest.mark.parametrize("name", SPOILED)
def test_a_spoiled_record_is_seen(copy, name):
    event, change, message = SPOILED[name]
    spoil(copy / EXPERIMENT, event, change)
    assert any(re.search(message, problem) for problem in verify(copy))


def test_a_missing_run_is_seen(copy):
    remove_last_run(copy / EXPERIMENT)
    assert any("arm after has 2 runs, others have 3" in problem for problem in verify(copy))


def test_a_page_that_says_something_else_is_seen(copy, capsys):
    page = copy / results.PAGE
    page.write_text(page.read_text(encoding="utf-8").replace("faster", "much faster", 1))
    assert main(["verify", str(copy)]) == 1
    said = capsys.readouterr().out
    assert "is not what the records give; run mxopt report" in said
    assert said.endswith("1 problem\n")


def test_a_missing_page_is_seen(copy):
    (copy / results.PAGE).unlink()
    assert any("cannot be read" in problem for problem in verify(copy))
