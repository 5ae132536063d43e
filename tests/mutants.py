"""Mutants: does a test fail when a line of the measuring code is wrong?

    python tests/mutants.py [WORD ...]          # those whose file or change has one of the words

Each mutant is one change to one file. It is made in a copy of the project, where the tests of that
file run; a mutant that they do not notice has survived. Exits with 1 if one has. A mutant whose
text is not in the file exactly once is an error: the code has changed, and the mutant must follow.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
# What the tests read; results are left out of the copy.
PARTS = ("mxopt", "tests", "benchmarks", "data", "pyproject.toml")
SECONDS = 900


class Mutant(NamedTuple):
    """A change to the text of a file, and the tests that should notice it.

    Attributes:
        file: path in the project.
        old: text that is replaced; it must be in the file exactly once.
        new: the text instead.
        tests: the files of tests, as words of a command line.
    """

    file: str
    old: str
    new: str
    tests: str


CLOCK = "mxopt/methods/engine/clock.py"
PROCESS = "mxopt/measure/process.py"
CHILD = "mxopt/measure/__main__.py"
PACKING = "mxopt/measure/packing.py"
READING = "mxopt/measure/reading.py"
FILES = "mxopt/measure/files.py"
OPTIONS = "mxopt/measure/options.py"
TEST_CLOCK = "tests/methods/engine/test_clock.py"
TEST_MEASURE = "tests/measure/test_measure.py"
# The quickest first, because the first failure ends a run of tests.
TEST_PROCESS = f"tests/measure/test_process.py {TEST_MEASURE}"
TEST_PACKING = "tests/measure/test_packing.py"
TEST_FILES = f"{TEST_PACKING} tests/measure/test_process.py"

MUTANTS = [
    # The clock.
    Mutant(CLOCK, "    nd.waitall()\n    watch = Stopwatch()", "    watch = Stopwatch()",
           TEST_CLOCK),
    Mutant(CLOCK, "    nd.waitall()\n    watch.seconds", "    watch.seconds", TEST_CLOCK),
    Mutant(CLOCK, "watch.seconds = time.perf_counter() - start",
           "watch.seconds = watch.enqueued", TEST_CLOCK),
    Mutant(CLOCK, "time.perf_counter(), time.process_time()",
           "time.perf_counter(), 0.0", TEST_CLOCK),
    Mutant(CLOCK, "time.process_time() - cpu_start", "time.thread_time() - cpu_start", TEST_CLOCK),
    Mutant(CLOCK, "    watch.enqueued = time.perf_counter() - start\n    nd.waitall()",
           "    nd.waitall()\n    watch.enqueued = time.perf_counter() - start", TEST_CLOCK),
    # The process of a run.
    Mutant(PROCESS, "{**_surroundings(), **methods.environment(plan)}", "_surroundings()",
           TEST_PROCESS),
    Mutant(PROCESS, 'env={**os.environ, **environment}', "env={**environment, **os.environ}",
           TEST_PROCESS),
    Mutant(PROCESS, '"MXOPT_OFFLINE": "1"', '"MXOPT_ONLINE": "1"', TEST_PROCESS),
    Mutant(PROCESS, "    RecordWriter(record).close()\n    record.unlink()\n", "", TEST_PROCESS),
    Mutant(PROCESS, '    if done.status == "killed":\n        killed_by',
           "    if False:\n        killed_by", TEST_PROCESS),
    Mutant(PROCESS, "    check_options(workload, options or {})\n", "", TEST_PROCESS),
    Mutant(CHILD, "            methods.check_environment(plan)\n", "", TEST_PROCESS),
    Mutant(CHILD, 'end_with_parent(job.pop("parent"))', 'job.pop("parent")', TEST_PROCESS),
    Mutant(CHILD, "machine.environment(methods.environment(plan))", "machine.environment()",
           TEST_PROCESS),
    Mutant(CHILD, 'status, reason, error_class = "diverged", str(error)',
           'status, reason, error_class = "ok", ""',
           f"{TEST_PROCESS} tests/train/test_divergence.py"),
    Mutant(CHILD, 'status, reason, error_class = "refused", str(error)',
           'status, reason, error_class = "ok", str(error)', TEST_PROCESS),
    Mutant(CHILD, 'status, error_class = "failed", type', 'status, error_class = "refused", type',
           TEST_PROCESS),
    # Packing.
    Mutant(PACKING, "runs.sort(key=lambda run: (run[1], started[run[2]]))",
           "runs.sort(key=lambda run: run[0])", TEST_PACKING),
    Mutant(PACKING, "        if being_written(file):", "        if False:", TEST_PACKING),
    Mutant(PACKING, "    if path.exists():", "    if False:", TEST_PACKING),
    Mutant(READING, "if missing := set(range(1, len(records) + 1)) - records.keys():",
           "if missing := set():", TEST_PACKING),
    Mutant(PACKING, "        _check_same(experiment, read_experiment(path))",
           "        pass", TEST_PACKING),
    Mutant(PACKING, "            found.update({name: rest} if rest else {})",
           "            found.update({name: value})", TEST_PACKING),
    Mutant(PACKING, "        if len(values) < len(dictionaries):\n            continue\n", "",
           TEST_PACKING),
    # Files and options.
    Mutant(FILES, "found[arm][int(number)] = path", "found[arm][len(found[arm]) + 1] = path",
           TEST_FILES),
    Mutant(FILES, "if arm in found and number.isdecimal():", "if arm in found:", TEST_FILES),
    Mutant(FILES, "        if packed_path(path) in files:", "        if False:", TEST_FILES),
    Mutant(FILES, 'event.get("event") == "start"', 'event.get("event") == "experiment"',
           TEST_FILES),
    Mutant(OPTIONS, '    check_names(options, names, "option")\n', "", TEST_PROCESS),
    Mutant(OPTIONS, "[*SWITCHES, *names]", "names",
           f"{TEST_PROCESS} tests/measure/test_ablation.py"),
    Mutant(OPTIONS, "return None if of_recipe is None else [*names, *of_recipe]",
           "return None", f"{TEST_PROCESS} tests/cli"),
]  # fmt: skip


def changed(text: str, mutant: Mutant) -> str:
    """Return a file's text with the mutant's change.

    Raises:
        ValueError: what it replaces is not there exactly once.
    """
    times = text.count(mutant.old)
    if times != 1:
        raise ValueError(f"{mutant.file} has {times} times, not once: {mutant.old!r}")
    return text.replace(mutant.old, mutant.new)


def killed(mutant: Mutant, copy: Path) -> bool:
    """Return whether the mutant's tests fail in the copy, which is left as it was."""
    path = copy / mutant.file
    text = path.read_text(encoding="utf-8")
    path.write_text(changed(text, mutant), encoding="utf-8")
    try:
        return not passes(mutant.tests, copy)
    finally:
        path.write_text(text, encoding="utf-8")


def passes(tests: str, copy: Path) -> bool:
    """Return whether files of tests pass in the copy; those that do not exist are left out."""
    files = [word for word in tests.split() if (copy / word).exists()]
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *files]
    paths = {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            command, cwd=copy, env={**os.environ, **paths}, capture_output=True, timeout=SECONDS
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def main(words: list[str]) -> int:
    """Try the mutants, print what became of each, and return the exit status."""
    chosen = [m for m in MUTANTS if not words or any(w in f"{m.file} {m.old}" for w in words)]
    for mutant in chosen:
        changed((ROOT / mutant.file).read_text(encoding="utf-8"), mutant)
    survivors = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        ignored = shutil.ignore_patterns("__pycache__")
        for name in PARTS:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, copy / name, ignore=ignored)
            else:
                shutil.copy(source, copy / name)
        tests = " ".join(dict.fromkeys(" ".join(mutant.tests for mutant in chosen).split()))
        if not passes(tests, copy):
            print(f"these tests fail without any mutant: {tests}")
            return 1
        for number, mutant in enumerate(chosen, 1):
            dead = killed(mutant, copy)
            survivors += not dead
            change = f"{mutant.old.strip()!r} -> {mutant.new.strip()!r}"
            print(f"{number:2} {'killed  ' if dead else 'SURVIVED'} {mutant.file}: {change}")
            sys.stdout.flush()
    print(f"{len(chosen) - survivors} of {len(chosen)} killed")
    return int(survivors > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
