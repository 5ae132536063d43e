"""The progress of a run, as it is read from a record that another process writes."""

import io
import time

import pytest

from mxopt.cli import following
from mxopt.cli.main import main
from mxopt.core.records import RecordWriter

STEPS = [
    ({"event": "environment", "at": 1.0}, 0, "starting", None),
    ({"event": "setup", "at": 2.0}, 0, "epoch 1 of 3", None),
    ({"event": "check", "at": 3.0, "step": 0}, 0, "epoch 1 of 3", None),
    ({"event": "steps", "at": 5.0, "losses": [1.0] * 4}, 0, "epoch 1 of 3, step 4", None),
    ({"event": "epoch", "at": 7.0, "epoch": 0}, 1, "epoch 2 of 3", 8.0),
    ({"event": "steps", "at": 9.0, "losses": [1.0] * 2}, 1.5, "epoch 2 of 3, step 2", 6.0),
    ({"event": "steps", "at": 10.0, "losses": [1.0] * 2}, 2, "epoch 2 of 3, step 4", 3.5),
    ({"event": "epoch", "at": 11.0, "epoch": 1}, 2, "epoch 3 of 3", 4.0),
    ({"event": "epoch", "at": 15.0, "epoch": 2}, 3, "testing", 0.0),
]


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_events_say_how_much_is_done_and_left():
    progress = following.Progress(3)
    for event, done, text, left in STEPS:
        progress.add(event)
        assert (progress.done, str(progress), progress.left()) == (done, text, left)


def test_what_was_done_before_an_interruption_took_no_time():
    progress = following.Progress(4)
    progress.add({"event": "setup", "at": 2.0})
    progress.add({"event": "resumed", "at": 3.0, "epoch": 2, "step": 0})
    progress.add({"event": "epoch", "at": 13.0, "epoch": 2})
    assert progress.left() == 10.0


def shows(terminal, text):
    """Wait until a terminal shows a text."""
    deadline = time.monotonic() + 20
    while text not in terminal.getvalue():
        assert time.monotonic() < deadline, f"{text!r} is not in {terminal.getvalue()!r}"
        time.sleep(0.01)


def test_a_terminal_shows_the_record_that_is_being_written(tmp_path, monkeypatch):
    monkeypatch.setattr(following, "EVERY", 0.01)
    terminal, record = Terminal(), tmp_path / "run.jsonl"
    with following.shown(record, 2, terminal), RecordWriter(record) as writer:
        shows(terminal, "starting")
        writer.begin("a:b", {}, {})
        writer.write("setup")
        writer.write("epoch", epoch=0)
        shows(terminal, "epoch 2 of 2")
    assert "50 %" in terminal.getvalue()
    assert "epoch 2 of 2, about 0 s left" in terminal.getvalue()


@pytest.mark.parametrize("file", [Terminal, io.StringIO])
def test_a_run_shows_its_progress_on_a_terminal_only(tmp_path, monkeypatch, capsys, file):
    seen = file()
    monkeypatch.setattr(following.sys, "stderr", seen)
    words = ["run", "toy:toy", "--option", "train=10", "--record", str(tmp_path / "run.jsonl")]
    assert main(words) == 0
    assert ("train:   0 %" in seen.getvalue()) is (file is Terminal)
    assert "train:" not in capsys.readouterr().out
