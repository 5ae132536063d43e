import itertools
import subprocess
import sys
from pathlib import Path

import mxnet as mx
import numpy as np
import pytest
from gluonnlp.model import BeamSearchSampler, BeamSearchScorer
from mxnet import autograd, gluon, nd

from mxopt.core.errors import DataError, PlanError
from mxopt.recipes.translation.beam_search import (
    BOS,
    EOS,
    bleu_and_chrf,
    search_steps,
    translate_all,
)
from mxopt.recipes.translation.cpu_operators import PIECES
from mxopt.recipes.translation.loss import TranslatorLoss
from mxopt.recipes.translation.transformer import translator

WORDS = 12


def network(fast=PIECES, **options):
    mx.random.seed(0)
    options = {"layers": 2, "units": 32, "heads": 4, "hidden": 48, "max_length": 20, **options}
    net = translator(WORDS, dropout=0.3, fast=fast, **options)
    net.initialize(mx.init.Xavier())
    return net


@pytest.fixture(scope="module")
def reverser(tmp_path_factory):
    """A file of the parameters of a network that has learned to reverse sentences, mostly."""
    net = translator(WORDS, 2, 32, 4, 48, dropout=0.0, max_length=20)
    mx.random.seed(0)
    net.initialize(mx.init.Xavier())
    loss = TranslatorLoss(net, smoothing=0.1)
    loss.hybridize(static_alloc=True, static_shape=True)
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 4e-3})
    for step in range(120):
        sources = sentences(48, seed=step, longest=5)
        lengths = [len(source) + 1 for source in sources]
        rows = [
            [[*source, EOS] for source in sources],
            [[BOS, *source[::-1]] for source in sources],
            [[*source[::-1], EOS] for source in sources],
        ]
        source, target, words = (
            nd.array([row + [0] * (6 - len(row)) for row in each]) for each in rows
        )
        with autograd.record():
            losses = loss(source, target, nd.array(lengths), nd.array(lengths), words)
        losses.backward()
        trainer.step(sum(lengths))
    file = tmp_path_factory.mktemp("reverser") / "parameters"
    net.save_parameters(str(file))
    return str(file)


def trained(file, fast=PIECES):
    net = network(fast)
    net.load_parameters(file)
    return net


def sentences(count, words=WORDS, longest=8, seed=0):
    random = np.random.RandomState(seed)
    return [random.randint(4, words, random.randint(1, longest + 1)).tolist() for _ in range(count)]


def log_probabilities(net, source, translations):
    """Of translations of one length, by one pass over all their words."""
    words = np.array(translations)
    source = np.tile([*source, EOS], (len(words), 1))
    target = np.concatenate([np.full((len(words), 1), BOS), words[:, :-1]], axis=1)
    lengths = [np.full(len(words), ids.shape[1]) for ids in (source, target)]
    logs = nd.log_softmax(net(*map(nd.array, (source, target, *lengths)))).asnumpy()
    return np.take_along_axis(logs, words[..., None], axis=2).sum(axis=(1, 2))


def gluonnlp_translations(net, sources, beam, alpha, max_length):
    """The same search by GluonNLP's sampler, with all words decoded anew in every step."""

    def decode(word, states):
        prefix, source, length = states
        prefix = nd.concat(prefix, word.astype("float32").reshape((-1, 1)), dim=1)
        lengths = nd.full(len(prefix), prefix.shape[1] - 1)
        scores = net(source, prefix[:, 1:], length, lengths)
        return nd.log_softmax(scores[:, -1]), [prefix, source, length]

    results = []
    for source in sources:
        source = nd.array([[*source, EOS]])
        states = [nd.zeros((1, 1)), source, nd.array([source.shape[1]])]
        sampler = BeamSearchSampler(
            beam, decode, EOS, BeamSearchScorer(alpha=alpha, K=5), max_length=max_length
        )
        samples, _, _ = sampler(nd.array([BOS]), states)
        words = samples[0, 0].asnumpy().astype(int).tolist()[1 : max_length + 1]
        results.append(words[: words.index(EOS)] if EOS in words else words)
    return results


@pytest.mark.quick(1)
@pytest.mark.parametrize(("beam", "alpha"), [(1, 1.0), (2, 0.0), (4, 0.6), (4, 1.5)])
def test_it_finds_what_gluonnlp_s_search_finds(reverser, beam, alpha):
    net, sources = trained(reverser), sentences(40)
    mine = translate_all(net, sources, beam, alpha, max_length=9)
    assert mine == gluonnlp_translations(net, sources, beam, alpha, max_length=9)
    assert len({len(words) for words in mine}) > 4


def test_a_network_that_has_learned_to_reverse_sentences_reverses_them(reverser):
    sources = sentences(100, longest=5, seed=1000)
    found = translate_all(trained(reverser), sources, beam=4)
    assert np.mean([words == source[::-1] for words, source in zip(found, sources)]) > 0.6


def test_a_wide_beam_finds_the_best_of_all_translations(reverser):
    net, limit, alpha = trained(reverser), 3, 0.8
    sources = sentences(5)
    found = translate_all(net, sources, beam=WORDS**limit, alpha=alpha, max_length=limit)
    for source, words in zip(sources, found):
        best = {}
        for length in range(1, limit + 1):
            every = [
                translation
                for translation in itertools.product(range(WORDS), repeat=length)
                if EOS not in translation[:-1] and (length == limit or translation[-1] == EOS)
            ]
            scores = log_probabilities(net, source, every) / ((5 + length) / 6) ** alpha
            best[scores.max()] = every[scores.argmax()]
        assert words == [word for word in best[max(best)] if word != EOS]


@pytest.mark.parametrize("beam", [1, 3])
def test_a_translation_does_not_depend_on_the_others_in_its_batch(reverser, beam):
    net, sources = trained(reverser), sentences(20)
    alone = [translate_all(net, [source], beam)[0] for source in sources]
    assert translate_all(net, sources, beam, batch_size=64) == alone
    assert translate_all(net, sources, beam, batch_size=3) == alone


@pytest.mark.parametrize("fast", [(), PIECES])
def test_pieces_and_hybridisation_do_not_change_translations(reverser, fast):
    sources = sentences(20)
    expected = translate_all(trained(reverser, fast=()), sources)
    net = trained(reverser, fast)
    net.hybridize(static_alloc=True, static_shape=True)
    assert translate_all(net, sources) == expected


def test_a_length_penalty_makes_translations_longer(reverser):
    net, sources = trained(reverser), sentences(40)
    short, long = (sum(map(len, translate_all(net, sources, 4, alpha))) for alpha in (0, 3))
    assert long > short


def test_translations_end_at_the_limit():
    net = network()
    net.projection.bias.data()[EOS] = -100
    source = [5, 6, 7]
    assert len(translate_all(net, [source], 2, max_length=6)[0]) == 6
    # Twice the source with its end and ten more, or as far as there are positions.
    assert len(translate_all(net, [source], 2)[0]) == 18
    assert len(translate_all(net, [source * 3], 1)[0]) == 20


def test_nothing_to_translate_is_nothing_translated():
    assert translate_all(network(), []) == []
    assert len(translate_all(network(), [[]])) == 1


def test_what_cannot_be_searched_is_refused():
    with pytest.raises(PlanError, match="beam=0"):
        translate_all(network(), [[4]], beam=0)
    with pytest.raises(PlanError, match="alpha=-1"):
        translate_all(network(), [[4]], alpha=-1)
    with pytest.raises(DataError, match="a source of 26 words is longer than the 20"):
        translate_all(network(), [[4] * 25])
    with pytest.raises(DataError, match=r"max_length=21 is too long: .* 20 words"):
        translate_all(network(), [[4]], max_length=21)


def test_perfect_translations_score_a_hundred_and_signatures_say_how():
    lines = ["Ein Hund läuft über die Wiese .", "Zwei Kinder spielen im Garten mit dem Ball ."]
    scores = bleu_and_chrf(lines, lines)
    assert scores["bleu"] == pytest.approx(100)
    assert scores["chrf"] == pytest.approx(100)
    assert "tok:13a" in scores["bleu_signature"]
    assert "nc:6" in scores["chrf_signature"]


def test_scores_are_those_of_sacrebleu_s_own_command(tmp_path):
    hypotheses = ["Ein Hund läuft schnell über eine Wiese .", "Zwei Kinder im Garten spielen ."]
    references = ["Ein Hund läuft über die Wiese .", "Zwei Kinder spielen im Garten Ball ."]
    file = Path(tmp_path / "references")
    file.write_text("\n".join(references), encoding="utf-8")
    command = [sys.executable, "-m", "sacrebleu", str(file), "-m", "bleu", "-b", "-w", "4"]
    theirs = subprocess.run(
        command, input="\n".join(hypotheses), capture_output=True, text=True, check=True
    )
    scores = bleu_and_chrf(hypotheses, references)
    assert scores["bleu"] == pytest.approx(float(theirs.stdout), abs=1e-4)


def test_scores_need_a_reference_for_each_translation():
    with pytest.raises(DataError, match="2 translations cannot be scored against 1 references"):
        bleu_and_chrf(["a", "b"], ["a"])


@pytest.mark.parametrize("beam", [1, 3])
def test_the_steps_of_a_search_lead_to_its_translation(reverser, beam):
    net = trained(reverser)
    for source in sentences(6, seed=9, longest=5):
        steps = search_steps(net, source, beam)
        [translation] = translate_all(net, [source], beam)
        best = steps[-1][0]
        assert not best.alive
        assert list(best.words[: best.words.index(EOS)]) == translation
        for earlier, step in zip(steps, steps[1:]):
            assert [one.score for one in step] == sorted((one.score for one in step), reverse=True)
            for one in step:
                parent = earlier[one.parent]
                assert one.words[: len(parent.words)] == parent.words
                # A finished hypothesis is kept as it is.
                assert parent.alive or one.score == pytest.approx(parent.score)
