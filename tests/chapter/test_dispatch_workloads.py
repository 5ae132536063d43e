"""Small steps one by one, together and in graphs."""

import pytest

from mxopt.chapter import dispatch_workloads
from mxopt.core.plan import Plan


@pytest.mark.parametrize(
    ("switches", "options", "calls"),
    [({}, {}, 40), ({}, {"bulk": 1}, 40), ({"hybridize": "static"}, {"together": 8}, 5),
     ({"hybridize": "yes"}, {"together": 7}, 5)],
)  # fmt: skip
def test_all_steps_are_computed(switches, options, calls):
    events = []
    found = dispatch_workloads.dispatched(
        Plan(batch_size=2, **switches), lambda event, **fields: events.append((event, fields)),
        steps=40, layers=2, units=4, **options,
    )  # fmt: skip
    assert events == [("calls", {"times": calls})]
    steps = calls * options.get("together", 1)
    assert found["microseconds"] == pytest.approx(1e6 * found["seconds"] / steps)
