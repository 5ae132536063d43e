"""The pages of the benchmarks, generated from the records: all processors, and one for each."""

from __future__ import annotations

from pathlib import Path

from benchmarks import beside, given, growth, processor_page, roofline, roofline_plot
from benchmarks.beside import best_peer
from benchmarks.cases import ALONE, STEPS
from benchmarks.processor_page import TARGETS, compared_arm
from mxopt import report
from mxopt.core import atomic
from mxopt.measure import Experiment
from mxopt.report import plots, ratio_plots, results

PLOT = "peers.png"
COMPARED = (*STEPS, *ALONE, "garments", "epochs", "loader")
ABOUT = """# Benchmarks

`mxopt` and PyTorch on the same work. `make bench` repeats the measurements and generates this page,
and [one for each processor](#each-processor), from `records/<processor>/`; no figure of ours is
typed by hand. With its defaults, six runs of each arm, it takes about an hour on two cores;
`make bench LONG=1` also measures every lever, whole epochs and trainings, loaders, other sizes,
products by the BLAS, growth and the time of operators, and takes some hours.

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
peak memory relative to that peer's, which is meant to be at most 1. [Each processor's
page](#each-processor) names the arms. Of AMD's processors, family 25 is Zen 3 (EPYC 7003) with
model 1 and Zen 4 (EPYC 9004) with model 17; family 26, model 2 is Zen 5 (EPYC 9005)."""
ABOUT_SETTINGS = f"""Some of these peers have mxopt's own methods, written in PyTorch for this
comparison: accumulation, a fused loss, shared dropout, no padding. Beside the fastest of the peers
that have only {", ".join(f"`{each}`" for each in sorted(given.SETTINGS))}, which need no
other lines in the training step:"""
ABOUT_EACH = """## Each processor

All arms of both libraries with their time and memory, the ceiling, the effect of each lever, other
sizes, predictions, and where the time goes:"""


def write(folder: Path) -> Path:
    """Write the pages, and plots among a folder's ``records``, and return the first page's path."""
    home = folder / "records"
    known = _every(home)
    drawn = {home / PLOT: _beside_each_other(known)} if _compared(known) else {}
    for own, experiments in known.items():
        if grown := processor_page.grown(experiments):
            drawn[own / growth.PLOT] = growth.plot(grown)
        if "roofline" in experiments:
            drawn[own / roofline.PLOT] = roofline_plot.plot(experiments["roofline"])
    for path, figure in drawn.items():
        figure.savefig(path, dpi=plots.DPI, bbox_inches="tight")
    written = pages(folder)
    for path, text in written.items():
        atomic.replace_text(path, text)
    return next(iter(written))


def processors(folder: Path) -> list[Path]:
    """Return the folders of records, one for each processor."""
    return sorted(path for path in folder.iterdir() if path.is_dir())


def pages(folder: Path) -> dict[Path, str]:
    """Return the pages by their paths, computed from a folder's ``records``.

    Args:
        folder: has the page of all processors; that of each is among its records.
    """
    known = _every(folder / "records")
    each = {home / processor_page.PAGE: processor_page.text(own) for home, own in known.items()}
    return {folder / "README.md": _overview(known, folder), **each}


def _overview(known: dict[Path, dict[str, Experiment]], folder: Path) -> str:
    """Return the page of all processors as Markdown."""
    compared = _compared(known)
    parts = [ABOUT]
    if compared:
        parts += ["## Beside the fastest peer", f"![mxopt and PyTorch](records/{PLOT})",
                  ABOUT_FASTEST, str(_summary(known)), *_settings_alone(known)]  # fmt: skip
    links = [
        f"- [{name}]({(home / processor_page.PAGE).relative_to(folder).as_posix()})"
        for name, home in zip(_names(known), known)
    ]
    parts += [ABOUT_EACH, "\n".join(links)]
    every = [found for row in compared.values() for found in row if found]
    parts += ["## What PyTorch is given", given.ALWAYS, given.legend(), str(given.table(every))]
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
    arm = compared_arm(found)
    ratio, memory = found.ratio(arm, peer), beside.memory_ratio(found, arm, peer)
    return f"{ratio}: {found.verdict(arm, peer)}" + f"; memory {memory:.2f}" * (memory > 0)


def _beside_each_other(known: dict[Path, dict[str, Experiment]]):
    """Plot every ratio to the fastest peer, those of all processors beside each other."""
    ratios = {
        _title(row): [found and found.ratio(compared_arm(found), best_peer(found)) for found in row]
        for row in _compared(known).values()
    }
    title = "mxopt's last arm and the fastest PyTorch arm"
    return ratio_plots.beside_each_other(_names(known), ratios, title)


def _title(row: list[Experiment | None]) -> str:
    return next(found.title for found in row if found)


def _names(known: dict[Path, dict[str, Experiment]]) -> list[str]:
    return [processor_page.name(each) for each in known.values()]


def _every(folder: Path) -> dict[Path, dict[str, Experiment]]:
    """Return each processor's folder of records, and its experiments by their names."""
    return {home: _known(home) for home in processors(folder)}


def _known(folder: Path) -> dict[str, Experiment]:
    """Return the experiments by their names; those in a folder below, by that and their names."""
    return {
        (path.parent.relative_to(folder) / experiment.name).as_posix(): experiment
        for path, experiment in results.read_experiments(folder)
    }
