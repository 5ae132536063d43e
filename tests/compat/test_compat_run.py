"""Beyond import: a network trains, data loads in worker processes, the toolkits compute."""

import sys
import types

import gluoncv
import gluonnlp
import mxnet as mx
import numpy
import pytest
from mxnet import autograd, gluon
from mxnet.test_utils import assert_almost_equal, check_numeric_gradient


def test_a_small_network_learns():
    mx.random.seed(0)
    rng = numpy.random.RandomState(0)
    images = rng.rand(64, 1, 8, 8).astype("float32")
    labels = (images.mean(axis=(1, 2, 3)) > 0.5).astype("float32")
    images += labels.reshape(-1, 1, 1, 1)
    network = gluon.nn.HybridSequential()
    network.add(gluon.nn.Conv2D(4, 3), gluon.nn.BatchNorm(), gluon.nn.Dense(2))
    network.initialize(mx.init.Xavier())
    network.hybridize()
    trainer = gluon.Trainer(network.collect_params(), "adam", {"learning_rate": 0.01})
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
    losses = []
    for _ in range(20):
        with autograd.record():
            loss = loss_of(network(mx.nd.array(images)), mx.nd.array(labels))
        loss.backward()
        trainer.step(len(images))
        losses.append(loss.mean().asscalar())
    assert losses[-1] < 0.5 * losses[0]
    accuracy = mx.metric.Accuracy()
    accuracy.update(mx.nd.array(labels), network(mx.nd.array(images)))
    assert accuracy.get()[1] > 0.9


@pytest.mark.parametrize("workers", [0, 2])
def test_loader_with_transforms(workers):
    images = numpy.random.RandomState(0).randint(0, 255, (12, 16, 16, 3)).astype("uint8")
    transform = gluon.data.vision.transforms.Compose(
        [
            gluon.data.vision.transforms.Resize(8),
            gluon.data.vision.transforms.RandomFlipLeftRight(),
            gluon.data.vision.transforms.ToTensor(),
            gluon.data.vision.transforms.Normalize(0.5, 0.2),
        ]
    )
    data = gluon.data.ArrayDataset(mx.nd.array(images, dtype="uint8"), numpy.arange(12))
    loader = gluon.data.DataLoader(data.transform_first(transform), 5, num_workers=workers)
    shapes = [(batch.shape, label.shape) for batch, label in loader]
    assert shapes == [((5, 3, 8, 8), (5,)), ((5, 3, 8, 8), (5,)), ((2, 3, 8, 8), (2,))]


def test_mx_np_basics():
    a = mx.np.arange(6).reshape(2, 3)
    assert mx.np.bool_(True)
    assert (a.dtype, a.sum().item(), a[a > 2].tolist()) == (numpy.float32, 15.0, [3.0, 4.0, 5.0])
    assert mx.np.where(a > 2, a, -a).tolist() == [[0, -1, -2], [3, 4, 5]]
    assert mx.np.concatenate([a, a]).mean(axis=0).tolist() == [1.5, 2.5, 3.5]
    assert mx.np.array([True, False], dtype=bool).dtype == bool
    assert mx.np.isnan(mx.np.array([mx.np.NaN, mx.np.inf])).tolist() == [True, False]
    a.attach_grad()
    with autograd.record():
        total = (a * a).sum()
    total.backward()
    assert a.grad.tolist() == (2 * a).tolist()


def test_the_test_utilities_of_mxnet_work():
    assert_almost_equal(mx.nd.ones((2,)), numpy.ones(2, dtype="float32"))
    with pytest.raises(AssertionError):
        assert_almost_equal(mx.nd.ones((2,)), numpy.zeros(2))
    x = mx.sym.Variable("x")
    check_numeric_gradient(mx.sym.square(x), [numpy.array([[0.3, -0.7]])])
    samples = mx.nd.random.normal(shape=(2000,)).asnumpy()
    buckets, probabilities = mx.test_utils.gen_buckets_probs_with_ppf(
        lambda q: __import__("scipy.stats").stats.norm.ppf(q), 5
    )
    _, observed, expected = mx.test_utils.chi_square_check(
        lambda n: samples[:n], buckets, probabilities, nsamples=2000
    )
    assert observed.sum() == 2000
    assert expected.sum() == pytest.approx(2000)


def test_segmentation_metric_of_gluoncv():
    metric = gluoncv.utils.metrics.segmentation.SegmentationMetric(2)
    label = mx.nd.array([[[0, 0], [1, 1]]])
    scores = mx.nd.array([[[[0.9, 0.2], [0.1, 0.1]], [[0.1, 0.8], [0.9, 0.9]]]])
    metric.update([label], [scores])
    accuracy, mean_iou = metric.get()
    assert accuracy == pytest.approx(0.75)
    assert mean_iou == pytest.approx((1 / 2 + 2 / 3) / 2)


def test_segmentation_network_of_gluoncv():
    network = gluoncv.model_zoo.DeepLabV3(
        nclass=3, backbone="resnet50", pretrained_base=False, aux=False, crop_size=64
    )
    network.collect_params().initialize()
    assert network(mx.nd.zeros((1, 3, 64, 64)))[0].shape == (1, 3, 64, 64)


def test_anchors_of_gluoncv_use_a_restored_type():
    generator = gluoncv.model_zoo.rcnn.rpn.anchor.RPNAnchorGenerator(16, 16, (0.5, 1), (8,), (8, 8))
    generator.initialize()
    assert generator(mx.nd.zeros((1, 3, 4, 4))).shape == (1, 32, 4)


def test_targets_of_centernet():
    boxes = numpy.array([[1, 2, 8, 9, 0], [3, 3, 12, 14, 1]], dtype="float32")
    transform = gluoncv.data.transforms.presets.center_net.CenterNetDefaultTrainTransform(64, 64, 2)
    image, heatmap, *_ = transform(mx.nd.zeros((16, 16, 3), dtype="uint8"), boxes)
    assert (image.shape, heatmap.shape) == ((3, 64, 64), (2, 16, 16))


def test_bucket_sampler_of_gluonnlp_visits_each_sample_once():
    lengths = [3, 9, 4, 4, 12, 7, 8, 3, 5, 10]
    sampler = gluonnlp.data.FixedBucketSampler(lengths, batch_size=2, num_buckets=3, shuffle=True)
    assert sorted(index for batch in sampler for index in batch) == list(range(len(lengths)))
    assert "sample_num=10" in sampler.stats()


def test_batchify_and_vocabulary_of_gluonnlp():
    words = gluonnlp.data.count_tokens(["a", "b", "a", "c", "a", "b"])
    vocabulary = gluonnlp.Vocab(words)
    rows = [(vocabulary[["a", "b"]], 0.5), (vocabulary[["c"]], 1.5)]
    batchify = gluonnlp.data.batchify.Tuple(
        gluonnlp.data.batchify.Pad(pad_val=vocabulary[vocabulary.padding_token], ret_length=True),
        gluonnlp.data.batchify.Stack(),
    )
    (tokens, lengths), scores = batchify(rows)
    assert (tokens.shape, lengths.asnumpy().tolist()) == ((2, 2), [2, 1])
    assert vocabulary.to_tokens(int(tokens[1, 0].asscalar())) == "c"
    assert scores.asnumpy().tolist() == [0.5, 1.5]


def test_spacy_tokenizer_of_gluonnlp_needs_no_setuptools(monkeypatch):
    spacy = types.ModuleType("spacy")
    spacy.__version__, spacy.load = "3.8.2", lambda lang, disable: f"model {lang}"
    monkeypatch.setitem(sys.modules, "spacy", spacy)
    assert gluonnlp.data.SpacyTokenizer("en")._nlp == "model en"
