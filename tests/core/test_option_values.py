"""Values of options are checked by the annotations of what takes them."""

from pathlib import Path

import numpy as np
import pytest

from mxopt.core.errors import PlanError
from mxopt.core.option_values import check_limit, check_values


def workload(
    plan, write, size: "int" = 1, rate: "float" = 1.0, fast: "bool" = False,
    root: "str | None" = "", most: "int | None" = None, anything=None,
    pair: "tuple[int, int]" = (1, 2), plain: int = 1, **others,
):  # fmt: skip
    """Take options."""


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"size": "abc"}, "size='abc' must be a whole number$"),
        ({"size": 1.5}, "size=1.5 must be a whole number"),
        ({"size": True}, "size=True must be a whole number"),
        ({"size": None}, "size=None must be a whole number"),
        ({"plain": "abc"}, "plain='abc' must be a whole number"),
        ({"most": "abc"}, "most='abc' must be a whole number, or null for none"),
        ({"rate": "fast"}, "rate='fast' must be a finite number"),
        ({"rate": float("inf")}, "rate=inf must be a finite number"),
        ({"fast": "maybe"}, "fast='maybe' must be true or false"),
        ({"fast": 1}, "fast=1 must be true or false"),
        ({"root": 3}, "root=3 must be text, or null for none"),
    ],
)
def test_a_value_of_another_type_is_refused(options, says):
    with pytest.raises(PlanError, match=says):
        check_values(workload, options)


@pytest.mark.parametrize(
    "options",
    [
        {"size": np.int64(3), "rate": 1, "fast": True, "root": Path("data"), "most": 3},
        {"root": None, "most": None, "anything": "abc", "pair": "abc", "unknown": "abc"},
    ],
)
def test_values_of_the_type_and_what_has_none_are_accepted(options):
    check_values(workload, options)


@pytest.mark.parametrize("limit", [0, -3])
def test_a_limit_is_at_least_one_sample(limit):
    check_limit(None)
    check_limit(1)
    with pytest.raises(PlanError, match=f"limit={limit} must be at least 1; leave it out for all"):
        check_limit(limit)
