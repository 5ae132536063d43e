"""An experiment that is packed into one file reads as the folder it was measured into."""

import dataclasses
import json
import math
from pathlib import Path

import pytest

from mxopt import measure
from mxopt.cli.main import main
from mxopt.core.errors import RecordError
from mxopt.core.plan import Plan
from mxopt.core.records import RecordWriter
from mxopt.measure import Experiment, find_experiments, interleave, pack, read_experiment
from mxopt.report import results
from mxopt.report.verify import pages

ARMS = {"before": Plan(), "v0.9": Plan(batch_size=2)}


def machine(model, available, **variables):
    """Return an environment as runs have it: what is free, and variables, differ between runs."""
    return {
        "python": "3.11.7", "cpu": {"model": model, "sets": ["avx2", "fma"]}, "no_gpus": None,
        "memory": {"total": 2**34, "available": available, "shared": {"size": 9, "free": 8}},
        "openmp": ["libgomp.so.1"], "variables": {"OMP_NUM_THREADS": "1", **variables},
    }  # fmt: skip


def write_run(folder, arm, number, model="EPYC", status="ok", end=True):
    with RecordWriter(folder / f"{arm}-{number:02d}.jsonl") as writer:
        writer.begin("a:b", ARMS[arm].as_dict(), {"size": 96})
        writer.write("environment", **machine(model, 2**33 + number, RECORD=f"{arm}-{number}"))
        writer.write("data", kind="real", train=8)
        for epoch in range(2):
            writer.write("steps", epoch=epoch, losses=[0.1 + number / 3, math.nan], sizes=[4, 4])
            writer.write("epoch", epoch=epoch, train_loss=1 / (3 + number), check=math.inf)
        if end:
            figures = {"seconds": 0.1 + 0.2 * number, "operator_seconds": {"dot": 1e-17}}
            writer.write("end", status=status, reason="", figures=figures)


@pytest.fixture
def measured(tmp_path):
    """The folder of an experiment: one of its runs was killed, one ran on another machine."""
    folder = tmp_path / "results" / "8_1" / "demo"
    for number in range(1, 12):
        write_run(folder, "before", number, end=number != 4)
        write_run(folder, "v0.9", number, model="Xeon" if number == 3 else "EPYC")
    Experiment("demo", "a:b", ARMS, title="Demo", pairs=[["before", "v0.9"]], options={"size": 96},
               quality="test_mIoU", margin=0.1).save(folder)  # fmt: skip
    return folder


def same(first, second):
    """Whether two experiments are equal to the last bit, steps included."""
    if first.runs.keys() != second.runs.keys():
        return False
    pairs = [pair for arm in first.runs for pair in zip(first.runs[arm], second.runs[arm])]
    return (
        {arm: len(runs) for arm, runs in first.runs.items()}
        == {arm: len(runs) for arm, runs in second.runs.items()}
        and dataclasses.replace(first, runs={}) == dataclasses.replace(second, runs={})
        and all(dataclasses.replace(a, path=b.path) == b for a, b in pairs)
        and all(repr(list(a.steps())) == repr(list(b.steps())) for a, b in pairs)
    )


def test_a_packed_experiment_reads_as_its_folder(measured, tmp_path):
    pack(measured, tmp_path / "demo.jsonl")
    before, after = read_experiment(measured), read_experiment(tmp_path / "demo.jsonl")
    assert same(before, after)
    assert [run.path.name for run in after.runs["v0.9"]] == [
        run.path.name for run in before.runs["v0.9"]
    ]
    assert len(list(after.runs["v0.9"][10].steps())) == 2
    assert after.runs["before"][3].status == "killed"
    assert math.isnan(next(after.runs["before"][0].steps())["losses"][1])


def test_a_machine_is_described_once(measured, tmp_path):
    pack(measured, tmp_path / "demo.jsonl")
    text = (tmp_path / "demo.jsonl").read_text()
    assert (text.count("EPYC"), text.count("Xeon"), text.count("avx2")) == (1, 1, 2)
    assert text.count("OMP_NUM_THREADS") == 2


def test_a_variable_that_only_some_runs_have_is_not_given_to_the_others(tmp_path):
    folder = tmp_path / "demo"
    for number in (1, 2):
        with RecordWriter(folder / f"before-{number:02d}.jsonl") as writer:
            writer.begin("a:b", ARMS["before"].as_dict(), {})
            only = {"DNNL_VERBOSE": "0"} if number == 1 else {}
            writer.write("environment", **machine("EPYC", 2**33, **only))
            writer.write("end", status="ok", reason="", figures={"seconds": 1.0})
    Experiment("demo", "a:b", {"before": Plan()}).save(folder)
    pack(folder, tmp_path / "demo.jsonl")
    first, second = (
        run.only("environment")["variables"]
        for run in read_experiment(tmp_path / "demo.jsonl").runs["before"]
    )
    assert first["DNNL_VERBOSE"] == "0"
    assert "DNNL_VERBOSE" not in second


def test_runs_are_in_the_order_of_measuring(measured, tmp_path):
    pack(measured, tmp_path / "demo.jsonl")
    lines = map(json.loads, (tmp_path / "demo.jsonl").read_text().splitlines())
    starts = [(line["run"], line["arm"]) for line in lines if line["event"] == "start"]
    assert starts == [(number, arm) for number in range(1, 12) for arm in ARMS]


def test_what_differs_in_the_comparison_of_this_test_is_seen(measured, tmp_path):
    pack(measured, tmp_path / "demo.jsonl")
    text = (tmp_path / "demo.jsonl").read_text()
    before = read_experiment(measured)
    for old, new in [('"losses": [0.43', '"losses": [0.44'), ("avx2", "avx"), ('"Demo"', '"D"')]:
        (tmp_path / "demo.jsonl").write_text(text.replace(old, new, 1))
        assert not same(before, read_experiment(tmp_path / "demo.jsonl"))


def test_a_missing_run_is_not_packed(measured, tmp_path):
    (measured / "before-02.jsonl").unlink()
    with pytest.raises(RecordError, match=r"demo: run 2 of before is missing"):
        pack(measured, tmp_path / "demo.jsonl")
    assert not (tmp_path / "demo.jsonl").exists()


def test_a_run_at_work_is_not_packed(measured, tmp_path):
    with RecordWriter(measured / "before-12.jsonl") as writer:
        writer.begin("a:b", Plan().as_dict(), {})
        with pytest.raises(RecordError, match=r"before-12.jsonl is being written"):
            pack(measured, tmp_path / "demo.jsonl")


def test_a_packed_experiment_is_never_overwritten(measured, tmp_path):
    pack(measured, tmp_path / "demo.jsonl")
    with pytest.raises(RecordError, match="never overwritten"):
        pack(measured, tmp_path / "demo.jsonl")


def test_what_does_not_read_back_as_it_was_is_not_left(measured, tmp_path, monkeypatch):
    from mxopt.measure import packing

    monkeypatch.setattr(packing, "_rest", lambda whole, common: {"at": 0})
    with pytest.raises(RecordError, match=r"before-01.jsonl reads differently"):
        pack(measured, tmp_path / "demo.jsonl")
    assert not (tmp_path / "demo.jsonl").exists()


def test_a_results_folder_is_packed_with_its_page_and_plots(measured, tmp_path, capsys):
    root, target = tmp_path / "results", tmp_path / "published"
    write_run(root, "before", 99)  # of `mxopt run`: of no experiment
    (measured / "bars.png").write_bytes(b"a picture")
    results.describe(root, tier="cpu")
    results.write_page(root)
    assert main(["pack", str(root), str(target)]) == 0
    assert capsys.readouterr().out == f"{target}/8_1/demo.jsonl\n"
    assert {str(path.relative_to(target)) for path in target.rglob("*") if path.is_file()} == {
        "RESULTS.md", "reproduce.json", "8_1/demo.jsonl", "8_1/demo/bars.png",
    }  # fmt: skip
    assert find_experiments(target) == [target / "8_1" / "demo.jsonl"]
    assert find_experiments(root) == [measured]
    assert results.page(target) == (target / "RESULTS.md").read_text()
    assert "(8_1/demo/bars.png)" in results.page(target)
    assert pages.check(target) == []


def test_one_experiment_is_packed_beside_its_folder_and_then_one_must_go(measured, capsys):
    assert main(["pack", str(measured), str(measured.parent)]) == 0
    with pytest.raises(RecordError, match="the same experiment, in a folder and packed"):
        find_experiments(measured.parent)
    for path in measured.iterdir():
        path.unlink()
    assert find_experiments(measured.parent) == [measured.with_suffix(".jsonl")]


def test_nothing_to_pack_is_said(tmp_path, capsys):
    write_run(tmp_path, "before", 1)  # of `mxopt run`
    for words in (["pack", tmp_path, tmp_path / "out"], ["verify", tmp_path], ["report", tmp_path]):
        assert main(list(map(str, words))) == 2
        said = capsys.readouterr().err
        assert f"there are no experiments below {tmp_path}" in said
        assert "records of single runs are none" in said


def test_what_is_packed_is_not_measured_again(measured):
    pack(measured, measured.with_suffix(".jsonl"))
    with pytest.raises(RecordError, match=r"demo.jsonl already holds this experiment"):
        interleave("demo", "a:b", ARMS, repeats=1, folder=measured.parent)


def test_a_run_of_a_packed_experiment_is_run_again(measured, tmp_path, capsys, monkeypatch):
    old = read_experiment(measured).runs["v0.9"][1]

    def run(workload, plan, record, options):
        assert (workload, plan, options) == (old.workload, old.plan, old.options)
        return dataclasses.replace(old, figures={"seconds": 7.0})

    monkeypatch.setattr(measure, "run", run)
    pack(measured, tmp_path / "packed.jsonl")
    assert main(["again", str(tmp_path / "packed.jsonl" / "v0.9-02.jsonl")]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0].endswith("v0.9-02.jsonl")
    assert said[-1].split() == ["seconds", "0.5", "7"]


def test_published_records_hold_each_machine_once():
    repository = Path(__file__).parents[2]
    for folder in ("docs", "benchmarks/records"):
        for path in find_experiments(repository / folder):
            lines = list(map(json.loads, path.read_text(encoding="utf-8").splitlines()))
            about = [json.dumps({**line, "machine": 0}) for line in lines if "cpu" in line]
            assert len(about) == len(set(about)) == sum("python" in line for line in lines) > 0
