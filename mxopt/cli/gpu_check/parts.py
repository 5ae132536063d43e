"""The parts of the check: functions from ``quick`` to a line of text and the rows of a table."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from mxopt import compat, machine
from mxopt.cli.gpu_check.faults import Fault, Skip
from mxopt.cli.gpu_check.steps import steps
from mxopt.core.plan import Plan

MIB = 1 << 20
__all__ = [
    "copies",
    "devices",
    "kernels",
    "libraries",
    "operators",
    "precision",
    "resume",
    "steps",
]
# Largest relative differences that rounding explains. An A100 multiplies float32 matrices in TF32,
# with ten bits after the point, unless NVIDIA_TF32_OVERRIDE=0.
TOLERANCE = {"float32": 5e-3, "float16": 3e-2}


def libraries(quick: bool) -> tuple[str, list[dict]]:
    """Check that MXNet's build for CUDA imports, and which libraries it loads."""
    found = compat.cuda_libraries()
    rows = [{"library": library.soname, "found": str(bool(library.path))} for library in found]
    missing = [library.soname for library in found if not library.path]
    if missing:
        raise Fault(f"missing: {', '.join(missing)}", rows)
    build = machine.mxnet_build()
    if build.reason:
        raise Fault(f"MXNet does not import: {build.reason}", rows)
    if "CUDA" not in build.features:
        raise Fault("the installed MXNet is the build for a CPU", rows)
    usable = sum(gpu.usable for gpu in machine.gpus())
    if build.gpus < usable:
        raise Fault(f"MXNet counts {build.gpus} GPUs, the driver has {usable} for it", rows)
    return f"MXNet {build.version} with CUDA counts {build.gpus} GPUs", rows


def kernels(quick: bool) -> tuple[str, list[dict]]:
    """Check that MXNet has kernels for every GPU, and that one runs on each."""
    import mxnet as mx

    found, inside = machine.gpus(), machine.own_kernels()
    built, ptx = inside.get("machine code", ()), inside.get("ptx", ())
    rows = [
        {"GPU": gpu.index, "name": gpu.name, "usable": str(gpu.usable), "why not": gpu.reason,
         "kernels in the build": _versions(built), "PTX": _versions(ptx)}
        for gpu in found
    ]  # fmt: skip
    for gpu in found:
        if gpu.usable and (built or ptx) and not machine.runs_on(gpu.capability, built, ptx):
            raise Fault(f"the library has no kernels for {gpu.name}, which was to be usable", rows)
    if not any(gpu.usable for gpu in found):
        raise Fault("no GPU can be used", rows)
    for number in range(mx.context.num_gpus()):
        try:
            total = mx.nd.ones((4, 4), ctx=mx.gpu(number)).sum().asscalar()
        except mx.base.MXNetError as error:
            raise Fault(f"gpu({number}) computes nothing: {_first_line(error)}", rows) from None
        if total != 16:
            raise Fault(f"gpu({number}) adds 16 ones to {total}", rows)
    return f"a kernel ran on each of {mx.context.num_gpus()} GPUs", rows


def operators(quick: bool) -> tuple[str, list[dict]]:
    """Compare every operator of the recipes on the GPU with the CPU, in float32 and float16."""
    import mxnet as mx

    from mxopt.cli.gpu_check import networks
    from mxopt.cli.gpu_check import operators as single

    found = [
        operator
        for graph, shapes in networks.graphs(quick)
        for operator in single.of_graph(graph, shapes)
    ]
    worst, wrong = {}, []
    for operator in found:
        for dtype, tolerance in TOLERANCE.items():
            try:
                distance = single.compare(operator, mx.gpu(0), dtype)
            except mx.base.MXNetError as error:
                if dtype == "float16" and operator.name in networks.FLOAT32_ONLY:
                    continue
                wrong.append(f"{operator.name} in {dtype}: {_first_line(error)}")
                continue
            count, largest = worst.get((operator.name, dtype), (0, 0.0))
            worst[operator.name, dtype] = count + 1, max(largest, distance)
            if distance > tolerance:
                wrong.append(f"{operator.name} in {dtype} is off by {distance:.2g}")
    rows = [
        {"": "off" if far > TOLERANCE[dtype] else "", "operator": name, "dtype": dtype,
         "variants": count, "largest difference": f"{far:.1e}", "allowed": f"{TOLERANCE[dtype]:g}"}
        for (name, dtype), (count, far) in sorted(worst.items())
    ]  # fmt: skip
    rows.sort(key=lambda row: not row[""])  # what is off comes first
    if wrong:
        raise Fault("; ".join(dict.fromkeys(wrong)), rows)
    return f"{len(found)} operators with their gradients agree with the CPU", rows


def precision(quick: bool) -> tuple[str, list[dict]]:
    """Compare losses under AMP and float16 with float32, and make a step overflow."""
    import mxnet as mx
    from mxnet import autograd, gluon

    from mxopt.cli.gpu_check import networks
    from mxopt.methods.precision import amp

    rows, expected = [], None
    for name in ("float32", "float16", "amp"):  # AMP last: it cannot be undone in a process
        numbers = amp.for_plan(Plan(precision=name, devices="gpu:0"), [mx.gpu(0)])
        numbers.start()
        loss, gradient = networks.loss_and_gradient([mx.gpu(0)], numbers)
        expected = expected or (loss, gradient)
        off = abs(loss - expected[0]) / abs(expected[0])
        turned = float(np.linalg.norm(gradient - expected[1]) / np.linalg.norm(expected[1]))
        rows.append({"precision": name, "loss": f"{loss:.5f}", "loss is off by": f"{off:.1e}",
                     "gradient is off by": f"{turned:.1e}"})  # fmt: skip
        if not (off < 0.02 and turned < 0.2):
            raise Fault(f"{name} differs from float32 more than rounding explains", rows)
    net = numbers.prepare(gluon.nn.Dense(1, in_units=2))
    net.initialize(ctx=mx.gpu(0))
    before = net.weight.data().asnumpy()
    trainer = numbers.attach(gluon.Trainer(net.collect_params(), "sgd", update_on_kvstore=False))
    scale = numbers.loss_scale(trainer)
    with autograd.record():
        numbers.backward([net(mx.nd.ones((1, 2), ctx=mx.gpu(0))).sum() * 1e38 * 1e38], trainer)
    numbers.step(trainer, 1)
    if numbers.skipped_steps != 1 or numbers.loss_scale(trainer) >= scale:
        raise Fault("a step that overflowed was not skipped, or the loss scale did not fall", rows)
    if not np.array_equal(before, net.weight.data().asnumpy()):
        raise Fault("a step that overflowed changed the weights", rows)
    return "AMP and float16 agree with float32, and an overflow is skipped", rows


def devices(quick: bool) -> tuple[str, list[dict]]:
    """Compare the sum of the gradients of 1, 2 and 4 GPUs."""
    import mxnet as mx

    from mxopt.cli.gpu_check import networks
    from mxopt.methods.precision import amp

    count = mx.context.num_gpus()
    if count < 2:
        raise Skip("there is one GPU only")
    rows, expected = [], None
    for number in (n for n in (1, 2, 4, 8) if n <= count):
        contexts = [mx.gpu(index) for index in range(number)]
        _, gradient = networks.loss_and_gradient(contexts, amp.Float32())
        expected = gradient if expected is None else expected
        off = float(np.linalg.norm(gradient - expected) / np.linalg.norm(expected))
        rows.append({"GPUs": number, "gradient is off by": f"{off:.1e}"})
        if not off < TOLERANCE["float32"]:
            raise Fault(f"the gradients of {number} GPUs are not those of one", rows)
    return f"the gradients of up to {rows[-1]['GPUs']} GPUs equal those of one", rows


def copies(quick: bool) -> tuple[str, list[dict]]:
    """Measure how fast arrays are copied to the GPU and back, and that they arrive."""
    import mxnet as mx

    size = (4 if quick else 256) * MIB // 4
    values = mx.nd.random.uniform(shape=(size,))
    kinds = {
        "ordinary memory to GPU": (values, mx.gpu(0)),
        "page-locked memory to GPU": (values.as_in_context(mx.context.cpu_pinned(0)), mx.gpu(0)),
        "GPU to ordinary memory": (values.as_in_context(mx.gpu(0)), mx.cpu()),
    }
    if mx.context.num_gpus() > 1:
        kinds["GPU to GPU"] = (values.as_in_context(mx.gpu(0)), mx.gpu(1))
    rows = []
    for name, (source, there) in kinds.items():
        source.copyto(there).wait_to_read()
        begin = time.perf_counter()
        copied = [source.copyto(there) for _ in range(5)]
        mx.nd.waitall()
        seconds = (time.perf_counter() - begin) / len(copied)
        rows.append({"copy": name, "GB a second": f"{4 * size / seconds / 1e9:.1f}"})
        if not np.array_equal(copied[-1].asnumpy(), values.asnumpy()):
            raise Fault(f"{name}: other values arrive", rows)
    return "copies arrive unchanged", rows


def resume(quick: bool) -> tuple[str, list[dict]]:
    """Kill a run after its first checkpoint, continue it, and compare it with a whole run."""
    from mxopt.cli.gpu_check.networks import SMALL
    from mxopt.core.records import read_run

    words = [f"{name}={value}" for name, value in SMALL.items() if name != "recipe"]
    command = [sys.executable, "-m", "mxopt.cli.main", "run", "segmentation", "devices=gpu:0",
               "epochs=20", "batch_size=4", "--checkpoint-steps", "1",
               *(part for word in words for part in ("--option", word))]  # fmt: skip
    losses = {}
    with tempfile.TemporaryDirectory() as folder:
        whole, killed = (Path(folder, f"{name}.jsonl") for name in ("whole", "killed"))
        _call([*command, "--record", str(whole)])
        child = subprocess.Popen(
            [*command, "--record", str(killed)], start_new_session=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        kept = killed.with_suffix(".checkpoints")
        while child.poll() is None and not list(kept.glob("epoch-*.json")):
            time.sleep(0.02)
        if child.poll() is not None:
            raise Fault(f"`mxopt run` ended with status {child.returncode} before it was killed")
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        _call([*command, "--record", str(killed)])
        for name, path in (("whole", whole), ("killed and resumed", killed)):
            losses[name] = read_run(path).figures["train_loss"]
    rows = [{"run": name, "training loss": f"{loss:.6f}"} for name, loss in losses.items()]
    first, second = losses.values()
    if not abs(first - second) <= 1e-3 * abs(first):
        raise Fault("the resumed run has another loss than the whole one", rows)
    return "a killed run continues to the same loss", rows


def _call(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["no message"]
        raise Fault(f"`mxopt run` ended with status {done.returncode}: {lines[-1]}")


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return next((line for line in reversed(lines) if "Error" in line or "failed" in line),
                lines[-1] if lines else "no message")  # fmt: skip


def _versions(capabilities) -> str:
    return ", ".join(f"{major}.{minor}" for major, minor in capabilities) or "none"
