"""Weights and optimizer states as they were before a test."""

from __future__ import annotations

import contextlib
import copy

from mxnet import gluon, nd

from mxopt.core.errors import PlanError


@contextlib.contextmanager
def restored(net: gluon.Block, trainer: gluon.Trainer):
    """Restore a network's parameters, and its trainer's states and rate, at the end of a block.

    Args:
        net: the network, with initialised parameters.
        trainer: its trainer.

    Raises:
        PlanError: the trainer updates on its kvstore, which keeps the states to itself.
    """
    if not trainer._kv_initialized:
        trainer._init_kvstore()
    if trainer._update_on_kvstore:
        raise PlanError(
            "the states of a trainer that updates on its kvstore cannot be restored; "
            "make it with update_on_kvstore=False"
        )
    parameters = list(net.collect_params().values())
    weights = [[array.copy() for array in p.list_data()] for p in parameters]
    states = [_copied(updater.states) for updater in trainer._updaters]
    optimizer, rate = trainer._optimizer, trainer.learning_rate
    counts = copy.deepcopy((optimizer.num_update, optimizer._all_index_update_counts))
    try:
        yield
    finally:
        for parameter, copies in zip(parameters, weights):
            for array, old in zip(parameter.list_data(), copies):
                old.copyto(array)
        for updater, own in zip(trainer._updaters, states):
            updater.states = own
            updater.states_synced = dict.fromkeys(own, True)
        optimizer.num_update, optimizer._all_index_update_counts = counts
        optimizer._index_update_count = optimizer._all_index_update_counts.get(0, {})
        trainer.set_learning_rate(rate)


def _copied(state):
    """Return a copy of nested states, whose leaves are arrays or None."""
    if isinstance(state, dict):
        return {key: _copied(own) for key, own in state.items()}
    if isinstance(state, (list, tuple)):
        return type(state)(_copied(own) for own in state)
    return state.copy() if isinstance(state, nd.NDArray) else state
