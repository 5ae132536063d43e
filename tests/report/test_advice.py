"""Advice: runs that were crippled on purpose are told what cripples them."""

import shlex
from dataclasses import replace

import pytest

from mxopt import Plan, measure
from mxopt.cli.main import main
from mxopt.core import packed
from mxopt.core.errors import RecordError
from mxopt.core.records import read_run
from mxopt.report import card, checklist
from mxopt.report.advice import WORTH, advise, improved

TRAIN = "mxopt.chapter.workloads:train"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A short training on the stand-in, with nothing optimised."""
    record = tmp_path_factory.mktemp("advice") / "run-01.jsonl"
    options = {"recipe": "fashion_mnist", "stand_in": True, "limit": 300, "evaluate": False}
    plan = Plan(optimizer="adam", learning_rate=1e-3, batch_size=50, epochs=2)
    done = measure.run(TRAIN, plan, record, options)
    assert done.ok, done.reason
    return done


def changed(run, plan=None, **figures):
    """Return the run with other figures, as if it had been slow for another reason."""
    return replace(run, plan=plan or run.plan, figures={**run.figures, **figures})


def first(run):
    return advise(run)[0]


def test_a_run_says_how_long_it_waited(run):
    figures = run.figures
    assert 0 < figures["loading_seconds"] < figures["seconds"]
    assert 0 < figures["device_waiting_seconds"] < figures["seconds"]
    assert "waiting_seconds" not in figures  # older versions recorded less under this name


def test_a_starved_run_is_told_to_prepare_samples_once(run):
    starved = changed(
        run, seconds=10.0, loading_seconds=8.0, device_waiting_seconds=0.1, cpu_seconds=9.0
    )
    assert first(starved).switches == "preprocess=cached"
    assert "waited 80% of the time for batches, and 1% for the devices" in first(starved).why
    cached = changed(starved, starved.plan.replace(preprocess="cached"), training_seconds=11.0)
    assert "preprocess=cached" not in [one.switches for one in advise(cached)]


def test_idle_cores_are_named(run):
    idle = changed(
        run, seconds=10.0, loading_seconds=0.1, device_waiting_seconds=9.0, cpu_seconds=10.0
    )
    machine = {**run.only("environment"), "cpu": {"physical_cores": 8}}
    events = [machine if one["event"] == "environment" else one for one in run.events]
    idle = replace(idle, events=events)
    assert first(idle).switches == "cpu_threads=8"
    assert first(idle).share == pytest.approx(7 / 8)
    assert "1.0 of 8 cores were busy" in first(idle).why


def test_calls_one_by_one_are_named_where_the_loop_never_waits(run):
    calls = changed(
        run, seconds=10.0, loading_seconds=0.1, device_waiting_seconds=0.0, cpu_seconds=20.0
    )
    assert first(calls).switches == "hybridize=static"


def test_an_older_record_does_not_tell_how_long_operators_were_called(run):
    """Its ``waiting_seconds`` lack the waits at the end of each part of an epoch."""
    older = changed(run, seconds=10.0, loading_seconds=0.1, waiting_seconds=0.1, cpu_seconds=20.0)
    del older.figures["device_waiting_seconds"]
    [graph] = [one for one in advise(older) if one.switches == "hybridize=static"]
    assert graph.share == WORTH
    assert "% of the time" not in graph.why
    starved = changed(older, loading_seconds=8.0)
    assert first(starved).why.startswith("the loop waited 80% of the time for batches;")


def test_a_gpu_is_not_given_threads_and_an_allocator(run):
    figures = {
        "seconds": 10.0,
        "loading_seconds": 0.1,
        "device_waiting_seconds": 9.0,
        "cpu_seconds": 1.0,
    }
    on_cpu = changed(run, **figures)
    on_gpu = changed(run, run.plan.replace(devices="gpu:0"), **figures)
    advised = [
        {one.switches.partition("=")[0] for one in advise(each)} for each in (on_cpu, on_gpu)
    ]
    assert advised[0] - advised[1] == {"cpu_threads", "allocator"}


def test_padding_is_named_for_sentences(run):
    figures = {
        "seconds": 10.0,
        "loading_seconds": 0.1,
        "device_waiting_seconds": 9.0,
        "tokens": 1000,
    }
    assert "bucketing=length" not in [one.switches for one in advise(run)]
    found = advise(changed(run, cpu_seconds=20.0, **figures))
    assert "bucketing=length" in [one.switches for one in found]


def test_all_advice_together_is_a_plan(run):
    found = advise(run)
    assert found
    plan = improved(run.plan, found)
    assert plan != run.plan
    assert plan.hybridize == "static"


def test_a_run_that_failed_gets_none(run):
    with pytest.raises(RecordError, match=r"ended well \(failed\): no advice"):
        advise(replace(run, status="failed"))
    old = {name: value for name, value in run.figures.items() if name != "loading_seconds"}
    with pytest.raises(RecordError, match="does not say how long it waited; run it again"):
        advise(replace(run, figures=old))


def test_the_command_prints_the_rules_and_how_to_measure_them(run, capsys):
    assert main(["advise", str(run.path)]) == 0
    said = capsys.readouterr().out
    assert said.startswith("1. ")
    assert "hybridize=static" in said
    assert "to measure: mxopt compare fashion_mnist" in said
    assert "--option limit=300" in said
    assert "evaluate" not in said
    assert read_run(run.path).figures == run.figures


def test_the_command_that_is_printed_is_one(run, capsys, monkeypatch):
    main(["advise", str(run.path)])
    words = capsys.readouterr().out.split("to measure: mxopt ")[1].split()
    asked = {}
    monkeypatch.setattr(measure, "interleave", lambda *args, **how: asked.update(how) or exit(0))
    with pytest.raises(SystemExit):
        main(words)
    assert asked


def test_a_trial_of_a_search_is_measured_with_the_options_of_its_recipe(run, capsys, monkeypatch):
    of_search = {"journal": "study.log", "number": 0, "objective": "x", "pruner": "none"}
    own = {"root": "two words", "channels": [4, 8], "initial": "fan_in"}
    options = {name: value for name, value in run.options.items() if name != "evaluate"}
    workload = "mxopt.measure.search:trial"
    trial = replace(run, workload=workload, options={**options, **of_search, **own})
    monkeypatch.setattr(packed, "read_run", lambda _: trial)
    main(["advise", "trial-000.jsonl"])
    words = shlex.split(capsys.readouterr().out.split("to measure: mxopt ")[1])
    asked = {}
    monkeypatch.setattr(measure, "interleave", lambda *args, **how: asked.update(how) or exit(0))
    with pytest.raises(SystemExit):
        main(words)
    assert asked["arm_options"]["before"] == {**options, **own}


def test_every_line_of_the_checklist_has_a_state(run):
    cards = {one.name: one for one in card.read_cards()}

    def states(of):
        found = checklist.statuses(of, advise(of), cards)
        return {one.line.change.partition("=")[0]: one for one in found}

    starved = changed(
        run, seconds=10.0, loading_seconds=8.0, device_waiting_seconds=0.1, cpu_seconds=9.0
    )
    plain = states(starved)
    assert plain["preprocess"].state == checklist.HELPS
    assert "waited 80% of the time" in plain["preprocess"].why
    assert plain["bucketing"] == (
        plain["bucketing"].line, checklist.NOT_APPLICABLE, "the samples are no sentences"
    )  # fmt: skip
    assert plain["precision"].state == checklist.NOT_APPLICABLE
    assert plain["transform_batch"].state == checklist.NOT_APPLICABLE  # needs preprocess=cached
    assert "preprocess='lazy'" in plain["transform_batch"].why
    cached = states(changed(starved, starved.plan.replace(preprocess="cached", epochs=2)))
    assert cached["preprocess"] == (cached["preprocess"].line, checklist.DONE, "preprocess=cached")
    assert cached["transform_batch"].state == checklist.TRY
    assert cached["transform_batch"].why.startswith("measured elsewhere: transform_batch: 1")
    once = states(changed(starved, starved.plan.replace(epochs=1)))
    assert once["sampling_start"].why == "the run has one epoch"


def test_every_line_names_a_method_and_a_switch_of_it():
    cards = {one.name: one for one in card.read_cards()}
    for line in checklist.LINES:
        assert line.change.partition("=")[0] in cards[line.method].names
