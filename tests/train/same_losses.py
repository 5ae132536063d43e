"""Losses of a fixed set of plans, to see that a change of the training loop changes no number.

Record them on the commit before and on the one after, on the same machine, and compare:

    PYTHONPATH=tests/train python tests/train/same_losses.py record before.json
    PYTHONPATH=tests/train python tests/train/same_losses.py record after.json
    PYTHONPATH=tests/train python tests/train/same_losses.py compare before.json after.json

Every method, both recipes, one context and four, several processes, runs that were stopped and
resumed. On one processor MXNet repeats all of them to the last bit; sums over more than two
processes may differ in it.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

IMAGES = {"size": 48, "limit": 14}
PRETRAINED = {"network": "deeplab_mobilenetv2", "size": 96, "limit": 6}
TEXT = {"limit": 60, "vocabulary": 400, "layers": 1, "units": 32, "heads": 2, "hidden": 64,
        "beam": 2, "scored": 8}  # fmt: skip
SGD = {"batch_size": 4, "epochs": 2, "learning_rate": 0.05}
ADAM = {"batch_size": 8, "epochs": 2, "learning_rate": 0.002, "optimizer": "adam"}
NO_NORM = {**IMAGES, "norm": False}  # batch statistics are taken per context
FAST = {**TEXT, "cpu_operators": True, "loss": "fused"}

PLANS = {
    "plain": (SGD, IMAGES),
    "static, cached": ({**SGD, "hybridize": "static", "preprocess": "cached"}, IMAGES),
    "roundtrip, uint8": ({**SGD, "preprocess": "roundtrip", "image_dtype": "uint8"}, IMAGES),
    "device, 4 contexts": ({**SGD, "preprocess": "device", "devices": "cpu:0-3"}, NO_NORM),
    "accumulation, poly": ({**SGD, "grad_accumulation": 3, "momentum": 0.9, "schedule": "poly",
                            "warmup_epochs": 0.5, "weight_decay": 1e-4}, IMAGES),
    "clipping, cosine": ({**SGD, "optimizer": "adam", "learning_rate": 0.003, "clip_norm": 0.1,
                          "schedule": "cosine"}, IMAGES),
    "averaged": ({**SGD, "swa_start": 0.5, "hybridize": "yes"}, IMAGES),
    "bfloat16": ({**SGD, "precision": "bfloat16", "clip_norm": 0.5}, IMAGES),
    "resized": ({**SGD, "image_dtype": "uint8", "progressive_resizing": 32}, IMAGES),
    "workers": ({**SGD, "num_workers": 2, "prefetch": 3}, IMAGES),
    "4 contexts, clipping": ({**SGD, "devices": "cpu:0-3", "batch_size": 6, "clip_norm": 0.1,
                              "grad_accumulation": 2}, NO_NORM),
    "naive engine": ({**SGD, "engine": "NaiveEngine", "cpu_threads": 1}, IMAGES),
    "environment": ({**SGD, "openmp": "intel", "allocator": "keep", "affinity": "compact",
                     "engine_threads": 2}, IMAGES),
    "2 processes": ({**SGD, "kvstore": "dist_sync", "processes": 2}, NO_NORM),
    "frozen, fused": ({**SGD, "learning_rate": 0.003, "freeze_stages": 7, "hybridize": "fused",
                       "preprocess": "cached", "swa_start": 1, "momentum": 0.9},
                      {**PRETRAINED, "relu6_stages": 7, "space_to_batch": True}),
    "rewritten": ({**SGD, "hybridize": "static", "graph_rewrites": "usual"},
                  {**PRETRAINED, "reset_head": True}),
    "frozen": ({**SGD, "freeze_stages": 3}, PRETRAINED),
    "text": (ADAM, TEXT),
    "text, buckets": ({**ADAM, "bucketing": "length", "preprocess": "cached"}, TEXT),
    "text, all": ({**ADAM, "bucketing": "tokens", "batch_size": 200, "hybridize": "static",
                   "grad_accumulation": 2, "clip_norm": 1.0, "schedule": "inverse_sqrt",
                   "warmup_epochs": 0.5, "swa_start": 1, "preprocess": "cached"}, FAST),
    "text, 4 contexts": ({**ADAM, "devices": "cpu:0-3", "clip_norm": 1.0},
                         {**TEXT, "dropout": 0.0}),
    "text, device": ({**ADAM, "preprocess": "device", "bucketing": "tokens", "batch_size": 150},
                     {**TEXT, "loss": "pick"}),
    "resumed": ({**SGD, "grad_accumulation": 2, "swa_start": 0.5, "optimizer": "adam",
                 "learning_rate": 0.003, "schedule": "cosine"}, {**IMAGES, "stop": 3}),
    "text, resumed": ({**ADAM, "bucketing": "tokens", "batch_size": 150, "hybridize": "static"},
                      {**FAST, "stop": 5}),
    "4 contexts, resumed": ({**SGD, "devices": "cpu:0-3", "momentum": 0.9},
                            {**NO_NORM, "stop": 5}),
}  # fmt: skip


class Stopped(Exception):
    """The run was stopped on purpose."""


def work(plan, write, recipe: str, stop: int = 0, **options) -> dict:
    """Train; with ``stop``, end after so many steps or a few more and go on from a checkpoint."""
    from mxopt import recipes
    from mxopt.train.fit import fit

    losses, scores, stopped = [], [], []

    def keep(event, **fields):
        if event == "steps":
            losses.extend(fields["losses"])
            if stop and len(losses) >= stop and not stopped:
                raise Stopped
        if event in ("epoch", "check"):
            scores.append({k: v for k, v in fields.items() if "second" not in k})

    how = {"checkpoints": Path(tempfile.mkdtemp()) / "kept", "checkpoint_steps": 2} if stop else {}
    if stop:
        try:
            fit(recipes.load(recipe, **options), plan, keep, **how)
        except Stopped:
            stopped.append(True)
    figures = fit(recipes.load(recipe, **options), plan, keep, **how)
    write("told", losses=losses, scores=scores)
    return {name: value for name, value in figures.items() if "second" not in name}


def record(path: Path) -> None:
    """Write the losses and scores of every plan into a file."""
    from mxopt import Plan, measure

    found = {}
    for name, (switches, options) in PLANS.items():
        recipe = "translation" if name.startswith("text") else "segmentation"
        where = Path(tempfile.mkdtemp()) / "run.jsonl"
        run = measure.run(
            "same_losses:work", Plan(**switches), where, {"recipe": recipe, **options}
        )
        print(f"{name}: {run.status} {run.reason}", flush=True)
        told = run.only("told")
        found[name] = [told.get("losses"), told.get("scores")]
    path.write_text(json.dumps(found))


def compare(before: Path, after: Path) -> int:
    """Print which plans differ, and return how many."""
    one, two = (json.loads(path.read_text()) for path in (before, after))
    differing = [name for name in one if one[name] != two.get(name)]
    for name in differing:
        print(f"{name}: {one[name]} became {two.get(name)}")
    print(f"{len(one) - len(differing)} of {len(one)} are equal to the last bit")
    return len(differing)


if __name__ == "__main__":
    command, *paths = sys.argv[1:]
    if command == "record":
        record(Path(*paths))
    else:
        sys.exit(bool(compare(*map(Path, paths))))
