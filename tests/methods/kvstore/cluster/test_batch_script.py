"""The batch script for SLURM: its text, and what it refuses."""

import shlex
import subprocess

import pytest

from mxopt.cli.main import main
from mxopt.core.errors import PlanError
from mxopt.core.plan import Plan
from mxopt.methods.kvstore.cluster import batch_script, on_nodes


@pytest.mark.parametrize(
    ("nodes", "gpus", "each", "expected"),
    [
        (1, 0, False, (1, "none", "cpu:0")),
        (3, 0, False, (3, "dist_sync", "cpu:0")),
        (1, 4, False, (1, "none", "gpu:0-3")),
        (2, 4, False, (2, "dist_sync", "gpu:0-3")),
        (2, 1, False, (2, "dist_sync", "gpu:0")),
        (2, 4, True, (8, "dist_sync", "gpu:0")),
    ],
)
def test_the_plan_has_the_processes_and_devices_of_the_nodes(nodes, gpus, each, expected):
    plan = on_nodes(Plan(batch_size=24, epochs=3), nodes, gpus, each)
    assert (plan.processes, plan.kvstore, plan.devices) == expected
    assert (plan.batch_size, plan.epochs) == (24, 3)


@pytest.mark.parametrize(
    ("plan", "nodes", "gpus", "each", "message"),
    [
        ({}, 0, 0, False, "nodes=0"),
        ({}, 1, -1, False, "gpus=-1"),
        ({}, 2, 0, True, "needs GPUs"),
        ({"devices": "gpu:0"}, 2, 1, False, "devices follows from the nodes"),
    ],
)
def test_nodes_that_cannot_be_are_refused(plan, nodes, gpus, each, message):
    with pytest.raises(PlanError, match=message):
        on_nodes(Plan(**plan), nodes, gpus, each)


def directives(text):
    return [line[10:] for line in text.splitlines() if line.startswith("#SBATCH --")]


def test_the_script_asks_for_what_the_tasks_need():
    text = batch_script(["train", "a b"], 2, 4, cores=16, hours=1.01, more=["partition=short"])
    assert text.startswith("#!/bin/bash\n")
    found = directives(text)
    assert {"nodes=2", "ntasks-per-node=1", "gpus-per-task=4", "cpus-per-task=16"} <= set(found)
    assert "time=61" in found  # 60.6 minutes, rounded up
    assert found[-1] == "partition=short"
    last = shlex.split(text.splitlines()[-1])
    assert last[:1] + last[-2:] == ["srun", "train", "a b"]
    assert "--cpus-per-task=16" in last
    each = directives(batch_script(["train"], 2, 4, process_per_gpu=True))
    assert {"ntasks-per-node=4", "gpus-per-task=1"} <= set(each)
    assert not [one for one in directives(batch_script(["train"], 2)) if "gpu" in one]


@pytest.mark.parametrize("option", ["--partition=short", "Partition", "a=b\nrm -r x", ""])
def test_what_is_no_option_of_sbatch_is_refused(option):
    with pytest.raises(PlanError, match="is no option of sbatch"):
        batch_script(["train"], 1, more=[option])


@pytest.mark.parametrize("wrong", [{"cores": 0}, {"hours": 0}, {"hours": float("nan")}])
def test_limits_that_cannot_be_are_refused(wrong):
    with pytest.raises(PlanError, match="must be above 0"):
        batch_script(["train"], 1, **wrong)


def test_the_command_prints_a_script_that_bash_reads(capsys, tmp_path):
    record = tmp_path / "a run.jsonl"
    words = ["batch_size=32", "--option", "limit=8", "--nodes", "2", "--gpus", "4"]
    assert main(["slurm", "fashion_mnist", *words, "--record", str(record)]) == 0
    text = capsys.readouterr().out
    subprocess.run(["bash", "-n"], input=text, text=True, check=True)
    last = shlex.split(text.splitlines()[-1])
    run = last[last.index("run") + 1 :]
    assert run[0] == "fashion_mnist"
    assert {"batch_size=32", "processes=2", "kvstore=dist_sync", "devices=gpu:0-3"} <= set(run)
    assert run[run.index("--option") + 1] == "limit=8"
    assert run[run.index("--record") + 1] == str(record)
    assert run[run.index("--under") + 1] == "slurm"


def test_one_node_needs_no_server(capsys, tmp_path):
    words = ["fashion_mnist", "--nodes", "1", "--record", str(tmp_path / "run.jsonl")]
    assert main(["slurm", *words]) == 0
    text = capsys.readouterr().out
    assert "--under" not in text
    assert "dist_sync" not in text


def test_a_wrong_plan_is_refused_before_anything_is_printed(capsys, tmp_path):
    words = ["fashion_mnist", "batchsize=8", "--nodes", "2", "--record", str(tmp_path / "r.jsonl")]
    assert main(["slurm", *words]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "did you mean 'batch_size'?" in said.err
