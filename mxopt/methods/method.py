"""The interface of a method: its switches in the plan, and the hooks of the training loop.

Modules with a :class:`Method` load without MXNet, because plans are checked, and the environment of
a process is set, before MXNet is imported. Hooks that need MXNet import it themselves.
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
    """The state of a training run, which hooks read and change.

    Attributes:
        plan: the switches.
        recipe: what is trained.
        contexts: the devices of this process.
        precision: object of :mod:`mxopt.methods.precision`.
        kvstore: object of :mod:`mxopt.methods.kvstore`, which sums gradients over processes.
        methods: one instance of every method, in the order of ``METHODS``.
        data: the samples.
        network: the whole network.
        learning: the part of the network that is trained.
        frozen: the stages before that part; None if all of the network is trained.
        loss: the recipe's loss, ``loss(output, *labels)`` -> losses of shape (samples, ...).
        trainer: the trainer of ``learning``.
        loaders: the loader of each split, by name.
        update: number of updates before the current one, of all epochs.
        updates_per_epoch: number of updates in each epoch.
        progress: trained epochs, with a fraction, including the current step.
        trainer_is_new: whether this process has not trained a step yet.
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
        """Return the network's inputs for a batch of one sample: zeros, on the first device."""
        from mxnet import nd

        from mxopt.methods.input_pipeline.loading import one_sample

        arrays, _ = one_sample(self.data, self.plan)
        inputs = arrays[: self.recipe.inputs]
        return [nd.zeros(a.shape, ctx=self.contexts[0], dtype=a.dtype) for a in inputs]

    def replace_trained(self, net, change):
        """Return the network, with the part that is trained replaced.

        Args:
            net: the network, as a method's hook ``network`` gets it.
            change: ``change(block, *inputs)`` returns what replaces a block; the inputs are an
                example. Frozen stages are left as they are: they run once for each sample.
        """
        if self.frozen is None:
            return change(net, *self.example())
        self.learning = change(self.learning, self.frozen(*self.example()))
        return net

    def make_loader(self, split: str, transform):
        """Return the loader of a split.

        Args:
            split: ``train``, ``validation`` or ``test``.
            transform: transform of a raw sample, which may differ from the recipe's.
        """
        from mxopt.methods.input_pipeline.loading import make_loader

        for method in self.methods:
            transform = method.transform(self, transform)
        share = self.kvstore.share
        return make_loader(self.data, split, transform, self.plan, self.contexts, share)


class Method:
    """Base class of all methods; its hooks do nothing.

    Attributes:
        switches: fields of the plan that belong to the method.
        options: options that belong to it, ``{name: (option, ...)}``, of a recipe, or of a workload
            as ``module:function``.
    """

    switches: tuple[str, ...] = ()
    options: dict[str, tuple[str, ...]] = {}

    @classmethod
    def check(cls, plan: Plan) -> None:
        """Check the method's switches, and whether other switches exclude them.

        Raises:
            PlanError: a value is invalid, or two switches exclude each other; the message gives
                both, and what to do.
        """

    @classmethod
    def environment(cls, plan: Plan) -> dict[str, str]:
        """Return environment variables that must be set before MXNet loads."""
        return {}

    @classmethod
    def weight_copies(cls, plan: Plan) -> int:
        """Return how many float32 copies of the weights the method keeps on each device."""
        return 0

    def network(self, run: TrainingRun, net):
        """Return the network, changed or replaced; called once, after the recipe has made it.

        Args:
            run: the training run.
            net: the network.
        """
        return net

    def loss(self, run: TrainingRun, loss):
        """Return the loss, or a replacement; called once.

        Args:
            run: the training run.
            loss: ``loss(output, *labels)`` -> losses of shape (samples, ...).
        """
        return loss

    def transform(self, run: TrainingRun, transform):
        """Return the transform of raw samples, or a replacement; called for every loader.

        Args:
            run: the training run.
            transform: converts the arrays of a raw sample to those that are batched.
        """
        return transform

    def before_training(self, run: TrainingRun) -> None:
        """Prepare for training; called when network and loaders are made, but no trainer yet."""

    def training_loader(self, run: TrainingRun, loader, epoch: int):
        """Return the loader of an epoch's training batches, or a replacement.

        Args:
            run: the training run.
            loader: the loader.
            epoch: number of the epoch, from 0.
        """
        return loader

    def before_update(self, run: TrainingRun, size: int) -> None:
        """Read or change the gradients, which are summed over all devices.

        Args:
            run: the training run.
            size: number of samples (or tokens) that the gradients are summed over.
        """

    def after_update(self, run: TrainingRun) -> None:
        """Read or change the weights after an update."""

    @contextlib.contextmanager
    def evaluating(self, run: TrainingRun):
        """Change the network during an evaluation, and while it is passed to ``on_epoch``."""
        yield

    def after_training(self, run: TrainingRun) -> None:
        """Change the network permanently, before it is tested."""

    def state(self) -> tuple[dict, list]:
        """Return the state for a checkpoint: JSON-able values by name, and a list of arrays."""
        return {}, []

    def load(self, values: dict, arrays: list) -> None:
        """Restore the state that :meth:`state` returned.

        Args:
            values: JSON-able values by name.
            arrays: the arrays, on the first device.
        """


def exports(package: str, **modules: str):
    """Return a package's ``__getattr__`` that imports its public names at first use.

    Args:
        package: ``__name__`` of the package.
        **modules: for each public name, the module of the package that defines it. A module must
            have another name: once it is imported, its name in the package means the module.

    Raises:
        ImportError: a module has the name of something that it defines.
    """
    if hidden := modules.keys() & set(modules.values()):
        raise ImportError(f"{package} cannot export {', '.join(hidden)} beside a module so called")

    def lookup(name: str):
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{package}.{modules[name]}"), name)

    return lookup
