import itertools
import re
import shlex
import subprocess
import sys
from pathlib import Path

import needs
import pytest
from halving import GOOD, write

from mxopt import recipes
from mxopt.core.errors import RecordError
from mxopt.core.plan import Plan
from mxopt.core.records import Run
from mxopt.measure import Experiment
from mxopt.methods import METHODS
from mxopt.report import card, cards
from mxopt.report.measured import Measured

ROOT = Path(__file__).parents[2]
CARDS = sorted((ROOT / "mxopt" / "methods").glob("*/README.md"))
BLOCK = re.compile(r"^```python ?(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
BLOCKS = [
    pytest.param(
        how, code, id=f"{path.parent.name}-{number}",
        marks=needs.bfloat16 if how == "process" and "bfloat16" in code else (),
    )
    for path in CARDS
    for number, (how, code) in enumerate(BLOCK.findall(path.read_text(encoding="utf-8")))
]  # fmt: skip


@pytest.mark.parametrize("path", CARDS, ids=lambda path: path.parent.name)
def test_every_card_has_the_front_matter_the_headings_and_two_sentences(path):
    found = card.read_card(path)
    assert found.switches or "There is no switch of the plan" in found.text
    assert found.tested_on
    what = found.text.split("## What it does\n")[1].split("\n## ")[0].strip()
    assert len(re.findall(r"\.(?=\s|$)", what)) == 2, what
    use = found.text.split("## Use it\n")[1].split("\n## ")[0]
    assert not found.names or any(f"{name}=" in use for name in found.names)
    assert BLOCK.search(use)


def test_cards_have_the_switches_of_their_methods():
    declared = {}
    for method in METHODS:
        options = [
            f"{one} ({name.split(':')[-1]})" for name, all in method.options.items() for one in all
        ]
        declared[method.__module__.split(".")[2]] = {*method.switches, *options}
    assert {found.name: {*found.switches} for found in card.read_cards()} == declared


@pytest.mark.parametrize("path", CARDS, ids=lambda path: path.parent.name)
def test_the_links_of_a_card_lead_somewhere(path):
    for target in re.findall(r"\]\(([^)#]+)", path.read_text(encoding="utf-8")):
        assert (path.parent / target).exists(), target


@pytest.mark.parametrize("path", CARDS, ids=lambda path: path.parent.name)
def test_every_figure_of_a_card_links_to_its_record(path):
    table = path.read_text(encoding="utf-8").split("<!-- measured: begin -->")[1]
    rows = [line.strip("|").split(" | ") for line in table.splitlines() if line.startswith("|")]
    for row in rows[2:]:
        for cell in filter(str.strip, row[rows[0].index("data") + 1 :]):
            assert re.search(r": \[[^\[\]]+\]\([^()]+\.jsonl\)$", cell.strip()), cell


@pytest.mark.parametrize("path", CARDS, ids=lambda path: path.parent.name)
def test_the_plans_of_a_card_are_plans(path):
    text = path.read_text(encoding="utf-8")
    commands = re.findall(r"^mxopt run (.*)$", text, re.MULTILINE)
    assert commands or "There is no switch of the plan" in text
    for command in commands:
        recipe, *words = shlex.split(command, comments=True)
        assert recipe in recipes.BUILT_IN
        Plan.parse(itertools.takewhile(lambda word: not word.startswith("--"), words))


@pytest.mark.parametrize(("how", "code"), BLOCKS)
def test_the_code_of_a_card_runs(how, code, tmp_path, monkeypatch):
    """It runs in this process or in a new one (``python process``), or is only compiled.

    ``python compiled`` marks code that needs something a test machine may not have.
    """
    monkeypatch.chdir(tmp_path)
    assert how in ("", "process", "compiled")
    program = compile(code, "card", "exec")
    if how == "":
        exec(program, {"__name__": "card"})
    if how == "process":
        subprocess.run([sys.executable, "-c", code], check=True)


def test_a_forged_figure_is_caught(tmp_path, monkeypatch, capsys):
    true = "| DeepLab | 1.23 [1.20, 1.26] |"
    forged = write(tmp_path, true.replace("1.23", "9.99"))
    monkeypatch.setattr(cards, "pages", lambda root: iter([(forged, true)]))
    assert cards.main(["--check"]) == 1
    assert str(forged) in capsys.readouterr().out
    assert cards.main([]) == 0
    assert forged.read_text(encoding="utf-8") == true
    assert cards.main(["--check"]) == 0


def test_a_pair_belongs_to_the_method_whose_switches_alone_differ(tmp_path):
    found = card.read_card(write(tmp_path, GOOD))
    assert (found.title, found.summary, found.names) == ("Halving", "Halves.", {"half", "loss"})
    assert found.owns({"half"})
    assert found.owns({"half": 1, "loss": 2, "batch_size": 3})
    assert not found.owns({"batch_size"})
    assert not found.owns({"half", "other"})
    assert not found.owns({})


def test_a_pair_named_beforehand_stands_for_a_method(tmp_path):
    def run(seconds, *events):
        return Run(tmp_path / "x", Plan(), "w", status="ok", figures={"seconds": seconds},
                   events=list(events), read_all=lambda: iter([]))  # fmt: skip

    seconds = {"four": 2.0, "eight": 1.0, "sixteen": 3.0}
    plans = {"four": Plan(), "eight": Plan(batch_size=8), "sixteen": Plan(batch_size=16)}
    runs = {arm: [run(s), run(1.01 * s)] for arm, s in seconds.items()}
    real = {"event": "data", "kind": "real"}
    halving = card.read_card(write(tmp_path, GOOD.replace("half,", "batch_size,")))

    pairs = []

    def shown(*named):
        found = Experiment("e", "w", plans, runs=runs, headline=list(named))
        pairs[:] = [
            Measured(found, tmp_path / "e.jsonl", "four", arm) for arm in ("eight", "sixteen")
        ]
        [row] = cards.listing([halving], pairs, tmp_path / "page.md", short=True).rows
        return row[-1]

    assert shown().startswith("batch_size: 4 → 8: 2.00")
    assert shown(["four", "sixteen"]).startswith("batch_size: 4 → 16: 0.67")  # though it lost
    # A pair that begins with the plan's defaults stands before a named one whose arms both use it.
    found = Experiment("e", "w", plans, runs=runs, headline=[("eight", "sixteen")])
    pairs[:] = [
        Measured(found, tmp_path / "e.jsonl", *names)
        for names in (("eight", "sixteen"), ("four", "sixteen"))
    ]
    [row] = cards.listing([halving], pairs, tmp_path / "page.md", short=True).rows
    assert row[-1].startswith("batch_size: 4 → 16: 0.67")
    # One that reads data stands before one that was named and does not.
    read = {arm: [run(s, real), run(s, real)] for arm, s in (("four", 2.0), ("eight", 1.6))}
    on_data = Experiment("e", "w", {arm: plans[arm] for arm in read}, runs=read)
    pairs.append(Measured(on_data, tmp_path / "e.jsonl", "four", "eight"))
    [row] = cards.listing([halving], pairs, tmp_path / "page.md", short=True).rows
    assert row[-1].startswith("batch_size: 4 → 8: 1.25")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("---\nname", "name", "front matter"),
        ("kind: exact", "kind: [", "YAML"),
        ("kind: exact", "kind: quick", "quick"),
        ("name: halving", "name: other", "halving"),
        ("switches: [half, loss (translation)]\n", "", "switches"),
        ("tested_on: cpu\n", "", "tested_on"),
        ("tested_on: cpu\n", "tested_on: cpu\nauthor: me\n", "author"),
        ("## Source\n", "", "Measured"),
        ("## Use it\n", "## How to use it\n", "How to use it"),
    ],
)
def test_a_damaged_card_is_refused(old, new, says, tmp_path):
    with pytest.raises(RecordError, match=says):
        card.read_card(write(tmp_path, GOOD.replace(old, new, 1)))


def test_a_page_without_its_marks_says_which_are_missing(tmp_path):
    with pytest.raises(RecordError, match="<!-- methods: begin -->"):
        cards.between(tmp_path / "README.md", "# mxopt\n", "methods", "table")
    text = "a\n<!-- methods: begin -->\nold\n<!-- methods: end -->\nb\n"
    written = cards.between(tmp_path / "README.md", text, "methods", "new")
    assert written == "a\n<!-- methods: begin -->\n\nnew\n\n<!-- methods: end -->\nb\n"
