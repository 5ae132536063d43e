"""Pictures with controls beside them in Jupyter, and one picture where no kernel listens."""

from __future__ import annotations

import os
from collections.abc import Callable

# Set by ``mxopt reproduce``: nobody moves a control while it executes the notebooks.
STATIC = "MXOPT_STATIC"


def explore(draw: Callable, **controls):
    """Return what a function draws, with controls that draw it again where they can be moved.

    Args:
        draw: returns what is shown; every argument has a default, which is drawn first.
        **controls: for arguments of ``draw``, as :func:`ipywidgets.interact` takes them: a pair of
            numbers for a slider, a list for a menu, a bool for a box to tick.

    Returns:
        An ``ipywidgets`` box, or the first picture alone if ``MXOPT_STATIC`` is set or ipywidgets
        is not installed.
    """
    if os.environ.get(STATIC):
        return draw()
    try:
        import ipywidgets
    except ImportError:
        return draw()
    return ipywidgets.interactive(draw, **controls)
