"""Choice of the tier of experiments that a machine can run."""

from __future__ import annotations

from dataclasses import dataclass

from mxopt.core.errors import DeviceError, PlanError
from mxopt.machine.nvidia import Gpu, survey_gpus

TIERS = ("smoke", "cpu", "gpu")


@dataclass(frozen=True)
class Tier:
    """A tier of the experiments.

    Attributes:
        name: one of :data:`TIERS`.
        why: why it was picked.
    """

    name: str
    why: str


def check_tier(requested: str | None) -> None:
    """Make sure that a requested tier exists.

    Args:
        requested: name of the tier, or None.

    Raises:
        PlanError: there is no tier of that name.
    """
    if requested not in (None, *TIERS):
        raise PlanError(f"tier={requested!r} is not a choice; take one of {', '.join(TIERS)}")


def pick_tier(
    requested: str | None = None,
    *,
    survey: tuple[list[Gpu], str] | None = None,
    real_data: tuple[bool, str] | None = None,
) -> Tier:
    """Return the requested tier, or the best one that this machine can run.

    Args:
        requested: name of the tier; None to choose one.
        survey: result of :func:`mxopt.machine.nvidia.survey_gpus`; computed if None.
        real_data: result of :func:`find_real_data`; computed if None and needed.

    Returns:
        The tier, with the reason.

    Raises:
        PlanError: there is no tier of that name.
        DeviceError: ``gpu`` was requested, and no GPU of this machine can be used.
    """
    check_tier(requested)
    if requested in ("smoke", "cpu"):
        return Tier(requested, "requested")
    found, reason = survey or survey_gpus()
    usable = [gpu.name for gpu in found if gpu.usable]
    if usable:
        count = f"{len(usable)} usable GPU{'s' if len(usable) > 1 else ''} ({', '.join(usable)})"
        return Tier("gpu", f"requested, {count}" if requested else count)
    reasons = "; ".join(f"GPU {gpu.index}, {gpu.name}: {gpu.reason}" for gpu in found) or reason
    if requested:
        raise DeviceError(f"tier 'gpu' needs a usable GPU ({reasons}); take the cpu or smoke tier")
    here, where = real_data or find_real_data()
    name, data = ("cpu", "real data") if here else ("smoke", "no real data")
    return Tier(name, f"no usable GPU ({reasons}); {data}: {where}")


def find_real_data(name: str = "penn-fudan") -> tuple[bool, str]:
    """Return whether a real data set is present or can be downloaded, and where, or why not."""
    from mxopt import data as datasets  # here, so that the doctor starts without it

    return datasets.reachable(name)
