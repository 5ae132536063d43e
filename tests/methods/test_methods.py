"""The registry of methods: every switch belongs to one, every option to a recipe that takes it."""

import dataclasses
import importlib
import inspect
from collections import Counter
from pathlib import Path

import pytest

from mxopt import METHODS, Plan, measure, recipes
from mxopt.core.errors import PlanError

# What every run has, whatever the method.
BASIC = {
    "batch_size",
    "beta2",
    "epochs",
    "learning_rate",
    "momentum",
    "optimizer",
    "seed",
    "weight_decay",
}
FOLDER = Path(__file__).parents[2] / "mxopt" / "methods"


def test_every_field_of_the_plan_is_basic_or_a_switch_of_one_method():
    switches = Counter(switch for method in METHODS for switch in method.switches)
    assert {field.name for field in dataclasses.fields(Plan)} == BASIC | switches.keys()
    assert set(switches.values()) == {1}
    assert not BASIC & switches.keys()


def test_every_folder_is_a_method_and_every_method_has_one():
    homes = {method.__module__.removeprefix("mxopt.methods.") for method in METHODS}
    assert homes == {path.parent.name for path in FOLDER.glob("*/__init__.py")}


def test_every_option_of_a_method_is_an_option_of_its_recipe_or_workload():
    network = {"segmentation": {"network": "deeplab_mobilenetv2"}}
    for method in METHODS:
        for name, options in method.options.items():
            if ":" in name:  # a workload
                module, _, function = name.partition(":")
                workload = getattr(importlib.import_module(module), function)
                taken = inspect.signature(workload).parameters
            else:
                taken = recipes.option_names(name, network.get(name, {}))
            assert set(options) <= set(taken)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("hybridise", "did you mean 'hybridize'"),
        ("interleaved", "now called 'space_to_batch'"),
        ("frozen", "now called 'freeze_stages'"),
        ("sise", "did you mean 'size'"),
    ],
)
def test_a_ladder_refuses_what_is_neither_a_switch_nor_an_option(name, says):
    task = {"network": "deeplab_mobilenetv2"}
    with pytest.raises(PlanError, match=says):
        measure.ladder(Plan(), {"after": {name: 1}}, task)


def test_an_experiment_with_an_unknown_option_measures_nothing(tmp_path):
    arms = {"before": Plan(), "after": Plan(seed=1)}
    with pytest.raises(PlanError, match="no option is called 'sise'; did you mean 'size'"):
        measure.interleave("a", "mxopt.chapter.workloads:train", arms, repeats=1, folder=tmp_path,
                           options={"sise": 32})  # fmt: skip
    assert not list(tmp_path.rglob("*.jsonl"))
