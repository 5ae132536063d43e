"""Rewriting a network into one that computes the same and is faster on a CPU.

``optimize(net, example)`` traces a hybrid block into MXNet's graph, lets each of ``REWRITES`` look
at its nodes with the shapes that the example gives them, and returns a block over the new graph.
The parameters are the same objects, so training one trains the other, and the outputs agree to
rounding: every rewrite is an identity, not an approximation.

>>> fast = optimize(net, nd.zeros((4, 3, 240, 240)))            # doctest: +SKIP
>>> print(fast.report)                                          # doctest: +SKIP
taps removed: 1 (a 3 x 3 convolution dilated by 36 sees only padding at 30 x 30, ...)

When to use it: on a CPU, with samples of one shape. What it costs: a trace and a comparison of
both networks' outputs, once. Samples of another shape go through the network as it was.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable
from dataclasses import dataclass, field

import mxnet as mx
from mxnet import autograd, gluon, nd

from mxopt.errors import PlanError

TOLERANCE = 1e-4
Output = tuple  # (node number, which of its outputs)


@dataclass
class Graph:
    """A graph under construction: nodes as MXNet's JSON has them, in topological order."""

    nodes: list[dict] = field(default_factory=list)

    def add(self, op: str, name: str, *inputs: Output, **attributes) -> Output:
        """Append a node and return its first output; attributes are written as MXNet reads them."""
        attributes = {key: str(value) for key, value in attributes.items()}
        links = [[number, output, 0] for number, output in inputs]
        self.nodes.append({"op": op, "name": name, "attrs": attributes, "inputs": links})
        return len(self.nodes) - 1, 0


@dataclass(frozen=True)
class Node:
    """A node of the traced graph: its attributes as Python values, and its inputs' shapes."""

    op: str
    name: str
    attributes: dict
    inputs: list[Output]
    shapes: list[tuple]


class Optimized(gluon.HybridBlock):
    """What :func:`optimize` returns; takes and returns what the network does.

    Attributes:
        original: the network, whose parameters these are.
        changes: for each rewrite that applied, the nodes it changed, in words.
    """

    def __init__(self, original, rewritten, shapes, changes, **kwargs):
        super().__init__(**kwargs)
        self.original, self.rewritten = original, rewritten
        self.changes, self._shapes = changes, shapes

    @property
    def report(self) -> str:
        """What was changed, a line for each kind of rewrite."""
        lines = [f"{name}: {len(found)} ({found[0]})" for name, found in self.changes.items()]
        return "\n".join(lines) or "nothing to change"

    def forward(self, *inputs):
        """Compute with the new graph, or with the old one if the samples' shapes are others."""
        same = [x.shape[1:] for x in inputs] == self._shapes
        return (self.rewritten if same else self.original)(*inputs)


def optimize(net: gluon.HybridBlock, *example: nd.NDArray, rewrites=None) -> Optimized:
    """Return a network that computes the same with the same parameters.

    Args:
        net: initialised, and a hybrid block down to its leaves.
        example: inputs of the shapes that will come; only their number of samples may change.
        rewrites: names out of ``REWRITES``; all of them if not given.

    Raises:
        PlanError: there is no such rewrite; the network cannot be traced; or the outputs of both
            differ by more than 1e-4 of the greatest, which would be a fault of a rewrite.
    """
    chosen = list(REWRITES if rewrites is None else rewrites)
    for name in chosen:
        if name not in REWRITES:
            raise PlanError(f"no rewrite is called {name!r}; there are {', '.join(REWRITES)}")
    with autograd.predict_mode():
        before = _flat(net(*example))  # also completes parameters whose shape was unknown
    inputs = [mx.sym.var(f"input{n}", dtype=array.dtype) for n, array in enumerate(example)]
    try:
        traced = mx.sym.Group(_flat(net(*inputs)))
    except (mx.MXNetError, AttributeError, TypeError) as error:
        raise PlanError(f"{type(net).__name__} cannot be traced as a graph: {error}") from None
    shapes = {symbol.name: array.shape for symbol, array in zip(inputs, example)}
    graph, changes = rewrite(traced, shapes, [REWRITES[name] for name in chosen])
    block = gluon.SymbolBlock(graph, inputs, params=net.collect_params())
    optimized = Optimized(net, block, [array.shape[1:] for array in example], changes)
    with autograd.predict_mode():
        after = _flat(optimized(*example))
    for old, new in zip(before, after):
        difference = float((old - new).abs().max().asscalar())
        if not difference <= TOLERANCE * max(1.0, float(old.abs().max().asscalar())):
            raise PlanError(
                f"the rewritten {type(net).__name__} differs by {difference:.2g}; leave out "
                f"rewrites ({', '.join(chosen)}) until it does not"
            )
    return optimized


def rewrite(symbol, shapes: dict[str, tuple], rewrites: list[Callable]):
    """Return the symbol rebuilt, and the changes, ``{kind: [what was done]}``.

    Args:
        symbol: a graph; ``shapes`` are those of its inputs.
        rewrites: each called as ``rewrite(graph, node)`` with the inputs in the new graph; it adds
            nodes and returns (output, kind, what it did), or None to leave the node as it is.
    """
    source, known = json.loads(symbol.tojson()), _shapes(symbol, shapes)
    new, moved, changes = Graph(), {}, {}

    def place(link) -> Output:
        number, output = moved[link[0]]
        return number, link[1] if output is None else output

    for raw in source["nodes"]:
        links = [place(link) for link in raw["inputs"]]
        attributes = {name: _value(text) for name, text in raw.get("attrs", {}).items()}
        seen = [known.get(source["nodes"][link[0]]["name"]) for link in raw["inputs"]]
        node = Node(raw["op"], raw["name"], attributes, links, seen)
        done = next(filter(None, (change(new, node) for change in rewrites)), None)
        if done:
            output, kind, what = done
            changes.setdefault(kind, []).append(what)
        else:
            new.nodes.append({**raw, "inputs": [[*link, 0] for link in links]})
            output = len(new.nodes) - 1, None
        moved[len(moved)] = output
    variables = [number for number, node in enumerate(new.nodes) if node["op"] == "null"]
    heads = [[*place(head), 0] for head in source["heads"]]
    text = {"nodes": new.nodes, "arg_nodes": variables, "heads": heads,
            "attrs": source.get("attrs", {})}  # fmt: skip
    return mx.sym.load_json(json.dumps(text)), changes


def unseen_taps(graph: Graph, node: Node):
    """Leave out the taps of a dilated convolution that see only padding, wholly or in part.

    With a side of n, a 3 x 3 kernel dilated by d touches the n - d outermost places of each side
    with its outer taps, and nothing beyond. So the convolution is the sum of nine 1 x 1 ones, each
    over that part of the image that its tap sees: n + 4 d (n - d) / n ... in place of 9 n n.
    """
    if node.op != "Convolution" or node.shapes[0] is None or len(node.shapes[0]) != 4:
        return None
    own, sides = node.attributes, node.shapes[0][2:]
    dilation, group = own.get("dilate", (1, 1)), own.get("num_group", 1)
    plain = own["kernel"] == (3, 3) and own.get("stride", (1, 1)) == (1, 1) and group == 1
    if not plain or own.get("pad") != dilation or not own.get("no_bias", False):
        return None
    share = _seen(sides[0], dilation[0]) * _seen(sides[1], dilation[1])
    if share > WORTH:
        return None
    data, weight = node.inputs
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
            part = graph.add("Convolution", name, seen, tap, kernel=(1, 1), no_bias=True,
                             num_filter=own["num_filter"])  # fmt: skip
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


# Below this share of its work a convolution is taken apart.
WORTH = 0.6
REWRITES = {"taps": unseen_taps}


def _seen(side: int, dilation: int) -> float:
    """Return the share of a 3-tap filter's work along a side that sees the image."""
    return (side + 2 * max(0, side - dilation)) / (3 * side)


def _range(side: int, offset: int) -> tuple[int, int, int]:
    """Return which places a tap reads (begin, end), and the first place that it writes."""
    return max(0, offset), side + min(0, offset), max(0, -offset)


def _shapes(symbol, inputs: dict[str, tuple]) -> dict[str, tuple]:
    """Return the shape of every node's first output, by the node's name."""
    internals = symbol.get_internals()
    _, shapes, _ = internals.infer_shape(**inputs)
    found = {}
    for output, shape in zip(internals.list_outputs(), shapes):
        found.setdefault(output.removesuffix("_output"), shape)
    return found


def _value(text: str):
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _flat(output) -> list:
    return list(output) if isinstance(output, (list, tuple)) else [output]
