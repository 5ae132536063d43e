"""Bilinear resizing by matrix products, whose gradient is a product too."""

from __future__ import annotations

from mxopt.methods.graph_rewrites.graph import Graph, Node, Output


def resize_by_products(graph: Graph, node: Node):
    """Compute ``BilinearResize2D`` by a product over the rows and one over the columns.

    MXNet 1.9 adds up its gradient pixel by pixel in one thread.

    Args:
        graph: graph that new nodes are added to.
        node: node to rewrite.

    Returns:
        The new output, the kind of the change and its description; None to keep the node.
    """
    own, shape = node.attributes, graph.shapes.get(node.inputs[0]) if node.inputs else None
    aligned = own.get("align_corners", True) and own.get("mode", "size") == "size"
    if node.op != "_contrib_BilinearResize2D" or not aligned or not shape:
        return None
    rows, columns = (
        int(side * own[f"scale_{name}"]) if own.get(f"scale_{name}") else own.get(name, 1)
        for name, side in zip(("height", "width"), shape[2:])
    )
    # The product is over the last axis.
    turned = graph.add("SwapAxis", f"{node.name}_rows_last", node.inputs[0], dim1=2, dim2=3)
    turned = graph.add("dot", f"{node.name}_rows", turned, _weights(graph, shape[2], rows))
    found = graph.add("SwapAxis", f"{node.name}_columns_last", turned, dim1=2, dim2=3)
    found = graph.add("dot", f"{node.name}_columns", found, _weights(graph, shape[3], columns))
    what = f"{shape[2]} x {shape[3]} to {rows} x {columns}"
    return found, "bilinear resizing by matrix products", what


def _weights(graph: Graph, inputs: int, outputs: int) -> Output:
    """Return the matrix (inputs, outputs) that resizes a line, its first and last pixel kept.

    The weight of a pixel is 1 minus its distance from the output's position, at least 0.
    """
    name = f"resize_{inputs}_to_{outputs}_{len(graph.nodes)}"
    step = (inputs - 1) / (outputs - 1) if outputs > 1 else 0.0
    places = graph.add("_arange", f"{name}_places", start=0, stop=inputs)
    places = graph.add("Reshape", f"{name}_column", places, shape=(-1, 1))
    wanted = graph.add("_arange", f"{name}_wanted", start=0, stop=outputs)
    wanted = graph.add("_mul_scalar", f"{name}_scaled", wanted, scalar=step)
    wanted = graph.add("Reshape", f"{name}_row", wanted, shape=(1, -1))
    distance = graph.add("broadcast_sub", f"{name}_offset", places, wanted)
    distance = graph.add("abs", f"{name}_distance", distance)
    rest = graph.add("_rminus_scalar", f"{name}_rest", distance, scalar=1)
    return graph.add("relu", f"{name}_weights", rest)
