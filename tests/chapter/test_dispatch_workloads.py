"""Small steps one by one, together and in graphs; updates of parameters."""

import mxnet as mx
import numpy as np
import pytest

from mxopt import methods
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


@pytest.mark.parametrize("optimizer", ["sgd", "lars", "lamb"])
def test_as_many_parameters_are_updated_at_once_as_the_plan_says(monkeypatch, optimizer):
    sizes, weights = [], []
    kind = type(mx.optimizer.create(optimizer))
    own = kind.update_multi_precision
    monkeypatch.setattr(
        kind, "update_multi_precision",
        lambda self, index, *rest: sizes.append(np.size(index)) or own(self, index, *rest),
    )  # fmt: skip
    for aggregation in (1, 3):
        plan = Plan(optimizer=optimizer, aggregation=aggregation)
        for name, value in methods.environment(plan).items():
            monkeypatch.setenv(name, value)  # read where the optimizer is made
        found = dispatch_workloads.updated(plan, lambda *_, **__: None, layers=4, units=8, steps=1)
        weights.append(found["weights"])
        assert found["milliseconds"] == pytest.approx(1e3 * found["seconds"])
    assert sizes == [1] * 16 + [3, 3, 2] * 2
    assert weights[0] == pytest.approx(weights[1], rel=1e-6)


def test_a_network_of_the_zoo_is_updated():
    found = dispatch_workloads.updated(Plan(), lambda *_, **__: None, "squeezenet1.1", steps=1)
    assert found["milliseconds"] > 0
