"""The graph of a network as a list of nodes, which rewrites read and extend."""

from __future__ import annotations

import ast
import json
import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

import mxnet as mx
from mxnet import gluon, nd

from mxopt.core.errors import PlanError
from mxopt.kernels.operators import DRAWS

Output = tuple  # (node number, which of its outputs)
KERNEL = "mxopt_"  # what names of the operators of mxopt.kernels begin with
SUMS = ("elemwise_add", "_plus", "_Plus", "_add")  # names of the sum of two arrays


@dataclass
class Graph:
    """A new graph, to which nodes are added.

    Attributes:
        adds: whether gradients may be added to (``grad_req="add"``), which operators of a library
            cannot: MXNet does not tell them to, and they would write over what is there.
        nodes: nodes as in MXNet's JSON, in topological order.
        shapes: shapes of the outputs that the traced graph has too.
        kept: numbers here of those nodes of the traced graph that are kept.
        changed: outputs here of those that are not, by (node number, which of its outputs). The
            change of a node may also set those of later ones.
    """

    adds: bool = True
    nodes: list[dict] = field(default_factory=list)
    shapes: dict[Output, tuple] = field(default_factory=dict)
    kept: dict[int, int] = field(default_factory=dict)
    changed: dict[Output, Output] = field(default_factory=dict)
    _constants: dict[tuple | str, Output] = field(default_factory=dict)
    _once: dict[tuple, Output] = field(default_factory=dict)

    def add(self, op: str, name: str, *inputs: Output, **attributes) -> Output:
        """Append a node and return its first output.

        Args:
            op: name of MXNet's operator.
            name: name of the node.
            *inputs: outputs of other nodes.
            **attributes: parameters of the operator, converted to strings as MXNet reads them.
        """
        attributes = {key: str(value) for key, value in attributes.items()}
        links = [[number, output, 0] for number, output in inputs]
        self.nodes.append({"op": op, "name": name, "attrs": attributes, "inputs": links})
        return len(self.nodes) - 1, 0

    def once(self, op: str, data: Output, **attributes) -> Output:
        """Return an operator's output; the same node for the same arguments.

        Args:
            op: name of MXNet's operator.
            data: its input.
            **attributes: its parameters.
        """
        key = (op, data, *attributes.items())
        if key not in self._once:
            name = f"{self.nodes[data[0]]['name']}_{op.lower()}{data[1]}"
            self._once[key] = self.add(op, name, data, **attributes)
        return self._once[key]

    def for_kernel(self, parameter: Output) -> Output:
        """Return a parameter for an operator of :mod:`mxopt.kernels`.

        Where gradients may be added to it is a copy, whose own backward pass adds.

        Args:
            parameter: the variable.
        """
        if not self.adds:
            return parameter
        name = f"{self.nodes[parameter[0]]['name']}_copy{len(self.nodes)}"
        return self.add("_copy", name, parameter)

    def place(self, output) -> Output:
        """Return an output of the traced graph in this one.

        Args:
            output: the number of a node that was kept or changed, and which of its outputs.
        """
        number, which = output[:2]
        return self.changed.get((number, which)) or (self.kept[number], which)

    def full(self, shape: tuple, value: float) -> Output:
        """Return a constant float32 array; the same node for the same arguments.

        Args:
            shape: shape of the array.
            value: value of all its elements.
        """
        if (shape, value) not in self._constants:
            name = f"full_{'x'.join(map(str, shape))}_{value:g}"
            self._constants[shape, value] = self.add("_full", name, shape=shape, value=value,
                                                     dtype="float32")  # fmt: skip
        return self._constants[shape, value]

    def draws(self) -> Output:
        """Return what tells operators of :mod:`mxopt.kernels` whether MXNet trains."""
        if "draws" not in self._constants:
            ones = self.full((DRAWS,), 1)
            drawn = self.add("Dropout", "draws_dropout", ones, p=0.5)
            self._constants["draws"] = self.add("BlockGrad", "draws", drawn)
        return self._constants["draws"]


@dataclass(frozen=True)
class Traced:
    """The graph that is rewritten.

    Attributes:
        nodes: nodes as in MXNet's JSON.
        readers: for each output, its readers as (node, index of the node's input). The graph's
            own outputs are read by a node ``output``.
    """

    nodes: list[dict]
    readers: dict[Output, list[tuple[dict, int]]]


@dataclass(frozen=True)
class Node:
    """A node of the traced graph.

    Attributes:
        op: name of its operator.
        name: name of the node.
        attributes: parameters of the operator, as Python values.
        inputs: its inputs in the new graph.
        sources: its inputs in the traced graph.
        number: its index in the traced graph.
        traced: the traced graph.
    """

    op: str
    name: str
    attributes: dict
    inputs: list[Output]
    sources: list[Output]
    number: int
    traced: Traced


def trace(net: gluon.HybridBlock, *example: nd.NDArray) -> tuple:
    """Return a network's graph, the variables of its inputs, and the shapes of all variables.

    Args:
        net: an initialised network of hybrid blocks that has computed an output, which infers the
            shapes of its parameters.
        *example: inputs with the shapes of later ones.

    Raises:
        PlanError: the network cannot be traced.
    """
    inputs = [mx.sym.var(f"input{n}", dtype=array.dtype) for n, array in enumerate(example)]
    try:
        graph = mx.sym.Group(flat(net(*inputs)))
    except (mx.MXNetError, AttributeError, TypeError) as error:
        raise PlanError(f"{type(net).__name__} cannot be traced as a graph: {error}") from None
    shapes = {name: parameter.shape for name, parameter in net.collect_params().items()}
    shapes.update((symbol.name, array.shape) for symbol, array in zip(inputs, example))
    return graph, inputs, shapes


def flat(output) -> list:
    """Return a network's outputs as a list.

    Args:
        output: one array, or several.
    """
    return list(output) if isinstance(output, (list, tuple)) else [output]


def rewrite(symbol, shapes: dict[str, tuple], change: Callable, adds: bool = True):
    """Return the rewritten symbol, and the changes as ``{kind: [description, ...]}``.

    Args:
        symbol: the graph to rewrite.
        shapes: shapes of its inputs and parameters, by name.
        change: function called as ``change(graph, node)`` for every node in order. It adds nodes
            and returns (output, kind, description), or returns None to keep the node.
        adds: whether gradients of parameters may be added to.
    """
    source, known = json.loads(symbol.tojson()), output_shapes(symbol, shapes)
    new, changes = Graph(adds), {}
    traced = Traced(source["nodes"], defaultdict(list))
    for raw in [*source["nodes"], {"op": "output", "inputs": source["heads"]}]:
        for slot, link in enumerate(raw["inputs"]):
            traced.readers[tuple(link[:2])].append((raw, slot))

    # Variables first, so that a change can use those that only later nodes read.
    numbers = sorted(range(len(source["nodes"])), key=lambda n: source["nodes"][n]["op"] != "null")
    for number in numbers:
        raw = source["nodes"][number]
        links = [new.place(link) for link in raw["inputs"]]
        sources = [tuple(link[:2]) for link in raw["inputs"]]
        node = Node(raw["op"], raw["name"], attributes(raw), links, sources, number, traced)
        done = change(new, node)
        if done:
            new.changed[number, 0], kind, what = done
            changes.setdefault(kind, []).append(what)
        else:
            new.nodes.append({**raw, "inputs": [[*link, 0] for link in links]})
            new.kept[number] = len(new.nodes) - 1
        of_node = known.get(raw["name"], [None])
        for which, shape in enumerate(of_node[:1] if done else of_node):
            new.shapes[new.place((number, which))] = shape
    variables = [number for number, node in enumerate(new.nodes) if node["op"] == "null"]
    heads = [[*new.place(head), 0] for head in source["heads"]]
    text = {"nodes": new.nodes, "arg_nodes": variables, "heads": heads,
            "attrs": source.get("attrs", {})}  # fmt: skip
    return mx.sym.load_json(json.dumps(text)), changes


def output_shapes(symbol, inputs: dict[str, tuple]) -> dict[str, list[tuple]]:
    """Return the shapes of every node's outputs, by the node's name.

    Args:
        symbol: the graph.
        inputs: shapes of its inputs and parameters, by name.
    """
    internals = symbol.get_internals()
    own = {name: inputs[name] for name in internals.list_arguments() if name in inputs}
    _, shapes, _ = internals.infer_shape(**own)
    found = defaultdict(list)
    for output, shape in zip(internals.list_outputs(), shapes):
        # Outputs of a node that has several are numbered.
        found[re.sub(r"_output\d*$", "", output)].append(shape)
    return found


def attributes(node: dict) -> dict:
    """Return the parameters of a node's operator, as Python values.

    Args:
        node: node as in MXNet's JSON.
    """
    return {name: value(text) for name, text in node.get("attrs", {}).items()}


def is_relu(op: str, own: dict) -> bool:
    """Return whether an operator is ReLU.

    Args:
        op: its name.
        own: its parameters.
    """
    return op == "relu" or (op == "Activation" and own.get("act_type") == "relu")


def value(text: str):
    """Return an attribute as a Python value; the string itself if it is not a literal."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
