"""Images are augmented on the host and on the device."""

import numpy as np
import pytest

from mxopt.chapter import augmentation_workloads
from mxopt.core.errors import PlanError
from mxopt.core.plan import Plan


@pytest.mark.parametrize("where", augmentation_workloads.WHERE)
def test_images_are_augmented_in_either_place(where):
    seen = {}
    found = augmentation_workloads.augmented(
        Plan(batch_size=3), lambda event, **fields: seen.update(fields), where=where, images=5,
        rounds=2, network="tiny", size=32, limit=8,
    )  # fmt: skip
    assert seen["samples"] == 5
    assert found["images_per_second"] == pytest.approx(10 / found["seconds"])


def test_another_place_is_refused():
    with pytest.raises(PlanError, match="where='disk' is not a choice; take one of host, device"):
        augmentation_workloads.augmented(Plan(), None, where="disk")


def test_a_mask_follows_its_photograph_on_the_host():
    np.random.seed(0)
    image = np.arange(64, dtype="float32").reshape(1, 8, 8)
    for _ in range(20):
        changed, mask = augmentation_workloads._on_host(image, image[0])
        assert (changed.shape, mask.shape) == ((1, 8, 8), (8, 8))
        # The colour is a factor and a summand: pixels and mask stay on one line.
        assert np.corrcoef(changed.ravel(), mask.ravel())[0, 1] == pytest.approx(1, abs=1e-5)
