"""What the package does on GPUs, on pretended ones: each group of checks in one process."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest
from pretend_gpus import environment, models

PREAMBLE = """
import gc, re
import mxopt
import mxnet as mx, numpy as np, pytest
from mxnet import autograd, gluon, nd
import toy
from mxopt import Plan, machine, recipes
from mxopt.core import errors
from mxopt.methods.data_parallel import parallel
from mxopt.train.fit import fit
gc.freeze()  # what was imported is not looked at again whenever a DataLoader is made

def train(recipe, **switches):
    events = []
    plan = Plan(**{"devices": "gpu:0", **switches})
    figures = fit(recipe, plan, lambda event, **fields: events.append((event, fields)))
    return figures, events
"""


def run(gpus, code, fault="", **variables):
    child = subprocess.run(
        [sys.executable, "-c", PREAMBLE + textwrap.dedent(code)],
        env=environment(gpus, fault, **variables), capture_output=True, text=True, timeout=200,
    )  # fmt: skip
    assert child.returncode == 0, child.stderr
    return child.stdout


def test_boxes_are_named_in_one_word():
    assert models("T4+V100*2") == ["T4", "V100", "V100"]


def test_the_pretence_answers_and_refuses_as_a_gpu():
    run("V100*2", """
    assert mx.context.num_gpus() == 2 and str(mx.gpu(1)) == "gpu(1)"
    assert mx.gpu(0) != mx.gpu(1) != mx.cpu(1) and mx.gpu(1).device_type == "gpu"
    x = nd.ones((2, 3), ctx=mx.gpu(1))
    assert x.context == mx.gpu(1) and (x + 1).context.device_type == "gpu"
    assert x.as_in_context(mx.cpu()).context == mx.cpu()
    error = mx.base.MXNetError
    for wrong in (lambda: x + nd.ones((2, 3)), lambda: nd.ones((1,), ctx=mx.gpu(2)),
                  lambda: nd.image.resize(nd.ones((4, 4, 1), ctx=mx.gpu(0)), 2, interp=0)):
        with pytest.raises(error):
            wrong().wait_to_read()
    from mxopt.data import ndarray_memory
    with pytest.raises(error):
        ndarray_memory.view(x)
    assert not ndarray_memory.on_host(x)
    found = machine.gpus()
    assert [gpu.usable for gpu in found] == [True, True], found
    # In float16, alone and in a graph: computed in float32 and rounded, gradients as well.
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Conv2D(4, 3, in_channels=2), gluon.nn.Flatten(), gluon.nn.Dense(3))
    net.initialize(ctx=mx.gpu(0))
    image = nd.random.uniform(shape=(2, 2, 5, 5), ctx=mx.gpu(0))
    expected = net(image).asnumpy()
    net.cast("float16")
    for compiled in (False, True):
        if compiled:
            net.hybridize(static_alloc=True)
        with autograd.record():
            found = net(image.astype("float16"))
        found.backward()
        assert found.dtype == np.float16 and net[0].weight.grad().dtype == np.float16
        assert np.abs(found.asnumpy() - expected).max() < 0.01
        assert float(net[0].weight.grad().norm().asscalar()) > 0
    """)  # fmt: skip


@pytest.mark.parametrize("precision", ["float32", "float16", "amp"])
def test_every_placement_trains_to_the_same_weights_on_one_gpu_and_four(precision):
    run("V100*4", f"""
    options = dict(network="tiny", size=32, limit=8, norm=False)
    found = {{}}
    for devices in ("gpu:0", "gpu:0-3"):
        for placement in ("lazy", "cached", "device", "roundtrip"):
            figures, events = train(
                recipes.load("segmentation", **options), devices=devices, preprocess=placement,
                precision="{precision}", epochs=3, batch_size=4, hybridize="static",
                learning_rate=0.05)
            # Skipped steps, of which AMP has more with four samples on a GPU than with one.
            skipped = figures["skipped_steps"]
            # A GPU resizes by other rules. "device" divides the samples among the devices, and so
            # has other batches on four.
            where = (placement if devices == "gpu:0-3" else "roundtrip") if placement in (
                "device", "roundtrip") else "host"
            found.setdefault((where, skipped), []).append(figures["train_loss"])
            assert 0 < figures["test_mIoU"] < 1
            assert not dict(events)["memory"]["note"], events
    tolerance = 1e-4 if "{precision}" == "float32" else 0.02
    for same in found.values():
        assert max(same) - min(same) < tolerance * min(same), found
    """)  # fmt: skip


def test_masks_on_a_gpu_are_those_of_the_cpu():
    run(
        "T4",
        """
    from mxnet.gluon.data.vision import transforms
    from mxopt.recipes.segmentation.transform import Transform, nearest
    random = np.random.RandomState(0)
    for height, width, size in ((64, 48, 32), (41, 99, 32), (33, 32, 48), (301, 207, 96)):
        mask = nd.array(random.randint(0, 2, (height, width, 1)), dtype="uint8")
        on_cpu = transforms.CenterCrop(size)(transforms.Resize(size, True, 0)(mask))
        on_gpu = nearest(mask.as_in_context(mx.gpu(0)), size)
        assert on_gpu.context == mx.gpu(0)
        assert (on_cpu.asnumpy() == on_gpu.asnumpy()).all(), (height, width, size)
        image = nd.array(random.randint(0, 255, (height, width, 3)), dtype="uint8")
        there = Transform(size)(image.as_in_context(mx.gpu(0)), mask.as_in_context(mx.gpu(0)))
        assert [part.context for part in there] == [mx.gpu(0)] * 2
    """,
    )


def test_frozen_stages_run_where_their_weights_are():
    run(
        "V100*2",
        """
    class Staged(gluon.HybridBlock):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            with self.name_scope():
                self.stages = gluon.nn.HybridSequential()
                self.stages.add(gluon.nn.Conv2D(4, 3), gluon.nn.Conv2D(4, 1, activation="relu"))
                self.head = gluon.nn.Dense(2)
        def hybrid_forward(self, F, x):
            return self.head(self.stages(x))
    def network(contexts):
        net = Staged()
        net.initialize(mx.init.Xavier(), ctx=contexts)
        return net
    found = {}
    for devices in ("cpu:0", "gpu:0-1"):
        for placement in ("lazy", "cached", "device", "roundtrip"):
            figures, _ = train(toy.toy(network=network), devices=devices, freeze_stages=1,
                               preprocess=placement, batch_size=2)
            found[devices, placement] = figures["train_loss"]
    del found["gpu:0-1", "device"]  # it has other batches
    assert max(found.values()) - min(found.values()) < 1e-5 * max(found.values()), found
    """,
    )


def test_what_is_for_a_cpu_is_refused_before_anything_runs():
    run(
        "V100",
        """
    refused = {
        "graph_rewrites": lambda: Plan(devices="gpu:0", graph_rewrites="usual"),
        "gradients='released'": lambda: Plan(devices="gpu:0", gradients="released"),
        "updates='fused'": lambda: Plan(devices="gpu:0", updates="fused"),
        "hybridize='fused'": lambda: Plan(devices="gpu:0", hybridize="fused", freeze_stages=2),
        "precision='bfloat16'": lambda: train(toy.toy(), precision="bfloat16"),
        "precision='amp' needs a GPU": lambda: train(toy.toy(), devices="cpu:0", precision="amp"),
        "cpu_operators": lambda: recipes.load("translation", stand_in=True, limit=20, units=16,
            layers=1, hidden=16, vocabulary=100, cpu_operators=True).network([mx.gpu(0)]),
        "precision='float16' casts": lambda: train(recipes.load("translation", stand_in=True,
            limit=20, units=16, layers=1, hidden=16, vocabulary=100), precision="float16"),
        "there is no gpu:1": lambda: train(toy.toy(), devices="gpu:0-1"),
    }
    for words, wrong in refused.items():
        with pytest.raises(errors.MxoptError, match=re.escape(words)):
            wrong()
    """,
    )


def test_translation_trains_in_mixed_precision():
    run(
        "V100*2",
        """
    figures, _ = train(
        recipes.load("translation", stand_in=True, limit=40, units=16, layers=1, hidden=32,
                     vocabulary=200, scored=2, beam=2),
        devices="gpu:0-1", precision="amp", optimizer="adam", bucketing="tokens", batch_size=200,
        hybridize="static", clip_norm=1.0, learning_rate=0.002, epochs=2)
    assert figures["train_loss"] > 0
    """,
    )


def test_steps_that_overflow_are_skipped_and_counted():
    run(
        "V100*2",
        """
    from mxopt.methods.precision import amp
    recipe = recipes.load("segmentation", network="tiny", size=32, limit=8)
    scale = 2.0 ** 16
    def loss(output, mask, original=recipe.loss):
        return original(output, mask) * 1e30
    import dataclasses
    with pytest.raises(errors.MxoptError, match="loss scale"):
        train(dataclasses.replace(recipe, loss=loss), devices="gpu:0-1", precision="amp",
              epochs=30, batch_size=4)
    def larger(output, mask, original=recipe.loss):
        return original(output, mask) * 30
    figures, _ = train(dataclasses.replace(recipe, loss=larger), devices="gpu:0-1",
                       precision="amp", epochs=3, batch_size=4)
    assert figures["skipped_steps"] >= 1 and np.isfinite(figures["train_loss"])
    """,
    )


@pytest.mark.parametrize(("fault", "when"), [("memory:1", "first step"), ("memory:4", "later")])
def test_memory_that_runs_out_says_what_to_take(fault, when):
    run("V100*2", """
    with pytest.raises(errors.CapacityError, match="out of memory while training with"):
        train(recipes.load("segmentation", network="tiny", size=32, limit=8), devices="gpu:0-1",
              batch_size=4, epochs=3)
    """, fault)  # fmt: skip


def test_too_little_memory_is_known_before_training():
    run(
        "V100*2",
        """
    with pytest.raises(errors.CapacityError, match=r"MiB on gpu\\(0\\), which has 1 MiB free"):
        train(recipes.load("segmentation", network="tiny", size=96, limit=8), batch_size=8)
    with pytest.raises(errors.CapacityError, match=r"would keep .* on gpu\\(0\\)"):
        from mxopt.methods.input_pipeline import pipeline
        data = recipes.load("segmentation", network="tiny", size=480).data()
        pipeline.check_memory(data.train, data.transform, Plan(preprocess="device"), [mx.gpu(0)])
    """,
        "free:1",
    )


@pytest.mark.parametrize("fault", ["gone:2", "lost:2"])
def test_of_four_gpus_one_that_is_gone_is_not_used(fault, tmp_path):
    said = run("V100*4", """
    from mxopt.chapter import lab as labs
    labs.gluoncv_weights = lambda name: None  # no download
    lab = labs.open_lab("8_1", tier="gpu", folder="FOLDER")
    print("many:", lab.many)
    contexts = parallel.contexts(Plan(devices=lab.many))
    for context in contexts:
        nd.ones((1,), ctx=context).wait_to_read()
    """.replace("FOLDER", str(tmp_path)), fault)  # fmt: skip
    assert "many: gpu:0-2" in said


def test_a_mixed_box_shows_mxnet_only_what_it_can_use(tmp_path):
    said = run("H100+V100*2+4090", f"""
    import os
    from mxopt.chapter import lab as labs
    labs.gluoncv_weights = lambda name: None  # no download
    lab = labs.open_lab("8_1", tier="gpu", folder={str(tmp_path)!r})
    print(lab.many, os.environ["CUDA_VISIBLE_DEVICES"])
    assert mx.context.num_gpus() == 3
    for context in parallel.contexts(Plan(devices=lab.many)):
        nd.ones((1,), ctx=context).wait_to_read()
    """)  # fmt: skip
    assert "gpu:0-2 GPU-1" in said


def test_batches_reach_a_gpu_from_page_locked_memory():
    run(
        "V100*2",
        """
    from mxopt.methods.input_pipeline import loaders
    seen = []
    original = loaders.split_and_load
    def watch(arrays, contexts):
        seen.extend(array.context.device_type for array in arrays)
        return original(arrays, contexts)
    loaders.split_and_load = watch
    for workers in (0, 2):
        for devices, expected in (("gpu:0-1", {"cpu_pinned"}), ("cpu:0", {"cpu", "cpu_shared"})):
            seen.clear()
            train(recipes.load("segmentation", network="tiny", size=32, limit=4), devices=devices,
                  num_workers=workers)
            assert set(seen) <= expected and seen, (workers, devices, set(seen))
    """,
    )


def test_what_was_read_is_added_up_where_it_is():
    run(
        "V100",
        """
    from mxopt.chapter.workloads import load
    sums = {
        (preprocess, device): load(
            Plan(preprocess=preprocess, devices=device, batch_size=2), lambda *_, **__: None,
            epochs=1, size=32, limit=4,
        )["checksum"]
        for preprocess, device in (("lazy", "cpu:0"), ("cached", "gpu:0"), ("device", "gpu:0"))
    }
    expected = sums.pop(("lazy", "cpu:0"))
    assert abs(expected) > 1  # of normalised pixels, so that it can be negative
    assert sums["cached", "gpu:0"] == pytest.approx(expected, rel=1e-6)
    # A GPU resizes by another rule, which matters at this size.
    assert sums["device", "gpu:0"] == pytest.approx(expected, rel=0.1)
    """,
    )


def test_losses_above_what_float16_holds_are_computed():
    run(
        "V100",
        """
    from mxopt.methods.precision import amp
    recipe = recipes.load("segmentation", network="tiny", size=32, norm=False)
    images, masks = nd.ones((8, 3, 32, 32), ctx=mx.gpu(0)), nd.ones((8, 32, 32), ctx=mx.gpu(0))
    for name in ("float16", "amp"):
        numbers = amp.for_plan(Plan(devices="gpu:0", precision=name), [mx.gpu(0)])
        numbers.start()
        net = numbers.prepare(recipe.network([mx.gpu(0)]))
        for compiled in (False, True):
            net.hybridize(active=compiled)
            scores = numbers.outputs(net(*numbers.inputs([images])))
            assert scores.dtype == (np.float32 if name == "float16" else np.float16)
            losses = recipe.loss(scores, masks) * 1e6
            assert losses.dtype == np.float32
            assert 65504 < float(losses.sum().asscalar()) < 1e8
    """,
    )


def test_opencv_and_shared_memory_step_aside_on_a_gpu():
    run(
        "V100",
        """
    found = {}
    for transforms in ("gluon", "opencv"):
        for placement, loader in (
            ("device", "gluon"), ("lazy", "shared_memory"), ("lazy", "gluon"),
        ):
            figures, _ = train(recipes.load("segmentation", network="tiny", size=32, limit=4),
                               transforms=transforms, preprocess=placement, loader=loader)
            found.setdefault(placement, []).append(figures["train_loss"])
    for losses in found.values():
        assert max(losses) - min(losses) < 1e-5, found
    """,
    )


def test_the_tier_is_the_best_that_the_gpus_allow(tmp_path):
    run(
        "H100",
        f"""
    from mxopt.chapter import tiers
    from mxopt.chapter.lab import open_lab
    with pytest.raises(errors.DeviceError, match="Hopper"):
        tiers.pick_tier("gpu")
    picked = tiers.pick_tier(real_data=(False, "no network"))
    assert picked.name == "smoke" and "Hopper" in picked.why
    lab = open_lab("8_1", tier="smoke", folder={str(tmp_path)!r})
    assert (lab.one, lab.many) == ("cpu:0", "cpu:0-3")
    """,
    )


def test_stages_of_a_pipeline_are_on_gpus_of_their_own():
    run(
        "V100*2",
        """
    from mxopt.chapter.guide_workloads import pipeline
    small = {"layers": 4, "units": 8, "steps": 2}
    found = {}
    for devices, stages, count in (("cpu:0", 1, 1), ("gpu:0", 2, 1), ("gpu:0", 2, 4)):
        plan = Plan(devices=devices, batch_size=8, learning_rate=0.01)
        figures = pipeline(plan, lambda *args, **fields: None, stages, count, **small)
        found[devices, stages, count] = figures["train_loss"]
    assert len(found) == 3 and len({round(loss, 5) for loss in found.values()}) == 1, found
    """,
    )
