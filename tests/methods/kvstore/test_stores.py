import sys
import types
from pathlib import Path

import mxnet as mx
import numpy as np
import pytest
import toy
from mxnet import gluon, nd

from mxopt import measure, recipes
from mxopt.core.errors import DataError, DeviceError
from mxopt.core.plan import Plan
from mxopt.core.records import read_run
from mxopt.methods.kvstore import stores
from mxopt.train.fit import fit

# 22 samples: the last batch is uneven. Batch statistics would be each worker's own.
IMAGES = {"recipe": "segmentation", "size": 32, "limit": 22, "norm": False}
JOBS = {
    "two workers with two devices each": (IMAGES, Plan(
        batch_size=8, epochs=2, momentum=0.9, clip_norm=1.0, grad_accumulation=2, devices="cpu:0-1",
        preprocess="cached", hybridize="static", kvstore="dist_sync", processes=2,
    )),
    "three workers, two samples a batch": ({"recipe": "toy:toy"}, Plan(
        batch_size=2, epochs=2, momentum=0.9, kvstore="dist_sync", processes=3
    )),
}  # fmt: skip


def ignore(event, **fields):
    """Take a record's events and keep none."""


def alone(plan, options):
    """Return the weights and the figures of one process that trains the same global batches."""
    kept = []

    def keep(net):
        kept[:] = [p.data(mx.cpu(0)).asnumpy() for p in net.collect_params().values()]

    plan = plan.replace(kvstore="none", processes=1)
    figures = fit(recipes.load(**options), plan, ignore, on_epoch=keep)
    return kept, figures


@pytest.mark.quick(1)
@pytest.mark.parametrize("name", JOBS)
def test_many_workers_train_the_weights_of_one_process(tmp_path, name):
    """Sums are taken in another order, so float32's last digits may differ, and no more."""
    (options, plan), record = JOBS[name], tmp_path / "run.jsonl"
    run = measure.run("mxopt.chapter.workloads:train", plan, record, {**options, "keep": 0})
    assert run.status == "ok", run.reason
    weights, figures = alone(plan, options)
    found = nd.load(str(tmp_path / "run.params"))
    assert len(found) == len(weights)
    for mine, theirs in zip(weights, found.values()):
        np.testing.assert_allclose(mine, theirs.asnumpy(), atol=1e-5)
    for figure in ("samples", "train_loss", "validation_loss", "test_loss"):
        assert run.figures[figure] == pytest.approx(figures[figure], abs=1e-5)
    # The losses are those of the whole batch, whoever says them; the first worker judges.
    others = [read_run(tmp_path / f"run.worker-{n}") for n in range(1, plan.processes)]
    for other in others:
        assert [e["losses"] for e in other.all("steps")] == [e["losses"] for e in run.all("steps")]
        assert "test_loss" not in other.figures
    assert len(list(tmp_path.iterdir())) == plan.processes + 1


@pytest.mark.slow
@pytest.mark.parametrize("last", [3, 9])
def test_many_workers_go_on_within_an_epoch_as_if_nothing_had_happened(tmp_path, last):
    """22 samples by 4 are 6 steps an epoch, and they can be left after 2 and 4 of them."""
    plan = Plan(batch_size=4, epochs=2, momentum=0.9, kvstore="dist_sync", processes=2)
    options = {"recipe": "toy:toy", "dropout": 0.5, "checkpoints": True, "checkpoint_steps": 2}
    runs = []
    for name, more in (("whole", {}), ("left", {"last": last}), ("left", {})):
        record = tmp_path / f"{name}.jsonl"
        record.unlink(missing_ok=True)
        runs.append(measure.run("mxopt.chapter.workloads:train", plan, record, {**options, **more}))
    assert [run.status for run in runs] == ["ok", "killed", "ok"], runs[-1].reason
    for worker in ("jsonl", "worker-1"):
        whole, left = (read_run(tmp_path / f"{name}.{worker}") for name in ("whole", "left"))
        place = left.only("resumed")
        assert (place["epoch"], place["step"]) == {3: (0, 2), 9: (1, 2)}[last]
        expected, found = ([n for e in r.steps() for n in e["losses"]] for r in (whole, left))
        assert found == expected[6 * place["epoch"] + place["step"] :]
    assert runs[2].figures["test_loss"] == runs[0].figures["test_loss"]


def test_processes_that_nobody_started_are_refused():
    with pytest.raises(DeviceError, match="started together: use `mxopt run`"):
        fit(toy.toy(), Plan(kvstore="dist_sync", processes=2), ignore)


def test_workers_that_go_on_from_different_places_are_refused():
    class Second(stores.SingleProcess):
        worker, workers = 1, 2

        def total(self, array):
            return array + 3  # the first worker has found a checkpoint

    Second().check_equal(3, 3, Path("kept"))
    for place in ((0, 3), (3, 0)):
        said = "worker 1 resumes from epoch {} and step {} of kept, but other".format(*place)
        with pytest.raises(DataError, match=said):
            Second().check_equal(*place, Path("kept"))


def test_horovod_that_is_not_installed_is_refused_with_how_to(monkeypatch):
    monkeypatch.setitem(sys.modules, "horovod.mxnet", None)
    with pytest.raises(DeviceError, match="HOROVOD_WITH_MXNET=1 pip install"):
        fit(toy.toy(), Plan(kvstore="horovod", processes=2), ignore)


def test_with_horovods_interface_one_process_trains_as_alone(monkeypatch):
    """A stand-in with the documented names: it shows that they are called, not that it works."""

    class DistributedTrainer(gluon.Trainer):
        def __init__(self, params, optimizer, optimizer_params=None):
            super().__init__(params, optimizer, optimizer_params, kvstore=None)

    called = []
    stand_in = types.SimpleNamespace(
        init=lambda: called.append("init"),
        rank=lambda: 0,
        size=lambda: 1,
        allreduce=lambda array, average, name: array,
        broadcast_parameters=lambda params, root_rank: called.append(root_rank),
        DistributedTrainer=DistributedTrainer,
    )
    monkeypatch.setitem(sys.modules, "horovod", types.SimpleNamespace(mxnet=stand_in))
    monkeypatch.setitem(sys.modules, "horovod.mxnet", stand_in)
    figures = fit(toy.toy(), Plan(kvstore="horovod", clip_norm=1.0), ignore)
    assert figures["test_loss"] == fit(toy.toy(), Plan(clip_norm=1.0), ignore)["test_loss"]
    assert called == ["init", 0]
