"""Search of hyper-parameters: Optuna chooses, each trial is a training in a process of its own.

Only the training and the validation split are read; the test split is replaced by a part of the
validation split, and is left for the network that is chosen in the end. Trials are kept in a
journal, so that a search that was killed goes on where it was.
"""

from __future__ import annotations

import dataclasses
import json
import math
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from mxopt.core.errors import DeviceError, MxoptError, PlanError, RecordError
from mxopt.core.plan import Plan
from mxopt.core.records import Run
from mxopt.measure.options import check as check_options
from mxopt.measure.process import run
from mxopt.measure.ranges import Range

TRIAL = "mxopt.measure.search:trial"
JOURNAL = "study.log"
PRUNED = "stopped early"
SAMPLERS = ("tpe", "random")
PRUNERS = ("hyperband", "median", "none")
# Trials that TPE draws at random before it compares any, in each bracket of Hyperband: half of
# Optuna's number, for searches of some minutes.
RANDOM_FIRST = 5
# Failures in a row, without a trial that tells anything, that end a search.
FAILURES = 5
# Attribute of a study: what it searches.
ASKED = "asked_for"


def search(
    recipe: str,
    plan: Plan,
    space: Mapping[str, Range],
    folder: str | Path,
    *,
    options: dict | None = None,
    trials: int = 50,
    minutes: float | None = None,
    objective: str = "validation_accuracy",
    sampler: str = "tpe",
    pruner: str = "hyperband",
    seed: int = 0,
    seen: Callable[[int, Run], None] = lambda number, run: None,
):
    """Search the hyper-parameters with the highest validation score, or the lowest loss.

    Args:
        recipe: name of the recipe, or ``module:function``.
        plan: the switches that are not searched.
        space: ranges of switches of the plan and of options of the recipe, by name.
        folder: keeps the journal and the record of every trial; a search that is there goes on, if
            it is the same but for the numbers of trials and minutes, the sampler and the seed.
        options: options of the recipe that are not searched.
        trials: number of trials in all, with those of an earlier part of the search.
        minutes: no trial begins later than this; None for no limit.
        objective: figure of the ``epoch`` events; higher is better, unless it ends in ``_loss``.
        sampler: one of ``SAMPLERS``.
        pruner: one of ``PRUNERS``: which trials are stopped after an epoch.
        seed: seed of the sampler; each trial has its own, also after an interruption.
        seen: called with the number and the run of every trial that has ended.

    Returns:
        The Optuna study.

    Raises:
        PlanError: a name is neither a switch nor an option, or there is no such sampler or pruner.
        DeviceError: Optuna is not installed.
        RecordError: the folder has another search, or cannot be made.
        MxoptError: ``FAILURES`` trials in a row failed. Diverged trials are no failures.
    """
    optuna = _optuna()
    for name, value, known in (("sampler", sampler, SAMPLERS), ("pruner", pruner, PRUNERS)):
        if value not in known:
            raise PlanError(f"{name}={value!r} is not a choice; take one of {', '.join(known)}")
    base = {"recipe": recipe, **(options or {})}
    check_options("mxopt.chapter.workloads:train", base, dict.fromkeys(space))
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RecordError(
            f"{folder} cannot be made ({error.strerror}); choose another folder"
        ) from None
    study = optuna.create_study(
        storage=_storage(folder / JOURNAL), study_name=recipe,
        direction="minimize" if objective.endswith("_loss") else "maximize",
        load_if_exists=True, pruner=_pruner(optuna, pruner, plan.epochs),
    )  # fmt: skip
    ranges = {f"range of {name}": str(values) for name, values in space.items()}
    asked_for = {**plan.as_dict(), **base, **ranges, "objective": objective, "pruner": pruner}
    _check_same(study, json.loads(json.dumps(asked_for)), folder)
    states = optuna.trial.TrialState
    for left in study.get_trials(states=(states.RUNNING,)):
        study.tell(left.number, state=states.FAIL)  # its process was killed
    ended = (states.COMPLETE, states.PRUNED)
    deadline, failures = time.monotonic() + 60 * (minutes or float("inf")), 0
    while len(study.get_trials(states=ended)) < trials and time.monotonic() < deadline:
        study.sampler = _sampler(
            optuna, sampler, seed_of(seed, len(study.get_trials(deepcopy=False)))
        )
        asked = study.ask()
        chosen = {name: values.suggest(asked, name) for name, values in space.items()}
        switches = {name: value for name, value in chosen.items() if name in plan.as_dict()}
        own = {name: value for name, value in chosen.items() if name not in switches}
        job = {**base, **own, "journal": str(folder / JOURNAL), "number": asked.number,
               "objective": objective, "pruner": pruner}  # fmt: skip
        record = folder / f"trial-{asked.number:03d}.jsonl"
        try:
            done = run(TRIAL, plan.replace(**switches), record, job)
        except BaseException:
            study.tell(asked, state=states.FAIL)
            raise
        if done.ok:
            study.tell(asked, done.figures[objective])
        else:
            study.tell(asked, state=states.PRUNED if told_bad(done) else states.FAIL)
        failures = 0 if done.ok or told_bad(done) else failures + 1
        seen(asked.number, done)
        if failures >= FAILURES:
            raise MxoptError(
                f"the last {failures} trials failed; the last one, {record.name}, ended as "
                f"{done.status}: {done.reason}; remove the cause, or search smaller ranges"
            )
    return study


def _check_same(study, asked_for: dict, folder: Path) -> None:
    """Check that a study is of the search that is asked for; keep that if the study is new.

    Raises:
        RecordError: something differs. Scores of both together would tell nothing.
    """
    # Studies of version 0.2 and before do not say what they are of.
    known = study.user_attrs.get(ASKED, asked_for)
    differing = [
        f"{name}={known.get(name)!r} instead of {asked_for.get(name)!r}"
        for name in {**known, **asked_for}
        if known.get(name) != asked_for.get(name)
    ]
    if differing:
        raise RecordError(
            f"{folder} has another search, with {', '.join(differing)}; choose another folder"
        )
    study.set_user_attr(ASKED, asked_for)


def told_bad(run: Run) -> bool:
    """Return whether a trial shows that its hyper-parameters are bad: stopped early, or diverged.

    Optuna is told that such a trial was pruned. Its samplers learn from pruned trials, one without
    any report being the worst (:class:`optuna.samplers.TPESampler`), and ignore failed ones. It has
    no score that could be told instead.

    Args:
        run: a trial that did not end well.
    """
    return run.status == "diverged" or PRUNED in run.reason


def trial(
    plan: Plan,
    write,
    recipe: str,
    journal: str,
    number: int,
    objective: str,
    pruner: str = "none",
    **options,
) -> dict:
    """Train a recipe without its test split, and stop early if Optuna says so.

    Args:
        plan: the switches.
        write: called with the name and the fields of each event.
        recipe: name of the recipe, or ``module:function``.
        journal: path of the study's journal.
        number: number of the trial in the study.
        objective: figure of the ``epoch`` events that is reported.
        pruner: as for :func:`search`.
        **options: options of the recipe.

    Returns:
        The figures of :func:`mxopt.train.fit.fit`, without those of the test split.

    Raises:
        MxoptError: the trial was stopped early, or the recipe has no such figure.
    """
    from mxopt import recipes
    from mxopt.train import fit

    optuna = _optuna()
    study = optuna.load_study(
        study_name=recipe, storage=_storage(Path(journal)),
        pruner=_pruner(optuna, pruner, plan.epochs),
    )  # fmt: skip
    [known] = [one for one in study.get_trials(deepcopy=False) if one.number == number]
    asked = optuna.trial.Trial(study, known._trial_id)

    def reported(event, **fields):
        write(event, **fields)
        if event != "epoch":
            return
        if objective not in fields:
            raise MxoptError(f"epochs have no {objective}; there are {', '.join(fields)}")
        asked.report(fields[objective], fields["epoch"] + 1)
        if fields["epoch"] + 1 < plan.epochs and asked.should_prune():
            raise MxoptError(f"{PRUNED} after epoch {fields['epoch'] + 1}")

    made = recipes.load(recipe, **options)

    def data():
        found = made.data()
        return dataclasses.replace(found, test=found.validation.take(1))

    figures = fit.fit(dataclasses.replace(made, data=data), plan, reported)
    return {name: value for name, value in figures.items() if not name.startswith("test_")}


def best_plan(plan: Plan, study) -> tuple[Plan, dict]:
    """Return the plan with the best trial's switches, and the best trial's options.

    Args:
        plan: the plan that was searched from.
        study: what :func:`search` returned.

    Raises:
        MxoptError: no trial has ended with a score.
    """
    try:
        chosen = study.best_params
    except ValueError:
        raise MxoptError(
            f"none of {len(study.trials)} trials has ended with a score, so there is no best one: "
            "they diverged, failed or were stopped early; search smaller ranges"
        ) from None
    switches = {name: value for name, value in chosen.items() if name in plan.as_dict()}
    return plan.replace(**switches), {n: v for n, v in chosen.items() if n not in switches}


def seed_of(seed: int, number: int) -> int:
    """Return the seed of a trial's sampler, which is the same whether a search was resumed or not.

    With one seed for all, a resumed search would draw its first trials again.

    Args:
        seed: seed of the search, at least 0.
        number: number of the trial, from 0.
    """
    return int(np.random.SeedSequence((seed, number)).generate_state(1)[0])


def guided(sampler: str, pruner: str, epochs: int, trials: int) -> int:
    """Return how many trials, at least, were chosen by what earlier ones had shown.

    Args:
        sampler: one of ``SAMPLERS``.
        pruner: one of ``PRUNERS``. Hyperband has 1 + log3(epochs) brackets, rounded down, which
            TPE treats as searches of their own (Optuna's documentation of ``HyperbandPruner``).
        epochs: of each trial that is not stopped early.
        trials: number of the search's trials.
    """
    brackets = 1 + math.floor(math.log(epochs, 3)) if pruner == "hyperband" else 1
    return max(0, trials - RANDOM_FIRST * brackets) if sampler == "tpe" else 0


def _optuna():
    try:
        import optuna
    except ImportError:
        raise DeviceError("a search needs Optuna; install it with: pip install optuna") from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


def _storage(path: Path):
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    return JournalStorage(JournalFileBackend(str(path)))


def _sampler(optuna, name: str, seed: int):
    if name == "tpe":
        return optuna.samplers.TPESampler(seed=seed, n_startup_trials=RANDOM_FIRST)
    return optuna.samplers.RandomSampler(seed=seed)


def _pruner(optuna, name: str, epochs: int):
    if name == "hyperband":
        return optuna.pruners.HyperbandPruner(min_resource=1, max_resource=epochs)
    if name == "median":
        return optuna.pruners.MedianPruner(n_startup_trials=4)
    return optuna.pruners.NopPruner()
