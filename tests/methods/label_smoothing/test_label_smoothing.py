import numpy as np
import pytest
from mxnet import gluon, nd

from mxopt.core.errors import PlanError
from mxopt.core.plan import Plan
from mxopt.methods.label_smoothing import smoothed
from mxopt.recipes.segmentation.recipe import PixelLoss, segmentation
from mxopt.recipes.translation.recipe import translation
from mxopt.train.fit import fit


@pytest.mark.parametrize("classes", [2, 3])
def test_the_loss_is_the_cross_entropy_of_the_smoothed_target(classes):
    scores = nd.random.normal(shape=(2, classes, 4, 5))
    mask = nd.random.randint(0, classes, shape=(2, 4, 5)).astype("int32")
    found = smoothed(PixelLoss(classes), 0.3)(scores, mask)
    target = nd.one_hot(mask, classes).transpose((0, 3, 1, 2)) * 0.7 + 0.3 / classes
    expected = gluon.loss.SoftmaxCrossEntropyLoss(axis=1, sparse_label=False)(scores, target)
    np.testing.assert_allclose(found.asnumpy(), expected.asnumpy(), rtol=1e-5)


def test_training_is_smoothed_and_validation_is_not():
    def losses(smoothing):
        plan = Plan(learning_rate=0.0, label_smoothing=smoothing)
        figures = fit(segmentation(size=32, limit=4), plan, lambda event, **fields: None)
        return figures["train_loss"], figures["validation_loss"]

    (plain, validated), (smooth, same) = losses(0.0), losses(0.5)
    assert smooth != pytest.approx(plain, rel=1e-4)
    assert same == validated


def test_a_recipe_without_class_scores_and_a_target_of_nothing_are_refused():
    small = translation(stand_in=True, limit=20, vocabulary=200, layers=1, units=16, heads=2,
                        hidden=16)  # fmt: skip
    with pytest.raises(PlanError, match=r"take the option smoothing=0\.1"):
        fit(small, Plan(label_smoothing=0.1), lambda event, **fields: None)
    with pytest.raises(PlanError, match="must be less than 1"):
        Plan(label_smoothing=1.0)
