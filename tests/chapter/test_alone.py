import pytest

from mxopt.chapter.alone import AloneError, alone


def greeting():
    import os
    import sys

    print(os.environ["WHO"], "mxnet" in sys.modules)


def failing():
    raise ValueError("no such thing")


def test_a_function_runs_in_a_process_of_its_own(capsys):
    import mxnet  # noqa: F401  (here, and not there)

    alone(greeting, WHO="there")
    assert capsys.readouterr().out == "there False\n"


def test_what_went_wrong_there_is_said_here():
    with pytest.raises(AloneError, match="failing failed in its own process: ValueError: no such"):
        alone(failing)
