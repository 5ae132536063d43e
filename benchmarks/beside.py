"""Tables and verdicts that compare mxopt's arms with its peers'."""

from __future__ import annotations

from benchmarks.cases import LAUNCH, LAUNCH_DROPPED, STEPS
from mxopt import report
from mxopt.measure import Experiment

MEBIBYTE = 2**20
ABOUT_EPOCHS = """The time includes creating the network, opening the data, reading
and preprocessing each image from its file, training, and validation with loss and mIoU; only the
import of libraries is excluded. Every arm has the same images in the same order. The files may be
in the system's cache, for all arms alike. PyTorch reads with a DataLoader, in the training process
or in two workers, whose memory is not included in the peak."""


def is_peer(experiment: Experiment, arm: str) -> bool:
    """Whether an arm was PyTorch's work."""
    return bool(experiment.arm_options.get(arm, {}).get("peer"))


def own_arms(experiment: Experiment) -> list[str]:
    """Return mxopt's arms, each with one lever more than the one before it."""
    launched = {**LAUNCH, **LAUNCH_DROPPED}
    return [arm for arm in experiment.arms if arm not in launched and not is_peer(experiment, arm)]


def last_arm(experiment: Experiment) -> str:
    """Return mxopt's arm with every lever that was kept."""
    dropped = STEPS.get(experiment.name, {}).get("dropped", ())
    return [arm for arm in own_arms(experiment) if arm not in dropped][-1]


def best_peer(experiment: Experiment) -> str | None:
    """Return the peer that mxopt's last arm is least ahead of, run by run; None without any.

    (Not the one with the best median, which a quiet moment of the machine may have given it.)
    """
    last = last_arm(experiment)
    ahead = {arm: experiment.ratio(last, arm) for arm in experiment.arms
             if is_peer(experiment, arm)}  # fmt: skip
    measured = {arm: ratio.value for arm, ratio in ahead.items() if ratio}
    return min(measured, key=measured.get, default=None)


def arms(found: Experiment, share_of_one: float = 0.0) -> report.Table:
    """Return one row an arm of both: the figure, how far the last arm is ahead, memory.

    Args:
        share_of_one: which share of the ceiling one sample or token a second is; 0 shows none.
    """
    last = last_arm(found)
    rows = []
    for arm in found.arms:
        name = f"PyTorch, {arm}" if is_peer(found, arm) else f"mxopt, {arm}"
        ratio = found.ratio(last, arm) if arm != last else ""
        if found.why_not(arm):
            rows.append([name, "not measured", found.why_not(arm), "", ""])
            continue
        share = f"{found.median(arm) * share_of_one:.0%}" if share_of_one else ""
        memory = found.median(arm, "peak_memory_bytes") / MEBIBYTE
        rows.append([name, report.number(found.median(arm)), str(ratio), f"{memory:,.0f} MiB",
                     share])  # fmt: skip
    columns = ["arm", report.figure_name(found.figure), f"{last} is faster by a factor of [95 %]",
               "peak memory", "share of the ceiling"]  # fmt: skip
    if not share_of_one:
        columns, rows = columns[:-1], [row[:-1] for row in rows]
    return report.Table(columns, rows, f"Medians; data: {report.data_kind(found)}.")


def ladder(found: Experiment) -> report.Table:
    """Return one row a lever: what it changes, and its gain over the arm before it."""
    own = own_arms(found)
    kept = own.index(last_arm(found))
    rows = [[after, report.factors(found.factors(after, before)) + " (dropped)" * (number > kept),
             str(found.ratio(after, before) or "not measured"), found.verdict(after, before)]
            for number, (before, after) in enumerate(zip(own, own[1:]), 1)]  # fmt: skip
    return report.Table(["lever", "what changes", "times faster [95 %]", "verdict"], rows)


def launched(known: list[Experiment]) -> report.Table:
    """Return of every case what each thing that ``mxopt launch`` sets is worth, and all of them;
    then what it does not set."""
    rows, steps, last = [], ["threads", *LAUNCH], list(LAUNCH)[-1]
    for found in known:
        lines = [(found.baseline, steps[0]), *zip(steps, steps[1:]), (found.baseline, last),
                 *((last, arm) for arm in LAUNCH_DROPPED if arm in found.arms)]  # fmt: skip
        for before, after in lines:
            what = report.factors(found.factors(after, before)) + " (not set)" * (
                after in LAUNCH_DROPPED
            )
            speeds = (report.number(found.median(each)) for each in (before, after))
            gain = str(found.ratio(after, before) or "not measured")
            rows.append([found.title, what, *speeds, gain, found.verdict(after, before)])
    about = "The imperative training loop of a plain script; medians per second."
    return report.Table(["what is trained", *report.PAIRS[1:]], rows, about)


def tried(known: list[Experiment]) -> report.Table:
    """Return one row for each thing that was set in addition to a case's levers."""
    rows = []
    for found in known:
        for arm in list(found.arms)[1:]:
            memory = (found.median(each, "peak_memory_bytes") / MEBIBYTE
                      for each in (found.baseline, arm))  # fmt: skip
            rows.append([found.title, report.factors(found.factors(arm)),
                         str(found.ratio(arm) or "not measured"), found.verdict(arm),
                         " → ".join(f"{each:,.0f}" for each in memory) + " MiB"])  # fmt: skip
    columns = ["what is trained", "what differs", "times faster [95 %]", "verdict", "peak memory"]
    return report.Table(columns, rows)


def verdict(found: Experiment, peer: str, target: float | None, arm: str | None = None) -> str:
    """Say whether an arm, the last one if none is named, reaches a target in speed and in memory.

    Args:
        target: times faster than the peer; None if none was set, and then none for memory either.
    """
    last = arm or last_arm(found)
    ratio, memory = found.ratio(last, peer), "peak_memory_bytes"
    more = found.median(last, memory) / found.median(peer, memory)
    words = f"`{last}` relative to the fastest peer (`{peer}`): {ratio}, {ratio.verdict}."
    if target is not None:
        outcome = "met" if ratio.low >= target else "met by the mean, but not by the whole interval"
        if ratio.value < target:
            outcome = "not met"
        words += f" Target {target}: {outcome}."
    if more > 0:
        words += f" Memory: {more:.2f} times the peer's"
        words += f"; target 1: {'not ' * (more > 1)}met." if target is not None else "."
    return words


def epochs(found: Experiment) -> list[str]:
    """Return the paragraphs on whole epochs from files: what is timed, the arms, how they learn."""
    peer, sizes = best_peer(found), found.arm_options[found.baseline]
    parts = [
        f"{found.arms[found.baseline].epochs} epochs of {sizes['train']} images, "
        f"with validation on {sizes['validation']} others after each. {ABOUT_EPOCHS}",
        str(arms(found)),
    ]
    if peer:
        parts.append(verdict(found, peer, None))
        furthest = max(run.figures["loss_difference"] for arm in found.arms if is_peer(found, arm)
                       for run in found.runs[arm] if run.ok)  # fmt: skip
        parts.append(f"The validation losses before training differ by {furthest:.1g} at most.")
    learned = {"validation_loss": "", "validation_mIoU": "", "first_epoch_seconds": "s"}
    return [*parts, "Quality at the end, and the time until the first epoch was validated:",
            str(report.arms(found, learned)), str(ladder(found))]  # fmt: skip
