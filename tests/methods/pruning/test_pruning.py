"""Pruned weights are the smallest ones, as many as the plan says, and stay zero."""

import mxnet as mx
import numpy as np
import pytest
import toy
from mxnet import gluon, nd

from mxopt.core.errors import DataError, PlanError
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


def _network(tied=False):
    net = gluon.nn.HybridSequential()
    first = gluon.nn.Dense(192, in_units=192)
    net.add(first, gluon.nn.BatchNorm(in_channels=192))
    net.add(gluon.nn.Dense(192, in_units=192, params=first.params if tied else None))
    return net


def _pruned(share=0.75, **kwargs):
    mx.random.seed(0)
    net = _network(**kwargs)
    net.initialize(mx.init.Normal(1))
    net(mx.nd.ones((1, 192)))
    for layer in (net[0], net[2]):
        layer.weight.set_data(layer.weight.data() * pruning.mask(layer.weight.data(), share))
    return net


def test_zeros_are_counted():
    net = _pruned()
    assert pruning.share_of_zeros([net[0].weight]) == 0.75
    assert 0.7 < pruning.share_of_zeros(net.collect_params().values()) < 0.75


@pytest.mark.parametrize("tied", [False, True])
def test_a_pruned_file_is_small_and_gives_the_same_network(tmp_path, tied):
    net, whole = _pruned(tied=tied), tmp_path / "whole.params"
    net.save_parameters(str(whole), deduplicate=True)
    written = pruning.save_pruned(net, tmp_path / "net.npz")
    assert written == (tmp_path / "net.npz").stat().st_size
    assert written < whole.stat().st_size / 3
    again = _network(tied)
    pruning.load_pruned(again, tmp_path / "net.npz")
    x = mx.nd.random.normal(shape=(5, 192))
    assert (again(x) == net(x)).asnumpy().all()
    assert (again[0].weight is again[2].weight) == tied


def test_a_pruned_file_keeps_what_is_not_zero_exactly(tmp_path):
    net = gluon.nn.Dense(3, in_units=5, use_bias=False)
    net.initialize()
    values = np.arange(15, dtype=np.float32).reshape(3, 5) * np.float32(1e-38)
    values[1] = [np.inf, -np.inf, np.nan, -0.0, 1]
    net.weight.set_data(mx.nd.array(values))
    pruning.save_pruned(net, tmp_path / "net.npz")
    pruning.load_pruned(net, tmp_path / "net.npz")
    np.testing.assert_array_equal(net.weight.data().asnumpy(), values)


def test_a_pruned_file_of_another_network_is_refused(tmp_path):
    path = tmp_path / "net.npz"
    pruning.save_pruned(_pruned(), path)
    with pytest.raises(DataError, match=r"net\.npz does not fit this network"):
        pruning.load_pruned(gluon.nn.Dense(192, in_units=192), path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(DataError, match=r"net\.npz is no file of save_pruned"):
        pruning.load_pruned(_network(), path)
    np.savez(path, weight=np.zeros(3))
    with pytest.raises(DataError, match=r"net\.npz is no file of save_pruned"):
        pruning.load_pruned(_network(), path)
