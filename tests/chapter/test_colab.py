"""The first cell of the notebooks: the same in all, with one address, set in one place."""

import json
import shutil
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from mxopt.chapter import colab

CHAPTER = Path(__file__).parents[2] / "ch08"
# What Colab's Python has and others have not.
ON_COLAB = """
import sys, types
for name in ("google", "google.colab"):
    sys.modules[name] = types.ModuleType(name)
"""


def first(path):
    cells = json.loads(path.read_text())["cells"]
    return "".join(next(cell["source"] for cell in cells if cell["cell_type"] == "code"))


def test_all_notebooks_have_the_cell_and_another_address_is_set_in_one_place(tmp_path):
    assert {first(path) for path in CHAPTER.glob("*.ipynb")} == {colab.cell()}
    shutil.copytree(CHAPTER, tmp_path / "ch08")
    changed = colab.update(tmp_path / "ch08", "https://example.org/mine")
    assert len(changed) == len(list(CHAPTER.glob("*.ipynb")))
    for path in changed:
        assert 'SOURCE = "https://example.org/mine"' in first(path)
        assert colab.SOURCE not in first(path)
        nbformat.validate(nbformat.read(path, 4))
    assert colab.update(tmp_path / "ch08", "https://example.org/mine") == []


def run(source, tmp_path, monkeypatch, before=ON_COLAB):
    """Execute the cell as on Colab, with tools that only note how they were called."""
    for name in ("git", "make", "curl", "tar", "mkdir"):
        script = f'#!/bin/sh\necho "{name} $@" >> {tmp_path}/called\n'
        (tmp_path / name).write_text(script)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    cells = [nbformat.v4.new_code_cell(code) for code in (before, colab.cell(source))]
    notebook = nbformat.v4.new_notebook(cells=cells)
    NotebookClient(notebook, kernel_name="python3").execute()
    said = "".join(output.get("text", "") for output in cells[1].outputs)
    return (tmp_path / "called").read_text().splitlines(), said


def test_a_repository_is_cloned(tmp_path, monkeypatch):
    called, said = run(colab.SOURCE, tmp_path, monkeypatch)
    clone = f"git clone --quiet --depth 1 {colab.SOURCE} /content/mxopt"
    assert called == [clone, "make --silent -C /content/mxopt colab"]
    if not Path("/content/mxopt").exists():  # on Colab it does
        assert f"No mxopt at {colab.SOURCE}: set SOURCE" in said


def test_an_archive_is_unpacked(tmp_path, monkeypatch):
    address = "https://example.org/mxopt-1.0.tar.gz"
    called, _ = run(address, tmp_path, monkeypatch)
    assert called[0] == "mkdir -p /content/mxopt"
    assert f"curl -sSL {address}" in called
    assert "tar xz -C /content/mxopt --strip-components 1" in called


def test_elsewhere_the_cell_does_nothing(tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match="called"):
        run(colab.SOURCE, tmp_path, monkeypatch, before="")
