"""A TensorFlow Lite file as it is built: tensors, operators, and their serialisation.

The package ``tflite`` is generated from TensorFlow's schema and has a function for each field; the
fields' meanings are those of ``tensorflow/lite/schema/schema.fbs``, version 3.
"""

from __future__ import annotations

import flatbuffers
import numpy as np
import tflite

SCHEMA_VERSION, IDENTIFIER = 3, b"TFL3"
# XNNPACK, which computes most operators, asks for constants at multiples of 16 bytes.
_ALIGNED = 16
_DTYPES = {"float32": tflite.TensorType.FLOAT32, "int32": tflite.TensorType.INT32}


class File:
    """Tensors and operators of one graph, in the order in which they are computed."""

    def __init__(self):
        self._tensors: list[tuple] = []  # (name, shape, dtype, buffer)
        self._buffers: list[bytes] = [b""]  # the first one is for tensors without values
        self._operators: list[tuple] = []  # (kind, inputs, outputs, class of options, options)

    def tensor(self, name: str, shape: tuple, dtype: str = "float32") -> int:
        """Add a tensor that is computed, and return its number.

        Args:
            name: its name.
            shape: its shape; a first dimension of -1 is any number of samples.
            dtype: ``float32`` or ``int32``.
        """
        self._tensors.append((name, shape, dtype, 0))
        return len(self._tensors) - 1

    def constant(self, name: str, values) -> int:
        """Add a tensor with these values, and return its number.

        Args:
            name: its name.
            values: array of float32 or int32.
        """
        values = np.ascontiguousarray(values)
        self._buffers.append(values.tobytes())
        self._tensors.append((name, values.shape, values.dtype.name, len(self._buffers) - 1))
        return len(self._tensors) - 1

    def operator(self, kind: str, inputs: list[int], output: int, options: str = "", **fields):
        """Add an operator.

        Args:
            kind: name in ``tflite.BuiltinOperator``.
            inputs: numbers of its inputs.
            output: number of its output.
            options: class of its options, such as ``Conv2DOptions``.
            **fields: their values.
        """
        self._operators.append((kind, inputs, [output], options, fields))

    def content(self, inputs: list[int], outputs: list[int]) -> bytes:
        """Return the bytes of the file.

        Args:
            inputs: numbers of the graph's inputs.
            outputs: numbers of its outputs.
        """
        builder = flatbuffers.Builder(sum(map(len, self._buffers)) + 65_536)
        buffers = [self._buffer(builder, content) for content in self._buffers]
        kinds = list(dict.fromkeys(kind for kind, *_ in self._operators))
        codes = [_code(builder, kind) for kind in kinds]
        tensors = [_tensor(builder, *tensor) for tensor in self._tensors]
        operators = [_operator(builder, kinds, *operator) for operator in self._operators]
        graph = _table(
            builder, "SubGraph", Tensors=_offsets(builder, tensors),
            Inputs=_integers(builder, inputs), Outputs=_integers(builder, outputs),
            Operators=_offsets(builder, operators), Name=builder.CreateString("main"),
        )  # fmt: skip
        model = _table(
            builder, "Model", Version=SCHEMA_VERSION, OperatorCodes=_offsets(builder, codes),
            Subgraphs=_offsets(builder, [graph]), Buffers=_offsets(builder, buffers),
            Description=builder.CreateString("written by mxopt"),
        )  # fmt: skip
        builder.Finish(model, IDENTIFIER)
        return bytes(builder.Output())

    @staticmethod
    def _buffer(builder, content: bytes) -> int:
        if not content:
            return _table(builder, "Buffer")
        builder.Prep(_ALIGNED, len(content))
        return _table(builder, "Buffer", Data=builder.CreateByteVector(content))


def _table(builder, kind: str, **fields) -> int:
    """Write a table with the generated functions of its kind, and return its offset."""
    getattr(tflite, f"{kind}Start")(builder)
    for name, value in fields.items():
        getattr(tflite, f"{kind}Add{name}")(builder, value)
    return getattr(tflite, f"{kind}End")(builder)


def _code(builder, kind: str) -> int:
    number = getattr(tflite.BuiltinOperator, kind)
    # Readers older than the field BuiltinCode know the first 127 operators by this one.
    return _table(builder, "OperatorCode", DeprecatedBuiltinCode=min(number, 127),
                  BuiltinCode=number, Version=1)  # fmt: skip


def _tensor(builder, name: str, shape: tuple, dtype: str, buffer: int) -> int:
    fields = {
        "Shape": _integers(builder, [abs(length) for length in shape]),
        "Type": _DTYPES[dtype],
        "Buffer": buffer,
        "Name": builder.CreateString(name),
    }
    if -1 in shape:
        fields["ShapeSignature"] = _integers(builder, shape)
    return _table(builder, "Tensor", **fields)


def _operator(builder, kinds, kind, inputs, outputs, options, values) -> int:
    fields = {
        "OpcodeIndex": kinds.index(kind),
        "Inputs": _integers(builder, inputs),
        "Outputs": _integers(builder, outputs),
    }
    if options:
        fields["BuiltinOptionsType"] = getattr(tflite.BuiltinOptions, options)
        fields["BuiltinOptions"] = _table(builder, options, **values)
    return _table(builder, "Operator", **fields)


def _integers(builder, numbers) -> int:
    return builder.CreateNumpyVector(np.array(numbers, "int32"))


def _offsets(builder, offsets: list[int]) -> int:
    builder.StartVector(4, len(offsets), 4)
    for offset in reversed(offsets):
        builder.PrependUOffsetTRelative(offset)
    return builder.EndVector()
