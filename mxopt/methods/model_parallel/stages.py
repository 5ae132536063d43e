"""A network in stages, each on devices of its own, and a pipeline of micro-batches over them.

MXNet copies arrays between devices within a recorded graph, and gradients return the same way. One
``gluon.Trainer`` refuses parameters on different devices, so every stage has its own.

With micro-batches the stages work at the same time: while the second computes on the first
micro-batch, the first computes on the second one. No scheduler is needed for that. MXNet's engine
has a queue for each device and starts an operator as soon as its inputs are there. The schedule is
that of GPipe (Huang et al., 2019, arXiv:1811.06965): all forward passes, then all backward passes.

With several devices for each stage the whole chain of stages exists as often (model and data
parallelism together): each replica computes its share of the batch, and the stage's trainer sums
the gradients over its devices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mxnet import autograd, gluon, nd

from mxopt.core.errors import PlanError


class Stages:
    """Parts of a network, one after the other, with the trainer of each.

    Args:
        parts: blocks that are called one after the other, initialised on their own contexts. A
            block that returns several arrays is followed by one that takes as many.
        contexts: the context of each part, or a list of contexts, one for each replica; contexts
            may repeat.
        optimizer: name of MXNet's optimizer.
        options: arguments of the optimizer.

    Attributes:
        parts: as above.
        contexts: one list of contexts for each part.
        trainers: one ``gluon.Trainer`` for each part.

    Raises:
        PlanError: there are not as many contexts as parts, or parts have different numbers of
            replicas.
    """

    def __init__(
        self, parts: Sequence[gluon.Block], contexts: Sequence, optimizer: str = "sgd", options=None
    ):
        if len(parts) != len(contexts) or not parts:
            raise PlanError(
                f"{len(parts)} parts of a network cannot be placed on {len(contexts)} contexts; "
                "name one context for each part"
            )
        self.parts = list(parts)
        self.contexts = [list(c) if isinstance(c, (list, tuple)) else [c] for c in contexts]
        counts = [len(replicas) for replicas in self.contexts]
        if len(set(counts)) > 1 or not counts[0]:
            raise PlanError(
                f"parts on {', '.join(map(str, counts))} contexts have no equal number of "
                "replicas; name as many contexts for each part"
            )
        self.trainers = [
            gluon.Trainer(part.collect_params(), optimizer, dict(options or {})) for part in parts
        ]
        for parameter in self._learning():
            parameter.grad_req = "add"  # over the micro-batches

    def _learning(self) -> list[gluon.Parameter]:
        """Return the parameters of all parts that have gradients."""
        found = (p for part in self.parts for p in part.collect_params().values())
        return [parameter for parameter in found if parameter.grad_req != "null"]

    def __call__(self, *arrays: nd.NDArray, replica: int = 0):
        """Return the output of the last part, on its context.

        Args:
            arrays: the network's inputs, on any context.
            replica: number of the replica that computes it.
        """
        for part, contexts in zip(self.parts, self.contexts):
            found = part(*(array.as_in_context(contexts[replica]) for array in arrays))
            arrays = found if isinstance(found, (list, tuple)) else [found]
        return found

    def gradients(self, inputs, labels, loss: Callable, micro_batches: int = 1) -> nd.NDArray:
        """Compute the gradients of all parts, summed over the batch; no weight is changed.

        With several replicas the sum is over each one's share of the batch; :meth:`step` adds them
        up.

        Args:
            inputs: a batch, (samples, ...), or a tuple of arrays for a network of several inputs.
            labels: its labels, (samples, ...), or a tuple of arrays.
            loss: ``loss(output, *labels)`` -> (samples,).
            micro_batches: number of parts that each replica computes its share of the batch in; it
                need not divide the share evenly.

        Returns:
            The loss of every sample, (samples,), on the last context of the first replica; nothing
            has been waited for.

        Raises:
            PlanError: there are fewer samples than micro-batches of all replicas, or less than one
                micro-batch.
        """
        inputs, labels = (a if isinstance(a, (list, tuple)) else [a] for a in (inputs, labels))
        replicas = len(self.contexts[0])
        count, size = micro_batches * replicas, len(inputs[0])
        if not micro_batches >= 1 or count > size:
            shares = f" on each of {replicas} replicas" if replicas > 1 else ""
            raise PlanError(
                f"a batch of {size} cannot be split into {micro_batches} micro-batches{shares}; "
                f"take 1 to {size // replicas}"
            )
        for parameter in self._learning():
            parameter.zero_grad()
        shards = [
            gluon.utils.split_data(array, count, even_split=False) for array in (*inputs, *labels)
        ]
        losses = []
        with autograd.record():
            for number, arrays in enumerate(zip(*shards)):
                replica = number * replicas // count
                last = self.contexts[-1][replica]
                output = self(*arrays[: len(inputs)], replica=replica)
                own = (array.as_in_context(last) for array in arrays[len(inputs) :])
                losses.append(loss(output, *own))
        autograd.backward(losses)  # the engine overlaps the micro-batches
        return nd.concat(*(one.as_in_context(losses[0].context) for one in losses), dim=0)

    def step(self, inputs, labels, loss: Callable, micro_batches: int = 1) -> nd.NDArray:
        """Update all parts once, with the gradient of the whole batch.

        Args:
            inputs: as for :meth:`gradients`.
            labels: as for :meth:`gradients`.
            loss: as for :meth:`gradients`.
            micro_batches: as for :meth:`gradients`.

        Returns:
            The loss of every sample, (samples,), on the last context of the first replica.

        Raises:
            PlanError: as for :meth:`gradients`.
        """
        losses = self.gradients(inputs, labels, loss, micro_batches)
        for trainer in self.trainers:
            trainer.step(len(losses))
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
