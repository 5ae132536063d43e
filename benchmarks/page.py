"""``benchmarks/README.md``, generated from the records."""

from __future__ import annotations

from pathlib import Path

from benchmarks import (
    beside,
    ceilings,
    given,
    growth,
    levers,
    predict,
    roofline,
    roofline_plot,
    sizes,
)
from benchmarks.beside import MEBIBYTE, best_peer, is_peer, last_arm, own_arms
from benchmarks.cases import ALONE, LAUNCH, STEPS, TRIED
from benchmarks.goal import EPOCH
from mxopt import report
from mxopt.core import atomic
from mxopt.measure import Experiment
from mxopt.report import heading, plots, ratio_plots, results

PLOT = "peers.png"
LADDERS = "ladders"  # within a processor's folder: experiments of every lever that are kept
COMPARED = (*STEPS, *ALONE, "garments", "epochs", "loader")
# How many times faster than the fastest peer mxopt is meant to be.
TARGETS = {
    **{name: case["target"] for name, case in STEPS.items()},
    "garments": EPOCH["target"],
    "loader": 1.5,
}
ABOUT = """# Benchmarks

`mxopt` and PyTorch on the same work. `make bench` repeats the measurements and generates this page
from `records/<processor>/`; no figure of ours is typed by hand. With its defaults, six runs of each
arm, it takes about an hour on two cores; `make bench LONG=1` also measures every lever, whole
epochs, loaders, other sizes, products by the BLAS, growth and the time of operators, and takes some
hours.

**The same work** means: the same network layer by layer, with the weights copied and the outputs
equal to 1e-3 before a clock starts; the same samples, batches, loss, optimizer and precision.
Dropout is drawn in different ways: mxopt's `cpu_operators` draw it from 512 shared rows, PyTorch
only in arms given `shared_dropout`. Each run has its own process; unless stated otherwise it trains
two epochs over data in memory, and the second is timed. Runs are interleaved, their number is fixed
before measuring, and a ratio is that of paired runs, with its 95 % interval. The arm whose name
ends in `-again` repeats one of mxopt's: its ratio, which would be 1 without noise, shows the
noise of the measurement.

Pairs are named before measuring: mxopt's last arm relative to each arm of PyTorch. The *fastest
peer* is the PyTorch arm over which mxopt's last arm has the smallest advantage in paired runs. It
is thus chosen by its result, in PyTorch's favour; if it is faster than mxopt, the verdict says so.

*Share of the ceiling* is the network's arithmetic (three times the multiplications and additions of
the unmodified network's forward pass, as counted by PyTorch) divided by the highest rate that a
library reaches in a plain matrix product on this machine. Work that a rewrite avoids is still
counted; padding of sentences is not, except in records that have no arm `packed`."""
ABOUT_FASTEST = """How many times faster mxopt's last arm is than the fastest peer [95 %], and its
peak memory relative to that peer's, which is meant to be at most 1. Below, each processor's section
names the arms. Of AMD's processors, family 25 is Zen 3 (EPYC 7003) with model 1 and Zen 4
(EPYC 9004) with model 17; family 26, model 2 is Zen 5 (EPYC 9005)."""
ABOUT_SETTINGS = f"""Some of these peers have mxopt's own methods, written in PyTorch for this
comparison: accumulation, a fused loss, shared dropout, no padding. Beside the fastest of the peers
that have only {", ".join(f"`{each}`" for each in sorted(given.SETTINGS))}, which need no
other lines in the training step:"""
ABOUT_TRIED = "Each change alone, on top of mxopt's last arm."
ABOUT_BLAS = """MXNet's `dot` and `batch_dot` call the OpenBLAS of 2021 in its wheel, or the library
that `blas` puts in front of it: one product of matrices of 2048 rows, and 512 of 64 rows. The
others have to be installed: `pip install mkl`, `apt-get install libopenblas0-pthread`."""
ABOUT_GARMENTS = """The network of [the record](../docs/records/fashion_mnist.md), trained from new
weights with its settings but for the number of epochs: preparation of the images, the epoch and the
compilation of networks are timed, validation is not. (Kernels are compiled once for a machine.)"""


def write(folder: Path) -> Path:
    """Write the page, and its plots among a folder's ``records``, and return the page's path."""
    home = folder / "records"
    known = _every(home)
    drawn = {home / PLOT: _beside_each_other(known)} if _compared(known) else {}
    for own, experiments in known.items():
        if grown := _grown(experiments):
            drawn[own / growth.PLOT] = growth.plot(grown)
        if "roofline" in experiments:
            drawn[own / roofline.PLOT] = roofline_plot.plot(experiments["roofline"])
    for path, figure in drawn.items():
        figure.savefig(path, dpi=plots.DPI, bbox_inches="tight")
    atomic.replace_text(folder / "README.md", text(home))
    return folder / "README.md"


def processors(folder: Path) -> list[Path]:
    """Return the folders of records, one for each processor."""
    return sorted(path for path in folder.iterdir() if path.is_dir())


def text(folder: Path) -> str:
    """Return the page's Markdown, computed from the records below a folder."""
    known = _every(folder)
    compared = _compared(known)
    parts = [ABOUT]
    if compared:
        parts += ["## Beside the fastest peer", f"![mxopt and PyTorch]({folder.name}/{PLOT})",
                  ABOUT_FASTEST, str(_summary(known)), *_settings_alone(known)]  # fmt: skip
    every = [found for row in compared.values() for found in row if found]
    parts += ["## What PyTorch is given", given.ALWAYS, given.legend(), str(given.table(every))]
    for home, experiments in known.items():
        parts += _processor(experiments, f"{folder.name}/{home.name}")
    return "\n\n".join(parts) + "\n"


def _compared(known: dict[Path, dict[str, Experiment]]) -> dict[str, list[Experiment | None]]:
    """Return the comparisons with PyTorch by name: each processor's experiment, or None."""
    found = {
        name: [each[name] if name in each and best_peer(each[name]) else None
               for each in known.values()]
        for name in COMPARED
    }  # fmt: skip
    return {name: row for name, row in found.items() if any(row)}


def _summary(known: dict[Path, dict[str, Experiment]]) -> report.Table:
    """Return a table of every comparison with the fastest peer: a column for each processor."""
    rows = [[_title(found), str(TARGETS.get(name, "")),
             *(_cell(each, each and best_peer(each)) for each in found)]
            for name, found in _compared(known).items()]  # fmt: skip
    columns = ["what is trained or read", "target", *_names(known)]
    return report.Table(columns, rows)


def _settings_alone(known: dict[Path, dict[str, Experiment]]) -> list[str]:
    """Return a table beside the fastest peers that have settings alone, where others have more."""
    rows = []
    for name, found in _compared(known).items():
        peers = [each and best_peer(each, settings_alone=True) for each in found]
        fastest = [each and best_peer(each) for each in found]
        if name in STEPS and any(peers) and peers != fastest:
            cells = (_cell(each, peer) for each, peer in zip(found, peers))
            rows.append([_title(found), *cells])
    if not rows:
        return []
    return [ABOUT_SETTINGS, str(report.Table(["what is trained", *_names(known)], rows))]


def _cell(found: Experiment | None, peer: str | None) -> str:
    """Return mxopt's speed and memory relative to a peer, as a cell of a table."""
    if not peer:
        return "not measured"
    arm = _arm(found)
    ratio, memory = found.ratio(arm, peer), beside.memory_ratio(found, arm, peer)
    return f"{ratio}: {found.verdict(arm, peer)}" + f"; memory {memory:.2f}" * (memory > 0)


def _beside_each_other(known: dict[Path, dict[str, Experiment]]):
    """Plot every ratio to the fastest peer, those of all processors beside each other."""
    ratios = {
        _title(row): [found and found.ratio(_arm(found), best_peer(found)) for found in row]
        for row in _compared(known).values()
    }
    title = "mxopt's last arm and the fastest PyTorch arm"
    return ratio_plots.beside_each_other(_names(known), ratios, title)


def _title(row: list[Experiment | None]) -> str:
    return next(found.title for found in row if found)


def _names(known: dict[Path, dict[str, Experiment]]) -> list[str]:
    return [_machine(each)[0] for each in known.values()]


def _machine(known: dict[str, Experiment]) -> tuple[str, list[str]]:
    """Return the name of the processor, and lines about the machine."""
    runs = [run for e in known.values() for arm in e.runs.values() for run in arm if run.events]
    environment = runs[0].only("environment")
    cpu = environment["cpu"]
    versions = {run.figures["version"] for run in runs if "version" in run.figures}
    lines = heading.machine(environment)
    lines += [f"- **peer**: PyTorch {version}" for version in sorted(versions)]
    return f"{cpu['model']}, {cpu['logical_cores']} cores", lines


def _processor(known: dict[str, Experiment], folder: str) -> list[str]:
    """Return the paragraphs on one processor.

    Args:
        known: its experiments by name.
        folder: its folder, as the page links to it.
    """
    name, machine = _machine(known)
    parts = [f"## {name}", "\n".join(machine)]
    if measured := ceilings.among(known):
        parts += ["### The ceiling", *ceilings.parts(measured)]
    if "blas" in known:
        parts += [f"### {known['blas'].title}", ABOUT_BLAS, str(report.comparison(known["blas"]))]
    for case in STEPS:
        if case in known:
            found, peer = known[case], best_peer(known[case])
            parts += [f"### {found.title}", str(beside.arms(found, ceilings.share(known, case)))]
            if peer:
                parts.append(beside.verdict(found, peer, TARGETS[case]))
            parts += _levers(found, known.get(f"{LADDERS}/{case}"), folder)
    for found in (known[name] for name in ALONE if name in known):
        parts += [f"### {found.title}", str(beside.arms(found))]
        if peer := best_peer(found):
            parts.append(beside.verdict(found, peer, None))
    if "garments" in known:
        found = known["garments"]
        parts += [f"### {found.title}", ABOUT_GARMENTS, str(beside.arms(found))]
        if peer := best_peer(found):
            parts.append(beside.verdict(found, peer, TARGETS["garments"]))
    if "epochs" in known:
        parts += [f"### {known['epochs'].title}", *beside.epochs(known["epochs"])]
    if resized := [known[name] for name in sizes.SIZES if name in known]:
        parts += ["### Other sizes", *sizes.parts(resized)]
    if launched := [
        known[name] for name in STEPS if name in known and list(LAUNCH)[-1] in known[name].arms
    ]:
        parts += ["### An unchanged script with `mxopt launch`",
                  str(beside.launched(launched))]  # fmt: skip
    if "loader" in known:
        parts += [f"### {known['loader'].title}", *_loader(known["loader"])]
    if predicted := [known[name] for name in predict.PREDICT if name in known]:
        parts += ["### Predictions, in float32 and int8", predict.ABOUT]
        for found in predicted:
            parts += [f"#### {found.title}", *predict.parts(found)]
    if grown := _grown(known):
        parts += ["### Growth", *growth.parts(grown, folder)]
    if "levers" in known:
        parts += [f"### {known['levers'].title}", *levers.parts(known["levers"])]
    if tried := [known[name] for name in TRIED if name in known]:
        parts += ["### What else was tried", ABOUT_TRIED, str(beside.tried(tried))]
    if "roofline" in known:
        parts += ["### Time by operator, and its bound", *roofline.parts(known["roofline"], folder)]
    return parts


def _levers(found: Experiment, other: Experiment | None, folder: str) -> list[str]:
    """Return the table of a case's levers, of another experiment of all of them if it exists."""
    about = "The effect of each lever, added to those before it"
    if other:
        path = f"{folder}/{LADDERS}/{other.name}.jsonl"
        about += f", in [an older experiment]({path}) that measured more of them"
    return [f"{about}:", str(beside.ladder(other or found))]


def _arm(found: Experiment) -> str:
    """Return mxopt's arm that is compared with the peers."""
    return (_reader if found.name == "loader" else last_arm)(found)


def _every(folder: Path) -> dict[Path, dict[str, Experiment]]:
    """Return each processor's folder of records, and its experiments by their names."""
    return {home: _known(home) for home in processors(folder)}


def _known(folder: Path) -> dict[str, Experiment]:
    """Return the experiments by their names; those in a folder below, by that and their names."""
    return {
        (path.parent.relative_to(folder) / experiment.name).as_posix(): experiment
        for path, experiment in results.read_experiments(folder)
    }


def _grown(known: dict[str, Experiment]) -> list[Experiment]:
    return [known[name] for name in growth.GROWTH if name in known]


BUSY = """In this record no arm of PyTorch has `one_thread`, which was faster in a later one: its
second thread waits busily beside the workers. The ratios to PyTorch are thus too high."""
# Records without the arm `kernels` are of three epochs, others of eight.
SHORT = """In this record the median is of two later epochs, not seven, and in the first of them
PyTorch's workers are still warming up. The ratios to PyTorch are thus too high."""


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
    verdict = beside.verdict(found, peer, TARGETS["loader"], _reader(found))
    peers = (options["peer"] for options in found.arm_options.values() if options.get("peer"))
    fair = any("one_thread" in given.of(each) for each in peers)
    notes = [] if fair else [BUSY]
    return [table, verdict, *notes, *([] if "kernels" in found.arms else [SHORT])]


def _reader(found: Experiment) -> str:
    """Return mxopt's last arm that reads every image in every epoch, as the peers do."""
    return [arm for arm in own_arms(found) if found.arms[arm].preprocess == "lazy"][-1]
