"""One measured run of a peer that trains from files: PyTorch's DataLoader, training, validation.

It reads a job from standard input (JSON): ``network``, ``sizes``, ``exchange``, ``given``,
``optimizer``, ``learning_rate`` and ``momentum`` as for ``step.py``; ``root`` (folder of the data
set), ``train`` and ``validation`` (names of images), ``size``, ``batch_size``, ``workers``,
``orders`` (of the training images, one list for each epoch), ``untrained_loss`` (mxopt's validation
loss before training, which the peer's must equal to 1e-3). The last line that it prints contains
the figures, as JSON.
"""

import json
import sys
import time
from pathlib import Path

import cv2
import numpy as np
import torch
from torch.nn import functional
from torch.utils.data import DataLoader

sys.path.insert(0, str(Path(__file__).parent))
import step
from child import read_job
from facts import check_loaded, facts, peak_memory
from loader import PennFudan

CLASSES = 2


class Orders:
    """Batches of row numbers; each pass returns those of the next epoch."""

    def __init__(self, orders: list, size: int):
        self._orders, self._size = iter(orders), size
        self._length = -(-len(orders[0]) // size)

    def __len__(self):
        return self._length

    def __iter__(self):
        # A generator, because the DataLoader creates iterators that it never starts.
        order = next(self._orders)
        for start in range(0, len(order), self._size):
            yield order[start : start + self._size]


def main() -> None:
    """Run the job and print its figures."""
    job = read_job()
    check_loaded(job["given"])
    cv2.setNumThreads(0)
    torch.manual_seed(0)
    start, ends, processor = time.perf_counter(), [], time.process_time()
    net = step.make_network(job)
    optimizer, loss = step.make_optimizer(net, job), step.make_loss({**job, "unit": "sample"})
    many = {"num_workers": job["workers"], "persistent_workers": job["workers"] > 0}
    train, validation = (
        PennFudan(Path(job["root"]), job[split], job["size"]) for split in ("train", "validation")
    )
    batches = DataLoader(train, batch_sampler=Orders(job["orders"], job["batch_size"]), **many)
    checks = DataLoader(validation, job["batch_size"], **many)
    begin = time.perf_counter()
    untrained = validate(net, laid_out(checks, job))  # as mxopt does before its first step
    first_validation = time.perf_counter() - begin
    for _ in job["orders"]:
        net.train()
        updates = ([batch] for batch in laid_out(batches, job))
        train_loss = step.train_epoch(net, optimizer, updates, loss)
        scores = validate(net, laid_out(checks, job))
        ends.append(time.perf_counter() - start)
    memory, processor = peak_memory(), time.process_time() - processor
    # After the clock, because the check would warm up what a user starts cold.
    fresh, exchange = step.make_network(job), Path(job["exchange"])
    first = step.read_batch(exchange / "batch-000.npz")
    figures = {
        "seconds": ends[-1],
        "cpu_seconds": processor,
        "samples_per_second": sum(map(len, job["orders"])) / ends[-1],
        "first_epoch_seconds": ends[0],
        "first_validation_seconds": first_validation,
        "train_loss": float(train_loss),
        **scores,
        "peak_memory_bytes": memory,
        "difference": step.check(fresh, first, np.load(exchange / "scores.npy"), step.image_loss),
        "loss_difference": check_loss(untrained, job),
        "threads": torch.get_num_threads(),
        "version": torch.__version__,
        "facts": facts(),
    }
    print(json.dumps(figures))


def laid_out(loader, job):
    """Yield the batches of a loader, (image, mask), in the job's memory layout.

    Args:
        loader: the loader.
        job: the job.
    """
    for image, mask in loader:
        if job["given"].get("channels_last"):
            image = image.contiguous(memory_format=torch.channels_last)
        yield image, mask


def validate(net, batches) -> dict:
    """Return the mean loss of all images, and the mean IoU over classes.

    Args:
        net: the network.
        batches: batches (image, mask).

    Returns:
        ``validation_loss`` and ``validation_mIoU``.
    """
    net.eval()
    total, images, pairs = 0.0, 0, torch.zeros(CLASSES**2, dtype=torch.int64)
    with torch.inference_mode():
        for image, mask in batches:
            scores = net(image)
            total += float(functional.cross_entropy(scores, mask)) * len(image)
            images += len(image)
            found = CLASSES * mask + scores.argmax(1)
            pairs += torch.bincount(found.flatten(), minlength=CLASSES**2)
    table = pairs.reshape(CLASSES, CLASSES)
    both = table.diag()
    either = table.sum(0) + table.sum(1) - both
    return {"validation_loss": total / images, "validation_mIoU": float((both / either).mean())}


def check_loss(scores, job) -> float:
    """Return the difference between the loss before training and mxopt's.

    Args:
        scores: result of :func:`validate`.
        job: the job, with ``untrained_loss``.

    Raises:
        SystemExit: the difference exceeds the tolerance.
    """
    difference = abs(scores["validation_loss"] - job["untrained_loss"])
    if not difference < step.TOLERANCE:
        sys.exit(f"the peer's validation loss before training differs from mxopt's by {difference}")
    return difference


if __name__ == "__main__":
    main()
