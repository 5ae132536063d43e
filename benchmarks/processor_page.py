"""A processor's page of the benchmarks, generated from its records."""

from __future__ import annotations

from benchmarks import beside, ceilings, given, growth, levers, predict, roofline, sizes, training
from benchmarks.beside import MEBIBYTE, best_peer, is_peer, last_arm, own_arms
from benchmarks.cases import ALONE, LAUNCH, STEPS, TRIED
from benchmarks.goal import EPOCH
from mxopt import report
from mxopt.measure import Experiment
from mxopt.report import heading

PAGE = "README.md"  # in the processor's folder of records
LADDERS = "ladders"  # within a processor's folder: experiments of every lever that are kept
# How many times faster than the fastest peer mxopt is meant to be.
TARGETS = {
    **{name: case["target"] for name, case in STEPS.items()},
    "garments": EPOCH["target"],
    "loader": 1.5,
}
ABOUT = """One processor of the [benchmarks](../../README.md), whose page says what the tables mean
and what PyTorch is given."""
ABOUT_TRIED = """Each change alone, on top of mxopt's last arm; `fold_batch_norm` on a network whose
batch norms have fixed statistics, which it needs, beside no other rewrite than `dead_taps`."""
ABOUT_BLAS = """MXNet's `dot` and `batch_dot` call the OpenBLAS of 2021 in its wheel, or the library
that `blas` puts in front of it: one product of matrices of 2048 rows, and 512 of 64 rows. The
others have to be installed: `pip install mkl`, `apt-get install libopenblas0-pthread`."""
ABOUT_GARMENTS = """The network of [the record](../../../docs/records/fashion_mnist.md), trained
from new weights with its settings but for the number of epochs: preparation of the images, the
epoch and the compilation of networks are timed, validation is not. (Kernels are compiled once for a
machine.)"""


def text(known: dict[str, Experiment]) -> str:
    """Return the page of a processor as Markdown.

    Args:
        known: its experiments by name; those in a folder below its own, by that and their names.
    """
    parts = [f"# {name(known)}", ABOUT, "\n".join(_machine(known))]
    if measured := ceilings.among(known):
        parts += ["## The ceiling", *ceilings.parts(measured)]
    if "blas" in known:
        parts += [f"## {known['blas'].title}", ABOUT_BLAS, str(report.comparison(known["blas"]))]
    for case in STEPS:
        if case in known:
            found, peer = known[case], best_peer(known[case])
            parts += [f"## {found.title}", str(beside.arms(found, ceilings.share(known, case)))]
            if peer:
                parts.append(beside.verdict(found, peer, TARGETS[case]))
            parts += _levers(found, known.get(f"{LADDERS}/{case}"))
    for found in (known[name] for name in ALONE if name in known):
        parts += [f"## {found.title}", str(beside.arms(found))]
        if peer := best_peer(found):
            parts.append(beside.verdict(found, peer, None))
    parts += trainings(known)
    if "garments" in known:
        found = known["garments"]
        parts += [f"## {found.title}", ABOUT_GARMENTS, str(beside.arms(found))]
        if peer := best_peer(found):
            parts.append(beside.verdict(found, peer, TARGETS["garments"]))
    if "epochs" in known:
        parts += [f"## {known['epochs'].title}", *beside.epochs(known["epochs"])]
    if resized := [known[name] for name in sizes.SIZES if name in known]:
        parts += ["## Other sizes", *sizes.parts(resized)]
    if launched := [
        known[name] for name in STEPS if name in known and list(LAUNCH)[-1] in known[name].arms
    ]:
        parts += ["## An unchanged script with `mxopt launch`",
                  str(beside.launched(launched))]  # fmt: skip
    if "loader" in known:
        parts += [f"## {known['loader'].title}", *_loader(known["loader"])]
    if predicted := [known[name] for name in predict.PREDICT if name in known]:
        parts += ["## Predictions, in float32 and int8", predict.ABOUT]
        for found in predicted:
            parts += [f"### {found.title}", *predict.parts(found)]
    if larger := grown(known):
        parts += ["## Growth", *growth.parts(larger)]
    if "levers" in known:
        parts += [f"## {known['levers'].title}", *levers.parts(known["levers"])]
    if tried := [known[name] for name in TRIED if name in known]:
        parts += ["## What else was tried", ABOUT_TRIED, str(beside.tried(tried))]
    if "roofline" in known:
        parts += ["## Time by operator, and its bound", *roofline.parts(known["roofline"])]
    return "\n\n".join(parts) + "\n"


def name(known: dict[str, Experiment]) -> str:
    """Return the name of a processor.

    Args:
        known: its experiments by name.
    """
    cpu = _environment(known)["cpu"]
    return f"{cpu['model']}, {cpu['logical_cores']} cores"


def _machine(known: dict[str, Experiment]) -> list[str]:
    """Return lines about the machine."""
    runs = _runs(known)
    versions = {run.figures["version"] for run in runs if "version" in run.figures}
    lines = heading.machine(_environment(known))
    return lines + [f"- **peer**: PyTorch {version}" for version in sorted(versions)]


def _environment(known: dict[str, Experiment]) -> dict:
    return _runs(known)[0].only("environment")


def _runs(known: dict[str, Experiment]) -> list:
    return [run for e in known.values() for arm in e.runs.values() for run in arm if run.events]


def _levers(found: Experiment, other: Experiment | None) -> list[str]:
    """Return the table of a case's levers, of another experiment of all of them if it exists."""
    about = "The effect of each lever, added to those before it"
    if other:
        path = f"{LADDERS}/{other.name}.jsonl"
        about += f", in [an older experiment]({path}) that measured more of them"
    return [f"{about}:", str(beside.ladder(other or found))]


def compared_arm(found: Experiment) -> str:
    """Return mxopt's arm that is compared with the peers.

    Args:
        found: the experiment.
    """
    return (_reader if found.name == "loader" else last_arm)(found)


def trainings(known: dict[str, Experiment]) -> list[str]:
    """Return paragraphs on whole trainings: their time, and the scores of what they learned.

    Args:
        known: a processor's experiments by name.
    """
    parts = []
    for found in (known[name] for name in training.TRAINING if name in known):
        scores = report.arms(found, {found.quality: ""})
        parts += [f"## {found.title}", training.ABOUT, str(report.comparison(found)), str(scores)]
    return parts


def grown(known: dict[str, Experiment]) -> list[Experiment]:
    """Return the experiments on how time and memory grow.

    Args:
        known: a processor's experiments by name.
    """
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
