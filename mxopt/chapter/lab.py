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

from mxopt import data, machine, measure
from mxopt.chapter import tiers
from mxopt.chapter.settings import FROM_SCRATCH, NEEDS, SETTINGS
from mxopt.core.errors import DataError, PlanError, RecordError
from mxopt.core.plan import Plan


@dataclass(frozen=True)
class Lab:
    """A place to measure in.

    Attributes:
        tier: ``smoke``, ``cpu`` or ``gpu``; ``why`` says why it was picked.
        folder: where this notebook's records and plots go.
        one, many: the plan's ``devices`` for one device and for several: all usable GPUs, or four
            contexts on the CPU.
        settings: sizes that the tier can afford.
        resume: whether the folder is that of an interrupted run, which is gone on with.
    """

    tier: str
    why: str
    folder: Path
    one: str
    many: str
    settings: dict = field(default_factory=dict)
    resume: bool = False

    @property
    def plan(self) -> Plan:
        """The plain plan of the tier: one device, no switch flipped."""
        return Plan(devices=self.one, **self.settings["plan"])

    def measure(self, name: str, workload: str, arms: dict[str, Plan], **how) -> measure.Experiment:
        """Measure arms in turns and keep the records here; see ``mxopt.measure.interleave``.

        ``repeats`` is the tier's unless given, and a workload without a module is one of
        ``mxopt.chapter.workloads``.
        """
        workload = workload if ":" in workload else f"mxopt.chapter.workloads:{workload}"
        return measure.interleave(
            name, workload, arms, folder=self.folder, resume=self.resume,
            **{"repeats": self.settings["repeats"], **how},
        )  # fmt: skip

    def ablate(self, name: str, workload: str, before: Plan, levers: dict[str, dict],
               **how) -> measure.Ablation:  # fmt: skip
        """Say how much of a speed-up is each lever's; see ``mxopt.measure.ablate``."""
        how = {"repeats": self.settings["repeats"], **how}
        return measure.ablate(name, f"mxopt.chapter.workloads:{workload}", before, levers,
                              folder=self.folder, resume=self.resume, **how)  # fmt: skip

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


def open_lab(
    chapter: str,
    tier: str | None = None,
    folder: str | os.PathLike | None = None,
    long: bool | None = None,
) -> Lab:
    """Pick a tier, make a results folder, and say both.

    Args:
        chapter: the notebook, such as ``8_1``.
        tier: the tier wanted; otherwise ``MXOPT_TIER``, otherwise the best this machine can do.
        folder: the results folder; otherwise ``MXOPT_RESULTS``, otherwise a new one in
            ``results``.
        long: whether to measure what takes longer than the tier's usual minutes; otherwise
            whether ``MXOPT_LONG`` is set.

    Raises:
        PlanError, DeviceError: as for ``mxopt.chapter.tiers.pick_tier``.
        RecordError: the folder cannot be written, or holds this notebook's records already and
            ``MXOPT_RESUME`` is not set.
    """
    if chapter not in SETTINGS:
        raise PlanError(f"no notebook is called {chapter!r}; there are {', '.join(SETTINGS)}")
    picked = tiers.pick_tier(tier or os.environ.get("MXOPT_TIER") or None)
    if not tier and os.environ.get("MXOPT_TIER_WHY"):  # of whoever has picked MXOPT_TIER
        picked = tiers.Tier(picked.name, os.environ["MXOPT_TIER_WHY"])
    results = Path(folder or os.environ.get("MXOPT_RESULTS") or new_results_folder())
    resume = bool(os.environ.get("MXOPT_RESUME"))
    home = make_folder(results / chapter, resume)
    usable = [gpu for gpu in machine.gpus() if gpu.usable] if picked.name == "gpu" else []
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
    if settings["training"].get("pretrained"):
        settings = _with_pretrained(settings)
    if os.environ.get("MXOPT_LONG") if long is None else long:
        more = settings.get("long", {})
        print(f"long: {', '.join(more) or 'nothing more on this tier'}")
        settings = {**settings, **more}
    return Lab(picked.name, picked.why, home, one, many, settings, resume)


def _with_pretrained(settings: dict) -> dict:
    """Fetch the chapter's text and network, or take a network of its size, from scratch."""
    from mxopt.recipes.translation.recipe import fetch_pretrained

    try:
        fetch_pretrained()
    except DataError as error:
        print(f"data: {error}")
        print("instead: Multi30k, and a network of that size from scratch")
        return {**settings, "training": FROM_SCRATCH}
    return settings


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
        here, why = data.reachable(name)
        if not here and data.SOURCES[name].stand_in is None:
            print(f"data: {name} is not to be had. {why}")
            missing.append(name)
            continue
        found = data.locate(name, allow_download=tier != "smoke")
        print(f"data: {name}, {found.kind} ({found.origin}). {found.note}".rstrip())
    return missing


def new_results_folder(parent: str | os.PathLike = "results") -> Path:
    """Return ``parent/<when>-<host>``, which does not exist yet."""
    host = re.sub(r"[^\w-]+", "-", socket.gethostname()) or "host"
    return Path(parent) / f"{datetime.now():%Y-%m-%d-%H%M%S}-{host}"


def make_folder(folder: Path, resume: bool = False) -> Path:
    """Make a new folder, with its parents; to resume, it may be there and hold results.

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
    if taken and not resume:
        raise RecordError(f"{folder} holds results already; choose another folder, or resume it")
    return folder
