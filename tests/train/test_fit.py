import math
import os
import time

import mxnet as mx
import numpy as np
import pytest
import toy
from mxnet import nd

from mxopt.core.errors import Diverged, PlanError
from mxopt.core.plan import Plan
from mxopt.train import step
from mxopt.train.fit import fit
from mxopt.train.step import AHEAD


def fitted(plan, recipe=None, **how):
    events = []

    def write(event, **fields):
        events.append({"event": event, **fields})

    figures = fit(recipe or toy.toy(), plan, write, **how)
    return figures, events


def of(events, name):
    return [event for event in events if event["event"] == name]


def test_a_toy_is_learnt_and_everything_is_recorded():
    figures, events = fitted(Plan(batch_size=4, epochs=6, learning_rate=0.5))
    assert figures["test_accuracy"] == 1
    assert figures["samples"] == 6 * 22
    assert [event["samples"] for event in of(events, "epoch")] == [22] * 6
    assert of(events, "data")[0]["kind"] == "stand-in"
    steps = of(events, "steps")[-1]
    assert steps["sizes"] == [4, 4, 4, 4, 4, 2]
    # The loss of an epoch is the mean over its samples, the small last batch weighted by its size.
    mean = np.average(steps["losses"], weights=steps["sizes"])
    assert figures["train_loss"] == pytest.approx(mean)
    assert figures["seconds"] == pytest.approx(sum(e["seconds"] for e in of(events, "epoch")))
    assert figures["end_to_end_seconds"] >= figures["seconds"] + figures["setup_seconds"]
    assert 0 < figures["first_step_seconds"] < figures["seconds"]


@pytest.mark.parametrize("switches", [{}, {"grad_accumulation": 4}, {"swa_start": 0.5}])
def test_checks_within_an_epoch_change_nothing_of_what_is_learned(switches):
    plan = Plan(batch_size=4, epochs=2, learning_rate=0.5, **switches)
    (plain, once), (checked, often) = (fitted(plan, checks=checks) for checks in (1, 3))
    assert checked["test_loss"] == plain["test_loss"]
    for name in ("losses", "sizes"):
        found = [
            [value for steps in of(events, "steps") for value in steps[name]]
            for events in (once, often)
        ]
        assert found[0] == found[1]
    assert of(often, "epoch")[1]["validation_loss"] == of(once, "epoch")[1]["validation_loss"]
    # 6 steps an epoch: after 2 and 4 of them there is a check, after all of them the epoch's own.
    assert [check["progress"] for check in of(often, "check")] == pytest.approx(
        [0, 1 / 3, 2 / 3, 4 / 3, 5 / 3]
    )
    epoch = of(often, "epoch")[0]
    checks = of(often, "check")[1:3]
    assert 0 < checks[0]["seconds"] < checks[1]["seconds"] < epoch["seconds"]
    assert checks[0]["validation_loss"] != epoch["validation_loss"]


def test_more_checks_than_steps_are_one_a_step():
    _, events = fitted(Plan(batch_size=11), checks=50)
    assert [check["progress"] for check in of(events, "check")] == [0.0, 0.5]


def test_validation_visits_every_sample_once_whatever_the_batch():
    losses = [
        fitted(Plan(batch_size=size, learning_rate=0.0))[0]["validation_loss"]
        for size in (1, 4, 7, 100)
    ]
    assert losses == pytest.approx([losses[0]] * 4, rel=1e-5)


@pytest.mark.parametrize("hybridize", ["yes", "static"])
def test_a_graph_gives_the_losses_of_the_imperative_network(hybridize):
    plain, graph = (
        of(fitted(Plan(batch_size=4, epochs=3, hybridize=how))[1], "steps")
        for how in ("no", hybridize)
    )
    for mine, theirs in zip(plain, graph):
        assert mine["losses"] == pytest.approx(theirs["losses"], abs=1e-6)


def test_a_static_graph_takes_the_smallest_memory_plan_unless_told_otherwise(monkeypatch):
    search = "NNVM_AUTO_SEARCH_MATCH_RANGE"
    monkeypatch.setenv(search, "0")
    fitted(Plan(hybridize="static"))
    assert os.environ[search] == "0"
    del os.environ[search]
    fitted(Plan(hybridize="yes"))
    assert search not in os.environ
    fitted(Plan(hybridize="static"))
    assert os.environ[search] == "1"


def test_accumulated_batches_update_like_one_large_batch():
    large, _ = fitted(Plan(batch_size=8, epochs=3))
    small, _ = fitted(Plan(batch_size=4, grad_accumulation=2, epochs=3))
    for name in ("train_loss", "validation_loss", "test_loss"):
        assert small[name] == pytest.approx(large[name], rel=1e-4)


def test_steps_are_enqueued_ahead_but_few(monkeypatch):
    losses, waited, ahead = [], [], []
    backward, wait = step._backward, nd.NDArray.wait_to_read

    def enqueue(run, batch):
        ahead.append(len(losses) - len(waited))
        losses.append(backward(run, batch))
        return losses[-1]

    def wait_to_read(array):
        waited.extend(loss for loss in losses if loss is array)
        wait(array)

    monkeypatch.setattr(step, "_backward", enqueue)
    monkeypatch.setattr(nd.NDArray, "wait_to_read", wait_to_read)
    fitted(Plan(batch_size=2))
    assert len(losses) > 2 * AHEAD
    assert max(ahead) == AHEAD


def test_every_wait_for_the_devices_is_counted(monkeypatch):
    """The clock waits after each of the two epochs, and the loop after the run's first step."""
    pause, wait = 0.1, nd.waitall

    def waitall():
        time.sleep(pause)
        wait()

    monkeypatch.setattr(nd, "waitall", waitall)
    figures, _ = fitted(Plan(batch_size=4, epochs=2))
    assert 3 * pause <= figures["device_waiting_seconds"] <= figures["seconds"]


def test_a_loss_that_is_no_number_stops_the_run_and_names_the_step():
    with pytest.raises(Diverged, match=r"diverged at step 1: loss (nan|inf)"):
        fitted(Plan(), toy.toy(poison=0))


def test_a_long_epoch_is_read_and_recorded_in_parts_that_are_not(monkeypatch):
    whole = of(fitted(Plan(batch_size=2))[1], "steps")
    joined, concat = [], nd.concat
    monkeypatch.setattr(nd, "concat", lambda *a, **k: joined.append(len(a)) or concat(*a, **k))
    figures, events = fitted(Plan(batch_size=2), checkpoint_steps=4)
    lines = of(events, "steps")
    # As many arrays, one a step, were held on the device.
    assert [len(line["losses"]) for line in lines] == joined == [4, 4, 3]
    for name in ("losses", "sizes"):
        assert [value for line in lines for value in line[name]] == whole[0][name]
    [epoch] = of(events, "epoch")
    mean = np.average(whole[0]["losses"], weights=whole[0]["sizes"])
    assert figures["train_loss"] == epoch["train_loss"] == pytest.approx(mean)
    assert figures["samples"] == epoch["samples"] == 22


def test_the_same_seed_gives_the_same_run():
    one, two, other = (fitted(Plan(seed=seed))[0]["test_loss"] for seed in (1, 1, 2))
    assert one == two != other


def test_networks_with_batch_norm_train_on_several_contexts():
    def network(contexts):
        net = mx.gluon.nn.HybridSequential()
        net.add(mx.gluon.nn.Conv2D(4, 3), mx.gluon.nn.BatchNorm(), mx.gluon.nn.Dense(2))
        net.initialize(ctx=contexts)
        return net

    figures, _ = fitted(Plan(devices="cpu:0-1", batch_size=5), toy.toy(network=network))
    assert math.isfinite(figures["test_loss"])


def test_adam_learns_the_toy_too():
    plan = Plan(batch_size=4, epochs=6, optimizer="adam", learning_rate=0.05)
    assert fitted(plan)[0]["test_accuracy"] == 1
    with pytest.raises(PlanError, match="is SGD's"):
        plan.replace(momentum=0.9)


@pytest.mark.parametrize(
    ("optimizer", "switches"),
    [("lars", {"momentum": 0.9, "learning_rate": 1.0}), ("lamb", {"learning_rate": 0.1})],
)
def test_optimizers_for_large_batches_learn_the_toy(optimizer, switches):
    plan = Plan(batch_size=4, epochs=20, optimizer=optimizer, **switches)
    figures, events = fitted(plan)
    assert figures["test_accuracy"] > 0.9
    losses = [epoch["train_loss"] for epoch in of(events, "epoch")]
    assert losses[-1] < 0.5 * losses[0]


def test_the_decay_rate_of_adams_squares_is_the_plans():
    plan = Plan(batch_size=4, epochs=2, optimizer="adam", learning_rate=0.05)
    losses = {rate: fitted(plan.replace(beta2=rate))[0]["train_loss"] for rate in (0.98, 0.5)}
    assert losses[0.98] == fitted(plan)[0]["train_loss"]
    assert losses[0.98] != losses[0.5]
    for wrong, says in (
        ({"beta2": 1.0}, "below 1"),
        ({"optimizer": "sgd", "beta2": 0.9}, "Adam's"),
    ):
        with pytest.raises(PlanError, match=says):
            plan.replace(**wrong)


def test_figures_are_named_after_what_a_recipe_counts_and_scored_as_it_says():
    def score(net, data, split):
        return {"size": len(getattr(data, split))}

    figures, events = fitted(Plan(), toy.toy(unit="token", metric=None, score=score))
    assert figures["tokens"] == of(events, "epoch")[0]["tokens"] == 22
    assert figures["tokens_per_second"] > 0
    assert (figures["validation_size"], figures["test_size"]) == (7, 5)
