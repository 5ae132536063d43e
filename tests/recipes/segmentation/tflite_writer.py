"""Write a small TensorFlow Lite file, so that its reader can be tested without the real one."""

from __future__ import annotations

import flatbuffers
import numpy as np
import tflite


def one_convolution(
    weight, bias, *, depthwise=False, version=3, identifier=b"TFL3", scales=(0.5,), zero_point=3,
    shape=None, weight_buffer=1, operators=1,
) -> bytes:  # fmt: skip
    """Return a file with one convolution of stride (2, 1), dilation (1, 2), SAME and ReLU6.

    ``scales`` and ``zero_point`` are the weight's, ``shape`` replaces the one it has, its numbers
    are in the buffer ``weight_buffer``, and the convolution is listed ``operators`` times.
    """
    builder = flatbuffers.Builder(1024)

    def table(kind, **fields):
        getattr(tflite, f"{kind}Start")(builder)
        for field, value in fields.items():
            getattr(tflite, f"{kind}Add{field}")(builder, value)
        return getattr(tflite, f"{kind}End")(builder)

    def offsets(items):
        builder.StartVector(4, len(items), 4)
        for item in reversed(items):
            builder.PrependUOffsetTRelative(item)
        return builder.EndVector()

    def numbers(values, dtype):
        return builder.CreateNumpyVector(np.asarray(values, dtype))

    def tensor(name, shape, kind, buffer, scales):
        quantisation = table(
            "QuantizationParameters",
            Scale=numbers(scales, "float32"),
            ZeroPoint=numbers([zero_point] * len(scales), "int64"),
        )
        return table(
            "Tensor", Shape=numbers(shape, "int32"), Type=getattr(tflite.TensorType, kind),
            Buffer=buffer, Name=builder.CreateString(name), Quantization=quantisation,
        )  # fmt: skip

    weight, bias = np.asarray(weight, "uint8"), np.asarray(bias, "int32")
    tensors = [
        tensor("input", (1, 8, 8, 3), "UINT8", 0, [0.1]),
        tensor("weight", shape or weight.shape, "UINT8", weight_buffer, scales),
        tensor("bias", bias.shape, "INT32", 2, scales[:1]),
        tensor("output", (1, 4, 4, 2), "UINT8", 0, [0.1]),
    ]
    kind = "DEPTHWISE_CONV_2D" if depthwise else "CONV_2D"
    # A height of 1 in the dilation is the default and left out.
    options = table("DepthwiseConv2DOptions" if depthwise else "Conv2DOptions", StrideH=2,
                    StrideW=1, DilationWFactor=2, FusedActivationFunction=3)  # fmt: skip
    inputs, outputs = numbers([0, 1, 2], "int32"), numbers([3], "int32")
    operator = table("Operator", Inputs=inputs, Outputs=outputs, BuiltinOptions=options)
    tensors, listed = offsets(tensors), offsets([operator] * operators)
    graph = table("SubGraph", Tensors=tensors, Operators=listed)
    code = table("OperatorCode", DeprecatedBuiltinCode=getattr(tflite.BuiltinOperator, kind))
    stored = [numbers(array.ravel().view("uint8"), "uint8") for array in (weight, bias)]
    buffers = [table("Buffer"), *(table("Buffer", Data=array) for array in stored)]
    codes, graphs, buffers = (offsets(items) for items in ([code], [graph], buffers))
    model = table("Model", Version=version, OperatorCodes=codes, Subgraphs=graphs, Buffers=buffers)
    builder.Finish(model, file_identifier=identifier)
    return bytes(builder.Output())
