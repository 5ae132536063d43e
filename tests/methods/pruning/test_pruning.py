"""Pruned weights are the smallest ones, as many as the plan says, and stay zero."""

import mxnet as mx
import numpy as np
import pytest
import toy
from mxnet import gluon, nd

from mxopt.core.errors import PlanError
from mxopt.core.plan import Plan
from mxopt.methods import pruning
from mxopt.methods.pruning import magnitude
from mxopt.train.fit import fit

PLAN = Plan(batch_size=4, epochs=4, learning_rate=0.05, sparsity=0.5, prune_until=2.0)


def unused(event, **fields):
    pass


def network(contexts):
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Dense(16, activation="relu"), gluon.nn.Dense(2))
    net.initialize(ctx=contexts)
    return net


def zeros(net):
    return [
        float((p.data(p.list_ctx()[-1]).asnumpy() == 0).mean())
        for p in net.collect_params().values()
        if len(p.shape) > 1
    ]


def trained(plan, **more):
    seen = []
    figures = fit(
        toy.toy(network=network), plan, unused, lambda net: seen.append(zeros(net)), **more
    )
    return figures, seen


@pytest.mark.parametrize(("share", "count"), [(0, 0), (0.5, 3), (0.4, 2), (1, 6)])
def test_the_smallest_weights_are_pruned(share, count):
    weight = nd.array([[-3.0, 0.5, 2.0], [0.1, -0.2, 1.0]])
    kept = magnitude.mask(weight, share).asnumpy()
    assert kept.shape == (2, 3)
    assert (kept == 0).sum() == count
    gone = sorted(abs(weight.asnumpy())[kept == 0])
    assert gone == sorted(abs(weight.asnumpy()).ravel())[:count]


def test_equal_weights_are_pruned_as_many_as_asked():
    assert magnitude.mask(nd.ones((4, 5)), 0.25).asnumpy().sum() == 15


def test_the_share_grows_until_the_end_of_the_schedule():
    _, seen = trained(PLAN)
    first, *others = [max(each) for each in seen]
    assert 0.3 < first < 0.5
    assert all(share == [0.5, 0.5] for share in seen[1:]), others


def test_copies_on_several_contexts_are_pruned_alike():
    _, seen = trained(PLAN.replace(devices="cpu:0-1"))
    assert seen[-1] == [0.5, 0.5]


def test_without_the_switch_nothing_is_pruned_and_nothing_changes():
    plain = Plan(batch_size=4, epochs=2, learning_rate=0.05)
    _, seen = trained(plain)
    assert max(map(max, seen)) < 0.5
    assert (
        trained(plain)[0]["train_loss"] == trained(plain.replace(prune_from=0.5))[0]["train_loss"]
    )


@pytest.mark.parametrize("epochs", [1, 3])
def test_a_resumed_run_prunes_the_same(tmp_path, epochs):
    """Within the schedule, and after it, when the masks are not chosen again."""
    plan = PLAN.replace(learning_rate=0.5)
    whole = trained(plan)[0]
    ended = []

    def stop(net):
        ended.append(net)
        if len(ended) > epochs:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(toy.toy(network=network), plan, unused, stop, checkpoints=tmp_path / "kept")
    again = fit(toy.toy(network=network), plan, unused, checkpoints=tmp_path / "kept")
    assert again["resumed_epochs"] == epochs
    assert again["train_loss"] == pytest.approx(whole["train_loss"], rel=1e-6)
    assert again["test_loss"] == pytest.approx(whole["test_loss"], rel=1e-6)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"sparsity": 1.0}, "sparsity=1.0 must be below 1"),
        ({"prune_until": 9.0}, "until epoch 9.0 does not end within epochs=4"),
        ({"prune_from": 3.0}, "from epoch 3.0 until epoch 2.0"),
    ],
)
def test_schedules_that_cannot_be_are_refused(wrong, says):
    with pytest.raises(PlanError, match=says):
        PLAN.replace(**wrong)


def test_zeros_are_counted_and_compressed():
    mx.random.seed(0)
    net = gluon.nn.Dense(64, in_units=64, use_bias=False)
    net.initialize(mx.init.Normal(1))
    before = pruning.compressed_size([net.weight])
    assert pruning.share_of_zeros([net.weight]) == 0
    net.weight.set_data(net.weight.data() * pruning.mask(net.weight.data(), 0.75))
    assert pruning.share_of_zeros([net.weight]) == 0.75
    assert pruning.compressed_size([net.weight]) < 0.5 * before
    assert np.isclose(before, 64 * 64 * 4, rtol=0.1)
