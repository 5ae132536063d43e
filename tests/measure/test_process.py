"""What a measured process is given, and what its record says of it."""

import pytest

from mxopt import methods
from mxopt.core.errors import PlanError, RecordError
from mxopt.core.plan import Plan
from mxopt.core.records import read_run
from mxopt.measure import run
from mxopt.measure.__main__ import do
from mxopt.measure.files import record_files

WORK = """
import os

from mxopt.core.errors import Diverged


def variables(plan, write, names):
    return {"seconds": 1.0, **{name: os.environ.get(name) for name in names.split()}}


def diverge(plan, write):
    raise Diverged("the loss is not finite")
"""


@pytest.fixture(autouse=True)
def _work(tmp_path, monkeypatch):
    (tmp_path / "work_of_a_test.py").write_text(WORK)
    monkeypatch.syspath_prepend(tmp_path)


def variables(plan, record, names):
    return run("work_of_a_test:variables", plan, record, {"names": names})


def test_a_measured_process_downloads_nothing(tmp_path):
    done = variables(Plan(), tmp_path / "a.jsonl", "MXOPT_OFFLINE")
    assert done.figures["MXOPT_OFFLINE"] == "1"


def test_the_plan_s_variables_replace_inherited_ones_and_others_are_warned_of(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.setenv("MXNET_ENGINE_TYPE", "NaiveEngine")
    monkeypatch.setenv("DNNL_MAX_CPU_ISA", "SSE41")
    plan = Plan(cpu_threads=1)
    done = variables(plan, tmp_path / "a.jsonl", "OMP_NUM_THREADS MXNET_ENGINE_TYPE")
    assert done.ok, done.reason
    found = done.only("environment")
    for name, value in methods.environment(plan).items():
        assert done.figures[name] == found["variables"][name] == value
    warned = {line.partition("=")[0] for line in found["warnings"]}
    assert "DNNL_MAX_CPU_ISA" in warned
    assert not warned & methods.environment(plan).keys()


def test_a_process_with_another_environment_than_its_plan_s_measures_nothing(tmp_path, monkeypatch):
    record = tmp_path / "a.jsonl"
    monkeypatch.setenv("MXOPT_RECORD", "")  # which `do` sets
    monkeypatch.setenv("MXNET_ENGINE_TYPE", "ThreadedEnginePerDevice")
    plan = Plan(engine="NaiveEngine")
    job = {"workload": "toy:sleepy", "plan": plan.as_dict(), "options": {}, "record": str(record)}
    assert "needs MXNET_ENGINE_TYPE=NaiveEngine" in do(job)
    done = read_run(record)
    assert (done.status, done.figures) == ("refused", {})


def test_a_run_that_diverges_is_no_success(tmp_path):
    done = run("work_of_a_test:diverge", Plan(), tmp_path / "a.jsonl")
    assert (done.status, done.reason) == ("diverged", "the loss is not finite")
    assert not done.ok


def test_an_earlier_record_is_neither_overwritten_nor_taken_for_the_run_s(tmp_path):
    record = tmp_path / "a.jsonl"
    assert run("toy:sleepy", Plan(), record).ok
    before = record.read_bytes()
    with pytest.raises(RecordError, match=r"a\.jsonl"):
        run("toy:sleepy", Plan(), record)
    assert record.read_bytes() == before


def test_other_files_of_a_folder_are_no_records_of_an_arm(tmp_path):
    for name in ("before-01", "before-notes", "before-x-02", "after-01"):
        (tmp_path / f"{name}.jsonl").touch()
    assert record_files(tmp_path, ["before"]) == {"before": {1: tmp_path / "before-01.jsonl"}}


def test_an_option_that_the_workload_lacks_is_refused_before_anything_runs(tmp_path):
    with pytest.raises(PlanError, match="no option is called 'slep'; did you mean 'sleep'"):
        run("toy:sleepy", Plan(), tmp_path / "a.jsonl", {"slep": 1})
    assert not (tmp_path / "a.jsonl").exists()
