"""Workload: images augmented on the host or on the device."""

from __future__ import annotations

import numpy as np

from mxopt.core.errors import PlanError
from mxopt.core.plan import Plan
from mxopt.methods.engine.clock import timed

WHERE = ("host", "device")


def augmented(
    plan: Plan, write, where: str = "device", images: int = 64, rounds: int = 10, **options
) -> dict:
    """Mirror, shift and recolour photographs, and mirror and shift their masks, batch by batch.

    Args:
        plan: batch size, device and seed.
        write: called with the name and the fields of each event.
        where: ``host``, sample by sample with NumPy, and the batch goes to the device; or
            ``device``, as batches that lie there already (:mod:`mxopt.methods.augmentation`), whose
            samples are all shifted alike.
        images: number of photographs, which are prepared before.
        rounds: number of passes over them.
        **options: options of the recipe ``segmentation``.

    Returns:
        ``seconds``, ``cpu_seconds`` and ``images_per_second`` of all passes but a first one.

    Raises:
        PlanError: there is no such place.
    """
    from mxnet import nd

    from mxopt import recipes
    from mxopt.methods.augmentation import batches
    from mxopt.methods.data_parallel import parallel
    from mxopt.train.setup import seed_everything

    if where not in WHERE:
        raise PlanError(f"where={where!r} is not a choice; take one of {', '.join(WHERE)}")
    seed_everything(plan.seed)
    [context] = parallel.contexts(plan)
    data = recipes.load("segmentation", **options).data()
    write("data", kind=data.kind, origin=data.origin, samples=images)
    samples = [data.transform(*data.train[n]) for n in range(min(images, len(data.train)))]
    size, firsts = plan.batch_size, range(0, len(samples), plan.batch_size)
    if where == "host":
        pairs = [[array.asnumpy() for array in sample] for sample in samples]

        def changed():
            for first in firsts:
                some = [_on_host(*pair) for pair in pairs[first : first + size]]
                stacks = map(np.stack, zip(*some))
                yield [nd.array(each, ctx=context, dtype=each.dtype) for each in stacks]
    else:
        whole = [nd.stack(*parts).as_in_context(context) for parts in zip(*samples)]

        def changed():
            for first in firsts:
                some = tuple(array[first : first + size] for array in whole)
                yield batches.augmented(some, 1, ["flip", "shift", "colour"])

    def one_pass():
        for batch in changed():
            for array in batch:
                array.wait_to_read()

    one_pass()
    with timed() as clock:
        for _ in range(rounds):
            one_pass()
    return {
        "seconds": clock.seconds,
        "cpu_seconds": clock.cpu_seconds,
        "images_per_second": rounds * len(samples) / clock.seconds,
    }


def _on_host(image: np.ndarray, mask: np.ndarray) -> tuple:
    """Change one photograph (channels, height, width) and its mask (height, width) at random."""
    from mxopt.methods.augmentation import batches

    height, width = mask.shape
    if np.random.uniform() < batches.MIRRORED:
        image, mask = image[..., ::-1], mask[..., ::-1]
    down, right = (
        round(np.random.uniform(-1, 1) * batches.SHIFT * side) for side in (height, width)
    )
    rows = np.clip(np.arange(height) - down, 0, height - 1)
    columns = np.clip(np.arange(width) - right, 0, width - 1)
    contrast, brightness = np.random.uniform(-batches.COLOUR, batches.COLOUR, 2).astype(image.dtype)
    image = image[:, rows][:, :, columns] * (1 + contrast) + brightness
    return image, mask[rows][:, columns]
