"""Tables and verdicts that compare arms of mxopt with arms of PyTorch, its peers."""

from __future__ import annotations

from benchmarks import given
from benchmarks.cases import LAUNCH, LAUNCH_DROPPED, STEPS
from mxopt import measure, report
from mxopt.measure import Experiment, Ratio

MEBIBYTE = 2**20
ABOUT_EPOCHS = """The time includes creating the network, opening the data, reading
and preprocessing each image from its file, training, and validation with loss and mIoU; only the
import of libraries is excluded. Every arm has the same images in the same order. The files may be
in the system's cache, for all arms alike. PyTorch reads with a DataLoader, in the training process
or in two workers, whose memory is not included in the peak."""
# Of records whose peers have no ``first_validation_seconds``.
ONE_MORE = """In this record only mxopt's arms validate before training, within their time. The
ratios to PyTorch are thus too low; without that validation `{arm}` relative to `{peer}` would be
{ratio}."""


def is_peer(experiment: Experiment, arm: str) -> bool:
    """Return whether PyTorch runs an arm.

    Args:
        experiment: the experiment.
        arm: name of the arm.
    """
    return bool(experiment.arm_options.get(arm, {}).get("peer"))


def own_arms(experiment: Experiment) -> list[str]:
    """Return the names of mxopt's arms, each with one lever more than the arm before."""
    launched, again = {**LAUNCH, **LAUNCH_DROPPED}, getattr(experiment, "again", "")
    return [
        arm
        for arm in experiment.arms
        if arm not in launched and arm != again and not is_peer(experiment, arm)
    ]


def last_arm(experiment: Experiment) -> str:
    """Return the name of mxopt's arm with all levers that were kept."""
    dropped = STEPS.get(experiment.name, {}).get("dropped", ())
    return [arm for arm in own_arms(experiment) if arm not in dropped][-1]


def best_peer(experiment: Experiment, settings_alone: bool = False) -> str | None:
    """Return the fastest peer: the one over which mxopt's last arm has the smallest advantage.

    The advantage is the ratio of paired runs. The best median is not used, because it may come from
    a moment when the machine was idle.

    Args:
        experiment: the experiment.
        settings_alone: leave out the peers that are given more than :data:`given.SETTINGS`.

    Returns:
        The name of the arm, or None if no such peer was measured.
    """
    last = last_arm(experiment)
    peers = [arm for arm in experiment.arms if is_peer(experiment, arm)]
    if settings_alone:
        has = {arm: given.of(experiment.arm_options[arm]["peer"]) for arm in peers}
        peers = [arm for arm in peers if has[arm].keys() <= given.SETTINGS]
    ahead = {arm: experiment.ratio(last, arm) for arm in peers}
    measured = {arm: ratio.value for arm, ratio in ahead.items() if ratio}
    return min(measured, key=measured.get, default=None)


def arms(found: Experiment, share_of_one: float = 0.0) -> report.Table:
    """Return a table of all arms: the figure, the advantage of mxopt's last arm, and memory.

    Args:
        found: the experiment.
        share_of_one: share of the ceiling that one sample or token per second is; 0 leaves the
            column out.
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
    """Return a table of the levers: what each changes, and its gain over the arm before."""
    own = own_arms(found)
    kept = own.index(last_arm(found))
    rows = [[after, report.factors(found.factors(after, before)) + " (dropped)" * (number > kept),
             str(found.ratio(after, before) or "not measured"), found.verdict(after, before)]
            for number, (before, after) in enumerate(zip(own, own[1:]), 1)]  # fmt: skip
    return report.Table(["lever", "what changes", "times faster [95 %]", "verdict"], rows)


def launched(known: list[Experiment]) -> report.Table:
    """Return a table of the effects of ``mxopt launch``, for every case.

    The rows are each setting, all of them together, and the settings that it does not use.

    Args:
        known: the experiments of the cases.
    """
    rows, last = [], list(LAUNCH)[-1]
    for found in known:
        steps = ["threads", *(arm for arm in LAUNCH if arm in found.arms)]
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
    """Return a table with one row for each change of a case's last arm.

    Args:
        known: the experiments.
    """
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
    """Return a paragraph that compares an arm with a peer, in speed and memory.

    Args:
        found: the experiment.
        peer: name of the peer's arm.
        target: how many times faster than the peer the arm should be; None for no targets.
        arm: name of mxopt's arm; the last one if None.
    """
    last = arm or last_arm(found)
    ratio, more = found.ratio(last, peer), memory_ratio(found, last, peer)
    words = (
        f"`{last}` relative to the fastest peer (`{peer}`): {ratio}, {found.verdict(last, peer)}."
    )
    again = getattr(found, "again", "")
    noise = found.ratio(last, again) if again in found.arms and again.startswith(last) else None
    if noise and not noise.low <= 1 <= noise.high:
        words += f" The same arm measured twice differs by {noise}: less than that shows nothing."
    if target is not None:
        words += f" Target {target}: {outcome(ratio, target)}."
    if more > 0:
        words += f" Memory: {more:.2f} times the peer's"
        words += f"; target 1: {'not ' * (more > 1)}met." if target is not None else "."
    return words


def memory_ratio(found: Experiment, arm: str, peer: str) -> float:
    """Return an arm's peak memory relative to a peer's; NaN if one was not measured.

    Args:
        found: the experiment.
        arm: name of mxopt's arm.
        peer: name of the peer's arm.
    """
    figure = "peak_memory_bytes"
    return found.median(arm, figure) / found.median(peer, figure)


def outcome(ratio: Ratio, target: float) -> str:
    """Return whether a ratio meets a target, with its whole interval or not.

    Args:
        ratio: the ratio.
        target: what it should be at least.
    """
    if ratio.value < target:
        return "not met"
    return "met" if ratio.low >= target else "met by the mean, but not by the whole interval"


def epochs(found: Experiment) -> list[str]:
    """Return the paragraphs on whole epochs from files: what is timed, the arms, and quality."""
    peer, sizes = best_peer(found), found.arm_options[found.baseline]
    parts = [
        f"{found.arms[found.baseline].epochs} epochs of {sizes['train']} images, "
        f"with validation on {sizes['validation']} others before the first and after each. "
        f"{ABOUT_EPOCHS}",
        str(arms(found)),
    ]
    if peer:
        parts += [verdict(found, peer, None), *_one_more(found, peer)]
        furthest = max(run.figures["loss_difference"] for arm in found.arms if is_peer(found, arm)
                       for run in found.runs[arm] if run.ok)  # fmt: skip
        parts.append(f"The validation losses before training differ by {furthest:.1g} at most.")
    learned = {"validation_loss": "", "validation_mIoU": "", "first_epoch_seconds": "s"}
    return [*parts, "Quality at the end, and the time until the first epoch was validated:",
            str(report.arms(found, learned)), str(ladder(found))]  # fmt: skip


def _one_more(found: Experiment, peer: str) -> list[str]:
    """Return a note on a record in which only mxopt validated before training."""
    arm, name = last_arm(found), "first_validation_seconds"
    if any(name in run.figures for run in found.runs[peer]):
        return []
    checks = [run.only("check").get("validation_seconds", 0.0) for run in found.runs[arm]]
    less = [whole - check for whole, check in zip(found.figures(arm), checks)]
    ratio = measure.ratio(found.figures(peer), less)
    return [ONE_MORE.format(arm=arm, peer=peer, ratio=ratio)]
