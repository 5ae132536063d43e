"""Settings of the input pipeline that suit a machine, found by coordinate ascent.

One setting after the other is moved to its neighbours, and the best is kept, until none of them
helps (as ``tf.data``'s AUTOTUNE climbs by measured throughput). Trials measure how many samples a
second are loaded, without training; their result is kept for each machine.
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from mxopt.core import atomic
from mxopt.core.errors import PlanError
from mxopt.core.plan import Plan

# How much better a neighbour has to be: less is noise.
BETTER = 1.03
# How far a step goes up and down: the first worker is no faster than none, the second one is, but
# where fewer workers are slower, still fewer are, too.
REACH = {1: 2, -1: 1}


def climb(
    rate: Callable[[dict], float],
    choices: Mapping[str, Sequence],
    start: Mapping | None = None,
    seconds: float = float("inf"),
    clock: Callable[[], float] = time.monotonic,
) -> tuple[dict, list[tuple[dict, float]]]:
    """Return the best settings that coordinate ascent finds, and all trials.

    >>> best, trials = climb(lambda s: 100 - 10 * (s["x"] - 3) ** 2 - s["y"],
    ...                      {"x": range(6), "y": [0, 1, 2]})
    >>> best, len(trials) < 18
    ({'x': 3, 'y': 0}, True)

    Args:
        rate: how good some settings are, more being better; 0 if they are impossible.
        choices: the values of each setting, in order; neighbours are next to each other.
        start: settings to begin with; the first value of each if not given.
        seconds: no trial begins later than this after the start.
        clock: returns the seconds of a clock.

    Returns:
        The settings, and ``(settings, rate)`` of every trial in order.

    Raises:
        PlanError: there is nothing to choose, or the start is not among the choices.
    """
    if not choices or not all(choices.values()):
        raise PlanError("there is nothing to choose: give some values for each setting")
    at = {name: values[0] for name, values in choices.items()}
    at.update(start or {})
    for name, value in at.items():
        if name not in choices or value not in choices[name]:
            raise PlanError(f"{name}={value!r} is none of {list(choices.get(name, []))}")
    begin, tried = clock(), {}

    def measured(settings: dict) -> float:
        key = tuple(settings.items())
        if key not in tried:
            tried[key] = rate(dict(settings))
        return tried[key]

    def out_of_time() -> bool:
        return clock() - begin > seconds

    best, idle = measured(at), 0
    for name in itertools.cycle(choices):
        before = dict(at)
        for direction in (1, -1):
            reach = 1
            while not out_of_time():
                place = list(choices[name]).index(at[name]) + direction * reach
                if not 0 <= place < len(choices[name]):
                    break
                other = {**at, name: choices[name][place]}
                found = measured(other)
                if found >= BETTER * best and found > best:
                    at, best, reach = other, found, 1
                elif reach == REACH[direction]:
                    break
                else:
                    reach += 1
            if at != before:
                break  # the other side was left behind
        idle = 0 if at != before else idle + 1
        if idle == len(choices) or out_of_time():
            return at, [(dict(key), value) for key, value in tried.items()]
    raise AssertionError("the names are repeated without end")


def choices(cores: int) -> dict[str, tuple]:
    """Return the settings of a loader that are tried, the most effective first.

    Args:
        cores: number of cores of the machine.
    """
    workers = sorted({0, 1, 2, cores, 2 * cores})
    return {
        "transforms": ("gluon", "opencv"),
        "num_workers": tuple(workers),
        "loader": ("gluon", "shared_memory"),
        "prefetch": (None, 1, 4, 8),
    }


def tune_loader(
    plan: Plan,
    write,
    recipe: str = "segmentation",
    seconds: float = 20.0,
    each: float = 1.0,
    memory: int | None = None,
    exhaustive: bool = False,
    **options,
) -> dict:
    """Find the settings with which a recipe's training samples are loaded fastest here.

    A trial's clock starts when what workers loaded ahead while they started has been taken.

    Args:
        plan: the switches that are not tuned, such as the batch size.
        write: called with the name and the fields of each event; an event ``trial`` for each trial.
        recipe: name of the recipe, or ``module:function``.
        seconds: no trial begins later.
        each: seconds of a trial.
        memory: bytes that this process and its workers may use; settings that use more are not
            chosen. None is half of what is available.
        exhaustive: whether to try all combinations instead, however long that takes.
        **options: options of the recipe.

    Returns:
        ``samples_per_second`` with the settings of the plan and ``best_samples_per_second``;
        ``settings``, the best ones; ``trials``, how many combinations could be chosen.

    Raises:
        PlanError: the seconds are not above 0, or no combination needs as little memory.
    """
    from mxnet import nd

    from mxopt import machine, recipes
    from mxopt.methods.data_parallel import parallel
    from mxopt.methods.input_pipeline.loading import make_loader
    from mxopt.methods.opencv_transforms import select
    from mxopt.train.setup import seed_everything

    if not seconds > 0:
        raise PlanError(f"seconds={seconds} must be above 0, such as 20: one trial takes {each:g}")
    seed_everything(plan.seed)
    contexts = parallel.contexts(plan)
    data = recipes.load(recipe, **options).data()
    write("data", kind=data.kind, origin=data.origin, samples=len(data.train))
    budget = machine.memory_available() // 2 if memory is None else memory

    def rate(settings: dict) -> float:
        try:
            tried = plan.replace(**settings)
            loader = make_loader(data, "train", select(data.transform, tried), tried, contexts)
        except PlanError:  # these settings exclude each other
            return 0.0
        ahead = 2 * tried.num_workers if tried.prefetch is None else tried.prefetch
        count, begin = 0, None
        batches = itertools.chain.from_iterable(itertools.repeat(loader))
        for batch in itertools.islice(batches, ahead, None):
            nd.waitall()
            if begin is None:
                begin = time.perf_counter()
                continue
            count += batch.size
            if time.perf_counter() - begin > each:
                break
        found = count / (time.perf_counter() - begin)
        used = machine.memory_used()
        write("trial", settings=settings, samples_per_second=found, memory_bytes=used)
        return found if used <= budget else 0.0

    known = choices(machine.cpu().physical_cores)
    own = {name: getattr(plan, name) for name in known}
    known = {
        name: values if own[name] in values else (*values, own[name])
        for name, values in known.items()
    }
    if exhaustive:
        every = [dict(zip(known, values)) for values in itertools.product(*known.values())]
        others = (settings for settings in every if settings != own)
        trials = [(settings, rate(settings)) for settings in (own, *others)]
        best = max(trials, key=lambda trial: trial[1])[0]
    else:
        best, trials = climb(rate, known, own, seconds)
    if not any(found for _, found in trials):
        raise PlanError(f"every way to load uses more than {budget / 2**20:,.0f} MiB: allow more")
    return {
        "samples_per_second": trials[0][1],
        "best_samples_per_second": max(found for _, found in trials),
        "settings": best,
        "trials": sum(found > 0 for _, found in trials),
    }


def kept(path: Path, key: str) -> dict | None:
    """Return the settings that were found before; None if there are none.

    Args:
        path: file of :func:`keep`.
        key: what was tuned on which machine.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8")).get(key)
    except (OSError, ValueError):
        return None


def keep(path: Path, key: str, settings: dict) -> None:
    """Keep settings for the next time.

    Args:
        path: JSON file, which is made if necessary.
        key: what was tuned on which machine.
        settings: the settings.

    Raises:
        MxoptError: the file cannot be written.
    """
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        known = {}
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic.replace_text(path, json.dumps({**known, key: settings}, indent=1) + "\n")
