"""Which tier of the experiments a machine can run, and why."""

from __future__ import annotations

from dataclasses import dataclass

from mxopt.core.errors import DeviceError, PlanError
from mxopt.machine.nvidia import Gpu, survey_gpus

TIERS = ("smoke", "cpu", "gpu")
# Minutes that each notebook takes on two idle cores: about 6 in all on the smoke tier and 71 on the
# cpu tier (Intel Xeon), divided among the notebooks as the times of their runs are. The gpu tier
# has not been timed.
MINUTES = {
    "smoke": {"8_1": 3, "8_2": 1.5, "8_3": 1.5},
    "cpu": {"8_1": 16, "8_2": 30, "8_3": 25},
}


@dataclass(frozen=True)
class Tier:
    """A tier of the experiments (one of :data:`TIERS`) and the sentence that says why."""

    name: str
    why: str


def check_tier(requested: str | None) -> None:
    """Raise :class:`PlanError` unless this is a tier's name, or None for none asked for."""
    if requested not in (None, *TIERS):
        raise PlanError(f"tier={requested!r} is not a choice; take one of {', '.join(TIERS)}")


def pick_tier(
    requested: str | None = None,
    *,
    survey: tuple[list[Gpu], str] | None = None,
    real_data: tuple[bool, str] | None = None,
) -> Tier:
    """Return the tier this machine can run, or the one asked for.

    Args:
        requested: a tier's name, or None to choose by looking.
        survey: what :func:`survey_gpus` returned; looked up when not given.
        real_data: whether Penn-Fudan is here or can be fetched, and where or why not; looked up
            when not given and needed.

    Raises:
        PlanError: there is no tier of that name.
        DeviceError: ``gpu`` was asked for and no GPU here can be used.
    """
    check_tier(requested)
    if requested in ("smoke", "cpu"):
        return Tier(requested, "asked for")
    found, reason = survey or survey_gpus()
    usable = [gpu.name for gpu in found if gpu.usable]
    if usable:
        count = f"{len(usable)} usable GPU{'s' if len(usable) > 1 else ''} ({', '.join(usable)})"
        return Tier("gpu", f"asked for, {count}" if requested else count)
    reasons = "; ".join(f"GPU {gpu.index}, {gpu.name}: {gpu.reason}" for gpu in found) or reason
    if requested:
        raise DeviceError(f"tier 'gpu' needs a usable GPU ({reasons}); take the cpu or smoke tier")
    here, where = real_data or find_real_data()
    name, data = ("cpu", "real data") if here else ("smoke", "no real data")
    return Tier(name, f"no usable GPU ({reasons}); {data}: {where}")


def find_real_data(name: str = "penn-fudan") -> tuple[bool, str]:
    """Whether a real data set is on this machine or can be fetched, and where or why not."""
    from mxopt import data as datasets  # a floor above: looked at only when a tier has to be chosen

    return datasets.reachable(name)
