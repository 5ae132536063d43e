"""The networks of the check: what the recipes train, small ones and those of the chapter."""

from __future__ import annotations

import mxnet as mx
import numpy as np
from mxnet import autograd, nd

from mxopt import recipes
from mxopt.core.plan import Plan
from mxopt.methods.data_parallel import parallel
from mxopt.methods.input_pipeline.loading import one_sample
from mxopt.train import initial
from mxopt.train.setup import seed_everything

# Options of the recipes that are trained to be compared.
SMALL = {"recipe": "segmentation", "network": "tiny", "size": 64, "limit": 16}
SENTENCES = {
    "recipe": "translation",
    "stand_in": True,
    "limit": 200,
    "vocabulary": 400,
    "layers": 1,
    "units": 32,
    "hidden": 64,
    "heads": 4,
    "scored": 4,
    "beam": 1,
}

# Operators whose inputs are never float16, because AMP and the recipes keep them in float32.
FLOAT32_ONLY = ("cast", "Cast", "amp_cast", "amp_multicast", "one_hot", "Embedding", "take")


def graphs(quick: bool):
    """Yield the graph of each recipe with its loss, and the shapes of the graph's inputs.

    Args:
        quick: whether the deep networks are left out.
    """
    chosen = [{**SMALL, "size": 32}, SENTENCES]
    if not quick:
        chosen.append({**SMALL, "network": "deeplab_resnet101", "size": 64, "pretrained": False})
        chosen.append({**SMALL, "network": "deeplab_mobilenetv2", "size": 64})
    for options in chosen:
        recipe = recipes.load(**options)
        arrays, _ = one_sample(recipe.data(), Plan())
        net = recipe.network([mx.cpu()])
        inputs = [mx.sym.var(f"data{number}") for number in range(len(arrays))]
        output = net(*inputs[: recipe.inputs])
        yield (
            mx.sym.Group([recipe.loss(output, *inputs[recipe.inputs :])]),
            {f"data{number}": (2, *array.shape[1:]) for number, array in enumerate(arrays)},
        )


def at_chapters_sizes():
    """Yield what one device computes in a step of the chapter, with random weights.

    Yields:
        The step's name, the graph of network and loss, the shapes of its inputs, the bytes of its
        gradients, and the bytes that training is estimated to need.
    """
    from mxopt.methods import METHODS, TrainingRun
    from mxopt.methods.kvstore import stores
    from mxopt.methods.precision import amp
    from mxopt.train import memory

    for name, (plan, options) in chapter(quick=False).items():
        if plan.precision != "float32":
            continue
        options = {**options, "limit": 64}
        plan = plan.replace(devices="cpu:0")
        recipe = recipes.load(**options)
        run = TrainingRun(plan, recipe, [mx.cpu()], amp.Float32(), stores.SINGLE_PROCESS)
        run.methods = [method() for method in METHODS]
        run.data = recipe.data()
        run.network = run.learning = recipe.network(run.contexts)
        initial.complete(run.network, run.example)
        [need] = memory.estimate(run, evaluate=False).needs
        graph, shapes, samples = _step(run)
        weights = sum(
            4 * int(np.prod(parameter.shape))
            for parameter in run.network.collect_params().values()
            if parameter.grad_req != "null"
        )
        yield name, graph, shapes, weights, need.fixed + samples * need.sample


def _step(run):
    """Return the graph of a step's network and loss, its inputs' shapes, and its samples."""
    arrays, unit = one_sample(run.data, run.plan)
    samples = max(1, run.plan.batch_size // unit)
    inputs = [mx.sym.var(f"data{number}") for number in range(len(arrays))]
    output = run.network(*inputs[: run.recipe.inputs])
    graph = mx.sym.Group([run.recipe.loss(output, *inputs[run.recipe.inputs :])])
    shapes = {f"data{n}": (samples, *array.shape[1:]) for n, array in enumerate(arrays)}
    used = graph.list_arguments()
    return graph, {name: shape for name, shape in shapes.items() if name in used}, samples


def loss_and_gradient(contexts: list, numbers) -> tuple[float, np.ndarray]:
    """Return the loss of a batch and the sum of its gradients over the devices.

    Without batch normalisation, whose statistics would differ between devices.

    Args:
        contexts: the devices.
        numbers: the precision, an object of :mod:`mxopt.methods.precision`.

    Returns:
        The summed loss, and all gradients in one array.
    """
    numbers.start()
    seed_everything(0)
    recipe = recipes.load(**SMALL, norm=False)
    data = recipe.data()
    samples = [data.transform(*data.train[index]) for index in range(8)]
    batch = [nd.stack(*parts) for parts in zip(*samples)]
    net = recipe.network(contexts)
    initial.complete(net, lambda: [nd.zeros(batch[0].shape, ctx=contexts[0])])
    net = numbers.prepare(net)
    with autograd.record():
        losses = []
        for image, mask in parallel.split_and_load(batch, contexts):
            output = numbers.outputs(net(*numbers.inputs([image])))
            losses.append(recipe.loss(output, mask).mean(axis=0, exclude=True).sum())
    autograd.backward(losses)
    gradients = [
        sum(gradient.astype("float32").asnumpy().ravel() for gradient in parameter.list_grad())
        for parameter in net.collect_params().values()
        if parameter.grad_req != "null"
    ]
    return sum(float(loss.asscalar()) for loss in losses), np.concatenate(gradients)


def chapter(quick: bool) -> dict[str, tuple[Plan, dict]]:
    """Return plan and options of each recipe at the chapter's sizes, with random weights.

    Args:
        quick: much smaller sizes.
    """
    plan = Plan(devices="gpu:0", batch_size=4, hybridize="static")
    image = {"recipe": "segmentation", "network": "deeplab_resnet101", "pretrained": False}
    text = {"recipe": "translation", "layers": 6, "units": 512, "heads": 8, "hidden": 2048}
    long = plan.replace(optimizer="adam", learning_rate=0.0003, bucketing="tokens", batch_size=4096)
    if quick:
        image = {**SMALL, "size": 64}
        text, long = SENTENCES, long.replace(batch_size=256)
    image = {**image, "size": image.get("size", 480), "limit": 12}
    text = {**text, "limit": text.get("limit", 2000)}
    return {
        "segmentation": (plan, image),
        "segmentation, amp": (plan.replace(precision="amp"), image),
        "translation": (long, text),
        "translation, amp": (long.replace(precision="amp"), text),
    }
