"""Published results are recomputed, and every way to forge them is seen.

The records are of a small experiment that is measured here. Forgers know ``verify``: they compute
the seals of the records again, and write the pages again from the forged records.
"""

import contextlib
import copy
import json
import re
import shutil
from pathlib import Path

import pytest
from forging import Records, begin, longer, scaled
from PIL import Image

from mxopt import measure
from mxopt.cli.main import main
from mxopt.core.atomic import replace_text
from mxopt.core.errors import RecordError
from mxopt.core.plan import Plan
from mxopt.measure import read_experiment
from mxopt.report import plots, prose, results
from mxopt.report.verify import code, not_remeasured, verify

README = Path(__file__).parents[2] / "README.md"
RECORDS = README.parent / "docs" / "results"
EXPERIMENT = Path("docs", "results", "8_2", "small.jsonl")
COMMIT = "0123456789" * 4  # not one of the repository
WORDS = """# Small

<!-- results: begin -->
<!-- results: end -->

The second is <!-- = docs/results/8_2/small ratio before after --><!-- / --> times as fast.
"""


@pytest.fixture(scope="session")
def measured(tmp_path_factory):
    """The packed records of a small experiment, as they were measured."""
    folder = tmp_path_factory.mktemp("measured")
    plan = Plan(devices="cpu:0", batch_size=4, epochs=2, learning_rate=0.1, seed=7)
    measure.interleave(
        "small", "mxopt.chapter.workloads:train",
        {"before": plan, "after": plan.replace(hybridize="static")},
        repeats=2, folder=folder, options={"size": 32, "limit": 8}, seeds=True,
        quality="test_mIoU", margin=0.5, target="validation_mIoU", goal=0.99,
        headline=[["before", "after"]],
    )  # fmt: skip
    measure.pack(folder / "small", folder / "small.jsonl")
    return folder / "small.jsonl"


@pytest.fixture(scope="session")
def good(measured, tmp_path_factory):
    """A repository with these records, as a longer training would have them, and all pages.

    It is what a patient forger can still do: everything was multiplied, and verify holds.
    """
    root = tmp_path_factory.mktemp("repository")
    records = longer(Records(measured), 20)
    for run in records.runs:
        run[0]["commit"] = COMMIT
    (root / EXPERIMENT.parent / "small").mkdir(parents=True)
    records.write(root / EXPERIMENT)
    figure = plots.bars(read_experiment(root / EXPERIMENT))
    figure.savefig(root / EXPERIMENT.with_suffix("") / "bars.png", dpi=130)
    (root / "README.md").write_text(WORDS)
    write_pages(root)
    return root


@pytest.fixture
def root(good, tmp_path):
    return Path(shutil.copytree(good, tmp_path / "copy"))


def write_pages(root):
    results.write_page(root / "docs" / "results")
    readme = root / "README.md"
    text = results.update_readme(readme, root / "docs" / "results")
    replace_text(readme, prose.updated(text, root))


def problems(root):
    return verify(root / "docs" / "results", root / "README.md")


def test_what_was_measured_holds_but_for_a_changed_checkout(measured, tmp_path):
    shutil.copy(measured, tmp_path)
    results.write_page(tmp_path)
    assert [found for found in verify(tmp_path) if "has changes that" not in found] == []


def test_records_that_nobody_changed_hold(good, capsys):
    assert problems(good) == []
    words = ["verify", str(good / "docs" / "results"), "--readme", str(good / "README.md")]
    assert main(words) == 0
    assert capsys.readouterr().out.endswith("results: holds\n")


def test_what_the_repository_shows_holds(capsys):
    assert main(["verify", str(RECORDS), "--readme", str(README)]) == 0, capsys.readouterr().out


def test_experiments_not_measured_anew_are_named_one_by_one():
    names = {f"{path.parent.name}/{path.stem}" for path in RECORDS.rglob("*.jsonl")}
    assert names >= not_remeasured.NOT_REMEASURED


# Forgeries: each changes the records of a good experiment.


def divide(records, kinds):
    """Divide the seconds of the runs of an arm by ten, in events of these kinds."""
    for run in records.of("after"):
        inside = [event for event in run if event["event"] in kinds]
        stamps = [event["at"] for event in inside]
        scaled(inside, 0.1)
        for event, at in zip(inside, stamps):
            event["at"] = at
            event.get("figures", {}).update(
                {k: v * 10 for k, v in event.get("figures", {}).items() if k[:7] == "process"}
            )


def seconds_in_figures(records):
    divide(records, ["end"])


def seconds_in_figures_and_epochs(records):
    divide(records, ["end", "epoch"])


def seconds_in_everything_but_stamps(records):
    divide(records, ["end", "epoch", "steps", "check"])


def stamps_too(records):
    for run in records.of("after"):
        scaled(run, 0.1)


def stamps_but_not_of_the_process(records):
    for number in (1, 2):
        before = dict(records.figures("after", number))
        scaled(records.of("after", number)[0], 0.1)
        after = records.figures("after", number)
        after.update({k: before[k] for k in after if k.startswith("process")})


def stamps_and_starts_but_not_the_processor(records):
    for number in (1, 2):
        run = records.of("after", number)[0]
        used = records.figures("after", number)["cpu_seconds"]
        scaled(run, 0.01)
        records.figures("after", number)["cpu_seconds"] = used


def seconds_added(records):
    for run in records.of("before"):
        for event in run:
            if event["event"] in ("steps", "epoch"):
                event["seconds"] *= 2


def preparation_left_out(records):
    for number in (1, 2):
        setup = records.only("after", number, "setup")
        figures = records.figures("after", number)
        figures["training_seconds"] -= setup["preprocessing_seconds"]
        setup["preprocessing_seconds"] = 0.0


def a_better_rate(records):
    records.figures("after")["samples_per_second"] *= 2


def a_shorter_first_step(records):
    records.figures("after")["first_step_seconds"] *= 0.5


def processor_time(records):
    for number in (1, 2):
        records.figures("after", number)["cpu_seconds"] *= 0.1


def a_raised_validation_score(records):
    records.figures("after")["validation_mIoU"] += 0.1


def an_impossible_score(records):
    records.figures("after")["test_mIoU"] = 1.3


def a_lower_loss(records):
    records.figures("after")["train_loss"] *= 0.5


def a_score_that_is_no_number(records):
    records.figures("after")["test_mIoU"] = "nan"


def a_loss_that_is_no_number(records):
    records.only("after", 1, "steps")["losses"][0] = "nan"


def fewer_samples(records):
    records.only("after", 1, "steps")["sizes"][0] -= 1


def an_epoch_less(records):
    run = records.of("after", 1)[0]
    run[:] = [event for event in run if event.get("epoch") != 1]


def a_run_dropped(records):
    records.runs.remove(records.of("after", 2)[0])


def the_first_run_dropped(records):
    records.runs.remove(records.of("after", 1)[0])


def the_worst_run_dropped_and_the_others_numbered_again(records):
    records.runs.remove(records.of("after", 1)[0])
    records.only("after", 2, "start")["run"] = 1


def the_last_repeat_dropped(records):
    records.runs = [run for run in records.runs if run[0]["run"] == 1]


def planned_lowered(records):
    records.head["planned"] = 1


def planned_left_out(records):
    del records.head["planned"]


def a_run_added(records):
    run = copy.deepcopy(records.of("after", 2)[0])
    run[0]["run"] = 3
    records.runs.append(run)


def seeds_swapped(records):
    one, two = records.of("after")
    one[0]["plan"]["seed"], two[0]["plan"]["seed"] = 8, 7


def runs_swapped(records):
    one, two = records.of("after")
    one[0]["run"], two[0]["run"] = 2, 1
    one[0]["plan"]["seed"], two[0]["plan"]["seed"] = 8, 7
    records.runs.sort(key=lambda run: run[0]["run"])


def runs_at_the_same_time(records):
    [run] = records.of("after", 1)
    earlier = [other for other in records.runs if other[0]["started"] < run[0]["started"]]
    before = max(earlier, key=lambda other: other[0]["started"])
    run[0]["started"] = before[0]["started"]
    begin(run, before[-1]["at"] / 2)


def another_processor(records):
    for run in records.of("after"):
        environment = next(event for event in run if event["event"] == "environment")
        environment["cpu"] = {"model": "a faster one"}


def an_inherited_variable(records):
    for run in records.of("after"):
        environment = next(event for event in run if event["event"] == "environment")
        environment.setdefault("variables", {})["OPENBLAS_CORETYPE"] = "Prescott"


def a_variable_of_the_plan(records):
    for run in records.of("after"):
        environment = next(event for event in run if event["event"] == "environment")
        environment.setdefault("variables", {})["MXNET_ENGINE_TYPE"] = "NaiveEngine"


def another_commit(records):
    for run in records.of("after"):
        run[0]["commit"] = "f" * 40


def a_commit_with_changes(records):
    for run in records.runs:
        run[0]["commit"] += "+changes"


def no_commit(records):
    for run in records.runs:
        run[0]["commit"] = ""


def another_source(records):
    for run in records.of("after"):
        run[0]["source"] = "f" * 64


def no_source(records):
    for run in records.runs:
        del run[0]["source"]


def another_score_at_step_0(records):
    for run in records.of("before"):
        next(event for event in run if event["event"] == "check")["validation_mIoU"] = 0.9


def no_score_at_step_0(records):
    run = records.of("after", 1)[0]
    run.remove(next(event for event in run if event["event"] == "check"))


def other_weights(records):
    for run in records.of("after"):
        next(event for event in run if event["event"] == "weights")["hash"] = "f" * 64


def a_goal_below_the_start(records):
    records.head["goal"] = 0.0


def no_goal(records):
    records.head["goal"] = None


def another_plan(records):
    records.only("after", 1, "start")["plan"]["batch_size"] = 8


def other_options(records):
    records.only("after", 1, "start")["options"]["size"] = 96


def no_reason(records):
    records.only("after", 1, "end")["status"] = "failed"


FORGERIES = {
    seconds_in_figures: "its seconds is .*, its events give",
    seconds_in_figures_and_epochs: r"epoch 0 took .* s, its parts",
    seconds_in_everything_but_stamps: "its steps took .* does not explain the",
    stamps_too: "after-01.* ended, and the measurement was not resumed",
    stamps_but_not_of_the_process: "its process took .* its last time stamp is",
    stamps_and_starts_but_not_the_processor: "its cpu_seconds",
    seconds_added: "its steps took .* lie between the time stamps",
    preparation_left_out: "its preparation took .* does not explain the",
    a_better_rate: "its samples_per_second is .*, its events give",
    a_shorter_first_step: "its samples_per_second is .*, its events give",
    processor_time: "its cpu_seconds is .*, its events give",
    a_raised_validation_score: "its validation_mIoU is .*, its events give",
    an_impossible_score: "its test_mIoU is 1.3, which is impossible",
    a_lower_loss: "its train_loss is .*, its events give",
    a_score_that_is_no_number: "counts as a success, and its test_mIoU is not a number",
    a_loss_that_is_no_number: "1 of its steps' losses are not finite",
    fewer_samples: "its steps hold 15 samples",
    an_epoch_less: "trained 1 epochs, its plan asks for 2",
    a_run_dropped: "arm after has 1 runs, 2 were planned",
    the_first_run_dropped: "run 2 of after, but run 1 is missing",
    the_worst_run_dropped_and_the_others_numbered_again: "has the seed 8, run 1 needs 7",
    the_last_repeat_dropped: "arm before has 1 runs, 2 were planned",
    planned_lowered: "2 runs of before, and 1 were planned",
    planned_left_out: "does not say how many runs were planned",
    a_run_added: "3 runs of after, and 2 were planned",
    seeds_swapped: "has the seed 8, run 1 needs 7",
    runs_swapped: "arms have to be interleaved",
    runs_at_the_same_time: r"after-01.* started .* before .* ended",
    another_processor: "ran elsewhere than .*: cpu",
    an_inherited_variable: "ran elsewhere than .*: OPENBLAS_CORETYPE",
    a_variable_of_the_plan: "ran with MXNET_ENGINE_TYPE=NaiveEngine, its plan sets",
    another_commit: "the runs were made by different code",
    a_commit_with_changes: "has changes that nobody can look up",
    no_commit: "names no commit",
    another_source: "the runs were made by different code",
    no_source: "made by version 0.2 or before",
    another_score_at_step_0: "headline before → after: not the same start: validation_mIoU",
    no_score_at_step_0: "has 0 checks before its first step",
    other_weights: "headline before → after: not the same start: other initial weights",
    a_goal_below_the_start: "starts at .*, the goal is 0",
    no_goal: "that was not fixed before",
    another_plan: "ran under another plan than its experiment's: batch_size",
    other_options: "ran under another plan than its experiment's: its options",
    no_reason: "ended as failed without a reason",
}


@pytest.mark.parametrize("forge", FORGERIES, ids=lambda forge: forge.__name__)
def test_a_forged_record_is_seen(root, forge):
    records = Records(root / EXPERIMENT)
    forge(records)
    records.write(root / EXPERIMENT)
    with contextlib.suppress(RecordError):  # of records that cannot be read
        write_pages(root)
    found = problems(root)
    assert any(re.search(FORGERIES[forge], problem) for problem in found), found


def test_a_test_score_raised_in_the_last_event_alone_breaks_the_seal(root):
    records = Records(root / EXPERIMENT)
    records.figures("after")["test_mIoU"] += 0.01
    records.write(root / EXPERIMENT, seal=False)
    write_pages(root)
    assert ["its seal does not fit" in problem for problem in problems(root)] == [True]
    records.write(root / EXPERIMENT)
    assert problems(root) == []  # whoever computes it again is not seen


def test_the_source_of_a_known_commit_is_looked_up(good, monkeypatch):
    monkeypatch.setattr(code, "source_at", lambda commit, root: "f" * 64)
    assert any("its commit is ffff" in problem for problem in problems(good))


# Pages, pictures and prose.


def replace(path, old, new):
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def test_a_changed_cell_of_a_table_is_seen(root):
    page = root / "docs" / "results" / results.PAGE
    replace(page, "hybridize: no → static", "hybridize: no → fused")
    assert any("is not what the records give; run mxopt" in found for found in problems(root))


def test_a_missing_page_is_seen(root):
    (root / "docs" / "results" / results.PAGE).unlink()
    assert any("cannot be read" in found for found in problems(root))


def test_a_changed_table_in_the_readme_is_seen(root):
    replace(root / "README.md", "small", "large")
    assert any("README.md: line" in found for found in problems(root))


def test_a_changed_figure_in_a_sentence_is_seen(root):
    text = (root / "README.md").read_text(encoding="utf-8")
    shown = prose.MARKED.search(text)[3]
    replace(root / "README.md", f"-->{shown}<!--", "-->9.00 [8.00, 9.99]<!--")
    assert any("'9.00 [8.00, 9.99]', the records give" in found for found in problems(root))


def test_a_figure_in_a_sentence_without_a_record_is_seen(root):
    text = "# Page\n\nIt is 13 times faster.\n\nUp to 64 MiB. <!-- not measured: a setting -->\n"
    (root / "docs" / "page.md").write_text(text)
    found = [problem for problem in problems(root) if "page.md" in problem]
    assert len(found) == 1
    assert "docs/page.md, line 3: '13 times" in found[0]


def test_a_figure_in_a_notebook_is_seen(root):
    cell = {"cell_type": "markdown", "source": ["It takes ", "280 s."]}
    (root / "ch08").mkdir()
    (root / "ch08" / "8_1.ipynb").write_text(json.dumps({"cells": [cell]}))
    assert any("8_1.ipynb, cell 0, line 1: '280 s'" in problem for problem in problems(root))


def test_a_mark_that_names_nothing_is_seen(root):
    replace(root / "README.md", "ratio before after", "ratio before later")
    assert any("cannot be shown; there are" in problem for problem in problems(root))


def picture(root):
    return root / EXPERIMENT.with_suffix("") / "bars.png"


def test_a_replaced_picture_is_seen(root):
    records = Records(root / EXPERIMENT)
    records.head["title"] = "Much faster"
    records.write(root / EXPERIMENT)
    other = plots.bars(read_experiment(root / EXPERIMENT))
    shutil.copy(good_records(root), root / EXPERIMENT)
    other.savefig(picture(root), dpi=130)
    assert any("bars.png: is not what the records give" in found for found in problems(root))


def good_records(root):
    records = Records(root / EXPERIMENT)
    records.head.pop("title")
    records.write(root / "kept.jsonl")
    return root / "kept.jsonl"


def test_one_changed_pixel_is_seen(root):
    with Image.open(picture(root)) as image:
        image.load()
        info, changed = dict(image.info), image.convert("RGB")
    from PIL.PngImagePlugin import PngInfo

    software = PngInfo()
    software.add_text("Software", info["Software"])
    changed.putpixel((200, 50), (255, 0, 0))
    changed.save(picture(root), pnginfo=software)
    assert any("bars.png: is not what the records give" in found for found in problems(root))


def test_a_picture_that_cannot_be_drawn_again_is_seen(root):
    shutil.copy(picture(root), picture(root).with_name("ours.png"))
    write_pages(root)
    assert any("ours.png: no plot has this name" in found for found in problems(root))


def test_what_is_no_measurement_is_not_reported():
    text = """# Page

95 % intervals: 1.45 [95 %], in `4 s`, version 0.2, batches of 16 images.

```
took 3 s
```

## Arithmetic

<!-- not measured: arithmetic -->

It takes 3 s.

### More

It takes 4 s.

## Measured

It takes 5 s, and BLEU is 20.
"""
    assert [figure for _, figure in prose.unmarked(text)] == ["5 s", "BLEU is 20"]
