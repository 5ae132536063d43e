"""Augmentation: mirror, shift and recolour the training images, on the device they are on."""

from mxopt.core.errors import PlanError
from mxopt.methods.method import Method, exports

KINDS = ("flip", "shift", "colour")


class Augmentation(Method):
    """Changes every batch of training images at random, more in each of the first epochs."""

    switches = ("augmentation", "augmentation_epochs")
    options = {"mxopt.chapter.augmentation_workloads:augmented": ("where",)}

    @classmethod
    def check(cls, plan):
        """Refuse unknown kinds, a growth without any, and images that are features already."""
        named = plan.augmentation
        if named == "none":
            if plan.augmentation_epochs:
                raise PlanError(
                    f"augmentation_epochs={plan.augmentation_epochs} says how long augmentation "
                    "grows, and there is none; set augmentation=flip+shift, or leave it out"
                )
            return
        if unknown := [kind for kind in named.split("+") if kind not in KINDS]:
            raise PlanError(
                f"augmentation={named!r} has {unknown[0]!r}; take none, or names joined by +, of "
                f"{', '.join(KINDS)}"
            )
        if plan.freeze_stages:
            raise PlanError(
                f"augmentation={named!r} changes images, and freeze_stages={plan.freeze_stages} "
                "trains on what frozen stages make of them; leave one of them out"
            )

    def before_training(self, run):
        """Check that the samples are images.

        Raises:
            PlanError: they are not.
        """
        if run.plan.augmentation == "none":
            return
        [shape, *_] = [array.shape for array in run.example()]
        if len(shape) != 4:
            raise PlanError(
                f"augmentation={run.plan.augmentation!r} is for images (channels, height, width), "
                f"and a sample of {run.recipe.name} is {shape[1:]}; leave it out"
            )

    def training_loader(self, run, loader, epoch):
        """Return the loader, whose images are changed at random."""
        if run.plan.augmentation == "none":
            return loader
        from mxopt.methods.augmentation.batches import AugmentedBatches, strength

        kinds = run.plan.augmentation.split("+")
        return AugmentedBatches(
            loader, run.recipe.inputs, kinds, strength(epoch, run.plan.augmentation_epochs)
        )


_BATCHES = ("AugmentedBatches", "augmented", "flipped", "recoloured", "shifted", "strength")
__getattr__ = exports(__name__, **dict.fromkeys(_BATCHES, "batches"))
