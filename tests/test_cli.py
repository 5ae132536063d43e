import pytest

from mxopt.cli import main


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
        (["report", "nowhere"], "no run records"),
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


def test_a_run_that_diverges_ends_with_status_1(tmp_path, capsys):
    words = ["run", "toy:toy", "--option", "poison=0", "--record", str(tmp_path / "run.jsonl")]
    assert main(words) == 1
    assert "ended as diverged: diverged at step 1" in capsys.readouterr().err


def test_a_command_is_needed(capsys):
    with pytest.raises(SystemExit) as stop:
        main([])
    assert stop.value.code == 2
