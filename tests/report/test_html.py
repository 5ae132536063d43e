import re
import shutil
from pathlib import Path

import markupsafe
import pytest

from mxopt.cli.main import main
from mxopt.core.errors import RecordError
from mxopt.report import html, pairs, results

RECORDS = Path(__file__).parents[2] / "docs" / "results" / "amd-epyc"


def test_the_page_holds_everything_it_shows():
    page = html.page(RECORDS)
    sources = re.findall(r'(?:src|href)="([^"]*)"', page)
    assert sources
    assert all(source.startswith(("data:image/png;base64,", "#")) for source in sources)
    assert "<script" not in page
    assert "prefers-color-scheme: dark" in page
    assert 'name="viewport"' in page


def test_every_experiment_and_every_headline_is_on_it():
    page = html.page(RECORDS)
    experiments = [experiment for _, experiment in results.read_experiments(RECORDS)]
    for experiment in experiments:
        assert f"<h3>{markupsafe.escape(experiment.title)}</h3>" in page
    for row in pairs.headlines(experiments):
        assert row.cells[2] in page
    assert "mxopt reproduce --tier cpu --only 8_2" in page
    assert "Comparison with the book" in page


@pytest.mark.parametrize(("notebook", "shown"), [("8_1", True), ("nine_tips", False)])
def test_the_book_is_compared_with_notebooks_of_the_chapter_only(tmp_path, notebook, shown):
    shutil.copytree(RECORDS / notebook, tmp_path / notebook)
    for page in (html.page(tmp_path), results.page(tmp_path)):
        assert ("Comparison with the book" in page) == shown
        assert ('href="#book"' in page) <= shown


def test_the_page_is_written_on_demand(tmp_path, capsys):
    with pytest.raises(RecordError, match="no experiments below"):
        html.write(tmp_path)
    copy = Path(shutil.copytree(RECORDS / "8_1", tmp_path / "8_1"))
    assert main(["report", str(copy), "--html"]) == 0
    assert str(copy / "report.html") in capsys.readouterr().out
