"""Marked figures are written again, in pages and in notebooks."""

import json

import pytest

from mxopt.report import prose

OLD = 'It is <!-- = docs/x ratio a b -->1.2<!-- / --> "times" as fast.\n'


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setattr(prose, "evaluate", lambda expression, root: f"3.4 ({expression})")
    (tmp_path / "guides").mkdir()
    return tmp_path


def test_figures_of_pages_and_notebooks_are_written_again(root, capsys):
    page, guide = root / "README.md", root / "guides" / "one.ipynb"
    page.write_text(OLD)
    cells = [{"cell_type": kind, "source": ["# µs\n", OLD]} for kind in ("markdown", "code")]
    guide.write_text(json.dumps({"cells": cells}, indent=1, ensure_ascii=False) + "\n")
    before = guide.read_text()
    assert prose.main(["--check", "--root", str(root)]) == 1
    assert (page.read_text(), guide.read_text()) == (OLD, before)
    assert prose.main(["--root", str(root)]) == 0
    new = OLD.replace("1.2", "3.4 (docs/x ratio a b)")
    assert page.read_text() == new
    assert json.loads(guide.read_text())["cells"] == [{**cells[0], "source": ["# µs\n", new]},
                                                      cells[1]]  # fmt: skip
    assert guide.read_text().count("\n") == before.count("\n")
    assert prose.main(["--check", "--root", str(root)]) == 0
    assert "one.ipynb" in capsys.readouterr().out
