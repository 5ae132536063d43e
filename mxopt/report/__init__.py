"""Reports: tables, plots and pages, all computed from records."""

from mxopt.report.tables import (
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
    tables,
    target,
    targets,
)

__all__ = [
    "PAIRS",
    "Table",
    "ablation",
    "arms",
    "beside_book",
    "clocks",
    "comparison",
    "data_kind",
    "factors",
    "figure_name",
    "number",
    "operators",
    "tables",
    "target",
    "targets",
]
