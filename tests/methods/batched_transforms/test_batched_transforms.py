"""Samples that are transformed many at once: the same arrays, in the same places."""

import mxnet as mx
import numpy as np
import pytest
from mxnet import gluon, nd

from mxopt.core.errors import PlanError
from mxopt.core.plan import Plan
from mxopt.data import ndarray_memory
from mxopt.methods.input_pipeline import pipeline
from mxopt.recipes import load
from mxopt.train.fit import fit

SIZES = {"preprocess": "cached", "batch_size": 32, "optimizer": "adam", "learning_rate": 1e-3}


class Doubled:
    """A transform that counts its calls."""

    def __init__(self):
        self.calls = []

    def __call__(self, image, label):
        return image * 2.0, label

    def batched(self, images, labels):
        self.calls.append(len(images))
        return images * 2.0, labels


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("at_once", [2, 4, 100])
def test_arrays_are_those_of_one_sample_after_the_other(count, at_once):
    images = nd.arange(7 * 6).reshape((7, 3, 2))
    dataset = gluon.data.ArrayDataset(images, list(range(7)))
    contexts = [mx.cpu(n) for n in range(count)]
    transform = Doubled()
    one_by_one = pipeline.preprocess(dataset, transform, contexts)
    assert not transform.calls
    together = pipeline.preprocess(dataset, transform, contexts, at_once)
    assert max(transform.calls) == min(at_once, -(-7 // count))
    assert sum(transform.calls) == 7
    for expected, found in zip(one_by_one, together):
        for a, b in zip(expected, found):
            assert (a.context, a.dtype, a.shape) == (b.context, b.dtype, b.shape)
            assert (a == b).asnumpy().all()


def test_fewer_samples_than_contexts():
    dataset = gluon.data.ArrayDataset(nd.ones((1, 2)), [3])
    found = pipeline.preprocess(dataset, Doubled(), [mx.cpu(0), mx.cpu(1)], 4)
    assert [a.context for a, _ in found] == [mx.cpu(0)]


def test_garments_train_to_the_same_loss():
    recipe = load("fashion_mnist", stand_in=True, limit=96, channels=[4, 8], hidden=16)
    found = [fit(recipe, Plan(**SIZES, transform_batch=n), lambda *a, **k: None) for n in (1, 40)]
    assert found[0]["train_loss"] == found[1]["train_loss"]
    assert found[0]["test_accuracy"] == found[1]["test_accuracy"]


def test_rows_of_garments_are_its_samples():
    data = load("fashion_mnist", stand_in=True).data().train
    fewer = data.take(10)
    assert len(fewer) == 10
    assert len(data) > 10
    images, labels = fewer.rows(slice(1, None, 4))
    assert (images.dtype, images.shape) == (np.uint8, (3, 28, 28, 1))
    for row, index in enumerate((1, 5, 9)):
        image, label = data[index]
        assert (image == images[row]).asnumpy().all()
        assert label == labels[row]
    assert ndarray_memory.sample_bytes(data[0]) > 0


def test_what_cannot_be_is_refused():
    with pytest.raises(PlanError, match=r"transform_batch=8 needs samples .* preprocess='lazy'"):
        Plan(preprocess="lazy", transform_batch=8)
    recipe = load("segmentation", size=32, limit=2)
    with pytest.raises(PlanError, match=r"method batched\(\), .*Transform has none"):
        fit(recipe, Plan(preprocess="cached", transform_batch=8), lambda *a, **k: None)
