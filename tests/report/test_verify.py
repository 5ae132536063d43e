"""Published results are recomputed, and every way to forge them is seen.

The records are of a small experiment that is measured here. Forgers know ``verify``: they compute
the seals of the records again, and write the pages again from the forged records.
"""

import contextlib
import json
import re
import shutil
from pathlib import Path

import pytest
from forgeries import FORGERIES
from forging import Records, longer
from PIL import Image

from mxopt import measure
from mxopt.cli.main import main
from mxopt.core.atomic import replace_text
from mxopt.core.errors import RecordError
from mxopt.core.plan import Plan
from mxopt.measure import read_experiment
from mxopt.report import plots, prose, results
from mxopt.report.verify import code, pages, verify

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
    records = longer(Records(measured), 40)
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


def test_the_page_of_every_processor_of_the_benchmarks_is_compared():
    folder = README.parent / "benchmarks"
    each = list((folder / "records").glob("*/README.md"))
    assert each
    assert pages._benchmarks(README.parent).keys() == {folder / "README.md", *each}


@pytest.mark.parametrize("forge", FORGERIES, ids=lambda forge: forge.__name__)
def test_a_forged_record_is_seen(root, forge):
    picture(root).unlink()  # it takes a while to draw
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


def test_sections_of_a_notebook_may_be_of_several_commits_which_the_page_names(root):
    other = Records(root / EXPERIMENT)
    other.head.update(name="other", title="Another section", headline=[])
    for run in other.runs:
        run[0].update(commit="f" * 40, source="e" * 64)
    other.write(root / EXPERIMENT.with_name("other.jsonl"))
    write_pages(root)
    assert problems(root) == []
    page = (root / "docs" / "results" / results.PAGE).read_text(encoding="utf-8")
    named = "- **commit**: ffffffffff (8_2: Another section); 0123456789 (8_2: small)\n"
    assert named in page


def test_a_page_of_one_commit_names_it_alone(good):
    page = (good / "docs" / "results" / results.PAGE).read_text(encoding="utf-8")
    assert "- **commit**: 0123456789\n" in page


# Pages, pictures and prose.


def replace(path, old, new):
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def test_a_changed_cell_of_a_table_is_seen(root):
    page = root / "docs" / "results" / results.PAGE
    replace(page, "hybridize: no → static", "hybridize: no → fused")
    assert any("is not what the records give; run mxopt" in found for found in problems(root))


def test_a_changed_page_of_errata_is_seen_with_the_command_that_writes_it(root, capsys):
    (root / "docs" / "errata.md").write_text("# Errata\n", encoding="utf-8")
    assert main(["verify", str(root / "docs" / "results"), "--readme", str(root / "README.md")])
    assert "run mxopt errata --write docs/errata.md to write it again" in capsys.readouterr().out


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
