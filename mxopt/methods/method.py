"""What a method is: the switches it adds to the plan, and the hooks the training loop calls.

Modules with a :class:`Method` load without MXNet, because plans are checked, and the environment of
a process is chosen, before MXNet is imported. A hook that computes imports what it needs itself.
"""

from __future__ import annotations

import contextlib
import importlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mxnet import gluon

    from mxopt.core.plan import Plan
    from mxopt.core.recipe import Data, Recipe


@dataclass
class TrainingRun:
    """A network in training: what hooks read and change.

    Attributes:
        plan, recipe, data: how and what is trained.
        contexts: the devices of this process.
        precision: of :mod:`mxopt.methods.precision`.
        kvstore: of :mod:`mxopt.methods.kvstore`; how processes sum their gradients.
        methods: one instance of every method, in the order of ``METHODS``.
        network: the whole network; ``learning`` is the part of it that is trained, ``frozen`` the
            stages before that, if any.
        loss: the recipe's loss, ``loss(output, *labels)`` -> losses of shape (samples, ...).
        trainer: updates ``learning``.
        loaders: of each split, by name.
        update: updates done before the one at work, of all epochs; ``updates_per_epoch``.
        progress: epochs trained, with a fraction, including the step at work.
        trainer_is_new: whether no step was trained yet in this process.
    """

    plan: Plan
    recipe: Recipe
    contexts: list
    precision: object
    kvstore: object
    methods: list = field(default_factory=list)
    data: Data | None = None
    network: gluon.Block | None = None
    learning: gluon.Block | None = None
    frozen: gluon.Block | None = None
    loss: object = None
    trainer: gluon.Trainer | None = None
    loaders: dict = field(default_factory=dict)
    update: int = 0
    updates_per_epoch: int = 0
    progress: float = 0.0
    trainer_is_new: bool = True

    def example(self) -> list:
        """Return the network's inputs for a batch of one sample, zeros, on the first device."""
        from mxnet import nd

        from mxopt.methods.input_pipeline.loading import one_sample

        arrays, _ = one_sample(self.data, self.plan)
        inputs = arrays[: self.recipe.inputs]
        return [nd.zeros(a.shape, ctx=self.contexts[0], dtype=a.dtype) for a in inputs]

    def make_loader(self, split: str, transform):
        """Return a split's loader, with a transform that may differ from the recipe's."""
        from mxopt.methods.input_pipeline.loading import make_loader

        for method in self.methods:
            transform = method.transform(self, transform)
        share = self.kvstore.share
        return make_loader(self.data, split, transform, self.plan, self.contexts, share)


class Method:
    """A technique; every hook does nothing unless a subclass says otherwise.

    Attributes:
        switches: fields of the plan that belong to it.
        options: options of recipes that belong to it, ``{recipe: (option, ...)}``.
    """

    switches: tuple[str, ...] = ()
    options: dict[str, tuple[str, ...]] = {}

    @classmethod
    def check(cls, plan: Plan) -> None:
        """Make sure that the method's switches and the others of a plan go together.

        Raises:
            PlanError: two exclude each other; the message gives both, and what to take.
        """

    @classmethod
    def environment(cls, plan: Plan) -> dict[str, str]:
        """Return variables that a process must have before MXNet loads."""
        return {}

    @classmethod
    def weight_copies(cls, plan: Plan) -> int:
        """Return how many float32 copies of the weights the method keeps on each device."""
        return 0

    def network(self, run: TrainingRun, net):
        """Return the network, changed or replaced; called once, when it was made."""
        return net

    def loss(self, run: TrainingRun, loss):
        """Return the loss, or one in its place."""
        return loss

    def transform(self, run: TrainingRun, transform):
        """Return what turns a raw sample into what is batched; called for every loader."""
        return transform

    def before_training(self, run: TrainingRun) -> None:
        """Prepare; the network and the loaders are there, the trainer is not."""

    def training_loader(self, run: TrainingRun, loader, epoch: int):
        """Return the loader of an epoch's training batches."""
        return loader

    def before_update(self, run: TrainingRun, size: int) -> None:
        """Look at, or change, the gradients of ``size`` samples summed over all devices."""

    def after_update(self, run: TrainingRun) -> None:
        """Look at the weights that an update has left."""

    @contextlib.contextmanager
    def evaluating(self, run: TrainingRun):
        """Change the network for the time of an evaluation or a checkpoint's hand-over."""
        yield

    def after_training(self, run: TrainingRun) -> None:
        """Change the network for good, before it is tested."""

    def state(self) -> tuple[dict, list]:
        """Return what a checkpoint must keep: JSON-able values by name, and arrays."""
        return {}, []

    def load(self, values: dict, arrays: list) -> None:
        """Put back what :meth:`state` returned."""


def exports(package: str, **modules: str):
    """Return a module's ``__getattr__`` that imports functions at first use.

    Args:
        package: the importing package's ``__name__``.
        modules: for each public name the module of the package that has it.
    """

    def lookup(name: str):
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{package}.{modules[name]}"), name)

    return lookup
