"""A network in stages, each on a device of its own, and a pipeline of micro-batches over them.

MXNet copies arrays between devices within a recorded graph, and gradients return the same way. One
``gluon.Trainer`` refuses parameters on different devices, so every stage has its own.

With micro-batches the stages work at the same time: while the second computes on the first
micro-batch, the first computes on the second one. No scheduler is needed for that. MXNet's engine
has a queue for each device and starts an operator as soon as its inputs are there. The schedule is
that of GPipe (Huang et al., 2019, arXiv:1811.06965): all forward passes, then all backward passes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mxnet import autograd, gluon, nd

from mxopt.core.errors import PlanError


class Stages:
    """Parts of a network, one after the other, with the trainer of each.

    Args:
        parts: blocks that are called one after the other, initialised on their own context.
        contexts: the context of each part; contexts may repeat.
        optimizer: name of MXNet's optimizer.
        options: arguments of the optimizer.

    Attributes:
        parts: as above.
        contexts: as above.
        trainers: one ``gluon.Trainer`` for each part.

    Raises:
        PlanError: there are not as many contexts as parts.
    """

    def __init__(
        self, parts: Sequence[gluon.Block], contexts: Sequence, optimizer: str = "sgd", options=None
    ):
        if len(parts) != len(contexts) or not parts:
            raise PlanError(
                f"{len(parts)} parts of a network cannot be placed on {len(contexts)} contexts; "
                "name one context for each part"
            )
        self.parts, self.contexts = list(parts), list(contexts)
        self.trainers = [
            gluon.Trainer(part.collect_params(), optimizer, dict(options or {})) for part in parts
        ]

        for parameter in self._learning():
            parameter.grad_req = "add"  # over the micro-batches

    def _learning(self) -> list[gluon.Parameter]:
        """Return the parameters of all parts that have gradients."""
        found = (p for part in self.parts for p in part.collect_params().values())
        return [parameter for parameter in found if parameter.grad_req != "null"]

    def __call__(self, x: nd.NDArray) -> nd.NDArray:
        """Return the output of the last part, on its context.

        Args:
            x: the network's input, on any context.
        """
        for part, context in zip(self.parts, self.contexts):
            x = part(x.as_in_context(context))
        return x

    def gradients(
        self, inputs: nd.NDArray, labels: nd.NDArray, loss: Callable, micro_batches: int = 1
    ) -> nd.NDArray:
        """Compute the gradients of all parts, summed over the batch; no weight is changed.

        Args:
            inputs: a batch, (samples, ...).
            labels: its labels, (samples, ...).
            loss: ``loss(output, labels)`` -> (samples,).
            micro_batches: number of parts that the batch is computed in; it need not divide the
                batch evenly.

        Returns:
            The loss of every sample, (samples,), on the last context; nothing has been waited for.

        Raises:
            PlanError: there are fewer samples than micro-batches, or less than one micro-batch.
        """
        if not 1 <= micro_batches <= len(inputs):
            raise PlanError(
                f"a batch of {len(inputs)} cannot be split into {micro_batches} micro-batches; "
                f"take 1 to {len(inputs)}"
            )
        for parameter in self._learning():
            parameter.zero_grad()
        parts = [
            gluon.utils.split_data(array, micro_batches, even_split=False)
            for array in (inputs, labels)
        ]
        losses = []
        with autograd.record():
            for x, y in zip(*parts):
                losses.append(loss(self(x), y.as_in_context(self.contexts[-1])))
        # Each graph is independent of the others, so the engine overlaps their backward passes.
        for value in losses:
            value.backward()
        return nd.concat(*losses, dim=0)

    def step(
        self, inputs: nd.NDArray, labels: nd.NDArray, loss: Callable, micro_batches: int = 1
    ) -> nd.NDArray:
        """Update all parts once, with the gradient of the whole batch.

        Args:
            inputs: as for :meth:`gradients`.
            labels: as for :meth:`gradients`.
            loss: as for :meth:`gradients`.
            micro_batches: as for :meth:`gradients`.

        Returns:
            The loss of every sample, (samples,), on the last context.

        Raises:
            PlanError: as for :meth:`gradients`.
        """
        losses = self.gradients(inputs, labels, loss, micro_batches)
        for trainer in self.trainers:
            trainer.step(len(inputs))
        return losses


def bubble(stages: int, micro_batches: int) -> float:
    """Return the share of the time in which a device waits, by GPipe's arithmetic.

    (stages - 1) / (micro_batches + stages - 1), if all stages take equally long and copies take no
    time (Huang et al., 2019, section 2.3).

    Args:
        stages: number of devices.
        micro_batches: number of parts of a batch.
    """
    return (stages - 1) / (micro_batches + stages - 1)
