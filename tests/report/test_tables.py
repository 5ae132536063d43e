import math
from dataclasses import replace
from pathlib import Path

import pytest

from mxopt import report
from mxopt.core.errors import RecordError
from mxopt.core.plan import Plan
from mxopt.core.records import Run
from mxopt.measure import Experiment
from mxopt.report import plots, results


def run(seconds, plan=None, status="ok", **more):
    figures = {"seconds": seconds, **more} if status == "ok" else {}
    epochs = [{"event": "epoch", "seconds": 1.0, "train_loss": loss} for loss in (0.9, 0.5)]
    events = [{"event": "data", "kind": "stand-in"}, *epochs]
    return Run(Path("x"), plan or Plan(), "toy:sleepy", status=status, figures=figures,
               events=events, reason="" if status == "ok" else "it said no")  # fmt: skip


@pytest.fixture
def experiment():
    arms = {"slow": Plan(), "fast": Plan(num_workers=2), "absent": Plan(precision="amp")}
    runs = {
        "slow": [run(4.0, quality=0.8), run(4.2, quality=0.8), run(4.1, quality=0.8)],
        "fast": [run(2.0, quality=0.8), run(2.1, quality=0.7), run(2.0, quality=0.8)],
        "absent": [run(0, status="refused")],
    }
    return Experiment("precision", "toy:sleepy", arms, title="A | title", runs=runs)


def test_the_comparison_is_computed_from_the_runs(experiment):
    pair, differs, before, after, ratio, verdict = report.comparison(experiment).rows[0]
    assert (pair, differs) == ("slow → fast", "num_workers: 0 → 2")
    assert (before, after, verdict) == ("4.1 s", "2 s", "faster, quality not compared")
    assert ratio == "2.02 [1.95, 2.09], n = 3"


def test_what_was_not_measured_has_a_reason_and_no_figure(experiment):
    table = report.comparison(experiment)
    assert table.rows[1][3:] == ["not measured", "not measured", "absent refused"]
    assert "Not measured: absent (it said no)." in table.caption
    assert report.arms(experiment).rows[2] == ["absent", "not measured"]


def test_runs_without_the_figure_show_their_own():
    own = {"best": 0.01, "loading_seconds": 2.0, "settings": {"a": 1}, "process_seconds": 9.0}
    found = Run(Path("x"), Plan(), "toy:sleepy", status="ok", figures=own)
    alone = Experiment("range", "toy:sleepy", {"one": Plan()}, pairs=[], runs={"one": [found]})
    table = report.arms(alone)
    assert table.columns == ["arm", "best", "loading seconds"]
    assert table.rows == [["one", "0.01", "2 s"]]


def test_processor_seconds_stand_beside_wall_seconds_where_both_arms_have_them(experiment):
    assert "CPU seconds" not in report.comparison(experiment).columns
    for arm, seconds in (("slow", 8.0), ("fast", 4.5)):
        for one in experiment.runs[arm]:
            one.figures["cpu_seconds"] = seconds
    table = report.comparison(experiment)
    assert table.columns[-2:] == ["CPU seconds", "verdict"]
    assert [row[-2] for row in table.rows] == ["8 s → 4.5 s", ""]


def test_a_training_without_quality_says_so_under_its_table(experiment):
    said = "Quality is not compared"
    assert said in report.comparison(experiment).caption
    assert said not in report.comparison(replace(experiment, quality="quality")).caption


def test_the_same_arm_twice_is_the_last_row_or_in_the_caption(experiment):
    arms = {**experiment.arms, "slow-again": experiment.arms["slow"]}
    runs = {**experiment.runs, "slow-again": experiment.runs["slow"]}
    twice = replace(experiment, arms=arms, runs=runs, again="slow-again")
    row = report.comparison(twice).rows[-1]
    assert row[:2] == ["slow → slow-again", "nothing"]
    assert row[-2:] == ["1.00 [1.00, 1.00], n = 3", "A/A: the harness's own noise"]
    assert "own noise" not in report.comparison(twice).caption
    assert "own noise: 1.00 [1.00, 1.00], n = 3." in report.arms(replace(twice, pairs=[])).caption


def test_the_data_is_named_on_every_table_and_plot(experiment):
    assert "data: stand-in" in report.comparison(experiment).caption
    assert "stand-in" in plots.bars(experiment).axes[0].get_title(loc="left")


def test_the_books_figure_stands_beside_ours_and_is_named_as_the_books(experiment):
    table = report.beside_book(experiment)
    assert table.rows[0][:3] == ["float32", "594 s", "not measured (not part of this tier)"]
    assert "Cookbook" in table.caption


def test_markdown_and_html_escape_what_they_hold():
    table = report.Table(["a|b"], [["<x>"]])
    assert table.markdown() == "| a\\|b |\n| --- |\n| <x> |"
    assert "&lt;x&gt;" in table._repr_html_()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.012345, "0.0123 s"),
        (6.789e-6, "6.79 µs"),
        (1234567, "1,234,567 s"),
        (math.nan, "not a number"),
        (math.inf, "infinite"),
    ],
)
def test_numbers_read_like_numbers(value, text):
    assert report.number(value, "s") == text


def test_what_differs_is_listed_with_both_values():
    differing = {
        "batch_size": (4, 2),
        "optimized": (["taps"], ["folding", "taps"]),
        "environment": ("default", {"MXNET_A": "1", "MXNET_B": "2"}),
    }
    assert report.factors(differing) == (
        "batch_size: 4 → 2, optimized: taps → folding and taps, "
        "environment: default → MXNET_A=1 and MXNET_B=2"
    )
    assert report.factors({}) == "nothing"


def test_a_long_list_of_switches_is_a_note_that_holds_all_of_them():
    few, many = Plan(batch_size=8), Plan(batch_size=8, epochs=9, momentum=0.9, hybridize="static",
                                         learning_rate=0.5, schedule="cosine")  # fmt: skip
    arms = {"before": Plan(), "few": few, "many": many, "again": many}
    runs = {arm: [run(2.0, quality=1.0), run(2.1, quality=1.0)] for arm in arms}
    table = report.comparison(Experiment("e", "w", arms, runs=runs, target="quality"))
    assert [row[1] for row in table.rows] == ["batch_size: 4 → 8", "see note 1", "see note 1"]
    listed = report.factors(Plan().diff(many))
    assert table.notes == [listed]
    assert table.markdown().endswith(f"\n\n**Note 1.** {listed}")
    assert f"<b>Note 1.</b> {listed}" in table._repr_html_()


def test_plots_show_every_run(experiment):
    bars = plots.bars(experiment).axes[0]
    assert [len(line.get_xdata()) for line in bars.lines] == [3, 3]
    assert any("not measured" in text.get_text() for text in bars.texts)
    curves = plots.curves(experiment).axes[0]
    assert [list(line.get_ydata()) for line in curves.lines] == [[0.9, 0.5]] * 7
    assert list(curves.lines[0].get_xdata()) == [1.0, 2.0]
    lines = plots.lines(experiment, "num_workers", by=lambda plan: "all").axes[0]
    assert list(lines.lines[0].get_ydata()) == [4.1, 2.0]


def test_curves_do_not_cover_an_arm_by_its_repetition(experiment):
    runs = {**experiment.runs, "fast-again": experiment.runs["fast"]}
    arms = {**experiment.arms, "fast-again": experiment.arms["fast"]}
    axes = plots.curves(replace(experiment, arms=arms, runs=runs, again="fast-again")).axes[0]
    assert len(axes.lines) == 7
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["slow", "fast", "absent"]


def test_a_folder_without_records_is_refused(tmp_path):
    with pytest.raises(RecordError, match="no experiments below"):
        results.page(tmp_path)


@pytest.mark.fault(
    "files",
    "the description of a results folder is damaged",
    sees="reproduce.json cannot be read ... delete it: it holds no measurements",
    lost="when it was started, and on which tier",
)
def test_a_damaged_description_is_named(tmp_path, sees):
    results.describe(tmp_path, tier="smoke")
    path = tmp_path / results.DESCRIPTION
    path.write_text(path.read_text()[:-4])
    with sees.raised(RecordError):
        results.describe(tmp_path, resumed="today")


def test_operators_are_listed_by_the_time_they_take_in_all_arms():
    profiled = Experiment(
        "profile", "w", {"before": Plan(), "after": Plan()},
        runs={
            "before": [run(3.0, operator_seconds={"clip": 1.5, "Convolution": 1.0, "sum": 0.25})],
            "after": [run(1.5, operator_seconds={"Convolution": 1.25, "Concat": 0.125})],
        },
    )  # fmt: skip
    assert report.operators(profiled, most=2).rows == [
        ["Convolution", "1 s", "1.25 s"],
        ["clip", "1.5 s", "none"],
        ["2 others", "0.25 s", "0.125 s"],
        ["the epoch", "3 s", "1.5 s"],
    ]


def test_a_speed_up_that_only_a_clock_without_waiting_sees_is_a_phantom():
    def arm(enqueued, seconds):
        return [
            Run(Path("x"), Plan(), "w", status="ok",
                figures={"seconds": seconds * jitter, "enqueued_seconds": enqueued * jitter})
            for jitter in (1, 1.01, 0.99, 1.02, 0.98, 1)
        ]  # fmt: skip

    runs = {"waits": arm(1.0, 1.0), "phantom": arm(0.01, 1.3), "real": arm(0.5, 0.5)}
    arms = dict.fromkeys(runs, Plan())
    table = report.clocks(Experiment("e", "w", arms, runs=runs))
    assert [row[-1] for row in table.rows] == [
        "phantom speed-up", "both clocks agree",
    ]  # fmt: skip
    assert table.rows[0][1].startswith("1")


def test_runs_without_a_second_clock_have_no_such_table():
    only = [Run(Path("x"), Plan(), "w", status="ok", figures={"seconds": 1.0})] * 2
    experiment = Experiment("e", "w", {"a": Plan(), "b": Plan()}, runs={"a": only, "b": only})
    assert report.clocks(experiment).rows == []


def test_a_figure_that_is_a_text_is_shown_as_it_is():
    assert report.number("nrefs:1|case:mixed") == "nrefs:1|case:mixed"
