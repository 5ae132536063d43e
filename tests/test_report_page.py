import re
import shutil
from pathlib import Path

import pytest

from mxopt import report_page, results
from mxopt.cli import main
from mxopt.errors import RecordError

RECORDS = Path(__file__).parent.parent / "docs" / "results"


def test_the_page_holds_everything_it_shows():
    page = report_page.page(RECORDS)
    sources = re.findall(r'(?:src|href)="([^"]*)"', page)
    assert sources
    assert all(source.startswith(("data:image/png;base64,", "#")) for source in sources)
    assert "<script" not in page
    assert "prefers-color-scheme: dark" in page
    assert 'name="viewport"' in page


def test_every_experiment_and_every_headline_is_on_it():
    page = report_page.page(RECORDS)
    experiments = [experiment for _, experiment in results.read_experiments(RECORDS)]
    for experiment in experiments:
        assert f"<h3>{experiment.title}</h3>" in page
    for ratio, _ in results.best_pairs(experiments):
        assert str(ratio) in page
    assert "mxopt reproduce --tier cpu --only 8_2" in page
    assert "The book, beside ours" in page


def test_the_page_is_written_on_demand(tmp_path, capsys):
    with pytest.raises(RecordError, match="no run records"):
        report_page.write(tmp_path)
    copy = Path(shutil.copytree(RECORDS / "8_1", tmp_path / "8_1"))
    assert main(["report", str(copy), "--html"]) == 0
    assert str(copy / "report.html") in capsys.readouterr().out
