"""Dense layers whose weights are split over the columns of a mesh of devices.

The rows of a mesh share the batch (data parallelism), its columns share the weights (model
parallelism). Two layers in a row need one exchange: the first is split by outputs
(:class:`ColumnDense`), each device applies the activation to its part, and the second is split by
inputs (:class:`RowDense`), so that only its sums have to be added up (Shoeybi et al.,
"Megatron-LM", 2019, section 3).

MXNet records copies between devices, so gradients return the same way. One ``gluon.Trainer``
refuses parameters on different devices: :func:`trainers` makes one for each column.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mxnet import autograd, gluon, nd

from mxopt.core.errors import PlanError


class Mesh:
    """Devices in rows and columns.

    Args:
        contexts: the devices of each row; all rows are equally long.

    Attributes:
        contexts: as above.
        rows: number of rows.
        columns: number of columns.

    Raises:
        PlanError: there is no device, or rows differ in length.
    """

    def __init__(self, contexts: Sequence[Sequence]):
        self.contexts = [list(row) for row in contexts]
        self.rows = len(self.contexts)
        lengths = {len(row) for row in self.contexts}
        if len(lengths) != 1 or not self.contexts[0]:
            raise PlanError(
                f"rows of {sorted(lengths)} devices are no mesh; make them equally long"
            )
        self.columns = lengths.pop()

    def column(self, number: int) -> list:
        """Return the devices of a column, one of each row.

        Args:
            number: number of the column, from 0.
        """
        return [row[number] for row in self.contexts]

    def row_of(self, array: nd.NDArray) -> list:
        """Return the devices of the row that an array is in.

        Args:
            array: an array on one of the mesh's devices.

        Raises:
            PlanError: it is on another device.
        """
        for row in self.contexts:
            if array.context in row:
                return row
        raise PlanError(f"an array on {array.context} is on no device of the mesh")


class ColumnDense(gluon.Block):
    """A dense layer split by its outputs: each device has all inputs and some of the units.

    Takes (samples, in_units) on the first device of a row. Returns (samples, units) on that device,
    or with ``gather=False`` one array (samples, units / columns) on each device of the row.

    Args:
        mesh: the devices.
        units: number of outputs.
        in_units: number of inputs.
        activation: as for ``nn.Dense``.
        use_bias: as for ``nn.Dense``.
        gather: whether the parts are joined.

    Raises:
        PlanError: the units cannot be divided among the columns.
    """

    def __init__(
        self, mesh: Mesh, units: int, in_units: int, activation=None, use_bias=True, gather=True
    ):
        super().__init__()
        each = _divided(units, mesh.columns, "units")
        self._mesh, self._gather = mesh, gather
        self.parts = []
        for column in range(mesh.columns):
            part = gluon.nn.Dense(
                each, activation=activation, use_bias=use_bias, in_units=in_units, flatten=False
            )
            self.register_child(part, str(column))
            self.parts.append(part)

    def forward(self, x):
        """Return the output, or its parts."""
        row = self._mesh.row_of(x)
        found = [part(x.as_in_context(device)) for part, device in zip(self.parts, row)]
        if not self._gather:
            return found
        return nd.concat(*(part.as_in_context(row[0]) for part in found), dim=-1)


class RowDense(gluon.Block):
    """A dense layer split by its inputs: each device has some inputs and all units.

    Takes (samples, in_units) on the first device of a row, or the parts that a
    :class:`ColumnDense` with ``gather=False`` returns. Returns (samples, units) on the first device
    of the row, the sum of all parts.

    Args:
        mesh: the devices.
        units: number of outputs.
        in_units: number of inputs.
        use_bias: whether there is a bias; the first column has it.

    Raises:
        PlanError: the inputs cannot be divided among the columns.
    """

    def __init__(self, mesh: Mesh, units: int, in_units: int, use_bias=True):
        super().__init__()
        each = _divided(in_units, mesh.columns, "in_units")
        self._mesh = mesh
        self.parts = []
        for column in range(mesh.columns):
            part = gluon.nn.Dense(
                units, use_bias=use_bias and column == 0, in_units=each, flatten=False
            )
            self.register_child(part, str(column))
            self.parts.append(part)

    def forward(self, x):
        """Return the output on the first device of the row."""
        if isinstance(x, nd.NDArray):
            row = self._mesh.row_of(x)
            x = nd.split(x, self._mesh.columns, axis=-1) if len(row) > 1 else [x]
            x = [part.as_in_context(device) for part, device in zip(x, row)]
        row = self._mesh.row_of(x[0])
        total, *others = (part(own).as_in_context(row[0]) for part, own in zip(self.parts, x))
        for other in others:
            total = total + other
        return total


def split(mesh: Mesh, dense: gluon.nn.Dense, axis: int | None, gather: bool = True) -> gluon.Block:
    """Return a dense layer with the weights of another one, split over a mesh.

    Args:
        mesh: the devices.
        dense: an initialised layer; it is not changed.
        axis: axis of its weight (units, in_units) that is split: 0 for :class:`ColumnDense`, 1 for
            :class:`RowDense`, None for a layer that the first column has alone.
        gather: as for :class:`ColumnDense`.

    Raises:
        PlanError: the axis cannot be divided among the columns.
    """
    context = dense.weight.list_ctx()[0]
    weight = dense.weight.data(context)
    bias = dense.bias.data(context) if dense.bias is not None else None
    units, inputs = weight.shape
    activation = dense.act and dense.act._act_type
    if axis is None:
        mesh = Mesh([row[:1] for row in mesh.contexts])
    if axis == 1:
        if activation:
            raise PlanError("a layer split by its inputs cannot have an activation in every part")
        found = RowDense(mesh, units, inputs, bias is not None)
    else:
        found = ColumnDense(mesh, units, inputs, activation, bias is not None, gather)
    for column, part in enumerate(found.parts):
        part.initialize(ctx=mesh.column(column))
        own = _part(weight, axis or 0, column, mesh.columns)
        part.weight.set_data(own)
        if part.bias is not None:
            part.bias.set_data(_part(bias, 0, column, mesh.columns) if axis != 1 else bias)
    return found


def trainers(net: gluon.Block, optimizer: str, options: dict) -> list[gluon.Trainer]:
    """Return a trainer for the parameters of each column.

    Args:
        net: a network of split layers, initialised.
        optimizer: name of MXNet's optimizer.
        options: arguments of the optimizer.
    """
    groups: dict[tuple, dict] = {}
    for name, parameter in net.collect_params().items():
        groups.setdefault(tuple(parameter.list_ctx()), {})[name] = parameter
    return [gluon.Trainer(group, optimizer, dict(options)) for group in groups.values()]


def gradients(
    mesh: Mesh, net: Callable, loss: Callable, x: nd.NDArray, y: nd.NDArray
) -> nd.NDArray:
    """Compute the gradients of a batch, each row of the mesh those of its share of it.

    A trainer's ``step`` adds up the rows.

    Args:
        mesh: the devices.
        net: a network of split layers.
        loss: ``loss(output, labels)`` -> (samples,).
        x: the batch, (samples, ...).
        y: its labels, (samples, ...).

    Returns:
        The loss of every sample, (samples,), on the mesh's first device.
    """
    shares = [gluon.utils.split_data(array, mesh.rows, even_split=False) for array in (x, y)]
    losses = []
    with autograd.record():
        for own_x, own_y, row in zip(*shares, mesh.contexts):
            output = net(own_x.as_in_context(row[0]))
            losses.append(loss(output, own_y.as_in_context(output.context)))
    autograd.backward(losses)
    return nd.concat(*(own.as_in_context(mesh.contexts[0][0]) for own in losses), dim=0)


def _divided(size: int, columns: int, name: str) -> int:
    if size % columns:
        raise PlanError(f"{name}={size} cannot be divided among {columns} columns of the mesh")
    return size // columns


def _part(array, axis, column, columns):
    size = array.shape[axis] // columns
    return array.slice_axis(axis, column * size, (column + 1) * size)
