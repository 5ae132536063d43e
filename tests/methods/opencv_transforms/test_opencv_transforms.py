import mxnet as mx
import numpy as np
import pytest
import toy
from mxnet import nd

from mxopt import kernels
from mxopt.core.errors import DeviceError, PlanError
from mxopt.core.plan import Plan
from mxopt.data import ndarray_memory
from mxopt.methods.opencv_transforms import arrays, normalize, resize_and_crop, select
from mxopt.recipes.segmentation.recipe import Transform, segmentation
from mxopt.recipes.translation.recipe import translation
from mxopt.train.fit import fit


def photograph(height, width):
    """Return a random image and a mask of five classes, both uint8."""
    random = np.random.RandomState(0)
    image, mask = (random.randint(0, top, (height, width, n)) for top, n in ((256, 3), (5, 1)))
    return nd.array(image, dtype="uint8"), nd.array(mask, dtype="uint8")


@pytest.mark.parametrize("sides", [(97, 61), (61, 97), (64, 64), (48, 48), (480, 641), (17, 16)])
def test_opencv_makes_the_numbers_that_gluon_s_transforms_make(sides):
    """Bit for bit, the same bytes before they are normalised, and from NumPy arrays the same."""
    sample, transform = photograph(*sides), Transform(48)
    expected = [part.asnumpy() for part in (*transform(*sample), *transform.compact(*sample))]
    values = [part.asnumpy() for part in sample]
    for mine in [transform.opencv()] + [transform.kernels()] * kernels.available():
        found = [part.asnumpy() for part in (*mine(*sample), *mine.compact(*sample))]
        for parts in (found, (*mine(*values), *mine.compact(*values))):
            for part, theirs in zip(parts, expected):
                assert (type(part), part.dtype) == (np.ndarray, theirs.dtype)
                np.testing.assert_array_equal(part, theirs)


@pytest.mark.parametrize("compiled", [False] + [True] * kernels.available())
def test_every_value_of_a_pixel_is_normalised_as_by_mxnet_s_operators(compiled):
    image = nd.array(np.arange(256 * 3).reshape((16, 16, 3)) % 256, dtype="uint8")
    mean, deviation = (0.1, 0.5, 0.9), (0.2, 1.0, 3.0)
    expected = nd.image.normalize(nd.image.to_tensor(image), mean, deviation)
    found = normalize(image, mean, deviation, compiled)
    np.testing.assert_array_equal(found.asnumpy(), expected.asnumpy())


def test_a_picture_stays_on_its_context():
    image, _ = photograph(20, 30)
    assert resize_and_crop(image.as_in_context(mx.cpu(1)), 16).context == mx.cpu(1)


@pytest.mark.parametrize(
    ("given", "made"),
    [
        (mx.cpu(), mx.cpu()),
        (mx.cpu(1), mx.cpu(1)),
        (ndarray_memory.SHARED, mx.cpu()),  # it is scarce, and the workers need it
    ],
)
def test_batches_are_completed_beside_what_they_are_made_of(given, made):
    photographs = nd.ones((2, 16, 16, 3), dtype="uint8", ctx=given)
    masks = nd.ones((2, 16, 16), dtype="uint8", ctx=given)
    batch = Transform(16).opencv().expand(photographs, masks)
    assert [part.context for part in batch] == [made] * 2


@pytest.mark.parametrize(("switches", "by_opencv"), [({}, 0), ({"transforms": "opencv"}, 16)])
def test_the_switch_decides_who_prepares_samples(monkeypatch, switches, by_opencv):
    calls = []

    def count(*arguments, **options):
        calls.append(1)
        return resize_and_crop(*arguments, **options)

    monkeypatch.setattr(arrays, "resize_and_crop", count)
    fit(segmentation(size=32, limit=4), Plan(**switches), lambda event, **fields: None)
    assert len(calls) == 2 * by_opencv  # images and masks


@pytest.mark.parametrize(("name", "calls"), [("opencv", 0), ("kernels", 2)])
def test_kernels_alone_normalise_by_the_compiled_function(monkeypatch, name, calls):
    made = []
    monkeypatch.setattr(kernels, "normalize", lambda *arguments: made.append(arguments))
    sample, transform = photograph(20, 30), getattr(Transform(16), name)()
    transform(*sample)
    transform(*(part.asnumpy() for part in sample))
    assert len(made) == calls


@pytest.mark.parametrize("name", ["opencv", "kernels"])
def test_a_resized_transform_keeps_to_its_kind(name):
    made = getattr(Transform(32), name)()
    assert type(made.resized(16)) is type(made) is not Transform


def test_without_a_compiler_kernels_are_refused_before_samples_are_read(monkeypatch):
    def fail():
        raise DeviceError("mxopt's kernels need g++")

    monkeypatch.setattr(kernels, "load", fail)
    with pytest.raises(DeviceError, match="need g"):
        select(Transform(16), Plan(transforms="kernels"))


def test_arrays_on_a_gpu_are_left_to_mxnet(monkeypatch):
    sample, transform = photograph(40, 60), Transform(16).opencv()
    expected = transform(*sample)
    monkeypatch.setattr(ndarray_memory, "on_host", lambda array: False)
    for found, other in zip(transform(*sample), expected):
        np.testing.assert_array_equal(found.asnumpy(), other.asnumpy())


@pytest.mark.parametrize(
    "recipe", [toy.toy, lambda: translation(stand_in=True, limit=20, vocabulary=200)]
)
@pytest.mark.parametrize("name", ["opencv", "kernels"])
def test_a_recipe_without_it_is_refused_before_a_step(recipe, name):
    events = []
    with pytest.raises(PlanError, match=f"needs a transform with a method {name}"):
        fit(recipe(), Plan(transforms=name), lambda event, **fields: events.append(event))
    assert not {"steps", "epoch"} & {*events}
