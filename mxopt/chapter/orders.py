"""What the order of shuffling, batching and caching does to the samples, counted."""

from __future__ import annotations

import numpy as np


def neighbours(batched_first: bool, samples: int = 1_000, batch: int = 50, epochs: int = 10) -> int:
    """Return how many samples share a batch with the first one in some epoch.

    Args:
        batched_first: whether batches are made once and then shuffled; otherwise the samples are
            shuffled in each epoch, and batches are made of them.
        samples: number of samples.
        batch: samples of a batch.
        epochs: number of epochs.
    """
    random, seen = np.random.RandomState(0), set()
    for _ in range(epochs):
        order = np.arange(samples) if batched_first else random.permutation(samples)
        batches = random.permutation(order.reshape(-1, batch))
        [own] = batches[(batches == 0).any(axis=1)]
        seen.update(own.tolist())
    return len(seen) - 1


def views(cached_after: bool, epochs: int = 10) -> int:
    """Return how many different images a training sees of one photograph.

    Args:
        cached_after: whether what augmentation made of it is kept; otherwise the photograph is
            kept, and augmented in each epoch.
        epochs: number of epochs.
    """
    from mxnet import nd

    from mxopt.methods.augmentation import augmented

    np.random.seed(0)
    photograph = nd.random.uniform(shape=(1, 3, 16, 16))
    made = [
        augmented((photograph,), 1, ["flip", "shift", "colour"])[0].asnumpy().tobytes()
        for _ in range(1 if cached_after else epochs)
    ]
    return len(set(made))
