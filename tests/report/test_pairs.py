"""Headline pairs are those named before measuring, and processors stand beside each other."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from in_process import runs_in_process

from mxopt import report
from mxopt.core.errors import RecordError
from mxopt.core.plan import Plan
from mxopt.core.records import Run
from mxopt.measure import Experiment, interleave
from mxopt.measure.statistics import ratio
from mxopt.report import html, pairs, plots, ratio_plots, results
from mxopt.report.verify import pages


def experiment(fast=1.0, better=0.5, score=0.9, **more):
    def arm(seconds, score):
        epoch = {"event": "epoch", "seconds": seconds, "validation_mIoU": score}
        start = {"event": "check", "progress": 0, "seconds": 0, "step": 0, "validation_mIoU": 0.1}
        return [
            Run(Path("x"), Plan(), "w", status="ok", events=[start, epoch],
                figures={"seconds": seconds * jitter}, read_all=lambda: iter([]))
            for jitter in (1, 1.01, 0.99)
        ]  # fmt: skip

    plans = {"slow": Plan(), "fast": Plan(num_workers=2), "better": Plan(num_workers=4)}
    runs = {"slow": arm(2.0, 0.9), "fast": arm(fast, score), "better": arm(better, 0.9)}
    return Experiment("e", "w", plans, title="Loading", runs=runs, planned=3, **more)


def test_a_headline_is_named_and_not_picked():
    assert pairs.headline({"": [experiment()]}) == pairs.NO_HEADLINE
    table = pairs.headline({"": [experiment(headline=[["slow", "fast"]])]})
    assert table.rows == [
        ["Loading: slow → fast", "num_workers: 0 → 2", "2 s", "1 s", "2.00 [2.00, 2.00], n = 3",
         "faster"],
    ]  # fmt: skip
    # A pair that was named is shown also if it lost.
    table = pairs.headline({"": [experiment(fast=3.0, headline=[["slow", "fast"]])]})
    assert table.rows[0][-1] == "slower"


def test_a_headline_of_an_experiment_with_a_goal_has_its_time_to_target():
    how = {"target": "validation_mIoU", "goal": 0.8, "headline": [("slow", "fast")]}
    rows = pairs.headline({"": [experiment(**how)]}).rows
    assert [row[0] for row in rows] == [
        "Loading: slow → fast", "Loading, time to target: slow → fast",
    ]  # fmt: skip
    assert rows[1][2:] == ["2 s", "1 s", "2.00 [2.00, 2.00], n = 3", "faster"]
    unfixed = pairs.headline({"": [experiment(**{**how, "goal": None})]}).rows
    assert [row[0] for row in unfixed] == ["Loading: slow → fast"]
    missed = pairs.headline({"": [experiment(score=0.7, **how)]}).rows[1]
    assert missed[3:] == [
        "not in 1 s", "at most 2.00 (95 %: 2.00), n = 3",
        "not significant; fast missed the target in 3 of 3 runs",
    ]  # fmt: skip


def test_processors_stand_beside_each_other():
    named = {"headline": [["slow", "fast"]]}
    both = {"epyc": [experiment(**named)], "xeon": [experiment(fast=4.0, **named)]}
    table = pairs.headline(both)
    assert table.columns == ["experiment", report.DIFFERS, "epyc", "xeon"]
    assert table.rows[0][2:] == [
        "2.00 [2.00, 2.00], n = 3: faster", "0.50 [0.50, 0.50], n = 3: slower",
    ]  # fmt: skip
    empty = {"epyc": both["epyc"], "xeon": [experiment(headline=[["slow", "better"]])]}
    assert [row[2:] for row in pairs.headline(empty).rows] == [
        ["2.00 [2.00, 2.00], n = 3: faster", "not measured"],
        ["not measured", "4.00 [4.00, 4.00], n = 3: faster"],
    ]  # fmt: skip
    rows = pairs.held(both).rows
    assert [(row[0], row[-1]) for row in rows] == [
        ("Loading: slow → fast", "no"), ("Loading: slow → better", "yes"),
    ]  # fmt: skip
    assert pairs.UNLIKE not in str(pairs.held(both))
    other = replace(both["xeon"][0], arm_options={"fast": {"cold": True}})
    rows = pairs.held({**both, "xeon": [other]})
    assert [row[0] for row in rows.rows] == ["Loading: slow → fast †", "Loading: slow → better"]
    assert "†: what differs is not the same" in str(rows)
    only = {"epyc": [experiment(**named)], "xeon": []}
    assert pairs.held(only).rows == []
    assert "On one processor only: 2 more," in str(pairs.held(only))
    alone = pairs.headline({"epyc": [experiment(**named)]})
    assert pairs.headline(only).columns == alone.columns
    assert pairs.headline(only).rows == alone.rows


def test_what_differs_on_some_processors_only_is_said():
    def row(**differing):
        return pairs.Row("e", differing, [], None)

    rate, few, fewer = {"rate": (1, 2)}, {"epochs": (4, 1)}, {"epochs": (3, 1)}
    assert pairs.differs({"a": row(**rate), "b": None, "c": row(**rate)}) == "rate: 1 → 2"
    assert pairs.differs({"a": row(**rate), "b": row(**rate, **few)}) == (
        "rate: 1 → 2; on b also epochs: 4 → 1"
    )
    assert pairs.differs(
        {"a": row(**rate, **few), "b": row(**rate, **fewer), "c": row(**rate, **few)}
    ) == ("rate: 1 → 2; on a and c also epochs: 4 → 1; on b also epochs: 3 → 1")
    assert pairs.differs({"a": row(**few), "b": row(**fewer)}) == (
        "on a also epochs: 4 → 1; on b also epochs: 3 → 1"
    )
    assert pairs.differs({"a": row(), "b": row()}) == "nothing"


def test_what_two_processors_say_stands_beside_a_third_that_did_not_measure_it():
    whole = experiment()
    few = replace(whole, arms={name: whole.arms[name] for name in ("slow", "better")})
    table = pairs.held({"epyc": [whole], "bare": [], "old": [few]})
    assert table.columns == [
        "pair", "epyc: times better [95 %]", "epyc: verdict",
        "old: times better [95 %]", "old: verdict", "agree",
    ]  # fmt: skip
    assert [(row[0], row[-1]) for row in table.rows] == [("Loading: slow → better", "yes")]
    assert "On one processor only: 1 more," in str(table)


def test_a_claim_that_only_one_processor_allows_does_not_agree():
    first = experiment()
    second = replace(first, quality="absent")
    rows = pairs.held({"epyc": [first], "xeon": [second]}).rows
    assert rows[0][-1] == "on the ratio only"


@pytest.fixture(scope="module")
def of_two(tmp_path_factory):
    folder = tmp_path_factory.mktemp("measured")
    for name, size in (("epyc", 2), ("xeon", 8)):
        arms = {"slow": Plan(batch_size=4), "fast": Plan(batch_size=size)}
        with runs_in_process():
            interleave("demo", "toy:sleepy", arms, repeats=2, folder=folder / name / "8_1",
                       headline=[("slow", "fast")])  # fmt: skip
    return folder


@pytest.fixture
def measured(of_two, tmp_path):
    """Results of two processors."""
    return shutil.copytree(of_two, tmp_path, dirs_exist_ok=True)


def test_each_guide_has_a_table_of_its_own_in_the_readme(measured):
    assert "###" not in str(results.headline(measured))
    for processor in ("epyc", "xeon"):
        shutil.copytree(measured / processor / "8_1", measured / processor / "nine_tips")
    chapter, guide = str(results.headline(measured)).split("\n\n### ")
    assert chapter.startswith("### The chapter\n\n| experiment |")
    assert guide.startswith("Guide: nine tips\n\n<details>\n<summary>1 pair</summary>\n\n| exper")
    assert guide.endswith(" |\n\n</details>")
    assert chapter.count("demo: slow") == guide.count("demo: slow") == 1
    shutil.rmtree(measured / "xeon" / "nine_tips")
    chapter, guide = str(results.headline(measured)).split("\n\n### ")
    assert chapter.startswith("### The chapter\n\n")
    assert guide.startswith("Guide: nine tips (on epyc only)\n\n<details>")


def test_every_processor_has_its_page(measured):
    assert list(results.processors(measured)) == ["epyc", "xeon"]
    assert results.processors(measured / "epyc") == {}
    results.write_page(measured)
    top = (measured / "RESULTS.md").read_text(encoding="utf-8")
    assert "[epyc](epyc/RESULTS.md)" in top
    assert "| demo: slow → fast † | 2.00 [2.00, 2.00], n = 2 | faster | 0.50" in top
    own = (measured / "xeon" / "RESULTS.md").read_text(encoding="utf-8")
    assert "slower" in own
    assert "faster" not in own.partition("## demo")[2].partition("## Comparison")[0]
    assert pages.check(measured) == []
    (measured / "xeon" / "RESULTS.md").write_text(own.replace("slower", "faster"))
    assert "xeon/RESULTS.md: line" in pages.check(measured)[0]
    readme = measured / "README.md"
    readme.write_text(f"{results.BEGIN}\n{results.END}\n")
    assert "| what differs | epyc | xeon |" in results.update_readme(readme, measured)


def test_a_verdict_in_the_readme_leaves_out_the_difference_that_it_rests_on():
    verdict = "faster, s not shown to hold: difference +1, n = 3, margin 1; slow missed the target"
    row = pairs.Row("Loading", "", ["", "", "2.00", verdict], None)
    assert pairs._claim(row) == "2.00: faster, s not shown to hold; slow missed the target"


def test_the_picture_of_the_headline_pairs_is_drawn_again_and_compared(measured):
    picture = measured / results.OVERVIEW
    results.write_page(measured)
    assert pages.check(measured) == []
    forged = dict(zip(("epyc", "xeon"), ([2.0, 2.0, 2.0], [3.0, 3.0, 3.0])))
    ratio_plots.beside_each_other(
        list(forged), {"demo: slow → fast": [ratio([1.0], own[:1]) for own in forged.values()]}
    ).savefig(picture, dpi=plots.DPI)
    assert pages.check(measured) == [f"{picture}: is not what the records give; draw it again"]
    picture.unlink()
    assert "draw it again" in pages.check(measured)[0]
    assert results.overview(measured / "epyc") is None


def test_results_of_several_processors_are_not_mixed_with_others(measured):
    (measured / "epyc" / "8_1").rename(measured / "8_1")
    with pytest.raises(RecordError, match="experiments beside the folders of xeon; move them"):
        results.page(measured)


def test_the_headings_of_several_processors_name_them(measured):
    heads = [text.splitlines()[0] for text in results.pages(measured).values()]
    assert heads == ["# Results", "# Results: epyc", "# Results: xeon"]


def test_a_page_says_how_many_intervals_exclude_one_by_chance(measured):
    page = results.page(measured / "epyc")
    assert "These experiments have 1 intervals" in page
    text = "2.00 [1.00, 3.00], n = 3 | at least 2.00 (95 %: 1.50), n = 3\n" * 20
    assert "40 intervals" in results.multiplicity(text)
    assert "about 2 of them would still exclude 1" in results.multiplicity(text)


def test_the_overview_of_the_report_shows_headline_pairs(measured):
    assert 'alt="ratios with their intervals"' in html.page(measured / "epyc")


def test_a_page_of_single_runs_says_that_it_has_no_intervals():
    assert "have no intervals" in results.multiplicity("1.50 (no interval), n = 1")
