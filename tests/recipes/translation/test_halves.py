"""Encoder and decoder on two contexts compute what the whole Transformer computes on one."""

import mxnet as mx
import numpy as np
import pytest
from mxnet import autograd, nd

from mxopt.core.errors import PlanError
from mxopt.methods.model_parallel import Stages
from mxopt.recipes.translation.cpu_operators import PIECES
from mxopt.recipes.translation.halves import halves
from mxopt.recipes.translation.loss import TranslationLoss
from mxopt.recipes.translation.transformer import translator

WORDS = 40
SIZES = {"vocabulary": WORDS, "layers": 1, "units": 16, "heads": 2, "hidden": 32, "dropout": 0.0,
         "max_length": 12, "tied": False, "fast": ()}  # fmt: skip
LOSS = TranslationLoss(WORDS, 0.1, "pick")


def batch(size=6):
    random = np.random.RandomState(0)
    source, target = random.randint(4, WORDS, (size, 7)), random.randint(4, WORDS, (size, 9))
    lengths = random.randint(2, 7, size), random.randint(2, 9, size)
    return [nd.array(a, dtype="int32") for a in (source, target, *lengths)]


def weights(blocks, random):
    """Set the same weights in any division of the network, by the order of its parameters."""
    for block in blocks:
        for _, parameter in sorted(block.collect_params().items()):
            if parameter.grad_req != "null":
                parameter.set_data(nd.array(random.normal(0, 0.3, parameter.shape)))


@pytest.fixture
def whole():
    """Scores, losses and gradients of the network on one context, by position of the parameter."""
    net = translator(**SIZES)
    net.initialize()
    parts = [[net.source_embedding, net.encoder], [net.target_embedding, net.decoder]]
    weights([*parts[0], *parts[1], net.projection], np.random.RandomState(1))
    source, target, source_length, target_length = batch()
    with autograd.record():
        scores = net(source, target, source_length, target_length)
        losses = LOSS(scores, target, target_length)
    losses.backward()
    found = [p for b in (*parts[0], *parts[1], net.projection) for p in gradients_of(b)]
    return scores.asnumpy(), losses.asnumpy(), found


def gradients_of(block):
    named = sorted(block.collect_params().items())
    return [p.grad().asnumpy() for _, p in named if p.grad_req != "null"]


@pytest.mark.parametrize("micro_batches", [1, 3])
@pytest.mark.parametrize("hybridize", [False, True])
def test_scores_losses_and_gradients_are_equal(whole, micro_batches, hybridize):
    net = translator(**SIZES)
    parts, contexts = halves(net), [mx.cpu(0), mx.cpu(1)]
    for part, context in zip(parts, contexts):
        part.initialize(ctx=context)
        part.hybridize(hybridize)
    blocks = [net.source_embedding, net.encoder, net.target_embedding, net.decoder, net.projection]
    weights(blocks, np.random.RandomState(1))
    stages = Stages(parts, contexts)
    arrays = batch()
    scores, losses, gradients = whole
    np.testing.assert_allclose(stages(*arrays).asnumpy(), scores, atol=1e-5)
    found = stages.gradients(arrays, (arrays[1], arrays[3]), LOSS, micro_batches)
    assert found.context == mx.cpu(1)
    np.testing.assert_allclose(found.asnumpy(), losses, rtol=1e-5, atol=1e-5)
    own = [gradient for block in blocks for gradient in gradients_of(block)]
    assert len(own) == len(gradients)
    assert any(np.abs(gradient).max() > 0.01 for gradient in gradients)
    for one, other in zip(own, gradients):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_each_half_is_on_its_own_context():
    parts = halves(translator(**SIZES))
    for number, part in enumerate(parts):
        part.initialize(ctx=mx.cpu(number))
    for number, part in enumerate(parts):
        for parameter in part.collect_params().values():
            assert parameter.list_ctx() == [mx.cpu(number)]


@pytest.mark.parametrize(
    ("change", "message"), [({"tied": True}, "tied=False"), ({"fast": PIECES}, "GluonNLP's cells")]
)
def test_networks_that_cannot_be_divided_are_refused(change, message):
    with pytest.raises(PlanError, match=message):
        halves(translator(**{**SIZES, **change}))
