import json
import math
from pathlib import Path

import mxnet as mx
import pytest

from mxopt import report
from mxopt.measure import read_experiment
from mxopt.methods.kvstore.cluster import expected
from mxopt.methods.kvstore.cluster.expected import (
    WORKS,
    Work,
    exchange_seconds,
    host_bytes,
    times_faster,
)

PAGE = Path(__file__).parents[4] / "docs" / "clusters.md"


def test_bytes_of_one_server_of_many_and_of_one_host():
    assert host_bytes(10, hosts=1) == 0
    assert host_bytes(10, hosts=5, servers=1) == 4 * 40  # the sum to four others
    assert host_bytes(10, hosts=5) == pytest.approx(2 * 40 * 4 / 5)  # as a ring


def test_seconds_and_what_they_cost():
    work = Work("w", parameters=125_000_000, operations=2 * expected.SPEED)  # 2 s, and 8e9 bits
    assert exchange_seconds(work, hosts=2, gigabits=1) == pytest.approx(4.0)
    assert times_faster(work, 2, 1) == pytest.approx((2 * 2 / 6, 2 * 2 / 4))
    assert times_faster(work, 2, 100) == pytest.approx((2 * 2 / 2.04, 2))


def test_the_networks_are_as_large_as_they_are_said_to_be():
    from gluoncv.model_zoo import DeepLabV3

    from mxopt.recipes.translation.transformer import translator

    deeplab = DeepLabV3(2, "resnet101", aux=False, pretrained_base=False, crop_size=480)
    scores = deeplab(mx.sym.var("data"))[0].get_internals()
    names = scores.list_arguments() + scores.list_outputs()
    arguments, outputs, _ = scores.infer_shape(data=(1, 3, 480, 480))
    shapes = dict(zip(names, arguments + outputs))
    learning = sum(math.prod(shapes[name]) for name in scores.list_arguments() if name != "data")
    nodes, products = json.loads(scores.tojson())["nodes"], 0
    for node in nodes:
        if node["op"] == "Convolution":
            weight = shapes[nodes[node["inputs"][1][0]]["name"]]
            products += math.prod(shapes[node["name"] + "_output"]) * math.prod(weight[1:])
    assert (learning, 6 * 4 * products) == WORKS[0][1:]

    # WMT2014's 36,794 byte pairs; 6 layers of 512 units, 8 heads, 2048 hidden.
    transformer = translator(36_794, 6, 512, 8, 2048, 0.1, 100).collect_params().values()
    assert sum(math.prod(p.shape) for p in transformer if p.grad_req != "null") == WORKS[1][1]


def test_the_page_says_what_is_computed():
    page = PAGE.read_text(encoding="utf-8")
    assert expected.table() in page
    assert str(report.comparison(read_experiment(PAGE.with_suffix(".jsonl")))) in page
