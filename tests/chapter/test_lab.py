import itertools
import re
from dataclasses import fields

import pytest

from mxopt.chapter import lab
from mxopt.chapter.lab import SETTINGS, open_lab
from mxopt.core.errors import PlanError, RecordError
from mxopt.core.plan import Plan
from mxopt.methods.data_parallel import parallel


def test_the_lab_says_what_it_picked_and_why(tmp_path, capsys):
    opened = open_lab("8_1", tier="smoke", folder=tmp_path / "results")
    assert (opened.tier, opened.one, opened.many) == ("smoke", "cpu:0", "cpu:0-3")
    said = capsys.readouterr().out
    assert "tier: smoke (requested)" in said
    assert str(tmp_path / "results" / "8_1") in said


def test_tier_and_folder_come_from_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("MXOPT_TIER", "cpu")
    monkeypatch.setenv("MXOPT_RESULTS", str(tmp_path / "here"))
    opened = open_lab("8_1")
    assert (opened.tier, opened.folder) == ("cpu", tmp_path / "here" / "8_1")


@pytest.mark.parametrize("chapter", sorted(SETTINGS))
@pytest.mark.parametrize("tier", ["smoke", "cpu", "gpu"])
def test_every_tier_has_the_same_settings(chapter, tier):
    """No cell needs editing: what one tier has, all of them have."""
    settings = SETTINGS[chapter]
    assert settings[tier].keys() == settings["smoke"].keys()
    plan = Plan(**settings[tier]["plan"])
    assert parallel.scaled(plan, "cpu:0-3").batch_size == 4 * plan.batch_size


def _ablations():
    """Return the settings that have an ablation, those of long runs included, with their names."""
    every = {
        f"{chapter}-{tier}": {**settings, **settings.get("long", {})}
        for chapter, tiers in SETTINGS.items()
        for tier, settings in tiers.items()
    }
    return {name: settings for name, settings in every.items() if settings.get("ablation")}


@pytest.mark.parametrize("name", _ablations())
def test_levers_of_an_ablation_can_be_added_in_any_order(name):
    settings = _ablations()[name]
    plan, switches = Plan(**settings["plan"]), {field.name for field in fields(Plan)}
    levers = settings["ablation"].values()
    for count in range(len(levers) + 1):
        for some in itertools.combinations(levers, count):
            added = {name: value for lever in some for name, value in lever.items()}
            plan.replace(**{name: added[name] for name in added.keys() & switches})


def test_what_the_lab_measures_is_kept_in_its_folder(tmp_path, in_process):
    opened = open_lab("8_1", tier="smoke", folder=tmp_path)
    experiment = opened.measure("demo", "toy:sleepy", {"one": Plan(), "two": Plan(batch_size=8)})
    assert len(experiment.runs["one"]) == SETTINGS["8_1"]["smoke"]["repeats"]
    assert (tmp_path / "8_1" / "demo" / "two-01.jsonl").exists()


def test_results_are_never_mixed(tmp_path):
    opened = open_lab("8_1", tier="smoke", folder=tmp_path)
    (opened.folder / "kept").write_text("")
    with pytest.raises(RecordError, match="already holds results"):
        open_lab("8_1", tier="smoke", folder=tmp_path)


@pytest.mark.fault(
    "disk",
    "a notebook's results folder cannot be made",
    sees="cannot make the results folder",
)
def test_an_unwritable_folder_is_refused(tmp_path, sees):
    (tmp_path / "file").write_text("")
    with sees.raised(RecordError):
        open_lab("8_1", tier="smoke", folder=tmp_path / "file")


def test_an_unknown_tier_is_refused(tmp_path):
    with pytest.raises(PlanError, match="smoke, cpu, gpu"):
        open_lab("8_1", tier="tpu", folder=tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.fault(
    "network",
    "pre-trained weights are unavailable",
    sees="instead: the smoke tier's small network, from scratch",
    lost="the pre-trained network",
)
def test_weights_that_are_not_to_be_had_leave_the_small_network(
    tmp_path, monkeypatch, capsys, sees
):
    monkeypatch.setattr(lab.data, "reachable", lambda name: (name == "penn-fudan", "no network"))
    monkeypatch.setenv("MXOPT_OFFLINE", "1")
    opened = open_lab("8_2", tier="cpu", folder=tmp_path)
    assert opened.settings == SETTINGS["8_2"]["smoke"]
    said = capsys.readouterr().out
    assert "deeplab-mobilenetv2 is unavailable. no network" in said
    sees(said)


def test_what_a_tier_reads_is_fetched_before_anything_is_measured(monkeypatch):
    asked = []

    def locate(name, allow_download):
        asked.append((name, allow_download))
        return lab.data.Location(name, None, "real", "cache")

    monkeypatch.setattr(lab.data, "reachable", lambda name: (True, ""))
    monkeypatch.setattr(lab.data, "locate", locate)
    assert lab.find_data("cpu") == []
    assert asked == [
        ("penn-fudan", True),
        ("deeplab-mobilenetv2", True),
        ("multi30k", True),
    ]
    asked.clear()
    lab.find_data("smoke")
    assert asked == [("penn-fudan", False)]


def test_an_unknown_notebook_is_refused(tmp_path):
    with pytest.raises(PlanError, match="there are 8_1, 8_2"):
        open_lab("9_1", tier="smoke", folder=tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_new_folder_is_named_by_when_and_where():
    assert re.fullmatch(r"\d{4}-\d\d-\d\d-\d{6}-[\w-]+", lab.new_results_folder().name)
