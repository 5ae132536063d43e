"""Measure mxopt and PyTorch: ``python -m benchmarks [part ...]``, or ``make bench``."""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

from benchmarks import page
from benchmarks.arms import EXCHANGE
from benchmarks.cases import STEPS
from benchmarks.parts import PARTS
from mxopt import machine, report
from mxopt.machine.processor import folder_name

HERE = Path(__file__).parent
# What is measured if no part is named, unless --long asks for all.
SHORT = ("ceiling", "arithmetic", "transformer", "mobilenet", "resnet")


def main() -> None:
    """Measure the named parts, or those of ``SHORT`` if none is named, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="part", help=", ".join(PARTS))
    parser.add_argument("--repeats", type=int, default=6, help="runs of each arm (default: 6)")
    parser.add_argument(
        "--long", action="store_true",
        help=f"also every lever and the parts other than {', '.join(SHORT)}: some hours",
    )  # fmt: skip
    parser.add_argument("--folder", type=Path, default=HERE, help="gets records/ and README.md")
    given = parser.parse_args()
    for name in given.parts:
        if name not in PARTS:
            parser.error(f"no part is called {name}; there are {', '.join(PARTS)}")
    records = given.folder / "records" / folder_name(machine.cpu().model)
    with tempfile.TemporaryDirectory(prefix="exchange-") as exchange:
        os.environ[EXCHANGE] = exchange
        for name in given.parts or (PARTS if given.long else SHORT):
            own = {"every": given.long} if name in STEPS else {}
            found = PARTS[name](name, given.repeats, records, **own)
            for table in report.tables(found):
                print(table, end="\n\n", flush=True)
    print(page.write(given.folder))


if __name__ == "__main__":
    main()
