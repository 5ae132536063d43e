"""The largest batch: the search, and trials that end for lack of memory."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mxopt import Plan
from mxopt.cli.main import main
from mxopt.core.errors import MxoptError, PlanError, RecordError
from mxopt.core.records import read_run
from mxopt.measure import batch_size
from mxopt.measure.batch_size import largest, search


@given(st.integers(0, 5000), st.integers(1, 64), st.one_of(st.none(), st.integers(1, 6000)))
def test_the_largest_that_fits_is_found_with_few_trials(limit, first, most):
    tried = []

    def fits(size):
        tried.append(size)
        return size <= limit

    expected = limit if most is None else min(limit, most)
    assert largest(fits, first, most) == expected
    assert len(tried) == len(set(tried)) <= 2 * 14
    assert most is None or max(tried) <= most


def test_a_batch_is_at_most_the_training_set(tmp_path, in_process):
    runs = []
    found = search("toy:toy", Plan(batch_size=8), tmp_path, {"train": 20}, seen=runs.append)
    assert found == 20
    assert all(run.ok and run.figures["samples"] <= 20 for run in runs)
    assert all(run.figures["peak_memory"] > 50 for run in runs)


def test_a_batch_that_does_not_fit_is_half_a_batch(tmp_path, in_process):
    """The recipe refuses batches above 11, in the words of a device without memory."""
    runs = []
    found = search("starved:recipe", Plan(batch_size=4), tmp_path, seen=runs.append)
    assert found == 11
    assert [run.plan.batch_size for run in runs] == [4, 8, 16, 12, 10, 11]
    assert "out of memory" in runs[2].reason
    again = []
    assert search("starved:recipe", Plan(batch_size=4), tmp_path, seen=again.append) == 11
    assert [run.figures for run in again] == [run.figures for run in runs]  # none is repeated
    with pytest.raises(RecordError, match=r"batch-4\.jsonl is the record of another run"):
        search("starved:recipe", Plan(batch_size=4, momentum=0.9), tmp_path)


def test_another_failure_ends_the_search(tmp_path):
    with pytest.raises(MxoptError, match=r"batch_size=2 ended as failed: .*broken"):
        search("starved:broken", Plan(batch_size=2), tmp_path)


def test_a_trial_that_was_interrupted_is_repeated(tmp_path, in_process):
    """Its record has no end, as Ctrl-C leaves it."""
    assert search("toy:toy", Plan(batch_size=8), tmp_path, {"train": 20}) == 20
    record = tmp_path / "batch-16.jsonl"
    *lines, _ = record.read_text().splitlines()
    record.write_text("\n".join(lines) + "\n")
    runs = []
    assert search("toy:toy", Plan(batch_size=8), tmp_path, {"train": 20}, seen=runs.append) == 20
    assert all(run.ok for run in runs)
    assert (tmp_path / "batch-16.killed-1").exists()


def test_a_trial_that_the_system_killed_is_recorded_as_not_fitting(tmp_path):
    assert search("starved:killed", Plan(batch_size=5), tmp_path, most=6) == 5
    done = read_run(tmp_path / "batch-6.jsonl")
    assert (done.status, done.error) == ("failed", "CapacityError")
    assert done.reason.endswith("(SIGKILL)")
    runs = []
    assert search("starved:killed", Plan(batch_size=5), tmp_path, most=6, seen=runs.append) == 5
    assert [run.started for run in runs][1] == done.started  # it is not repeated


def test_a_trial_that_another_signal_ended_is_no_lack_of_memory(tmp_path):
    options = {"signal": "SIGTERM"}
    with pytest.raises(MxoptError, match=r"batch_size=6 ended as killed: .*SIGTERM"):
        search("starved:killed", Plan(batch_size=6), tmp_path, options)


def test_an_error_that_only_mentions_memory_is_another_failure(tmp_path, in_process):
    with pytest.raises(MxoptError, match=r"batch_size=2 ended as failed: .*shared_memory"):
        search("starved:with_a_broken_loader", Plan(batch_size=2), tmp_path)


def test_a_record_that_lacks_the_class_of_its_error_is_measured_again(tmp_path, in_process):
    runs = []
    search("starved:recipe", Plan(batch_size=8), tmp_path)
    record = tmp_path / "batch-16.jsonl"
    assert read_run(record).error == "CapacityError"
    *lines, end = record.read_text().splitlines()
    older = {name: value for name, value in json.loads(end).items() if name != "error"}
    record.write_text("\n".join([*lines, json.dumps(older)]) + "\n")
    assert search("starved:recipe", Plan(batch_size=8), tmp_path, seen=runs.append) == 11
    assert runs[1].error == "CapacityError"
    assert (tmp_path / "batch-16.killed-1").exists()


def test_a_limit_below_one_is_refused(tmp_path):
    with pytest.raises(PlanError, match="most=0 must be at least 1"):
        search("toy:toy", Plan(), tmp_path, most=0)


def test_the_command_prints_every_trial_and_the_result(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(batch_size, "search", pretended)
    words = ["find-batch", "toy:toy", "batch_size=2", "--results", str(tmp_path / "found")]
    assert main(words) == 0
    said = capsys.readouterr().out
    assert "largest batch that trains here: 6" in said


def pretended(recipe, plan, folder, options, most, seen):
    assert (recipe, plan.batch_size, options, most) == ("toy:toy", 2, {}, None)
    return 6
