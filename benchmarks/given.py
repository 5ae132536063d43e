"""What PyTorch is given in each arm, so that it is compared at its strongest."""

from __future__ import annotations

from mxopt import report
from mxopt.measure import Experiment

# What an arm can be given, and what that is.
GIVEN = {
    "channels_last": "the memory layout `channels_last`",
    "compile": "network and loss in one `torch.compile`; for sentences with dynamic shapes",
    "launcher": "started by `torch.backends.xeon.run_cpu`: Intel's OpenMP, threads bound to cores, "
    "tcmalloc; the run fails if one of the libraries is not loaded",
    "huge_pages": "transparent huge pages, by PyTorch's allocator (`THP_MEM_ALLOC_ENABLE=1`)",
    "mkl_intel_kernels": "MKL's kernels for Intel's processors on any processor, by preloading "
    "`benchmarks/peers/mkl_intel_cpu.c`; changes nothing on an Intel processor",
    "accumulation": "the two halves of a batch computed one after the other, and their gradients "
    "added, as mxopt's `accumulated`",
    "shared_dropout": "dropout of layers drawn from 512 shared rows, as mxopt's `cpu_operators`",
    "fused_loss": "projection and loss in one function that computes the gradient with the loss, "
    "as mxopt's `loss=fused`, and leaves out padding",
    "unpadded": "padding left out of everything but attention, by indices of the real words, as "
    "mxopt's `packed`",
    "bfloat16": '`torch.set_float32_matmul_precision("medium")`, which allows products of float32 '
    "matrices to round to bfloat16; PyTorch 2.13 did not round them where this was tried",
    "autocast": "`torch.autocast` to bfloat16: products, and most of what lies between them",
    "workers": "so many processes that read images",
    "uint8": "images and masks delivered as uint8; images normalised as batches",
    "kornia": "files decoded by kornia-rs instead of Pillow, as mxopt's `image_decoder=kornia`",
    "keep": "freed memory kept by malloc, as mxopt's `allocator=keep`",
    "one_thread": "`OMP_NUM_THREADS=1`: a second thread would wait busily beside the workers",
}
# What every arm has, because it needs no choice.
ALWAYS = """Every arm of PyTorch has the fused implementation of its optimizer, gradients set to
none, activations in place, queries, keys and values projected by one product, masks computed once a
batch and added by the product that computes the scores, and mxopt's own batches: the same sentences
in buckets, padded to the same few shapes. (mxopt's `packed` leaves the padding out of the same
batches, but for at most 31 words a language, and `unpadded` leaves out all.) In the untimed epoch
it sees the largest batch first.
Targets are int64, the only type that PyTorch's loss takes; reading them is not timed.

What mxopt does and PyTorch is not given: its rewrites of a network's graph and its space-to-batch,
which a user of PyTorch would have to write for the network; and, on a processor with AMX, products
of float32 with three bfloat16 for each number, for `kernels` of the Transformer and of ResNet-50:
they are about as exact as those of float32 (`tests/kernels` compares both with float64). What
neither has: a fast path of attention with dropout, which `scaled_dot_product_attention` lacks on a
CPU."""

LAST = {"channels_last": True}
TUNED = {"launcher": True, "huge_pages": True, "mkl_intel_kernels": True}
COMPILE = {"compile": True}
# What is set in PyTorch or its environment, without other lines in the training step.
SETTINGS = {**LAST, **TUNED, **COMPILE}.keys()
HALVES = {"accumulation": 2}

IMAGE_PEERS = {
    "eager": {},
    "channels_last": LAST,
    "compile": {**LAST, **COMPILE},
    "tuned": {**LAST, **TUNED},
    "tuned-compile": {**LAST, **TUNED, **COMPILE},
}
HALVED_IMAGE_PEERS = {**IMAGE_PEERS, "tuned-halves": {**LAST, **TUNED, **HALVES}}
BY_HAND = {**TUNED, "shared_dropout": True, "fused_loss": True}
SENTENCE_PEERS = {
    "eager": {},
    "tuned": TUNED,
    "tuned-compile": {**TUNED, **COMPILE},
    "best": BY_HAND,
    "best-halves": {**BY_HAND, **HALVES},
    "best-unpadded": {**BY_HAND, "unpadded": True},
}
# In lower precision, or allowed to be; `best` shows what that gives.
BFLOAT16_PEERS = {
    "best": BY_HAND,
    "best-bfloat16": {**BY_HAND, "bfloat16": True},
    "best-autocast": {**BY_HAND, "autocast": True},
}
UNPADDED_BFLOAT16_PEERS = {
    f"{name}-unpadded": {**BFLOAT16_PEERS[name], "unpadded": True}
    for name in ("best", "best-autocast")
}


def of(peer: dict) -> dict:
    """Return what a peer is given, from its options in a record.

    Args:
        peer: the option ``peer`` of an arm.
    """
    workers = {"workers": peer["workers"]} if peer.get("workers") else {}
    return {**peer.get("given", {}), **workers}


def table(known: list[Experiment]) -> report.Table:
    """Return a table of what each arm of PyTorch is given, in each comparison.

    Args:
        known: the experiments, also several of one title from several processors.
    """
    rows: dict[str, dict[tuple, list]] = {}
    for found in known:
        own = rows.setdefault(found.title, {})
        for arm, options in found.arm_options.items():
            if options.get("peer"):
                row = (found.title, arm, _words(of(options["peer"])) or "as installed")
                own[row] = list(row)
    flat = [row for own in rows.values() for row in own.values()]
    return report.Table(["what is trained or read", "arm of PyTorch", "what it is given"], flat)


def legend() -> str:
    """Return a list of everything that an arm can be given."""
    return "\n".join(f"- `{name}`: {words}." for name, words in GIVEN.items())


def _words(given: dict) -> str:
    shown = (name if value is True else f"{name} = {value}" for name, value in given.items())
    return ", ".join(f"`{each}`" for each in shown)
