"""Weights and optimizer states as they were before a test."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path

from mxnet import gluon


@contextlib.contextmanager
def restored(net: gluon.Block, trainer: gluon.Trainer):
    """Restore a network's parameters, and its trainer's states and rate, at the end of a block.

    Args:
        net: the network, with initialised parameters.
        trainer: its trainer.
    """
    parameters = list(net.collect_params().values())
    weights = [[copy.copy() for copy in p.list_data()] for p in parameters]
    rate = trainer.learning_rate
    with tempfile.TemporaryDirectory() as folder:
        states = str(Path(folder, "states"))
        trainer.save_states(states)
        try:
            yield
        finally:
            for parameter, copies in zip(parameters, weights):
                for array, copy in zip(parameter.list_data(), copies):
                    copy.copyto(array)
            trainer.load_states(states)
            trainer.set_learning_rate(rate)
