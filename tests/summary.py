"""Summary of several runs of the tests: ``python tests/summary.py REPORT.xml ...``.

The reports are pytest's (``--junitxml``), one from each environment. A test that one environment
skips and another runs has run. Exits with 1 if a test failed, or a report is missing.
"""

from __future__ import annotations

import re
import sys
import xml.etree.ElementTree as xml
from collections import Counter
from pathlib import Path

RANK = {"skipped": 0, "passed": 1, "failed": 2}


def outcomes(report: Path) -> dict[str, tuple[str, str]]:
    """Return outcome and reason of each test of a report, ``{test: (outcome, reason)}``."""
    found = {}
    for case in xml.parse(report).getroot().iter("testcase"):
        name = f"{case.get('classname')}.{case.get('name')}"
        bad = [part for kind in ("failure", "error") for part in case.findall(kind)]
        skipped = case.find("skipped")
        if bad:
            found[name] = "failed", (bad[0].get("message") or "").partition("\n")[0]
        elif skipped is not None:
            found[name] = "skipped", skipped.get("message") or "no reason"
        elif found.get(name, ("",))[0] != "failed":  # an error at its end is a second entry
            found[name] = "passed", ""
    return found


def together(reports: list[dict]) -> dict[str, tuple[str, str]]:
    """Return the outcomes of several environments: failed before passed before skipped."""
    found: dict[str, tuple[str, str]] = {}
    for report in reports:
        for name, outcome in report.items():
            if name not in found or RANK[outcome[0]] > RANK[found[name][0]]:
                found[name] = outcome
    return found


def lines(found: dict[str, tuple[str, str]]) -> list[str]:
    """Return the summary: counts, failed tests, and why how many tests did not run."""
    counts = Counter(outcome for outcome, _ in found.values())
    counted = ", ".join(f"{counts[outcome]} {outcome}" for outcome in ("passed", "failed"))
    said = [f"{counted}, {counts['skipped']} skipped in every environment"]
    said += [f"  failed: {name}: {why}" for name, (how, why) in found.items() if how == "failed"]
    skipped = [why for how, why in found.values() if how == "skipped"]
    # Addresses differ from test to test.
    reasons = Counter(re.sub(r"\d+(\.\d+){3}|mx[0-9a-f]{8}", "...", why) for why in skipped)
    said += [f"  skipped {number}: {why}" for why, number in sorted(reasons.items())]
    return said


def main(paths: list[Path]) -> int:
    """Print the summary, and return the exit status."""
    missing = [path for path in paths if not path.exists()]
    found = together([outcomes(path) for path in paths if path not in missing])
    for line in lines(found) + [f"  no report: {path}; its tests did not end" for path in missing]:
        print(line)
    return int(bool(missing) or any(outcome == "failed" for outcome, _ in found.values()))


if __name__ == "__main__":
    sys.exit(main([Path(word) for word in sys.argv[1:]]))
