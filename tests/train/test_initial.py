"""Equal seeds give equal initial weights under every plan, and the record shows it."""

import json

import mxnet as mx
import numpy as np
import pytest
from mxnet import gluon, nd

from mxopt import Plan, recipes
from mxopt.methods.kvstore import stores
from mxopt.train import fit, initial
from mxopt.train.setup import prepare

TINY = {"recipe": "segmentation", "size": 48, "limit": 4}
TEXT = {"recipe": "translation", "stand_in": True, "limit": 40, "vocabulary": 300, "layers": 1,
        "units": 32, "heads": 2, "hidden": 64}  # fmt: skip
PLANS = {
    "static": (TINY, {"hybridize": "static"}, {}),
    "cached": (TINY, {"preprocess": "cached", "num_workers": 0}, {}),
    "four contexts": (TINY, {"devices": "cpu:0-3"}, {}),
    "other batches": (TINY, {"batch_size": 2, "learning_rate": 0.5, "momentum": 0.9}, {}),
    "text, operators": (TEXT, {"hybridize": "static"}, {"cpu_operators": True}),
    "text, fused loss": (TEXT, {"bucketing": "tokens", "batch_size": 100}, {"loss": "fused"}),
}


def weights(options, switches):
    events = []

    def write(event, **fields):
        events.append((event, fields))

    plan = Plan(**{"learning_rate": 0.01, **switches})
    prepare(recipes.load(**options), plan, write, False, stores.SINGLE_PROCESS)
    return dict(events)["weights"]


@pytest.mark.parametrize(("options", "switches", "more"), PLANS.values(), ids=PLANS)
def test_switches_do_not_change_the_initial_weights(options, switches, more):
    assert weights({**options, **more}, switches) == weights(options, {})


def test_another_seed_gives_other_weights_of_the_same_number():
    one, other = weights(TINY, {}), weights(TINY, {"seed": 1})
    assert one["hash"] != other["hash"]
    assert one["parameters"] == other["parameters"] > 0


def test_the_hash_reads_values_and_shapes_and_no_names():
    def dense(value, shape=(2, 3)):
        net = gluon.nn.Dense(shape[0], in_units=shape[1], use_bias=False)
        net.initialize(mx.init.Constant(value))
        return net

    assert initial.weights_hash(dense(0.5)) == initial.weights_hash(dense(0.5))
    assert initial.weights_hash(dense(0.5)) != initial.weights_hash(dense(0.25))
    assert initial.weights_hash(dense(0.5)) != initial.weights_hash(dense(0.5, (3, 2)))


@pytest.mark.parametrize("kind", [gluon.nn.HybridSequential, gluon.nn.Sequential])
def test_weights_of_unknown_shape_are_drawn_in_the_order_of_the_parameters(kind):
    def made(inputs):
        mx.random.seed(3)
        net = kind()
        net.add(gluon.nn.Dense(4, in_units=inputs), gluon.nn.Dense(2, in_units=4 if inputs else 0))
        net.initialize(mx.init.Xavier())
        initial.complete(net, lambda: [nd.zeros((1, 5))])
        return initial.weights_hash(net)

    assert made(0) == made(5)


def test_a_run_records_its_scores_before_the_first_step():
    events = []
    recipe = recipes.load(**TINY)
    fit.fit(recipe, Plan(learning_rate=0.1, epochs=1), lambda event, **f: events.append((event, f)),
            checks=2)  # fmt: skip
    checks = [fields for event, fields in events if event == "check"]
    assert [check["progress"] for check in checks] == [0.0]  # one step: no check within the epoch
    assert checks[0]["step"] == checks[0]["seconds"] == 0
    assert 0 < checks[0]["validation_mIoU"] < 1
    names = [event for event, _ in events]
    assert names.index("weights") < names.index("check") < names.index("steps")
    json.dumps(events)
    untrained = [np.float32(check["validation_loss"]) for check in checks]
    again = []
    fit.fit(recipe, Plan(learning_rate=0.3), lambda event, **f: again.append((event, f)))
    assert [np.float32(f["validation_loss"]) for e, f in again if e == "check"] == untrained
