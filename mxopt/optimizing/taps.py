"""Convolutions without the taps that see only padding.

DeepLab's head looks around each place with 3 x 3 convolutions dilated by 12, 24 and 36. At an image
of 240 pixels there are 30 x 30 places: of the one dilated by 36 eight of nine taps never leave the
padding, and oneDNN multiplies by those zeros all the same.
"""

from __future__ import annotations

from mxopt.optimizing.graph import Graph, Node

# Below this share of its work a convolution is taken apart.
WORTH = 0.5


def unseen_taps(graph: Graph, node: Node):
    """Leave out the taps of a dilated convolution that see only padding, wholly or in part.

    On a side of n places a kernel of three taps dilated by d multiplies 3 n times, of which its
    outer taps see the image n - d times each. So the convolution is the sum of nine 1 x 1 ones,
    each over that part of the image that its tap sees: n + 2 (n - d) products for a side.
    """
    shape = graph.shapes.get(node.inputs[0]) if node.op == "Convolution" else None
    if shape is None or len(shape) != 4:
        return None
    own, sides = node.attributes, shape[2:]
    dilation, group = own.get("dilate", (1, 1)), own.get("num_group", 1)
    plain = own["kernel"] == (3, 3) and own.get("stride", (1, 1)) == (1, 1) and group == 1
    if not plain or own.get("pad") != dilation:
        return None
    share = _seen(sides[0], dilation[0]) * _seen(sides[1], dilation[1])
    if share > WORTH:
        return None
    data, weight, *bias = node.inputs
    parts = []
    for row in range(3):
        for column in range(3):
            here = [_range(n, (tap - 1) * d) for n, tap, d in zip(sides, (row, column), dilation)]
            if any(begin >= end for begin, end, _ in here):
                continue
            name = f"{node.name}_tap{row}{column}"
            tap = graph.add("slice", f"{name}_weight", weight,
                            begin=(None, None, row, column),
                            end=(None, None, row + 1, column + 1))  # fmt: skip
            seen = data
            whole = all(end - begin == n for (begin, end, _), n in zip(here, sides))
            if not whole:
                seen = graph.add("slice", f"{name}_seen", data,
                                 begin=(None, None, *(begin for begin, _, _ in here)),
                                 end=(None, None, *(end for _, end, _ in here)))  # fmt: skip
            own_bias = bias if row == column == 1 else []
            part = graph.add("Convolution", name, seen, tap, *own_bias, kernel=(1, 1),
                             no_bias=not own_bias, num_filter=own["num_filter"])  # fmt: skip
            if not whole:
                widths = [w for (b, e, at), n in zip(here, sides) for w in (at, n - at - e + b)]
                part = graph.add("Pad", f"{name}_placed", part, mode="constant", constant_value=0,
                                 pad_width=(0, 0, 0, 0, *widths))  # fmt: skip
            parts.append(part)
    total = parts[0]
    if len(parts) > 1:
        total = graph.add("add_n", f"{node.name}_sum", *parts, num_args=len(parts))
    what = f"3 x 3 dilated by {dilation[0]} at {sides[0]} x {sides[1]}: {share:.0%} of its work"
    return total, "taps that see only padding left out", what


def _seen(side: int, dilation: int) -> float:
    """Return the share of a 3-tap filter's work along a side that sees the image."""
    return (side + 2 * max(0, side - dilation)) / (3 * side)


def _range(side: int, offset: int) -> tuple[int, int, int]:
    """Return which places a tap reads (begin, end), and the first place that it writes."""
    return max(0, offset), side + min(0, offset), max(0, -offset)
