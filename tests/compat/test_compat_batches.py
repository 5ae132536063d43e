"""Batches and hashes of GluonCV, GluonNLP and MXNet, as on NumPy 1.23."""

import gluonnlp
import mxnet as mx
import numpy
import pytest
from gluoncv.data import dataloader
from mxnet import test_utils


@pytest.mark.parametrize("name", ["default_pad_batchify_fn", "default_mp_pad_batchify_fn"])
@pytest.mark.parametrize("kind", ["float32", "int32", "uint8"])
def test_labels_of_unequal_length_are_padded(name, kind):
    labels = [numpy.full((rows, 5), rows, kind) for rows in (2, 3, 1)]
    batch = getattr(dataloader, name)(labels)
    assert (batch.shape, batch.dtype) == ((3, 3, 5), numpy.dtype(kind))
    padding = numpy.array(-1).astype(kind)
    found = batch.asnumpy()
    for rows, label in zip((2, 3, 1), found):
        assert (label[:rows] == rows).all()
        assert (label[rows:] == padding).all()


def test_labels_of_equal_length_are_stacked():
    labels = [numpy.full((2, 5), n, "float32") for n in range(3)]
    batch = dataloader.default_pad_batchify_fn([(mx.nd.zeros(3), label) for label in labels])
    assert (batch[1].asnumpy() == numpy.stack(labels)).all()
    assert dataloader.tsn_mp_batchify_fn([1, 2, 3]).asnumpy().tolist() == [1, 2, 3]


def test_the_documented_example_of_the_loader_runs():
    data = [(mx.nd.zeros((3, 4, 4)), numpy.ones((n + 1, 5))) for n in range(4)]
    with pytest.warns(UserWarning, match="deprecated"):
        loader = dataloader.DetectionDataLoader(mx.gluon.data.SimpleDataset(data), 4)
    [(images, labels)] = loader
    assert (images.shape, labels.shape) == ((4, 3, 4, 4), (4, 4, 5))


@pytest.mark.parametrize("kind", ["uint8", "int32", "float32"])
def test_unsigned_sequences_are_padded_with_minus_one(kind):
    pad = gluonnlp.data.batchify.Pad(pad_val=-1)
    batch = pad([numpy.array([1, 2], kind), numpy.array([3], kind)])
    assert batch.asnumpy()[1, 1] == numpy.array(-1).astype(kind)
    assert batch.asnumpy()[0].tolist() == [1, 2]


@pytest.mark.filterwarnings("ignore:overflow encountered")
@pytest.mark.parametrize("word", ["dog", "Straße", "naïve", "日本"])
def test_words_are_hashed_as_fasttext_does(word):
    expected = 2166136261  # FNV-1a over bytes that are sign-extended
    for byte in word.encode():
        expected = (expected ^ (byte if byte < 128 else byte | 0xFFFFFF00)) * 16777619 % 2**32
    from gluonnlp.vocab import subwords

    assert int(subwords._fasttext_hash(word.encode())) == expected
    hashes = gluonnlp.vocab.NGramHashes(num_subwords=1000)
    assert all(0 <= index < 1000 for index in hashes([word])[0])


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_random_generators_can_be_checked():
    mx.random.seed(0)
    thirds = [(0, 1 / 3), (1 / 3, 2 / 3), (2 / 3, 1)]
    p, observed, expected = test_utils.chi_square_check(
        lambda count: mx.nd.random.uniform(0, 1, count).asnumpy(), thirds, [1 / 3] * 3, 10_000
    )
    assert p > 1e-4
    assert observed.sum() == 10_000
    assert expected.tolist() == [3333] * 3
    skewed, _, _ = test_utils.chi_square_check(
        lambda count: mx.nd.random.uniform(0, 1, count).asnumpy() ** 2, thirds, [1 / 3] * 3, 10_000
    )
    assert skewed < 1e-4
