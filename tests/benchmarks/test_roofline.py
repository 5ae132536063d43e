"""Operators beside their bounds: the work that is counted, the larger bound, table and plot."""

import dataclasses
from pathlib import Path

import mxnet as mx
import pytest
from mxnet import nd

from benchmarks import roofline, roofline_plot
from mxopt import kernels, recipes
from mxopt.core.plan import Plan
from mxopt.core.records import Run
from mxopt.measure import Experiment
from mxopt.measure.operations import operators

FIGURES = {
    "multiply_adds": {"FullyConnected": 2_000_000_000, "relu": 0},
    "bytes": {"FullyConnected": 50_000_000, "relu": 600_000_000},
    "operator_seconds": {"FullyConnected": 0.2, "relu": 0.3, "adam_update": 0.1},
    "gflop_per_second": 100.0,
    "gigabytes_per_second": 10.0,
}


def test_the_larger_bound_counts():
    # 3 x 2 x 2e9 operations at 100 GFLOP/s, 3 x 6e8 bytes at 10 GB/s
    assert roofline.bounds(FIGURES) == {
        "FullyConnected": (pytest.approx(0.12), "arithmetic"),
        "relu": (pytest.approx(0.18), "memory"),
    }


def test_operators_at_their_bounds_take_no_longer_than_they_do():
    assert roofline.at_bounds(FIGURES) == pytest.approx(0.12 + 0.18 + 0.1)
    seconds = {"FullyConnected": 0.05, "relu": 0.3}  # factors of the first one were in a cache
    assert roofline.at_bounds({**FIGURES, "operator_seconds": seconds}) == pytest.approx(0.23)
    nothing = {"bytes": {"relu": 0}, "multiply_adds": {"relu": 0}}
    assert roofline.at_bounds({**FIGURES, **nothing}) == pytest.approx(0.6)


def test_products_that_an_older_record_does_not_count_have_no_bound():
    counts = {"multiply_adds": {"mxopt_dense": 0}, "bytes": {"mxopt_dense": 600_000_000}}
    assert roofline.bounds({**FIGURES, **counts}) == {}
    counts["multiply_adds"]["mxopt_dense"] = 2_000_000_000
    assert roofline.bounds({**FIGURES, **counts})["mxopt_dense"][1] == "memory"


def test_the_work_of_an_epoch_is_that_of_its_samples(monkeypatch):
    monkeypatch.setattr(roofline, "bandwidth", lambda: 10.0)
    monkeypatch.setattr(roofline.products, "multiply", lambda *_: {"gflop_per_second": 100.0})
    options = {"network": "tiny", "size": 32, "limit": 10, "norm": False}
    plan = Plan(batch_size=4, learning_rate=0.01, epochs=2, preprocess="cached")
    events = []
    found = roofline.work(plan, lambda event, **fields: events.append(event), **options)
    net = recipes.load("segmentation", **options).network([mx.cpu()])
    one = operators(net, nd.ones((1, 3, 32, 32)))
    expected = sum(each.multiply_adds for each in one if each.kind == "Convolution")
    assert events.count("data") == 1, "the counting wrote events of a second run"
    assert found["multiply_adds"]["Convolution"] == 10 * expected > 0
    assert found["operator_seconds"]["Convolution"] > 0


@pytest.mark.skipif(not kernels.available(), reason="no compiler for mxopt's kernels")
def test_sentences_in_one_row_are_counted(monkeypatch):
    monkeypatch.setattr(roofline, "bandwidth", lambda: 10.0)
    monkeypatch.setattr(roofline.products, "multiply", lambda *_: {"gflop_per_second": 100.0})
    plan = Plan(batch_size=128, bucketing="tokens", epochs=2, preprocess="cached")
    options = {"limit": 40, "kernels": True, "packed": True, "loss": "fused"}
    found = roofline.work(plan, lambda *_, **__: None, "translation", **options)
    nd.waitall()  # what an operator refuses, it says when it is waited for
    assert found["multiply_adds"]["mxopt_attention"] > 0


@pytest.mark.skipif(not kernels.available(), reason="no compiler for mxopt's kernels")
def test_the_graph_that_is_counted_is_the_rewritten_one(monkeypatch):
    monkeypatch.setattr(roofline, "bandwidth", lambda: 10.0)
    monkeypatch.setattr(roofline.products, "multiply", lambda *_: {"gflop_per_second": 100.0})
    plan = Plan(batch_size=8, epochs=2, graph_rewrites="usual+pooled_convolution")
    found = roofline.work(plan, lambda *_, **__: None, "fashion_mnist", limit=20)
    nd.waitall()
    counted = found["multiply_adds"]
    assert counted["mxopt_pooled_convolution"] > 0
    assert "Pooling" not in counted
    assert found["operator_seconds"]["mxopt_pooled_convolution"] > 0


def test_rates_of_memory_are_of_three_arrays():
    assert 0.1 < roofline.bandwidth(1 << 20, 3) < 10_000


def test_the_page_shows_each_arm_and_its_plot():
    plans = {"one": Plan(), "two": Plan(batch_size=8), "failed": Plan(batch_size=9)}
    run = Run(Path("x"), Plan(), "w", status="ok", figures={**FIGURES, "seconds": 0.7})
    runs = {"one": [run], "two": [run], "failed": [dataclasses.replace(run, status="failed")]}
    found = Experiment("roofline", "w", plans, title="Operators", pairs=[], runs=runs)
    about, picture, first, second = roofline.parts(found)
    assert "taken\n3 times" in about
    assert picture.endswith("(roofline.png)")
    assert "| FullyConnected | 0.2 s | 33 % | 60 GFLOP/s | 0.12 s | arithmetic |" in first
    assert "| adam_update | 0.1 s | 17 % | none | none | not counted |" in second
    assert "all operators: 0.6 s, and 0.4 s if none took longer than its bound" in first
    figure = roofline_plot.plot(found)
    [axes] = figure.axes
    assert len(axes.collections) == 2  # relu has no arithmetic
    assert axes.get_legend().get_texts()[0].get_text() in plans


def test_a_rewritten_graph_is_shown_with_its_own_counts_only():
    rewritten = Plan(graph_rewrites="usual")
    plans = {"plain": Plan(), "older": rewritten, "kernels": rewritten}
    runs = {arm: [Run(Path("x"), Plan(), "w", status="ok", figures={**FIGURES, "seconds": 0.7})]
            for arm in plans}  # fmt: skip
    figures = runs["kernels"][0].figures
    for count in ("multiply_adds", "bytes"):
        figures[count] = {**figures[count], "mxopt_pointwise": 1_000_000_000}
    figures["operator_seconds"] = {**figures["operator_seconds"], "mxopt_pointwise": 0.1}
    found = Experiment("roofline", "w", plans, title="Operators", pairs=[], runs=runs)
    tables = {arm: str(roofline.table(found, arm)) for arm in plans}
    uncounted = "| FullyConnected | 0.2 s | 33 % | none | none | not counted |"
    assert [arm for arm in plans if uncounted in tables[arm]] == ["older"]
    assert [arm for arm in plans if "its bound" in tables[arm]] == ["plain", "kernels"]
    assert "| mxopt_pointwise | 0.1 s | 14 % | 60 GFLOP/s | 0.3 s | memory |" in tables["kernels"]
    [axes] = roofline_plot.plot(found).axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["plain", "kernels"]


@pytest.mark.parametrize(
    ("other", "left"), [((12, 101), True), ((12, 300), False), ((9, 101), False)]
)
def test_a_label_is_at_the_left_of_a_point_that_has_another_close_at_its_right(other, left):
    figures = {
        **FIGURES,
        "seconds": 0.3,
        "multiply_adds": {"one": 10_000_000, "other": other[0] * 1_000_000},
        "bytes": {"one": 2_000_000, "other": 2_000_000},
    }
    rates = {"one": 100, "other": other[1]}
    figures["operator_seconds"] = {
        name: roofline.PASSES * 2 * figures["multiply_adds"][name] / roofline.GIGA / rates[name]
        for name in rates
    }
    run = Run(Path("x"), Plan(), "w", status="ok", figures=figures)
    found = Experiment("roofline", "w", {"a": Plan()}, title="x", pairs=[], runs={"a": [run]})
    [axes] = roofline_plot.plot(found).axes
    sides = {text.get_text(): text.get_ha() for text in axes.texts}
    assert sides["one"] == ("right" if left else "left")


def test_a_longer_label_needs_more_room():
    places = (10, 100), (14, 101)
    assert not roofline_plot._close_at_right("dot", *places)
    assert roofline_plot._close_at_right("FullyConnected", *places)
