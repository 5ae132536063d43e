"""The parts of a benchmark: the experiment that each measures."""

from __future__ import annotations

from pathlib import Path

from benchmarks import predict
from benchmarks.cases import (
    ALONE,
    BLAS,
    EPOCHS,
    LAUNCH,
    LAUNCH_DROPPED,
    PRODUCTS,
    READING,
    STEPS,
    THREADS,
    TRIED,
    WORKERS,
)
from benchmarks.goal import EPOCH, GOAL
from benchmarks.growth import GROWTH
from benchmarks.levers import LEVERS
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
    plan = Plan(**{"preprocess": "cached", "epochs": 2, **case["plan"]})
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


def _peers(case: dict, peers: dict) -> dict[str, dict]:
    """Return the options of arms that PyTorch runs, given what each of them is given."""
    how = {"network": case["peer"], "sizes": case["sizes"]}
    return {
        arm: {**case["options"], "peer": {**how, "given": given}} for arm, given in peers.items()
    }


def _alone(name: str, repeats: int, folder: Path) -> measure.Experiment:
    """Measure a case's last arm without and with one switch, and peers, interleaved."""
    own = ALONE[name]
    case, peers = STEPS[own["case"]], own["peers"]
    base = own.get("base", {})
    changes = {arm: {**base, **change} for arm, change in own["changes"].items()}
    arms, options = _variants(case, changes)
    first, last = arms
    plan = Plan(**{"preprocess": "cached", "epochs": 2, **case["plan"]})
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


def _goal(name: str, repeats: int, folder: Path) -> measure.Experiment:
    """Measure the time to an accuracy: each lever, added to those before, and the peers."""
    arms, options = measure.ladder(
        Plan(**GOAL["plan"]), GOAL["levers"], {"checks": GOAL["checks"]}, "benchmarks.goal:run"
    )
    names = list(arms)
    for peer, given in GOAL["peers"].items():
        arms[peer] = arms[names[-1]]
        options[peer] = {**options[names[-1]], "peer": {"given": given}}
    pairs = [*((peer, names[-1]) for peer in GOAL["peers"]), *zip(names, names[1:]),
             (names[0], names[-1])]  # fmt: skip
    return measure.interleave(
        name, "benchmarks.goal:run", arms, arm_options=options, repeats=repeats, folder=folder,
        seeds=True, again=names[-1], title=GOAL["title"], pairs=pairs, figure="training_seconds",
        quality="test_accuracy", margin=0.01, target="validation_accuracy", goal=GOAL["goals"][-1],
        headline=[(GOAL["headline"], names[-1])],
    )  # fmt: skip


def _garments(name: str, repeats: int, folder: Path) -> measure.Experiment:
    """Measure an epoch of the garments' network without and with its kernel, and the peers."""
    work = "benchmarks.goal:run"
    ladder, options = measure.ladder(Plan(**GOAL["plan"]), GOAL["levers"], {"checks": 1}, work)
    before = list(ladder)[-2]
    base = ladder[before].replace(**EPOCH["base"])
    arms = {arm: base.replace(**change) for arm, change in EPOCH["changes"].items()}
    first, last = arms
    own = {arm: options[before] for arm in arms}
    for peer, given in GOAL["peers"].items():
        arms[peer], own[peer] = base, {**options[before], "peer": {"given": given}}
    return measure.interleave(
        name, work, arms, arm_options=own, repeats=repeats, folder=folder, again=last,
        title=EPOCH["title"], figure="training_seconds", quality="test_accuracy", margin=0.01,
        pairs=[(first, last), *((peer, last) for peer in GOAL["peers"])],
        headline=[(GOAL["headline"], last)],
    )  # fmt: skip


def _loader(name: str, repeats: int, folder: Path) -> measure.Experiment:
    """Measure the loaders of mxopt and PyTorch, reading Penn-Fudan's training split."""
    before = Plan(batch_size=4, cpu_threads=THREADS["cpu_threads"])
    plan = before.replace(**READING)
    workers = plan.replace(**WORKERS)
    # `kernels` is last: it is compared with the peers. `cached` reads no file after preparing.
    keep = workers.replace(image_dtype="uint8", allocator="keep")
    arms = {"before": before, "opencv": plan, "cached": plan.replace(preprocess="cached"),
            "cached-uint8": plan.replace(preprocess="cached", image_dtype="uint8"),
            # Not Gluon's loader, whose stack of uint8 is slow.
            "cached-rows": plan.replace(preprocess="cached", image_dtype="uint8",
                                        loader="shared_memory"),
            "workers": workers, "workers-uint8": workers.replace(image_dtype="uint8"),
            "kornia": workers.replace(image_dtype="uint8"),
            "keep": keep, "kernels": keep.replace(transforms="kernels")}  # fmt: skip
    decoder, uint8 = {"image_decoder": "kornia"}, {"uint8": True}
    kornia = {**uint8, "kornia": True}
    peers = {"torch": {"workers": 0}, "torch-workers": {"workers": 2},
             "torch-workers-uint8": {"workers": 2, "given": uint8},
             "torch-kornia": {"workers": 2, "given": kornia},
             "torch-keep": {"workers": 2, "given": {**kornia, "keep": True}},
             "torch-one-thread": {"workers": 2, "given": {**kornia, "keep": True,
                                                          "one_thread": True}}}  # fmt: skip
    pairs = [("before", "opencv"), ("opencv", "cached"), ("cached", "cached-uint8"),
             ("cached-uint8", "cached-rows"),
             ("opencv", "workers"), ("workers", "workers-uint8"), ("workers-uint8", "kornia"),
             ("kornia", "keep"), ("keep", "kernels"),
             ("torch-workers-uint8", "workers-uint8")]  # fmt: skip
    pairs += [(peer, "kernels") for peer in peers]
    arms.update(dict.fromkeys(peers, plan))
    return measure.interleave(
        name, ARMS + "load", arms, repeats=repeats, folder=folder, again="kernels",
        arm_options={**dict.fromkeys(("kornia", "keep", "kernels"), decoder),
                     **{arm: {"peer": peer} for arm, peer in peers.items()}},
        title="Penn-Fudan's loader, 480 px, batches of 4", figure="samples_per_second", unit="",
        better="higher", pairs=pairs, headline=[("torch-one-thread", "kernels")],
    )  # fmt: skip


def _ceiling(name: str, repeats: int, folder: Path) -> measure.Experiment:
    """Measure matrix products: the highest rate that each library reaches on this machine."""
    arms = dict.fromkeys(("mxnet", *PRODUCTS), Plan(**THREADS))
    return measure.interleave(
        name, ARMS + "multiply", arms, repeats=repeats, again="mxnet",
        arm_options={arm: {"peer": peer} for arm, peer in PRODUCTS.items()}, folder=folder,
        title="The ceiling: matrix products", figure="gflop_per_second", unit="GFLOP/s",
        better="higher", pairs=[("torch", "mxnet"), ("torch", "torch-tuned"),
                                ("torch-tuned", "mxnet")],
    )  # fmt: skip


def _blas(name: str, repeats: int, folder: Path) -> measure.Experiment:
    """Measure the libraries that ``dot`` and ``batch_dot`` can call."""
    libraries = ("default", "mkl", "openblas")
    arms = {f"{of}-{blas}": Plan(blas=blas, **THREADS) for of in BLAS for blas in libraries}
    return measure.interleave(
        name, ARMS + "multiply", arms, repeats=repeats, folder=folder, again="dot-default",
        arm_options={arm: BLAS[arm.split("-")[0]] for arm in arms}, title="Products by the BLAS",
        figure="gflop_per_second", unit="GFLOP/s", better="higher",
        pairs=[(f"{of}-default", f"{of}-{blas}") for of in BLAS for blas in libraries[1:]],
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
        better="higher", pairs=[],
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


def _unit(case: dict) -> str:
    return "tokens" if case["options"].get("recipe") == "translation" else "samples"


def _variants(case: dict, changes: dict[str, dict]) -> tuple[dict, dict]:
    """Return the last arm of a case with several changes, and the options of these arms."""
    plan = Plan(**{"preprocess": "cached", "epochs": 2, **case["plan"]})
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
        plan = Plan(**{"preprocess": "cached", "epochs": 2, **settings["plan"]})
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
    "ceiling": _ceiling,
    "arithmetic": _arithmetic,
    **dict.fromkeys(STEPS, _step),
    "epochs": _epochs,
    "loader": _loader,
    "fashion_mnist": _goal,
    "garments": _garments,
    **dict.fromkeys(predict.PREDICT, predict.part),
    **dict.fromkeys(GROWTH, _growth),
    "levers": _levers,
    "roofline": _roofline,
    "blas": _blas,
    **dict.fromkeys(ALONE, _alone),
    **dict.fromkeys(TRIED, _tried),
}
