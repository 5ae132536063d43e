"""Read a quantised TensorFlow Lite file: operators, and tensors turned back into float32.

    >>> operators = read("deeplabv3_mnv2_pascal_quant.tflite")        # doctest: +SKIP
    >>> operators[0].name, operators[0].options["stride"]             # doctest: +SKIP
    ('CONV_2D', (2, 2))
    >>> operators[0].inputs[1].values().shape                         # doctest: +SKIP
    (32, 3, 3, 3)

The file is a FlatBuffer (see ``flatbuffer`` beside this). Of TensorFlow Lite's schema only
few fields are needed, and a schema never renumbers a field, so their numbers are written out here:
https://github.com/tensorflow/tensorflow/blob/v2.18.0/tensorflow/compiler/mlir/lite/schema/schema.fbs

A damaged file ends in one ``DataError`` that names it, or reads as other numbers: that the bytes
are the published ones is for a SHA-256 to say (:func:`mxopt.data.verify`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mxopt.core.errors import DataError
from mxopt.recipes.segmentation.flatbuffer import LEADS_ASTRAY, Damaged, Record

IDENTIFIER, SCHEMA_VERSION = b"TFL3", 3

# Numbers of the schema's enumerations, as far as they are used here.
_OPERATORS = {
    0: "ADD",
    1: "AVERAGE_POOL_2D",
    2: "CONCATENATION",
    3: "CONV_2D",
    4: "DEPTHWISE_CONV_2D",
    23: "RESIZE_BILINEAR",
    56: "ARG_MAX",
    114: "QUANTIZE",
}
_TYPES = {0: "float32", 2: "int32", 3: "uint8", 4: "int64"}
_ACTIVATIONS = {0: "none", 1: "relu", 3: "relu6"}
_PADDINGS = {0: "same", 1: "valid"}


@dataclass(frozen=True)
class Tensor:
    """One tensor of the file.

    Attributes:
        name: as the file has it; not unique.
        shape: as the file has it: (samples, height, width, channels) of an activation, (output,
            height, width, input) of a convolution's weight, (1, height, width, channels) of a
            depthwise one's.
        scale, zero_point: a stored number q stands for ``scale * (q - zero_point)``; ``None`` for
            a tensor that is not quantised.
        stored: the numbers in the file, read-only, or ``None`` if they are computed at run time.
    """

    name: str
    shape: tuple[int, ...]
    scale: float | None
    zero_point: int | None
    stored: np.ndarray | None

    def values(self) -> np.ndarray:
        """Return the numbers that ``stored`` stands for: float32, or as stored if not quantised.

        Raises ``DataError`` if nothing is stored.
        """
        if self.stored is None:
            raise DataError(f"tensor {self.name!r} has no numbers in the file")
        if self.scale is None:
            return self.stored
        centred = self.stored.astype(np.float64) - self.zero_point
        return (centred * self.scale).astype(np.float32)


@dataclass(frozen=True)
class Operator:
    """One operator of the file, in the order in which they are computed.

    Attributes:
        name: the schema's name, such as ``CONV_2D``, or ``operator 97`` for one not known here.
        inputs, outputs: its tensors; of a convolution the input, the weight and the bias.
        options: of convolutions ``stride`` and ``dilation`` (vertical, horizontal), ``padding``
            (``same`` or ``valid``) and ``activation`` (``none``, ``relu``, ``relu6``); else empty.
    """

    name: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    options: dict


def read(path: str | Path) -> list[Operator]:
    """Return the operators of a TensorFlow Lite file with one subgraph.

    Raises:
        DataError: the file is missing, not TensorFlow Lite of schema version 3, cut off or
            damaged, or quantised by channel; the message names it.
    """
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise DataError(f"The weights {path} cannot be read ({error.strerror}).") from error
    try:
        return _operators(content)
    except Damaged as damage:
        reason = str(damage)
    except LEADS_ASTRAY as error:
        reason = f"an offset leads astray ({error})"
    raise DataError(
        f"The weights {path} are not a usable TensorFlow Lite file: {reason}; fetch them again."
    )


def _operators(content: bytes) -> list[Operator]:
    if content[4:8] != IDENTIFIER:
        raise Damaged(f"bytes 4 to 7 are {content[4:8]!r}, not {IDENTIFIER!r}")
    model = Record(content, 0).follow(0)
    version = model.number(0, "Uint32")
    if version != SCHEMA_VERSION:
        raise Damaged(f"its schema has version {version}, not {SCHEMA_VERSION}")
    codes, graphs, buffers = (model.records(field) for field in (1, 2, 4))
    if len(graphs) != 1:
        raise Damaged(f"it has {len(graphs)} subgraphs, not 1")
    tensors = graphs[0].records(0)
    known = {}

    def tensor(index: int) -> Tensor:
        if index not in known:
            known[index] = _tensor(_item(tensors, index, "tensor"), buffers)
        return known[index]

    operators = []
    for record in graphs[0].records(3):
        code = _item(codes, record.number(0, "Uint32"), "operator code")
        # The first field is a byte and ran out of numbers; later files use the second one.
        number = max(code.number(0, "Int8"), code.number(3, "Int32"))
        name = _OPERATORS.get(number, f"operator {number}")
        inputs, outputs = (
            # -1 marks an optional tensor that is left out.
            tuple(tensor(index) for index in record.array(field, "int32").tolist() if index != -1)
            for field in (1, 2)
        )
        operators.append(Operator(name, inputs, outputs, _options(name, record)))
    if not operators:
        raise Damaged("it has no operators")
    return operators


def _tensor(record: Record, buffers: list[Record]) -> Tensor:
    name = bytes(record.array(3, "uint8")).decode("utf-8", "replace")
    shape = tuple(record.array(0, "int32").tolist())
    if min(shape, default=0) < 0:
        raise Damaged(f"tensor {name!r} has the shape {shape}")
    scale = zero_point = None
    quantisation = record.record(4)
    if quantisation is not None and len(quantisation.array(2, "float32")):
        scales, zero_points = quantisation.array(2, "float32"), quantisation.array(3, "int64")
        if not len(scales) == len(zero_points) == 1:
            raise Damaged(
                f"tensor {name!r} has {len(scales)} scales and {len(zero_points)} zero points, "
                "and one of each for a whole tensor is what can be read"
            )
        scale, zero_point = float(scales[0]), int(zero_points[0])
        if not (math.isfinite(scale) and scale > 0):
            raise Damaged(f"tensor {name!r} has the scale {scale}")
    stored = _item(buffers, record.number(2, "Uint32"), "buffer").array(0, "uint8")
    if not len(stored):
        return Tensor(name, shape, scale, zero_point, None)
    number = record.number(1, "Int8")
    if number not in _TYPES:
        raise Damaged(f"tensor {name!r} has numbers of type {number}, which cannot be read")
    kind = np.dtype(_TYPES[number]).newbyteorder("<")
    if len(stored) != math.prod(shape) * kind.itemsize:
        raise Damaged(
            f"tensor {name!r} has {len(stored)} bytes, which shape {shape} of {kind.name} is not"
        )
    return Tensor(name, shape, scale, zero_point, stored.view(kind).reshape(shape))


def _options(name: str, record: Record) -> dict:
    if name not in ("CONV_2D", "DEPTHWISE_CONV_2D"):
        return {}
    options = record.record(4)
    if options is None:
        raise Damaged(f"a {name} has no options")
    # A depthwise convolution has its depth multiplier before the activation.
    later = 3 if name == "CONV_2D" else 4
    return {
        "padding": _PADDINGS.get(options.number(0, "Int8")),
        "stride": (options.number(2, "Int32"), options.number(1, "Int32")),
        "activation": _ACTIVATIONS.get(options.number(later, "Int8")),
        "dilation": (
            options.number(later + 2, "Int32", absent=1),
            options.number(later + 1, "Int32", absent=1),
        ),
    }


def _item(items: list, index: int, what: str):
    if not 0 <= index < len(items):
        raise Damaged(f"{what} {index} is missing, there are {len(items)}")
    return items[index]
