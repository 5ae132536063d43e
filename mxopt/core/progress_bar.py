"""Progress: a bar with an estimate on a terminal, one line that changes in a notebook, plain
lines in a log."""

from __future__ import annotations

import contextlib
import sys
import time


@contextlib.contextmanager
def track(title: str, total: int, file=None):
    """Show the progress of work that comes in steps; yields ``step(what, cost=1)``, to be called
    as each step begins. The costs of all steps add up to ``total``.

    >>> with track("engine", 2) as step:
    ...     step("naive")
    ...     step("threaded")
    """
    file = file or sys.stdout
    show = _notebook if _in_notebook() else _terminal if file.isatty() else _lines
    with show(title, max(total, 1), file) as step:
        yield step


@contextlib.contextmanager
def _terminal(title, total, file):
    from rich import progress
    from rich.console import Console

    columns = (
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.TaskProgressColumn(),
        progress.TimeElapsedColumn(),
        progress.TextColumn("left"),
        progress.TimeRemainingColumn(elapsed_when_finished=True),
    )
    with progress.Progress(*columns, console=Console(file=file)) as bar:
        task = bar.add_task(title, total=total)
        last = 0

        def step(what, cost=1):
            nonlocal last
            bar.update(task, advance=last, description=f"{title}: {what}", refresh=True)
            last = cost

        yield step
        bar.update(task, completed=total, description=title)


@contextlib.contextmanager
def _lines(title, total, file):
    with _texts(title, total, lambda text: print(text, file=file, flush=True)) as step:
        yield step


@contextlib.contextmanager
def _notebook(title, total, file):
    from IPython.display import HTML, display

    handle = display(HTML(""), display_id=True)
    with _texts(title, total, lambda text: handle.update(HTML(f"<small>{text}</small>"))) as step:
        yield step


@contextlib.contextmanager
def _texts(title, total, say):
    start, done, last, shown = time.monotonic(), 0, 0, None

    def step(what, cost=1):
        nonlocal done, last, shown
        done, last = done + last, cost
        text = f"{title}: {100 * done // total:3d} %, {what}"
        if done and 10 * done >= total:  # the first few steps tell nothing of the rest
            left = duration((time.monotonic() - start) / done * (total - done))
            text += f", about {left} left"
        if what != shown:
            say(text)
        shown = what

    yield step
    say(f"{title}: done in {duration(time.monotonic() - start)}")


def duration(seconds: float) -> str:
    """Return a duration as a person would say it: ``12 s``, ``3 min``, ``1 h 20 min``."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


def _in_notebook() -> bool:
    shell = sys.modules.get("IPython")
    return bool(shell and shell.get_ipython() and hasattr(shell.get_ipython(), "kernel"))
