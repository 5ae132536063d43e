from types import SimpleNamespace

import gluonnlp
import mxnet as mx
import numpy as np
import pytest
from gluonnlp.model.translation import NMTModel
from mxnet import autograd, gluon, nd

from mxopt import kernels
from mxopt.core.errors import DataError, PlanError
from mxopt.core.plan import Plan
from mxopt.methods.cpu_kernels import CpuKernels
from mxopt.recipes.translation.cpu_operators import PIECES, ROWS, Pass
from mxopt.recipes.translation.kernel_operators import BFLOAT16, KERNELS, KernelPass
from mxopt.recipes.translation.loss import TranslatorLoss
from mxopt.recipes.translation.transformer import (
    Translator,
    transformer_en_de_512,
    translator,
)

WORDS = 40
SHAPES = [(5, 7, 6), (3, 4, 9), (5, 7, 6), (2, 9, 3)]


COMPILED = pytest.param(
    (KERNELS,), marks=pytest.mark.skipif(not kernels.available(), reason="no compiler")
)


def batch(samples, source, target, seed=0, dtype="int32"):
    """Source ids, target ids and their lengths; one sample of each is as long as the batch."""
    random = np.random.RandomState([seed, samples, source, target])
    lengths = [random.randint(1, longest + 1, samples) for longest in (source, target)]
    for each, longest in zip(lengths, (source, target)):
        each[random.randint(samples)] = longest
    ids = [random.randint(1, WORDS, (samples, longest)) for longest in (source, target)]
    return [nd.array(array, dtype=dtype) for array in (*ids, *lengths)]


def network(fast=(), seed=0, dropout=0.0, **options):
    mx.random.seed(seed)
    options = {"layers": 2, "units": 16, "heads": 4, "hidden": 24, "max_length": 12, **options}
    net = translator(WORDS, dropout=dropout, fast=fast, **options)
    net.initialize(mx.init.Xavier())
    for parameter in net.collect_params().values():
        if parameter.name.endswith(("gamma", "beta", "bias")):
            parameter.set_data(nd.random.normal(0.5, 0.5, shape=parameter.shape))
    return net


def computed(net, arrays):
    """Scores of a batch and the gradients of all parameters of a random function of them."""
    with autograd.record():
        scores = net(*arrays)
        weights = np.random.RandomState(1).normal(size=scores.shape)
        loss = (scores * nd.array(weights)).sum()
    loss.backward()
    parameters = net.collect_params().values()
    gradients = [p.grad().asnumpy() for p in parameters if p.grad_req != "null"]
    assert all(abs(gradient).max() > 0 for gradient in gradients)
    return [scores.asnumpy(), *gradients]


def assert_same(mine, theirs):
    """Results and gradients are equal to 1e-5.

    The gradient of a single parameter may be so small that rounding is a larger part of it.
    """
    assert error(mine[:1], theirs[:1]) < 1e-5
    assert error(mine[1:], theirs[1:]) < 1e-5
    for one, other in zip(mine, theirs):
        assert error([one], [other]) < 1e-3


def error(mine, theirs):
    one, other = (np.concatenate([a.reshape(-1) for a in arrays]) for arrays in (mine, theirs))
    return np.linalg.norm(one - other) / np.linalg.norm(other)


def sharing(net, fast):
    """A translator with the very parameters of another one."""
    parts = (net.encoder, net.decoder, net.source_embedding, net.target_embedding, net.projection)
    return Translator(*parts, fast=fast)


@pytest.mark.parametrize("tied", [True, False])
def test_it_is_gluonnlp_s_model(tied):
    net = network(tied=tied)

    class Vocabulary(list):
        pass

    words = Vocabulary(range(WORDS))
    encoder, decoder, one_step = gluonnlp.model.transformer.get_transformer_encoder_decoder(
        num_layers=2, num_heads=4, units=16, hidden_size=24, max_src_length=12, max_tgt_length=12
    )
    theirs = NMTModel(
        words, words, encoder, decoder, one_step, 16, share_embed=tied, tie_weights=tied
    )
    theirs.initialize()
    source, target, source_length, target_length = batch(5, 7, 6, dtype="float32")
    theirs(source, target, source_length, target_length)
    pairs = [
        (theirs.encoder, net.encoder),
        (theirs.decoder, net.decoder),
        (theirs.src_embed[0], net.source_embedding),
        (theirs.tgt_embed[0], net.target_embedding),
        (theirs.tgt_proj, net.projection),
    ]
    for their_part, our_part in pairs:
        their_parameters = their_part.collect_params().values()
        for other, one in zip(their_parameters, our_part.collect_params().values()):
            other.set_data(one.data())
    scores, _ = theirs(source, target, source_length, target_length)
    mine = net(source, target, source_length, target_length)
    np.testing.assert_allclose(mine.asnumpy(), scores.asnumpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("fast", [PIECES[:1], PIECES[1:2], PIECES, COMPILED])
@pytest.mark.parametrize("tied", [True, False])
def test_every_piece_gives_the_numbers_of_gluonnlp_s_cells(fast, tied):
    net = network(tied=tied)
    other = sharing(net, fast)
    for shape in SHAPES:
        arrays = batch(*shape)
        assert_same(computed(other, arrays), computed(net, arrays))


@pytest.mark.parametrize("fast", [(), PIECES, COMPILED])
@pytest.mark.parametrize("static", [True, False])
def test_one_graph_gives_the_numbers_of_the_eager_network(fast, static):
    net = network(fast)
    # Every shape twice, because memory is static only from the second call on (apache/mxnet
    # #20293), and shapes that change from batch to batch.
    batches = [batch(*shape, seed=seed) for seed in range(2) for shape in SHAPES]
    eager = [computed(net, arrays) for arrays in batches]
    net.hybridize(static_alloc=static, static_shape=static)
    for arrays, expected in zip(batches, eager):
        assert_same(computed(net, arrays), expected)


@pytest.mark.parametrize("fast", [(), PIECES, COMPILED])
def test_it_is_one_graph(fast):
    net = network(fast)
    names = ("source", "target", "source_length", "target_length")
    scores = net(*(mx.sym.var(name) for name in names))
    used = set(scores.list_inputs())
    assert used == {*names, *net.collect_params().keys()}


def copies(net, arrays):
    """How many arrays a network's graph copies."""
    graph = net(*(mx.sym.var(f"input{n}") for n in range(len(arrays))))
    return graph.tojson().count('"op": "_copy"')


@pytest.mark.skipif(not kernels.available(), reason="no compiler")
@pytest.mark.parametrize("static", [False, True])
def test_gradients_that_are_written_need_no_copies_of_the_parameters(static):
    arrays = batch(3, 7, 6)
    added, written = network((KERNELS,)), network((KERNELS,))
    written.write_gradients()
    assert copies(written, arrays) == 0 < copies(added, arrays)
    for net in (added, written):
        net.hybridize(active=static, static_alloc=static, static_shape=static)
    for ours, theirs in zip(computed(written, arrays), computed(added, arrays)):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.skipif(not kernels.available(), reason="no compiler")
@pytest.mark.parametrize(("batches", "added"), [(1, 0), (2, 1)])
def test_a_plan_that_adds_no_gradients_needs_no_copies(batches, added):
    net = TranslatorLoss(network((KERNELS,)))
    CpuKernels.network(None, SimpleNamespace(plan=Plan(grad_accumulation=batches)), net)
    assert (copies(net.translator, batch(3, 7, 6)) > 0) == added


@pytest.mark.skipif(not kernels.available(), reason="no compiler")
@pytest.mark.parametrize("static", [False, True])
def test_gradients_of_two_batches_are_added_or_refused(static):
    first, second = batch(3, 7, 6), batch(2, 5, 6, seed=1)
    net = network((KERNELS,))
    expected = [sum(both) for both in zip(computed(net, first)[1:], computed(net, second)[1:])]
    net.collect_params().setattr("grad_req", "add")
    net.hybridize(active=static, static_alloc=static, static_shape=static)
    computed(net, first)
    assert error(computed(net, second)[1:], expected) < 1e-5
    net.write_gradients()
    with pytest.raises(PlanError, match="without write_gradients"):
        computed(net, first)
    net(*first)  # a prediction has no gradients


@pytest.mark.parametrize("fast", [(), PIECES, COMPILED])
def test_neither_padding_nor_later_words_change_a_score(fast):
    net = network(fast)
    source, target, source_length, target_length = batch(4, 5, 6)
    source_length[:], target_length[:] = 3, 4
    scores = net(source, target, source_length, target_length).asnumpy()
    source[:, 3:], target[:, 4:] = 7, 8
    again = net(source, target, source_length, target_length).asnumpy()
    np.testing.assert_array_equal(again, scores)
    target[:, 2:] = 9
    again = net(source, target, source_length, target_length).asnumpy()
    np.testing.assert_allclose(again[:, :2], scores[:, :2], atol=1e-6)
    assert abs(again - scores)[:, 2:4].max() > 1e-3
    source[:, :3] = 9
    assert abs(net(source, target, source_length, target_length).asnumpy() - again).max() > 1e-3


def test_fast_and_plain_networks_take_each_other_s_parameters(tmp_path):
    file = str(tmp_path / "parameters")
    first, second = network((), seed=1), network(PIECES, seed=2)
    first.save_parameters(file)
    second.load_parameters(file)
    arrays = batch(3, 4, 5)
    np.testing.assert_allclose(second(*arrays).asnumpy(), first(*arrays).asnumpy(), atol=1e-5)


@pytest.mark.parametrize("fast", [(), PIECES[:1], PIECES, COMPILED])
def test_dropout_is_in_training_only(fast):
    net = network(fast, dropout=0.5)
    arrays = batch(3, 4, 5)
    np.testing.assert_array_equal(net(*arrays).asnumpy(), net(*arrays).asnumpy())
    plain = network((), dropout=0.0)
    np.testing.assert_allclose(net(*arrays).asnumpy(), plain(*arrays).asnumpy(), atol=1e-5)
    with autograd.train_mode():
        assert abs((net(*arrays) - net(*arrays)).asnumpy()).max() > 0.01


@pytest.mark.parametrize("fast", [(), ("dropout",)])
def test_elements_are_dropped_with_their_probability_and_the_rest_makes_up_for_it(fast):
    mx.random.seed(3)
    with autograd.train_mode():
        run = Pass(nd, nd.ones(8), fast, units=64, heads=1, dropout=0.25)
        dropped = run.drop(nd.ones((8, 200, 64)), nd.ones((8, 200))).asnumpy()
    assert set(np.unique(dropped).round(5)) == {0, np.float32(1 / 0.75).round(5)}
    # Rows out of a pool of 512 x 64 elements: the share dropped has a deviation of 0.0024.
    assert (dropped == 0).mean() == pytest.approx(0.25, abs=0.01)
    assert abs((dropped == 0).mean(axis=(0, 1)) - 0.25).max() < 0.1
    rows = {row.tobytes() for row in dropped.reshape(-1, 64)}
    # 1,600 draws out of 512 rows meet all but 4 % of them; drawn alone, none would be twice.
    assert len(rows) > (0.9 * ROWS if fast else 1590)


@pytest.mark.parametrize("scale", [0.0, 1e-3, 1.0, 1e3])
def test_a_norm_is_a_layer_norm_however_small_its_input_varies(scale):
    block = mx.gluon.nn.LayerNorm(in_channels=16)
    block.initialize()
    x = 0.1 + scale * np.random.RandomState(0).normal(size=(2, 3, 16))
    run = Pass(nd, nd.ones(2), ("norm",), units=16, heads=1, dropout=0)
    mine = run.norm(nd.array(x), block, nd.ones((2, 3))).asnumpy()
    np.testing.assert_allclose(mine, block(nd.array(x)).asnumpy(), atol=1e-5)


def test_static_dropout_is_drawn_anew_in_every_step():
    net = network(PIECES, dropout=0.5)
    net.hybridize(static_alloc=True, static_shape=True)
    arrays = batch(3, 4, 5)
    with autograd.train_mode():
        results = {net(*arrays).asnumpy().tobytes() for _ in range(5)}
    assert len(results) == 5


def test_pre_trained_weights_go_into_the_translator(monkeypatch):
    vocabulary = gluonnlp.Vocab(gluonnlp.data.count_tokens(["ein", "Hund", "a", "dog"]))
    asked = []

    def load(net, name, dataset, root, context, **_):
        asked.append((name, dataset, context))
        net.initialize(mx.init.Xavier())

    module = gluonnlp.model.transformer
    monkeypatch.setattr(module, "_load_vocab", lambda name, *rest: vocabulary)
    monkeypatch.setattr(module, "_load_pretrained_params", load)
    small = {"num_units": 16, "hidden_size": 24, "num_layers": 2, "num_heads": 4, "embed_size": 16}
    net, source, target = transformer_en_de_512(hparam_allow_override=True, **small)
    assert asked == [("transformer_en_de_512", "WMT2014", mx.cpu())]
    assert source is target is vocabulary
    assert net.max_source_length == 530
    arrays = [nd.array(a) for a in ([[4, 5, 6]], [[2, 7]], [3], [2])]
    scores = net(*arrays).asnumpy()
    assert scores.shape == (1, 2, len(vocabulary))
    other = sharing(net, PIECES)(*arrays).asnumpy()
    np.testing.assert_allclose(other, scores, atol=1e-5)


def test_the_pre_trained_model_has_six_layers_of_512(monkeypatch):
    vocabulary = gluonnlp.Vocab(gluonnlp.data.count_tokens(["ein", "Hund", "a", "dog"]))
    module = gluonnlp.model.transformer
    monkeypatch.setattr(module, "_load_vocab", lambda name, *rest: vocabulary)
    net, _, _ = transformer_en_de_512(pretrained=False)
    assert len(net.encoder.transformer_cells) == len(net.decoder.transformer_cells) == 6
    assert (net.units, net.heads, net.dropout) == (512, 8, 0.1)
    assert all(0 not in p.shape for p in net.collect_params().values())


def test_a_sentence_longer_than_the_positions_is_refused_with_both_lengths():
    net = network()
    with pytest.raises(DataError, match="a target of 13 words is longer than the 12"):
        net(*batch(2, 12, 13))
    with pytest.raises(DataError, match="a source of 20 words"):
        net(*batch(2, 20, 13))


def test_a_piece_that_does_not_exist_is_refused_with_those_that_do():
    with pytest.raises(PlanError, match=r"'nrom' is unknown; take some of attention, norm"):
        network(fast=("nrom",))


def test_heads_that_do_not_divide_the_units_are_refused():
    with pytest.raises(PlanError, match="units=16 cannot be divided among heads=3"):
        network(heads=3)


@pytest.mark.skipif(not kernels.available(), reason="no compiler")
def test_embeddings_are_dropped_before_they_are_normalised():
    kernels.load()
    norm = gluon.nn.LayerNorm(in_channels=256)
    norm.initialize()
    x = nd.random.normal(5, 1, (20, 3, 256))
    with autograd.train_mode():
        run = KernelPass(nd, nd.ones(20), 256, 4, dropout=0.25)
        y = run.dropped_norm(x, norm, None).asnumpy()
    # What was dropped is the smallest of its row, the same for all that was: zero, normalised.
    smallest = y.min(axis=-1, keepdims=True)
    assert abs((y == smallest).mean() - 0.25) < 0.02
    whole = KernelPass(nd, nd.ones(20), 256, 4, dropout=0.25).dropped_norm(x, norm, None)
    np.testing.assert_allclose(whole.asnumpy(), norm(x).asnumpy(), atol=1e-5)


def multiplies_bfloat16():
    return kernels.available() and kernels.multiplies_bfloat16()


@pytest.mark.skipif(not multiplies_bfloat16(), reason="no AVX512-BF16")
def test_large_products_in_bfloat16():
    arrays = batch(5, 7, 6)
    exact = computed(network((KERNELS,)), arrays)
    rounded = computed(network((KERNELS, BFLOAT16)), arrays)
    assert np.abs(exact[0] - rounded[0]).max() > 0
    for one, other in zip(exact, rounded):
        assert np.abs(one - other).max() < 0.1 * np.abs(one).max()


def test_bfloat16_without_its_kernel_is_refused(monkeypatch):
    with pytest.raises(PlanError, match="kernels=True"):
        network((BFLOAT16,))
    monkeypatch.setattr(kernels, "load", lambda: None)
    monkeypatch.setattr(kernels, "multiplies_bfloat16", lambda: False)
    with pytest.raises(PlanError, match="AVX512-BF16"):
        network((KERNELS, BFLOAT16))
