"""What a training cost: its seconds, or those until a goal, times the price."""

import pytest

from mxopt import Plan, measure
from mxopt.cli.main import main
from mxopt.core.errors import PlanError, RecordError
from mxopt.report import cost

PLAN = Plan(optimizer="adam", learning_rate=1e-3, batch_size=32, epochs=2, preprocess="cached")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    record = tmp_path_factory.mktemp("cost") / "run-01.jsonl"
    options = {"recipe": "fashion_mnist", "stand_in": True, "limit": 64}
    return measure.run("mxopt.chapter.workloads:train", PLAN, record, options)


def test_the_whole_training_and_a_goal(run):
    seconds, spent = cost.cost(run, 0.36)
    assert seconds == run.figures["training_seconds"]
    assert spent == pytest.approx(seconds / 10_000)
    scores = [event["validation_accuracy"] for event in run.all("epoch")]
    until, _ = cost.cost(run, 1.0, ("validation_accuracy", scores[0]))
    assert 0 <= until < seconds
    with pytest.raises(RecordError, match="never reached a validation_accuracy of 2"):
        cost.cost(run, 1.0, ("validation_accuracy", 2.0))
    with pytest.raises(PlanError, match="price=0 must be above 0"):
        cost.cost(run, 0.0)


def test_the_command_says_why_rows_cannot_be_compared(run, capsys):
    assert main(["cost", str(run.path), "--price", "0.5", "--currency", "EUR"]) == 0
    said = capsys.readouterr().out
    assert "EUR" in said
    assert "ImageNet" in said
    assert "cannot be compared" in said
    assert main(["cost", str(run.path), "--price", "0.5", "--goal", "validation_accuracy=2"]) != 0
    assert "never reached" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("goal", "says"),
    [
        ("validation_accuracy=x", "--goal 'validation_accuracy=x' is not understood; write FIGURE"),
        ("validation_accuracy", "write FIGURE=VALUE with a number, such as validation_accuracy=0."),
        ("validation_accuracy=nan", "is not understood"),
        ("bogus=3", "have no 'bogus'; there are"),
    ],
)
def test_a_goal_that_cannot_be_is_refused(run, capsys, goal, says):
    assert main(["cost", str(run.path), "--price", "0.5", "--goal", goal]) == 2
    said = capsys.readouterr().err
    assert says in said
    assert "bogus" not in goal or "validation_accuracy, validation_loss" in said
