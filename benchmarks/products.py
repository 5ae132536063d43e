"""Matrix products by libraries of MXNet and PyTorch: the workload, and two experiments of it."""

from __future__ import annotations

from pathlib import Path

from benchmarks.arms import run_peer
from benchmarks.cases import THREADS
from benchmarks.given import TUNED
from mxopt import measure
from mxopt.core.plan import Plan
from mxopt.methods.engine.clock import timed

WORK = "benchmarks.products:multiply"
# Matrix products of PyTorch: as installed, by MKL's kernels for Intel's processors, and by oneDNN,
# which PyTorch calls for convolutions and has no public function for products with gradients.
PRODUCTS = {
    "torch": {},
    "torch-tuned": {"given": TUNED},
    "torch-onednn": {"library": "onednn"},
}

# What the library of ``plan.blas`` computes: a large product, and small ones as of attention.
BLAS = {
    "dot": {"operator": "dot"},
    "batch_dot": {"operator": "batch_dot", "size": 64, "batch": 512},
}


def multiply(
    plan: Plan, write, peer: dict | None = None, size: int = 2048, rounds: int = 20,
    operator: str = "FullyConnected", batch: int = 1,
) -> dict:  # fmt: skip
    """Multiply square matrices, to find the highest rate that a library reaches on this machine.

    MXNet's ``FullyConnected`` is a matrix product by oneDNN, ``dot`` and ``batch_dot`` are by the
    library of ``plan.blas``.

    Args:
        plan: the process has its threads.
        write: called with the name and the fields of each event.
        peer: if not None, PyTorch multiplies instead of MXNet, with what it is ``given``, by the
            ``library`` mkl (its default) or onednn.
        size: the matrices are (size, size), float32.
        rounds: number of products.
        operator: ``FullyConnected``, ``dot``, or ``batch_dot``.
        batch: number of matrices in a product; more than 1 for ``batch_dot`` only.

    Returns:
        ``gflop_per_second`` of the fastest product.

    Raises:
        DeviceError: the peers' environment is missing, or the peer failed.
    """
    if peer is not None:
        return run_peer("multiply.py", {"size": size, "rounds": rounds, **peer}, write)
    from mxnet import nd

    shape = (batch, size, size) if operator == "batch_dot" else (size, size)
    a, b = nd.random.uniform(shape=shape), nd.random.uniform(shape=shape)
    dense = {"num_hidden": size, "no_bias": True} if operator == "FullyConnected" else {}
    durations = []
    for _ in range(rounds + 1):
        with timed() as clock:
            getattr(nd, operator)(a, b, **dense)
        durations.append(clock.seconds)
    return {"gflop_per_second": 2 * batch * size**3 / min(durations[1:]) / 1e9}


def ceiling(name: str, repeats: int, folder: Path) -> measure.Experiment:
    """Measure matrix products: the highest rate that each library reaches on this machine.

    Args:
        name: name of the part.
        repeats: number of runs of each arm.
        folder: folder of experiments.
    """
    arms = dict.fromkeys(("mxnet", *PRODUCTS), Plan(**THREADS))
    return measure.interleave(
        name, WORK, arms, repeats=repeats, again="mxnet",
        arm_options={arm: {"peer": peer} for arm, peer in PRODUCTS.items()}, folder=folder,
        title="The ceiling: matrix products", figure="gflop_per_second", unit="GFLOP/s",
        better="higher", pairs=[("torch", "mxnet"), ("torch", "torch-tuned"),
                                ("torch-tuned", "mxnet")],
    )  # fmt: skip


def blas(name: str, repeats: int, folder: Path) -> measure.Experiment:
    """Measure the libraries that ``dot`` and ``batch_dot`` can call.

    Args:
        name: name of the part.
        repeats: number of runs of each arm.
        folder: folder of experiments.
    """
    libraries = ("default", "mkl", "openblas")
    arms = {f"{of}-{blas}": Plan(blas=blas, **THREADS) for of in BLAS for blas in libraries}
    return measure.interleave(
        name, WORK, arms, repeats=repeats, folder=folder, again="dot-default",
        arm_options={arm: BLAS[arm.split("-")[0]] for arm in arms}, title="Products by the BLAS",
        figure="gflop_per_second", unit="GFLOP/s", better="higher",
        pairs=[(f"{of}-default", f"{of}-{blas}") for of in BLAS for blas in libraries[1:]],
    )  # fmt: skip
