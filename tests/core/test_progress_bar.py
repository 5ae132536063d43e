"""What is under way and how long the rest will take is said on terminals, in notebooks and logs."""

import io
import time

import pytest

from mxopt.core import progress_bar


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_is_a_bar_on_a_terminal_and_lines_in_a_log(terminal):
    class Screen(io.StringIO):
        def isatty(self):
            return terminal

    screen = Screen()
    with progress_bar.track("work", 4, screen) as step:
        step("first", 1)
        step("second", 3)
    shown = screen.getvalue()
    assert "second" in shown
    assert ("\r" in shown) == terminal
    if not terminal:
        assert shown.splitlines()[0] == "work:   0 %, first"
        assert shown.splitlines()[1].startswith("work:  25 %, second, about ")


@pytest.mark.parametrize(
    ("seconds", "text"), [(12, "12 s"), (89, "89 s"), (150, "2 min"), (4800, "1 h 20 min")]
)
def test_durations_read_as_people_say_them(seconds, text):
    assert progress_bar.duration(seconds) == text


def test_an_expected_duration_is_believed_until_the_work_tells_otherwise():
    log = io.StringIO()
    with progress_bar.track("work", 100, log, expected=3600) as step:
        step("first", 50)
        step("second", 50)
    first, second, done = log.getvalue().splitlines()
    assert first == "work:   0 %, first, about 1 h 0 min left"
    assert second == "work:  50 %, second, about 5 min left"  # 0.1 of 3600 s for 0.6 of the work
    assert done == "work: done in 0 s"


def test_a_step_of_the_same_name_is_said_once():
    log = io.StringIO()
    with progress_bar.track("work", 3, log) as step:
        for what in ("one", "one", "two"):
            step(what)
            time.sleep(0.01)
    assert [line.split(",")[1] for line in log.getvalue().splitlines()[:-1]] == [" one", " two"]
