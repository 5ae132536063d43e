import mxnet as mx
import numpy as np
import pytest
import toy
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn

from mxopt.core.errors import PlanError
from mxopt.core.plan import Plan
from mxopt.methods.layer_freezing import freezing
from mxopt.train.fit import fit


class Staged(gluon.HybridBlock):
    """Two convolutions and a head."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.stages, self.head = nn.HybridSequential(), nn.HybridSequential()
            self.stages.add(nn.Conv2D(4, 3), nn.Conv2D(4, 1, activation="relu"))
            self.head.add(nn.GlobalAvgPool2D(), nn.Dense(2))

    def hybrid_forward(self, F, x):
        return self.head(self.stages(x))


def network(contexts):
    net = Staged()
    net.initialize(mx.init.Xavier(), ctx=contexts)
    return net


def fitted(plan, frozen_by_hand=0, seen=None):
    """Return losses and the weights before and after."""
    nets, events = [], []

    def make(contexts):
        net = network(contexts)
        for context in contexts:
            net(nd.zeros((1, 1, 4, 4), ctx=context))
        for stage in net.stages[:frozen_by_hand]:
            stage.collect_params().setattr("grad_req", "null")
        nets.append((net, weights(net)))
        return net

    def weights(net):
        return [p.list_data()[0].asnumpy().copy() for p in net.collect_params().values()]

    figures = fit(toy.toy(network=make), plan, lambda name, **fields: events.append(fields))
    [(net, before)] = nets
    losses = [loss for event in events for loss in event.get("losses", [])]
    return figures, losses, before, weights(net), net


PLAN = Plan(batch_size=4, epochs=3, learning_rate=0.5, momentum=0.9)


@pytest.mark.quick(5)
@pytest.mark.parametrize("preprocess", ["lazy", "cached", "device", "roundtrip"])
@pytest.mark.parametrize("hybridize", ["no", "yes", "static", "fused"])
def test_frozen_stages_teach_as_stages_without_gradients_do(preprocess, hybridize):
    figures, losses, before, after, _ = fitted(
        PLAN.replace(freeze_stages=1, preprocess=preprocess, hybridize=hybridize)
    )
    by_hand, expected, *_ = fitted(PLAN, frozen_by_hand=1)
    np.testing.assert_allclose(losses, expected, rtol=1e-4)
    assert figures["test_loss"] == pytest.approx(by_hand["test_loss"], rel=1e-4)
    changed = [abs(one - other).max() > 0 for one, other in zip(before, after)]
    assert changed == [False, False, True, True, True, True]


def test_the_whole_network_has_learnt_after_its_rest_was_trained():
    figures, *_, net = fitted(PLAN.replace(freeze_stages=1, hybridize="fused", preprocess="cached"))
    metric = mx.metric.Accuracy()
    for image, label in toy.samples(5, 2):
        image, label = toy.flat_transform(image, label)
        metric.update([label], [net(image.expand_dims(0))])
    assert metric.get()[1] == figures["test_accuracy"] == 1


def test_several_contexts_share_the_preparation():
    figures, *_ = fitted(PLAN.replace(freeze_stages=1, devices="cpu:0-1", preprocess="device"))
    assert figures["test_accuracy"] == 1


def test_samples_that_a_static_graph_has_prepared_do_not_overwrite_each_other():
    net = network([mx.cpu()])
    front, _ = freezing.split(net, 1)
    plan = PLAN.replace(freeze_stages=1, hybridize="static")
    prepare = freezing.preprocessing(front, toy.flat_transform, plan)
    samples = toy.samples(3)
    prepared = [prepare(*sample)[0] for sample in samples]
    with autograd.pause():
        for (image, label), made in zip(samples, prepared):
            one_by_one = net.stages[0](toy.flat_transform(image, label)[0].expand_dims(0))
            np.testing.assert_allclose(made.asnumpy(), one_by_one[0].asnumpy(), rtol=1e-5)


def test_networks_that_cannot_be_split_are_refused():
    with pytest.raises(
        PlanError, match="freeze_stages=1 needs a network of stages and a head; HybridSeq"
    ):
        fit(toy.toy(), PLAN.replace(freeze_stages=1), lambda name, **fields: None)
    with pytest.raises(PlanError, match="freeze_stages=3 must be 1 to 2"):
        fitted(PLAN.replace(freeze_stages=3))


@pytest.mark.parametrize(
    ("switches", "message"),
    [
        ({"hybridize": "fused"}, "for frozen stages on a CPU"),
        (
            {"hybridize": "fused", "freeze_stages": 1, "devices": "gpu:0"},
            "for frozen stages on a CPU",
        ),
        ({"freeze_stages": 1, "num_workers": 2}, "set num_workers=0"),
        ({"freeze_stages": 1, "image_dtype": "uint8"}, "take image_dtype='float32'"),
        ({"freeze_stages": 1, "precision": "float16"}, "precision='amp'"),
        ({"freeze_stages": -1}, "at least 0"),
    ],
)
def test_plans_that_make_no_sense_are_refused(switches, message):
    with pytest.raises(PlanError, match=message):
        Plan(**switches)


@pytest.mark.parametrize("preprocess", ["lazy", "cached", "device", "roundtrip"])
def test_stages_run_on_the_context_of_their_weights(preprocess):
    plan = PLAN.replace(freeze_stages=1, preprocess=preprocess)
    assert fitted(plan.replace(devices="cpu:1"))[1] == fitted(plan)[1]
