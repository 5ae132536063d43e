"""README.md and the pages of docs: their examples run, their commands and links exist."""

import gzip
import re
from pathlib import Path

import numpy as np
import pytest

from mxopt.cli.main import _parser, main
from mxopt.core.plan import Plan
from mxopt.core.records import read_run

ROOT = Path(__file__).parents[1]
GUIDE = ROOT / "docs" / "guide.md"
INTRODUCTIONS = [ROOT / "README.md", GUIDE]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
MOST_WORDS = 1300


def blocks(page: Path, language: str = "") -> list[str]:
    """Return a page's blocks of code in a language; those that name none are commands."""
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(encoding="utf-8"), re.M | re.S)
    return [block for name, block in fenced if name == language]


@pytest.fixture
def fashion(tmp_path, monkeypatch):
    """A Fashion-MNIST of random pixels, in the files' own format."""
    folder = tmp_path / "data" / "fashion-mnist"
    folder.mkdir(parents=True)
    random = np.random.RandomState(0)
    for split, count in (("train", 40), ("t10k", 20)):
        images, labels = random.bytes(16 + 784 * count), bytes(8) + bytes([0, 1] * (count // 2))
        (folder / f"{split}-images-idx3-ubyte.gz").write_bytes(gzip.compress(images))
        (folder / f"{split}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(labels))
    monkeypatch.setenv("MXOPT_DATA", str(tmp_path / "data"))


def test_the_recipe_of_the_guide_trains_with_the_command_below_it(tmp_path, fashion, monkeypatch):
    guide = GUIDE.read_text(encoding="utf-8")
    (recipe,) = (block for block in blocks(GUIDE, "python") if "def recipe" in block)
    (tmp_path / "digits.py").write_text(recipe, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    command = re.search(r"^mxopt (run digits:recipe .*)$", guide, re.MULTILINE)[1]
    assert main([*command.split(), "--record", "run.jsonl"]) == 0
    figures = read_run(tmp_path / "run.jsonl").figures
    assert figures["samples"] == 80
    assert 0 <= figures["test_accuracy"] <= 1


@pytest.mark.parametrize("page", INTRODUCTIONS, ids=lambda page: page.name)
def test_the_example_of_a_plan_shows_what_differs(page):
    (example,) = (block for block in blocks(page, "python") if "before.diff(after)" in block)
    *lines, last = example.strip().splitlines()
    call, _, shown = last.partition("  # ")
    names = {}
    exec("\n".join(lines), names)
    assert repr(eval(call, names)) == shown


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files_of_the_repository(page):
    for link in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
        assert link.startswith("https://") or (page.parent / link).exists(), link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_are_understood(page):
    for block in blocks(page):
        for command in re.findall(r"\bmxopt ((?:\\\n|[^\n#>])+)", block):
            given = _parser().parse_args(command.replace("\\\n", " ").split())
            Plan.parse(getattr(given, "switches", []))


def test_the_readme_stays_short():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    text = re.sub(r"<!-- (results|methods): begin -->.*<!-- \1: end -->", "", text, flags=re.DOTALL)
    assert len(text.split()) < MOST_WORDS


def test_the_architecture_names_every_layer_in_the_order_that_is_checked():
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    layers = re.findall(r'"(\w+)"', re.search(r"^layers = \[(.*?)^\]", project, re.M | re.S)[1])
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    assert " · ".join(f"`{name}`" for name in reversed(layers)) in page
    assert all(f"\n  {name}/ " in page for name in layers)
