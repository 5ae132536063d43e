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


@pytest.mark.parametrize("micro_batches", [1, 2])
def test_two_replicas_of_two_stages_train_as_one_context(micro_batches):
    _, gradients, weights = of_one_context(steps=3)
    placed = [[mx.cpu(0), mx.cpu(3)], [mx.cpu(1), mx.cpu(4)], [mx.cpu(2), mx.cpu(5)]]
    stages = Stages(parts(placed), placed, "adam", {"learning_rate": 0.05})
    x, y = batch()
    for _ in range(2):
        stages.step(x, y, LOSS, micro_batches)
    found = stages.gradients(x, y, LOSS, micro_batches)
    assert (found.context, found.shape) == (mx.cpu(2), (10,))
    learning = [p for part in stages.parts for p in part.collect_params().values()]
    for parameter, expected in zip(learning, gradients):
        own = [gradient.asnumpy() for gradient in parameter.list_grad()]
        assert all(np.abs(gradient).max() > 0 for gradient in own)
        np.testing.assert_allclose(sum(own), expected, atol=1e-5)
    for trainer in stages.trainers:
        trainer.step(len(x))
    for parameter, expected in zip(learning, weights):
        for copy in parameter.list_data():
            np.testing.assert_allclose(copy.asnumpy(), expected, atol=1e-4)


class Split(gluon.Block):
    """Returns two arrays, for a part of two inputs."""

    def __init__(self):
        super().__init__()
        self.layer = gluon.nn.Dense(6, in_units=12)

    def forward(self, x, scale):
        return self.layer(x) * scale, scale


class Join(gluon.Block):
    def __init__(self):
        super().__init__()
        self.layer = gluon.nn.Dense(3, in_units=6)

    def forward(self, x, scale):
        return self.layer(x) + scale


def test_parts_may_pass_several_arrays_on():
    contexts = [mx.cpu(0), mx.cpu(1)]
    first, second = Split(), Join()
    first.initialize(ctx=contexts[0])
    second.initialize(ctx=contexts[1])
    stages = Stages([first, second], contexts)
    (x, y), scale = batch(), nd.arange(1, 11).reshape((10, 1))
    weight = nd.arange(10)
    losses = stages.gradients((x, scale), (y, weight), lambda o, y, w: LOSS(o, y) * w, 4)
    hidden = first.layer(x) * scale
    expected = LOSS(second.layer(hidden.as_in_context(mx.cpu(1))) + scale, y) * weight
    np.testing.assert_allclose(losses.asnumpy(), expected.asnumpy(), rtol=1e-5, atol=1e-5)


def test_group2ctx_places_a_symbol_on_two_contexts():
    with mx.AttrScope(ctx_group="first"):
        x = mx.sym.var("x")
        hidden = mx.sym.FullyConnected(x, num_hidden=5, name="encoder")
    with mx.AttrScope(ctx_group="second"):
        output = mx.sym.FullyConnected(mx.sym.tanh(hidden), num_hidden=2, name="decoder")
    found = {}
    for name, contexts in {"one": (mx.cpu(0), mx.cpu(0)), "two": (mx.cpu(0), mx.cpu(1))}.items():
        placed = dict(zip(("first", "second"), contexts))
        executor = output.simple_bind(mx.cpu(0), group2ctx=placed, x=(4, 3))
        random = np.random.RandomState(0)
        for array in executor.arg_arrays:
            array[:] = nd.array(random.normal(size=array.shape))
        scores = executor.forward(is_train=True)[0]
        executor.backward(nd.ones_like(scores))
        assert executor.arg_dict["encoder_weight"].context == contexts[0]
        assert executor.arg_dict["decoder_weight"].context == contexts[1]
        assert scores.context == contexts[1]
        found[name] = [array.asnumpy() for array in (scores, *executor.grad_arrays)]
    for one, other in zip(found["one"], found["two"]):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("count", "size"), [(0, 4), (5, 4)])
def test_more_micro_batches_than_samples_are_refused(count, size):
    stages = Stages(parts([mx.cpu()] * 3), [mx.cpu()] * 3)
    with pytest.raises(PlanError, match=f"batch of {size} cannot be split into {count}"):
        stages.gradients(*batch(size), LOSS, count)


def test_parts_without_a_context_are_refused():
    with pytest.raises(PlanError, match="3 parts of a network cannot be placed on 2 contexts"):
        Stages(parts([mx.cpu()] * 3), [mx.cpu()] * 2)


def test_replicas_that_cannot_be_are_refused():
    placed = [[mx.cpu(0), mx.cpu(1)], [mx.cpu(2), mx.cpu(3)], [mx.cpu(4)]]
    with pytest.raises(PlanError, match="parts on 2, 2, 1 contexts have no equal number"):
        Stages(parts(placed), placed)
    placed[2] = [mx.cpu(4), mx.cpu(5)]
    stages = Stages(parts(placed), placed)
    with pytest.raises(PlanError, match="2 micro-batches on each of 2 replicas; take 1 to 1"):
        stages.gradients(*batch(3), LOSS, 2)


@pytest.mark.parametrize(
    ("stages", "count", "share"), [(1, 4, 0), (2, 1, 0.5), (2, 4, 0.2), (4, 12, 0.2)]
)
def test_the_bubble_is_that_of_the_paper(stages, count, share):
    assert bubble(stages, count) == pytest.approx(share)
