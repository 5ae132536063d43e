"""What the benchmarks' page says of growth, from records made up."""

import dataclasses
from pathlib import Path

import pytest

from benchmarks import growth, parts
from benchmarks.growth import GROWTH
from mxopt import measure
from mxopt.core.plan import Plan
from mxopt.core.records import Run
from mxopt.measure import Experiment


def grown(name, milliseconds, mebibytes, status="ok"):
    """Return an experiment whose sizes take so many milliseconds a unit, and so much memory."""
    runs = {
        arm: [Run(Path("x"), Plan(), "w", status="ok", figures={
            "samples_per_second": 1000 / time, "seconds": 1.0, "peak_memory_bytes": size * 2**20})]
        for arm, time, size in zip(GROWTH[name]["sizes"], milliseconds, mebibytes)
    }  # fmt: skip
    runs[list(runs)[-1]][0] = Run(Path("x"), Plan(), "w", status=status, reason="too large",
                                  figures=runs[list(runs)[-1]][0].figures)  # fmt: skip
    return Experiment(name, "w", dict.fromkeys(runs, Plan()), title=name, runs=runs,
                      figure="samples_per_second", better="higher")  # fmt: skip


@pytest.mark.parametrize(
    ("name", "milliseconds", "says"),
    [
        ("growth-batch", (10, 10, 10, 10, 10.3), "at 16 is 1.03 times that at 1: linear."),
        ("growth-batch", (10, 11, 12, 13, 17), "at 16 is 1.70 times that at 1: worse than linear."),
        ("growth-batch", (10, 5, 6, 7, 8), "better than linear; it is least at 2, and at 16 1.60"),
        ("growth-batch", (10, 9.8, 10, 10, 10), "at 16 is 1.00 times that at 1: linear."),
        ("growth-batch", (10, 10, 30, 10, 10), "linear; it is greatest at 4, 3.00 times that at 1"),
        ("growth-side", (10, 20, 40, 156.8), "at 672 is 2.00 times that at 240: worse"),
        ("growth-devices", (10, 10, 30), "an image at 4 is 3.00 times that at 1: worse"),
    ],
)
def test_time_is_compared_with_linear_growth_of_the_work(name, milliseconds, says):
    found = growth.verdict(grown(name, milliseconds, (100,) * 5))
    assert says in found.split(" The memory")[0]


@pytest.mark.parametrize(
    ("name", "mebibytes", "says"),
    [
        ("growth-batch", (10, 20, 40, 80, 160), "The memory an image at 16 is 1.00 times"),
        ("growth-batch", (10, 20, 40, 80, 240), "1.50 times that at 1: worse than linear."),
        ("growth-side", (100, 196, 400, 784), "a pixel at 672 is 1.00 times that at 240: linear."),
        ("growth-devices", (10, 20, 20), "memory at 4 is 2.00 times that at 1: worse than const"),
    ],
)
def test_memory_is_compared_with_what_the_work_holds(name, mebibytes, says):
    assert says in growth.verdict(grown(name, (10,) * 5, mebibytes))


def test_a_size_that_was_measured_twice_shows_the_noise():
    found = grown("growth-batch", (10,) * 5, (10, 20, 40, 80, 160))
    runs = {**found.runs, "1-again": found.runs["2"]}
    arms = {**found.arms, "1-again": found.arms["1"]}
    found = dataclasses.replace(found, arms=arms, runs=runs, again="1-again")
    assert [*growth.times(found)[0]] == [1, 2, 4, 8, 16]
    assert [*growth.memories(found)[0]] == [1, 2, 4, 8, 16]
    said = growth.verdict(found)
    assert said.endswith("at 1, measured twice: 1.00 (no interval), n = 1 "
                         "(A/A: the harness's own noise).")  # fmt: skip
    assert growth.table(found).rows[-1][0] == "1-again"


def test_sizes_of_growth_are_measured_with_one_of_them_twice(monkeypatch):
    found = {}
    monkeypatch.setattr(measure, "interleave", lambda *a, **k: found.update(arms=a[2], **k))
    parts._growth("growth-batch", 6, Path("nowhere"))
    assert found["again"] == next(iter(found["arms"])) == "1"


def test_a_size_that_was_not_measured_is_left_out_and_named():
    found = grown("growth-batch", (10, 10, 10, 20, 40), (10,) * 5, status="refused")
    assert "at 8 is 2.00 times that at 1" in growth.verdict(found)
    assert growth.table(found).rows[-1][:3] == ["16", "not measured", "too large"]


def test_the_plot_has_what_was_measured_and_linear_growth_from_the_smallest():
    found = grown("growth-side", (10, 20, 50, 100), (100, 200, 300, 400))
    time, memory = growth.plot([found]).axes
    measured, linear = time.get_lines()
    assert list(measured.get_ydata()) == pytest.approx([10, 20, 50, 100])
    assert list(linear.get_ydata()) == pytest.approx([10, 19.6, 40, 78.4])
    assert list(memory.get_lines()[0].get_ydata()) == [100, 200, 300, 400]
    assert (time.get_ylabel(), memory.get_ylabel()) == ("ms an image", "peak memory, MiB")
    assert time.get_xlabel() == "side of the images, pixels"


def test_the_page_shows_the_plot_and_every_verdict():
    found = grown("growth-batch", (10,) * 5, (10,) * 5)
    said = growth.parts([found])
    assert f"({growth.PLOT})" in said[1]
    assert said[-1] == growth.verdict(found)
