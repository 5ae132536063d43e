"""The seconds of a run, compared with the times at which its events were written.

Every event has a time stamp, ``at``. Between two stamps lies a part whose seconds the clock of the
run has measured: the part cannot have taken longer, and little else happens between them. Whoever
shortens an arm has to move the stamps of all of its events, and then the starts of all later runs.
"""

from __future__ import annotations

import math
from datetime import datetime

from mxopt.core.records import Run
from mxopt.report.verify.figures import trained

# What may lie between two stamps beside the part that was timed.
TOLERANCE = 0.2, 0.05  # seconds, and a share of the time between the stamps
ROUNDING = 1e-3  # seconds


def check(run: Run) -> list[str]:
    """Return in what the seconds of a run and its time stamps contradict each other.

    Args:
        run: a run, whatever its status.

    Returns:
        The problems; empty if there are none.
    """
    problems, before, epoch_parts = [], None, 0.0
    for event in run.replay():
        now, kind = event.get("at", math.nan), event["event"]
        if before is not None and not now >= before["at"]:
            problems.append(f"its {kind} is written at {now} s, after {before['at']} s")
        if before is not None:
            gap, timed, what = now - before["at"], None, kind
            if kind == "steps":
                timed, epoch_parts = event.get("seconds"), epoch_parts + event.get("seconds", 0.0)
            elif kind in ("check", "epoch") and "validation_seconds" in event:
                timed, what = event["validation_seconds"], f"validation of the {kind}"
            elif kind == "epoch" and not trained(run) and before["event"] == "epoch":
                timed = event["seconds"]  # an epoch that only loads
            elif kind == "timed":
                timed, what = event["seconds"], "work"
            elif kind == "setup" and before["event"] == "memory":
                timed = event["preprocessing_seconds"] + event["evaluation_preprocessing_seconds"]
                what = "preparation"
            elif kind == "end":
                problems += _end(run, now)
            if timed is not None:
                problems += _part(what, timed, gap, run)
        if kind == "check" and not math.isclose(event["seconds"], epoch_parts, abs_tol=ROUNDING):
            problems.append(
                f"a check has {event['seconds']} s of its epoch, the parts before it took "
                f"{epoch_parts:.6g} s"
            )
        epoch_parts = 0.0 if kind == "epoch" else epoch_parts
        before = event
    for event in run.all("timed"):
        if event["seconds"] != run.figures.get("seconds", event["seconds"]):
            problems.append(
                f"its work took {event['seconds']} s, its figure is {run.figures['seconds']} s"
            )
    return problems + (_whole(run) if run.ok else [])


def last_stamp(run: Run) -> float:
    """Return the seconds from the start of a run to its last event."""
    return max((event["at"] for event in run.replay()), default=0.0)


def begin(run: Run) -> float:
    """Return the time at which a run started, in seconds since 1970; NaN if it is not recorded."""
    try:
        return datetime.fromisoformat(run.started.replace("Z", "+00:00")).timestamp()
    except ValueError:
        return math.nan


def _part(what: str, timed: float, gap: float, run: Run) -> list[str]:
    seconds, share = TOLERANCE
    if timed > gap + ROUNDING:
        return [f"its {what} took {timed:.6g} s, and {gap:.6g} s lie between the time stamps"]
    # A checkpoint is written between two stamps.
    if gap - timed > seconds + share * gap and not run.options.get("checkpoints"):
        return [f"its {what} took {timed:.6g} s, which does not explain the {gap:.6g} s between "
                "the time stamps"]  # fmt: skip
    return []


def _end(run: Run, now: float) -> list[str]:
    """Compare the last stamp with the seconds of the whole process."""
    seconds = run.figures.get("process_seconds")
    if not run.ok:
        return []
    if seconds is None:
        return ["has no process_seconds"]
    if abs(seconds - now) > 0.5 + 0.01 * now:
        return [f"its process took {seconds:.6g} s, its last time stamp is {now:.6g} s"]
    return []


def _whole(run: Run) -> list[str]:
    """Compare the seconds of parts of a run with those that contain them."""
    figures, problems = run.figures, []
    cores = run.only("environment").get("cpu", {}).get("logical_cores") or math.inf
    process = figures.get("process_seconds", math.inf)
    bounds = [
        ("enqueued_seconds", "seconds", 1, ROUNDING),
        ("seconds", "process_seconds", 1, ROUNDING),
        ("first_step_seconds", "seconds", 1, ROUNDING),
        ("end_to_end_seconds", "process_seconds", 1, ROUNDING),
        ("cpu_seconds", "seconds", cores, 0.1),
        ("process_cpu_seconds", "process_seconds", cores, 1.0),
        ("cpu_seconds", "process_cpu_seconds", 1, 0.1),
    ]
    for part, whole, factor, slack in bounds:
        least = figures.get(whole, math.inf)
        if part in figures and not figures[part] <= factor * least * (1 + 1e-3) + slack:
            limit = f"{factor} cores and {least:.6g} s" if factor not in (1,) else f"{least:.6g} s"
            problems.append(f"its {part} are {figures[part]:.6g} s, its {whole} allow {limit}")
    begun = [event["at"] for event in run.all("environment")]
    inside = process - begun[0] if begun else math.inf
    inner = sum(figures.get(name, 0.0) for name in ("setup_seconds", "seconds"))
    if trained(run) and not inner <= figures.get("end_to_end_seconds", inside) + ROUNDING:
        problems.append(
            f"its setup and its epochs took {inner:.6g} s, more than end_to_end_seconds"
        )
    if figures.get("end_to_end_seconds", 0.0) > inside + 0.5:
        problems.append("its end_to_end_seconds are more than the time since the environment event")
    return problems
