"""The tour itself is executed by `make reproduce`; here, how notebooks are run and kept."""

import json
import re
import sys
from pathlib import Path

import nbformat
import pytest

from mxopt.chapter import minutes, reproduce, tiers
from mxopt.chapter.reproduce import NotebookError
from mxopt.core.errors import DataError, PlanError, RecordError

CHAPTER = Path(__file__).parents[2] / "ch08"
MEASURE = """
import mxopt
from mxopt import Plan, plots
from mxopt.chapter.lab import open_lab
lab = open_lab("8_1")
demo = lab.measure("demo", "toy:sleepy", {"one": Plan(), "two": Plan(batch_size=2)}, repeats=1)
lab.keep(demo, "bars", plots.bars(demo))
"""


TWICE = MEASURE.replace("repeats=1", "repeats=2")  # and one arm again


def notebook(path, *sources):
    cells = [nbformat.v4.new_markdown_cell("# A heading")]
    cells += [nbformat.v4.new_code_cell(source) for source in sources]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)


def test_notebooks_are_run_and_their_results_kept(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("MXOPT_TIER", "")
    monkeypatch.setenv("MXOPT_RESULTS", "")
    monkeypatch.setenv("MXOPT_CACHE", str(tmp_path / "cache"))
    (tmp_path / "in").mkdir()
    notebook(tmp_path / "in" / "one.ipynb", MEASURE)
    home = reproduce.reproduce("smoke", tmp_path / "out", tmp_path / "in")
    page = (home / "RESULTS.md").read_text()
    assert "smoke (requested)" in page
    assert "| one → two | batch_size: 4 → 2 |" in page
    assert "8_1/demo/bars.png" in page
    executed = nbformat.read(home / "one.ipynb", 4)
    assert "image/png" in executed.cells[1].outputs[-1].data
    html = (home / "one.html").read_text()
    assert "data:image/png" in html
    assert "<script" not in html
    said = capsys.readouterr().out
    assert "tier: smoke (requested)" in said
    assert "one: A heading" in said
    assert "notebooks: done in" in said


def test_the_notebooks_say_why_the_tier_was_picked_and_the_time_is_said_first(
    tmp_path, capsys, monkeypatch
):
    for name in ("MXOPT_TIER", "MXOPT_TIER_WHY", "MXOPT_RESULTS"):
        monkeypatch.setenv(name, "")
    monkeypatch.setattr(tiers, "pick_tier", lambda tier: tiers.Tier("smoke", "no network"))
    monkeypatch.setattr(minutes, "of_notebooks", lambda tier: {"8_1": 4, "8_2": 2})
    (tmp_path / "in").mkdir()
    notebook(tmp_path / "in" / "8_1.ipynb", MEASURE)
    notebook(tmp_path / "in" / "8_2.ipynb", "1 + 1")
    home = reproduce.reproduce(None, tmp_path / "out", tmp_path / "in")
    assert (
        "tier: smoke (no network)" in nbformat.read(home / "8_1.ipynb", 4).cells[1].outputs[0].text
    )
    said = capsys.readouterr().out
    assert "time: about 6 min in all" in said
    assert "0 %, 8_1: A heading, about 6 min left" in said
    assert said.index("time:") < said.index("8_1: A heading")
    # A notebook took less than a second in place of minutes, and so will the other one.
    assert re.search(r"67 %, 8_2: A heading, about \d+ s left", said)


def test_what_a_long_run_adds_is_said_first(tmp_path, capsys, monkeypatch):
    for name in ("MXOPT_TIER", "MXOPT_TIER_WHY", "MXOPT_RESULTS", "MXOPT_LONG"):
        monkeypatch.setenv(name, "")
    monkeypatch.setattr(reproduce.lab, "find_data", lambda tier: [])
    (tmp_path / "in").mkdir()
    notebook(tmp_path / "in" / "8_1.ipynb", "1 + 1")
    notebook(tmp_path / "in" / "8_2.ipynb", "1 + 1", "print('not measured; LONG=1')")
    assert reproduce.only_long(tmp_path / "in" / "8_1.ipynb") == []
    for long in (False, True):
        monkeypatch.setattr(reproduce, "execute", lambda *how: None)
        with pytest.raises(RecordError, match="no experiments below"):
            reproduce.reproduce("cpu", tmp_path / f"out-{long}", tmp_path / "in", long=long)
        said = capsys.readouterr().out
        assert ("only with LONG=1, in 8_2: A heading\n" in said) == (not long)
        assert "LONG=1, in 8_1" not in said


@pytest.mark.fault(
    "runs",
    "a notebook's cell fails",
    sees="bad.ipynb stopped: ZeroDivisionError",
    lost="nothing; the notebook is kept as far as it came",
)
def test_a_failing_cell_is_named_and_the_notebook_kept(tmp_path, sees):
    (tmp_path / "out").mkdir()
    notebook(tmp_path / "bad.ipynb", "print('before')", "1 / 0")
    with sees.raised(NotebookError):
        reproduce.execute(tmp_path / "bad.ipynb", tmp_path / "out", lambda *_: None, 1)
    kept = nbformat.read(tmp_path / "out" / "bad.ipynb", 4)
    assert kept.cells[1].outputs[0].text == "before\n"


@pytest.mark.fault(
    "runs",
    "a notebook's kernel dies",
    sees="dead.ipynb stopped: DeadKernelError",
    lost="nothing; the notebook is kept as far as it came",
)
def test_a_kernel_that_dies_is_said(tmp_path, sees):
    notebook(tmp_path / "dead.ipynb", "import os; os._exit(1)")
    (tmp_path / "out").mkdir()
    with sees.raised(NotebookError):
        reproduce.execute(tmp_path / "dead.ipynb", tmp_path / "out", lambda *_: None, 1)
    assert (tmp_path / "out" / "dead.ipynb").exists()


def test_no_notebooks_is_said_before_anything_is_written(tmp_path):
    with pytest.raises(DataError, match="no notebooks"):
        reproduce.reproduce("smoke", tmp_path / "out", tmp_path)
    assert not (tmp_path / "out").exists()


@pytest.mark.fault(
    "sharing",
    "`make reproduce` is given a folder that holds results",
    sees="already holds results; choose another folder, or resume it",
)
def test_a_folder_with_results_is_refused(tmp_path, sees):
    notebook(tmp_path / "one.ipynb", "1")
    with sees.raised(RecordError):
        reproduce.reproduce("smoke", tmp_path, tmp_path)


def test_a_name_that_no_notebook_has_is_refused_with_those_that_are_there(tmp_path):
    with pytest.raises(DataError, match=r"begins with '8_9'; there are 8_1_.*, 8_2_"):
        reproduce.reproduce("smoke", tmp_path / "results", only="8_9")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("path", sorted(CHAPTER.glob("*.ipynb")), ids=lambda path: path.stem)
def test_the_chapters_notebooks_hold_no_outputs(path):
    cells = json.loads(path.read_text())["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert code
    assert not any(cell["outputs"] or cell["execution_count"] for cell in code)


def test_importing_mxopt_loads_no_mxnet():
    import subprocess

    code = "import mxopt, mxopt.cli, mxopt.chapter.reproduce, sys; sys.exit('mxnet' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.fault(
    "runs",
    "`make reproduce` is interrupted, and resumed",
    sees="Resumed: 6 runs are from before an interruption.",
)
def test_an_interrupted_notebook_is_resumed_and_measures_nothing_twice(tmp_path, monkeypatch, sees):
    for name in ("MXOPT_TIER", "MXOPT_RESULTS", "MXOPT_RESUME"):
        monkeypatch.setenv(name, "")
    monkeypatch.setenv("MXOPT_CACHE", str(tmp_path / "cache"))
    (tmp_path / "in").mkdir()
    notebook(tmp_path / "in" / "one.ipynb", TWICE, "1 / 0")
    with pytest.raises(NotebookError):
        reproduce.reproduce("smoke", tmp_path / "out", tmp_path / "in")
    records = sorted((tmp_path / "out").rglob("*.jsonl"))
    before = [record.stat().st_mtime_ns for record in records]
    notebook(tmp_path / "in" / "one.ipynb", TWICE)
    with pytest.raises(RecordError, match="or resume it"):
        reproduce.reproduce("smoke", tmp_path / "out", tmp_path / "in")
    home = reproduce.reproduce("smoke", tmp_path / "out", tmp_path / "in", resume=True)
    assert [record.stat().st_mtime_ns for record in records] == before
    page = (home / "RESULTS.md").read_text()
    sees(page)
    assert "**started**" in page
    assert "**resumed**" in page
    assert (home / "report.html").exists()


def test_to_resume_a_folder_must_be_named(tmp_path):
    notebook(tmp_path / "one.ipynb", "1")
    with pytest.raises(PlanError, match="name the results folder"):
        reproduce.reproduce("smoke", None, tmp_path, resume=True)
