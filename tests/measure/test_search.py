"""A search finds a good rate, goes on after a kill, and never reads the test split."""

import pytest

from mxopt.cli.main import main
from mxopt.core.errors import DeviceError, MxoptError, PlanError, RecordError
from mxopt.core.plan import Plan
from mxopt.core.records import Run, read_run
from mxopt.measure import run
from mxopt.measure import search as module
from mxopt.measure.ranges import Range
from mxopt.measure.search import best_plan, search

optuna = pytest.importorskip("optuna")
PLAN = Plan(batch_size=4, epochs=3)
SPACE = {"learning_rate": Range.parse("float:1e-5:1:log")}


def searched(folder, **more):
    how = {"trials": 4, "pruner": "none", "sampler": "random", **more}
    return search("toy:toy", PLAN, how.pop("space", SPACE), folder, **how)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("float:1e-4:1e-2:log", Range("float", (1e-4, 1e-2), log=True)),
        ("int:64:512:64", Range("int", (64, 512), step=64)),
        ("choice:64,128,adam", Range("choice", (64, 128, "adam"))),
        ("bool", Range("choice", (False, True))),
    ],
)
def test_ranges_are_read(text, expected):
    assert Range.parse(text) == expected


@pytest.mark.parametrize(
    "text", ["float", "float:1", "float:2:1", "float:0:1:log", "int:1:9:0", "string:a", "choice:"]
)
def test_ranges_that_cannot_be_are_refused(text):
    if text == "choice:":
        assert Range.parse(text).values == ("",)
        return
    with pytest.raises(PlanError, match="is no range"):
        Range.parse(text)


def test_trials_are_recorded_and_the_best_one_is_returned(tmp_path, in_process):
    seen = []
    study = searched(tmp_path, seen=lambda number, run: seen.append((number, run)))
    assert [number for number, _ in seen] == [0, 1, 2, 3]
    assert all((tmp_path / f"trial-00{n}.jsonl").exists() for n in range(4))
    scores = [run.figures["validation_accuracy"] for _, run in seen]
    assert study.best_value == max(scores)
    plan, options = best_plan(PLAN, study)
    best = seen[scores.index(max(scores))][1]
    assert plan.learning_rate == best.plan.learning_rate
    assert options == {}
    assert not any(name.startswith("test_") for _, run in seen for name in run.figures)


def test_no_trial_reads_the_test_split(tmp_path):
    study = search("toy:untested", PLAN, SPACE, tmp_path, trials=1, pruner="none")
    assert study.best_value > 0
    whole = run("mxopt.chapter.workloads:train", PLAN, tmp_path / "whole.jsonl",
                {"recipe": "toy:untested"})  # fmt: skip
    assert "this split was read" in whole.reason


def test_it_goes_on_where_it_was_and_loses_the_trial_that_was_killed(tmp_path, in_process):
    first = searched(tmp_path, trials=2)
    first.ask()  # a trial whose process was killed
    study = searched(tmp_path, trials=3)
    states = [one.state.name for one in study.trials]
    assert states == ["COMPLETE", "COMPLETE", "FAIL", "COMPLETE"]
    assert [one.params for one in study.trials[:2]] == [one.params for one in first.trials[:2]]


@pytest.mark.parametrize("sampler", module.SAMPLERS)
def test_a_resumed_search_draws_what_an_uninterrupted_one_does(tmp_path, in_process, sampler):
    for trials in (2, 4, 6):
        study = searched(tmp_path / "resumed", trials=trials, sampler=sampler)
    drawn = [one.params["learning_rate"] for one in study.trials]
    assert len(set(drawn)) == len(drawn) == 6
    whole = searched(tmp_path / "whole", trials=6, sampler=sampler)
    assert drawn == [one.params["learning_rate"] for one in whole.trials]


def test_bad_trials_are_stopped_early(tmp_path, monkeypatch):
    space = {"learning_rate": Range.parse("choice:0.1,1e-9")}
    ended = []
    study = searched(tmp_path, space=space, trials=5, pruner="median", seed=4,
                     seen=lambda number, run: ended.append(run))  # fmt: skip
    pruned = [run for run in ended if not run.ok]
    assert len(study.trials) == 5  # the bad rate is drawn last
    assert pruned
    assert all(module.PRUNED in run.reason for run in pruned)
    assert all(run.plan.learning_rate == 1e-9 for run in pruned)


def few(number, run):
    assert number < 10, "the search does not end"


def test_a_search_whose_trials_diverge_ends_and_learns_from_them(tmp_path, in_process):
    study = searched(tmp_path, trials=3, options={"poison": 0}, seen=few)
    assert [one.state.name for one in study.trials] == ["PRUNED"] * 3
    records = [read_run(path) for path in sorted(tmp_path.glob("trial-*.jsonl"))]
    assert [run.status for run in records] == ["diverged"] * 3
    with pytest.raises(MxoptError, match="none of 3 trials has ended with a score"):
        best_plan(PLAN, study)


def test_failures_in_a_row_end_a_search_that_had_good_trials(tmp_path, in_process, monkeypatch):
    def failing(workload, plan, record, options):
        return Run(record, plan, workload, status="failed", reason="no such thing")

    searched(tmp_path, trials=2)
    monkeypatch.setattr(module, "run", failing)
    with pytest.raises(MxoptError, match=r"the last 5 trials .* trial-006\.jsonl, ended as f"):
        searched(tmp_path, trials=9, seen=few)


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"options": {"train": 30}}, "train=None instead of 30"),
        ({"objective": "validation_loss"}, "objective='validation_accuracy' instead of"),
        ({"pruner": "median"}, "pruner='none' instead of 'median'"),
        (
            {"space": {"learning_rate": Range.parse("float:1e-4:1:log")}},
            "range of learning_rate=.*1e-05",
        ),
        ({"space": {"momentum": Range.parse("float:0:0.9")}}, "range of momentum=None instead of"),
    ],
)
def test_another_search_in_the_same_folder_is_refused(tmp_path, in_process, how, says):
    searched(tmp_path, trials=1)
    with pytest.raises(RecordError, match=says):
        searched(tmp_path, **how)
    with pytest.raises(RecordError, match=r"momentum=0\.0 instead of 0\.5"):
        search("toy:toy", PLAN.replace(momentum=0.5), SPACE, tmp_path, pruner="none")
    searched(tmp_path, trials=2, sampler="tpe")
    assert len(list(tmp_path.glob("trial-*.jsonl"))) == 2


def test_the_lowest_loss_is_the_best(tmp_path, in_process):
    seen = []
    study = searched(
        tmp_path, objective="validation_loss", seen=lambda number, run: seen.append(run)
    )
    losses = [run.figures["validation_loss"] for run in seen]
    assert study.best_value == min(losses) < max(losses)


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(RecordError, match="file cannot be made"):
        searched(tmp_path / "file")


def test_options_of_the_recipe_are_searched_too(tmp_path, in_process):
    space = {"train": Range.parse("choice:20,30")}
    study = searched(tmp_path, space=space, trials=2)
    assert {one.params["train"] for one in study.trials} <= {20, 30}
    assert "train" in best_plan(PLAN, study)[1]


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"sampler": "grid"}, "sampler='grid' is not a choice"),
        ({"pruner": "asha"}, "pruner='asha' is not a choice"),
    ],
)
def test_mistakes_are_named_before_anything_is_trained(tmp_path, how, says):
    with pytest.raises(PlanError, match=says):
        searched(tmp_path, **how)
    with pytest.raises(PlanError, match="did you mean 'learning_rate'"):
        search("fashion_mnist", PLAN, {"learning_rat": Range("float", (0, 1))}, tmp_path)
    assert not list(tmp_path.glob("*.jsonl"))


def test_a_figure_that_is_not_there_ends_the_search(tmp_path, in_process):
    with pytest.raises(MxoptError, match="epochs have no validation_beauty"):
        searched(tmp_path, trials=4, objective="validation_beauty")


def test_without_optuna_its_name_is_said(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "optuna", None)
    with pytest.raises(DeviceError, match="pip install optuna"):
        module._optuna()


def test_the_command_prints_every_trial_and_the_best_plan(tmp_path, capsys, in_process):
    words = ["search", "toy:toy", "batch_size=5", "--space", "learning_rate=float:0.01:0.5:log",
             "train=choice:20,30", "--trials", "2", "--pruner", "none"]  # fmt: skip
    assert main([*words, "--results", str(tmp_path)]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[1].startswith("trial 0: learning_rate=0.")
    assert "validation_accuracy" in said[2]
    assert said[-2].startswith("best of 2: validation_accuracy")
    *_, recipe, plan, rate, option, value = said[-1].split()
    assert (recipe, plan, option) == ("toy:toy", "batch_size=5", "--option")
    assert rate.startswith("learning_rate=0.")
    assert value in ("train=20", "train=30")
    assert main([*words[:4], "learning_rate=none", "--results", str(tmp_path)]) == 2


@pytest.mark.parametrize(("pruner", "brackets"), [("none", 1), ("hyperband", 2)])
def test_tpe_is_a_random_search_until_it_guides(pruner, brackets):
    count = brackets * module.RANDOM_FIRST + 1

    def drawn(sampler):
        study = optuna.create_study(
            sampler=module._sampler(optuna, sampler, 3), pruner=module._pruner(optuna, pruner, 3)
        )

        def objective(trial):
            rate = trial.suggest_float("rate", 0, 1)
            for epoch in range(3):
                trial.report(rate, epoch)
                trial.should_prune()
            return rate

        study.optimize(objective, count)
        return [trial.params["rate"] for trial in study.trials]

    same = [a == b for a, b in zip(drawn("tpe"), drawn("random"))]
    assert module.RANDOM_FIRST <= same.index(False) < count
    assert module.guided("tpe", pruner, 3, count) == 1
    assert module.guided("tpe", pruner, 3, 2) == 0
    assert module.guided("random", pruner, 3, count) == 0
