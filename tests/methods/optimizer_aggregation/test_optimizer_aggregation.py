"""The number of parameters in one call reaches MXNet's optimizers; what they lack is refused."""

import mxnet as mx
import pytest

from mxopt import methods
from mxopt.core.errors import PlanError
from mxopt.core.plan import Plan
from mxopt.methods.optimizer_aggregation import MOST

VARIABLE = "MXNET_OPTIMIZER_AGGREGATION_SIZE"


@pytest.mark.parametrize(("name", "default"), [("sgd", 4), ("lars", 4), ("lamb", 45)])
def test_optimizers_take_the_number(monkeypatch, name, default):
    assert VARIABLE not in methods.environment(Plan(optimizer=name))
    assert mx.optimizer.create(name).aggregate_num == default  # as the card says
    for number in (1, MOST):
        plan = Plan(optimizer=name, aggregation=number)
        monkeypatch.setenv(VARIABLE, methods.environment(plan)[VARIABLE])
        assert mx.optimizer.create(name).aggregate_num == number


@pytest.mark.parametrize(
    ("switches", "says"),
    [
        ({"aggregation": MOST + 1}, "aggregation=46 is more than MXNet takes"),
        ({"aggregation": 0}, "must be a whole number of at least 1"),
        ({"aggregation": 1, "optimizer": "adam"}, "does nothing with optimizer=adam"),
    ],
)
def test_what_does_nothing_is_refused(switches, says):
    with pytest.raises(PlanError, match=says):
        Plan(**switches)
