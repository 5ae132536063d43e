"""Batches that are mirrored, shifted and recoloured: images and masks alike, and repeatably."""

import numpy as np
import pytest
from mxnet import nd

from mxopt.core.errors import PlanError
from mxopt.core.plan import Plan
from mxopt.methods.augmentation import augmented, flipped, recoloured, shifted, strength
from mxopt.recipes import load
from mxopt.train.fit import fit

PLAN = Plan(
    optimizer="adam",
    learning_rate=1e-3,
    batch_size=8,
    epochs=3,
    preprocess="cached",
    augmentation="flip+shift+colour",
)
GARMENTS = {"stand_in": True, "limit": 64, "channels": [4, 8], "hidden": 16}


def losses_of(plan, recipe=None, **how):
    found = []
    recipe = recipe or load("fashion_mnist", **GARMENTS)

    def write(event, **fields):
        if event == "steps":
            found.append((fields["epoch"], fields["losses"]))

    fit(recipe, plan, write, **how)
    return found


def test_chosen_samples_are_mirrored():
    images = nd.arange(12).reshape((2, 1, 2, 3))
    found = flipped(images, np.array([False, True])).asnumpy()
    np.testing.assert_array_equal(found[0], images[0].asnumpy())
    np.testing.assert_array_equal(found[1], images[1].asnumpy()[:, :, ::-1])
    masks = nd.array([[[1, 2, 3]], [[4, 5, 6]]], dtype="int32")
    found = flipped(masks, np.array([True, False]))
    assert found.dtype == np.int32
    assert found.asnumpy().tolist() == [[[3, 2, 1]], [[4, 5, 6]]]


@pytest.mark.parametrize(
    ("down", "right", "expected"),
    [
        (0, 0, [[0, 1, 2], [3, 4, 5]]),
        (1, 0, [[0, 1, 2], [0, 1, 2]]),
        (0, 1, [[0, 0, 1], [3, 3, 4]]),
        (0, -2, [[2, 2, 2], [5, 5, 5]]),
        (-1, 1, [[3, 3, 4], [3, 3, 4]]),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8"])
def test_shifts_repeat_the_border(down, right, expected, dtype):
    array = nd.arange(6).reshape((1, 2, 3)).astype(dtype)
    assert shifted(array, down, right).asnumpy().tolist() == [expected]


def test_contrast_and_brightness():
    images = nd.ones((2, 3, 2, 2))
    found = recoloured(images, np.array([2.0, 1.0]), np.array([0.5, -1.0])).asnumpy()
    assert (found[0] == 2.5).all()
    assert (found[1] == 0).all()


def test_masks_follow_their_images_and_class_numbers_do_not():
    np.random.seed(1)
    pixels = nd.array(np.random.randint(0, 9, (16, 1, 16, 16)))
    masks, classes = pixels.reshape((16, 16, 16)).astype("int32"), nd.arange(16)
    seen = set()
    for _ in range(8):
        images, moved, same = augmented((pixels, masks, classes), 1, ["flip", "shift"])
        np.testing.assert_array_equal(images.asnumpy()[:, 0], moved.asnumpy())
        assert (moved.dtype, same.asnumpy().tolist()) == (np.int32, list(range(16)))
        seen.add(images.asnumpy().tobytes())
    assert len(seen) == 8


def test_without_strength_nothing_changes():
    images = nd.random.uniform(shape=(4, 3, 16, 16))
    [found] = augmented((images,), 1, ["flip", "shift", "colour"], 0.0)
    np.testing.assert_array_equal(found.asnumpy(), images.asnumpy())
    assert [strength(epoch, 4) for epoch in range(6)] == [0, 0.25, 0.5, 0.75, 1, 1]
    assert strength(0, 0) == 1


@pytest.mark.parametrize("preprocess", ["lazy", "cached", "device"])
def test_trainings_with_equal_seeds_are_equal_and_change_the_images(preprocess):
    plan = PLAN.replace(preprocess=preprocess)
    found = losses_of(plan)
    assert found == losses_of(plan)
    assert found != losses_of(plan.replace(augmentation="none"))


def test_augmentation_grows():
    grown = losses_of(PLAN.replace(augmentation_epochs=2))
    plain, strong = losses_of(PLAN.replace(augmentation="none")), losses_of(PLAN)
    epoch_0 = [losses for epoch, losses in grown if epoch == 0]
    assert epoch_0 == [losses for epoch, losses in plain if epoch == 0]
    assert epoch_0 != [losses for epoch, losses in strong if epoch == 0]
    assert grown[1:] != plain[1:]


def test_a_killed_run_goes_on(tmp_path):
    expected = losses_of(PLAN, checkpoint_steps=3)

    class Killed(Exception):
        pass

    epochs = 0

    def kill(event, **fields):
        nonlocal epochs
        epochs += event == "steps"
        if epochs == 5:  # in the second epoch
            raise Killed

    recipe = load("fashion_mnist", **GARMENTS)
    with pytest.raises(Killed):
        fit(recipe, PLAN, kill, checkpoints=tmp_path, checkpoint_steps=3)
    again = losses_of(PLAN, recipe, checkpoints=tmp_path, checkpoint_steps=3)
    assert again == expected[-len(again) :]
    assert len(again) < len(expected)


def test_segmentation_trains_with_masks_that_follow():
    recipe = load("segmentation", network="tiny", size=32, limit=8)
    for image_dtype in ("float32", "uint8"):
        plan = PLAN.replace(batch_size=4, image_dtype=image_dtype, devices="cpu:0-1")
        assert all(np.isfinite(losses).all() for _, losses in losses_of(plan, recipe))


@pytest.mark.parametrize(
    ("switches", "says"),
    [
        ({"augmentation": "flip+mirror"}, "augmentation='flip\\+mirror' has 'mirror'; take none"),
        ({"augmentation_epochs": 2}, "augmentation_epochs=2 says .* there is none"),
        ({"augmentation": "flip", "freeze_stages": 1}, "freeze_stages=1 trains on what"),
    ],
)
def test_what_is_refused(switches, says):
    with pytest.raises(PlanError, match=says):
        Plan(**switches)


def test_what_are_no_images_is_refused():
    with pytest.raises(PlanError, match="augmentation='flip' is for images"):
        losses_of(
            PLAN.replace(augmentation="flip", bucketing="length"),
            load(
                "translation", stand_in=True, limit=20, vocabulary=100, units=8, hidden=8, layers=1
            ),
        )
