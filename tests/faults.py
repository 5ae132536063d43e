"""The faults that tests try, and the page that lists them.

A test of a fault is marked with what happens, what the user sees and what is lost, and asks for the
fixture ``sees``, which holds it to its own words:

    @pytest.mark.fault("files", "a record's line is damaged", sees="run.jsonl, line 2")
    def test_a_damaged_line_is_named(tmp_path, sees):
        ...
        with sees.raised(RecordError):
            read_run(path)

``docs/reliability.md`` is written from the marks: ``python tests/faults.py``.
"""

from __future__ import annotations

import ast
import re
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
PAGE = TESTS.parent / "docs" / "reliability.md"
INTRODUCTION = TESTS / "reliability.md"
AREAS = {
    "runs": "Interrupted runs",
    "numbers": "Numbers and memory",
    "workers": "Worker processes",
    "disk": "Disks and folders",
    "files": "Damaged files",
    "network": "Downloads",
    "sharing": "Conflicts between runs",
    "machine": "The machine",
}


@dataclass(frozen=True)
class Fault:
    """A mark: ``test`` is the function it stands on, ``asks`` whether that takes ``sees``."""

    area: str
    happens: str
    sees: str
    lost: str
    test: str
    asks: bool


class Sees:
    """What a mark says the user sees, for the test to find; ``...`` stands for any text."""

    def __init__(self, text: str):
        self.text, self.found = text, False
        self.pattern = ".*".join(map(re.escape, text.split("...")))

    def raised(self, kind: type[Exception]):
        """Return ``pytest.raises`` of an error that says so."""
        self.found = True
        return pytest.raises(kind, match=f"(?s){self.pattern}")

    def __call__(self, said: str):
        """Check that something says so."""
        self.found = True
        assert re.search(self.pattern, said, re.DOTALL), f"{self.text!r} is not in {said!r}"


def within(seconds: float, done) -> bool:
    """Wait until ``done()`` is true, for so long at most, and return whether it is."""
    start = time.monotonic()
    while not done() and time.monotonic() - start < seconds:
        time.sleep(0.02)
    return done()


def faults(folder: Path = TESTS) -> list[Fault]:
    """Return the marks of all tests, read from their source, in the order of files and lines."""
    found = []
    for path in sorted(folder.rglob("test_*.py")):
        for function in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(function, ast.FunctionDef):
                found += [_fault(call, function, path) for call in _marks(function)]
    return found


def _marks(function: ast.FunctionDef) -> list[ast.Call]:
    calls = [n for d in function.decorator_list for n in ast.walk(d) if isinstance(n, ast.Call)]
    return [call for call in calls if ast.unparse(call.func) == "pytest.mark.fault"]


def _fault(call: ast.Call, function: ast.FunctionDef, path: Path) -> Fault:
    area, happens = map(ast.literal_eval, call.args)
    words = {keyword.arg: ast.literal_eval(keyword.value) for keyword in call.keywords}
    asks = "sees" in [argument.arg for argument in function.args.args]
    words = {"lost": "nothing", **words}
    return Fault(area, happens, test=f"{path.stem}.{function.name}", asks=asks, **words)


def page() -> str:
    """Return ``docs/reliability.md``: the introduction, then a table for each area."""
    parts = [INTRODUCTION.read_text(encoding="utf-8").strip()]
    known = faults()
    for area, title in AREAS.items():
        rows = [fault for fault in known if fault.area == area]
        lines = ["| what happens | what you see | what is lost |", "| --- | --- | --- |"]
        lines += [f"| {row.happens} | {row.sees} | {row.lost} |" for row in rows]
        parts += [f"### {title}", "\n".join(lines)]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
