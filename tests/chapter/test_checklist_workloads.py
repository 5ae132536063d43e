"""The workloads of the later guides compute what they say."""

import pytest

from mxopt import Plan, recipes
from mxopt.chapter import checklist_workloads as workloads
from mxopt.chapter import deployment, ensemble_workloads, practice_workloads
from mxopt.core.errors import PlanError
from mxopt.methods.kvstore import stores
from mxopt.train import fit
from mxopt.train.initial import weights_hash
from mxopt.train.setup import prepare
from mxopt.train.step import evaluate

PLAN = Plan(
    optimizer="adam",
    learning_rate=1e-3,
    batch_size=32,
    preprocess="cached",
    transform_batch=100,
)
GARMENTS = {"stand_in": True, "limit": 64, "channels": [8, 16]}


def unused(event, **fields):
    """In place of a record."""


def test_a_planted_delay_is_found_in_the_waiting_for_batches():
    lazy = PLAN.replace(preprocess="lazy", transform_batch=1)
    free = workloads.starved(lazy, unused, **GARMENTS)
    slowed = workloads.starved(lazy, unused, delay=0.01, **GARMENTS)
    added = slowed["loading_seconds"] - free["loading_seconds"]
    assert added > 0.64 * 0.9  # 64 samples of 10 ms; a busy machine adds to it
    assert slowed["starved_share"] > 0.5
    assert slowed["train_loss"] == free["train_loss"]


def test_operations_of_a_convolution():
    events = {}

    def write(event, **fields):
        events[event] = fields

    plan = Plan(batch_size=2)
    found = workloads.convolution(plan, write, channels=8, side=4, kernel=3, times=2)
    # 2 images x 16 pixels x 8 outputs x 8 inputs x 9 taps, a product and a sum each, twice
    assert events["work"]["operations"] == 2 * 16 * 8 * 8 * 9 * 2 * 2
    assert found["gflops"] == pytest.approx(events["work"]["operations"] / found["seconds"] / 1e9)


@pytest.mark.parametrize("used", [True, False])
def test_a_graph_leaves_out_what_is_not_used(used):
    # With much work and few calls: the graph without products is many times as fast.
    sizes = {"units": 300, "products": 6, "times": 3}
    calls = workloads.compiled(PLAN, unused, used, **sizes)["cpu_seconds"]
    graph = workloads.compiled(PLAN.replace(hybridize="yes"), unused, used, **sizes)["cpu_seconds"]
    assert (graph < calls / 5) != used


def test_smaller_networks():
    small = {"more_epochs": 1, "times": 2, "stand_in": True, "limit": 32}
    dense = workloads.smaller(PLAN, unused, **small)
    pruned = workloads.smaller(
        PLAN.replace(epochs=2, sparsity=0.75, prune_until=1), unused, **small
    )
    narrow = workloads.smaller(PLAN, unused, [16, 32], **small)
    assert dense["parameters"] == pruned["parameters"] == 1_630_090
    assert narrow["parameters"] < 0.55 * dense["parameters"]
    assert dense["zeros"] < 0.01
    assert pruned["zeros"] == pytest.approx(0.75, abs=0.01)
    assert pruned["compressed_bytes"] < dense["compressed_bytes"] / 2
    with pytest.raises(PlanError, match="two ways to the same"):
        workloads.smaller(PLAN.replace(epochs=2, sparsity=0.5), unused, [16, 32], **small)


@pytest.mark.quick(5)
@pytest.mark.parametrize("form", [f for f in deployment.FORMS if not f.startswith("rounded")])
def test_every_form_of_a_network_scores_nearly_the_same(form):
    job = {"recipe": "fashion_mnist", "train": True, "times": 2, "calibration": 16, **GARMENTS}
    before = deployment.inference(PLAN, unused, form="float32", **job)
    found = deployment.inference(PLAN, unused, form=form, **job)
    assert found["test_loss"] == pytest.approx(before["test_loss"], rel=0.02)
    quarter = found["bytes"] < 0.27 * before["bytes"]
    assert quarter == form.startswith("int8")
    with pytest.raises(PlanError, match="form='int4' is not a choice"):
        deployment.inference(PLAN, unused, form="int4", **job)
    with pytest.raises(PlanError, match="runtime='tvm' is not a choice"):
        deployment.inference(PLAN, unused, runtime="tvm", **job)


@pytest.mark.parametrize("form", deployment.RUNTIMES["onnxruntime"])
def test_another_runtime_scores_nearly_the_same(form):
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    job = {"recipe": "fashion_mnist", "train": True, "times": 2, "calibration": 16, **GARMENTS}
    before = deployment.inference(PLAN, unused, form="float32", **job)
    found = deployment.inference(PLAN, unused, form=form, runtime="onnxruntime", **job)
    assert found["test_loss"] == pytest.approx(before["test_loss"], rel=0.02)
    assert (found["bytes"] < 0.27 * before["bytes"]) == form.startswith("int8")


@pytest.mark.parametrize("kind", practice_workloads.MEMBERS)
def test_an_ensemble_is_combined_on_the_validation_split(kind):
    if kind == "trees":
        pytest.importorskip("sklearn")
    events = []
    found = practice_workloads.ensemble(
        PLAN, lambda event, **fields: events.append((event, fields)), kind, **GARMENTS
    )
    members = [fields for event, fields in events if event == "member"]
    assert len(members) == len(practice_workloads.MEMBERS[kind])
    singles = [member["test_accuracy"] for member in members]
    assert found["mean_member"] == pytest.approx(sum(singles) / len(singles))
    assert found["best_member"] in singles
    assert 0 < found["disagreement"] < 1 or len(members) == 1


def test_snapshots_begin_where_the_member_before_has_ended(monkeypatch):
    begun, ended, network = [], [], practice_workloads._network

    def watched(plan, write, *how):
        def weights(event, **fields):
            if event == "weights":
                begun.append(fields["hash"])

        net, spent = network(plan, weights, *how)
        ended.append(weights_hash(net)[0])
        return net, spent

    monkeypatch.setattr(practice_workloads, "_network", watched)
    practice_workloads.ensemble(PLAN, unused, continued=True, **GARMENTS)
    assert begun[1:] == ended[:-1]
    assert len(set(ended)) == 5
    begun.clear(), ended.clear()
    practice_workloads.ensemble(PLAN, unused, **GARMENTS)
    assert not {*begun} & {*ended}


def test_segmentation_is_scored_with_the_average_of_its_networks():
    events = []
    found = ensemble_workloads.averaged(
        Plan(batch_size=4), lambda event, **fields: events.append((event, fields)), members=2,
        network="tiny", size=32, limit=8,
    )  # fmt: skip
    members = [fields for event, fields in events if event == "member"]
    assert [member["number"] for member in members] == [0, 1]
    mean = sum(member["test_mIoU"] for member in members) / 2
    assert found["alone_test_mIoU"] == pytest.approx(mean)
    # The average's loss is at most the mean of its members' losses: the logarithm is concave.
    assert found["test_loss"] <= found["alone_test_loss"] + 1e-6


SENTENCES = {
    "stand_in": True, "limit": 60, "vocabulary": 300, "layers": 1, "units": 16, "heads": 2,
    "hidden": 16, "beam": 1,
}  # fmt: skip


def test_translation_is_scored_with_the_mean_of_the_last_weights():
    plan = Plan(batch_size=20, epochs=3, learning_rate=0.01, optimizer="adam")
    events, trained = [], []
    recipe = recipes.load("translation", **SENTENCES)
    fit.fit(recipe, plan, unused, lambda net: trained.append(copied(net)), evaluate=False)
    found = ensemble_workloads.checkpoints(
        plan, lambda event, **fields: events.append((event, fields)), last=2, **SENTENCES
    )
    scores = [fields for event, fields in events if event == "averaged"]
    assert [score["epochs"] for score in scores] == [1, 2, 3]
    assert found["test_loss"] == scores[1]["test_loss"]
    for number, score in enumerate(scores, 1):
        mean = {name: sum(each[name] for each in trained[-number:]) / number for name in trained[0]}
        expected = scores_with(recipe, plan, mean)
        assert score["test_loss"] == pytest.approx(expected["test_loss"], rel=1e-4)
        assert score["test_chrf"] == pytest.approx(expected["test_chrf"], abs=1)
    assert found["alone_test_loss"] == scores[0]["test_loss"] != found["test_loss"]


def copied(net):
    return {name: p.data().copy() for name, p in net._collect_params_with_prefix().items()}


def scores_with(recipe, plan, weights):
    """Return a network's figures on the test split, with these weights."""
    run, _ = prepare(recipe, plan, unused, True, stores.for_plan(plan))
    for name, parameter in run.network._collect_params_with_prefix().items():
        parameter.set_data(weights[name])
    return evaluate(run, "test")


def test_more_epochs_than_were_trained_cannot_be_averaged():
    with pytest.raises(PlanError, match="last=3 epochs cannot be averaged of epochs=2"):
        ensemble_workloads.checkpoints(Plan(epochs=2), unused, last=3, **SENTENCES)


@pytest.mark.slow
def test_a_search_counts_the_seconds_of_its_trials():
    found = practice_workloads.searched(
        PLAN, unused, minutes=1, trials=2, sampler="random", pruner="none", **GARMENTS
    )
    assert (found["trials"], found["guided"]) == (2, 0)
    assert found["cpu_seconds"] > 1
    assert 0 <= found["best_validation_accuracy"] <= 1
    assert "test_accuracy" in found
