"""The gpu tier, whole: its notebooks on pretended GPUs, at sizes that a CPU can compute.

Nothing of a notebook is edited; only sizes are cut (``SIZES``). The networks are the chapter's own,
of GluonCV and GluonNLP, with random weights where the zoo's would be.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import made_weights
import nbformat
import pytest
from pretend_gpus import environment

from mxopt.core.records import read_run

CHAPTER = Path(__file__).parents[2] / "ch08"
SIDE = 64
SIZES = {
    "8_1": {
        "repeats": 1,
        "elementwise": {"size": 100, "rounds": 1},
        "chains": {"size": 50, "length": 2},
        "loading": {"size": SIDE, "limit": 8},
        "workers": [0, 2],
        "batch_sizes": [4],
        "beside_batch_sizes": [4],
        "chart_repeats": 1,
        "training": {"size": SIDE, "limit": 4},
        "plan": {"epochs": 2, "learning_rate": 0.001},  # the weights are random
    },
    "8_2": {
        "repeats": 1,
        "checks": 1,
        "training": {"size": SIDE, "limit": 4},
        "plan": {"epochs": 1},
        "goal": 0.2,
        "ladder": {"limit": 4, "epochs": 1},
    },
    "8_3": {
        "repeats": 1,
        "checks": 1,
        "training": {"limit": 6, "scored": 2, "beam": 1},
        "plan": {"batch_size": 4, "epochs": 1},
        "goal": 1,
        "goal_epochs": {"after": 1},
        "learning": {"after": {"batch_size": 64, "warmup_epochs": 0.5}},
        "ladder": {"limit": 6},
    },
}
# Arms that a GPU refuses, or that must diverge; all others must train.
NOT_OK = {"bfloat16": "refused", "bfloat16-double-batch": "refused", "too-fast": "diverged"}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    made_weights.make(folder / "mxnet", folder / "cache", SIDE)
    return {"MXNET_HOME": str(folder / "mxnet"), "MXOPT_CACHE": str(folder / "cache")}


def reproduce(notebook, gpus, results, made, fault=""):
    variables = environment(gpus, fault, MXOPT_PRETENDED_SIZES=json.dumps(SIZES), **made)
    return subprocess.run(
        [sys.executable, "-m", "mxopt.cli.main", "reproduce", "--tier", "gpu", "--only", notebook,
         "--results", str(results)],
        env=variables, capture_output=True, text=True,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    ("notebook", "gpus"), [("8_1", "V100*4"), ("8_2", "A100*2"), ("8_3", "T4")]
)
def test_a_notebook_runs_whole(notebook, gpus, tmp_path, made):
    done = reproduce(notebook, gpus, tmp_path / "out", made)
    assert done.returncode == 0, done.stdout + done.stderr
    runs = [read_run(path) for path in (tmp_path / "out").rglob("*.jsonl")]
    assert runs
    for run in runs:
        arm = run.path.stem.rpartition("-")[0]
        assert run.status == NOT_OK.get(arm, "ok"), (run.path.name, run.reason)
    [executed] = (tmp_path / "out").glob("*.ipynb")
    printed = "".join(
        output.get("text", "") for cell in nbformat.read(executed, 4).cells
        for output in cell.get("outputs", [])
    )  # fmt: skip
    assert "tier: gpu (requested, " in printed
    assert "instead:" not in printed  # the chapter's own networks, not a replacement
