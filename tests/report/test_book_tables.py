"""The book beside ours: a verdict for each comparison, and for each printed figure."""

from pathlib import Path

from mxopt.core.plan import Plan
from mxopt.core.records import Run
from mxopt.measure import Experiment
from mxopt.report import book, book_tables


def measured(name, arms, figure="seconds"):
    runs = {arm: [Run(Path("x"), Plan(), "w", status="ok", figures={figure: s * jitter})
                  for jitter in (1, 1.01, 0.99)] for arm, s in arms.items()}  # fmt: skip
    return Experiment(name, "w", dict.fromkeys(arms, Plan()), runs=runs)


def test_the_books_comparisons_have_a_verdict_each():
    refused = measured("parallel", {"one": 4.0, "many-scaled": 1.0})
    refused.runs["many-scaled"] = [Run(Path("x"), Plan(), "w", status="refused", reason="no GPU")]
    table = book_tables.comparisons([
        measured("segmentation", {"before": 639.0, "after": 59.9}),
        measured("translation", {"before": 2.0, "after": 1.0}),
        measured("engine", {"naive": 1.0, "threaded": 2.0}),
        refused,
    ])  # fmt: skip
    verdicts = {row[0]: row[-1] for row in table.rows}
    assert verdicts["segmentation: before → after"] == "reproduced"
    assert verdicts["translation: before → after"] == "same direction"
    assert verdicts["engine: naive → threaded"] == "not reproduced"
    assert verdicts["engine: naive-waiting → threaded-waiting"].startswith("not measured (not part")
    assert verdicts["parallel: one → many-scaled"] == "not measured (no GPU)"
    assert verdicts["placement: lazy → device"] == "not measured (not among these results)"
    assert {row[0]: row[1] for row in table.rows}["translation: before → after"] == "5.86"
    assert verdicts["segmentation: test mIoU, before → after"].startswith("not measured")


def test_every_printed_figure_has_a_row_and_a_verdict():
    table = book_tables.figures([
        measured("segmentation", {"before": 639.0, "after": 59.9}),
        measured("text-placement", {"lazy": 1.0, "device": 2.0}, "preparation_seconds"),
    ])  # fmt: skip
    assert len(table.rows) == len(book.FIGURES) + 2 * len(book.QUALITIES)
    assert all(row[4] for row in table.rows)
    found = {(row[0], row[1]): row for row in table.rows}
    assert found["segmentation: before", "seconds"][2:5] == ["639.0 s", "639 s", "the baseline"]
    assert found["segmentation: after", "seconds"][4] == "reproduced"
    assert found["text-placement: device", "preparation seconds"][3:5] == ["2 s", "same direction"]
    assert found["text-placement: between", "seconds"][4].startswith("not measured")
    assert found["segmentation: after", "test mIoU"][2:5] == [
        "0.9177", "", "not measured (not among these results)",
    ]  # fmt: skip
