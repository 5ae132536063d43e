"""The graph of a network, as nodes that a rewrite can look at and add to."""

from __future__ import annotations

import ast
import json
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

import mxnet as mx

Output = tuple  # (node number, which of its outputs)


@dataclass
class Graph:
    """A graph under construction: nodes as MXNet's JSON has them, in topological order.

    Attributes:
        shapes: of the outputs that the traced graph had too.
        constants: arrays that the graph reads besides the parameters, by name: (shape, value).
    """

    nodes: list[dict] = field(default_factory=list)
    shapes: dict[Output, tuple] = field(default_factory=dict)
    constants: dict[str, tuple] = field(default_factory=dict)
    _places: dict[str, Output] = field(default_factory=dict)

    def constant(self, name: str, size: int, value: float) -> Output:
        """Return a constant (size,) array of one value."""
        name = f"{name}_{size}"
        if name not in self.constants:
            self.constants[name] = (size,), value
            self._places[name] = self.add("null", name)
        return self._places[name]

    def add(self, op: str, name: str, *inputs: Output, **attributes) -> Output:
        """Append a node and return its first output; attributes are written as MXNet reads them."""
        attributes = {key: str(value) for key, value in attributes.items()}
        links = [[number, output, 0] for number, output in inputs]
        self.nodes.append({"op": op, "name": name, "attrs": attributes, "inputs": links})
        return len(self.nodes) - 1, 0


@dataclass(frozen=True)
class Node:
    """A node of the traced graph.

    Attributes:
        op, name: as in MXNet's JSON; ``attributes`` as Python values.
        inputs: in the new graph.
        alone: whether nothing but this node reads its first input.
        readers: the nodes of the traced graph that read its first output.
    """

    op: str
    name: str
    attributes: dict
    inputs: list[Output]
    alone: bool
    readers: list[dict]


def rewrite(symbol, shapes: dict[str, tuple], rewrites: list[Callable]):
    """Return the symbol rebuilt, its constants, and the changes, ``{kind: [what was done]}``.

    Args:
        symbol: a graph; ``shapes`` are those of its inputs.
        rewrites: each called as ``rewrite(graph, node)`` with the inputs in the new graph; it adds
            nodes and returns (output, kind, what it did), or None to leave the node as it is.
    """
    source, known = json.loads(symbol.tojson()), _shapes(symbol, shapes)
    new, moved, changes = Graph(), [], {}
    readers = defaultdict(list)
    for raw in [*source["nodes"], {"op": "output", "inputs": source["heads"]}]:
        for link in raw["inputs"]:
            readers[tuple(link[:2])].append(raw)

    def place(link) -> Output:
        number, output = moved[link[0]]
        return number, link[1] if output is None else output

    for number, raw in enumerate(source["nodes"]):
        links = [place(link) for link in raw["inputs"]]
        attributes = {name: _value(text) for name, text in raw.get("attrs", {}).items()}
        alone = bool(raw["inputs"]) and len(readers[tuple(raw["inputs"][0][:2])]) == 1
        node = Node(raw["op"], raw["name"], attributes, links, alone, readers[number, 0])
        done = next(filter(None, (change(new, node) for change in rewrites)), None)
        if done:
            output, kind, what = done
            changes.setdefault(kind, []).append(what)
        else:
            new.nodes.append({**raw, "inputs": [[*link, 0] for link in links]})
            output = len(new.nodes) - 1, None
        moved.append(output)
        new.shapes[output[0], 0] = known.get(raw["name"])
    variables = [number for number, node in enumerate(new.nodes) if node["op"] == "null"]
    heads = [[*place(head), 0] for head in source["heads"]]
    text = {"nodes": new.nodes, "arg_nodes": variables, "heads": heads,
            "attrs": source.get("attrs", {})}  # fmt: skip
    return mx.sym.load_json(json.dumps(text)), new.constants, changes


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
