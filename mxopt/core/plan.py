"""The plan: every switch of a training run, in one frozen record.

A run is described completely by *what* is trained (a recipe) and *how* (a plan). Two plans can be
subtracted, ``before.diff(after)``, so that a speed-up is never credited to one switch when several
were flipped at once.

>>> before = Plan(batch_size=4)
>>> after = before.replace(hybridize="static", devices="cpu:0-3")
>>> sorted(before.diff(after))
['devices', 'hybridize']
"""

from __future__ import annotations

import dataclasses
import difflib
import re
from dataclasses import dataclass

from mxopt.core import plan_rules
from mxopt.core.errors import PlanError

ENGINES = ("NaiveEngine", "ThreadedEngine", "ThreadedEnginePerDevice")
HYBRIDIZE = ("no", "yes", "static", "fused")
PREPROCESS = ("lazy", "cached", "device", "roundtrip")
PIXELS = ("float32", "uint8")
PRECISIONS = ("float32", "float16", "amp", "bfloat16")
AFFINITIES = ("none", "compact")
OPENMP = ("default", "intel")
ALLOCATORS = ("default", "keep", "return")
PAGES = ("default", "huge")
SCHEDULES = ("constant", "poly", "cosine", "inverse_sqrt")
OPTIMIZERS = ("sgd", "adam")
BUCKETING = ("none", "length", "tokens")
SYNC = ("none", "dist_sync", "horovod")

_CHOICES = {
    "engine": ENGINES,
    "hybridize": HYBRIDIZE,
    "preprocess": PREPROCESS,
    "pixels": PIXELS,
    "precision": PRECISIONS,
    "affinity": AFFINITIES,
    "openmp": OPENMP,
    "allocator": ALLOCATORS,
    "pages": PAGES,
    "bucketing": BUCKETING,
    "sync": SYNC,
    "optimizer": OPTIMIZERS,
    "schedule": SCHEDULES,
}
_AT_LEAST = {
    "engine_threads": 1,
    "cpu_threads": 1,
    "frozen": 0,
    "workers": 0,
    "prefetch": 0,
    "processes": 1,
    "batch_size": 1,
    "accumulation": 1,
    "epochs": 1,
    "warmup_epochs": 0,
    "learning_rate": 0,
    "momentum": 0,
    "weight_decay": 0,
    "clip_norm": 0,
    "average_from": 0,
    "seed": 0,
}
_DEVICES = re.compile(r"(cpu|gpu):(\d{1,3})(?:-(\d{1,3}))?")


@dataclass(frozen=True)
class Plan:
    """One switch a field; the defaults are MXNet's own, or the chapter's naive run.

    Engine and threads (process-wide, fixed when MXNet loads; ``None`` leaves MXNet's default):
        engine: ``NaiveEngine`` (one operator after the other, in the calling thread),
            ``ThreadedEngine`` or ``ThreadedEnginePerDevice`` (asynchronous, MXNet's default).
        engine_threads: operators that may run at the same time on each CPU context.
        cpu_threads: OpenMP threads inside one operator. MXNet's default is half of the hardware
            threads, since it takes them for two to a core (``src/engine/openmp.cc``): where they
            are not, as on most virtual machines, half of the processor stands idle.
        affinity: ``compact`` pins OpenMP threads to neighbouring cores, ``none`` leaves them free.
        openmp: ``default`` is the wheel's own libgomp, ``intel`` is Intel's (``intel-openmp``).
        allocator: ``default`` gives large blocks of memory back to the system as soon as they are
            freed, where large is what glibc has learned, up to 32 MiB; ``return`` all from 4 MiB
            on, ``keep`` none: they are for the next array, and need not be cleared again.
        pages: ``default`` maps memory as the system does, mostly in pages of 4 KiB; ``huge`` asks
            Linux for 2 MiB where they fit (transparent huge pages, by glibc 2.35 or newer).
    Graph:
        hybridize: ``no`` (imperative), ``yes`` (cached graph), ``static`` (and static memory),
            ``fused`` (and frozen stages in oneDNN's fused kernels, CPU only).
        frozen: stages of the network, from its input on, that do not learn and so become part
            of preprocessing; 0 trains all of it.
    Data:
        preprocess: where samples are transformed and where the result lives: ``lazy`` (host,
            again in every epoch), ``cached`` (host, once), ``device`` (on the device, staying
            there), ``roundtrip`` (on the device, copied back to the host batch by batch).
        pixels: what images are until they are where they are trained on: ``float32`` (all of the
            transform is done before) or ``uint8`` (its last part is done there, batch by batch,
            and until then they take a quarter of the memory).
        bucketing: which sentences share a batch: ``none`` (as they come), ``length`` (of like
            length), ``tokens`` (of like length, and ``batch_size`` counts target tokens).
        workers: processes that load batches; 0 loads in the training process.
        prefetch: batches loaded ahead by the workers; ``None`` is MXNet's two for each worker.
    Numbers:
        precision: ``float32``, ``float16`` (all of the network), ``amp`` (automatic mixed
            precision, float16), ``bfloat16`` (automatic mixed precision, bfloat16).
    Devices:
        devices: ``cpu:0``, ``gpu:0``, or a range such as ``gpu:0-3``; each process has them.
        sync: how processes add up their gradients: ``none`` (there is one process), ``dist_sync``
            (MXNet's parameter server), ``horovod`` (all-reduce, where Horovod is installed).
        processes: how many train together, on one machine or on several.
    Optimisation:
        optimizer: ``sgd`` or ``adam``, with the decay rates of the Transformer (0.9, 0.98).
        batch_size: samples a step, over all devices of all processes.
        learning_rate, momentum, weight_decay: of the optimizer; only SGD has the momentum.
        clip_norm: largest allowed L2 norm of all gradients together; ``None`` never clips.
        schedule: ``constant``, ``poly`` (power 0.9, as in the DeepLab papers), ``cosine``, or
            ``inverse_sqrt`` (of the step, from the end of the warm-up on, as the Transformer's).
        warmup_epochs: epochs of linear warm-up before the schedule.
        average_from: epochs after which the weights of all further steps are averaged, such as
            0.5; the average is what is validated and tested. ``None`` never averages.
        accumulation: batches whose gradients are added before one update, which is that of a batch
            so many times as large.
        epochs: passes over the training set.
        seed: of the weights and the order of the samples.

    Raises:
        PlanError: a value is outside what its switch takes; the message lists what it takes.
    """

    engine: str = "ThreadedEnginePerDevice"
    engine_threads: int | None = None
    cpu_threads: int | None = None
    affinity: str = "none"
    openmp: str = "default"
    allocator: str = "default"
    pages: str = "default"
    hybridize: str = "no"
    frozen: int = 0
    preprocess: str = "lazy"
    pixels: str = "float32"
    bucketing: str = "none"
    workers: int = 0
    prefetch: int | None = None
    precision: str = "float32"
    devices: str = "cpu:0"
    sync: str = "none"
    processes: int = 1
    batch_size: int = 4
    optimizer: str = "sgd"
    learning_rate: float = 0.1
    momentum: float = 0.0
    weight_decay: float = 0.0
    clip_norm: float | None = None
    schedule: str = "constant"
    warmup_epochs: float = 0
    average_from: float | None = None
    accumulation: int = 1
    epochs: int = 1
    seed: int = 0

    def __post_init__(self):
        for name, allowed in _CHOICES.items():
            value = getattr(self, name)
            if value not in allowed:
                raise PlanError(f"{name}={value!r} is not a choice; take one of {_listed(allowed)}")
        for name, least in _AT_LEAST.items():
            value, (kinds, kind, optional) = getattr(self, name), _number(name)
            if value is None and optional:
                continue
            if isinstance(value, bool) or not isinstance(value, kinds) or not value >= least:
                raise PlanError(f"{name}={value!r} must be {kind} of at least {least}")
        self.device_indices  # noqa: B018  (checks the syntax of devices)
        plan_rules.check(self)

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
            PlanError: a switch does not exist (the nearest name is suggested) or takes no such
                value.
        """
        return dataclasses.replace(self, **_known(changes))

    def diff(self, other: Plan) -> dict[str, tuple]:
        """Return ``{switch: (mine, theirs)}`` for every switch that differs."""
        mine, theirs = self.as_dict(), other.as_dict()
        return {name: (mine[name], theirs[name]) for name in mine if mine[name] != theirs[name]}

    def as_dict(self) -> dict:
        """Return the switches as a plain dictionary, as run records keep them."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, switches: dict) -> Plan:
        """Make a plan from a plain dictionary; switches left out take their defaults.

        Raises:
            PlanError: as for :meth:`replace`.
        """
        return cls(**_known(switches))

    @classmethod
    def parse(cls, assignments, base: Plan | None = None) -> Plan:
        """Make a plan from ``name=value`` words, as the command line takes them.

        >>> Plan.parse(["batch_size=16", "precision=amp"]).batch_size
        16

        Raises:
            PlanError: a word is not of that form, or as for :meth:`replace`.
        """
        changes = {}
        for word in assignments:
            name, equals, text = word.partition("=")
            if not equals:
                raise PlanError(f"{word!r} is not a switch; write name=value, such as batch_size=8")
            _known({name: text})
            changes[name] = _value(name, text)
        return (base or cls()).replace(**changes)


def _known(switches: dict) -> dict:
    names = [field.name for field in dataclasses.fields(Plan)]
    for name in switches:
        if name not in names:
            near = difflib.get_close_matches(name, names, 1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise PlanError(f"no switch is called {name!r}; {hint}The switches: {_listed(names)}")
    return switches


def _number(name: str) -> tuple[tuple, str, bool]:
    """Return the Python types a numeric switch takes, their name, and whether None is allowed."""
    annotation = Plan.__dataclass_fields__[name].type
    optional = annotation.endswith("| None")
    if annotation.startswith("float"):
        return (int, float), "a number", optional
    return (int,), "a whole number", optional


def _value(name: str, text: str):
    if name not in _AT_LEAST:
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
