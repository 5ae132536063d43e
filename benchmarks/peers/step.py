"""One measured run of a peer, in its own environment: training epochs over exported batches.

It reads a job from standard input (JSON): ``network`` and its ``sizes``, ``exchange`` (folder of
:func:`benchmarks.exchange.export`), ``given`` (what the arm is given, ``benchmarks.given``), or
``count`` (true: the operations are counted and nothing is trained), ``unit`` (``sample`` or
``token``), ``optimizer``, ``learning_rate``, ``momentum``, ``epochs``. Before anything is timed,
the network's output must equal MXNet's for the same weights and batch, to 1e-3. The last line that
it prints contains the figures, as JSON.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

sys.path.insert(0, str(Path(__file__).parent))
import networks
from child import read_job
from facts import check_loaded, compilations, facts, peak_memory
from translator import ProjectedLoss

TOLERANCE = 1e-3
SMOOTHING, BETAS = 0.1, (0.9, 0.98)


def main() -> None:
    """Run the job and print its figures."""
    job = read_job()
    torch.manual_seed(0)
    exchange, given = Path(job["exchange"]), job.get("given", {})
    check_loaded(given)
    net = make_network(job)
    batches = [read_batch(path) for path in sorted(exchange.glob("batch-*.npz"))]
    plain = image_loss if job["unit"] == "sample" else sentence_loss
    if job.get("count"):
        print(json.dumps(count(net, batches, plain, job["unit"])))
        return
    if given.get("channels_last"):
        batches = [(x.contiguous(memory_format=torch.channels_last), *rest) for x, *rest in batches]
    difference = check(net, batches[0], np.load(exchange / "scores.npy"), plain)
    if given.get("bfloat16"):
        torch.set_float32_matmul_precision("medium")
    optimizer, loss = make_optimizer(net, job), make_loss(job)
    net.train()
    parts = given.get("accumulation", 1)
    updates = [batches[i : i + parts] for i in range(0, len(batches), parts)]
    # Untimed, the largest batch first: later ones find memory that is large enough.
    size = [sum(batch[0].numel() for batch in update) for update in updates]
    first = [updates[i] for i in sorted(range(len(updates)), key=lambda i: -size[i])]
    durations = []
    for order in [first] + [updates] * (job["epochs"] - 1):
        before, processor = compilations(), time.process_time()
        start = time.perf_counter()
        train_loss = train_epoch(net, optimizer, order, loss)
        durations.append(time.perf_counter() - start)
        processor = time.process_time() - processor
    units = sum(_units(batch, job["unit"]) for batch in batches)
    figures = {
        "seconds": durations[-1],
        "cpu_seconds": processor,
        f"{job['unit']}s_per_second": units / durations[-1],
        "first_epoch_seconds": durations[0],
        "train_loss": float(train_loss),
        "peak_memory_bytes": peak_memory(),
        "difference": difference,
        "compilations_while_timed": compilations() - before,
        "threads": torch.get_num_threads(),
        "version": torch.__version__,
        "facts": facts(),
    }
    print(json.dumps(figures))


def make_network(job):
    """Return the job's network with mxopt's weights, in the job's memory layout."""
    given, sizes = job.get("given", {}), job["sizes"]
    for choice in ("shared_dropout", "unpadded"):
        if given.get(choice):
            sizes = {**sizes, choice: True}
    net = getattr(networks, job["network"])(**sizes)
    networks.carry_over(net, dict(np.load(Path(job["exchange"]) / "weights.npz")))
    return net.to(memory_format=torch.channels_last) if given.get("channels_last") else net


def make_optimizer(net, job):
    """Return the job's optimizer, in PyTorch's fused implementation.

    Args:
        net: the network.
        job: the job.
    """
    if job["optimizer"] == "adam":
        return torch.optim.Adam(net.parameters(), job["learning_rate"], BETAS, fused=True)
    return torch.optim.SGD(net.parameters(), job["learning_rate"], job["momentum"], fused=True)


def make_loss(job):
    """Return the job's function of a network and a batch that computes the summed loss.

    It is :func:`image_loss`, :func:`sentence_loss` or :func:`projected_loss`. If the job asks for
    compilation, it is compiled, the network with it: for one shape if all batches are images, and
    for any shape if they are sentences, whose lengths differ.
    """
    given = job.get("given", {})
    loss = image_loss if job["unit"] == "sample" else sentence_loss
    if given.get("fused_loss"):
        loss = projected_loss
    if given.get("autocast"):
        loss = torch.autocast("cpu", torch.bfloat16)(loss)
    if given.get("compile"):
        loss = torch.compile(loss, dynamic=None if job["unit"] == "sample" else True)
    return loss


def train_epoch(net, optimizer, updates, loss) -> torch.Tensor:
    """Train on each batch once, and return the mean loss of all samples or tokens.

    Args:
        net: the network.
        optimizer: its optimizer.
        updates: the batches of each update, as a list.
        loss: a function that :func:`make_loss` returns.
    """
    total, number = 0.0, 0
    for batches in updates:
        optimizer.zero_grad(set_to_none=True)
        units = sum(_loss_units(batch) for batch in batches)
        for batch in batches:
            own = loss(net, batch)
            (own / units).backward()
            total += own.detach()
        optimizer.step()
        number += units
    return total / number


def count(net, batches, loss, unit) -> dict:
    """Return the operations of training for each sample or token.

    It is three times the forward pass, because each product has two in the backward pass.
    (PyTorch's counter can count the backward pass, but counts grouped convolutions as dense ones.)

    Args:
        net: the network.
        batches: the batches.
        loss: :func:`image_loss` or :func:`sentence_loss`.
        unit: ``sample`` or ``token``.
    """
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        for batch in batches:
            loss(net, batch)
    units = sum(_units(batch, unit) for batch in batches)
    return {"operations": 3 * counter.get_total_flops() / units}


def check(net, batch, expected, loss) -> float:
    """Return the greatest difference between the scores and MXNet's.

    Args:
        net: the network.
        batch: the first batch.
        expected: MXNet's scores for it.
        loss: :func:`image_loss` or :func:`sentence_loss`.

    Raises:
        SystemExit: the difference exceeds the tolerance.
    """
    net.eval()
    with torch.no_grad():
        found = net(*(batch[:1] if loss is image_loss else batch[:4])).numpy()
    real = np.ones(expected.shape[:2], bool)
    if loss is sentence_loss:
        real = np.arange(expected.shape[1]) < batch[3].numpy()[:, None]
    if found.ndim == expected.ndim:
        found = found[real]
    difference = float(np.abs(found - expected[real]).max())
    if not difference < TOLERANCE * max(1.0, float(np.abs(expected).max())):
        sys.exit(f"the peer's scores differ from MXNet's by {difference}")
    return difference


def read_batch(path) -> tuple:
    """Return the arrays of an exported batch as tensors, integers as int64."""
    arrays = [torch.from_numpy(array) for array in np.load(path).values()]
    return tuple(a if a.is_floating_point() else a.long() for a in arrays)


def _units(batch, unit):
    return len(batch[0]) if unit == "sample" else int(batch[3].sum())


def _loss_units(batch):
    return _units(batch, "sample" if len(batch) == 2 else "token")


def image_loss(net, batch):
    """Return the sum of the images' mean losses.

    Args:
        net: the network.
        batch: (image, mask).
    """
    image, mask = batch
    return functional.cross_entropy(net(image), mask) * len(image)


def sentence_loss(net, batch):
    """Return the sum of the losses of all target tokens.

    Args:
        net: the network.
        batch: the network's inputs (source, target, and the lengths of both), then the labels.
    """
    *inputs, words = batch
    real = torch.arange(words.shape[1]) < inputs[3][:, None]
    words = words[real] if net.unpadded else words.masked_fill(~real, -100).flatten()
    scores = net(*inputs).flatten(0, -2)
    return functional.cross_entropy(scores, words, label_smoothing=SMOOTHING, reduction="sum")


def projected_loss(net, batch):
    """Return what :func:`sentence_loss` does, computed for real tokens only.

    Args:
        net: the network.
        batch: as for :func:`sentence_loss`.
    """
    *inputs, words = batch
    real = torch.arange(words.shape[1]) < inputs[3][:, None]
    last = net.projection
    states = net.states(*inputs)
    if not net.unpadded:
        states = states[real]
    return ProjectedLoss.apply(states, last.weight, last.bias, words[real], SMOOTHING)


if __name__ == "__main__":
    main()
