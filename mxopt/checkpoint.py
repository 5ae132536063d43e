"""Checkpoints: everything that a run needs to go on after its process is gone.

After an epoch the network, the optimizer's state, the loss scale, the weights' average and the
figures so far are written into files of their own, and last a manifest with the files' SHA-256. A
checkpoint without a manifest, or with another hash than it says, does not exist: whenever the
process dies, the last good one is still there. The last two are kept.

Nothing random needs keeping: every epoch begins with a seed made of the plan's and its number.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from mxnet import gluon, nd

from mxopt.averaging import Average
from mxopt.datasets.download import file_sha256
from mxopt.errors import PlanError
from mxopt.plan import Plan

KEPT = 2


@dataclass
class Training:
    """What learns, and is kept.

    Attributes:
        net: the whole network; ``trainer`` updates it, ``average`` follows it.
        plan: the switches; ``name`` is the recipe's.
        contexts: where the parameters are.
    """

    net: gluon.Block
    trainer: gluon.Trainer
    average: Average
    plan: Plan
    name: str
    contexts: list


def save(folder: Path, training: Training, progress: dict) -> None:
    """Write a checkpoint.

    Args:
        folder: of this run; made if it is not there.
        training: what to keep.
        progress: JSON-able figures to go on from; ``epoch`` is the number of epochs done.
    """
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"epoch-{progress['epoch']:04d}"
    arrays: list[nd.NDArray] = []
    states = [_packed(updater.states, arrays) for updater in training.trainer._updaters]
    means = _packed(training.average.means, arrays)
    training.net.save_parameters(str(folder / f"{stem}.params"))
    nd.save(str(folder / f"{stem}.states"), arrays or [nd.zeros((1,))])
    optimizer, scaler = training.trainer._optimizer, _scaler(training.trainer)
    manifest = {
        "recipe": training.name,
        "plan": training.plan.as_dict(),
        "progress": progress,
        "states": states,
        "average": {"steps": training.average.steps, "means": means},
        "updates": [optimizer.num_update, _pairs(optimizer._all_index_update_counts)],
        "loss_scale": {name: getattr(scaler, name) for name in _SCALER} if scaler else {},
        "sha256": {end: file_sha256(folder / f"{stem}.{end}") for end in ("params", "states")},
    }
    scratch = folder / f".{stem}.json"
    with scratch.open("w", encoding="utf-8") as file:
        json.dump(manifest, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(scratch, folder / f"{stem}.json")
    for old in sorted(folder.glob("epoch-*.json"))[:-KEPT]:
        for path in (old, old.with_suffix(".params"), old.with_suffix(".states")):
            path.unlink(missing_ok=True)


def restore(folder: Path, training: Training) -> dict | None:
    """Put the newest good checkpoint back and return its progress; None if there is none.

    Raises:
        PlanError: it is of another recipe or plan.
    """
    for path in sorted(folder.glob("epoch-*.json"), reverse=True):
        manifest = _good(path)
        if manifest is None:
            continue
        kept = Plan.from_dict(manifest["plan"])
        if manifest["recipe"] != training.name or kept != training.plan:
            differing = ", ".join(kept.diff(training.plan)) or f"recipe {manifest['recipe']}"
            raise PlanError(
                f"{path} is a checkpoint of something else ({differing} differs); name another "
                "folder, or delete it"
            )
        training.net.load_parameters(str(path.with_suffix(".params")), ctx=training.contexts)
        arrays = nd.load(str(path.with_suffix(".states")))
        trainer = training.trainer
        for updater, context, states in zip(
            trainer._updaters, training.contexts, manifest["states"]
        ):
            updater.states = _unpacked(states, arrays, context)
            updater.states_synced = dict.fromkeys(updater.states, True)
        training.average.steps = manifest["average"]["steps"]
        means = _unpacked(manifest["average"]["means"], arrays, training.contexts[0])
        training.average.means = means
        optimizer = trainer._optimizer
        optimizer.num_update, counts = manifest["updates"]
        for device, own in counts:
            optimizer._all_index_update_counts[device] = dict(map(tuple, own))
        optimizer._index_update_count = optimizer._all_index_update_counts.get(0, {})
        for name, value in manifest["loss_scale"].items():
            setattr(_scaler(trainer), name, value)
        return manifest["progress"]
    return None


_SCALER = ("_loss_scale", "_next_loss_scale", "_unskipped")


def _scaler(trainer):
    return getattr(trainer, "_amp_loss_scaler", None)


def _good(path: Path) -> dict | None:
    """Return a manifest if its files are what it says."""
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        hashes = manifest["sha256"].items()
        whole = all(file_sha256(path.with_suffix(f".{end}")) == sha256 for end, sha256 in hashes)
        return manifest if whole else None
    except (OSError, ValueError, KeyError):
        return None


def _pairs(counts: dict) -> list:
    """Return a dictionary of dictionaries as lists: JSON's keys would become text."""
    return [[device, list(map(list, own.items()))] for device, own in counts.items()]


def _packed(value, arrays: list):
    """Return nested states as JSON, their arrays moved to a list and replaced by their place."""
    if isinstance(value, nd.NDArray):
        arrays.append(value)
        return len(arrays) - 1
    if isinstance(value, dict):
        return {"keys": list(value), "values": [_packed(v, arrays) for v in value.values()]}
    if isinstance(value, (list, tuple)):
        return [_packed(part, arrays) for part in value]
    return None


def _unpacked(value, arrays: list, context):
    if isinstance(value, int):
        return arrays[value].as_in_context(context)
    if isinstance(value, dict):
        values = (_unpacked(part, arrays, context) for part in value["values"])
        return dict(zip(value["keys"], values))
    if isinstance(value, list):
        return [_unpacked(part, arrays, context) for part in value]
    return None
