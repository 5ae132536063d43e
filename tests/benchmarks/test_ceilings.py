"""Shares of the ceiling that was measured at the time closest to a comparison's."""

from pathlib import Path

import pytest

from benchmarks import ceilings
from mxopt.core.plan import Plan
from mxopt.core.records import Run
from mxopt.measure import Experiment


def experiment(name, day, arm, value):
    run = Run(Path("x"), Plan(), "w", status="ok", figures={"rate": value},
              started=f"2026-11-{day:02}T12:00:00.000+00:00")  # fmt: skip
    return Experiment(name, "w", {arm: Plan()}, title=name, figure="rate", better="higher",
                      runs={arm: [run]})  # fmt: skip


def known(day):
    return {
        "resnet": experiment("resnet", day, "kernels", 1.0),
        "arithmetic": experiment("arithmetic", 1, "resnet", 50e9),
        "ceiling": experiment("ceiling", 20, "mxnet", 200.0),
        "ceilings/2026-11-10/ceiling": experiment("ceiling", 10, "mxnet", 100.0),
    }


@pytest.mark.parametrize(("day", "share"), [(1, 0.5), (14, 0.5), (16, 0.25), (25, 0.25)])
def test_the_closest_ceiling_counts(day, share):
    assert ceilings.share(known(day), "resnet") == share


@pytest.mark.parametrize("missing", ["ceiling", "arithmetic"])
def test_there_is_no_share_without_both(missing):
    each = {name: own for name, own in known(1).items() if missing not in name}
    assert ceilings.share(each, "resnet") == 0


def test_several_are_shown_with_their_days():
    each = known(1)
    *_, several, old, new = ceilings.parts(ceilings.among(each))
    assert "the time closest" in several
    assert old.startswith("Measured on 2026-11-10:")
    assert new.startswith("Measured on 2026-11-20:")
    about, table = ceilings.parts([each["ceiling"]])
    assert "Measured on" not in about + table
