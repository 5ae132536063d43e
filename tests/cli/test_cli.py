import pytest

from mxopt import measure
from mxopt.cli import doctor
from mxopt.cli.main import main
from mxopt.core.plan import Plan
from mxopt.core.records import read_run


def test_run_trains_and_leaves_a_record(tmp_path, capsys):
    record = tmp_path / "run.jsonl"
    words = ["run", "toy:toy", "batch_size=5", "epochs=2", "--record", str(record)]
    assert main([*words, "--option", "train=10"]) == 0
    said = capsys.readouterr().out
    assert "data: stand-in" in said
    assert "samples                  20" in said
    assert record.exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["run", "toy:toy", "batch_sise=3"], "did you mean 'batch_size'"),
        (["run", "nothing"], "no recipe is called 'nothing'"),
        (["run", "toy:toy", "--option", "train"], "write NAME=VALUE"),
        (["run", "toy:toy", "precision=amp"], "precision='amp' needs a GPU"),
        (["run", "toy:toy", "devices=gpu:7"], "there is no gpu:7"),
        (["report", "nowhere"], "no experiments below nowhere"),
        (["fetch", "imagenet"], "imagenet"),
    ],
)
def test_bad_input_is_one_sentence_and_status_2(tmp_path, monkeypatch, capsys, words, says):
    monkeypatch.chdir(tmp_path)
    if words[0] == "run":
        words = [*words, "--record", "run.jsonl"]
    assert main(words) == 2
    said = capsys.readouterr().err
    assert said.startswith("mxopt: ")
    assert says in said
    assert len(said.splitlines()) == 1


def test_an_unwritable_record_is_refused(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main(["run", "toy:toy", "--record", str(tmp_path / "file" / "run.jsonl")]) == 2
    assert "choose a results folder" in capsys.readouterr().err


def test_a_folder_is_no_record(tmp_path, capsys):
    assert main(["run", "toy:toy", "--record", str(tmp_path)]) == 2
    assert f"{tmp_path} is a folder; name a file" in capsys.readouterr().err


@pytest.mark.fault(
    "runs",
    "a loss becomes infinite",
    sees="the run ended as diverged: diverged at step 1",
    lost="nothing before that step",
)
def test_a_run_that_diverges_ends_with_status_1(tmp_path, capsys, sees):
    words = ["run", "toy:toy", "--option", "poison=0", "--record", str(tmp_path / "run.jsonl")]
    assert main(words) == 1
    sees(capsys.readouterr().err)


@pytest.mark.fault("runs", "Ctrl-C", sees="mxopt: stopped", lost="the run in work")
def test_an_interrupt_is_one_line_and_status_130(monkeypatch, capsys, sees):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(doctor, "run", interrupted)
    assert main(["doctor"]) == 130
    said = capsys.readouterr().err
    assert len(said.splitlines()) == 1
    sees(said)


def test_a_command_is_needed(capsys):
    with pytest.raises(SystemExit) as stop:
        main([])
    assert stop.value.code == 2


def test_two_plans_are_compared_and_what_differs_is_named(tmp_path, capsys, in_process):
    words = ["compare", "toy:toy", "batch_size=4", "--after", "batch_size=8", "--repeats", "2"]
    folder = tmp_path / "results"
    assert main([*words, "--results", str(folder), "--quality", "test_accuracy"]) == 0
    said = capsys.readouterr().out
    assert "| before → after | batch_size: 4 → 8 |" in said
    assert "n = 2" in said
    assert "| before → before-again | nothing |" in said
    assert len(list(folder.glob("compare/*-0?.jsonl"))) == 6
    seeds = {read_run(path).plan.seed for path in folder.glob("compare/*-02.jsonl")}
    assert seeds == {1}


@pytest.mark.parametrize(
    ("after", "message"),
    [
        (["batch_size=8", "hybridize=yes"], "what differs is hybridize, batch_size; change"),
        (["batch_size=8"], "not be the effect of hybridize, for what differs is batch_size"),
        (["size=96"], "for what differs is size"),
        (["batch_size=4"], "after is the same as before"),
    ],
)
def test_a_pair_that_differs_in_more_is_no_effect_of_one_switch(tmp_path, capsys, after, message):
    words = ["compare", "toy:toy", "batch_size=4", "--effect-of", "hybridize", "--after", *after]
    assert main([*words, "--results", str(tmp_path / "results")]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "results").exists()


def test_a_quality_that_runs_lack_stops_after_the_first(tmp_path, capsys, in_process):
    words = ["compare", "toy:toy", "--after", "batch_size=8", "--repeats", "2"]
    assert main([*words, "--results", str(tmp_path), "--quality", "bogus"]) == 2
    said = capsys.readouterr()
    assert "is called 'bogus', so the measurement was stopped" in said.err
    assert "test_accuracy, " in said.err
    assert "not a number" not in said.out
    assert len(list(tmp_path.glob("compare/*-0?.jsonl"))) == 1


def test_switches_are_ablated(tmp_path, capsys, in_process):
    words = ["ablate", "toy:toy", "batch_size=4", "--after", "hybridize=yes", "train=10"]
    folder = tmp_path / "results"
    assert main([*words, "--repeats", "1", "--results", str(folder)]) == 0
    said = capsys.readouterr().out
    assert "| hybridize |" in said
    assert "| train |" in said
    assert "averaged over every order" in said
    assert {path.name for path in (folder / "ablation").iterdir()} == {
        "after-01.jsonl", "before-01.jsonl", "experiment.json", "hybridize-01.jsonl",
        "train-01.jsonl", "waterfall.png",
    }  # fmt: skip


def test_an_ablation_measures_the_first_plan_twice(tmp_path, capsys, in_process):
    words = ["ablate", "toy:toy", "batch_size=4", "--after", "train=10", "--repeats", "2"]
    assert main([*words, "--results", str(tmp_path / "results")]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "The same arm twice (before → before-again)" in said


def test_a_record_can_be_run_again_beside_what_it_held(tmp_path, capsys):
    old, new = tmp_path / "old.jsonl", tmp_path / "new.jsonl"
    measure.run("mxopt.workloads:chains", Plan(), old, {"size": 20, "count": 2, "length": 2})
    assert main(["again", str(old), "--record", str(new)]) == 0
    shown = capsys.readouterr().out
    assert "gflop per second" in shown
    first, second = read_run(old), read_run(new)
    assert (first.plan, first.options, first.workload) == (
        second.plan, second.options, second.workload,
    )  # fmt: skip


@pytest.mark.parametrize("command", ["compare", "ablate"])
def test_a_misspelt_switch_is_refused_before_anything_is_measured_or_made(
    command, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    assert main([command, "segmentation", "--after", "hybridise=static"]) == 2
    assert "no switch or option is called 'hybridise'; did you mean" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_deleted_working_folder_is_named(tmp_path, monkeypatch, capsys):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(SystemExit) as stop:
        main(["--version"])
    assert stop.value.code == 0
    assert main(["fetch"]) == 2
    assert "mxopt: the working folder was deleted; change to another" in capsys.readouterr().err


def test_a_readme_that_is_missing_is_named_before_anything_is_written(tmp_path, capsys, in_process):
    folder = tmp_path / "results"
    measure.interleave(
        "demo", "toy:sleepy", {"a": Plan(), "b": Plan(batch_size=2)}, repeats=1, folder=folder
    )
    assert main(["report", str(folder), "--readme", str(tmp_path / "no.md")]) == 2
    assert f"cannot read the README {tmp_path}/no.md" in capsys.readouterr().err
    assert not (folder / "RESULTS.md").exists()
