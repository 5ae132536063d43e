import json
import math
import os
import re
import subprocess
import sys
import textwrap

import mxnet as mx
import numpy as np
import pytest
import toy
from mxnet import gluon

from mxopt.core.errors import CapacityError, DataError
from mxopt.core.plan import Plan, choices
from mxopt.core.recipe import Recipe
from mxopt.methods import TrainingRun
from mxopt.methods.precision import amp
from mxopt.recipes.segmentation.recipe import segmentation
from mxopt.recipes.translation.recipe import translation
from mxopt.train import initial, memory
from mxopt.train.fit import fit
from mxopt.train.tracing import trace

FACTOR = 2
# Memory that is freed is given back, so that a peak is what training held and no chance of malloc's
# (which may keep as much again of imperative training, now more, now less).
HELD = {"MALLOC_MMAP_THRESHOLD_": str(2**17)}


def run_of(recipe, plan, contexts, net, precision=None):
    """Return a run as it is before its loaders are made."""
    run = TrainingRun(plan, recipe, contexts, precision or amp.Float32(), None)
    run.data, run.network, run.learning = recipe.data(), net, net
    return run


def estimated(plan, contexts=None, drawn=False, **recipe):
    made = toy.toy(**recipe)
    net = made.network([mx.cpu()])
    numbers = amp.for_plan(plan.replace(devices="cpu:0"), [mx.cpu()])
    run = run_of(made, plan, contexts or [mx.cpu()], net, numbers)
    if drawn:
        initial.complete(net, run.example)
    return memory.estimate(run)


def test_a_trace_counts_inputs_outputs_and_no_weights():
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Dense(5), gluon.nn.Dense(3))  # their inputs' sizes are not known yet
    recipe = Recipe("", None, None, lambda output, label: output * label, None)
    arrays = [np.empty((1, 4), "float32"), np.empty((1, 3), "float32")]
    traced = trace(net, recipe, amp.Float32(), arrays)
    assert (traced.fixed, traced.sample) == (0, 4 * (4 + 5 + 3 + 3 + 3))
    assert [traced.shapes[p.name] for p in net.collect_params().values()] == [
        (5, 4), (5,), (3, 5), (3,),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("switches", "copies"),
    [
        ({}, 0),
        ({"momentum": 0.9}, 1),
        ({"optimizer": "adam"}, 2),
        ({"swa_start": 0.5}, 2),
    ],
)
def test_weights_are_counted_with_all_their_copies(switches, copies):
    kernels, biases = 4 * (4 * 9 + 2 * 16), 4 * (4 + 2)
    late = 2 * kernels  # with their gradients; biases, whose shape is known, are there
    [need] = estimated(Plan(**switches)).needs
    assert need.fixed == late + copies * (kernels + biases)
    several = estimated(Plan(devices="cpu:0-1", **switches), [mx.cpu(0), mx.cpu(1)]).needs[0]
    assert several.fixed == 2 * (late + (copies + 1) * (kernels + biases))


def test_samples_that_are_kept_and_batches_loaded_ahead_are_counted():
    sample = 4 * 16 + 4
    workers = {"num_workers": 1, "prefetch": 5}
    lazy, cached, gluon_s, ours = (
        estimated(Plan(**switches)).needs[0]
        for switches in (
            {}, {"preprocess": "cached"}, workers, {**workers, "loader": "shared_memory"},
        )
    )  # fmt: skip
    assert cached.fixed - lazy.fixed == (22 + 7 + 5) * sample
    # Those ahead, the one that is waited for, and in Gluon's loader the one before it.
    assert gluon_s.sample - lazy.sample == 7 * sample
    assert ours.sample - lazy.sample == 6 * sample


def test_pixels_that_stay_small_are_counted_as_that():
    recipe = segmentation(size=32)
    data, net = recipe.data(), recipe.network([mx.cpu()])
    fixed = {}
    for plan in (Plan(), Plan(preprocess="cached"), Plan(preprocess="cached", image_dtype="uint8")):
        [need] = memory.estimate(run_of(recipe, plan, [mx.cpu()], net)).needs
        fixed[plan.preprocess, plan.image_dtype] = need.fixed
    kept = [fixed["cached", pixels] - fixed["lazy", "float32"] for pixels in choices("image_dtype")]
    samples = len(data.train) + len(data.validation) + len(data.test)
    assert kept[0] == 4 * kept[1] == 4 * samples * 32 * 32 * 4


@pytest.mark.fault(
    "numbers",
    "a run needs more memory than there is",
    sees="training would take about ... MiB on the host, which has ... MiB free...; "
    "by this estimate batch_size=... would fit",
)
def test_a_run_that_cannot_fit_is_refused_before_it_trains(monkeypatch, sees):
    free = estimated(Plan(), drawn=True).needs[0].fixed + 200_000
    monkeypatch.setattr(memory.machine, "memory_available", lambda: free)
    events = []
    with sees.raised(CapacityError) as found:
        fit(toy.toy(), Plan(batch_size=5000), lambda event, **fields: events.append(event))
    assert events == ["data", "weights", "memory"]
    largest = int(re.search(r"batch_size=(\d+) would fit", str(found.value))[1])
    memory.check(estimated(Plan(batch_size=largest), drawn=True), Plan(batch_size=largest))
    with pytest.raises(CapacityError):
        memory.check(
            estimated(Plan(batch_size=largest + 1), drawn=True), Plan(batch_size=largest + 1)
        )


def test_if_not_one_sample_fits_no_batch_size_is_named(monkeypatch):
    monkeypatch.setattr(memory.machine, "memory_available", lambda: 1000)
    plan = Plan(preprocess="cached")
    with pytest.raises(CapacityError, match=r"not one sample would fit.*or preprocess='lazy'"):
        memory.check(estimated(plan), plan)


def test_each_gpu_has_its_own_share_and_its_own_free_memory(monkeypatch):
    free = {0: 10**9, 1: 20_000}
    monkeypatch.setattr(mx.context, "gpu_memory_info", lambda number: (free[number], 10**9))
    plan = Plan(batch_size=200, devices="gpu:0-1", preprocess="device")
    found = estimated(plan, [mx.gpu(0), mx.gpu(1)])
    host, first, second = found.needs
    assert (host.fixed, first.samples, second.samples) == (0, 100, 100)
    assert first.fixed == second.fixed
    with pytest.raises(CapacityError, match=r"on gpu\(1\).* batch_size=\d+ would fit") as refused:
        memory.check(found, plan)
    largest = int(re.search(r"batch_size=(\d+)", str(refused.value))[1])
    assert largest % 2 == 0
    assert second.fixed + largest // 2 * second.sample <= free[1]


def test_of_many_workers_each_needs_its_part_of_a_batch(monkeypatch):
    free = estimated(Plan()).needs[0].fixed + 200_000
    monkeypatch.setattr(memory.machine, "memory_available", lambda: free)
    plan = Plan(batch_size=9999, kvstore="dist_sync", processes=2)
    assert estimated(plan).needs[0].samples == 5000
    with pytest.raises(CapacityError, match=r"batch_size=\d+ would fit") as refused:
        memory.check(estimated(plan), plan)
    largest = plan.replace(batch_size=int(re.search(r"batch_size=(\d+)", str(refused.value))[1]))
    memory.check(estimated(largest), largest)
    more = plan.replace(batch_size=largest.batch_size + 1)
    with pytest.raises(CapacityError):
        memory.check(estimated(more), more)


def test_sentences_are_judged_by_the_longest():
    made = translation(stand_in=True, limit=64, vocabulary=400, layers=1, units=16, heads=2,
                       hidden=32, loss="fused")  # fmt: skip
    data = made.data()
    longest = max(len(side) for row in range(64) for side in data.transform(*data.train[row])) + 1
    plan = Plan(bucketing="tokens", batch_size=10 * longest, optimizer="adam")
    found = memory.estimate(run_of(made, plan, [mx.cpu()], made.network([mx.cpu()])))
    assert found.note == ""
    assert found.needs[0].samples == 10 * longest // found.unit
    assert found.unit >= 0.8 * longest  # the longest in characters may not be so in subwords


def test_an_empty_training_set_is_said():
    with pytest.raises(DataError, match="the data set is empty"):
        fit(toy.toy(train=0), Plan(), lambda event, **fields: None)


def test_a_network_that_takes_no_symbols_trains_all_the_same():
    class Plain(gluon.Block):
        def __init__(self):
            super().__init__()
            self.inside = gluon.nn.Dense(2)

        def forward(self, x):
            return self.inside(x.reshape((x.shape[0], -1)))

    def network(contexts):
        net = Plain()
        net.initialize(ctx=contexts)
        return net

    assert "Plain cannot be traced" in estimated(Plan(), network=network).note
    figures = fit(toy.toy(network=network), Plan(), lambda event, **fields: None)
    assert math.isfinite(figures["test_loss"])


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (mx.base.MXNetError("Traceback\ncudaMalloc retry failed: out of memory"), "cudaMalloc"),
        (mx.base.MXNetError("MXNetError: could not create a memory object"), "memory object"),
        (MemoryError(), "no memory"),
    ],
)
def test_out_of_memory_names_half_the_batch(error, says):
    expected = rf"batch_size=9 \(.*{says}.*\); take batch_size=4, and grad_accumulation=6"
    plan = Plan(batch_size=9, grad_accumulation=3)
    with pytest.raises(CapacityError, match=expected), memory.explained(plan):
        raise error


def test_another_error_stays_what_it_is():
    with pytest.raises(mx.base.MXNetError, match="shapes"), memory.explained(Plan()):
        raise mx.base.MXNetError("shapes differ")


def trained_in_a_child(recipe: str, plan: str, on_setup: str = "") -> dict:
    """Train in a process of its own; return its estimate, its peak above, and how it ended."""
    code = f"""
        import json, re, resource, sys
        from pathlib import Path
        import mxopt, psutil
        import mxnet as mx, numpy as np
        from mxnet import gluon
        from mxopt.core.plan import Plan
        from mxopt.core.recipe import Data, Recipe
        from mxopt.train.fit import fit
        from mxopt.recipes.segmentation.recipe import PixelLoss, TinySegmenter
        from mxopt.recipes.translation.recipe import translation

        def segmenter():
            arrays = np.zeros((256, 3, 96, 96), "float32"), np.zeros((256, 96, 96), "int32")
            data = gluon.data.ArrayDataset(*map(mx.nd.array, arrays))
            def network(contexts):
                net = TinySegmenter()
                net.initialize(ctx=contexts)
                return net
            parts = data, data.take(4), data.take(4), lambda *sample: sample
            return Recipe("", lambda: Data(*parts, "stand-in"), network, PixelLoss(2), None)

        found = {{"said": ""}}
        def write(event, **fields):
            if event == "memory":
                [need] = fields["needs"]
                found["estimate"] = need["fixed"] + need["samples"] * need["sample"]
            if event == "setup":
                found["before"] = psutil.Process().memory_info().rss
                {on_setup or "pass"}
        try:
            fit({recipe}, {plan}, write, evaluate=False)
        except mxopt.core.errors.CapacityError as error:
            found["said"] = str(error)
        # Of this program alone: what getrusage says began with the peak of whoever started it.
        status = Path("/proc/self/status").read_text()
        peak = int(re.search(r"VmHWM:\\s+(\\d+)", status)[1]) * 1024
        print(json.dumps({{**found, "peak": peak - found["before"]}}))
    """
    child = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**os.environ, **HELD, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True,
    )  # fmt: skip
    assert child.returncode == 0, child.stderr
    return json.loads(child.stdout.splitlines()[-1])


@pytest.mark.quick(1)
@pytest.mark.parametrize("hybridize", ["static", "no"])
@pytest.mark.parametrize(
    ("recipe", "switches"),
    [
        ("segmenter()", "batch_size=128"),
        (
            "translation(stand_in=True, limit=256, vocabulary=2000, layers=2)",
            "batch_size=64, optimizer='adam', learning_rate=0.001",
        ),
    ],
)
def test_the_estimate_is_within_a_factor_of_the_measured_peak(recipe, switches, hybridize):
    found = trained_in_a_child(recipe, f"Plan({switches}, hybridize={hybridize!r})")
    assert found["estimate"] > 100 * 2**20
    assert found["estimate"] / FACTOR < found["peak"] < found["estimate"] * FACTOR


@pytest.mark.fault(
    "numbers",
    "a training step is given no memory all the same",
    sees="out of memory while training with batch_size=128 ...; take batch_size=64",
    lost="the steps since the last checkpoint",
)
def test_a_step_that_is_given_no_memory_ends_with_a_batch_size_to_take(sees):
    limit = (
        "resource.setrlimit(resource.RLIMIT_AS, (psutil.Process().memory_info().vms + 2**26,) * 2)"
    )
    found = trained_in_a_child("segmenter()", "Plan(batch_size=128)", limit)
    sees(found["said"])
