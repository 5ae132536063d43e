"""The words of a command line: where a plan's may stand, and which are refused."""

import argparse
import shlex

import pytest

from mxopt import measure
from mxopt.cli import words
from mxopt.cli.main import main
from mxopt.core.plan import Plan


class Asked(Exception):
    """What a command would have run."""


@pytest.fixture
def asked(monkeypatch):
    """Let a run raise :class:`Asked` with its plan and its options, instead of training."""

    def run(workload, plan, record, options, *_):
        raise Asked(plan, options)

    monkeypatch.setattr(measure, "run", run)


@pytest.mark.parametrize(
    "given",
    [
        "batch_size=5 epochs=2 --option train=10 --record r.jsonl",
        "--option train=10 batch_size=5 epochs=2 --record r.jsonl",
        "batch_size=5 --record r.jsonl epochs=2 --option train=10",
        "--record r.jsonl --option train=10 epochs=2 batch_size=5",
    ],
)
def test_words_of_a_plan_may_stand_behind_named_arguments(tmp_path, monkeypatch, asked, given):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Asked) as found:
        main(["run", "toy:toy", *given.split()])
    assert found.value.args == (
        Plan(batch_size=5, epochs=2), {"recipe": "toy:toy", "train": 10},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("given", "unknown"),
    [
        ("run toy:toy --recrod r.jsonl epochs=2", "--recrod"),
        ("run toy:toy epochs=2 --option train=10 fast", "fast"),
        ("write-records toy:toy a.rec epochs=2", "epochs=2"),
    ],
)
def test_other_words_are_refused_with_the_usage_of_their_command(capsys, given, unknown):
    with pytest.raises(SystemExit) as stop:
        main(given.split())
    assert stop.value.code == 2
    said = capsys.readouterr().err
    assert f"usage: mxopt {given.split()[0]}" in said
    assert f"unrecognized arguments: {unknown}" in said


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("run toy:toy batch_size=8 batch_size=9", "'batch_size=9': batch_size is given a second"),
        ("run toy:toy --option train=8 --option train=9", "--option 'train=9': train is given a"),
        ("compare toy:toy --after train=8 train=9", "--after 'train=9': train is given a second"),
        ("compare toy:toy --after train", "--after 'train' is not understood; write NAME=VALUE"),
    ],
)
def test_what_is_given_twice_or_without_a_value_is_refused(
    tmp_path, monkeypatch, capsys, asked, given, says
):
    monkeypatch.chdir(tmp_path)
    assert main(given.split()) == 2
    assert says in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("command", ["compare", "ablate"])
@pytest.mark.parametrize("repeats", ["0", "-1", "2.5"])
def test_a_number_of_repeats_is_at_least_one(capsys, command, repeats):
    with pytest.raises(SystemExit) as stop:
        main([command, "toy:toy", "--after", "batch_size=8", "--repeats", repeats])
    assert stop.value.code == 2
    assert f"--repeats: '{repeats}' must be a whole number of at least 1" in capsys.readouterr().err


@pytest.mark.parametrize(
    "value", [96, 0.1, True, None, [32, 64], "tiny", "3", "true", "two words", "it's", ""]
)
def test_an_option_is_printed_as_it_is_read(value):
    [word] = shlex.split(words.assignment("name", value))
    assert words.option(word) == ("name", value)


def test_a_batch_script_needs_values_of_options(capsys):
    asked = ["slurm", "segmentation", "--nodes", "2", "--record", "r.jsonl", "--option", "size"]
    assert main(asked) == 2
    assert "--option 'size' is not understood; write NAME=VALUE" in capsys.readouterr().err


def test_the_help_of_run_lists_every_switch(capsys):
    with pytest.raises(SystemExit):
        main(["run", "--help"])
    said = capsys.readouterr().out
    for name in Plan().as_dict():
        assert f"\n  {name} " in said
    assert "no | yes | static | fused" in said
    assert "a whole number of at least 1; default: 4" in said
    assert "default: cpu:0" in said


def test_numbers_of_arguments_have_limits():
    assert words.whole(1, 100)("100") == 100
    assert words.above_zero("1e-7") == 1e-7
    for read, text in (
        (words.whole(1, 100), "101"), (words.whole(0), "-1"), (words.whole(0), "x"),
        (words.above_zero, "0"), (words.above_zero, "nan"), (words.above_zero, "inf"),
    ):  # fmt: skip
        with pytest.raises(argparse.ArgumentTypeError, match=f"'{text}' must be a"):
            read(text)
