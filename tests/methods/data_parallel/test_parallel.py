import mxnet as mx
import numpy as np
import pytest
import toy
from hypothesis import given
from hypothesis import strategies as st
from mxnet import autograd, gluon, nd

from mxopt.core.errors import DeviceError, PlanError
from mxopt.core.plan import Plan
from mxopt.methods.data_parallel import parallel
from mxopt.train.fit import fit, seed_everything

FOUR = Plan(devices="cpu:0-3")


@given(st.integers(0, 1000), st.integers(1, 64))
def test_split_sizes_are_even_and_lose_nothing(samples, parts):
    sizes = parallel.split_sizes(samples, parts)
    assert sum(sizes) == samples
    assert len(sizes) == parts
    assert max(sizes) - min(sizes) <= 1
    assert sizes == sorted(sizes, reverse=True)


@pytest.mark.parametrize("samples", [1, 2, 3, 4, 5, 7, 8])
def test_a_batch_of_any_size_is_split_over_four_contexts(samples):
    contexts = parallel.contexts(FOUR)
    data, label = nd.arange(samples * 2).reshape((samples, 2)), nd.arange(samples)
    shards = parallel.split_and_load([data, label], contexts)
    assert len(shards) == min(samples, 4)
    assert [shard[0].context for shard in shards] == contexts[: len(shards)]
    whole = np.concatenate([shard[0].asnumpy() for shard in shards])
    np.testing.assert_array_equal(whole, data.asnumpy())
    assert all(len(images) == len(labels) for images, labels in shards)


def test_gather_adds_up_on_the_first_context():
    arrays = [nd.array([index], ctx=mx.cpu(index)) for index in range(4)]
    total = parallel.gather(arrays)
    assert total.context == mx.cpu(0)
    assert total.asscalar() == 6


@pytest.mark.quick(2)
@pytest.mark.parametrize("batch_size", [8, 3, 22])
@pytest.mark.parametrize("preprocess", ["lazy", "cached"])
def test_four_contexts_train_the_weights_of_one(batch_size, preprocess):
    """22 samples: the last batches are uneven, and with 3 a batch a context stays idle."""
    plan = Plan(batch_size=batch_size, epochs=2, preprocess=preprocess, momentum=0.9)
    one, four = weights_after(plan), weights_after(plan.replace(devices="cpu:0-3"))
    for mine, theirs in zip(one, four):
        np.testing.assert_allclose(mine, theirs, atol=1e-5)


def test_accumulation_loses_nothing_on_a_context_that_is_idle_in_between():
    """22 samples by 4 are five full batches and one of 2, which leaves two contexts idle."""
    plan = Plan(batch_size=4, grad_accumulation=6, learning_rate=1.0)
    one, four = weights_after(plan), weights_after(plan.replace(devices="cpu:0-3"))
    for mine, theirs in zip(one, four):
        np.testing.assert_allclose(mine, theirs, atol=1e-5)


def test_an_idle_context_adds_no_old_gradient():
    contexts = [mx.cpu(0), mx.cpu(1)]
    seed_everything(0)
    net = toy.network(contexts)
    data = nd.ones((2, 1, 4, 4))
    trainer = gluon.Trainer(net.collect_params(), "sgd", {}, update_on_kvstore=False)
    for rows in (2, 1):
        shards = parallel.split_and_load([data[:rows]], contexts)
        with autograd.record():
            losses = [net(shard[0]).sum() for shard in shards]
        autograd.backward(losses)
        parallel.mark_idle(trainer._params, contexts[len(shards) :])
        trainer.allreduce_grads()
        gradient = net[2].bias.grad(contexts[0]).asnumpy()
        np.testing.assert_allclose(gradient, rows)
        trainer.update(rows)


def test_a_context_may_run_out_of_samples_before_the_ones_after_it():
    """8 samples are 3, 3 and 2, taken 2, 1 and 1 a step: in the last only the second has any."""
    kept = []
    plan = Plan(batch_size=4, devices="cpu:0-2", preprocess="device", learning_rate=1.0)
    fit(toy.toy(8), plan, ignore, on_epoch=lambda net: kept.append(net[2].bias.list_data()))
    [copies] = kept
    for copy in copies[1:]:
        np.testing.assert_array_equal(copies[0].asnumpy(), copy.asnumpy())


def test_all_contexts_hold_the_same_weights_after_training():
    kept = {}
    fit(toy.toy(), Plan(batch_size=3, devices="cpu:0-3"), ignore, on_epoch=lambda net: kept.update(
        {name: p.list_data() for name, p in net.collect_params().items()}))  # fmt: skip
    for copies in kept.values():
        for copy in copies[1:]:
            np.testing.assert_array_equal(copies[0].asnumpy(), copy.asnumpy())


@pytest.mark.parametrize(("rule", "rate"), [("linear", 0.4), ("sqrt", 0.2), ("none", 0.1)])
def test_batch_and_learning_rate_grow_by_rule(rule, rate):
    plan = parallel.scaled(Plan(batch_size=4, learning_rate=0.1), "cpu:0-3", rule)
    assert (plan.batch_size, plan.learning_rate) == (16, pytest.approx(rate))


def test_an_unknown_rule_is_refused():
    with pytest.raises(PlanError, match="linear, sqrt, none"):
        parallel.scaled(Plan(), "cpu:0-1", "square")


@pytest.mark.skipif(mx.context.num_gpus() > 0, reason="this machine has a GPU")
def test_a_gpu_that_is_not_there_is_named():
    with pytest.raises(DeviceError, match=r"no gpu:0; MXNet sees 0 GPU"):
        parallel.contexts(Plan(devices="gpu:0-3"))


def ignore(event, **fields):
    """Take a record's events and keep none."""


def weights_after(plan):
    kept = []

    def keep(net):
        kept[:] = [p.data(mx.cpu(0)).asnumpy() for p in net.collect_params().values()]

    fit(toy.toy(), plan, ignore, on_epoch=keep)
    return kept
