"""The workloads of the guides compute what they say, whatever is switched."""

import pytest

from mxopt import Plan, measure
from mxopt.chapter import guide_workloads as workloads
from mxopt.core.errors import PlanError

PLAN = Plan(batch_size=8, learning_rate=0.01)


def unused(event, **fields):
    """In place of a record."""


def test_stages_and_micro_batches_train_the_same():
    small = {"layers": 4, "units": 16, "steps": 3}
    found = [
        workloads.pipeline(PLAN, unused, stages=stages, micro_batches=count, **small)
        for stages, count in ((1, 1), (2, 1), (2, 4), (4, 8))
    ]
    losses = [figures["train_loss"] for figures in found]
    assert losses == pytest.approx([losses[0]] * 4, rel=1e-5)
    assert [figures["bubble"] for figures in found] == pytest.approx([0, 0.5, 0.2, 3 / 11])
    with pytest.raises(PlanError, match="layers=4 cannot be divided among stages=3"):
        workloads.pipeline(PLAN, unused, stages=3, **small)


@pytest.mark.parametrize("workload", [workloads.pipeline, workloads.waiting_steps])
def test_the_first_step_is_stamped_apart_from_those_that_are_timed(workload):
    events = []
    workload(PLAN, lambda event, **fields: events.append(event), steps=3, units=16)
    assert events == ["prepared", "steps"]


def test_only_a_retained_graph_keeps_memory(tmp_path):
    plan, small = PLAN.replace(batch_size=256), {"steps": 40, "units": 128}
    left_behind = {}
    for keep in ("retained", "array"):  # in new processes, without freed memory to be used again
        record = tmp_path / f"{keep}.jsonl"
        run = measure.run(
            "mxopt.chapter.guide_workloads:kept_losses", plan, record, {"keep": keep, **small}
        )
        assert len(run.only("memory")["mebibytes"]) == 40
        left_behind[keep] = run.figures["step_memory"]
    # Four layers of (256, 128) float32 are half a mebibyte.
    assert left_behind["retained"] > 0.3
    assert left_behind["array"] < 0.1
    losses = {
        workloads.kept_losses(plan, unused, keep, steps=3, units=16)["train_loss"]
        for keep in workloads.KEPT
    }
    assert len(losses) == 1
    with pytest.raises(PlanError, match="keep='all' is not a choice"):
        workloads.kept_losses(PLAN, unused, "all")


def test_waiting_changes_no_loss():
    losses = {
        workloads.waiting_steps(PLAN, unused, wait, steps=3, layers=2)["train_loss"]
        for wait in workloads.WAITS
    }
    assert len(losses) == 1
    with pytest.raises(PlanError, match="wait='often' is not a choice"):
        workloads.waiting_steps(PLAN, unused, "often")


def test_recording_changes_no_score():
    garments = {"recipe": "fashion_mnist", "stand_in": True, "limit": 40}
    one, two = (workloads.predict(PLAN, unused, record=record, **garments) for record in (0, 1))
    assert one["samples"] == two["samples"] == 40
    assert one["checksum"] == pytest.approx(two["checksum"], rel=1e-6)
    assert one["checksum"] > 0
