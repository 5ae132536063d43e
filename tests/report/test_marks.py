"""What the marks in sentences show of published records."""

from pathlib import Path

import pytest

from mxopt import report
from mxopt.core.errors import RecordError
from mxopt.measure import read_experiment
from mxopt.report import marks

ROOT = Path(__file__).parents[2]
NAME = "docs/results/amd-epyc/nine_tips/tips-waiting"


def test_a_sum_is_over_all_runs_of_an_arm():
    runs = read_experiment(ROOT / f"{NAME}.jsonl").runs["asscalar"]
    expected = report.number(sum(run.figures["seconds"] for run in runs))
    assert marks.evaluate(f"{NAME} sum asscalar seconds", ROOT) == expected
    assert marks.evaluate(f"{NAME} median asscalar", ROOT) != f"{expected} s"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("sum asscalar speed", "has no figure: 'speed'"),
        ("sum nobody seconds", "cannot be shown; there are ratio, .*, sum, .* and the arms asscal"),
        ("total asscalar seconds", "cannot be shown"),
    ],
)
def test_what_cannot_be_shown_is_named(asked, said):
    with pytest.raises(RecordError, match=said):
        marks.evaluate(f"{NAME} {asked}", ROOT)
