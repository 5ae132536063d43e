import pytest
import toy

from mxopt.core.errors import PlanError
from mxopt.core.plan import Plan
from mxopt.methods.input_pipeline import loaders
from mxopt.recipes.segmentation.recipe import segmentation
from mxopt.train.fit import fit


def silent(event, **fields):
    pass


@pytest.mark.parametrize("switches", [{}, {"hybridize": "static", "preprocess": "cached"}])
def test_the_first_epochs_see_smaller_images(switches, monkeypatch):
    sides = []
    load = loaders.HostLoader.__iter__

    def seen(loader):
        for batch in load(loader):
            sides.append(batch.shards[0][0].shape[-1])
            yield batch

    monkeypatch.setattr(loaders.HostLoader, "__iter__", seen)
    plan = Plan(epochs=3, progressive_resizing=32, progressive_epochs=2, **switches)
    figures = fit(segmentation(size=64, limit=4), plan, silent, evaluate=False)
    assert sides == [32, 32, 64]
    assert figures["samples"] == 12


def test_sides_and_recipes_that_cannot_be_resized_are_refused():
    recipe = segmentation(size=64, limit=4)
    with pytest.raises(PlanError, match="progressive_resizing=40 must be a multiple of 16"):
        fit(recipe, Plan(progressive_resizing=40), silent)
    with pytest.raises(PlanError, match="needs a transform with a method resized"):
        fit(toy.toy(), Plan(progressive_resizing=32), silent)
    fixed = segmentation("deeplab_resnet50", size=64, limit=1)
    with pytest.raises(PlanError, match="deeplab_resnet50 takes one size only"):
        fit(fixed, Plan(progressive_resizing=32), silent)
