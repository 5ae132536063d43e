import contextlib
import os
import tempfile
import time

import mxnet as mx
import pytest
import toy

from mxopt.chapter import workloads
from mxopt.core.plan import Plan, choices


def ignore(event, **fields):
    """Take a record's events and keep none."""


@pytest.mark.parametrize("preprocess", choices("preprocess"))
def test_every_placement_loads_the_same_values(preprocess):
    expected = workloads.load(Plan(), ignore, recipe="toy:toy")
    found = workloads.load(Plan(preprocess=preprocess), ignore, recipe="toy:toy")
    assert found["samples"] == 22
    assert found["checksum"] == pytest.approx(expected["checksum"], rel=1e-5)


@pytest.mark.parametrize("stage", ["raw", "transformed"])
def test_single_samples_are_all_read(stage):
    assert workloads.load(Plan(), ignore, recipe="toy:toy", stage=stage)["samples"] == 22


def test_transformed_samples_are_those_of_the_loader():
    one_by_one = workloads.load(Plan(), ignore, recipe="toy:toy", stage="transformed")
    batches = workloads.load(Plan(), ignore, recipe="toy:toy")
    assert one_by_one["checksum"] == pytest.approx(batches["checksum"], rel=1e-5)


def test_waiting_changes_no_value():
    checksums = []
    for wait in (False, True):
        mx.random.seed(0)
        figures = workloads.elementwise(Plan(), ignore, size=50, rounds=2, wait=wait)
        assert 0 < figures["enqueued_seconds"] <= figures["seconds"]
        checksums.append(figures["checksum"])
    assert checksums[0] == checksums[1] > 0


def test_chains_compute_what_they_say():
    figures = workloads.chains(Plan(), ignore, size=40, count=2, length=3)
    # Entries average 1 / size, so every product keeps the mean of a matrix at 1 / size.
    assert figures["checksum"] == pytest.approx(2 / 40, rel=0.2)
    operations = 2 * 3 * 2 * 40**3
    assert figures["gflop_per_second"] == pytest.approx(operations / figures["seconds"] / 1e9)


def test_the_profiler_writes_no_file_after_its_folder_was_emptied(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "TemporaryDirectory", lambda: contextlib.nullcontext(tmp_path))
    workloads.profile(Plan(batch_size=4), ignore, recipe="toy:toy")
    for path in tmp_path.iterdir():
        path.unlink()
    time.sleep(1.5)  # by default it writes once a second
    assert not list(tmp_path.iterdir())


def test_a_profile_names_the_operators_of_one_epoch():
    figures = workloads.profile(Plan(batch_size=4), ignore, recipe="toy:toy")
    operators = figures["operator_seconds"]
    assert operators["Convolution"] > 0
    assert operators["FullyConnected"] > 0
    assert not any(name.startswith("_backward") for name in operators)


def test_without_evaluation_only_training_is_done_and_recorded():
    events = []
    figures = workloads.train(
        Plan(), lambda event, **fields: events.append(fields), recipe="toy:toy", evaluate=False
    )
    assert figures["samples"] == 22
    assert not [name for name in figures if name.startswith(("validation", "test"))]
    assert not [name for fields in events for name in fields if name.startswith("validation_")]


def test_the_weights_of_one_seed_are_kept_beside_the_record(tmp_path, monkeypatch):
    monkeypatch.setenv("MXOPT_RECORD", str(tmp_path / "arm-01.jsonl"))
    plan = Plan(batch_size=4, epochs=6, learning_rate=0.5, swa_start=4)
    figures = workloads.train(plan.replace(seed=1), ignore, recipe="toy:toy", keep=0)
    assert not list(tmp_path.iterdir())
    figures = workloads.train(plan, ignore, recipe="toy:toy", keep=0)
    net = toy.network([mx.cpu()])
    net.load_parameters(str(tmp_path / "arm-01.params"))
    metric = mx.metric.CrossEntropy()
    for image, label in toy.samples(5, 2):
        image, label = toy.flat_transform(image, label)
        metric.update([label], [net(image.expand_dims(0)).softmax()])
    assert metric.get()[1] == pytest.approx(figures["test_loss"], rel=1e-3)


def test_profiling_leaves_the_null_device_alone():
    before = os.stat(os.devnull)
    workloads.profile(Plan(batch_size=4), ignore, recipe="toy:toy")
    after = os.stat(os.devnull)
    assert (before.st_ino, before.st_mode) == (after.st_ino, after.st_mode)
