"""The rate of matrix products on a machine, and what share of it a network's arithmetic reaches."""

from __future__ import annotations

from datetime import datetime

from mxopt import report
from mxopt.measure import Experiment
from mxopt.report import results

GIGA = 1e9
ABOUT = """PyTorch's wheels multiply matrices by Intel's MKL, which chooses its kernels by
the maker of the processor: `torch`, as installed, has its slower kernels on a processor that is not
Intel's. `torch-tuned` preloads a library of one function that answers MKL's question with yes, and
MKL then takes the kernels for the instructions that the processor has. `torch-onednn` is oneDNN's
product within PyTorch, which has no gradient. MKL's own variables `MKL_DEBUG_CPU_TYPE`,
`MKL_ENABLE_INSTRUCTIONS` and `MKL_CBWR` did not make MKL 2024.2 faster where this was tried."""
SEVERAL = """Machines with this processor differ in their rates. Each share below is of the ceiling
that was measured at the time closest to that of its comparison."""


def among(known: dict[str, Experiment]) -> list[Experiment]:
    """Return the measured ceilings of a processor, in the order of time.

    Args:
        known: its experiments by name; older ceilings are in folders of their own.
    """
    found = (each for name, each in known.items() if name.rpartition("/")[2] == "ceiling")
    return sorted(found, key=results.first_start)


def parts(found: list[Experiment]) -> list[str]:
    """Return the paragraphs on ceilings: a table of each.

    Args:
        found: the ceilings.
    """
    tables = [report.arms(each, {"gflop_per_second": "GFLOP/s"}) for each in found]
    if len(found) == 1:
        return [ABOUT, str(tables[0])]
    dated = (f"Measured on {_began(each):%Y-%m-%d}:\n\n{own}" for each, own in zip(found, tables))
    return [ABOUT, SEVERAL, *dated]


def share(known: dict[str, Experiment], case: str) -> float:
    """Return the share of the ceiling that one sample or token per second is; 0 if unmeasured.

    Args:
        known: a processor's experiments by name.
        case: name of the comparison.
    """
    found = among(known)
    if not found or "arithmetic" not in known:
        return 0.0
    began = _began(known[case])
    nearest = min(found, key=lambda each: abs(_began(each) - began))
    return known["arithmetic"].median(case) / GIGA / max(map(nearest.median, nearest.arms))


def _began(experiment: Experiment) -> datetime:
    return datetime.fromisoformat(results.first_start(experiment))
