"""What mxopt must not do with what it reads, told from its source."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# compat/editing.py compiles the source of installed libraries, with a few of their words replaced.
SOURCES = sorted({*(ROOT / "mxopt").rglob("*.py")} - {ROOT / "mxopt/compat/editing.py"})
# Modules whose files are programs.
UNSAFE_MODULES = {"pickle", "dill", "cloudpickle", "joblib", "marshal", "shelve"}
# Functions that run text, or hand it to a shell, or ask for no certificate.
UNSAFE_CALLS = {
    "eval", "exec", "compile", "os.system", "os.popen", "ssl._create_unverified_context",
}  # fmt: skip
# Methods, of whatever object: MXNet's and NumPy's ways to a pickle, and unpacking in one go.
UNSAFE_METHODS = {
    "load_states", "load_optimizer_states", "read_pickle", "extractall", "unpack_archive",
}  # fmt: skip
UNSAFE_WORDS = {"shell": True, "allow_pickle": True, "verify": False}


def offences(source: str) -> list[str]:
    """Return what a module imports or calls that it must not, with its line."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names = [getattr(node, "module", None), *(alias.name for alias in node.names)]
            bad = [name for name in names if (name or "").split(".")[0] in UNSAFE_MODULES]
        elif isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            bad = [name] if name in UNSAFE_CALLS or name.split(".")[-1] in UNSAFE_METHODS else []
            bad += [
                word.arg
                for word in node.keywords
                if isinstance(word.value, ast.Constant)
                and UNSAFE_WORDS.get(word.arg) is word.value.value
                and word.arg in UNSAFE_WORDS
            ]
        else:
            continue
        found += [f"line {node.lineno}: {name}" for name in bad]
    return found


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_that_was_read_is_run_and_no_text_is_a_shell_s(path):
    assert offences(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "from pickle import loads",
        "eval(text)",
        "os.system(text)",
        "subprocess.run(text, shell=True)",
        "np.load(path, allow_pickle=True)",
        "trainer.load_states(path)",
        "archive.extractall(folder)",
        "requests.get(url, verify=False)",
    ],
)
def test_what_is_unsafe_is_found(source):
    assert len(offences(source)) == 1


def test_no_source_names_an_address_without_encryption():
    for path in SOURCES:
        assert not re.search(r"http://(?!127\.0\.0\.1|localhost)", path.read_text()), path


@pytest.mark.parametrize("path", sorted(ROOT.glob("requirements*.txt")), ids=lambda p: p.name)
def test_every_dependency_is_pinned(path):
    lines = [line.split("#")[0].strip() for line in path.read_text().splitlines()]
    assert [
        line for line in lines if line and not re.match(r"[\w.-]+(\[\w+\])?==[\w.]+", line)
    ] == []
