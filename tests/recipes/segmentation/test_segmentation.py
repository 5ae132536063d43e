import mxnet as mx
import numpy as np
import pytest
from mxnet import nd
from PIL import Image

from mxopt import recipes
from mxopt.core.errors import DataError, PlanError
from mxopt.core.plan import Plan, choices
from mxopt.data import locate
from mxopt.recipes.segmentation.recipe import (
    PixelLoss,
    TinySegmenter,
    Transform,
    segmentation,
)
from mxopt.train.fit import fit


def photograph(height=30, width=50):
    """Return a random image and a mask whose right half is a person, both uint8."""
    mask = np.zeros((height, width, 1), "uint8")
    mask[:, width // 2 :] = 1
    image = np.random.RandomState(0).randint(0, 256, (height, width, 3))
    return nd.array(image, dtype="uint8"), nd.array(mask, dtype="uint8")


@pytest.fixture
def shapes(tmp_path):
    """A folder of 14 images of a red and a green square, and their masks of classes 1 and 2."""
    random = np.random.RandomState(0)
    for kind in ("images", "masks"):
        (tmp_path / kind).mkdir()
    for number in range(14):
        mask = np.zeros((40, 48), "uint8")
        for value in (1, 2):
            top, left = random.randint(0, 24, 2)
            mask[top : top + 16, left : left + 16] = value
        image = random.randint(0, 80, (40, 48, 3)).astype("uint8")
        image[mask == 1, 0] += 150
        image[mask == 2, 1] += 150
        Image.fromarray(image).save(tmp_path / "images" / f"scene-{number}.png")
        Image.fromarray(mask).save(tmp_path / "masks" / f"scene-{number}.png")
    return tmp_path


def test_the_transform_crops_the_centre_of_image_and_mask_alike():
    image, mask = Transform(16)(*photograph(32, 64))
    assert (image.shape, image.dtype) == ((3, 16, 16), np.float32)
    assert (mask.shape, mask.dtype) == ((16, 16), np.int32)
    np.testing.assert_array_equal(mask.asnumpy(), np.repeat([[0] * 8 + [1] * 8], 16, axis=0))


def test_the_transform_normalises_as_imagenet_does():
    white = nd.full((16, 16, 3), 255, dtype="uint8")
    image, _ = Transform(16)(white, nd.zeros((16, 16, 1), dtype="uint8"))
    expected = (1 - np.array([0.485, 0.456, 0.406])) / [0.229, 0.224, 0.225]
    np.testing.assert_allclose(image.asnumpy()[:, 3, 3], expected, rtol=1e-5)


def test_the_transform_makes_no_classes_of_its_own():
    _, mask = Transform(24)(*photograph(97, 61))
    assert set(np.unique(mask.asnumpy())) == {0, 1}


@pytest.mark.parametrize("classes", [2, 3])
def test_pixel_loss_is_the_mean_cross_entropy_of_each_image(classes):
    random = np.random.RandomState(0)
    scores = nd.array(random.normal(0, 4, (3, classes, 4, 6)))
    scores[0, :, 0, 0] = nd.array([500, -500, 3][:classes])  # exp of these would be infinite
    mask = nd.array(random.randint(0, classes, (3, 4, 6)), dtype="int32")
    scores.attach_grad()
    results = []
    for loss in (PixelLoss(classes), mx.gluon.loss.SoftmaxCrossEntropyLoss(axis=1)):
        with mx.autograd.record():
            losses = loss(scores, mask)
        losses.backward()
        results.append((losses.asnumpy(), scores.grad.asnumpy().copy()))
    for mine, theirs in zip(*results):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)
    assert results[0][0].shape == (3,)


@pytest.mark.parametrize("size", [16, 24, 40])
def test_the_tiny_network_answers_at_the_resolution_it_was_asked(size):
    net = TinySegmenter(2, 4)
    net.initialize()
    assert net(nd.zeros((2, 3, size, size))).shape == (2, 2, size, size)


@pytest.mark.parametrize("norm", [True, False])
def test_the_tiny_networks_graph_equals_its_imperative_self(norm):
    net = TinySegmenter(2, 4, norm)
    net.initialize(mx.init.Xavier())
    image = nd.random.normal(shape=(2, 3, 16, 16))
    net.collect_params()

    def output_and_gradient():
        with mx.autograd.record():
            output = net(image)
        output.backward()
        return output.asnumpy(), net.body[0].weight.grad().asnumpy().copy()

    plain = output_and_gradient()
    net.hybridize(static_alloc=True, static_shape=True)
    for mine, theirs in zip(plain, output_and_gradient()):
        np.testing.assert_allclose(mine, theirs, atol=1e-5)


def test_people_are_learnt(tmp_path):
    figures = fit(
        segmentation(size=64, limit=16),
        Plan(epochs=8, learning_rate=0.1, momentum=0.9, preprocess="cached", hybridize="static"),
        lambda event, **fields: None,
    )
    assert figures["samples"] == 8 * 16
    assert figures["train_loss"] < 0.5
    assert 0 < figures["test_mIoU"] <= 1
    assert 0 < figures["test_PixAcc"] <= 1


def test_the_classes_of_a_folder_of_ones_own_are_learnt(shapes):
    figures = fit(
        segmentation(size=32, root=str(shapes), classes=3),
        Plan(epochs=6, learning_rate=0.1, momentum=0.9, preprocess="cached"),
        lambda event, **fields: None,
    )
    assert figures["samples"] == 6 * 10
    assert figures["test_mIoU"] > 0.5


@pytest.mark.quick(1)
@pytest.mark.parametrize(
    "switches", [{"num_workers": 1}, {"preprocess": "cached"}, {"devices": "cpu:0-1"}]
)
def test_pixels_that_stay_small_until_the_step_teach_the_same(shapes, switches):
    recipe = segmentation(size=32, root=str(shapes), classes=3, norm=False)
    plan, found = Plan(epochs=2, preprocess="lazy", progressive_resizing=16).replace(**switches), []
    for pixels in choices("image_dtype"):
        figures = fit(recipe, plan.replace(image_dtype=pixels), lambda event, **fields: None)
        found.append([figures["train_loss"], figures["test_loss"], figures["test_mIoU"]])
    assert found[0] == pytest.approx(found[1], rel=1e-6)


def test_a_pretrained_network_begins_where_training_would_have_to_get():
    try:
        locate("deeplab-mobilenetv2", allow_download=False)
    except DataError as error:
        pytest.skip(str(error))
    recipe = segmentation("deeplab_mobilenetv2", size=240, limit=4)
    figures = fit(recipe, Plan(learning_rate=0.0), lambda event, **fields: None)
    # The stand-in's people are drawn; those of photographs are found far better.
    assert figures["test_mIoU"] > (0.7 if recipe.data().kind == "real" else 0.4)


@pytest.mark.parametrize("switches", [{"transforms": "opencv"}, {"num_workers": 1}])
def test_opencv_and_workers_train_to_the_same_bits(shapes, switches):
    recipe = segmentation(size=32, root=str(shapes), classes=3, norm=False)
    plan, found = Plan(epochs=2, progressive_resizing=16), []
    for changes in ({}, switches, {**switches, "loader": "shared_memory"}):
        figures = fit(recipe, plan.replace(**changes), lambda event, **fields: None)
        found.append([figures["train_loss"], figures["test_loss"], figures["test_mIoU"]])
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("workers", [0, 1])
def test_a_class_out_of_range_stops_the_run_and_names_the_file(shapes, workers):
    recipe = segmentation(size=32, root=str(shapes), classes=2)
    with pytest.raises(DataError, match=r"scene-\d+\.png has class 2"):
        fit(recipe, Plan(num_workers=workers), lambda event, **fields: None)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"classes": 3}, "needs a folder"),
        ({"network": "huge"}, "network='huge' is not a choice; take one of tiny"),
        ({"size": 24}, "size=24 must be a multiple of 16"),
    ],
)
def test_a_recipe_that_cannot_be_is_refused(options, says):
    with pytest.raises(PlanError, match=says):
        segmentation(**options)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("nothing", "take one of segmentation"),
        ("mxopt.nowhere:recipe", "cannot be made: No module"),
        ("toy:nobody", "cannot be made"),
        ("toy:samples", "missing a required argument"),
    ],
)
def test_a_recipe_that_is_not_there_is_refused(name, says):
    with pytest.raises(PlanError, match=says):
        recipes.load(name)


@pytest.mark.fault(
    "network",
    "the weights that GluonCV downloads are unavailable",
    sees="GluonCV could not download the weights of deeplab_resnet101_coco (no route to host). "
    "Connect to the network",
)
def test_weights_that_gluoncv_cannot_download_raise_a_data_error(monkeypatch, tmp_path, sees):
    from gluoncv.model_zoo import model_store

    def download(*_, **__):
        raise OSError("no route to host")

    monkeypatch.setenv("MXNET_HOME", str(tmp_path))
    monkeypatch.setattr(model_store, "download", download)
    recipe = segmentation(network="deeplab_resnet101")
    with sees.raised(DataError):
        recipe.network([mx.cpu()])


def test_networks_that_return_a_tuple_are_scored(shapes):
    """GluonCV's networks do, and its metric would lose the error in a thread of its own."""
    recipe = segmentation(network="deeplab_resnet50", size=32)
    scores = nd.random.uniform(shape=(2, 2, 32, 32))
    mask = nd.array(np.random.RandomState(0).randint(0, 2, (2, 32, 32)), dtype="int32")
    found = []
    for output in (scores, (scores,), (scores, scores * 2)):
        metric = recipe.metric()
        metric.update([mask], [output])
        found.append(metric.get()[1])
    assert found[0] == found[1] == found[2]
    assert found[0][0] > 0.3
    with pytest.raises(ValueError, match="shape"):
        recipe.metric().update([mask[:, :5]], [scores])
