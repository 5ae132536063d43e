"""Small steps one by one, together and in graphs; images augmented in two places."""

import numpy as np
import pytest

from mxopt.chapter import dispatch_workloads
from mxopt.core.errors import PlanError
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


@pytest.mark.parametrize("where", dispatch_workloads.WHERE)
def test_images_are_augmented_in_either_place(where):
    seen = {}
    found = dispatch_workloads.augmented(
        Plan(batch_size=3), lambda event, **fields: seen.update(fields), where=where, images=5,
        rounds=2, network="tiny", size=32, limit=8,
    )  # fmt: skip
    assert seen["samples"] == 5
    assert found["images_per_second"] == pytest.approx(10 / found["seconds"])


def test_another_place_is_refused():
    with pytest.raises(PlanError, match="where='disk' is not a choice; take one of host, device"):
        dispatch_workloads.augmented(Plan(), None, where="disk")


def test_a_mask_follows_its_photograph_on_the_host():
    np.random.seed(0)
    image = np.arange(64, dtype="float32").reshape(1, 8, 8)
    for _ in range(20):
        changed, mask = dispatch_workloads._on_host(image, image[0])
        assert (changed.shape, mask.shape) == ((1, 8, 8), (8, 8))
        # The colour is a factor and a summand: pixels and mask stay on one line.
        assert np.corrcoef(changed.ravel(), mask.ravel())[0, 1] == pytest.approx(1, abs=1e-5)
