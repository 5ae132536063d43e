"""Which axis of a parameter is split over a mesh, by patterns of its name; needs no MXNet."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from mxopt.core.errors import PlanError

FLOAT32 = 4


def laid_out(
    shapes: Mapping[str, Sequence[int]], layout: Mapping[str, int | None], columns: int
) -> dict[str, int | None]:
    """Return the axis along which each parameter is split; None if every device has all of it.

    Args:
        shapes: shapes of the parameters, by name.
        layout: axes by regular expression; the first one that is found in a name counts. What
            matches none is not split.
        columns: number of devices that share a parameter.

    Raises:
        PlanError: a parameter has no such axis, its length cannot be divided, or a pattern matches
            no parameter.
    """
    found: dict[str, int | None] = {}
    used = set()
    for name, shape in shapes.items():
        pattern = next((p for p in layout if re.search(p, name)), None)
        axis = None if pattern is None else layout[pattern]
        used.add(pattern)
        if axis is not None and (axis >= len(shape) or shape[axis] % columns):
            raise PlanError(
                f"{name} {tuple(shape)} cannot be split along axis {axis} into {columns} equal "
                f"parts, as the pattern {pattern!r} asks"
            )
        found[name] = axis
    unused = [pattern for pattern in layout if pattern not in used]
    if unused:
        raise PlanError(
            f"the pattern {unused[0]!r} matches no parameter; there are {', '.join(shapes)}"
        )
    return found


def bytes_per_device(
    shapes: Mapping[str, Sequence[int]], layout: Mapping[str, int | None], columns: int
) -> tuple[int, int]:
    """Return the bytes of float32 weights on each device of a mesh, and on a single device.

    Args:
        shapes: shapes of the parameters, by name.
        layout: as for :func:`laid_out`.
        columns: number of devices that share a parameter.

    Raises:
        PlanError: as for :func:`laid_out`.
    """
    axes = laid_out(shapes, layout, columns)
    sizes = {name: FLOAT32 * math.prod(shape) for name, shape in shapes.items()}
    split = sum(size if axes[name] is None else size // columns for name, size in sizes.items())
    return split, sum(sizes.values())
