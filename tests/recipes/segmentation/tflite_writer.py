"""Write a small TensorFlow Lite file, so that its reader can be tested without the real one."""

from __future__ import annotations

import flatbuffers
import numpy as np

TYPES = {"float32": 0, "int32": 2, "uint8": 3}


def one_convolution(
    weight,
    bias,
    *,
    name="CONV_2D",
    scale=0.5,
    zero_point=3,
    version=3,
    identifier=b"TFL3",
    **changes,
) -> bytes:
    """Return a file with one convolution of stride (2, 1), dilation (1, 2), SAME and ReLU6.

    ``changes``: ``scales`` for several in the weight, ``weight_buffer`` for another number of the
    buffer that the weight is in, ``shape`` for another shape of it than the array's, ``operators``
    for how often the convolution is listed.
    """
    builder = flatbuffers.Builder(1024)

    def table(slots):
        builder.StartObject(max(slots) + 1)
        for slot, (kind, value) in slots.items():
            getattr(builder, f"Prepend{kind}Slot")(slot, value, 0)
        return builder.EndObject()

    def offsets(items):
        builder.StartVector(4, len(items), 4)
        for item in reversed(items):
            builder.PrependUOffsetTRelative(item)
        return builder.EndVector()

    def numbers(values, dtype):
        return builder.CreateNumpyVector(np.asarray(values, dtype))

    def tensor(label, shape, kind, buffer, scales):
        quantisation = table(
            {
                2: ("UOffsetTRelative", numbers(scales, "float32")),
                3: ("UOffsetTRelative", numbers([zero_point] * len(scales), "int64")),
            }
        )
        return table(
            {
                0: ("UOffsetTRelative", numbers(shape, "int32")),
                1: ("Int8", TYPES[kind]),
                2: ("Uint32", buffer),
                3: ("UOffsetTRelative", builder.CreateString(label)),
                4: ("UOffsetTRelative", quantisation),
            }
        )

    weight, bias = np.asarray(weight, "uint8"), np.asarray(bias, "int32")
    tensors = [
        tensor("input", (1, 8, 8, 3), "uint8", 0, [0.1]),
        tensor("weight", changes.get("shape", weight.shape), "uint8",
               changes.get("weight_buffer", 1), changes.get("scales", [scale])),
        tensor("bias", bias.shape, "int32", 2, [scale]),
        tensor("output", (1, 4, 4, 2), "uint8", 0, [0.1]),
    ]  # fmt: skip
    later = 3 if name == "CONV_2D" else 4
    # Its width first; a dilation of 1 is the default and left out.
    options = table({1: ("Int32", 1), 2: ("Int32", 2), later: ("Int8", 3), later + 1: ("Int32", 2)})
    operator = table(
        {
            0: ("Uint32", 0),
            1: ("UOffsetTRelative", numbers([0, 1, 2], "int32")),
            2: ("UOffsetTRelative", numbers([3], "int32")),
            4: ("UOffsetTRelative", options),
        }
    )
    graph = table(
        {
            0: ("UOffsetTRelative", offsets(tensors)),
            3: ("UOffsetTRelative", offsets([operator] * changes.get("operators", 1))),
        }
    )
    code = table({0: ("Int8", {"CONV_2D": 3, "DEPTHWISE_CONV_2D": 4}[name])})
    empty = table({0: ("Int8", 0)})
    stored = [numbers(array.ravel().view("uint8"), "uint8") for array in (weight, bias)]
    buffers = [empty, *(table({0: ("UOffsetTRelative", array)}) for array in stored)]
    fields = {1: [code], 2: [graph], 4: buffers}
    fields = {field: ("UOffsetTRelative", offsets(items)) for field, items in fields.items()}
    model = table({0: ("Uint32", version), **fields})
    builder.Finish(model, file_identifier=identifier)
    return bytes(builder.Output())
