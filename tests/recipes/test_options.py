"""Options that a recipe cannot take are refused before anything is trained or written."""

import pytest

from mxopt import recipes
from mxopt.cli.main import main
from mxopt.core.errors import PlanError

REFUSED = [
    ("segmentation", "size=abc", "size='abc' must be a whole number"),
    ("segmentation", "limit=abc", "limit='abc' must be a whole number"),
    ("segmentation", "evaluate=maybe", "evaluate='maybe' must be true or false"),
    ("fashion_mnist", "stand_in=True", "stand_in='True' must be true or false"),
    ("translation", "dropout=NaN", "dropout=nan must be a finite number"),
    ("toy:toy", "train=many", "train='many' must be a whole number"),
    ("os:sep", "x=1", "os:sep is no recipe: it has to be a function"),
]


@pytest.mark.parametrize(("recipe", "option", "says"), REFUSED)
@pytest.mark.parametrize("command", ["run", "compare"])
def test_a_value_of_another_type_is_refused(
    tmp_path, monkeypatch, capsys, command, recipe, option, says
):
    monkeypatch.chdir(tmp_path)
    after = ["--after", "batch_size=8"] if command == "compare" else []
    assert main([command, recipe, "--option", option, *after]) == 2
    assert says in capsys.readouterr().err
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_a_lever_with_a_value_of_another_type_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["compare", "segmentation", "--after", "size=abc"]) == 2
    assert "size='abc' must be a whole number" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("recipe", recipes.BUILT_IN)
@pytest.mark.parametrize("limit", [0, -3])
def test_a_recipe_needs_a_sample(recipe, limit):
    with pytest.raises(PlanError, match=f"limit={limit} must be at least 1"):
        recipes.load(recipe, limit=limit)


@pytest.mark.parametrize("option", [{"target": "zz"}, {"source": "de", "target": "en"}])
def test_languages_need_a_folder_of_text(option):
    with pytest.raises(PlanError, match=r"name files of your own text: give its folder as root"):
        recipes.load("translation", **option)


def test_what_returns_no_recipe_is_none(tmp_path, capsys):
    with pytest.raises(PlanError, match="os:getcwd is no recipe: it returned str"):
        recipes.load("os:getcwd")
    assert main(["write-records", "os:getcwd", str(tmp_path / "z.rec")]) == 2
    assert "os:getcwd is no recipe" in capsys.readouterr().err
