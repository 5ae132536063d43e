"""Reports: tables, plots and pages, all computed from run records."""

from mxopt.report.all_tables import tables
from mxopt.report.goals import goals
from mxopt.report.side_by_side import SideBySide
from mxopt.report.tables import (
    DIFFERS,
    PAIRS,
    Table,
    ablation,
    arms,
    beside_book,
    clocks,
    comparison,
    data_kind,
    factors,
    figure_name,
    number,
    operators,
)
from mxopt.report.target_tables import target, targets

__all__ = [
    "DIFFERS",
    "PAIRS",
    "SideBySide",
    "Table",
    "ablation",
    "arms",
    "beside_book",
    "clocks",
    "comparison",
    "data_kind",
    "factors",
    "figure_name",
    "goals",
    "number",
    "operators",
    "tables",
    "target",
    "targets",
]
