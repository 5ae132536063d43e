"""Rates that a range test suggests, beside those that were trained with."""

import pytest

from mxopt import Plan
from mxopt.chapter import rate_workloads

PLAN = Plan(optimizer="adam", batch_size=16, preprocess="cached", transform_batch=100)


def test_rules_are_compared_with_the_best_of_a_grid():
    events = []
    found = rate_workloads.suggested(
        PLAN, lambda event, **fields: events.append((event, fields)), rates=(1e-6, 1e-3, 1e6),
        stand_in=True, limit=320, channels=[8, 16], hidden=64,
    )  # fmt: skip
    tried = {fields["rate"]: fields["score"] for event, fields in events if event == "rate"}
    assert list(tried) == [1e-6, 1e-3, 1e6]
    assert found["best_rate"] == 1e-3
    assert found["best_accuracy"] == tried[1e-3] > (tried[1e6] or 0)
    assert found["suggested_factor"] == found["between_factor"]
    assert found["within"] == (found["suggested_factor"] <= 3)
    rules_of_the_guide = {"between", "minimum", "steepest", "valley", "steepest_in_rate"}
    assert {f"{rule}_factor" for rule in rules_of_the_guide} < found.keys()
    assert all(value >= 1 for name, value in found.items() if name.endswith("_factor"))
    assert len([event for event, _ in events if event == "weights"]) == 1


def test_the_grid_has_two_rates_in_each_power_of_ten():
    ratios = [b / a for a, b in zip(rate_workloads.GRID, rate_workloads.GRID[1:])]
    assert ratios == pytest.approx([10**0.5] * len(ratios), rel=0.1)
