"""``benchmarks/README.md``, generated from the records."""

from __future__ import annotations

from pathlib import Path

from benchmarks import beside, growth, levers
from benchmarks.beside import MEBIBYTE, best_peer, is_peer, last_arm, own_arms
from benchmarks.cases import GROWTH, LAUNCH, STEPS, TRIED
from mxopt import report
from mxopt.core import atomic
from mxopt.measure import Experiment, Ratio
from mxopt.report import plots, results

PLOT = "peers.png"
LOADER_TARGET = 1.5
GIGA = 1e9
ABOUT = """# Benchmarks

`mxopt` and PyTorch on the same work. `make bench` repeats all measurements and generates this page
from `records/`; no figure is typed by hand.

**The same work** means: the same network layer by layer, with the weights copied and the outputs
equal to 1e-3 before a clock starts; the same samples, batches, loss, optimizer and precision.
Dropout masks are drawn in different ways. Each run has its own process; unless stated otherwise it
trains two epochs over data in memory, and the second is timed. Runs are interleaved, and a ratio is
that of paired runs, with its 95 % interval. PyTorch runs as installed (`eager`), with
`channels_last`, with `torch.compile`, and with `channels_last` in the environment of its launcher
`torch.backends.xeon.run_cpu` and huge pages (`tuned`). The *fastest peer* is the PyTorch arm over
which mxopt's last arm has the smallest advantage in paired runs; if it is faster than mxopt, the
verdict says so.

All figures are from the machine below, and ratios differ between processors. In particular,
PyTorch's matrix product is slower than MXNet's here (*The ceiling*), which affects every case with
large matrix products. The PyTorch arms do not use every optimisation of PyTorch: none accumulates
gradients, the Transformer has no `tuned` arm, and `torch.compile` is not combined with
`channels_last`. In the comparison of loaders, mxopt's last arm transfers images as uint8.

*Share of the ceiling* is the network's arithmetic (three times the multiplications and additions of
the unmodified network's forward pass, as counted by PyTorch) divided by the rate that the faster of
the two libraries reaches in a plain matrix product on this machine. Work that a rewrite avoids is
still counted."""
ABOUT_TRIED = "Each change alone, on top of mxopt's last arm."


def write(folder: Path) -> Path:
    """Write the page and its plots beside a folder's ``records``, and return the page's path."""
    known = _known(folder / "records")
    drawn, best = {}, beside_peers(known)
    if best:
        drawn[PLOT] = plots.intervals(best, "mxopt's last arm and the fastest PyTorch arm")
    if grown := _grown(known):
        drawn[growth.PLOT] = growth.plot(grown)
    for name, figure in drawn.items():
        figure.savefig(folder / name, dpi=130, bbox_inches="tight")
    atomic.replace_text(folder / "README.md", text(folder / "records"))
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
        parts.append(f"![mxopt and PyTorch]({PLOT})")
    parts += ["## The machine", "\n".join(machine)]
    if "ceiling" in known:
        parts += [
            "## The ceiling",
            str(report.arms(known["ceiling"], {"gflop_per_second": "GFLOP/s"})),
        ]
    for name in STEPS:
        if name in known:
            found, peer = known[name], best_peer(known[name])
            parts += [f"## {found.title}", str(beside.arms(found, _share(known, name)))]
            if peer:
                parts.append(beside.verdict(found, peer, STEPS[name]["target"]))
            parts += [
                "The effect of each lever, added to those before it:",
                str(beside.ladder(found)),
            ]
    if "epochs" in known:
        parts += [f"## {known['epochs'].title}", *beside.epochs(known["epochs"])]
    if launched := [
        known[name] for name in STEPS if name in known and LAUNCH.keys() <= known[name].arms.keys()
    ]:
        parts += ["## An unchanged script with `mxopt launch`",
                  str(beside.launched(launched))]  # fmt: skip
    if "loader" in known:
        parts += [f"## {known['loader'].title}", *_loader(known["loader"])]
    if grown := _grown(known):
        parts += ["## Growth", *growth.parts(grown)]
    if "levers" in known:
        parts += [f"## {known['levers'].title}", *levers.parts(known["levers"])]
    if tried := [known[name] for name in TRIED if name in known]:
        parts += ["## What else was tried", ABOUT_TRIED, str(beside.tried(tried))]
    if "profile" in known:
        parts += ["## Time by operator", str(report.operators(known["profile"]))]
    return "\n\n".join(parts) + "\n"


def beside_peers(known: dict[str, Experiment]) -> dict[str, Ratio]:
    """Return for every comparison the ratio of mxopt's arm to the fastest peer."""
    best = {}
    for name in (*STEPS, "epochs", "loader"):
        peer = best_peer(known[name]) if name in known else None
        if peer:
            arm = (_reader if name == "loader" else last_arm)(known[name])
            best[f"{known[name].title}: {arm}"] = known[name].ratio(arm, peer)
    return best


def _known(folder: Path) -> dict[str, Experiment]:
    return {experiment.name: experiment for _, experiment in results.read_experiments(folder)}


def _grown(known: dict[str, Experiment]) -> list[Experiment]:
    return [known[name] for name in GROWTH if name in known]


def _loader(found: Experiment) -> list[str]:
    peer, rows = best_peer(found), []
    for arm in found.arms:
        name = f"PyTorch, {arm}" if is_peer(found, arm) else f"mxopt, {arm}"
        ratio = found.ratio(arm, peer) if peer and arm != peer else ""
        memory = found.median(arm, "peak_memory_bytes") / MEBIBYTE
        rows.append([name, report.number(found.median(arm)), str(ratio),
                     report.number(found.median(arm, "first_epoch_seconds"), "s"),
                     f"{memory:,.0f} MiB" if memory > 0 else ""])  # fmt: skip
    columns = ["arm", "images per second, later epochs", f"times faster than {peer} [95 %]",
               "first epoch, with preparation", "peak memory, without workers"]  # fmt: skip
    table = str(report.Table(columns, rows, f"Medians; data: {report.data_kind(found)}."))
    if not peer:
        return [table]
    return [table, beside.verdict(found, peer, LOADER_TARGET, _reader(found))]


def _reader(found: Experiment) -> str:
    """Return mxopt's last arm that reads every image in every epoch, as the peers do."""
    return [arm for arm in own_arms(found) if found.arms[arm].preprocess == "lazy"][-1]


def _share(known: dict[str, Experiment], case: str) -> float:
    """Return the share of the ceiling that one sample or token per second is; 0 if unmeasured."""
    if not {"ceiling", "arithmetic"} <= known.keys():
        return 0.0
    most = max(map(known["ceiling"].median, known["ceiling"].arms))
    return known["arithmetic"].median(case) / GIGA / most
