import re

import pytest

from mxopt import lab, parallel
from mxopt.errors import PlanError, RecordError
from mxopt.lab import SETTINGS, open_lab
from mxopt.plan import Plan


def test_the_lab_says_what_it_picked_and_why(tmp_path, capsys):
    opened = open_lab("8_1", tier="smoke", folder=tmp_path / "results")
    assert (opened.tier, opened.one, opened.many) == ("smoke", "cpu:0", "cpu:0-3")
    said = capsys.readouterr().out
    assert "tier: smoke (asked for)" in said
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


def test_what_the_lab_measures_is_kept_in_its_folder(tmp_path):
    opened = open_lab("8_1", tier="smoke", folder=tmp_path)
    experiment = opened.measure("demo", "toy:sleepy", {"one": Plan(), "two": Plan(batch_size=8)})
    assert len(experiment.runs["one"]) == SETTINGS["8_1"]["smoke"]["repeats"]
    assert (tmp_path / "8_1" / "demo" / "two-01.jsonl").exists()


def test_results_are_never_mixed(tmp_path):
    opened = open_lab("8_1", tier="smoke", folder=tmp_path)
    (opened.folder / "kept").write_text("")
    with pytest.raises(RecordError, match="holds results already"):
        open_lab("8_1", tier="smoke", folder=tmp_path)


def test_an_unwritable_folder_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RecordError, match=r"cannot make the results folder .*file"):
        open_lab("8_1", tier="smoke", folder=tmp_path / "file")


def test_an_unknown_tier_is_refused(tmp_path):
    with pytest.raises(PlanError, match="smoke, cpu, gpu"):
        open_lab("8_1", tier="tpu", folder=tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_new_folder_is_named_by_when_and_where():
    assert re.fullmatch(r"\d{4}-\d\d-\d\d-\d{6}-[\w-]+", lab.new_results_folder().name)
