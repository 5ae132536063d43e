"""Synchronisation: how processes that train together add up their gradients.

Each holds a copy of the weights and computes the gradients of its own rows of every batch
(``Share`` of :mod:`mxopt.methods.data_parallel`). Their sum comes back to all, and all make the
same update, so that the weights stay equal without being sent again. Chosen by ``plan.kvstore``:

=============  ==================================================================================
``none``       there is one process
``dist_sync``  MXNet's parameter server (Li et al., "Scaling Distributed Machine Learning with the
               Parameter Server", 2014): gradients are pushed to servers and their sum is pulled
``horovod``    a ring of all-reduce among the workers (Sergeev and Del Balso, "Horovod", 2018)
=============  ==================================================================================

What is not added up: batch statistics stay each worker's, and those of the first are validated,
tested and kept, as those of the first device are in one process.
"""

from __future__ import annotations

import os

import mxnet as mx
from mxnet import gluon, nd

from mxopt.core.errors import DataError, DeviceError, PlanError
from mxopt.core.plan import Plan
from mxopt.methods.data_parallel.parallel import Share
from mxopt.methods.kvstore.cluster import worker_number

# The key of what is no gradient; a trainer numbers its parameters from 0.
_TOTAL = 1_000_000


class SingleProcess:
    """One process: nothing to add up. The base of the other classes.

    Attributes:
        worker: this process's number; the first, 0, validates, tests and keeps checkpoints.
        workers: how many train together.
        ready: whether all have the same weights.
    """

    worker, workers, ready = 0, 1, True

    @property
    def share(self) -> Share:
        """This worker's part of every batch."""
        return Share(self.worker, self.workers)

    def trainer(self, parameters, optimizer: str, options: dict) -> gluon.Trainer:
        """Return a trainer whose gradients are sums over all processes and devices."""
        return gluon.Trainer(parameters, optimizer, options, update_on_kvstore=False)

    def begin(self, trainer: gluon.Trainer) -> None:
        """Give all workers the weights of one of them; call it when their shapes are known.

        Equal seeds are not enough: by the time that weights of unknown shape are made, workers may
        have drawn different counts of random numbers for their samples.
        """

    def total(self, array: nd.NDArray) -> nd.NDArray:
        """Return an array (1,) float32 added up over all workers, without waiting."""
        return array

    def check_equal(self, epoch: int, step: int, folder) -> None:
        """Make sure that all workers go on from the same step of the same epoch.

        Raises:
            DataError: they do not, so the folder is not the same one for all.
        """
        totals = [self.total(nd.array([number])).asscalar() for number in (epoch, step)]
        if totals != [epoch * self.workers, step * self.workers]:
            raise DataError(
                f"worker {self.worker} goes on from epoch {epoch} and step {step} of {folder}, and "
                "not all others do; put the record on a disk that all hosts share"
            )


class ParameterServer(SingleProcess):
    """MXNet's parameter server, synchronous.

    A server answers when it has the gradients of all workers, so every worker must take part in
    every step. With more than two workers the order of a sum is that of arrival, and the last bits
    of a run's figures may differ from those of the same run.

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
        """Connect to the servers and return a trainer; returns when all processes are there.

        Loader processes are forked before this: none of them inherits a connection.
        """
        self._kvstore = mx.kv.create("dist_sync")
        self._total = nd.zeros((1,))
        self._kvstore.init(_TOTAL, self._total)
        # The servers add up and the workers update: the loss scale and clipping see whole sums.
        return gluon.Trainer(
            parameters, optimizer, options, kvstore=self._kvstore, update_on_kvstore=False
        )

    def begin(self, trainer):
        """Send one worker's weights to all."""
        trainer._init_kvstore()
        trainer._init_params()
        self.ready = True

    def total(self, array):
        """Return the sum, on the CPU, from the servers."""
        # One array for all, as a gradient is: the engine then keeps a push behind the pull before
        # it, which otherwise would find the sum of the push after.
        self._total[:] = array.as_in_context(mx.cpu())
        self._kvstore.pushpull(_TOTAL, self._total)
        return self._total.copy()


class Horovod(SingleProcess):
    """Horovod's all-reduce. Written from its documented API and not tried in this project.

    Raises:
        DeviceError: Horovod is not installed for MXNet.
        PlanError: another number of processes was started than the plan has.
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
                f"processes={plan.processes}, and Horovod has started {self.workers}; "
                f"start it with: horovodrun -np {plan.processes}"
            )

    def trainer(self, parameters, optimizer, options):
        """Return Horovod's trainer, made to add up gradients instead of averaging them."""
        self._parameters = parameters
        trainer = self._horovod.DistributedTrainer(parameters, optimizer, options)
        trainer._scale *= self.workers  # steps are divided by the size of the whole batch
        trainer._kvstore_params["update_on_kvstore"] = False  # it has no kvstore
        return trainer

    def begin(self, trainer):
        """Send the first worker's weights to all."""
        self._horovod.broadcast_parameters(self._parameters, root_rank=0)
        self.ready = True

    def total(self, array):
        """Return the sum."""
        return self._horovod.allreduce(array, average=False, name="total")


SINGLE_PROCESS = SingleProcess()


def for_plan(plan: Plan) -> SingleProcess:
    """Return the plan's way of adding up.

    Raises:
        DeviceError, PlanError: as for the classes.
    """
    return {"none": lambda _: SINGLE_PROCESS, "dist_sync": ParameterServer, "horovod": Horovod}[
        plan.kvstore
    ](plan)
