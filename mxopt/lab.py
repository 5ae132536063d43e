"""The lab: what a notebook needs to measure on whatever machine it finds itself.

``open_lab`` looks at the machine, picks a tier, makes a results folder and says so. The same
notebook then serves a laptop and a machine with four GPUs: what differs are the lab's settings.
"""

from __future__ import annotations

import os
import re
import socket
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from mxopt import datasets, hardware, measure
from mxopt.errors import PlanError, RecordError
from mxopt.plan import Plan

# What each tier can afford, by chapter recipe. ``repeats`` of at least six make every interval a
# bootstrap (mxopt.measure.ratio); the smoke tier trades that for minutes and gets wider ones.
SETTINGS = {
    "8_1": {
        "smoke": {
            "repeats": 3,
            "elementwise": {"size": 1000, "rounds": 10},
            "chains": {"size": 700, "length": 12},
            "loading": {"size": 240, "limit": 40},
            "workers": (0, 1, 2),
            "batch_sizes": (1, 4, 16),
            "chart_repeats": 1,
            "training": {"network": "tiny", "size": 96, "limit": 40},
            "plan": {"batch_size": 4, "epochs": 3, "learning_rate": 0.1, "momentum": 0.9},
        },
        "cpu": {
            "repeats": 6,
            "elementwise": {"size": 2000, "rounds": 10},
            "chains": {"size": 700, "length": 40},
            "loading": {"size": 480},
            "workers": (0, 1, 2, 4),
            "batch_sizes": (1, 2, 4, 8, 16),
            "chart_repeats": 1,
            "training": {"network": "tiny", "size": 160},
            "plan": {"batch_size": 4, "epochs": 4, "learning_rate": 0.1, "momentum": 0.9},
        },
        "gpu": {
            "repeats": 6,
            "elementwise": {"size": 10000, "rounds": 10},
            "chains": {"size": 2000, "length": 100},
            "loading": {"size": 480},
            "workers": (0, 1, 2, 4, 8),
            "batch_sizes": (1, 2, 4, 8, 16),
            "chart_repeats": 2,
            "training": {"network": "deeplab_resnet101", "size": 480},
            "plan": {"batch_size": 4, "epochs": 10, "learning_rate": 0.1, "hybridize": "static"},
        },
    },
    # ``speed`` are levers that make an epoch faster, ``learning`` those that make it teach more,
    # each added to those before it (mxopt.measure.ladder).
    "8_2": {
        "smoke": {
            "repeats": 3,
            "training": {"network": "tiny", "size": 96, "limit": 40},
            "plan": {"batch_size": 4, "epochs": 6, "learning_rate": 0.1},
            "speed": {"static": {"hybridize": "static"}, "cached": {"preprocess": "cached"}},
            "learning": {"after": {"momentum": 0.9}},
            "ladder": {"limit": 20, "epochs": 2},
        },
        "cpu": {
            "repeats": 3,
            "training": {"network": "deeplab_mobilenetv2", "size": 480, "new_scores": True},
            "plan": {"batch_size": 4, "epochs": 3, "learning_rate": 0.01},
            "speed": {
                "static": {"hybridize": "static"},
                "cached": {"preprocess": "cached"},
                "interleaved": {"interleaved": True},
                "frozen": {"frozen": 7},
                "fused": {"hybridize": "fused"},
                "relu": {"bounded": 7},
            },
            "learning": {
                "scores": {"new_scores": False},
                "after": {
                    "learning_rate": 0.006,
                    "momentum": 0.9,
                    "schedule": "poly",
                    "average_from": 0.5,
                },
            },
            "ladder": {"limit": 12, "epochs": 2},
        },
        "gpu": {
            "repeats": 3,
            "training": {"network": "deeplab_resnet101", "size": 480},
            "plan": {"batch_size": 4, "epochs": 10, "learning_rate": 0.1},
            "speed": {
                "static": {"hybridize": "static"},
                "device": {"preprocess": "device"},
                "amp": {"precision": "amp"},
            },
            "learning": {"after": {"momentum": 0.9, "learning_rate": 0.01, "schedule": "poly"}},
            "ladder": {"limit": 40, "epochs": 2},
        },
    },
    "8_3": {
        "smoke": {
            "repeats": 3,
            "score": "chrf",
            "training": {
                "stand_in": True,
                "limit": 1400,
                "vocabulary": 600,
                "layers": 2,
                "units": 64,
                "hidden": 128,
                "beam": 2,
                "scored": 50,
            },
            "plan": {"optimizer": "adam", "batch_size": 32, "epochs": 2, "learning_rate": 0.002},
            "speed": {
                "length": {"bucketing": "length"},
                "cached": {"preprocess": "cached"},
                "static": {"hybridize": "static"},
                "pieces": {"fast": True},
                "fused": {"loss": "fused"},
            },
            "learning": {
                "after": {
                    "bucketing": "tokens",
                    "batch_size": 512,
                    "schedule": "inverse_sqrt",
                    "warmup_epochs": 0.5,
                    "learning_rate": 0.004,
                    "clip_norm": 1.0,
                },
            },
            "ladder": {"limit": 300, "epochs": 2},
        },
        "cpu": {
            "repeats": 3,
            "score": "bleu",
            "training": {
                "limit": 6000,
                "vocabulary": 4000,
                "layers": 2,
                "units": 128,
                "hidden": 512,
                "scored": 300,
            },
            "plan": {"optimizer": "adam", "batch_size": 64, "epochs": 3, "learning_rate": 0.001},
            "speed": {
                "length": {"bucketing": "length"},
                "cached": {"preprocess": "cached"},
                "static": {"hybridize": "static"},
                "pieces": {"fast": True},
                "fused": {"loss": "fused"},
            },
            "learning": {
                "after": {
                    "bucketing": "tokens",
                    "batch_size": 512,
                    "schedule": "inverse_sqrt",
                    "warmup_epochs": 0.5,
                    "learning_rate": 0.003,
                    "clip_norm": 1.0,
                },
            },
            "ladder": {"limit": 1500, "epochs": 2},
        },
        "gpu": {
            "repeats": 3,
            "score": "bleu",
            "training": {"layers": 6, "units": 512, "heads": 8, "hidden": 2048},
            "plan": {"optimizer": "adam", "batch_size": 128, "epochs": 5, "learning_rate": 0.0003},
            "speed": {
                "length": {"bucketing": "length"},
                "cached": {"preprocess": "cached"},
                "static": {"hybridize": "static"},
                "amp": {"precision": "amp"},
            },
            "learning": {
                "after": {
                    "bucketing": "tokens",
                    "batch_size": 4096,
                    "schedule": "inverse_sqrt",
                    "warmup_epochs": 1,
                    "learning_rate": 0.0007,
                    "clip_norm": 1.0,
                },
            },
            "ladder": {"limit": 4000, "epochs": 2},
        },
    },
}

# What each tier's notebooks read; fetched before anything is measured, for measured processes
# download nothing.
NEEDS = {
    "smoke": ("penn-fudan",),
    "cpu": ("penn-fudan", "deeplab-mobilenetv2", "multi30k"),
    "gpu": ("penn-fudan", "multi30k"),
}


@dataclass(frozen=True)
class Lab:
    """A place to measure in.

    Attributes:
        tier: ``smoke``, ``cpu`` or ``gpu``; ``why`` says why it was picked.
        folder: where this notebook's records and plots go.
        one, many: the plan's ``devices`` for one device and for several: all usable GPUs, or four
            contexts on the CPU.
        settings: sizes that the tier can afford.
    """

    tier: str
    why: str
    folder: Path
    one: str
    many: str
    settings: dict = field(default_factory=dict)

    @property
    def plan(self) -> Plan:
        """The plain plan of the tier: one device, no switch flipped."""
        return Plan(devices=self.one, **self.settings["plan"])

    def measure(self, name: str, workload: str, arms: dict[str, Plan], **how) -> measure.Experiment:
        """Measure arms in turns and keep the records here; see ``mxopt.measure.interleave``.

        ``repeats`` is the tier's unless given, and a workload without a module is one of
        ``mxopt.workloads``.
        """
        workload = workload if ":" in workload else f"mxopt.workloads:{workload}"
        return measure.interleave(
            name, workload, arms, folder=self.folder,
            **{"repeats": self.settings["repeats"], **how},
        )  # fmt: skip

    def keep(self, experiment: measure.Experiment, plot: str, figure):
        """Save a plot beside its experiment's records and return it as a notebook's picture."""
        return _picture(figure, self.folder / experiment.name / f"{plot}.png")

    def show(self, name: str, figure):
        """Save a picture that belongs to no experiment and return it as a notebook's picture."""
        return _picture(figure, self.folder / f"{name}.png")


def _picture(figure, path: Path):
    from IPython.display import Image

    figure.savefig(path, dpi=130)
    return Image(filename=path, width=720, alt=path.stem)


def open_lab(chapter: str, tier: str | None = None, folder: str | os.PathLike | None = None) -> Lab:
    """Pick a tier, make a results folder, and say both.

    Args:
        chapter: the notebook, such as ``8_1``.
        tier: the tier wanted; otherwise ``MXOPT_TIER``, otherwise the best this machine can do.
        folder: the results folder; otherwise ``MXOPT_RESULTS``, otherwise a new one in
            ``results``.

    Raises:
        PlanError, DeviceError: as for ``mxopt.hardware.pick_tier``.
        RecordError: the folder cannot be written, or holds this notebook's records already.
    """
    if chapter not in SETTINGS:
        raise PlanError(f"no notebook is called {chapter!r}; there are {', '.join(SETTINGS)}")
    picked = hardware.pick_tier(tier or os.environ.get("MXOPT_TIER") or None)
    results = Path(folder or os.environ.get("MXOPT_RESULTS") or new_results_folder())
    home = make_folder(results / chapter)
    usable = [gpu for gpu in hardware.gpus() if gpu.usable] if picked.name == "gpu" else []
    if usable:
        one, many = "gpu:0", f"gpu:0-{len(usable) - 1}"
    else:
        one, many = "cpu:0", "cpu:0-3"
    print(f"tier: {picked.name} ({picked.why})")
    print(f"records: {home}")
    missing = find_data(picked.name)
    settings = SETTINGS[chapter][picked.name]
    if settings["training"].get("network") == "deeplab_mobilenetv2" and missing:
        print("instead: the smoke tier's small network, from scratch")
        settings = SETTINGS[chapter]["smoke"]
    return Lab(picked.name, picked.why, home, one, many, settings)


def find_data(tier: str) -> list[str]:
    """Find what a tier's notebooks read and say where; only the smoke tier downloads nothing.

    Returns:
        The names of what is not to be had.

    Raises:
        DataError: a folder of the user's is there and incomplete, or a download has the wrong
            content.
    """
    missing = []
    for name in NEEDS[tier]:
        here, why = datasets.reachable(name)
        if not here and datasets.SOURCES[name].stand_in is None:
            print(f"data: {name} is not to be had. {why}")
            missing.append(name)
            continue
        found = datasets.locate(name, allow_download=tier != "smoke")
        print(f"data: {name}, {found.kind} ({found.origin}). {found.note}".rstrip())
    return missing


def new_results_folder(parent: str | os.PathLike = "results") -> Path:
    """Return ``parent/<when>-<host>``, which does not exist yet."""
    host = re.sub(r"[^\w-]+", "-", socket.gethostname()) or "host"
    return Path(parent) / f"{datetime.now():%Y-%m-%d-%H%M%S}-{host}"


def make_folder(folder: Path) -> Path:
    """Make a new folder, with its parents.

    Raises:
        RecordError: it exists and is not empty, or cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        taken = any(folder.iterdir())
    except OSError as error:
        raise RecordError(
            f"cannot make the results folder {folder} ({error.strerror or error}); "
            "choose one that can be written to"
        ) from None
    if taken:
        raise RecordError(f"{folder} holds results already; choose another results folder")
    return folder
