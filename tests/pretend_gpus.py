"""GPUs that are CPU contexts and answer as GPUs, so that the gpu tier can run where there is none.

A process that is started with the variables of :func:`environment` has, for all that Python asks,
NVIDIA GPUs and MXNet's build for CUDA: ``mx.gpu(1)`` is a CPU context with a number of its own, and
its ``device_type`` is ``gpu``. What MXNet computes there, it computes on the CPU.

What a GPU refuses is refused, as far as it is known: arrays of the host and of a GPU in one
operator, nearest-neighbour resizing, access to an array's memory, a GPU without kernels in MXNet's
build. What only a CPU refuses is made possible: products and convolutions in float16 are computed
in float32 and rounded. Nothing here can show how fast a GPU is, nor what its kernels compute.

    python -c "..."  with  environment("V100*4")
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import sys
from pathlib import Path
from types import SimpleNamespace

GIB = 1 << 30
MODELS = {
    "T4": ("Tesla T4", (7, 5), 15 * GIB),
    "V100": ("Tesla V100-SXM2-16GB", (7, 0), 16 * GIB),
    "A100": ("NVIDIA A100-SXM4-40GB", (8, 0), 40 * GIB),
    "4090": ("NVIDIA GeForce RTX 4090", (8, 9), 24 * GIB),
    "H100": ("NVIDIA H100 80GB HBM3", (9, 0), 80 * GIB),
}
# Numbers of the CPU contexts that stand for GPUs, and for page-locked memory.
FIRST, PINNED = 100, 50
FAULTS = {
    "memory": "memory runs out in the n-th backward pass",
    "free": "each GPU has n MiB free",
    "lost": "GPU n does not answer the driver",
    "gone": "the driver lists GPU n, and CUDA does not",
    "copy": "what is copied to GPU n arrives as zeros",
    "operator": "softmax is 1 + n % off",
    "overflow": "no gradient is ever found to overflow",
    "restore": "arrays of a file are n times as large",
}
# Operators without float16 on a CPU ("FP16 gemm on cpu not implemented").
IN_FLOAT32 = ("Convolution", "Deconvolution", "FullyConnected", "dot", "batch_dot")
OUTPUTS = 1000  # more than any operator has
COPIES = ("_copyto", "_copy_from")
HERE = Path(__file__).parent
# What these processes have executed, for tests/gpu_branches.py.
COVERED = HERE.parent / ".pytest_cache" / "gpu-coverage"


def environment(gpus: str, fault: str = "", **more: str) -> dict[str, str]:
    """Return the variables of a process that pretends.

    Args:
        gpus: names of ``MODELS`` joined by ``+``, each with ``*`` and a number if it is there
            several times.
        fault: one of ``FAULTS``, and a number after a colon.
        **more: further variables.
    """
    path = os.pathsep.join([str(HERE / "pretended"), str(HERE), os.environ.get("PYTHONPATH", "")])
    COVERED.mkdir(parents=True, exist_ok=True)
    pretended = {
        "MXOPT_PRETENDED_GPUS": gpus,
        "MXOPT_PRETENDED_FAULT": fault,
        # oneDNN lacks float16, and refuses it where MXNet's own operators do not.
        "MXNET_MKLDNN_ENABLED": "0",
        "MXNET_STORAGE_FALLBACK_LOG_VERBOSE": "0",  # it would tell of every such operator
        "COVERAGE_PROCESS_START": str(HERE / "pretended" / "coveragerc"),
        "COVERAGE_FILE": str(COVERED / "data"),
    }
    return {**os.environ, "PYTHONPATH": path, **pretended, **more}


def models(gpus: str) -> list[str]:
    """Return the names of the single GPUs.

    >>> models("T4+V100*2")
    ['T4', 'V100', 'V100']
    """
    found = (word.partition("*") for word in gpus.split("+"))
    return [name for name, _, count in found for _ in range(int(count or 1))]


def install(gpus: str) -> None:
    """Pretend from here on, in this process: before MXNet is imported."""
    if os.environ.get("COVERAGE_PROCESS_START"):
        import coverage

        coverage.process_startup()
    fault, _, value = os.environ.get("MXOPT_PRETENDED_FAULT", "").partition(":")
    box = Box(models(gpus), fault, int(value or 0))
    sys.modules["pynvml"] = box.driver()
    _pretend_the_cuda_build()
    from mxopt.compat import hooks

    hooks.after_import("mxnet", lambda mx: _pretend(mx, box))
    _accept_made_weights(hooks)
    if os.environ.get("MXOPT_PRETENDED_SIZES"):
        from mxopt.chapter.settings import SETTINGS

        for notebook, cut in json.loads(os.environ["MXOPT_PRETENDED_SIZES"]).items():
            _replace(SETTINGS[notebook]["gpu"], cut)


class Box:
    """The GPUs of a machine, and what is wrong with them."""

    def __init__(self, names: list[str], fault: str, value: int):
        self.names, self.fault, self.value = names, fault, value
        self.backward_passes, self._counted = 0, {}

    def driver(self):
        """Return what stands for the module ``pynvml``."""
        from made_up_gpus import FakeNvml

        gpus = [MODELS[name] for name in self.names]
        return FakeNvml(*gpus, lost=self.value if self.fault == "lost" else None)

    def counted(self) -> list[str]:
        """Return the names of the GPUs that CUDA shows to MXNet, in the order of its numbers."""
        setting = os.environ.get("CUDA_VISIBLE_DEVICES")
        if setting not in self._counted:
            from mxopt.machine.nvidia import visible

            driver = self.driver()
            missing = self.value if self.fault in ("lost", "gone") else None
            self._counted[setting] = [
                name for number, name in enumerate(self.names)
                if number != missing and visible(number, driver.nvmlDeviceGetUUID(number), setting)
            ]  # fmt: skip
        return self._counted[setting]

    def memory(self, number: int) -> tuple[int, int]:
        """Return the free and the total bytes of a GPU."""
        total = MODELS[self.counted()[number]][2]
        return (self.value << 20 if self.fault == "free" else total * 19 // 20), total


def _pretend_the_cuda_build() -> None:
    """Say that MXNet's wheel for CUDA is installed, and that for a CPU is not."""
    original = importlib.metadata.version

    def version(name):
        if name == "mxnet":
            raise importlib.metadata.PackageNotFoundError(name)
        return "1.9.1" if name == "mxnet-cu112" else original(name)

    importlib.metadata.version = version


def _pretend(mx, box: Box) -> None:
    from mxopt.machine.nvidia import runs_on

    context = mx.context.Context
    plain = context.__init__
    error = mx.base.MXNetError

    def init(self, device_type, device_id=0):
        if device_type in ("gpu", "cpu_pinned"):
            first = FIRST if device_type == "gpu" else PINNED
            device_type, device_id = "cpu", first + device_id % first
        plain(self, device_type, device_id)

    def kind(self):
        if self.device_typeid == 1 and self.device_id >= PINNED:
            return "gpu" if self.device_id >= FIRST else "cpu_pinned"
        return context.devtype2str[self.device_typeid]

    def number(self):
        return self.device_id % (FIRST if self.device_id >= FIRST else PINNED)

    context.__init__, context.device_type = init, property(kind)
    context.__str__ = lambda self: f"{self.device_type}({number(self)})"

    def check(place):
        """Refuse a GPU that CUDA does not show, or that MXNet has no kernels for."""
        if place.device_type != "gpu":
            return
        names = box.counted()
        if number(place) >= len(names):
            raise error(f"Check failed: e == cudaSuccess: CUDA: invalid device ordinal ({place})")
        if not runs_on(MODELS[names[number(place)]][1]):
            raise error("CUDA: no kernel image is available for execution on the device")

    _replace_everywhere(mx, "num_gpus", lambda: len(box.counted()))
    _replace_everywhere(mx, "gpu_memory_info", lambda i=0: box.memory(i % FIRST))
    _pretend_features(mx.runtime)
    _pretend_operators(mx, check, number)
    _pretend_graphs(mx)
    _pretend_memory(mx)
    _pretend_profiler(mx)
    _plant(mx, box)


def _replace_everywhere(mx, name: str, new) -> None:
    """Replace a function in every module of MXNet that has imported it."""
    for module in [m for n, m in sys.modules.items() if n.partition(".")[0] == "mxnet"]:
        if name in getattr(module, "__dict__", {}):
            setattr(module, name, new)


def _pretend_features(runtime) -> None:
    original = runtime.Features

    def features():
        found = original()
        found.update((n, SimpleNamespace(name=n, enabled=True)) for n in ("CUDA", "CUDNN", "NCCL"))
        return found

    runtime.Features = features


def _pretend_operators(mx, check, number) -> None:
    """Have operators that are called one by one behave as on a GPU."""
    import ctypes

    import numpy as np
    from mxnet.ndarray import register

    lib, original, error = mx.base._LIB, register._imperative_invoke, mx.base.MXNetError
    names = {}
    for name in mx.operator.get_all_registered_operators():
        handle = ctypes.c_void_p()
        lib.NNGetOpHandle(name.encode(), ctypes.byref(handle))
        names.setdefault(handle.value, set()).add(name)

    def raw(value):
        """Return an attribute as MXNet's library reads it: the CPU context's own number."""
        if isinstance(value, str) and (named := re.fullmatch(r"(gpu|cpu_pinned)\((\d+)\)", value)):
            value = mx.Context(named[1], int(named[2]))
        if isinstance(value, mx.Context):
            check(value)
            return f"{mx.Context.devtype2str[value.device_typeid]}({value.device_id})"
        return value

    def refuse(called, arrays, attributes):
        places = {array.context for array in arrays}
        for place in places:
            check(place)
        kinds = {place.device_type == "gpu" for place in places}
        # A store copies its weights to a real GPU before it updates them.
        updates = any(name.endswith("update") for name in called)
        if len(kinds) > 1 and not updates and not called & set(COPIES):
            raise error(f"Operator {sorted(called)} require all inputs live on the same context")
        if True in kinds and "_image_resize" in called and int(attributes.get("interp", 1)) != 1:
            raise error(
                "Check failed: param.interp == 1: interp should be 1 for using Resize on GPU"
            )
        return True in kinds

    def invoke(handle, arrays, keys, values, out, *rest):
        called = names.get(handle, set())
        on_gpu = refuse(called, arrays, dict(zip(keys, values)))
        values = [raw(value) for value in values]
        if "amp_cast" in called:  # oneDNN's has no float16
            return mx.nd.cast(arrays[0], dtype=dict(zip(keys, values))["dtype"])
        if on_gpu and "_image_resize" in called:
            shape = original(handle, arrays, keys, values, None, *rest).shape
            return _resized_on_a_gpu(mx, arrays[0], shape)
        half = any(array.dtype == np.float16 for array in arrays)
        if not (half and called & set(IN_FLOAT32)):
            return original(handle, arrays, keys, values, out, *rest)
        wide = [mx.nd.cast(array, dtype="float32") for array in arrays]
        found = original(handle, wide, keys, values, None, *rest)
        found = mx.nd.cast(found, dtype="float16")
        return found if out is None else found.copyto(out)

    _replace_everywhere(mx, "_imperative_invoke", invoke)


def _resized_on_a_gpu(mx, image, shape):
    """Return what MXNet's kernel computes: corners aligned, and results cut off."""
    planes = image.astype("float32").transpose((2, 0, 1)).expand_dims(0)
    found = mx.nd.contrib.BilinearResize2D(
        planes, height=shape[0], width=shape[1], align_corners=True
    )
    return found[0].transpose((1, 2, 0)).floor().astype(image.dtype)


def _pretend_graphs(mx) -> None:
    """Have compiled graphs compute products of float16 in float32, and round."""
    original = mx.nd.CachedOp

    class CachedOp:
        def __init__(self, symbol, flags=()):
            self._symbol, self._flags, self._op = symbol, flags, None

        def __call__(self, *arrays, **options):
            if self._op is None:
                kinds = dict(zip(self._symbol.list_inputs(), (a.dtype for a in arrays)))
                text = _in_float32(self._symbol, kinds)
                self._op = original(mx.sym.load_json(text) if text else self._symbol, self._flags)
            return self._op(*arrays, **options)

        def __getattr__(self, name):
            return getattr(self._op, name)

    _replace_everywhere(mx, "CachedOp", CachedOp)


def _in_float32(symbol, kinds: dict) -> str:
    """Return a graph whose products have casts to float32 before and back after them.

    Args:
        symbol: the graph.
        kinds: dtypes of its inputs.

    Returns:
        The graph as JSON; empty if nothing in it is float16.
    """
    import numpy as np

    internals = symbol.get_internals()
    arguments = {name: kinds[name] for name in internals.list_arguments()}
    _, types, _ = internals.infer_type(**arguments)
    if np.float16 not in types:
        return ""
    graph = json.loads(internals.tojson(remove_amp_cast=False))
    heads = json.loads(symbol.tojson(remove_amp_cast=False))
    type_of = {tuple(head[:2]): kind for head, kind in zip(graph["heads"], types)}
    nodes, moved = [], {}

    def add(op, name, inputs, **attributes):
        nodes.append({"op": op, "name": name, "inputs": inputs, "attrs": attributes})
        return [len(nodes) - 1, 0, 0]

    for number, node in enumerate(graph["nodes"]):
        op = "Cast" if node["op"] == "amp_cast" else node["op"]  # oneDNN's has no float16
        name, sources = node["name"], [moved[i] + output for i, output, *_ in node["inputs"]]
        inputs = [[*divmod(source, OUTPUTS), 0] for source in sources]
        if op in IN_FLOAT32 and type_of[tuple(node["inputs"][0][:2])] == np.float16:
            inputs = [add("Cast", f"{name}_in{n}", [i], dtype="float32")
                      for n, i in enumerate(inputs)]  # fmt: skip
            product = add(op, name, inputs, **node.get("attrs", {}))
            place = add("Cast", f"{name}_out", [product], dtype="float16")
        else:
            place = add(op, name, inputs, **node.get("attrs", {}))
        moved[number] = place[0] * OUTPUTS
    ends = [[*divmod(moved[i] + output, OUTPUTS), 0] for i, output, *_ in heads["heads"]]
    names = [number for number, node in enumerate(nodes) if node["op"] == "null"]
    return json.dumps({"nodes": nodes, "arg_nodes": names, "heads": ends, "attrs": graph["attrs"]})


def _pretend_memory(mx) -> None:
    """Refuse access to the memory of an array on a GPU."""
    import ctypes

    lib = mx.base._LIB
    original = lib.MXNDArrayGetData

    def data(handle, address):
        kind, number = ctypes.c_int(), ctypes.c_int()
        lib.MXNDArrayGetContext(handle, ctypes.byref(kind), ctypes.byref(number))
        if number.value >= FIRST:
            raise mx.base.MXNetError("the array's memory is on a GPU")
        return original(handle, address)

    lib.MXNDArrayGetData = data


def _pretend_profiler(mx) -> None:
    """Leave MXNet's profiler off: it keeps a list for each core, and ends at the number 100."""
    found = {"Time": {"operator": {"Convolution": {"Total": 1.0}}}}
    span = {"name": "dot", "cat": "operator", "tid": 1, "pid": 0}
    trace = {"traceEvents": [{**span, "ph": "B", "ts": 0}, {**span, "ph": "E", "ts": 500}]}
    asked = {}
    mx.profiler.set_config = lambda **options: asked.update(options)
    mx.profiler.set_state = lambda *arguments, **options: None
    mx.profiler.dump = lambda: Path(asked["filename"]).write_text(json.dumps(trace))
    mx.profiler.dumps = lambda *arguments, **options: json.dumps(found)


def _plant(mx, box: Box) -> None:
    """Plant the fault of this process, if it is one of MXNet and not of the machine."""
    if box.fault:
        {"memory": _plant_memory, "copy": _plant_copy, "operator": _plant_operator,
         "overflow": _plant_overflow, "restore": _plant_restore,
         }.get(box.fault, lambda mx, box: None)(mx, box)  # fmt: skip


def _plant_copy(mx, box: Box) -> None:
    original = mx.nd.NDArray.copyto

    def copyto(self, other):
        copied = original(self, other)
        if copied.context == mx.gpu(box.value) != self.context:
            copied[:] = 0
        return copied

    mx.nd.NDArray.copyto = copyto


def _plant_operator(mx, box: Box) -> None:
    original = mx.nd.CachedOp.__call__

    def call(self, *arrays, **options):
        output = original(self, *arrays, **options)
        on_gpu = arrays[0].context.device_type == "gpu"
        wrong = on_gpu and '"op": "softmax"' in self._symbol.tojson()
        return output * (1 + box.value / 100) if wrong else output

    mx.nd.CachedOp.__call__ = call


def _plant_overflow(mx, box: Box) -> None:
    from mxnet.contrib.amp import loss_scaler

    loss_scaler.LossScaler.has_overflow = lambda self, parameters: False


def _plant_restore(mx, box: Box) -> None:
    original = mx.nd.load

    def load(path):
        found = original(path)
        if isinstance(found, dict):
            return {name: array * box.value for name, array in found.items()}
        return [array * box.value for array in found]

    mx.nd.load = load


def _plant_memory(mx, box: Box) -> None:
    """Let memory run out in a backward pass; MXNet says so where the program waits next."""
    backward, asnumpy, wait = mx.autograd.backward, mx.nd.NDArray.asnumpy, mx.nd.waitall

    def counted(*arguments, **options):
        box.backward_passes += 1
        return backward(*arguments, **options)

    def first(function):
        def waiting(*arguments):
            if box.backward_passes >= box.value:
                raise mx.base.MXNetError("Check failed: cudaMalloc retry failed: out of memory")
            return function(*arguments)

        return waiting

    mx.autograd.backward = counted
    mx.nd.NDArray.asnumpy = first(asnumpy)
    _replace_everywhere(mx, "waitall", first(wait))


def _accept_made_weights(hooks) -> None:
    """Accept what a test has put into the zoos' folder, under the zoos' names, as theirs."""
    made = Path(os.environ.get("MXNET_HOME", "."), "models", "made.json")
    if not made.exists():
        return
    hashes = json.loads(made.read_text())
    words = {name: [found, ".vocab", {}] for name, found in hashes["vocabularies"].items()}
    for module in ("gluoncv.model_zoo.model_store", "mxnet.gluon.model_zoo.model_store"):
        hooks.after_import(module, lambda zoo: zoo._model_sha1.update(hashes["weights"]))
    # It adds its own hashes to MXNet's when it is imported.
    hooks.after_import(
        "gluonnlp.model.transformer",
        lambda module: module.model_store._model_sha1.update(hashes["weights"]),
    )
    hooks.after_import("gluonnlp.data.utils", lambda module: module._vocab_sha1.update(words))


def _replace(settings: dict, cut: dict) -> None:
    for name, value in cut.items():
        if isinstance(value, dict) and isinstance(settings.get(name), dict):
            _replace(settings[name], value)
        else:
            settings[name] = value
