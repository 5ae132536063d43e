"""What version 0.1 called otherwise: scripts, records and experiments keep working."""

import importlib
import json
import subprocess
import sys

import pytest

from mxopt.core import old_names
from mxopt.core.plan import Plan
from mxopt.core.records import read_run
from mxopt.measure import read_experiment


@pytest.mark.parametrize("name", sorted(old_names.MODULES))
def test_a_module_is_found_by_its_old_name(name):
    sys.modules.pop(name, None)
    with pytest.warns(DeprecationWarning, match=f"{name} is now {old_names.MODULES[name]}"):
        found = importlib.import_module(name)
    assert found is importlib.import_module(old_names.MODULES[name])
    assert found.__spec__.name == found.__name__ == old_names.MODULES[name]


def test_modules_of_a_moved_package_are_not_loaded_twice():
    with pytest.warns(DeprecationWarning, match="datasets.multi30k is now mxopt.data.multi30k"):
        found = importlib.import_module("mxopt.datasets.multi30k")
    assert found is importlib.import_module("mxopt.data.multi30k")
    assert found.__spec__.name == "mxopt.data.multi30k"
    with pytest.raises(ModuleNotFoundError, match=r"mxopt\.datasets\.nowhere"):
        importlib.import_module("mxopt.datasets.nowhere")


def test_what_the_first_readme_imported_is_there():
    code = (
        "from mxopt import Plan, measure, parallel, plots, recipes, report, bucketing\n"
        "from mxopt.datasets import locate\n"
        "from mxopt.task import Data, Recipe\n"
        "from mxopt.optimizing import optimize\n"
        "from mxopt.engine import timed\n"
        "from mxopt.lab import open_lab\n"
        "from mxopt.parallel import split_and_load\n"
        "from mxopt.pipeline import make_loader\n"
        "from mxopt.precision import for_plan\n"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)


OLD = {"frozen": 7, "sync": "none", "workers": 0, "accumulation": 2, "pixels": "float32"}
OPTIONS = {
    "recipe": "segmentation",
    "early_size": 32,
    "optimized": ["folding", "taps"],
    "bounded": 3,
}
TODAY = Plan(freeze_stages=7, grad_accumulation=2, progressive_resizing=32,
             graph_rewrites="fold_batch_norm+dead_taps")  # fmt: skip


def test_a_record_with_old_names_is_read_with_those_of_today(tmp_path):
    start = {"event": "start", "format": 1, "workload": "mxopt.workloads:train", "plan": OLD,
             "options": OPTIONS}  # fmt: skip
    (tmp_path / "a-01.jsonl").write_text(json.dumps(start) + "\n")
    found = read_run(tmp_path / "a-01.jsonl")
    assert found.plan == TODAY
    assert found.options == {"recipe": "segmentation", "relu6_stages": 3}
    assert found.workload == "mxopt.chapter.workloads:train"


def test_an_experiment_with_old_names_is_read_with_those_of_today(tmp_path):
    described = {"name": "demo", "workload": "mxopt.workloads:train", "arms": {"a": OLD, "b": OLD},
                 "options": {"interleaved": True, "optimized": True},
                 "arm_options": {"b": {"early_size": 32}}}  # fmt: skip
    (tmp_path / "experiment.json").write_text(json.dumps(described))
    found = read_experiment(tmp_path)
    assert found.factors("b") == {"progressive_resizing": (None, 32)}
    assert found.arms["a"].graph_rewrites == "usual"
    assert found.options == {"space_to_batch": True}
