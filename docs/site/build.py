"""Build the site: one folder of pages, to be read from the file system or from any web server.

    python docs/site/build.py results/site [--executed results/mine]

Sphinx with MyST-NB, because it reads the Markdown pages and the notebooks as they are, checks every
link between them, makes the reference from the docstrings, and has a search that needs no server.
The notebooks are taken from a results folder, where `make reproduce` has left them executed.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]
PAGES = (
    *("README.md", "docs/*.md", "docs/records/*.md"),
    *("docs/results/**/RESULTS.md", "docs/results/**/*.png"),
    *("docs/**/*.jsonl", "mxopt/methods/*/README.md", "ch08/*.ipynb", "ch08/by_feature/*"),
    *("guides/*.ipynb", "benchmarks/README.md", "benchmarks/records/**/*", "data/README.md"),
    "tests/pretend_gpus.py",
)
CONTENTS = {
    "The chapter": ["ch08/*.ipynb", "ch08/by_feature/README.md", "docs/teaching.md"],
    "Guides": ["guides/*.ipynb"],
    "Use": [f"docs/{name}.md" for name in ("install", "guide", "reproducing", "gpu", "clusters")],
    "Findings": [
        *("docs/results/**/RESULTS.md", "docs/methods.md", "benchmarks/README.md"),
        *("benchmarks/records/*/README.md", "docs/records/*.md"),
        *("docs/errata.md", "docs/reliability.md"),
    ],
    "Reference": ["reference/mxopt/index", "docs/architecture.md", "data/README.md"],
}


def collect(source: Path, executed: Path | None) -> None:
    """Copy the pages into a folder for Sphinx, at the same paths as in the repository.

    Args:
        source: the folder, which is made again.
        executed: results folder with executed notebooks; None shows them without outputs.
    """
    shutil.rmtree(source, ignore_errors=True)
    for pattern in PAGES:
        for path in REPOSITORY.glob(pattern):
            target = source / path.relative_to(REPOSITORY)
            if path.is_file():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, target)
    for path in sorted(executed.glob("*.ipynb")) if executed else ():
        [place] = source.glob(f"*/{path.name}")
        shutil.copy(path, place)
    shutil.copytree(HERE / "_static", source / "_static")
    readme = source / "README.md"
    entries = "\n".join(contents(source, title) for title in CONTENTS)
    (source / "index.md").write_text(f"{readme.read_text()}\n{entries}", encoding="utf-8")
    readme.unlink()
    cards = "\n".join(f"../{path}" for path in _found(source, "mxopt/methods/*/README.md"))
    methods = source / "docs/methods.md"
    with methods.open("a", encoding="utf-8") as page:
        page.write(f"\n```{{toctree}}\n:hidden:\n\n{cards}\n```\n")
    for page in source.rglob("*.md"):  # the front page has another name here
        text = page.read_text(encoding="utf-8")
        up = "../" * (len(page.relative_to(source).parts) - 1)
        page.write_text(re.sub(rf"\]\({up}README\.md", f"]({up}index.md", text), encoding="utf-8")


def contents(source: Path, title: str) -> str:
    """Return a part of the table of contents, as MyST writes it.

    Args:
        source: the folder for Sphinx.
        title: of the part.
    """
    pages = [page for pattern in CONTENTS[title] for page in _found(source, pattern)]
    listed = "\n".join(pages)
    return f"```{{toctree}}\n:hidden:\n:caption: {title}\n\n{listed}\n```\n"


def _found(source: Path, pattern: str) -> list[str]:
    if "." not in pattern:
        return [pattern]  # written by an extension
    found = sorted(path.relative_to(source) for path in source.glob(pattern))
    return [path.with_suffix("").as_posix() for path in found]


def last_run() -> Path | None:
    """Return the newest results folder with all notebooks executed, or None."""
    wanted = {path.name for path in (REPOSITORY / "ch08").glob("*.ipynb")}
    folders = [path.parent for path in REPOSITORY.glob("results/*/reproduce.json")]
    whole = [path for path in folders if wanted <= {one.name for one in path.iterdir()}]
    return max(whole, key=lambda path: path.stat().st_mtime, default=None)


def main() -> int:
    """Build the site that the command line asks for, and return Sphinx's exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("site", type=Path, help="folder to write")
    # By default that of the last run.
    parser.add_argument(
        "--executed", type=Path, default=last_run(), help="results folder with executed notebooks"
    )
    chosen = parser.parse_args()
    if chosen.executed and not list(chosen.executed.glob("*.ipynb")):
        parser.error(f"{chosen.executed} holds no notebook; run `make reproduce` first")
    print("notebooks:", chosen.executed or "not executed; run `make reproduce` to see results")
    source = chosen.site.with_name(chosen.site.name + ".source")
    collect(source, chosen.executed)
    command = [sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "--keep-going",
               "-c", HERE, source, chosen.site]  # fmt: skip
    done = subprocess.run(command, env={**os.environ, "MXOPT_REPOSITORY": str(REPOSITORY)})
    shutil.rmtree(source)
    if not done.returncode:
        print(f"to read: {chosen.site / 'index.html'}")
    return done.returncode


if __name__ == "__main__":
    raise SystemExit(main())
