"""Parts: a trained network predicts, in float32 and in int8, by MXNet and by ONNX Runtime."""

from __future__ import annotations

import itertools
from pathlib import Path

from benchmarks.beside import outcome
from benchmarks.cases import SERIAL, THREADS
from mxopt import measure, report
from mxopt.core.plan import Plan
from mxopt.kernels import build
from mxopt.measure import Experiment

# ``options`` are those of the workload, and ``plan`` what the network is trained or scored with.
PREDICT = {
    "predict-photograph": {
        "title": "One photograph of 240 px, predicted by DeepLabv3-MobileNetV2",
        "options": {"recipe": "segmentation", "network": "deeplab_mobilenetv2", "size": 240,
                    "times": 200},
        "plan": {"batch_size": 4, "transform_batch": 1},
        "quality": "test_mIoU",
    },
    "predict-garments": {
        "title": "32 images of Fashion-MNIST, predicted by its network",
        "options": {"recipe": "fashion_mnist", "train": True, "limit": 3_200, "batch": 32,
                    "times": 1_000},
        "plan": {
            "optimizer": "adam", "learning_rate": 1e-3, "batch_size": 64,
            "preprocess": "cached", "transform_batch": 1_000,
        },
        "quality": "test_accuracy",
    },
}  # fmt: skip
# The switches of an arm, and its options: the form of the network and what computes it. The first
# has MXNet's defaults but for threads; the last one is measured where the processor has AMX.
ARMS = {
    "int8-parallel-copies": ({}, {"form": "int8-minmax"}),
    "float32": (SERIAL, {"form": "float32"}),
    "fused": (SERIAL, {"form": "fused"}),
    "onnxruntime": (SERIAL, {"form": "float32", "runtime": "onnxruntime"}),
    "onnxruntime-int8": (SERIAL, {"form": "int8-minmax", "runtime": "onnxruntime"}),
    "int8": (SERIAL, {"form": "int8-minmax"}),
    "int8-amx": ({**SERIAL, "onednn": "amx"}, {"form": "int8-minmax"}),
}
PAIRS = [("int8-parallel-copies", "int8"), ("fused", "int8"), ("onnxruntime", "int8"),
         ("int8", "int8-amx")]  # fmt: skip
# The arms in int8, and how many times faster than other arms they should be.
INT8 = ("int8", "int8-amx")
TARGETS = {"float32": 3.0, "onnxruntime-int8": 1.0}
ABOUT = """Milliseconds of a prediction, each waited for, with one thread for each core, and the
quality of the test split. `fused`: batch norms folded, and oneDNN's operators of a convolution with
what follows it. ONNX Runtime computes the exported network; its int8 is calibrated by its own
functions with the same samples (`pip install onnx onnxruntime`). All arms but the first have
`copies=serial`: MXNet's threads spin between two operators, where they would sleep otherwise.
`int8-amx` is measured where the processor has AMX: with `onednn=amx`, by its tiles."""


def part(name: str, repeats: int, folder: Path) -> measure.Experiment:
    """Measure the predictions of a network in every form, interleaved.

    Args:
        name: one of ``PREDICT``.
        repeats: number of runs of each arm.
        folder: folder of experiments.
    """
    own = PREDICT[name]
    arms = dict(ARMS)
    if "amx_int8" not in build.instructions():
        del arms["int8-amx"]
    base = Plan(**own["plan"], **THREADS)
    targets = [(other, arm) for other in TARGETS for arm in INT8]
    return measure.interleave(
        name, "mxopt.chapter.deployment:inference",
        {arm: base.replace(**switches) for arm, (switches, _) in arms.items()},
        options=own["options"], arm_options={arm: form for arm, (_, form) in arms.items()},
        again="int8", repeats=repeats, folder=folder, title=own["title"], figure="milliseconds",
        unit="ms", quality=own["quality"], margin=0.01, headline=[(o, "int8") for o in TARGETS],
        pairs=[pair for pair in [*targets, *PAIRS] if pair[1] in arms],
    )  # fmt: skip


def parts(found: Experiment) -> list[str]:
    """Return the paragraphs on an experiment: both tables, and whether the targets are met.

    Args:
        found: an experiment of :func:`part`.
    """
    figures = {"milliseconds": "ms", found.quality: "", "bytes": ""}
    words = []
    for arm, (other, target) in itertools.product(INT8, TARGETS.items()):
        if arm in found.arms and (ratio := found.ratio(arm, other)):
            words.append(f"- `{arm}` relative to `{other}`: {ratio}, {found.verdict(arm, other)}. "
                         f"Target {target:g}: {outcome(ratio, target)}.")  # fmt: skip
    return [str(report.arms(found, figures)), str(report.comparison(found)), "\n".join(words)]
