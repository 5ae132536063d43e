"""The chapter's text, with GluonNLP's downloads replaced by a corpus of a few lines."""

import gluonnlp
import mxnet as mx
import pytest
from mxnet import gluon

from mxopt import recipes
from mxopt.core.errors import DataError
from mxopt.core.plan import Plan
from mxopt.data import wmt
from mxopt.data.parallel_text import ParallelFolder
from mxopt.recipes.translation import recipe as translation
from mxopt.train.fit import fit

PAIRS = [
    ("the old man sees a sm@@ all dog .", "der alte Mann sieht einen kl@@ einen Hund ."),
    ("a well ##AT##-##AT## known dog .", "ein be@@ kannter Hund ."),
    ("the dog sees the man .", "der Hund sieht den Mann ."),
] * 4
VOCABULARY = gluonnlp.Vocab(
    gluonnlp.data.count_tokens([word for pair in PAIRS for text in pair for word in text.split()])
)


@pytest.fixture(autouse=True)
def small_corpus(monkeypatch, tmp_path):
    monkeypatch.setenv("MXOPT_CACHE", str(tmp_path))
    asked = []

    def corpus(segment):
        asked.append(segment)
        return gluon.data.SimpleDataset(PAIRS)

    monkeypatch.setattr(gluonnlp.data, "WMT2016BPE", corpus)
    monkeypatch.setattr(wmt, "TRAINING_PAIRS", 10)
    monkeypatch.setattr(wmt, "VALIDATION_PAIRS", 7)
    return asked


def test_the_corpus_is_read_once_and_split_as_in_the_chapter(small_corpus):
    folder = wmt.prepare()
    assert wmt.prepare() == folder
    assert small_corpus == ["train", "newstest2016"]
    train, validation, test = (
        list(ParallelFolder(folder, split)) for split in ("train", "validation", "test")
    )
    assert train == PAIRS[:10]
    assert validation == PAIRS[:7]
    assert test == PAIRS[7:]


def test_a_corpus_that_is_not_to_be_had_leaves_nothing_behind(monkeypatch, tmp_path):
    def unreachable(segment):
        raise OSError("no network")

    monkeypatch.setattr(gluonnlp.data, "WMT2016BPE", unreachable)
    with pytest.raises(DataError, match=r"WMT2016.*no network.*~/.mxnet"):
        wmt.prepare()
    assert not list(tmp_path.iterdir())


def test_byte_pairs_become_numbers_and_text_again():
    words = wmt.BytePairs(VOCABULARY)
    german = PAIRS[0][1]
    numbers = words.encode(german)
    assert len(numbers) == len(german.split())
    assert words.decode([*numbers, words.eos, 5, 6]) == "der alte Mann sieht einen kleinen Hund."
    assert words.plain("ein be@@ kannter Hund .") == "ein bekannter Hund."
    assert words.plain("well ##AT##-##AT## known") == "well-known"
    assert len({words.pad, words.bos, words.eos}) == 3


def test_a_sentence_of_ones_own_is_cut_into_what_the_vocabulary_has():
    words = wmt.BytePairs(VOCABULARY)
    assert words.pieces("the small dog.") == ["the", "sm@@", "all", "dog", "."]
    # A letter that no byte pair begins with is a piece that the vocabulary does not know.
    assert words.pieces("the cat") == ["the", "c@@", "a@@", "t"]
    assert words.decode(words.encode("sun")) == "<unk> <unk> <unk>"


def small_network(monkeypatch):
    monkeypatch.setattr(gluonnlp.model.transformer, "_load_vocab", lambda *rest: VOCABULARY)

    def initialize(net, name, dataset, root, ctx):
        net.initialize(mx.init.Xavier(), ctx=ctx)

    monkeypatch.setattr(gluonnlp.model.transformer, "_load_pretrained_params", initialize)
    original = translation.transformer_en_de_512
    small = {"num_units": 16, "hidden_size": 24, "num_layers": 1, "num_heads": 4, "embed_size": 16}

    def reduced(**options):
        return original(hparam_allow_override=True, **small, **options)

    monkeypatch.setattr(translation, "transformer_en_de_512", reduced)


@pytest.mark.parametrize("loss", ["one-hot", "fused"])
def test_the_pre_trained_network_is_fine_tuned_on_it(monkeypatch, loss):
    small_network(monkeypatch)
    translation.fetch_pretrained()
    recipe = recipes.load("translation", pretrained=True, beam=2, loss=loss)
    events = []
    figures = fit(recipe, Plan(optimizer="adam", learning_rate=0.01, batch_size=5, epochs=2),
                  lambda event, **fields: events.append((event, fields)))  # fmt: skip
    assert recipe.name == "transformer_en_de_512"
    assert dict(events)["data"]["train"] == 10
    assert figures["tokens"] == 2 * sum(len(german.split()) + 1 for _, german in PAIRS[:10])
    assert figures["test_chrf"] > 0  # sentences were generated, and compared as text
    # References are text as people write it, not byte pairs.
    assert recipe.data().collate.vocabulary.plain(PAIRS[8][1]).endswith("Mann.")


def test_weights_that_are_not_to_be_had_are_named(monkeypatch):
    def unreachable(**options):
        raise RuntimeError("Failed downloading url")

    monkeypatch.setattr(translation, "transformer_en_de_512", unreachable)
    with pytest.raises(DataError, match=r"weights of transformer_en_de_512.*Failed downloading"):
        translation.fetch_pretrained()
