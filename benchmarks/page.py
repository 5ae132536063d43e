"""``benchmarks/README.md``, written from the records: the figures beside the targets."""

from __future__ import annotations

from pathlib import Path

from benchmarks import growth
from benchmarks.cases import GROWTH, STEPS
from mxopt import files, plots, report, results
from mxopt.measure import Experiment, Ratio

PLOT = "peers.png"
LOADER_TARGET = 1.5
GIGA, MEBIBYTE = 1e9, 2**20
ABOUT = """# Benchmarks

How fast `mxopt` is beside PyTorch on the same work. `make bench` measures all of it anew and
writes this page from `records/`; nothing on it is typed.

**The same work** means: the network layer for layer, with the weights carried over and the scores
equal to 1e-3 before a clock starts; the same samples, batches, loss, optimizer and precision.
Each run is a process of its own that trains two epochs over data in memory and is timed in the
second; runs take turns, and a ratio is that of paired runs with its 95 % interval. PyTorch runs
as installed (`eager`), with `channels_last`, with `torch.compile`, and in the environment that its
`torch.backends.xeon.run_cpu` sets up (`tuned`). A peer that wins is printed as the winner.
*Share of the ceiling* is the network's arithmetic (three times the multiplications and additions of
the plain network's forward pass, as PyTorch counts them) over what the faster of both libraries
reaches in a plain matrix product on this machine. Work that a rewrite leaves out still counts."""


def write(folder: Path) -> Path:
    """Write the page and its plots beside a folder's ``records``, and return the page's path."""
    known = _known(folder / "records")
    drawn, best = {}, beside_peers(known)
    if best:
        drawn[PLOT] = plots.intervals(best, "mxopt's last arm beside the fastest PyTorch")
    if grown := _grown(known):
        drawn[growth.PLOT] = growth.plot(grown)
    for name, figure in drawn.items():
        figure.savefig(folder / name, dpi=130, bbox_inches="tight")
    files.replace_text(folder / "README.md", text(folder / "records"))
    return folder / "README.md"


def text(folder: Path) -> str:
    """Return the page's Markdown, computed from the records below a folder."""
    known = _known(folder)
    runs = [run for e in known.values() for arm in e.runs.values() for run in arm]
    machine = results.machine(next(run.only("environment") for run in runs if run.events))
    versions = {run.figures["version"] for run in runs if "version" in run.figures}
    machine += [f"- **peer**: PyTorch {version}" for version in sorted(versions)]
    parts = [ABOUT]
    if beside_peers(known):
        parts.append(f"![mxopt beside PyTorch]({PLOT})")
    parts += ["## The machine", "\n".join(machine)]
    if "ceiling" in known:
        parts += [
            "## The ceiling",
            str(report.arms(known["ceiling"], {"gflop_per_second": "GFLOP/s"})),
        ]
    for name in STEPS:
        if name in known:
            found, peer = known[name], best_peer(known[name])
            parts += [f"## {found.title}", str(_arms(found, _share(known, name)))]
            if peer:
                parts.append(_verdict(found, peer, STEPS[name]["target"]))
            parts += ["What each lever is worth, added to those before it:", str(_levers(found))]
    if launched := [name for name in STEPS if name in known and "launch" in STEPS[name]]:
        parts += ["## A script unchanged, in `mxopt launch`'s environment",
                  str(_launched({name: known[name] for name in launched}))]  # fmt: skip
    if "loader" in known:
        parts += [f"## {known['loader'].title}", *_loader(known["loader"])]
    if grown := _grown(known):
        parts += ["## Growth", *growth.parts(grown)]
    if "profile" in known:
        parts += ["## Where the time goes", str(report.operators(known["profile"]))]
    return "\n\n".join(parts) + "\n"


def beside_peers(known: dict[str, Experiment]) -> dict[str, Ratio]:
    """Return of every comparison mxopt's best arm beside the fastest peer."""
    best = {}
    for name in (*STEPS, "loader"):
        peer = best_peer(known[name]) if name in known else None
        if peer:
            arm = last_arm(known[name])
            best[f"{known[name].title}: {arm}"] = known[name].ratio(arm, peer)
    return best


def _known(folder: Path) -> dict[str, Experiment]:
    return {experiment.name: experiment for _, experiment in results.read_experiments(folder)}


def _grown(known: dict[str, Experiment]) -> list[Experiment]:
    return [known[name] for name in GROWTH if name in known]


def is_peer(experiment: Experiment, arm: str) -> bool:
    """Whether an arm was PyTorch's work."""
    return bool(experiment.arm_options.get(arm, {}).get("peer"))


def last_arm(experiment: Experiment) -> str:
    """Return mxopt's arm with every lever."""
    return [arm for arm in experiment.arms if not is_peer(experiment, arm)][-1]


def best_peer(experiment: Experiment) -> str | None:
    """Return the fastest peer, None if none was measured."""
    speeds = {arm: experiment.median(arm) for arm in experiment.arms
              if is_peer(experiment, arm) and experiment.figures(arm)}  # fmt: skip
    return max(speeds, key=speeds.get, default=None)


def _arms(found: Experiment, share_of_one: float) -> report.Table:
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
    columns = ["arm", report.figure_name(found.figure), f"{last} is times faster [95 %]",
               "peak memory", "share of the ceiling"]  # fmt: skip
    return report.Table(columns, rows, f"Medians; data: {report.data_kind(found)}.")


def _levers(found: Experiment) -> report.Table:
    own = [arm for arm in found.arms if not is_peer(found, arm)]
    rows = [[after, report.factors(found.factors(after, before)),
             str(found.ratio(after, before) or "not measured"), found.verdict(after, before)]
            for before, after in zip(own, own[1:])]  # fmt: skip
    return report.Table(["lever", "what changes", "times faster [95 %]", "verdict"], rows)


def _launched(known: dict[str, Experiment]) -> report.Table:
    rows = []
    for name, found in known.items():
        arm = STEPS[name]["launch"]
        speeds = (report.number(found.median(each)) for each in (found.baseline, arm))
        rows.append([found.title, report.factors(found.factors(arm)), *speeds,
                     str(found.ratio(arm) or "not measured"), found.verdict(arm)])  # fmt: skip
    about = "The imperative training loop, as a script would have it; medians a second."
    return report.Table(["what is trained", *report.PAIRS[1:]], rows, about)


def _verdict(found: Experiment, peer: str, target: float) -> str:
    """Say whether the last arm reaches a target beside a peer, in speed and in memory."""
    last = last_arm(found)
    ratio, memory = found.ratio(last, peer), "peak_memory_bytes"
    outcome = "met" if ratio.low >= target else "met by the mean, not by the whole interval"
    if ratio.value < target:
        outcome = "not met"
    words = (
        f"Beside the fastest peer ({peer}): {ratio}, {ratio.verdict}. Target {target}: {outcome}."
    )
    more = found.median(last, memory) / found.median(peer, memory)
    if more > 0:
        words += f" Memory: {more:.2f} times the peer's; target 1: {'not ' * (more > 1)}met."
    return words


def _loader(found: Experiment) -> list[str]:
    peer, rows = best_peer(found), []
    for arm in found.arms:
        name = f"PyTorch, {arm}" if is_peer(found, arm) else f"mxopt, {arm}"
        ratio = found.ratio(arm, peer) if peer and arm != peer else ""
        memory = found.median(arm, "peak_memory_bytes") / MEBIBYTE
        rows.append([name, report.number(found.median(arm)), str(ratio),
                     report.number(found.median(arm, "first_epoch_seconds"), "s"),
                     f"{memory:,.0f} MiB" if memory > 0 else ""])  # fmt: skip
    columns = ["arm", "images a second, later epochs", f"times faster than {peer} [95 %]",
               "the first epoch, with preparation", "peak memory, without workers"]  # fmt: skip
    table = str(report.Table(columns, rows, f"Medians; data: {report.data_kind(found)}."))
    if not peer:
        return [table]
    return [table, _verdict(found, peer, LOADER_TARGET)]


def _share(known: dict[str, Experiment], case: str) -> float:
    """Return which share of the ceiling one sample or token a second is; 0 if not measured."""
    if not {"ceiling", "arithmetic"} <= known.keys():
        return 0.0
    most = max(map(known["ceiling"].median, known["ceiling"].arms))
    return known["arithmetic"].median(case) / GIGA / most
