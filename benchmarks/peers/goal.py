"""One measured run of a peer that trains a classifier and validates several times an epoch.

It reads a job from standard input (JSON): ``network``, ``sizes``, ``exchange`` and ``given`` as for
``step.py``; the folder of ``exchange`` also has ``train.npz``, ``validation.npz`` and ``test.npz``
(images uint8 and labels) and ``orders.npy`` (row numbers, one line for each epoch). ``rates`` has
the learning rate of every step, ``stops`` the steps of an epoch after which is validated, the last
one its end. The last line that it prints contains events as mxopt's training loop writes them, and
the figures, as JSON.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional

sys.path.insert(0, str(Path(__file__).parent))
import step
from child import read_job
from facts import check_loaded, facts, peak_memory

EVALUATED = 500  # images of a batch without gradients


def main() -> None:
    """Run the job and print its events and figures."""
    job = read_job()
    check_loaded(job["given"])
    torch.manual_seed(0)
    exchange = Path(job["exchange"])
    raw = {name: read(exchange / f"{name}.npz") for name in ("train", "validation", "test")}
    orders = torch.from_numpy(np.load(exchange / "orders.npy").astype(np.int64))
    start = time.perf_counter()
    train = prepared(raw["train"], job)
    preparation = time.perf_counter() - start
    validation, test = (prepared(raw[name], job) for name in ("validation", "test"))
    net = step.make_network(job)
    batch = step.read_batch(exchange / "batch-000.npz")
    difference = step.check(net, batch, np.load(exchange / "scores.npy"), step.image_loss)
    optimizer = torch.optim.Adam(
        net.parameters(), 1.0, (0.9, job["beta2"]), 1e-9, job["weight_decay"], fused=True
    )
    update, evaluated = make_update(net, optimizer, job), net
    begun = {"event": "check", "progress": 0.0, "step": 0, "seconds": 0.0}
    events = [{**begun, **scores(evaluated, validation)}]
    rates, steps, totals = iter(job["rates"]), 0, {"seconds": 0.0, "cpu_seconds": 0.0}
    for epoch, order in enumerate(orders):
        seconds, begin, total = 0.0, 0, torch.zeros(())
        for stop in job["stops"]:
            net.train()
            clock, processor = time.perf_counter(), time.process_time()
            for number in range(begin, stop):
                for group in optimizer.param_groups:
                    group["lr"] = next(rates)
                rows = order[number * job["batch_size"] : (number + 1) * job["batch_size"]]
                total += update(*(array[rows] for array in train)) * len(rows)
            train_loss = float(total) / min(stop * job["batch_size"], len(order))
            seconds += time.perf_counter() - clock
            totals["cpu_seconds"] += time.process_time() - processor
            steps, begin = steps + stop - begin, stop
            last = stop == job["stops"][-1]
            events.append({
                "event": "epoch" if last else "check", "epoch": epoch, "step": steps,
                "progress": epoch + stop / job["stops"][-1], "seconds": seconds,
                "train_loss": train_loss, **scores(evaluated, validation),
            })  # fmt: skip
        totals["seconds"] += seconds
    found = {name.replace("validation", "test"): v for name, v in scores(evaluated, test).items()}
    figures = {
        **totals,
        "preprocessing_seconds": preparation,
        "training_seconds": preparation + totals["seconds"],
        "train_loss": train_loss,
        **{k: v for k, v in events[-1].items() if k.startswith("validation")},
        **found,
        "peak_memory_bytes": peak_memory(),
        "difference": difference,
        "threads": torch.get_num_threads(),
        "version": torch.__version__,
        "facts": facts(),
    }
    print(json.dumps({**figures, "events": events}))


def read(path: Path) -> dict:
    """Return the arrays of a file by their names; NumPy reads each only when it is asked for it.

    Args:
        path: the file.
    """
    with np.load(path) as arrays:
        return dict(arrays)


def prepared(raw, job) -> tuple:
    """Return images (samples, 1, 28, 28) from 0 to 1 and labels, in the job's memory layout.

    Args:
        raw: arrays ``images`` (samples, 28, 28) uint8 and ``labels`` (samples,).
        job: the job.
    """
    images = torch.from_numpy(raw["images"]).float().div_(255).reshape(-1, 1, 28, 28)
    if job["given"].get("channels_last"):
        images = images.contiguous(memory_format=torch.channels_last)
    return images, torch.from_numpy(raw["labels"].astype(np.int64))


def make_update(net, optimizer, job):
    """Return a function of images and labels that trains one step and returns the loss.

    Args:
        net: the network.
        optimizer: its optimizer.
        job: the job; network and loss are compiled if it is given that.
    """

    def loss_of(images, labels):
        return functional.cross_entropy(net(images), labels, label_smoothing=job["smoothing"])

    if job["given"].get("compile"):
        loss_of = torch.compile(loss_of)

    def update(images, labels):
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(images, labels)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return update


def scores(net, split) -> dict:
    """Return ``validation_loss`` and ``validation_accuracy`` of a split.

    Args:
        net: the network, not compiled.
        split: images and labels.
    """
    net.eval()
    loss, right = 0.0, 0
    with torch.inference_mode():
        for images, labels in zip(*(array.split(EVALUATED) for array in split)):
            found = net(images)
            loss += float(functional.cross_entropy(found, labels, reduction="sum"))
            right += int((found.argmax(1) == labels).sum())
    count = len(split[1])
    return {"validation_loss": loss / count, "validation_accuracy": right / count}


if __name__ == "__main__":
    main()
