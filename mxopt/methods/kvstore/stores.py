"""Stores: how processes that train together sum their gradients.

Each process has a copy of the weights and computes the gradients of its part of every batch
(``Share`` of :mod:`mxopt.methods.data_parallel`). All receive the sum and make the same update, so
the weights stay equal without being sent again. ``plan.kvstore`` selects the store:

=============  ==================================================================================
``none``       a single process
``dist_sync``  MXNet's parameter server (Li et al., "Scaling Distributed Machine Learning with the
               Parameter Server", 2014): gradients are pushed to servers and their sum is pulled
``horovod``    ring all-reduce among the workers (Sergeev and Del Balso, "Horovod", 2018)
=============  ==================================================================================

Batch statistics are not summed: each worker has its own. Those of the first worker are used in
validation, test and checkpoints, like those of the first device in a single process.
"""

from __future__ import annotations

import os

import mxnet as mx
from mxnet import gluon, nd

from mxopt.core.errors import DataError, DeviceError, PlanError
from mxopt.core.plan import Plan
from mxopt.methods.data_parallel.parallel import Share
from mxopt.methods.kvstore.cluster import worker_number

# Key of the array for losses; a trainer numbers its parameters from 0.
_TOTAL = 1_000_000


class SingleProcess:
    """A single process, with nothing to sum; base of the other classes.

    Attributes:
        worker: number of this process; the first, 0, validates, tests and writes checkpoints.
        workers: number of processes that train together.
        ready: whether all have the same weights.
    """

    worker, workers, ready = 0, 1, True

    @property
    def share(self) -> Share:
        """This worker's part of every batch."""
        return Share(self.worker, self.workers)

    def trainer(self, parameters, optimizer: str, options: dict) -> gluon.Trainer:
        """Return a trainer whose gradients are sums over all processes and devices.

        Args:
            parameters: the trained parameters, a ``gluon.ParameterDict``.
            optimizer: name of the optimizer.
            options: arguments of the optimizer.
        """
        return gluon.Trainer(parameters, optimizer, options, update_on_kvstore=False)

    def begin(self, trainer: gluon.Trainer) -> None:
        """Send the weights of one worker to all; call it when their shapes are known.

        Equal seeds are not enough: before weights of unknown shape are initialised, workers may
        have drawn different numbers of random numbers for their samples.
        """

    def total(self, array: nd.NDArray) -> nd.NDArray:
        """Return the sum of an array over all workers, float32 of shape (1,), without waiting."""
        return array

    def check_equal(self, epoch: int, step: int, folder) -> None:
        """Check that all workers resume from the same step of the same epoch.

        Args:
            epoch: number of epochs that this worker has finished.
            step: number of steps of the next epoch that it has finished.
            folder: folder of the checkpoints, for the message.

        Raises:
            DataError: they do not, so their folders differ.
        """
        totals = [self.total(nd.array([number])).asscalar() for number in (epoch, step)]
        if totals != [epoch * self.workers, step * self.workers]:
            raise DataError(
                f"worker {self.worker} resumes from epoch {epoch} and step {step} of {folder}, but "
                "other workers do not; put the record on a disk that all hosts share"
            )


class ParameterServer(SingleProcess):
    """MXNet's parameter server, synchronous.

    A server answers when it has the gradients of all workers, so every worker must take part in
    every step. With more than two workers gradients are summed in the order of arrival, so the
    last bits of a run's figures may differ when it is repeated.

    Args:
        plan: the switches, for ``processes``.

    Raises:
        DeviceError: this process was not started as a worker.
    """

    def __init__(self, plan: Plan):
        if os.environ.get("DMLC_ROLE") != "worker":
            raise DeviceError(
                "kvstore='dist_sync' trains in processes that are started together: use "
                "`mxopt run` or mxopt.measure.run"
            )
        self.worker, self.workers, self.ready = worker_number(os.environ), plan.processes, False

    def trainer(self, parameters, optimizer, options):
        """Connect to the servers and return a trainer, when all processes have connected.

        Loader processes are forked before this, so that they do not inherit a connection.
        """
        self._kvstore = mx.kv.create("dist_sync")
        self._total = nd.zeros((1,))
        self._kvstore.init(_TOTAL, self._total)
        # Servers sum and workers update, so that the loss scale and clipping are applied to sums.
        return gluon.Trainer(
            parameters, optimizer, options, kvstore=self._kvstore, update_on_kvstore=False
        )

    def begin(self, trainer):
        """Send the weights of one worker to all."""
        trainer._init_kvstore()
        trainer._init_params()
        self.ready = True

    def total(self, array):
        """Return the sum from the servers, on the CPU."""
        # The same array every time, as for a gradient: the engine then runs a push after the
        # previous pull, which could otherwise return the sum of the later push.
        self._total[:] = array.as_in_context(mx.cpu())
        self._kvstore.pushpull(_TOTAL, self._total)
        return self._total.copy()


class Horovod(SingleProcess):
    """Horovod's all-reduce. Written from its documented API; not tested in this project.

    Args:
        plan: the switches, for ``processes``.

    Raises:
        DeviceError: Horovod is not installed for MXNet.
        PlanError: Horovod started another number of processes than the plan has.
    """

    def __init__(self, plan: Plan):
        try:
            import horovod.mxnet as horovod
        except ImportError as error:
            raise DeviceError(
                f"kvstore='horovod' needs Horovod built for MXNet ({error}); install it with: "
                "HOROVOD_WITH_MXNET=1 pip install --no-build-isolation horovod==0.28.1, "
                "or take kvstore='dist_sync'"
            ) from None
        horovod.init()
        self._horovod, self.ready = horovod, False
        self.worker, self.workers = horovod.rank(), horovod.size()
        if self.workers != plan.processes:
            raise PlanError(
                f"processes={plan.processes}, but Horovod has started {self.workers}; "
                f"start it with: horovodrun -np {plan.processes}"
            )

    def trainer(self, parameters, optimizer, options):
        """Return Horovod's trainer, changed to sum gradients instead of averaging them."""
        self._parameters = parameters
        trainer = self._horovod.DistributedTrainer(parameters, optimizer, options)
        trainer._scale *= self.workers  # steps are divided by the size of the whole batch
        trainer._kvstore_params["update_on_kvstore"] = False  # it has no kvstore
        return trainer

    def begin(self, trainer):
        """Send the weights of the first worker to all."""
        self._horovod.broadcast_parameters(self._parameters, root_rank=0)
        self.ready = True

    def total(self, array):
        """Return the sum."""
        return self._horovod.allreduce(array, average=False, name="total")


SINGLE_PROCESS = SingleProcess()


def for_plan(plan: Plan) -> SingleProcess:
    """Return the store of a plan.

    Raises:
        DeviceError: this process was not started as a worker, or Horovod is not installed.
        PlanError: Horovod started another number of processes than the plan has.
    """
    return {"none": lambda _: SINGLE_PROCESS, "dist_sync": ParameterServer, "horovod": Horovod}[
        plan.kvstore
    ](plan)
