"""Progressive resizing: train the first epochs on smaller images."""

from mxopt.core.errors import PlanError
from mxopt.methods.method import Method


class ProgressiveResizing(Method):
    """Keeps a second loader, of smaller images, for the first epochs."""

    switches = ("progressive_resizing", "progressive_epochs")

    def __init__(self):
        self.loader = None

    def before_training(self, run):
        """Make the loader of smaller images.

        Raises:
            PlanError: the recipe's transform has no method ``resized``, or refuses that side.
        """
        side, transform = run.plan.progressive_resizing, run.data.transform
        if side is None:
            return
        if not hasattr(transform, "resized"):
            raise PlanError(
                f"progressive_resizing={side} needs a transform with a method resized(side), as "
                f"the segmentation recipe has; that of {run.recipe.name} has none"
            )
        self.loader = run.make_loader("train", transform.resized(side))

    def training_loader(self, run, loader, epoch):
        """Return the loader of smaller images in the first epochs, the usual one afterwards."""
        return self.loader if self.loader and epoch < run.plan.progressive_epochs else loader
