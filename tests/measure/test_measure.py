import json
import math
import multiprocessing

import pytest
from faults import within

from mxopt.core.errors import PlanError, RecordError
from mxopt.core.plan import Plan
from mxopt.core.records import RecordWriter, being_written, read_run
from mxopt.measure import interleave, ladder, pack, process, read_experiment, run
from mxopt.measure.interleave import rotated


def test_a_workload_runs_under_its_plan_and_leaves_a_record(tmp_path):
    plan = Plan(engine="NaiveEngine", batch_size=3)
    done = run("toy:sleepy", plan, tmp_path / "a.jsonl", {"value": 2.0})
    assert done.ok, done.reason
    whole = {"process_seconds", "process_cpu_seconds"}
    assert {name: v for name, v in done.figures.items() if name not in whole} == {
        "seconds": 6.0, "engine": "NaiveEngine",
    }  # fmt: skip
    assert done.figures["process_cpu_seconds"] > 0
    assert len(done.source) == 64
    assert (done.plan, done.options) == (plan, {"value": 2.0})
    assert done.only("environment")["packages"]["mxnet"] == "1.9.1"


@pytest.mark.parametrize(
    ("options", "status", "reason"),
    [
        ({"fail": "refuse"}, "refused", "not on this device"),
        ({"fail": "it broke"}, "failed", "RuntimeError: it broke"),
    ],
)
def test_a_run_that_ends_badly_says_how(tmp_path, options, status, reason):
    done = run("toy:sleepy", Plan(), tmp_path / "a.jsonl", options)
    assert done.status == status
    assert reason in done.reason
    assert not done.ok


@pytest.mark.fault(
    "runs",
    "the process of a measured run is killed",
    lost="that run",
    sees="killed: the process ended without writing its result (SIGKILL)",
)
def test_a_run_that_is_killed_says_by_what(tmp_path, sees):
    done = run("toy:sleepy", Plan(), tmp_path / "a.jsonl", {"kill": True})
    sees(f"{done.status}: {done.reason}")


@pytest.mark.fault(
    "runs",
    "a notebook's kernel, or `mxopt`, is killed while a run is at work",
    sees="the process ended without writing its result",
    lost="that run, which ends as well",
)
def test_a_run_ends_with_the_process_that_asked_for_it(tmp_path, sees):
    record = tmp_path / "a.jsonl"
    asking = multiprocessing.get_context("fork").Process(
        target=run, args=("toy:sleepy", Plan(), record, {"sleep": 60})
    )
    asking.start()
    within(120, lambda: record.exists() and "environment" in record.read_text())
    asking.kill()
    assert within(30, lambda: not being_written(record))
    sees(read_run(record).reason)


@pytest.mark.parametrize("room", [-50, 50])
@pytest.mark.fault(
    "disk",
    "the disk is full during a measured run",
    lost="that run",
    sees="cannot write ...a.jsonl (File too large); free some space",
)
def test_a_run_on_a_full_disk_says_so(tmp_path, little_disk, room, sees):
    """Whether the record's first line still fits or not."""
    with RecordWriter(tmp_path / "first.jsonl") as writer:
        writer.begin("toy:sleepy", Plan().as_dict(), {})
    with little_disk((tmp_path / "first.jsonl").stat().st_size + room):
        try:
            said = run("toy:sleepy", Plan(), tmp_path / "a.jsonl").reason
        except RecordError as error:
            said = str(error)
    sees(said)


def test_the_process_imports_what_this_one_can(tmp_path, monkeypatch):
    (tmp_path / "of_mine.py").write_text("def work(plan, write):\n    return {'seconds': 1.0}\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert run("of_mine:work", Plan(), tmp_path / "a.jsonl").ok


@pytest.mark.fault(
    "runs",
    "the process of a run does not start",
    sees="failed: no message",
    lost="that run",
)
def test_a_process_that_cannot_start_leaves_a_record_too(tmp_path, monkeypatch, sees):
    monkeypatch.setattr(process.sys, "executable", "/bin/false")
    done = run("toy:sleepy", Plan(), tmp_path / "a.jsonl")
    sees(f"{done.status}: {done.reason}")


@pytest.mark.fault(
    "machine",
    "a plan asks for Intel OpenMP, which is not installed",
    sees="pip install intel-openmp",
)
def test_what_this_machine_lacks_is_refused_without_a_process(tmp_path, monkeypatch, sees):
    monkeypatch.setattr(process.sys, "prefix", str(tmp_path))
    done = run("toy:sleepy", Plan(openmp="intel"), tmp_path / "r.jsonl")
    assert done.status == "refused"
    sees(done.reason)


def test_an_option_that_a_workload_does_not_take_is_refused_without_a_process(tmp_path):
    with pytest.raises(PlanError, match="no option is called 'colour'; The options: fail, kill"):
        run("toy:sleepy", Plan(), tmp_path / "a.jsonl", {"colour": "red"})
    assert not list(tmp_path.iterdir())


def test_a_diverged_run_keeps_its_record(tmp_path):
    done = run("mxopt.chapter.workloads:train", Plan(), tmp_path / "a.jsonl",
               {"recipe": "toy:toy", "poison": 0})  # fmt: skip
    assert done.status == "diverged"
    assert done.reason.startswith("diverged at step 1")
    assert list(done.steps())


def test_arms_are_interleaved_and_read_back(tmp_path):
    arms = {"before": Plan(batch_size=4), "after": Plan(batch_size=2)}
    measured = interleave("demo", "toy:sleepy", arms, repeats=2, folder=tmp_path, title="Demo",
                          arm_options={"after": {"value": 0.5}})  # fmt: skip
    started = {p.name: read_run(p).started for p in (tmp_path / "demo").glob("*.jsonl")}
    assert sorted(started, key=started.get) == [
        "before-01.jsonl", "after-01.jsonl", "after-02.jsonl", "before-02.jsonl",
    ]  # fmt: skip
    for experiment in (measured, read_experiment(tmp_path / "demo")):
        assert experiment.figures("after") == [1.0, 1.0]
        assert experiment.ratio("after").value == pytest.approx(4)
        assert experiment.factors("after") == {"batch_size": (4, 2), "value": ("default", 0.5)}
        assert (experiment.title, experiment.planned) == ("Demo", 2)
    pack(tmp_path / "demo", tmp_path / "packed.jsonl")
    lines = map(json.loads, (tmp_path / "packed.jsonl").read_text().splitlines())
    starts = [(line["run"], line["arm"]) for line in lines if line["event"] == "start"]
    assert starts == [(1, "before"), (1, "after"), (2, "after"), (2, "before")]


def test_each_repeat_begins_with_the_next_arm():
    assert [rotated(list("abc"), repeat)[0] for repeat in range(4)] == ["a", "b", "c", "a"]
    assert rotated(list("abc"), 1) == ["b", "c", "a"]


def test_an_arm_is_measured_again_with_the_same_plan_and_options(tmp_path, in_process):
    arms = {"before": Plan(), "after": Plan(batch_size=2)}
    measured = interleave("demo", "toy:sleepy", arms, repeats=2, folder=tmp_path, seeds=True,
                          again="after", arm_options={"after": {"value": 0.5}})  # fmt: skip
    for experiment in (measured, read_experiment(tmp_path / "demo")):
        assert experiment.again == "after-again"
        assert experiment.compared() == [("before", "after"), ("after", "after-again")]
        assert experiment.factors("after-again", "after") == {}
        for first, second in zip(experiment.runs["after"], experiment.runs["after-again"]):
            assert (first.plan, first.options) == (second.plan, second.options)
        assert experiment.seeds
    with pytest.raises(PlanError, match="no arm is called 'during'; there are before, after"):
        interleave("other", "toy:sleepy", arms, repeats=1, folder=tmp_path, again="during")


def test_headline_pairs_are_pairs_of_the_experiment(tmp_path, in_process):
    arms = {"before": Plan(), "after": Plan(batch_size=2)}
    how = {"repeats": 1, "folder": tmp_path}
    with pytest.raises(PlanError, match="the headline after → before is not a pair of demo"):
        interleave("demo", "toy:sleepy", arms, headline=[["after", "before"]], **how)
    found = interleave("demo", "toy:sleepy", arms, headline=[("before", "after")], **how)
    assert [tuple(pair) for pair in found.headline] == [("before", "after")]


def test_decisions_are_not_changed_after_runs_were_seen(tmp_path, in_process):
    arms = {"one": Plan(), "two": Plan(batch_size=8)}
    how = {"repeats": 2, "folder": tmp_path, "goal": 0.9, "resume": True}
    interleave("demo", "toy:sleepy", arms, **how)
    assert interleave("demo", "toy:sleepy", arms, **how).resumed == 4
    for changed, says in (
        ({"repeats": 3}, "begun with planned = 2 and cannot be resumed with 3"),
        ({"goal": 0.8}, "begun with goal = 0.9"),
        ({"margin": 0.1}, "begun with margin = 0.0"),
        ({"headline": [("one", "two")]}, r"begun with headline = \[\]"),
        ({"again": "one"}, "begun with again = "),
    ):
        with pytest.raises(RecordError, match=says):
            interleave("demo", "toy:sleepy", arms, **{**how, **changed})


def test_runs_are_not_added_to_a_finished_experiment(tmp_path, in_process):
    arms = {"one": Plan(), "two": Plan(batch_size=8)}
    interleave("demo", "toy:sleepy", arms, repeats=2, folder=tmp_path)
    with pytest.raises(RecordError, match=r"already holds an experiment.*never overwritten"):
        interleave("demo", "toy:sleepy", {"three": Plan()}, repeats=1, folder=tmp_path)
    run("toy:sleepy", Plan(), tmp_path / "demo" / "one-03.jsonl")
    with pytest.raises(RecordError, match="3 runs of one, and 2 were planned"):
        read_experiment(tmp_path / "demo")


def test_a_missing_run_does_not_shift_the_pairs(tmp_path, in_process):
    interleave("demo", "toy:sleepy", {"one": Plan(), "two": Plan()}, repeats=2, folder=tmp_path)
    (tmp_path / "demo" / "one-01.jsonl").unlink()
    with pytest.raises(RecordError, match="demo: run 1 of one is missing"):
        read_experiment(tmp_path / "demo")


def test_a_part_of_the_planned_runs_shows_nothing(tmp_path, in_process):
    arms = {"slow": Plan(batch_size=8), "fast": Plan()}
    interleave("demo", "toy:sleepy", arms, repeats=3, folder=tmp_path)
    assert read_experiment(tmp_path / "demo").verdict("fast") == "faster"
    (tmp_path / "demo" / "fast-03.jsonl").unlink()
    found = read_experiment(tmp_path / "demo")
    assert found.verdict("fast") == "unfinished: 2 of 3 planned runs"


def test_an_arm_that_did_not_run_has_no_figure_but_a_reason(tmp_path, in_process):
    arms = {"before": Plan(), "after": Plan()}
    experiment = interleave("demo", "toy:sleepy", arms, repeats=2, folder=tmp_path,
                            arm_options={"after": {"fail": "refuse"}})  # fmt: skip
    assert {arm: len(runs) for arm, runs in experiment.runs.items()} == {"before": 2, "after": 1}
    assert experiment.ratio("after") is None
    assert math.isnan(experiment.median("after"))
    assert experiment.why_not("after") == "not on this device"
    assert experiment.verdict("after") == "after refused"


def test_an_experiment_is_never_overwritten(tmp_path, in_process):
    arguments = {"repeats": 1, "folder": tmp_path}
    interleave("demo", "toy:sleepy", {"one": Plan()}, **arguments)
    with pytest.raises(RecordError, match="never overwritten"):
        interleave("demo", "toy:sleepy", {"one": Plan()}, **arguments)


@pytest.mark.fault(
    "files",
    "an experiment's description is damaged",
    sees="does not hold a readable experiment",
    lost="its title and arms; the records are there",
)
def test_a_damaged_experiment_is_named(tmp_path, sees):
    (tmp_path / "experiment.json").write_text(json.dumps({"arms": 1}))
    with sees.raised(RecordError):
        read_experiment(tmp_path)


def test_an_unwritable_results_folder_is_refused_before_the_run(tmp_path):
    (tmp_path / "results").write_text("a file")
    with pytest.raises(RecordError, match="results"):
        run("toy:sleepy", Plan(), tmp_path / "results" / "a.jsonl")


def test_a_ladder_adds_one_lever_to_those_before_it():
    levers = {
        "static": {"hybridize": "static"},
        "small": {"size": 32},
        "both": {"size": 16, "seed": 3},
    }
    arms, options = ladder(Plan(epochs=2), levers, {"size": 64})
    assert list(arms) == ["before", "static", "small", "both"]
    assert arms["small"] == arms["static"] == Plan(epochs=2, hybridize="static")
    assert arms["both"] == Plan(epochs=2, hybridize="static", seed=3)
    assert [options[name]["size"] for name in arms] == [64, 64, 32, 16]


@pytest.mark.fault(
    "runs",
    "a measurement is killed between or within its runs, and resumed",
    sees="one-02.killed-1",
    lost="the run in work",
)
def test_an_interrupted_measurement_goes_on_where_it_was(tmp_path, in_process, sees):
    arms = {"one": Plan(), "two": Plan(batch_size=8)}
    how = {"repeats": 2, "folder": tmp_path, "seeds": True}
    first = interleave("demo", "toy:sleepy", arms, **how)
    started = {run.path.name: run.started for runs in first.runs.values() for run in runs}
    killed, missing = tmp_path / "demo" / "one-02.jsonl", tmp_path / "demo" / "two-02.jsonl"
    killed.write_text("".join(killed.read_text().splitlines(keepends=True)[:-1]))
    missing.unlink()
    again = interleave("demo", "toy:sleepy", arms, resume=True, **how)
    assert again.resumed == 2
    assert all(run.ok for runs in again.runs.values() for run in runs)
    for run_again in (again.runs["one"][0], again.runs["two"][0]):
        assert run_again.started == started[run_again.path.name]
    sees(" ".join(path.name for path in (tmp_path / "demo").iterdir()))
    assert read_experiment(tmp_path / "demo").resumed == 2
    third = interleave("demo", "toy:sleepy", arms, resume=True, **how)
    assert third.resumed == 4


@pytest.mark.fault(
    "sharing",
    "a measurement is resumed in the folder of another",
    sees="one-01.jsonl is the record of another run",
)
def test_a_folder_of_another_measurement_is_not_resumed(tmp_path, in_process, sees):
    how = {"repeats": 1, "folder": tmp_path, "resume": True}
    interleave("demo", "toy:sleepy", {"one": Plan()}, **how)
    for arms, options in (({"one": Plan(batch_size=8)}, {}), ({"one": Plan()}, {"value": 2.0})):
        with sees.raised(RecordError):
            interleave("demo", "toy:sleepy", arms, options=options, **how)


@pytest.mark.fault(
    "sharing",
    "a measurement is resumed while another process is still at it",
    sees="one-01.jsonl is being written by another process; wait for it",
)
def test_a_run_at_work_is_not_taken_for_one_that_was_killed(tmp_path, sees):
    with RecordWriter(tmp_path / "demo" / "one-01.jsonl") as at_work:
        at_work.begin("toy:sleepy", Plan().as_dict(), {})
        with sees.raised(RecordError):
            interleave(
                "demo", "toy:sleepy", {"one": Plan()}, repeats=1, folder=tmp_path, resume=True
            )
        assert at_work.path.exists()
