"""The checks of the checklist's exercises reject usual mistakes, with a hint."""

import numpy as np
import pytest

from mxopt.chapter.exercises import checklist as exercises


def shown(check, answer, capsys):
    check(answer)
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("check", "answer", "hint"),
    [
        (exercises.starved, lambda s, idle, w: s / max(idle, 1e-9), "what is left without it"),
        (exercises.starved, lambda s, idle, w: s / (s - idle - w), "the other seconds are left"),
        (exercises.windowed, lambda n, w, e: list(range(n))[:-1], "every sample once"),
        (
            exercises.windowed,
            lambda n, w, e: np.random.RandomState(e).permutation(n).tolist(),
            "cannot leave the buffer",
        ),
        (exercises.windowed, lambda n, w, e: list(range(n)), "another order"),
        (
            exercises.folded,
            lambda w, g, b, m, v, e: (w * g.reshape((-1, 1, 1, 1)), b),
            "filters are wrong",
        ),
        (
            exercises.folded,
            lambda w, g, b, m, v, e: (w * (g / (v + e).sqrt()).reshape((-1, 1, 1, 1)), b - m),
            "bias is wrong",
        ),
        (
            exercises.by_channel,
            lambda w: (np.rint(w / np.abs(w).max() * 127), np.abs(w).max() / 127),
            "its own largest weight",
        ),
        (exercises.by_channel, lambda w: (np.rint(w * 200), 1 / 200), "between -127 and 127"),
    ],
)
def test_a_mistake_gets_its_hint(check, answer, hint, capsys):
    assert hint in shown(check, answer, capsys)
