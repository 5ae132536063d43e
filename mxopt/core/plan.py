"""The plan: all switches of a training run, in one frozen dataclass.

A run is described completely by *what* is trained (a recipe) and *how* (a plan).
``before.diff(after)`` lists the switches in which two plans differ, so that a speed-up is never
attributed to one switch when several were changed.

>>> before = Plan(batch_size=4)
>>> after = before.replace(hybridize="static", devices="cpu:0-3")
>>> sorted(before.diff(after))
['devices', 'hybridize']
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from mxopt.core import old_names
from mxopt.core.errors import PlanError

_DEVICES = re.compile(r"(cpu|gpu):(\d{1,3})(?:-(\d{1,3}))?")
# Checks of a whole plan, such as switches that exclude each other, one from each method
# (mxopt.methods).
RULES: list[Callable[[Plan], None]] = []


def choice(*allowed: str):
    """Return a dataclass field with these allowed values; the first is the default."""
    return field(default=allowed[0], metadata={"choices": allowed})


def at_least(least: float, default: float | None):
    """Return a dataclass field for a number.

    Args:
        least: the smallest allowed value.
        default: the default; None if the switch is optional.
    """
    return field(default=default, metadata={"least": least})


@dataclass(frozen=True)
class Plan:
    """One field for each switch; the defaults are MXNet's, or those of the chapter's first run.

    The switches of the environment are read once, when MXNet loads; there ``None`` keeps MXNet's
    default.

    Environment:
        engine: ``ThreadedEnginePerDevice`` (asynchronous, MXNet's default), ``ThreadedEngine``, or
            ``NaiveEngine`` (one operator at a time, in the calling thread).
        engine_threads: largest number of operators that run at the same time on each CPU context.
        cpu_threads: OpenMP threads inside one operator. MXNet's default is half of the hardware
            threads (``src/engine/openmp.cc``), which is one on a virtual machine of two cores.
        affinity: ``compact`` pins OpenMP threads to neighbouring cores, ``none`` does not pin them.
        openmp: ``default`` is the wheel's own libgomp, ``intel`` is Intel's (``intel-openmp``).
        blocktime: milliseconds that an idle thread of Intel's OpenMP spins before it sleeps;
            ``None`` is 1. Only with ``openmp=intel``, whose own default is 200.
        copies: threads that copy an array of 200,000 elements or more: ``parallel`` (MXNet's
            default) or ``serial`` (one). After a parallel copy to or from NumPy, waiting threads of
            GNU's OpenMP sleep at once where all cores compute.
        blas: library of matrix products for ``dot``, ``batch_dot`` and linear algebra: ``default``
            (the wheel's OpenBLAS of 2021), ``mkl`` (the package ``mkl``), ``openblas`` (the
            system's).
        onednn: instructions of oneDNN, which computes convolutions and dense layers: ``default``,
            or ``amx``, which lets networks in int8 use the tiles of a processor with AMX.
        allocator: which freed blocks glibc returns to the system: ``default`` (those above a
            threshold that adapts, up to 32 MiB), ``return`` (all from 1 MiB on), ``keep`` (none);
            or another library in place of glibc's malloc: ``jemalloc``, ``tcmalloc``.
        pages: ``default``, or ``huge``: transparent huge pages of 2 MiB (glibc 2.35 or newer).
    Graph:
        hybridize: ``no`` (imperative), ``yes`` (cached graph), ``static`` (and static memory),
            ``fused`` (and frozen stages in oneDNN's fused kernels, CPU only).
        graph_rewrites: ``none``, ``usual``, or names joined by ``+``, such as ``dead_taps+relu6``
            (:mod:`mxopt.methods.graph_rewrites`).
        freeze_stages: number of stages, counted from the network's input, that are not trained
            and become part of preprocessing; 0 trains the whole network.
    Data:
        preprocess: where samples are transformed and where the result is kept: ``lazy`` (on the
            host, again in every epoch), ``cached`` (on the host, once), ``device`` (on the device,
            and kept there), ``roundtrip`` (on the device, then kept on the host).
        image_dtype: dtype of images before they reach the device: ``float32`` (normalised on the
            host) or ``uint8`` (normalised on the device, with a quarter of the memory before).
        transforms: what prepares samples: ``gluon`` (the recipe's transform), ``opencv`` (its
            version in OpenCV and NumPy, with the same results on a CPU) or ``kernels`` (that, with
            images normalised by a compiled function).
        transform_batch: number of samples that are transformed at once, where they are kept.
        loader: what makes batches: ``gluon`` (``gluon.data.DataLoader``) or ``shared_memory``
            (worker processes of this package, which reuse their memory and name what failed).
        bucketing: which sentences share a batch: ``none`` (in order), ``length`` (of similar
            length), ``tokens`` (of similar length; ``batch_size`` then counts target tokens).
        augmentation: how training images are changed at random, on their device: ``none``, or names
            joined by ``+``, of ``flip``, ``shift`` and ``colour``.
        augmentation_epochs: number of the first epoch in which they are changed at full strength,
            which grows until then; 0 is all.
        num_workers: number of processes that load batches; 0 loads in the training process.
        prefetch: number of batches that workers load ahead; ``None`` is two for each worker.
        progressive_resizing: side of the images in the first ``progressive_epochs`` epochs, in
            pixels; ``None`` trains on the full size from the start.
        progressive_epochs: number of epochs on the smaller images.
        sampling_start: share of the samples in the first epoch; ``None`` is all of them.
        sampling_epochs: number of the first epoch with all samples; the share grows until then.
    Precision:
        precision: ``float32``, ``float16`` (the whole network), ``amp`` (automatic mixed precision
            with float16), ``bfloat16`` (automatic mixed precision with bfloat16; on CPUs with
            AVX-512).
        loss_scale: factor of the loss under ``amp`` and ``bfloat16``, such as 1024, which keeps
            small gradients from becoming 0; ``None`` is MXNet's dynamic one, which begins at 65536.
        simulated_bits: bits of the integers whose rounding the training simulates, from 2 to 8
            (quantisation-aware training); 0 rounds nothing.
    Devices:
        devices: ``cpu:0``, ``gpu:0``, or a range such as ``gpu:0-3``, in each process.
        kvstore: how processes sum their gradients: ``none`` (one process), ``dist_sync`` (MXNet's
            parameter server), ``horovod`` (all-reduce, where Horovod is installed).
        processes: number of processes that train together, on one machine or on several.
    Optimisation:
        optimizer: ``sgd``, ``adam``, or for large batches ``lars`` (You et al., 2017: SGD with a
            rate for each layer) or ``lamb`` (You et al., 2020: Adam with a rate for each layer).
        aggregation: number of parameters that one call of SGD, LARS or LAMB updates, up to 45;
            ``None`` is MXNet's default, 4 (LAMB: 45); with ``updates="fused"`` all of them.
        updates: ``mxnet``, or ``fused`` for operators of mxopt's kernels, which update all
            parameters in one call, and clip all gradients in another (SGD and Adam, in float32 on a
            CPU).
        batch_size: samples for each step, over all devices of all processes.
        learning_rate: learning rate of the optimizer.
        momentum: momentum of SGD and LARS.
        beta2: decay rate of Adam's and LAMB's squared gradients: 0.98, as for the Transformer, or
            0.999, the default of MXNet and PyTorch. That of the gradients is 0.9.
        weight_decay: weight decay of the optimizer.
        label_smoothing: share of the target that is spread over all classes, such as 0.1.
        clip_norm: largest L2 norm of all gradients together; ``None`` does not clip.
        clip_value: largest absolute value of each gradient element; ``None`` does not clip.
        schedule: ``constant``, ``poly`` (power 0.9, as in the DeepLab papers), ``cosine``, or
            ``inverse_sqrt`` (of the step, after the warm-up, as for the Transformer).
        warmup_epochs: epochs of linear warm-up before the schedule.
        swa_start: epoch, or fraction of one such as 0.5, after which the weights of all further
            steps are averaged; the average is validated and tested. ``None`` does not average.
        ema_decay: decay of an exponential moving average of the weights, such as 0.99; the
            average is validated and tested. ``None`` does not average.
        grad_accumulation: number of batches whose gradients are summed before one update. The
            update equals that of one batch of their total size.
        gradients: memory of gradients between updates: ``kept``, or ``released`` to the system as
            soon as each is used (CPU only).
        sparsity: share of each layer's weights that are set to zero, such as 0.75; 0 prunes none.
        prune_from: epoch, or fraction of one, at which pruning begins.
        prune_until: epoch at which ``sparsity`` is reached; ``None`` is half of the training.
        epochs: passes over the training set.
        seed: seed of the initial weights and of the order of the samples.

    Raises:
        PlanError: a value is not allowed for its switch, or two switches exclude each other.
    """

    engine: str = choice("ThreadedEnginePerDevice", "ThreadedEngine", "NaiveEngine")
    engine_threads: int | None = at_least(1, None)
    cpu_threads: int | None = at_least(1, None)
    affinity: str = choice("none", "compact")
    openmp: str = choice("default", "intel")
    blocktime: int | None = at_least(0, None)
    copies: str = choice("parallel", "serial")
    blas: str = choice("default", "mkl", "openblas")
    onednn: str = choice("default", "amx")
    allocator: str = choice("default", "keep", "return", "jemalloc", "tcmalloc")
    pages: str = choice("default", "huge")
    hybridize: str = choice("no", "yes", "static", "fused")
    graph_rewrites: str = "none"
    freeze_stages: int = at_least(0, 0)
    preprocess: str = choice("lazy", "cached", "device", "roundtrip")
    image_dtype: str = choice("float32", "uint8")
    transforms: str = choice("gluon", "opencv", "kernels")
    transform_batch: int = at_least(1, 1)
    loader: str = choice("gluon", "shared_memory")
    bucketing: str = choice("none", "length", "tokens")
    augmentation: str = "none"
    augmentation_epochs: int = at_least(0, 0)
    num_workers: int = at_least(0, 0)
    prefetch: int | None = at_least(0, None)
    progressive_resizing: int | None = at_least(1, None)
    progressive_epochs: int = at_least(1, 1)
    sampling_start: float | None = at_least(0, None)
    sampling_epochs: int = at_least(1, 1)
    precision: str = choice("float32", "float16", "amp", "bfloat16")
    loss_scale: float | None = at_least(1, None)
    simulated_bits: int = at_least(0, 0)
    devices: str = "cpu:0"
    kvstore: str = choice("none", "dist_sync", "horovod")
    processes: int = at_least(1, 1)
    batch_size: int = at_least(1, 4)
    optimizer: str = choice("sgd", "adam", "lars", "lamb")
    aggregation: int | None = at_least(1, None)
    updates: str = choice("mxnet", "fused")
    learning_rate: float = at_least(0, 0.1)
    momentum: float = at_least(0, 0.0)
    beta2: float = at_least(0, 0.98)
    weight_decay: float = at_least(0, 0.0)
    label_smoothing: float = at_least(0, 0.0)
    clip_norm: float | None = at_least(0, None)
    clip_value: float | None = at_least(0, None)
    schedule: str = choice("constant", "poly", "cosine", "inverse_sqrt")
    warmup_epochs: float = at_least(0, 0)
    swa_start: float | None = at_least(0, None)
    ema_decay: float | None = at_least(0, None)
    grad_accumulation: int = at_least(1, 1)
    gradients: str = choice("kept", "released")
    sparsity: float = at_least(0, 0.0)
    prune_from: float = at_least(0, 0)
    prune_until: float | None = at_least(0, None)
    epochs: int = at_least(1, 1)
    seed: int = at_least(0, 0)

    def __post_init__(self):
        for switch in dataclasses.fields(self):
            name, value = switch.name, getattr(self, switch.name)
            allowed = switch.metadata.get("choices")
            if allowed and value not in allowed:
                raise PlanError(f"{name}={value!r} is not a choice; take one of {_listed(allowed)}")
            if "least" in switch.metadata:
                _check_number(name, value, switch.metadata["least"])
        self.device_indices  # noqa: B018  (checks the syntax of devices)
        adaptive = self.optimizer in ("adam", "lamb")
        if adaptive and self.momentum:
            raise PlanError(
                f"momentum={self.momentum} is SGD's; with {self.optimizer} leave it at 0"
            )
        if self.momentum >= 1:
            raise PlanError(f"momentum={self.momentum} must be below 1, such as 0.9")
        if self.beta2 >= 1:
            raise PlanError(f"beta2={self.beta2} must be below 1, such as 0.999")
        if not adaptive and self.beta2 != Plan.beta2:
            raise PlanError(f"beta2={self.beta2} is Adam's; with {self.optimizer} leave it out")
        for rule in RULES:
            rule(self)

    @property
    def device_kind(self) -> str:
        """``cpu`` or ``gpu``."""
        return self.devices.split(":")[0]

    @property
    def device_indices(self) -> list[int]:
        """The device numbers, in order.

        Raises:
            PlanError: ``devices`` is not of the form ``gpu:0`` or ``gpu:0-3``.
        """
        match = _DEVICES.fullmatch(self.devices) if isinstance(self.devices, str) else None
        first, last = (int(match[2]), int(match[3] or match[2])) if match else (1, 0)
        if last < first:
            raise PlanError(
                f"devices={self.devices!r} is not understood; "
                "write cpu:0 or gpu:0 for one device, gpu:0-3 for several"
            )
        return list(range(first, last + 1))

    def replace(self, **changes) -> Plan:
        """Return a copy with some switches changed.

        Raises:
            PlanError: a switch does not exist (the message suggests the nearest name), or a value
                is not allowed.
        """
        return dataclasses.replace(self, **_known(changes))

    def diff(self, other: Plan) -> dict[str, tuple]:
        """Return ``{switch: (own value, other's value)}`` for every switch that differs."""
        mine, theirs = self.as_dict(), other.as_dict()
        return {name: (mine[name], theirs[name]) for name in mine if mine[name] != theirs[name]}

    def as_dict(self) -> dict:
        """Return the switches as a plain dictionary, as run records keep them."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    @classmethod
    def from_dict(cls, switches: dict) -> Plan:
        """Return the plan of a plain dictionary; missing switches take their defaults.

        Raises:
            PlanError: a switch does not exist, or a value is not allowed.
        """
        return cls(**_known(switches))

    @classmethod
    def parse(cls, assignments, base: Plan | None = None) -> Plan:
        """Return the plan of ``name=value`` arguments, as on the command line.

        >>> Plan.parse(["batch_size=16", "precision=amp"]).batch_size
        16

        Args:
            assignments: strings of the form ``name=value``.
            base: plan whose switches are changed; the defaults if not given.

        Raises:
            PlanError: an argument is not of that form, a switch does not exist or is given twice,
                or a value is not allowed.
        """
        changes = {}
        for word in assignments:
            name, equals, text = word.partition("=")
            if not equals:
                raise PlanError(f"{word!r} is not a switch; write name=value, such as batch_size=8")
            _known({name: text})
            if name in changes:
                raise PlanError(f"{word!r}: {name} is given a second time; give it once")
            changes[name] = _value(name, text)
        return (base or cls()).replace(**changes)


def choices(switch: str) -> tuple[str, ...]:
    """Return the allowed values of a switch, the default first; empty for numeric switches."""
    return Plan.__dataclass_fields__[switch].metadata.get("choices", ())


def _known(switches: dict) -> dict:
    check_names(switches, [field.name for field in dataclasses.fields(Plan)])
    return switches


def check_names(given, known: list[str], kind: str = "switch") -> None:
    """Check that all names are known.

    Args:
        given: names of switches or options.
        known: the names that exist.
        kind: ``switch``, ``option`` or ``switch or option``, for the message.

    Raises:
        PlanError: a name is unknown; the message suggests the new name of a renamed switch, or
            the nearest name, and lists all.
    """
    for name in given:
        if name in known:
            continue
        renamed = old_names.NAMES.get(name)
        near = difflib.get_close_matches(name, known, 1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        if renamed:
            hint = f"it is now called {renamed!r}. "
        plural = {"switch": "switches", "option": "options"}.get(kind, "switches and options")
        raise PlanError(f"no {kind} is called {name!r}; {hint}The {plural}: {_listed(known)}")


def _check_number(name: str, value, least: float) -> None:
    kinds, kind, optional = _number(name)
    if value is None and optional:
        return
    if isinstance(value, bool) or not isinstance(value, kinds) or not value >= least:
        raise PlanError(f"{name}={value!r} must be {kind} of at least {least}")
    if isinstance(value, float) and not math.isfinite(value):
        raise PlanError(f"{name}={value!r} must be a finite number")


def _number(name: str) -> tuple[tuple, str, bool]:
    """Return a numeric switch's Python types, their description, and whether None is allowed."""
    annotation = Plan.__dataclass_fields__[name].type
    optional = annotation.endswith("| None")
    if annotation.startswith("float"):
        return (int, float), "a number", optional
    return (int,), "a whole number", optional


def _value(name: str, text: str):
    if "least" not in Plan.__dataclass_fields__[name].metadata:
        return text
    kinds, kind, optional = _number(name)
    if optional and text.lower() == "none":
        return None
    try:
        return kinds[-1](text)
    except ValueError:
        raise PlanError(f"{name}={text!r} must be {kind}") from None


def _listed(names) -> str:
    return ", ".join(names)
