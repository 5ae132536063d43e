"""Minutes of sections: from the times in executed notebooks, into the notebooks' heads."""

import json
import shutil
from pathlib import Path

import pytest

from mxopt.chapter import minutes
from mxopt.core.errors import RecordError

CHAPTER = Path(__file__).parents[2] / "ch08"


def executed(*parts):
    """Return cells: headings, and numbers of seconds that a cell took."""
    cells, now = [], 0
    for part in parts:
        if isinstance(part, str):
            cells.append({"cell_type": "markdown", "metadata": {}, "source": [part]})
            continue
        times = (f"2026-11-22T10:00:{second:02d}.500000Z" for second in (now, now + part))
        metadata = {"execution": dict(zip((minutes._BEGIN, minutes._END), times))}
        cells.append({"cell_type": "code", "metadata": metadata, "source": ["1"]})
        now += part
    return cells


@pytest.fixture
def results(tmp_path, monkeypatch):
    monkeypatch.setattr(minutes, "RECORD", tmp_path / "minutes.json")
    minutes.RECORD.write_text("{}")
    folder = tmp_path / "results"
    folder.mkdir()
    cells = executed(
        "# Title\n## Aims", 1, "## One\ntext", 10, 20, "### Part", 5, "text\n\n## Two", 8
    )
    (folder / "8_1_tour.ipynb").write_text(json.dumps({"cells": cells}))
    facts = {"tier": "smoke (requested)", "started": "2026-11-22 10:00"}
    (folder / "reproduce.json").write_text(json.dumps(facts))
    return folder


def test_a_section_has_the_seconds_of_its_cells():
    cells = executed(
        "# Title\n## Aims", 1, "## One\ntext", 10, 20, "### Part", 5, "text\n\n## Two", 8
    )
    assert minutes.of_sections(cells) == {"start": 1, "One": 35, "Two": 8}


def test_a_notebook_that_was_not_executed_is_refused():
    cells = executed("## One", 3)
    cells[1]["metadata"] = {}
    with pytest.raises(RecordError, match="cell 1 was not executed"):
        minutes.of_sections(cells)


def test_times_are_kept_and_shown_at_the_head(results, tmp_path):
    kept = minutes.take(results, "a machine, 2 cores")
    assert kept == minutes.known()
    assert kept["smoke"]["8_1"]["seconds"] == {"start": 1, "One": 35, "Two": 8}
    assert minutes.of_notebooks("smoke") == {"8_1": pytest.approx(44 / 60)}
    shutil.copytree(CHAPTER, tmp_path / "ch08")
    [changed] = (
        path
        for path in minutes.update(kept, [tmp_path / "ch08"])
        if "| One | 0.6 |" in "".join(json.loads(path.read_text())["cells"][0]["source"])
    )
    assert changed.name.startswith("8_1")
    head = "".join(json.loads(changed.read_text())["cells"][0]["source"])
    assert "| start |" not in head  # a second
    assert "| all | 0.7 |" in head
    assert "Measured on `smoke`: a machine, 2 cores, 2026-11-22." in head
    assert minutes.update(kept, [tmp_path / "ch08"]) == []


@pytest.mark.parametrize("fact", ["resumed", "long"])
def test_runs_that_do_not_tell_the_time_are_refused(results, fact):
    facts = json.loads((results / "reproduce.json").read_text())
    (results / "reproduce.json").write_text(json.dumps({**facts, fact: "yes"}))
    with pytest.raises(RecordError, match=fact):
        minutes.take(results, "a machine")
    assert minutes.known() == {}


def test_the_notebooks_show_what_is_kept():
    assert minutes.update(minutes.known(), write=False) == []
    for path in (path for folder in minutes.FOLDERS for path in folder.glob("*.ipynb")):
        head = "".join(json.loads(path.read_text())["cells"][0]["source"])
        assert minutes.BLOCK.search(head)
        for wanted in ("## Aims", "**Before you begin**", "| all |"):
            assert wanted in head
