"""Export of weights, batches and MXNet's scores for them, as NumPy files that a peer reads."""

from __future__ import annotations

from pathlib import Path

import mxnet as mx
import numpy as np
from mxnet import autograd

from mxopt import recipes
from mxopt.core.plan import Plan
from mxopt.methods.data_parallel import parallel
from mxopt.methods.input_pipeline.loading import make_loader
from mxopt.train.setup import seed_everything


def export(folder: Path, plan: Plan, options: dict) -> dict:
    """Write the initial weights of a recipe, one epoch of batches, and the scores of the first one.

    Args:
        folder: folder for ``weights.npz`` (arrays by name), ``batch-000.npz`` and so on (the arrays
            of a batch in order), and ``scores.npy`` (outputs in inference mode).
        plan: determines the seed, the batches and their order, which is that of the second epoch of
            a training run.
        options: ``recipe``, and options of the recipe; ``recipe`` is removed.

    Returns:
        Further sizes of the peer's network: ``vocabulary`` and ``longest`` for sentences, none for
        images.
    """
    folder.mkdir(parents=True, exist_ok=True)
    seed_everything(plan.seed)
    contexts = parallel.contexts(plan)
    recipe = recipes.load(options.pop("recipe"), **options)
    data = recipe.data()
    net = recipe.network(contexts)
    loader = make_loader(data, "train", data.transform, plan.replace(preprocess="cached"), contexts)
    loader.epoch = 1
    batches = [batch.shards[0] for batch in loader]
    for number, arrays in enumerate(batches):
        np.savez(folder / f"batch-{number:03d}.npz", *(array.asnumpy() for array in arrays))
    net = getattr(net, "translator", net)
    inputs = batches[0][: recipe.inputs]
    with autograd.predict_mode():
        scores = net(*inputs[:4])
    scores = scores[0] if isinstance(scores, (list, tuple)) else scores
    np.save(folder / "scores.npy", scores.asnumpy())
    weights = net._collect_params_with_prefix()
    np.savez(folder / "weights.npz", **{name: p.data(mx.cpu()).asnumpy() for name, p in
                                        weights.items()})  # fmt: skip
    if recipe.unit == "sample":
        return {}
    return {"vocabulary": net.vocabulary, "longest": net.max_source_length}
