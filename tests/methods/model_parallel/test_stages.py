"""Stages on several contexts compute what one computes, with any number of micro-batches."""

import mxnet as mx
import numpy as np
import pytest
from mxnet import autograd, gluon, nd

from mxopt.core.errors import PlanError
from mxopt.methods.model_parallel.stages import Stages, bubble

LOSS = gluon.loss.SoftmaxCrossEntropyLoss()
SIZES = [(12, 16, "relu"), (16, 8, "tanh"), (8, 3, None)]


def parts(contexts, hybridize=False):
    made = []
    for number, ((inputs, units, activation), context) in enumerate(zip(SIZES, contexts)):
        part = gluon.nn.Dense(units, activation=activation, in_units=inputs)
        mx.random.seed(number)
        part.initialize(mx.init.Normal(0.3), ctx=context)
        if hybridize:
            part.hybridize(static_alloc=True, static_shape=True)
        made.append(part)
    return made


def batch(size=10):
    random = np.random.RandomState(0)
    return nd.array(random.normal(size=(size, 12))), nd.array(random.randint(0, 3, size))


def of_one_context(steps=1):
    net = gluon.nn.HybridSequential()
    net.add(*parts([mx.cpu(0)] * 3))
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.05})
    x, y = batch()
    for _ in range(steps):
        with autograd.record():
            losses = LOSS(net(x), y)
        losses.backward()
        gradients = [p.grad().asnumpy() for p in net.collect_params().values()]
        trainer.step(len(x))
    weights = [p.data().asnumpy() for p in net.collect_params().values()]
    return losses.asnumpy(), gradients, weights


@pytest.mark.parametrize("hybridize", [False, True])
@pytest.mark.parametrize("micro_batches", [1, 3, 10])
def test_losses_gradients_and_weights_are_those_of_one_context(micro_batches, hybridize):
    losses, gradients, weights = of_one_context(steps=3)
    contexts = [mx.cpu(number) for number in range(3)]
    stages = Stages(parts(contexts, hybridize), contexts, "adam", {"learning_rate": 0.05})
    x, y = batch()
    for _ in range(3):
        found = stages.gradients(x, y, LOSS, micro_batches)
        summed = [
            p.grad().asnumpy() for part in stages.parts for p in part.collect_params().values()
        ]
        for trainer in stages.trainers:
            trainer.step(len(x))
    assert found.context == mx.cpu(2)
    np.testing.assert_allclose(found.asnumpy(), losses, atol=1e-5)
    for ours, theirs in zip(summed, gradients):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)
    ours = [p.data().asnumpy() for part in stages.parts for p in part.collect_params().values()]
    for one, other in zip(ours, weights):
        np.testing.assert_allclose(one, other, atol=1e-4)


def test_every_part_is_on_its_context_alone():
    contexts = [mx.cpu(number) for number in range(3)]
    stages = Stages(parts(contexts), contexts)
    for part, context in zip(stages.parts, contexts):
        assert part.weight.list_ctx() == [context]


@pytest.mark.parametrize(("count", "size"), [(0, 4), (5, 4)])
def test_more_micro_batches_than_samples_are_refused(count, size):
    stages = Stages(parts([mx.cpu()] * 3), [mx.cpu()] * 3)
    with pytest.raises(PlanError, match=f"batch of {size} cannot be split into {count}"):
        stages.gradients(*batch(size), LOSS, count)


def test_parts_without_a_context_are_refused():
    with pytest.raises(PlanError, match="3 parts of a network cannot be placed on 2 contexts"):
        Stages(parts([mx.cpu()] * 3), [mx.cpu()] * 2)


@pytest.mark.parametrize(
    ("stages", "count", "share"), [(1, 4, 0), (2, 1, 0.5), (2, 4, 0.2), (4, 12, 0.2)]
)
def test_the_bubble_is_that_of_the_paper(stages, count, share):
    assert bubble(stages, count) == pytest.approx(share)
