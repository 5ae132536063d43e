import mxnet as mx
import numpy as np
import pytest
import tflite_reference
from mxnet import autograd, nd
from tflite_writer import one_convolution

from mxopt.core.errors import DataError, PlanError
from mxopt.recipes.segmentation.mobilenet_deeplab import STAGES, Head, MobileNetDeepLab
from mxopt.recipes.segmentation.tflite import read
from mxopt.recipes.segmentation.weights import (
    VOC_BACKGROUND,
    VOC_PERSON,
    copy_weights,
    load,
    new_head,
)

MEAN, DEVIATION = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])


def normalised(image):
    """From (height, width, 3), -1 to 1, to what the recipe's transform gives: a batch of one."""
    image = ((image + 1) / 2 - MEAN) / DEVIATION
    return nd.array(image.transpose(2, 0, 1)[None])


def picture(height, width, seed=0):
    """A smooth random image, -1 to 1: noise would drown in the average of all positions."""
    coarse = np.random.RandomState(seed).uniform(-1, 1, (1, height // 12, width // 12, 3))
    return tflite_reference.stretch(coarse, (height, width))[0]


def random_network(classes=3, seed=0, **options):
    mx.random.seed(seed)
    net = MobileNetDeepLab(classes, **options)
    net.initialize(mx.init.Xavier())
    return net


@pytest.mark.parametrize("options", [{}, {"space_to_batch": True}, {"padding": "same"}])
@pytest.mark.parametrize("size", [(96, 96), (32, 80), (48, 32), (97, 65)])
def test_scores_have_the_size_of_the_image(options, size):
    if size[0] % 16 and not options.get("padding"):
        pytest.skip("on the grid sides are multiples of 16")
    net = random_network(**options)
    assert net(nd.zeros((2, 3, *size))).asnumpy().shape == (2, 3, *size)


def scores_and_gradients(net, sides=(64, 64)):
    image = nd.array(np.random.RandomState(0).normal(size=(2, 3, *sides)))
    target = nd.array(np.random.RandomState(1).normal(size=(2, 3, *sides)))
    with autograd.record():
        output = net(image)
        loss = (output * target).sum()
    loss.backward()
    gradients = [p.grad().asnumpy() for p in net.collect_params().values()]
    return [output.asnumpy(), *gradients]


def assert_the_same(mine, theirs, tolerance=1e-5):
    for one, other in zip(mine, theirs):
        np.testing.assert_allclose(other, one, rtol=tolerance, atol=tolerance * abs(one).max())


@pytest.mark.parametrize("options", [{}, {"space_to_batch": True}, {"padding": "same"}])
def test_a_static_graph_gives_the_scores_and_gradients_of_the_eager_network(options):
    net = random_network(**options)
    eager = scores_and_gradients(net)
    net.hybridize(static_alloc=True, static_shape=True)
    scores_and_gradients(net)
    # Twice, because memory is static only from the second call on (apache/mxnet #20293).
    assert_the_same(eager, scores_and_gradients(net))
    assert all(abs(gradient).max() > 0 for gradient in eager)


@pytest.mark.parametrize("sides", [(64, 64), (48, 80), (32, 64)])
@pytest.mark.parametrize("padding", ["grid", "same"])
def test_interleaved_grids_give_the_scores_and_gradients_of_dilated_convolutions(padding, sides):
    dilated = scores_and_gradients(random_network(padding=padding), sides)
    interleaved = scores_and_gradients(random_network(padding=padding, space_to_batch=True), sides)
    assert_the_same(dilated, interleaved, 1e-4)


def test_scores_are_stretched_as_the_bilinear_operator_does():
    head = Head(8, 2, mirrored=False)
    head.initialize(mx.init.Normal(1))
    found = nd.random.normal(shape=(2, 8, 4, 6))
    small = []
    head.scores.register_forward_hook(lambda layer, inputs, output: small.append(output))
    stretched = head(found)
    expected = nd.contrib.BilinearResize2D(small[0], height=49, width=81, align_corners=True)
    np.testing.assert_allclose(stretched.asnumpy(), expected[:, :, :48, :80].asnumpy(), atol=1e-3)


def test_stages_beyond_the_bounded_ones_have_a_plain_relu():
    image = nd.random.normal(shape=(1, 3, 32, 32))
    nets = [random_network(relu6_stages=bounded) for bounded in (0, 15, STAGES)]
    for net in nets:
        net.initialize(mx.init.Normal(0.5), force_reinit=True)
        for mine, theirs in zip(net.collect_params().values(), nets[0].collect_params().values()):
            mine.set_data(theirs.data())
    plain, nearly, bounded = (net.stages[:15](image).asnumpy() for net in nets)
    np.testing.assert_array_equal(nearly, bounded)
    assert abs(plain - bounded).max() > 1
    last = nets[0].stages[15]
    assert abs(last(nd.array(bounded)) - nets[2].stages[15](nd.array(bounded))).max() > 1


def test_raw_and_normalised_images_give_the_same_scores():
    image = nd.random.uniform(shape=(1, 3, 64, 64))
    mean, deviation = (nd.array(a).reshape((1, 3, 1, 1)) for a in (MEAN, DEVIATION))
    raw = random_network(mean=(0, 0, 0), deviation=(1, 1, 1))(image).asnumpy()
    given = random_network()((image - mean) / deviation).asnumpy()
    np.testing.assert_allclose(raw, given, atol=1e-5 * abs(raw).max())


@pytest.mark.parametrize(
    "wrong", [{"padding": "valid"}, {"relu6_stages": 17}, {"relu6_stages": -1}]
)
def test_a_choice_that_does_not_exist_is_refused_with_those_that_do(wrong):
    with pytest.raises(PlanError, match=r"take one of grid, same|number of stages, 0 to 16"):
        MobileNetDeepLab(**wrong)


def test_a_new_head_is_trained_on_the_contexts_of_the_old_one():
    net = random_network()
    net.collect_params().reset_ctx([mx.cpu(0), mx.cpu(1)])
    net.hybridize()
    net(nd.zeros((1, 3, 32, 32)))
    new_head(net, 7)
    assert net(nd.zeros((1, 3, 32, 32), ctx=mx.cpu(1))).shape == (1, 7, 32, 32)
    assert net.head.scores.weight in net.collect_params().values()


def test_weights_of_another_network_are_refused_by_name(tmp_path):
    path = tmp_path / "other.tflite"
    path.write_bytes(one_convolution(np.zeros((2, 3, 3, 3)), [0, 0]))
    with pytest.raises(
        DataError, match=r"other.tflite .* 55 convolutions and the file has 1\. Use"
    ):
        load(mx.cpu(), weights=path)


def test_a_convolution_that_does_not_fit_is_named(weights):
    wrong = MobileNetDeepLab()
    wrong.initialize()
    wrong.stages[2].depthwise._kwargs["stride"] = (1, 1)
    with pytest.raises(DataError, match=r"convolution 4 has .* \(1, 1\), \(1, 1\)\) .* \(2, 2\)"):
        copy_weights(wrong, read(weights))


@pytest.mark.fault(
    "files",
    "pre-trained weights are damaged",
    sees="the file is damaged or was changed, so it is not used",
)
def test_damaged_weights_are_refused_by_their_hash(weights, tmp_path, monkeypatch, sees):
    content = bytearray(weights.read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / weights.name).write_bytes(content)
    monkeypatch.setenv("MXOPT_WEIGHTS", str(tmp_path))
    with sees.raised(DataError):
        load(mx.cpu())


@pytest.mark.quick(2)
@pytest.mark.parametrize("size", [(96, 145), (160, 160), (240, 240), (480, 480), (513, 513)])
def test_the_network_computes_what_the_file_describes(weights, size):
    image = picture(*size)
    expected = tflite_reference.scores(weights, image)
    net = load(mx.cpu(), classes=21, padding="same")
    scores = net(normalised(image)).asnumpy()[0].transpose(1, 2, 0)
    np.testing.assert_allclose(scores, expected, atol=1e-3)


def test_on_the_grid_it_computes_what_the_file_describes_one_pixel_further(weights):
    image = picture(96, 160)
    larger = np.pad(image, [(0, 1), (0, 1), (0, 0)], "edge")
    expected = tflite_reference.scores(weights, larger)
    scores = load(mx.cpu(), classes=21)(normalised(image)).asnumpy()[0].transpose(1, 2, 0)
    np.testing.assert_allclose(scores, expected[:-1, :-1], atol=1e-3)


def test_a_person_head_keeps_two_rows_on_every_context(weights):
    contexts = [mx.cpu(0), mx.cpu(1)]
    image = normalised(picture(64, 64))
    scores = load(contexts, classes=21)(image).asnumpy()
    net = load(contexts)
    for context in contexts:
        two = net(image.as_in_context(context)).asnumpy()
        np.testing.assert_allclose(two, scores[:, [VOC_BACKGROUND, VOC_PERSON]], atol=1e-5)
    assert net.head.scores.weight.grad_req == "write"
    assert load(contexts, classes=5)(image).shape == (1, 5, 64, 64)
    new = load(contexts, reset_head=True)(image).asnumpy()
    assert new.shape == (1, 2, 64, 64)
    assert abs(new - scores[:, [VOC_BACKGROUND, VOC_PERSON]]).max() > 0.1


def test_people_are_found_before_any_fine_tuning(weights):
    from mxopt.data import PennFudan
    from mxopt.recipes.segmentation.recipe import Transform

    test = PennFudan("test")
    if test.location.kind != "real":
        pytest.skip("the real Penn-Fudan is not on this machine")
    # Of the test split those on which a mistake shows most: on number 10 people are lost when red
    # and blue change places, on 1, 5 and 10 when the scale is wrong, on all with TensorFlow's
    # padding at 480 pixels.
    samples = [Transform(480)(*test[index]) for index in (1, 5, 10, 18)]
    images = nd.stack(*[image for image, _ in samples])
    people = np.stack([mask.asnumpy() for _, mask in samples]) == 1

    def person_iou(images, **options):
        found = load(mx.cpu(), **options)(images).asnumpy().argmax(axis=1) == 1
        return (people & found).sum(axis=(1, 2)) / (people | found).sum(axis=(1, 2))

    assert min(person_iou(images)) > 0.79
    assert max(person_iou(images, padding="same")) < 0.79
    assert min(person_iou(images.flip(axis=1))) < 0.79
    assert max(person_iou(images, mean=(0, 0, 0), deviation=(1, 1, 1))) < 0.79
