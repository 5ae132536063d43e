"""The lab: settings and results folder of a notebook, chosen for the machine that it runs on.

``open_lab`` picks a tier that the machine can run, makes a results folder and prints both. The same
notebook runs on a laptop and on a machine with four GPUs; only the lab's settings differ.
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
from mxopt.chapter.settings import HEADLINES, SETTINGS, data_sets
from mxopt.chapter.settings.chapter import FROM_SCRATCH, NEEDS
from mxopt.core.errors import DataError, DeviceError, PlanError, RecordError
from mxopt.core.plan import Plan
from mxopt.data.pretrained import gluoncv_weights
from mxopt.report import plots


@dataclass(frozen=True)
class Lab:
    """The settings and the results folder of a notebook.

    Attributes:
        tier: ``smoke``, ``cpu`` or ``gpu``.
        why: why this tier was picked.
        folder: folder of the notebook's records and plots.
        one: value of ``Plan.devices`` for one device.
        many: value of ``Plan.devices`` for several devices: usable GPUs, as many as a batch has
            samples for, or four contexts on the CPU.
        settings: sizes, plans and levers of the tier (:mod:`mxopt.chapter.settings`).
        resume: whether to continue an interrupted run, whose records are in the folder.
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
        """The tier's plan on one device, without optimisations."""
        return Plan(devices=self.one, **self.settings["plan"])

    def measure(self, name: str, workload: str, arms: dict[str, Plan], **how) -> measure.Experiment:
        """Measure arms in interleaved runs, with their records in the lab's folder.

        Args:
            name: name of the experiment.
            workload: ``module:function``, or a function of :mod:`mxopt.chapter.workloads`.
            arms: plans by name; the first is the baseline.
            **how: other arguments of :func:`mxopt.measure.interleave`; ``repeats`` is the tier's
                and ``again`` the first arm unless given, and ``headline`` is taken from
                ``settings.HEADLINES``. What compares nothing is not measured again.
        """
        workload = workload if ":" in workload else f"mxopt.chapter.workloads:{workload}"
        how = {"repeats": self.settings["repeats"], **how}
        if how["repeats"] > 1 and how.get("pairs") != []:
            how.setdefault("again", next(iter(arms)))
        named = HEADLINES.get(name, [])
        how.setdefault("headline", [pair for pair in named if {*pair} <= arms.keys()])
        return measure.interleave(
            name, workload, arms, folder=self.folder, resume=self.resume,
            **how,
        )  # fmt: skip

    def ablate(self, name: str, workload: str, before: Plan, levers: dict[str, dict],
               **how) -> measure.Ablation:  # fmt: skip
        """Measure how much each lever contributes to a speed-up.

        Args:
            name: name of the experiment.
            workload: a function of :mod:`mxopt.chapter.workloads`.
            before: the plan without any lever.
            levers: ``{lever: {name: value}}``, what each changes.
            **how: other arguments of :func:`mxopt.measure.ablate`; ``repeats`` is the tier's unless
                given.
        """
        how = {"repeats": self.settings["repeats"], "again": "before", **how}
        return measure.ablate(name, f"mxopt.chapter.workloads:{workload}", before, levers,
                              folder=self.folder, resume=self.resume, **how)  # fmt: skip

    def keep(self, experiment: measure.Experiment, plot: str, figure):
        """Save a plot of an experiment, and return it as a picture for the notebook.

        Args:
            experiment: the experiment, in whose folder the plot is saved.
            plot: name of the file, without its ending.
            figure: the Matplotlib figure.
        """
        return _picture(figure, self.folder / experiment.name / f"{plot}.png")

    def show(self, name: str, figure):
        """Save a picture that belongs to no experiment, and return it for the notebook.

        Args:
            name: name of the file, without its ending.
            figure: the Matplotlib figure.
        """
        return _picture(figure, self.folder / f"{name}.png")


def _picture(figure, path: Path):
    from IPython.display import Image

    figure.savefig(path, dpi=plots.DPI)
    # Not alt=..., which the IPython of Colab does not know.
    return Image(filename=path, width=720, metadata={"alt": path.stem})


def open_lab(
    chapter: str,
    tier: str | None = None,
    folder: str | os.PathLike | None = None,
    long: bool | None = None,
) -> Lab:
    """Pick a tier, make a results folder, and print both.

    Args:
        chapter: name of the notebook, such as ``8_1``.
        tier: name of the tier; if None, that in ``MXOPT_TIER``, or the best for this machine.
        folder: the results folder; if None, that in ``MXOPT_RESULTS``, or a new one in ``results``.
        long: whether to add measurements that take longer than the tier's usual minutes; if None,
            whether ``MXOPT_LONG`` is set.

    Returns:
        The lab.

    Raises:
        PlanError: there is no such notebook or tier.
        DeviceError: the ``gpu`` tier was requested, and no GPU can be used.
        RecordError: the folder cannot be written, or already holds records of this notebook and
            ``MXOPT_RESUME`` is not set.
        DataError: the weights that the tier fine-tunes are unavailable.
    """
    if chapter not in SETTINGS:
        raise PlanError(f"no notebook is called {chapter!r}; there are {', '.join(SETTINGS)}")
    picked = tiers.pick_tier(tier or os.environ.get("MXOPT_TIER") or None)
    if not tier and os.environ.get("MXOPT_TIER_WHY"):  # the reason for MXOPT_TIER
        picked = tiers.Tier(picked.name, os.environ["MXOPT_TIER_WHY"])
    results = Path(folder or os.environ.get("MXOPT_RESULTS") or new_results_folder())
    resume = bool(os.environ.get("MXOPT_RESUME"))
    home = make_folder(results / chapter, resume)
    print(f"tier: {picked.name} ({picked.why})")
    print(f"records: {home}")
    one, many = "cpu:0", "cpu:0-3"
    if picked.name == "gpu":
        one, many = _gpus(SETTINGS[chapter]["gpu"]["plan"]["batch_size"])
    missing = find_data(picked.name, data_sets(chapter))
    settings = SETTINGS[chapter][picked.name]
    if settings["training"].get("network") == "deeplab_mobilenetv2" and missing:
        print("instead: the smoke tier's small network, from scratch")
        settings = SETTINGS[chapter]["smoke"]
    if settings["training"].get("network") == "deeplab_resnet101":
        gluoncv_weights("deeplab_resnet101_coco")
    if settings["training"].get("pretrained"):
        settings = _with_pretrained(settings)
    if os.environ.get("MXOPT_LONG") if long is None else long:
        more = settings.get("long", {})
        print(f"long: {', '.join(more) or 'nothing more on this tier'}")
        settings = {**settings, **more}
    return Lab(picked.name, picked.why, home, one, many, settings, resume)


def _gpus(batch_size: int) -> tuple[str, str]:
    """Hide all GPUs but the usable ones from CUDA; return ``Lab.one`` and ``Lab.many``."""
    found = machine.gpus()
    usable = [gpu for gpu in found if gpu.usable]
    if len(usable) < len(found):
        os.environ.update(machine.show_only(usable))  # read when CUDA starts, here and in children
    import mxnet as mx  # after the variables are set, which CUDA reads once

    seen = mx.context.num_gpus()
    if not seen:
        raise DeviceError("the driver lists usable GPUs, and MXNet sees none: run `mxopt doctor`")
    if seen < len(usable):
        print(f"devices: MXNet sees {seen} of {len(usable)} usable GPUs; `mxopt doctor` says more")
    seen = min(seen, len(usable))
    count = min(seen, batch_size)
    if seen == 1:
        print("devices: one GPU, so arms with several devices run on it alone")
    elif count < seen:
        print(f"devices: {count} of {seen} GPUs, one for each sample of a batch")
    return "gpu:0", f"gpu:0-{count - 1}"


def _with_pretrained(settings: dict) -> dict:
    """Fetch the chapter's text and weights, or train a network of that size from scratch."""
    from mxopt.recipes.translation.recipe import fetch_pretrained

    try:
        fetch_pretrained()
    except DataError as error:
        print(f"data: {error}")
        print("instead: Multi30k, and a network of that size from scratch")
        return {**settings, "training": FROM_SCRATCH}
    return settings


def find_data(tier: str, needs: dict[str, tuple] = NEEDS) -> list[str]:
    """Find or download what a tier's notebooks read, and print where it is.

    Args:
        tier: name of the tier; nothing is downloaded for ``smoke``.
        needs: names of data sets, by tier; those of the chapter by default.

    Returns:
        The names of what is unavailable and has no stand-in.

    Raises:
        DataError: a folder of the user is incomplete, or a download has the wrong content.
    """
    missing = []
    for name in needs[tier]:
        here, why = data.reachable(name)
        if not here and data.SOURCES[name].stand_in is None:
            print(f"data: {name} is unavailable. {why}")
            missing.append(name)
            continue
        found = data.locate(name, allow_download=tier != "smoke")
        print(f"data: {name}, {found.kind} ({found.origin}). {found.note}".rstrip())
    return missing


def new_results_folder(parent: str | os.PathLike = "results") -> Path:
    """Return the path of a new folder, ``parent/<time>-<host>``, which is not created."""
    host = re.sub(r"[^\w-]+", "-", socket.gethostname()) or "host"
    return Path(parent) / f"{datetime.now():%Y-%m-%d-%H%M%S}-{host}"


def make_folder(folder: Path, resume: bool = False) -> Path:
    """Make a new folder, with its parents.

    Args:
        folder: path of the folder.
        resume: whether it may already exist and hold results.

    Returns:
        The path.

    Raises:
        RecordError: the folder is not empty, or cannot be made.
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
        raise RecordError(f"{folder} already holds results; choose another folder, or resume it")
    return folder
