from pathlib import Path

from mxopt import report
from mxopt.measure import read_experiment

PAGE = Path(__file__).parents[4] / "docs" / "clusters.md"


def test_the_measured_table_on_the_page_is_that_of_its_records():
    page = PAGE.read_text(encoding="utf-8")
    assert str(report.comparison(read_experiment(PAGE.parent / "clusters.jsonl"))) in page
