"""The command of ``mxopt`` that stores a data set in record files."""

from __future__ import annotations

from mxopt.cli.words import read_options


def write_records(chosen) -> int:
    """Write a split of a recipe's data set into a record file."""
    import os

    from mxopt import recipes
    from mxopt.core.errors import DataError, PlanError
    from mxopt.methods.record_files import write_images, write_pairs

    for path in (chosen.file, chosen.file.with_suffix(".idx")):
        if path.exists():
            raise DataError(f"{path} exists already; delete it, or name another file")
    made = recipes.load(chosen.recipe, **read_options(chosen.option))
    samples = getattr(made.data(), chosen.split)
    image, second, *more = samples[0]
    if more or getattr(image, "ndim", 0) != 3:
        raise PlanError(f"samples of {chosen.recipe} are not images with a label or a mask")
    write = write_pairs if getattr(second, "ndim", 0) >= 2 else write_images
    path = write(samples, chosen.file, chosen.quality, chosen.side)
    print(f"{path}: {len(samples):,} samples, {os.path.getsize(path):,} bytes")
    return 0
