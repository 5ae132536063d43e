"""Progress with the remaining time.

On a terminal it is a tqdm bar, in a notebook one line of text that changes, in a log plain lines.
"""

from __future__ import annotations

import contextlib
import html
import sys
import time

from tqdm import tqdm

# Weight of the expected duration in the estimate: as if this share of the work had been done at
# the expected speed.
_EXPECTED_SHARE = 0.1


@contextlib.contextmanager
def track(
    title: str, total: float, file=None, expected: float | None = None, estimate: bool = True
):
    """Show the progress of work in steps.

    Yields ``step(what, cost=1)``, a function to call when each step begins.

    >>> with track("engine", 2) as step:
    ...     step("naive")
    ...     step("threaded")
    engine:   0 %, naive
    engine:  50 %, threaded, about 0 s left
    engine: done in 0 s

    Args:
        title: name of the work.
        total: sum of the costs of all steps.
        file: text file to write to; standard output by default.
        expected: seconds that the same work took elsewhere. The remaining time is estimated from
            it and from the steps done so far; without it, from the steps only, once they are a
            tenth of the work.
        estimate: whether to show the remaining time; not if steps may have been done before, which
            pass at once.
    """
    file, total, begin = file or sys.stdout, max(total, 1), time.monotonic()
    bar, last, shown = _bar(title, total, file), 0, None
    prior = _EXPECTED_SHARE if expected else 0

    def step(what, cost=1):
        nonlocal last, shown
        bar.update(last)
        text, last, new, shown = what, cost, what != shown, what
        if estimate and (prior or 10 * bar.n >= total):  # before, it is too early
            taken = time.monotonic() - begin + prior * (expected or 0)
            text += f", about {duration(taken * (total - bar.n) / (bar.n + prior * total))} left"
        bar.set_postfix_str(text, refresh=new)

    with bar:
        yield step
        bar.bar_format = f"{title}: done in {duration(time.monotonic() - begin)}"
        bar.refresh()


@contextlib.contextmanager
def gauge(title: str, total: float, file=None):
    """Show how far work is that is watched from outside; nothing of it is left at the end.

    Yields ``at(done, what)``, a function to call with the work that is done, up to the total, and
    with a text.

    Args:
        title: name of the work.
        total: all of the work.
        file: text file to write to; standard output by default.
    """
    bar = _bar(title, total, file or sys.stdout, leave=False)

    def at(done: float, what: str) -> None:
        bar.n = done
        bar.set_postfix_str(what)

    with bar:
        yield at


def duration(seconds: float) -> str:
    """Return a duration in a readable form: ``12 s``, ``3 min``, ``1 h 20 min``."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


class _Texts(tqdm):
    """A tqdm that passes its text to a function instead of drawing a bar."""

    def __init__(self, say, **options):
        super().__init__(**options, gui=True)  # as tqdm's own subclasses do: nothing is drawn
        self._say, self._said = say, ""

    def display(self, *_, **__):
        text = str(self)
        if text != self._said:
            self._say(text)
        self._said = text


def _bar(title: str, total: float, file, **more) -> tqdm:
    # A step is shown when it begins, by set_postfix_str. An infinite interval keeps update, which
    # is called when a step has ended, from drawing.
    options = {"desc": title, "total": total, "file": file, "mininterval": float("inf"),
               **more}  # fmt: skip
    if _in_notebook():
        from IPython.display import HTML, display

        handle = display(HTML(""), display_id=True)
        return _Texts(lambda text: handle.update(HTML(f"<small>{html.escape(text)}</small>")),
                      bar_format="{desc}: {percentage:3.0f} %{postfix}", **options)  # fmt: skip
    if file.isatty():
        form = "{desc}: {percentage:3.0f} %|{bar:20}| {elapsed}{postfix}"
        return tqdm(bar_format=form, dynamic_ncols=True, **options)
    return _Texts(lambda text: print(text, file=file, flush=True),
                  bar_format="{desc}: {percentage:3.0f} %{postfix}", **options)  # fmt: skip


def _in_notebook() -> bool:
    shell = sys.modules.get("IPython")
    return bool(shell and shell.get_ipython() and hasattr(shell.get_ipython(), "kernel"))
