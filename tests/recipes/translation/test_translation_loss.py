import mxnet as mx
import numpy as np
import pytest
from gluonnlp.loss import LabelSmoothing, MaskedSoftmaxCELoss
from mxnet import autograd, nd
from test_transformer import PIECES, SHAPES, WORDS, assert_same, batch, network

from mxopt import kernels
from mxopt.core.errors import PlanError
from mxopt.recipes.translation.kernel_operators import KERNELS
from mxopt.recipes.translation.loss import FORMS, TranslationLoss, TranslatorLoss
from mxopt.recipes.translation.transformer import Translator


def case(samples=5, length=6, scale=3.0, seed=0):
    random = np.random.RandomState(seed)
    scores = nd.array(random.normal(scale=scale, size=(samples, length, WORDS)))
    words = nd.array(random.randint(0, WORDS, (samples, length)))
    lengths = nd.array(random.randint(1, length + 1, samples))
    return scores, words, lengths


def by_hand(scores, words, lengths, smoothing):
    """The definition, in float64: cross entropy against a table of smoothed targets."""
    scores = scores.asnumpy().astype(np.float64)
    table = np.eye(WORDS)[words.asnumpy().astype(int)] * (1 - smoothing) + smoothing / WORDS
    log_probability = scores - np.log(np.exp(scores).sum(-1, keepdims=True))
    real = np.arange(scores.shape[1]) < lengths.asnumpy()[:, None]
    return (-(table * log_probability).sum(-1) * real).sum(-1)


def with_words(shape, seed=0, dtype="int32"):
    random = np.random.RandomState([seed, 7, *shape])
    words = random.randint(0, WORDS, (shape[0], shape[2]))
    return [*batch(*shape, seed=seed, dtype=dtype), nd.array(words, dtype=dtype)]


def computed(loss, net, arrays):
    """Losses and gradients, each sample with a weight of its own."""
    with autograd.record():
        losses = loss(*arrays)
    losses.backward(nd.arange(1, len(losses) + 1))
    parameters = net.collect_params().values()
    return [losses.asnumpy(), *(p.grad().asnumpy() for p in parameters if p.grad_req != "null")]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.4])
@pytest.mark.parametrize("hybrid", [False, True])
def test_it_is_the_smoothed_cross_entropy_of_the_real_words(form, smoothing, hybrid):
    loss = TranslationLoss(WORDS, smoothing, form)
    if hybrid:
        loss.hybridize(static_alloc=True, static_shape=True)
    for seed, shape in enumerate([(5, 6), (3, 9), (5, 6)]):
        arrays = case(*shape, seed=seed)
        expected = by_hand(*arrays, smoothing)
        np.testing.assert_allclose(loss(*arrays).asnumpy(), expected, rtol=1e-5)


def test_it_is_gluonnlp_s_loss():
    scores, words, lengths = case()
    smoothed = LabelSmoothing(epsilon=0.1, units=WORDS)(words)
    # Theirs is divided by the padded length.
    theirs = MaskedSoftmaxCELoss(sparse_label=False)(scores, smoothed, lengths) * words.shape[1]
    mine = TranslationLoss(WORDS, 0.1)(scores, words, lengths)
    np.testing.assert_allclose(mine.asnumpy(), theirs.asnumpy(), rtol=1e-5)


@pytest.mark.parametrize("form", FORMS)
def test_the_gradient_is_probability_less_target(form):
    scores, words, lengths = case()
    scores.attach_grad()
    with autograd.record():
        losses = TranslationLoss(WORDS, 0.1, form)(scores, words, lengths)
    losses.backward()
    table = nd.one_hot(words, WORDS) * 0.9 + 0.1 / WORDS
    real = nd.arange(words.shape[1]).reshape((1, -1)) < lengths.reshape((-1, 1))
    expected = (nd.softmax(scores) - table) * real.expand_dims(2)
    np.testing.assert_allclose(scores.grad.asnumpy(), expected.asnumpy(), atol=1e-5)


@pytest.mark.parametrize("fast", [(), PIECES, *([(KERNELS,)] if kernels.available() else [])])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("tied", [True, False])
def test_in_the_network_s_graph_it_is_the_loss_of_its_scores(fast, smoothing, tied):
    net = network(fast, tied=tied)
    outside = TranslationLoss(WORDS, smoothing, "one-hot")
    inside = TranslatorLoss(net, smoothing)

    def reference(source, target, source_length, target_length, words):
        scores = net(source, target, source_length, target_length)
        return outside(scores, words.astype("float32"), target_length.astype("float32"))

    for shape in SHAPES:
        arrays = with_words(shape)
        assert_same(computed(inside, net, arrays), computed(reference, net, arrays))


def in_one_row(arrays, rest=0):
    """Return a batch's arrays, all sentences in one row with ``rest`` words of padding behind."""
    source, target, *lengths, words = (array.asnumpy() for array in arrays)

    def joined(ids, counts):
        row = [np.concatenate([row[:n] for row, n in zip(ids, counts)] + [[3] * rest])]
        return nd.array(row, dtype=ids.dtype)

    own = [joined(source, lengths[0]), joined(target, lengths[1]), *arrays[2:4]]
    return [*own, joined(words, lengths[1])]


@pytest.mark.skipif(not kernels.available(), reason="no compiler for mxopt's kernels")
@pytest.mark.parametrize("rest", [0, 7])
@pytest.mark.parametrize("hybrid", [False, True])
def test_sentences_in_one_row_have_the_loss_of_padded_ones(hybrid, rest):
    net = network((KERNELS,))
    loss = TranslatorLoss(net, 0.1)
    if hybrid:
        loss.hybridize(static_alloc=True, static_shape=True)
    for shape in SHAPES:
        arrays = with_words(shape)
        expected, found = [], []
        for given, results in ((arrays, expected), (in_one_row(arrays, rest), found)):
            with autograd.record():
                total = loss(*given).sum()
            total.backward()
            results.append(total.asnumpy())
            parameters = net.collect_params().values()
            results += [p.grad().asnumpy() for p in parameters if p.grad_req != "null"]
        assert_same(found, expected)


def test_sentences_in_one_row_need_kernels():
    with pytest.raises(PlanError, match="take kernels=True"):
        TranslatorLoss(network(), 0.1)(*in_one_row(with_words(SHAPES[0])))


def test_a_network_without_bias_has_the_same_loss_inside():
    net = network(PIECES)
    plain = mx.gluon.nn.Dense(
        WORDS, flatten=False, use_bias=False, in_units=16, params=net.source_embedding.params
    )
    net = Translator(
        net.encoder, net.decoder, net.source_embedding, net.target_embedding, plain, PIECES
    )
    arrays = with_words(SHAPES[0], dtype="float32")
    expected = TranslationLoss(WORDS, 0.1)(net(*arrays[:4]), arrays[4], arrays[3])
    mine = TranslatorLoss(net, 0.1)(*arrays)
    np.testing.assert_allclose(mine.asnumpy(), expected.asnumpy(), rtol=1e-5)


@pytest.mark.parametrize("static", [True, False])
def test_one_graph_gives_the_numbers_of_the_eager_loss(static):
    net = network(PIECES)
    loss = TranslatorLoss(net)
    batches = [with_words(shape, seed) for seed in range(2) for shape in SHAPES]
    eager = [computed(loss, net, arrays) for arrays in batches]
    loss.hybridize(static_alloc=static, static_shape=static)
    for arrays, expected in zip(batches, eager):
        assert_same(computed(loss, net, arrays), expected)


def test_the_translator_inside_stays_usable_on_its_own():
    net = network(PIECES)
    loss = TranslatorLoss(net)
    loss.hybridize(static_alloc=True, static_shape=True)
    arrays = with_words(SHAPES[0])
    before = net(*arrays[:4]).asnumpy()
    loss(*arrays)
    np.testing.assert_array_equal(net(*arrays[:4]).asnumpy(), before)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_loss_that_is_not_a_number_is_not_hidden(bad):
    net = network(PIECES)
    arrays = with_words(SHAPES[0])
    net.projection.bias.data()[3] = bad
    assert not np.isfinite(TranslatorLoss(net)(*arrays).asnumpy()).any()


def test_a_choice_that_does_not_exist_is_refused():
    with pytest.raises(PlanError, match="form='onehot' is not a choice; take one of one-hot, pick"):
        TranslationLoss(WORDS, form="onehot")
    with pytest.raises(PlanError, match="smoothing=1 must be at least 0 and less than 1"):
        TranslatorLoss(network(), smoothing=1)
