"""Checkpoints: everything that is needed to resume a run in a new process.

A checkpoint is written after each epoch and at every stop within one (``progress``). The network,
the optimizer's state, the loss scale, the methods' state and the figures so far are written first;
last a manifest with the SHA-256 of the other files and of itself. A checkpoint without a manifest,
or with a hash that differs, is ignored: whenever the process dies, the last good one remains. The
last two are kept.

No state of random generators is kept, because they are seeded again at every such point, from the
plan's seed, the epoch and the step. (Except in the processes of ``plan.num_workers``, which have
generators of their own: a transform that uses them draws other numbers after an interruption.)
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from mxnet import nd
from mxnet.base import MXNetError

from mxopt.core.atomic import by_number, replace_text, unwritable
from mxopt.core.errors import PlanError
from mxopt.core.plan import Plan
from mxopt.data.hashes import file_sha256
from mxopt.methods import TrainingRun

FORMAT = 3
KEPT = 2
ENDS = ("params", "states")


def save(folder: Path, run: TrainingRun, every: int, progress: dict) -> None:
    """Write a checkpoint.

    Args:
        folder: folder of the run's checkpoints; it is made if missing.
        run: the training run.
        every: steps between two checkpoints within an epoch.
        progress: JSON-able figures to resume from; ``epoch`` is the number of finished epochs, and
            ``step`` the number of finished steps of the next one.

    Raises:
        RecordError: the folder cannot be written to; earlier checkpoints are unchanged.
    """
    stem = f"epoch-{progress['epoch']:04d}"
    if progress["step"]:
        stem += f"-step-{progress['step']:07d}"
    arrays: list[nd.NDArray] = []
    states = [_packed(updater.states, arrays) for updater in run.trainer._updaters]
    methods = [_method_state(method, arrays) for method in run.methods]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        run.network.save_parameters(str(folder / f"{stem}.params"))
        nd.save(str(folder / f"{stem}.states"), arrays or [nd.zeros((1,))])
        for end in ENDS:  # MXNet does not notice that the end of a file did not fit on the disk
            nd.load(str(folder / f"{stem}.{end}"))
    except OSError as error:
        raise unwritable(folder / stem, error) from None
    except MXNetError:
        raise unwritable(folder / stem, OSError("MXNet could not write all of it")) from None
    optimizer, scaler = run.trainer._optimizer, _scaler(run.trainer)
    manifest = {
        "format": FORMAT,
        "recipe": run.recipe.name,
        "plan": run.plan.as_dict(),
        "every": every,
        "progress": progress,
        "states": states,
        "methods": {name: state for name, state in methods if state},
        "updates": [optimizer.num_update, _pairs(optimizer._all_index_update_counts)],
        "loss_scale": {name: getattr(scaler, name) for name in _SCALER} if scaler else {},
        "sha256": {end: file_sha256(folder / f"{stem}.{end}") for end in ENDS},
    }
    manifest["sha256"]["json"] = _own_sha256(manifest)
    replace_text(folder / f"{stem}.json", json.dumps(manifest))
    for old in by_number(folder.glob("epoch-*.json"))[:-KEPT]:
        for path in (old, old.with_suffix(".params"), old.with_suffix(".states")):
            path.unlink(missing_ok=True)


def restore(folder: Path, run: TrainingRun, every: int) -> dict | None:
    """Restore the newest good checkpoint and return its progress; None if there is none.

    Args:
        folder: folder of the run's checkpoints.
        run: the training run, as it was set up.
        every: steps between two checkpoints within an epoch.

    Raises:
        PlanError: the checkpoint has another recipe or plan, another number of steps between two
            checkpoints, or was written by another version of mxopt.
    """
    for path in reversed(by_number(folder.glob("epoch-*.json"))):
        manifest = _good(path)
        if manifest is None:
            continue
        differing = _differences(manifest, run, every)
        if differing:
            raise PlanError(
                f"{path} is a checkpoint of something else ({differing} differs); name another "
                "folder, or delete it"
            )
        run.network.load_parameters(str(path.with_suffix(".params")), ctx=run.contexts)
        arrays = nd.load(str(path.with_suffix(".states")))
        trainer = run.trainer
        for updater, context, states in zip(trainer._updaters, run.contexts, manifest["states"]):
            updater.states = _unpacked(states, arrays, context)
            updater.states_synced = dict.fromkeys(updater.states, True)
        for method in run.methods:
            state = manifest["methods"].get(type(method).__name__)
            if state:
                method.load(state["values"], _unpacked(state["arrays"], arrays, run.contexts[0]))
        optimizer = trainer._optimizer
        optimizer.num_update, counts = manifest["updates"]
        for device, own in counts:
            optimizer._all_index_update_counts[device] = dict(map(tuple, own))
        optimizer._index_update_count = optimizer._all_index_update_counts.get(0, {})
        for name, value in manifest["loss_scale"].items():
            setattr(_scaler(trainer), name, value)
        return manifest["progress"]
    return None


def _differences(manifest: dict, run: TrainingRun, every: int) -> str:
    """Return how a checkpoint differs from the run that would resume from it."""
    if manifest.get("format") != FORMAT:
        return "the version of mxopt that wrote it"
    if manifest["recipe"] != run.recipe.name:
        return f"recipe {manifest['recipe']}"
    if manifest["every"] != every:
        return f"checkpoint_steps={manifest['every']}"
    return ", ".join(Plan.from_dict(manifest["plan"]).diff(run.plan))


def _method_state(method, arrays: list) -> tuple[str, dict]:
    """Return a method's name and its state, with its arrays appended to a list."""
    values, own = method.state()
    state = {"values": values, "arrays": _packed(own, arrays)} if values or own else {}
    return type(method).__name__, state


def newest(folder: Path) -> Path | None:
    """Return the file with the weights of the newest good checkpoint; None if there is none."""
    manifests = reversed(by_number(folder.glob("epoch-*.json")))
    good = (path.with_suffix(".params") for path in manifests if _good(path))
    return next(good, None)


_SCALER = ("_loss_scale", "_next_loss_scale", "_unskipped")


def _scaler(trainer):
    return getattr(trainer, "_amp_loss_scaler", None)


def _good(path: Path) -> dict | None:
    """Return a manifest if the hashes of its files are correct, and None otherwise."""
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        hashes = {end: file_sha256(path.with_suffix(f".{end}")) for end in ENDS}
        hashes["json"] = _own_sha256(manifest)
        return manifest if manifest["sha256"] == hashes else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _own_sha256(manifest: dict) -> str:
    """Return the SHA-256 of a manifest without its hashes."""
    rest = {name: value for name, value in manifest.items() if name != "sha256"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def _pairs(counts: dict) -> list:
    """Return a dictionary of dictionaries as lists, because JSON has only string keys."""
    return [[device, list(map(list, own.items()))] for device, own in counts.items()]


def _packed(value, arrays: list):
    """Return nested states JSON-able: arrays are appended to a list, replaced by their index."""
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
