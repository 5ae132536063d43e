"""The tables of an experiment, in the order in which a page shows them."""

from __future__ import annotations

from mxopt.measure import Ablation, Experiment
from mxopt.report.goals import goals
from mxopt.report.table import Table
from mxopt.report.tables import ablation, arms, clocks, comparison, operators
from mxopt.report.target_tables import targets


def tables(experiment: Experiment) -> list[Table]:
    """Return the tables of an experiment.

    Args:
        experiment: the experiment.
    """
    if experiment.orders:
        return [ablation(Ablation(experiment))]
    if experiment.workload == "mxopt.chapter.workloads:profile":
        return [operators(experiment)]
    compared = experiment.compared()
    found = [comparison(experiment) if compared else arms(experiment)]
    two = clocks(experiment)
    found += [two] if two.rows else []
    found += [targets(experiment)] if experiment.target and compared else []
    return found + ([goals(experiment)] if experiment.goal is not None else [])
