"""What the records of a repository say of a method."""

import re
import shutil
from pathlib import Path

from halving import GOOD, write

from mxopt.core.plan import Plan
from mxopt.core.records import Run
from mxopt.measure import Experiment, read_experiment, time_to_target
from mxopt.report import card
from mxopt.report.measured import Measured, measurements, table

ROOT = Path(__file__).parents[2]


def test_a_speed_up_that_changes_learning_is_not_called_faster_alone(tmp_path):
    def run(seconds):
        return Run(Path("x"), Plan(), "w", status="ok", figures={"seconds": seconds})

    runs = {"a": [run(2.0), run(2.1), run(2.2)], "b": [run(1.0), run(1.1), run(1.1)]}
    found = Experiment("halving", "toy:run", dict.fromkeys("ab", Plan()), runs=runs)
    pair = Measured(found, tmp_path, "a", "b")
    exact, changes = (
        card.read_card(write(tmp_path, GOOD.replace("exact", kind)))
        for kind in ("exact", "changes learning")
    )
    assert pair.verdict(exact) == "faster"
    assert pair.verdict(changes) == "faster, quality not compared"


def test_arms_that_are_timed_to_a_goal_are_compared_by_it(tmp_path):
    path = next(ROOT.glob("docs/results/*/performance_checklist/checklist-curricula.jsonl"))
    curricula, some = read_experiment(path), card.read_card(write(tmp_path, GOOD))
    fewer = Measured(curricula, path, "all-samples", "fewer-first")
    assert curricula.ratio("fewer-first", "all-samples").low > 1  # with fewer samples
    assert fewer.times == str(time_to_target(curricula, "fewer-first", baseline="all-samples"))
    assert fewer.verdict(some) == "not significant"
    assert "time to target" in fewer.about()[0]
    missed = Measured(curricula, path, "all-samples", "augmented")
    assert missed.times.startswith("at most")
    assert "missed the target in 3 of 3 runs" in missed.verdict(some)


def test_a_card_has_a_row_for_each_pair_and_a_column_for_each_processor(tmp_path):
    def run(seconds):
        return Run(Path("x"), Plan(), "w", status="ok", figures={"seconds": seconds},
                   read_all=lambda: iter([]))  # fmt: skip

    def pair(processor, slow, after="b"):
        runs = {"a": [run(slow), run(1.01 * slow)], after: [run(1.0), run(1.01)]}
        plans = {"a": Plan(), after: Plan(batch_size=8)}
        found = Experiment("halving", "w", plans, runs=runs)
        return Measured(found, tmp_path / f"{processor}-{slow}.jsonl", "a", after, processor)

    some = card.read_card(write(tmp_path, GOOD.replace("half,", "batch_size,")))
    # The second of two on one processor has a row of its own, as has another pair.
    found = [pair("amd", 2.0), pair("intel", 3.0), pair("amd", 4.0), pair("intel", 5.0, "c")]
    shown = table(some, found)
    assert shown.columns == ["experiment", "pair", "what differs", "data", "amd", "intel"]
    assert {tuple(row[:1] + row[2:4]) for row in shown.rows} == {
        ("halving, seconds", "batch_size: 4 → 8", "computed")
    }
    cells = [(row[1], *(cell.split(" [")[0] for cell in row[4:])) for row in shown.rows]
    assert cells == [("a → b", "2.00", "3.00"), ("a → b", "4.00", ""), ("a → c", "", "5.00")]
    assert shown.rows[0][4].endswith(", n = 2: [faster](../amd-2.0.jsonl)")

    text = GOOD.replace("<!-- measured: end -->", f"\n{shown}\n<!-- measured: end -->")
    written = card.read_card(write(tmp_path, text))
    first = card.first_measured(written, "batch_size")
    assert re.fullmatch(r"batch_size: 4 → 8: 2.00 \[.*\], n = 2: faster \(amd\)", first)
    assert card.first_measured(written, "batch_size", "intel").endswith("faster (intel)")
    assert card.first_measured(written, "batch_size", "arm") == first
    assert card.first_measured(written, "half") == card.first_measured(some, "batch_size") == ""


def test_a_record_belongs_to_the_processor_of_its_folder_or_of_its_runs():
    found = {each.path.relative_to(ROOT).as_posix(): each for each in measurements(ROOT)}
    older = (
        "docs/results/amd-epyc-family-25-model-17/accelerate_training/garments-environment.jsonl"
    )
    environment = found[older].found.runs["default"][0].only("environment")
    assert environment["cpu"]["model"] == "AMD EPYC"  # of records without family and model
    assert found[older].processor == "amd-epyc-family-25-model-17"
    assert found["docs/clusters.jsonl"].processor == "amd-epyc-family-25-model-17"


def test_a_folder_of_a_notebook_is_no_processor(tmp_path):
    record = ROOT / "docs/results/amd-epyc-family-25-model-1/8_1/precision.jsonl"
    place = tmp_path / "docs" / "results" / "8_1" / record.name
    place.parent.mkdir(parents=True)
    shutil.copyfile(record, place)
    found = {each.processor for each in measurements(tmp_path)}
    assert found == {"amd-epyc-family-25-model-1"}


def test_a_pair_begins_with_the_defaults_of_the_methods_own_switches(tmp_path):
    plans = {
        "whole": Plan(batch_size=64),
        "two": Plan(batch_size=32, grad_accumulation=2),
        "four": Plan(batch_size=16, grad_accumulation=4),
    }
    found = Experiment("e", "w", plans, arm_options={"four": {"loss": "fused"}})
    accumulation = card.read_card(write(tmp_path, GOOD.replace("half,", "grad_accumulation,")))

    def begins(before, after):
        return Measured(found, tmp_path / "e.jsonl", before, after).from_defaults(accumulation)

    assert begins("whole", "two")  # batch_size, a companion, may have any value
    assert begins("whole", "four")  # an option has no default
    assert not begins("two", "four")
