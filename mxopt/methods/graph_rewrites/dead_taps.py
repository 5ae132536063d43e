"""Dilated convolutions without the kernel taps that read only padding.

DeepLab's head has 3 x 3 convolutions dilated by 12, 24 and 36. With images of 240 pixels its
feature map has 30 x 30 positions: eight of the nine taps of the convolution dilated by 36 read only
padding, and oneDNN multiplies by these zeros.
"""

from __future__ import annotations

from mxopt.methods.graph_rewrites.graph import Graph, Node, Output

# A convolution is rewritten if at most this share of its products remains.
WORTH = 0.5

Seen = tuple  # (first position that a tap reads, one after the last, first that it writes)


def unseen_taps(graph: Graph, node: Node):
    """Leave out the products of a dilated 3 x 3 convolution that read only padding.

    On an axis of n positions a kernel of three taps dilated by d has 3 n products, but its outer
    taps read the image only n - d times each. The convolution is therefore the sum of nine 1 x 1
    convolutions, each over the part of the image that its tap reads: n + 2 (n - d) products on an
    axis. Rows are sliced first and columns within them, so that gradients are summed in small
    parts too.

    Args:
        graph: graph that new nodes are added to.
        node: node to rewrite.

    Returns:
        The new output, the kind of the change and its description; None to keep the node.
    """
    shape = graph.shapes.get(node.inputs[0]) if node.op == "Convolution" else None
    if shape is None or len(shape) != 4:
        return None
    own, sides = node.attributes, shape[2:]
    dilation, group = own.get("dilate", (1, 1)), own.get("num_group", 1)
    plain = own["kernel"] == (3, 3) and own.get("stride", (1, 1)) == (1, 1) and group == 1
    if not plain or own.get("pad") != dilation:
        return None
    rows, columns = (_seen(side, d) for side, d in zip(sides, dilation))
    read = [sum(end - begin for begin, end, _ in taps.values()) for taps in (rows, columns)]
    share = read[0] * read[1] / (9 * sides[0] * sides[1])
    if share > WORTH:
        return None
    data, weight, *bias = node.inputs
    taps = _taps(graph, node, weight, alone=len(rows) == len(columns) == 1)
    strips = []
    for row, in_row in rows.items():
        strip = _part(graph, f"{node.name}_row{row}", data, 2, in_row, sides[0])
        parts = []
        for column, in_column in columns.items():
            name = f"{node.name}_tap{row}{column}"
            tap = graph.add("Reshape", f"{name}_weight", taps[row, column],
                            shape=(own["num_filter"], -1, 1, 1))  # fmt: skip
            part = _part(graph, name, strip, 3, in_column, sides[1])
            own_bias = bias if row == column == 1 else []
            part = graph.add("Convolution", name, part, tap, *own_bias, kernel=(1, 1),
                             no_bias=not own_bias, num_filter=own["num_filter"])  # fmt: skip
            parts.append(_placed(graph, name, part, 3, in_column, sides[1]))
        total = _sum(graph, f"{node.name}_row{row}_sum", parts)
        strips.append(_placed(graph, f"{node.name}_row{row}", total, 2, in_row, sides[0]))
    total = _sum(graph, f"{node.name}_sum", strips)
    what = f"3 x 3 dilated by {dilation[0]} at {sides[0]} x {sides[1]}: {share:.0%} of its work"
    return total, "taps that see only padding left out", what


def _taps(graph: Graph, node: Node, weight: Output, alone: bool) -> dict[tuple, Output]:
    """Return the weights of each tap, all taken from one transposed array.

    The gradient of nine slices is a sum of nine arrays as large as the whole weight, and the
    elements of a tap lie nine apart; the gradient of a split array is written once.

    Args:
        graph: graph that new nodes are added to.
        node: the convolution.
        weight: its weight.
        alone: whether only the tap in the middle is wanted.
    """
    if alone:
        middle = {"begin": (None, None, 1, 1), "end": (None, None, 2, 2)}
        return {(1, 1): graph.add("slice", f"{node.name}_middle", weight, **middle)}
    pixels = graph.add("Reshape", f"{node.name}_pixels", weight, shape=(-3, -3))
    turned = graph.add("transpose", f"{node.name}_turned", pixels)
    split, _ = graph.add("SliceChannel", f"{node.name}_taps", turned, axis=0, num_outputs=9)
    return {divmod(tap, 3): (split, tap) for tap in range(9)}


def _seen(side: int, dilation: int) -> dict[int, Seen]:
    """Return the positions that each of the three taps reads, for taps that read the image."""
    offsets = {tap: (tap - 1) * dilation for tap in range(3)}
    return {tap: (max(0, off), side + min(0, off), max(0, -off))
            for tap, off in offsets.items() if abs(off) < side}  # fmt: skip


def _part(graph: Graph, name: str, data: Output, axis: int, seen: Seen, side: int) -> Output:
    """Slice the part that a tap reads out of an axis."""
    begin, end, _ = seen
    if end - begin == side:
        return data
    before = (None,) * axis
    return graph.add("slice", f"{name}_seen", data, begin=(*before, begin), end=(*before, end))


def _placed(graph: Graph, name: str, data: Output, axis: int, seen: Seen, side: int) -> Output:
    """Pad the result of a tap with zeros to its positions on an axis."""
    begin, end, at = seen
    if end - begin == side:
        return data
    width = [0] * 8
    width[2 * axis : 2 * axis + 2] = at, side - at - (end - begin)
    return graph.add("Pad", f"{name}_placed", data, mode="constant", constant_value=0,
                     pad_width=tuple(width))  # fmt: skip


def _sum(graph: Graph, name: str, parts: list[Output]) -> Output:
    return parts[0] if len(parts) == 1 else graph.add("add_n", name, *parts, num_args=len(parts))
