"""One measured run of a peer, in its own environment: training epochs over exported batches.

It reads a job from standard input (JSON): ``network`` and its ``sizes``, ``exchange`` (folder of
:func:`benchmarks.exchange.export`), ``how`` (``eager``, ``channels_last``, ``compile``, or
``tuned``: ``channels_last`` started by PyTorch's launcher; ``count`` trains nothing), ``unit``
(``sample`` or ``token``), ``optimizer``, ``learning_rate``, ``momentum``, ``epochs``. Before
anything is timed, the network's output must equal MXNet's for the same weights and batch, to 1e-3.
The last line that it prints contains the figures, as JSON.
"""

import json
import resource
import sys
import time
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

sys.path.insert(0, str(Path(__file__).parent))
import networks

TOLERANCE = 1e-3
SMOOTHING, BETAS = 0.1, (0.9, 0.98)
CHANNELS_LAST = ("channels_last", "tuned")


def main() -> None:
    """Run the job and print its figures."""
    job = json.load(sys.stdin)
    torch.manual_seed(0)
    exchange = Path(job["exchange"])
    net = make_network(job)
    batches = [read_batch(path) for path in sorted(exchange.glob("batch-*.npz"))]
    step = image_loss if job["unit"] == "sample" else sentence_loss
    if job["how"] == "count":
        print(json.dumps(count(net, batches, step, job["unit"])))
        return
    if job["how"] in CHANNELS_LAST:
        batches = [(x.contiguous(memory_format=torch.channels_last), *rest) for x, *rest in batches]
    difference = check(net, batches[0], np.load(exchange / "scores.npy"), step)
    optimizer = make_optimizer(net, job)
    model = torch.compile(net) if job["how"] == "compile" else net
    model.train()
    durations = []
    for _ in range(job["epochs"]):
        start = time.perf_counter()
        train_loss = train_epoch(model, optimizer, batches, step)
        durations.append(time.perf_counter() - start)
    units = sum(_units(batch, job["unit"]) for batch in batches)
    figures = {
        "seconds": durations[-1],
        f"{job['unit']}s_per_second": units / durations[-1],
        "first_epoch_seconds": durations[0],
        "train_loss": float(train_loss),
        "peak_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "difference": difference,
        "threads": torch.get_num_threads(),
        "version": torch.__version__,
    }
    print(json.dumps(figures))


def make_network(job):
    """Return the job's network with mxopt's weights, in the job's memory layout."""
    net = getattr(networks, job["network"])(**job["sizes"])
    networks.carry_over(net, dict(np.load(Path(job["exchange"]) / "weights.npz")))
    return net.to(memory_format=torch.channels_last) if job["how"] in CHANNELS_LAST else net


def make_optimizer(net, job):
    """Return the job's optimizer, in PyTorch's fused implementation.

    Args:
        net: the network.
        job: the job.
    """
    if job["optimizer"] == "adam":
        return torch.optim.Adam(net.parameters(), job["learning_rate"], BETAS, fused=True)
    return torch.optim.SGD(net.parameters(), job["learning_rate"], job["momentum"], fused=True)


def train_epoch(model, optimizer, batches, step) -> torch.Tensor:
    """Train on each batch once, and return the mean loss of all samples or tokens.

    Args:
        model: the network.
        optimizer: its optimizer.
        batches: the batches.
        step: :func:`image_loss` or :func:`sentence_loss`.
    """
    total, count = 0.0, 0
    for batch in batches:
        loss, units = step(model, batch)
        optimizer.zero_grad(set_to_none=True)
        (loss / units).backward()
        optimizer.step()
        total, count = total + loss.detach(), count + units
    return total / count


def count(net, batches, step, unit) -> dict:
    """Return the operations of training for each sample or token.

    It is three times the forward pass, because each product has two in the backward pass.
    (PyTorch's counter can count the backward pass, but counts grouped convolutions as dense ones.)

    Args:
        net: the network.
        batches: the batches.
        step: :func:`image_loss` or :func:`sentence_loss`.
        unit: ``sample`` or ``token``.
    """
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        for batch in batches:
            step(net, batch)
    units = sum(_units(batch, unit) for batch in batches)
    return {"operations": 3 * counter.get_total_flops() / units}


def check(net, batch, expected, step) -> float:
    """Return the greatest difference between the scores and MXNet's.

    Args:
        net: the network.
        batch: the first batch.
        expected: MXNet's scores for it.
        step: :func:`image_loss` or :func:`sentence_loss`.

    Raises:
        SystemExit: the difference exceeds the tolerance.
    """
    net.eval()
    with torch.no_grad():
        found = net(*(batch[:1] if step is image_loss else batch[:4])).numpy()
    real = np.ones(found.shape[:2], bool)
    if step is sentence_loss:
        real = np.arange(found.shape[1]) < batch[3].numpy()[:, None]
    difference = float(np.abs(found - expected)[real].max())
    if not difference < TOLERANCE * max(1.0, float(np.abs(expected).max())):
        sys.exit(f"the peer's scores differ from MXNet's by {difference}")
    return difference


def read_batch(path) -> tuple:
    """Return the arrays of an exported batch as tensors, integers as int64."""
    arrays = [torch.from_numpy(array) for array in np.load(path).values()]
    return tuple(a if a.is_floating_point() else a.long() for a in arrays)


def _units(batch, unit):
    return len(batch[0]) if unit == "sample" else int(batch[3].sum())


def image_loss(net, batch):
    """Return the sum of the images' mean losses, and the number of images.

    Args:
        net: the network.
        batch: (image, mask).
    """
    image, mask = batch
    return functional.cross_entropy(net(image), mask) * len(image), len(image)


def sentence_loss(net, batch):
    """Return the sum of the losses of all target tokens, and their number.

    Args:
        net: the network.
        batch: the network's inputs (source, target, and the lengths of both), then the labels.
    """
    *inputs, words = batch
    length = inputs[3]
    padding = torch.arange(words.shape[1]) >= length[:, None]
    loss = functional.cross_entropy(
        net(*inputs).flatten(0, 1),
        words.masked_fill(padding, -100).flatten(),
        label_smoothing=SMOOTHING,
        reduction="sum",
    )
    return loss, int(length.sum())


if __name__ == "__main__":
    main()
