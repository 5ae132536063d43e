"""Pictures with controls: drawn once where nobody can move them."""

import sys

import pytest

from mxopt.report.explore import STATIC, explore


def drawing():
    drawn = []

    def draw(first=2, wide=False):
        drawn.append((first, wide))
        return f"picture {first}"

    return draw, drawn


def test_without_a_reader_there_is_one_picture(monkeypatch):
    monkeypatch.setenv(STATIC, "1")
    draw, drawn = drawing()
    assert explore(draw, first=(0, 5), wide=False) == "picture 2"
    assert drawn == [(2, False)]


def test_without_ipywidgets_there_is_one_picture(monkeypatch):
    monkeypatch.delenv(STATIC, raising=False)
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    draw, drawn = drawing()
    assert explore(draw, first=(0, 5)) == "picture 2"
    assert drawn == [(2, False)]


def test_a_control_that_is_moved_draws_again(monkeypatch):
    pytest.importorskip("ipywidgets")
    monkeypatch.delenv(STATIC, raising=False)
    draw, drawn = drawing()
    box = explore(draw, first=(0, 5), wide=False)
    box.update()
    assert drawn[-1] == (2, False)
    first, wide = box.children[:2]
    assert (first.min, first.max) == (0, 5)
    first.value = 4
    assert drawn[-1] == (4, False)
    wide.value = True
    assert drawn[-1] == (4, True)
