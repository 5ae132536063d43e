"""The arithmetic of a step, counted in the graph and by hand."""

import math
from pathlib import Path

import mxnet as mx
import pytest

from mxopt.cli.gpu_check import expected, networks
from mxopt.train import work

PAGE = Path(__file__).parents[2] / "docs" / "gpu.md"


def test_operations_of_products_and_convolutions():
    x = mx.sym.var("x")
    y = mx.sym.Convolution(x, num_filter=8, kernel=(3, 3), num_group=2, pad=(1, 1), name="c")
    y = mx.sym.FullyConnected(y, num_hidden=5, name="d")
    found = {node.name: node for node in work.nodes(y, {"x": (2, 4, 6, 6)})}
    assert found["Convolution"].operations == 2 * (2 * 8 * 6 * 6) * (2 * 3 * 3)
    assert found["FullyConnected"].operations == 2 * (2 * 5) * (8 * 6 * 6)
    assert found["Convolution"].bytes == 4 * (2 * 4 * 36 + 8 * 2 * 9 + 8 + 2 * 8 * 36)
    a, b = mx.sym.var("a"), mx.sym.var("b")
    product = mx.sym.batch_dot(a, b, transpose_a=True)
    [node] = work.nodes(product, {"a": (3, 7, 4), "b": (3, 7, 5)})
    assert node.operations == 2 * 3 * 4 * 5 * 7


def test_a_step_takes_at_least_the_longer_of_two_times():
    node = work.Node("FullyConnected", (), ((10, 20), (30, 20)), ((10, 30),))
    by_arithmetic = work.seconds([node], 1.0, math.inf)
    assert by_arithmetic == 3 * node.operations
    assert work.seconds([node], math.inf, 1.0) == 3 * node.bytes
    assert work.seconds([node, node], 1.0, math.inf) == 2 * by_arithmetic


def test_a_ring_sends_each_gradient_almost_twice():
    assert work.exchange_seconds(100, 1, 1.0) == 0
    assert work.exchange_seconds(100, 4, 1.0) == 150


@pytest.mark.slow
def test_the_chapters_networks_have_the_sizes_that_are_published():
    found = {name: rest for name, *rest in networks.at_chapters_sizes()}
    assert found.keys() == {"segmentation", "translation"}
    graph, shapes, weights, _ = found["segmentation"]
    assert shapes["data0"] == (4, 3, 480, 480)
    # ResNet-101 without its classifier has 42.5 million weights, the head of DeepLabv3 16.
    assert weights / 4 == pytest.approx(58.6e6, rel=0.03)
    operations = sum(node.operations for node in work.nodes(graph, shapes))
    # torchvision: 258.74 billion multiply-adds at 520 px (deeplabv3_resnet101, "GFLOPS").
    assert operations / 4 == pytest.approx(2 * 258.74e9 * (480 / 520) ** 2, rel=0.03)
    graph, shapes, weights, _ = found["translation"]
    tokens = math.prod(shapes["data1"])
    # Two operations for each weight and token, without the embeddings.
    operations = sum(node.operations for node in work.nodes(graph, shapes))
    assert operations / tokens == pytest.approx(2 * weights / 4, rel=0.35)


@pytest.mark.slow
def test_the_page_has_the_table_of_today():
    assert expected.section() in PAGE.read_text()
