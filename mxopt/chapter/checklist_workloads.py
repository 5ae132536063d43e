"""Workloads of the guide to the performance checklist, each run in its own process."""

from __future__ import annotations

import dataclasses
import itertools
import tempfile
import time
from pathlib import Path

from mxopt.chapter.deployment import once
from mxopt.core.errors import PlanError
from mxopt.core.plan import Plan
from mxopt.methods.engine.clock import timed


def starved(
    plan: Plan, write, recipe: str = "fashion_mnist", delay: float = 0.0, **options
) -> dict:
    """Train a recipe whose samples take longer to prepare than they need.

    Args:
        plan: the switches; with ``preprocess="lazy"`` every step waits for its samples.
        write: called with the name and the fields of each event.
        recipe: name of the recipe, or ``module:function``.
        delay: seconds that are added to the preparation of each sample on average. They are waited
            for once in a batch, because each wait takes some time more than it is asked to.
        **options: options of the recipe.

    Returns:
        The figures of :func:`mxopt.train.fit.fit`, and ``starved_share``, the share of ``seconds``
        that the loop waited for batches.
    """
    from mxopt import recipes
    from mxopt.train import fit

    made = recipes.load(recipe, **options)

    def data():
        found = made.data()

        samples = itertools.count(1)

        def transform(*sample):
            if next(samples) % plan.batch_size == 0:
                time.sleep(delay * plan.batch_size)
            return found.transform(*sample)

        return dataclasses.replace(found, transform=transform if delay else found.transform)

    figures = fit.fit(dataclasses.replace(made, data=data), plan, write, evaluate=False)
    return {**figures, "starved_share": figures["loading_seconds"] / figures["seconds"]}


def convolution(
    plan: Plan, write, channels: int = 32, side: int = 56, kernel: int = 3, times: int = 20
) -> dict:
    """Compute a convolution of so many channels to as many, again and again.

    Args:
        plan: batch size, devices, threads and seed.
        write: called with the name and the fields of each event.
        channels: channels of input and output.
        side: height and width of the images.
        kernel: height and width of the filters.
        times: number of computations after a first one, which is not timed.

    Returns:
        ``seconds`` and ``cpu_seconds`` of all, and ``gflops``, billions of multiplications and
        additions a second.
    """
    from mxnet import nd

    from mxopt.methods.data_parallel import parallel
    from mxopt.train.setup import seed_everything

    seed_everything(plan.seed)
    [context] = parallel.contexts(plan)
    images = nd.random.normal(shape=(plan.batch_size, channels, side, side), ctx=context)
    filters = nd.random.normal(shape=(channels, channels, kernel, kernel), ctx=context)

    def compute():
        return nd.Convolution(images, filters, num_filter=channels, kernel=(kernel, kernel),
                              pad=(kernel // 2, kernel // 2), no_bias=True)  # fmt: skip

    compute().wait_to_read()
    with timed() as clock:
        for _ in range(times):
            compute().wait_to_read()
    operations = 2 * plan.batch_size * (channels * side * kernel) ** 2 * times
    write("work", operations=operations)
    return {
        "seconds": clock.seconds,
        "cpu_seconds": clock.cpu_seconds,
        "gflops": operations / clock.seconds / 1e9,
    }


def compiled(
    plan: Plan, write, used: bool = True, units: int = 500, products: int = 10, times: int = 20
) -> dict:
    """Compute a chain of matrix products whose result is used, or not.

    Args:
        plan: ``hybridize`` says whether the chain is compiled to a graph; devices and seed.
        write: called with the name and the fields of each event.
        used: whether the function returns the chain's result, or only its input.
        units: rows and columns of the matrix.
        products: products of the chain.
        times: number of calls after a first one, which is not timed.

    Returns:
        ``seconds`` and ``cpu_seconds`` of all calls.
    """
    from mxnet import gluon, nd

    from mxopt.methods.data_parallel import parallel
    from mxopt.train.setup import seed_everything

    class Chain(gluon.HybridBlock):
        def hybrid_forward(self, F, matrix):
            found = matrix
            for _ in range(products):
                found = F.tanh(F.dot(found, matrix))
            return found if used else F.identity(matrix)

    seed_everything(plan.seed)
    [context] = parallel.contexts(plan)
    chain = Chain()
    if plan.hybridize != "no":
        static = plan.hybridize == "static"
        chain.hybridize(static_alloc=static, static_shape=static)
    matrix = nd.random.normal(0, units**-0.5, shape=(units, units), ctx=context)
    chain(matrix)
    with timed() as clock:
        for _ in range(times):
            chain(matrix)
    write("calls", times=times)
    return {"seconds": clock.seconds, "cpu_seconds": clock.cpu_seconds}


def smaller(
    plan: Plan,
    write,
    narrow_to: list[int] | None = None,
    more_epochs: int = 1,
    batch: int = 32,
    times: int = 50,
    **options,
) -> dict:
    """Train the garments' network, make it smaller, and see what it has become.

    Args:
        plan: the switches; ``sparsity`` prunes weights while the network is trained.
        write: called with the name and the fields of each event.
        narrow_to: channels of both convolutions that are kept after training, the strongest ones;
            the narrow network is trained ``more_epochs`` longer. None keeps all.
        more_epochs: epochs of that training. Networks that are not narrowed are trained as much
            longer, so that all see as many images.
        batch: images of a timed prediction.
        times: number of timed predictions.
        **options: options of the recipe ``fashion_mnist``.

    Returns:
        The figures of the test split at the end; ``milliseconds`` of a prediction,
        ``parameters``, ``zeros`` (share of the weights), and ``compressed_bytes`` of the file that
        :func:`mxopt.methods.pruning.save_pruned` writes.

    Raises:
        PlanError: the network cannot be narrowed to these channels.
    """
    from mxnet import nd

    from mxopt import recipes
    from mxopt.methods.pruning import save_pruned, share_of_zeros
    from mxopt.recipes.fashion_mnist.recipe import narrowed
    from mxopt.train import fit

    made, nets, write = recipes.load("fashion_mnist", **options), [], once(write)
    if narrow_to is None:
        figures = fit.fit(made, plan.replace(epochs=plan.epochs + more_epochs), write, nets.append)
    else:
        if plan.sparsity:
            raise PlanError("sparsity and narrow_to are two ways to the same; take one")
        fit.fit(made, plan, write, nets.append, evaluate=False)
        small = dataclasses.replace(made, network=lambda contexts: narrowed(nets[-1], narrow_to))
        more = plan.replace(epochs=more_epochs, seed=plan.seed + 1)
        figures = fit.fit(small, more, write, nets.append)
    net = nets[-1]
    parameters = list(net.collect_params().values())
    images = nd.random.uniform(shape=(batch, 1, 28, 28))
    net.hybridize(static_alloc=True, static_shape=True)
    net(images).wait_to_read()
    with timed() as clock:
        for _ in range(times):
            net(images).wait_to_read()
    with tempfile.TemporaryDirectory() as folder:
        compressed = save_pruned(net, Path(folder) / "net.npz")
    return {
        **{name: value for name, value in figures.items() if name.startswith("test_")},
        "milliseconds": 1000 * clock.seconds / times,
        "parameters": sum(p.data().size for p in parameters),
        "zeros": share_of_zeros(parameters),
        "compressed_bytes": compressed,
    }
