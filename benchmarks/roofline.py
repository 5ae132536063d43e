"""Where the time of an epoch goes, beside what the machine could do: a roofline.

An operator cannot take less time than its arithmetic at the machine's highest rate, nor less than
the bytes of its arrays at the rate of the memory (Williams et al., "Roofline: An Insightful Visual
Performance Model for Multicore Architectures", 2009). The larger of the two is its bound. A bound
that is exceeded means that arrays were still in a cache.
"""

from __future__ import annotations

from collections import Counter

from benchmarks import products
from mxopt import kernels, report
from mxopt.chapter import workloads
from mxopt.core.plan import Plan
from mxopt.measure import Experiment
from mxopt.methods.engine.clock import timed
from mxopt.methods.graph_rewrites.graph import KERNEL

# A backward pass computes two gradients, each about as much work as the forward pass.
PASSES = 3
GIGA = 1e9
PLOT = "roofline.png"
# Kernels of products that older records count as none: their bound is unknown, not the memory's.
UNCOUNTED = ("mxopt_dense", "mxopt_cross_entropy")
ABOUT = f"""Operators of the second epoch, run one by one, forward and backward pass together. Their
arithmetic and the bytes of their arrays are counted in the graph of the forward pass and taken
{PASSES} times. The *bound* is the time that these need at the highest rates measured on this
machine, of a matrix product and of an update of large arrays by SGD; operators without a bound are
not in that graph, such as the optimizer's. Kernels that leave out products of the usual layer are
counted by those that they compute. Older records have no counts of rewritten graphs, and of kernels
for dense layers and the loss; and their memory's rate is that of a sum by MXNet's operator, which
computes one element at a time and understates what the memory can do."""


def work(plan: Plan, write, recipe: str = "segmentation", **options) -> dict:
    """Time the operators of an epoch, count their work, and measure what the machine can do.

    Args:
        plan: the switches, as for :func:`mxopt.chapter.workloads.profile`.
        write: called with the name and the fields of each event.
        recipe: name of the recipe.
        **options: options of the recipe.

    Returns:
        The figures of that workload; ``multiply_adds`` and ``bytes``, ``{operator: number}``, of
        the epoch's forward passes; ``gflop_per_second`` and ``gigabytes_per_second`` of this
        machine.
    """
    found = workloads.profile(plan, write, recipe, **options)
    return {
        **found,
        **_counted(plan, recipe, options),
        **products.multiply(plan, write),
        "gigabytes_per_second": bandwidth(),
    }


def bandwidth(size: int = 1 << 26, rounds: int = 10) -> float:
    """Return the highest rate at which arrays are read and written, in gigabytes a second.

    An update by SGD with momentum reads three arrays and writes two. MXNet's own operators would
    not show what the memory can do: they compute one element at a time.

    Args:
        size: elements of each of three float32 arrays, which no cache should hold.
        rounds: number of updates, of which the fastest counts.
    """
    from mxnet import nd

    kernels.load()
    weight, gradient, momentum = (nd.ones(size) for _ in range(3))
    durations = []
    for _ in range(rounds):
        with timed() as clock:
            nd.mxopt_sgd_updates(weight, gradient, momentum, out=[weight], rates="0.1", decays="0",
                                 momentum=0.9)  # fmt: skip
        durations.append(clock.seconds)
    return 5 * 4 * size / min(durations) / GIGA


def _counted(plan: Plan, recipe: str, options: dict) -> dict:
    """Return the multiply-adds and the bytes of an epoch's forward passes, by operator."""
    from mxopt import recipes
    from mxopt.measure.operations import operators
    from mxopt.methods.kvstore import stores
    from mxopt.train.setup import prepare

    plan = plan.replace(hybridize="no", epochs=1, warmup_epochs=0)
    made = recipes.load(recipe, **options)
    run, _ = prepare(made, plan, lambda *_, **__: None, False, stores.for_plan(plan))
    # A rewritten network has its graph in a block of its own; it is for samples of one shape.
    net = getattr(run.learning, "rewritten", run.learning)
    loader = run.loaders["train"]
    for method in run.methods:
        loader = method.training_loader(run, loader, 0)
    seen, examples = Counter(), {}
    for shard in (shard for batch in loader for shard in batch.shards):
        inputs = shard[: made.inputs]
        shapes = tuple(array.shape for array in inputs)
        seen[shapes] += 1
        # One of each shape: the lengths of sentences in one row must fit into it.
        examples.setdefault(shapes, inputs)
    counts, sizes = Counter(), Counter()
    for shapes, times in seen.items():
        for operator in operators(net, *examples[shapes]):
            counts[operator.kind] += times * operator.multiply_adds
            sizes[operator.kind] += times * operator.bytes
    return {"multiply_adds": dict(counts), "bytes": dict(sizes)}


def bounds(figures: dict) -> dict[str, tuple[float, str]]:
    """Return the least seconds of each operator of an epoch, and what they are spent on.

    Args:
        figures: as :func:`work` returns them.

    Returns:
        ``{operator: (seconds, "arithmetic" or "memory")}``, without those of ``UNCOUNTED`` whose
        products an older record does not have.
    """
    found = {}
    for name, count in figures["multiply_adds"].items():
        if name in UNCOUNTED and not count:
            continue
        arithmetic = PASSES * 2 * count / (GIGA * figures["gflop_per_second"])
        memory = PASSES * figures["bytes"][name] / (GIGA * figures["gigabytes_per_second"])
        kind = "arithmetic" if arithmetic > memory else "memory"
        found[name] = (max(arithmetic, memory), kind)
    return found


def at_bounds(figures: dict) -> float:
    """Return the seconds of all operators of an epoch if none took longer than its bound.

    Those without a bound keep their time. No change of an operator that computes the same makes an
    epoch shorter than that on this machine, unless arrays stay in a cache or operators are merged.

    Args:
        figures: as :func:`work` returns them.
    """
    least = bounds(figures)
    return sum(
        min(seconds, least[name][0]) if name in least and least[name][0] else seconds
        for name, seconds in figures["operator_seconds"].items()
    )


def table(experiment: Experiment, arm: str, most: int = 8) -> report.Table:
    """Return a table of an arm's slowest operators, each beside its bound.

    Args:
        experiment: an experiment of :func:`work`.
        arm: name of the arm.
        most: number of operators shown; one more row has the sum of the others.
    """
    figures = experiment.runs[arm][0].figures
    if not counts_its_graph(experiment, arm):
        figures = {**figures, "multiply_adds": {}, "bytes": {}}
    seconds, least = figures["operator_seconds"], bounds(figures)
    total, rows = sum(seconds.values()), []
    for name in sorted(seconds, key=seconds.get, reverse=True)[:most]:
        bound, kind = least.get(name, (None, "not counted"))
        rate = PASSES * 2 * figures["multiply_adds"].get(name, 0) / seconds[name] / GIGA
        rows.append([
            name, report.number(seconds[name], "s"), f"{100 * seconds[name] / total:.0f} %",
            f"{rate:.0f} GFLOP/s" if rate else "none",
            report.number(bound, "s") if bound else "none", kind,
        ])  # fmt: skip
    shown = sum(seconds[row[0]] for row in rows)
    rows.append([f"{len(seconds) - len(rows)} others", report.number(total - shown, "s"),
                 f"{100 * (total - shown) / total:.0f} %", "", "", ""])  # fmt: skip
    header = ["operator", "time", "share", "arithmetic", "bound", "set by"]
    ceilings = (
        f"{arm}: an epoch of {report.number(figures['seconds'], 's')}; this machine: "
        f"{figures['gflop_per_second']:.0f} GFLOP/s, {figures['gigabytes_per_second']:.1f} GB/s"
    )
    if figures["multiply_adds"]:
        ceilings += (
            f"; all operators: {report.number(total, 's')}, and "
            f"{report.number(at_bounds(figures), 's')} if none took longer than its bound"
        )
    return report.Table(header, rows, ceilings)


def counts_its_graph(experiment: Experiment, arm: str) -> bool:
    """Return whether an arm's counts are of the graph that it ran.

    Older records of rewritten graphs count the one before.

    Args:
        experiment: an experiment of :func:`work`.
        arm: name of an arm that was measured.
    """
    counted = experiment.runs[arm][0].figures["multiply_adds"]
    rewritten = experiment.arms[arm].graph_rewrites != "none"
    return not rewritten or any(name.startswith(KERNEL) for name in counted)


def parts(experiment: Experiment) -> list[str]:
    """Return the paragraphs on an experiment, with its plot, which is beside the page.

    Args:
        experiment: an experiment of :func:`work`.
    """
    measured = [arm for arm in experiment.arms if not experiment.why_not(arm)]
    tables = [str(table(experiment, arm)) for arm in measured]
    return [
        ABOUT,
        f"![Rates of operators under the roof of this machine]({PLOT})",
        *tables,
    ]
