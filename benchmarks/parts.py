"""The parts of a benchmark: the experiment that each measures."""

from __future__ import annotations

from pathlib import Path

from benchmarks import goal, loader, predict, products, training
from benchmarks.cases import (
    ALONE,
    EPOCHS,
    LAUNCH,
    LAUNCH_DROPPED,
    READING,
    STEPS,
    THREADS,
    TRIED,
)
from benchmarks.growth import GROWTH
from benchmarks.levers import LEVERS
from benchmarks.sizes import SIZES
from mxopt import measure
from mxopt.core.plan import Plan

ARMS = "benchmarks.arms:"


def _step(name: str, repeats: int, folder: Path, every: bool = True) -> measure.Experiment:
    """Measure the training steps of a case with its levers and every peer, interleaved.

    Args:
        name: name of the case.
        repeats: number of runs of each arm.
        folder: folder of experiments.
        every: whether to measure every lever, also those that were dropped; else only the first
            arm, that with threads, those of ``mxopt launch`` and the last one.
    """
    case = STEPS[name]
    plan = _first(case)
    dropped = case["dropped"] if every else {}
    arms, options = measure.ladder(
        plan, {**case["levers"], **dropped}, case["options"], ARMS + "step"
    )
    last = list(case["levers"])[-1]
    if not every:
        arms = {arm: arms[arm] for arm in ("before", "threads", last)}
    names = list(arms)
    options.update(_peers(case, case["peers"]))
    arms.update(dict.fromkeys(case["peers"], plan))
    pairs = [*((peer, last) for peer in case["peers"]), ("before", last), *zip(names, names[1:])]
    if case.get("launch"):
        more = {**LAUNCH, **(LAUNCH_DROPPED if every else {})}
        launched, theirs = measure.ladder(
            plan.replace(**THREADS), more, case["options"], ARMS + "step"
        )
        arms.update((arm, launched[arm]) for arm in more)
        options.update((arm, theirs[arm]) for arm in more)
        steps = ["threads", *more]
        pairs += [("before", list(LAUNCH)[-1]), *zip(steps, steps[1:])]
    return measure.interleave(
        name, ARMS + "step", arms, repeats=repeats, folder=folder, again=last,
        arm_options={arm: options[arm] for arm in arms}, title=case["title"],
        figure=f"{_unit(case)}_per_second", unit="", better="higher",
        pairs=list(dict.fromkeys(pairs)), headline=[(case["headline"], last)],
    )  # fmt: skip


def _peers(case: dict, peers: dict, options: dict | None = None) -> dict[str, dict]:
    """Return the options of arms that PyTorch runs, given what each of them is given.

    Args:
        case: one of ``STEPS``.
        peers: what each arm is given.
        options: options of the recipe, where they are not the case's.
    """
    options = options or case["options"]
    sizes = {name: options.get(name, size) for name, size in case["sizes"].items()}
    how = {"network": case["peer"], "sizes": sizes}
    return {arm: {**options, "peer": {**how, "given": given}} for arm, given in peers.items()}


def _alone(name: str, repeats: int, folder: Path) -> measure.Experiment:
    """Measure a case's last arm without and with one switch, and peers, interleaved."""
    own = ALONE[name]
    case, peers = STEPS[own["case"]], own["peers"]
    base = own.get("base", {})
    changes = {arm: {**base, **change} for arm, change in own["changes"].items()}
    arms, options = _variants(case, changes)
    first, last = arms
    plan = _first(case)
    arms.update(dict.fromkeys(peers, plan))
    return measure.interleave(
        name, ARMS + "step", arms, arm_options={**options, **_peers(case, peers)}, again=last,
        repeats=repeats, folder=folder, title=own["title"], figure=f"{_unit(case)}_per_second",
        unit="", better="higher", pairs=[(first, last), *((peer, last) for peer in peers)],
        headline=[(own["headline"], last)],
    )  # fmt: skip


def _epochs(name: str, repeats: int, folder: Path) -> measure.Experiment:
    """Measure whole epochs from files: before, with cached images, with all levers, and peers."""
    case = STEPS["mobilenet"]
    every = {key: value for lever in case["levers"].values() for key, value in lever.items()}
    plan = Plan(**case["plan"])
    arms, options = measure.ladder(
        plan,
        {"cached": {"preprocess": "cached", **READING}, "after": every},
        EPOCHS["options"],
        "benchmarks.epochs:run",
    )
    for peer, how in EPOCHS["peers"].items():
        arms[peer] = plan
        options[peer] = {
            **EPOCHS["options"],
            "peer": {"network": case["peer"], "sizes": case["sizes"], **how},
        }
    pairs = [*((peer, "after") for peer in EPOCHS["peers"]), ("before", "cached"),
             ("cached", "after"), ("before", "after")]  # fmt: skip
    return measure.interleave(
        name, "benchmarks.epochs:run", arms, arm_options=options, repeats=repeats, folder=folder,
        title=EPOCHS["title"], pairs=pairs, again="after", headline=[("tuned", "after")],
    )  # fmt: skip


def _arithmetic(name: str, repeats: int, folder: Path) -> measure.Experiment:
    """Count the operations of every case, once."""
    arms, options = {}, {}
    for case, settings in STEPS.items():
        arms[case] = Plan(**settings["plan"])
        peer = {"count": True, "network": settings["peer"], "sizes": settings["sizes"]}
        if settings["options"].get("recipe") == "translation":
            peer["given"] = {"unpadded": True}
        options[case] = {**settings["options"], "peer": peer}
    return measure.interleave(
        name, ARMS + "step", arms, arm_options=options, repeats=1, folder=folder, pairs=[],
        title="Operations for a sample or a token", figure="operations", unit="",
    )  # fmt: skip


def _growth(name: str, repeats: int, folder: Path) -> measure.Experiment:
    """Measure the last arm of a case at several sizes."""
    case = STEPS[GROWTH[name]["case"]]
    arms, options = _variants(case, GROWTH[name]["sizes"])
    return measure.interleave(
        name, ARMS + "step", arms, arm_options=options, repeats=max(2, repeats // 3),
        folder=folder, title=GROWTH[name]["title"], figure=f"{_unit(case)}_per_second", unit="",
        better="higher", pairs=[], again=next(iter(arms)),
    )  # fmt: skip


def _sizes(name: str, repeats: int, folder: Path) -> measure.Experiment:
    """Measure the last arm of a case, and peers, at other sizes."""
    own = SIZES[name]
    case = STEPS[own["case"]]
    arms, options = _variants(case, own["sizes"])
    pairs = []
    for size in list(arms):
        plans, asked = measure.ladder(
            _first(case), {size: own["sizes"][size]}, case["options"], ARMS + "step"
        )
        peers = {f"{size}-{peer}": case["peers"][peer] for peer in own["peers"]}
        arms.update(dict.fromkeys(peers, plans[size]))
        options.update(_peers(case, peers, asked[size]))
        pairs += [(peer, size) for peer in peers]
    return measure.interleave(
        name, ARMS + "step", arms, arm_options=options, repeats=repeats, folder=folder,
        title=own["title"], figure=f"{_unit(case)}_per_second", unit="", better="higher",
        pairs=pairs, again=next(iter(own["sizes"])),
    )  # fmt: skip


def _levers(name: str, repeats: int, folder: Path) -> measure.Experiment:
    """Measure accumulated gradients and progressive resizing, each with and without."""
    changes = {arm: own for lever in LEVERS.values() for arm, own in lever["arms"].items()}
    arms, options = _variants(STEPS["mobilenet"], changes)
    return measure.interleave(
        name, ARMS + "step", arms, arm_options=options, repeats=repeats, folder=folder,
        title="Levers that change what a step is", again="accumulated",
        figure="samples_per_second", unit="", better="higher",
        pairs=[tuple(lever["arms"]) for lever in LEVERS.values()],
    )  # fmt: skip


def _tried(name: str, repeats: int, folder: Path) -> measure.Experiment:
    """Measure further changes of the last arm of a case, each alone."""
    case, base = STEPS[TRIED[name]["case"]], TRIED[name].get("base", {})
    changes = {arm: {**base, **own} for arm, own in TRIED[name]["changes"].items()}
    arms, options = _variants(case, {"every-lever": base, **changes})
    return measure.interleave(
        name, ARMS + "step", arms, arm_options=options, repeats=max(2, repeats // 2),
        folder=folder, title=case["title"], figure=f"{_unit(case)}_per_second", unit="",
        better="higher", again="every-lever",
    )  # fmt: skip


def _first(case: dict) -> Plan:
    """Return the plan of a case's first arm, and of its peers."""
    return Plan(**{"preprocess": "cached", "epochs": 2, **case["plan"]})


def _unit(case: dict) -> str:
    return "tokens" if case["options"].get("recipe") == "translation" else "samples"


def _variants(case: dict, changes: dict[str, dict]) -> tuple[dict, dict]:
    """Return the last arm of a case with several changes, and the options of these arms."""
    plan = _first(case)
    arms, options = measure.ladder(plan, case["levers"], case["options"], ARMS + "step")
    last = list(arms)[-1]
    changed = {}
    for arm, own in changes.items():
        one, its = measure.ladder(arms[last], {arm: own}, options[last], ARMS + "step")
        changed[arm] = one[arm], its[arm]
    return {arm: plan for arm, (plan, _) in changed.items()}, {
        arm: its for arm, (_, its) in changed.items()
    }


def _roofline(name: str, repeats: int, folder: Path) -> measure.Experiment:
    """Time every operator of each case's graph, once, as it is and in the last arm."""
    arms, arm_options = {}, {}
    for case, settings in STEPS.items():
        plan = _first(settings)
        plans, options = measure.ladder(
            plan, settings["levers"], settings["options"], ARMS + "step"
        )
        for arm in ("static", list(plans)[-1]):
            arms[f"{case}-{arm}"], arm_options[f"{case}-{arm}"] = plans[arm], options[arm]
    return measure.interleave(
        name, "benchmarks.roofline:work", arms, arm_options=arm_options, repeats=1,
        folder=folder, title="Operators under the roof", pairs=[],
    )  # fmt: skip


# By name, in the order of measuring. Each is called with its name, the number of runs of each arm
# and the folder of experiments; the cases of ``STEPS`` also with ``every``.
PARTS = {
    "ceiling": products.ceiling,
    "arithmetic": _arithmetic,
    **dict.fromkeys(STEPS, _step),
    "epochs": _epochs,
    "loader": loader.part,
    "fashion_mnist": goal.part,
    "garments": goal.epoch,
    **dict.fromkeys(predict.PREDICT, predict.part),
    **{name: _sizes if "case" in own else goal.sizes for name, own in SIZES.items()},
    **dict.fromkeys(GROWTH, _growth),
    **dict.fromkeys(training.TRAINING, training.part),
    "levers": _levers,
    "roofline": _roofline,
    "blas": products.blas,
    **dict.fromkeys(ALONE, _alone),
    **dict.fromkeys(TRIED, _tried),
}
