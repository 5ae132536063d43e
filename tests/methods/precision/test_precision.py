"""AMP rewrites MXNet's operators for a whole process, so its tests run in child processes."""

import dataclasses
import os
import subprocess
import sys
import textwrap
import time

import mxnet as mx
import needs
import numpy as np
import pytest
import toy
from mxnet import autograd, gluon, nd

from mxopt import machine
from mxopt.core.errors import DeviceError, PlanError, PrecisionError
from mxopt.core.plan import Plan
from mxopt.methods.gradient_clipping.clip import clip_gradients
from mxopt.methods.precision import amp
from mxopt.train.optimizer import make_trainer


def in_child(code: str) -> str:
    """Run code in a process of its own, with bfloat16 AMP at hand, and return what it prints."""
    prelude = """
        import mxopt, numpy as np, mxnet as mx, toy
        from mxnet import autograd, gluon, nd
        from mxopt import precision
        from mxopt.core.errors import PrecisionError
        from mxopt.core.plan import Plan
        from mxopt.methods.gradient_clipping.clip import clip_gradients
        from mxopt.train.optimizer import make_trainer
        plan = Plan(precision="bfloat16", learning_rate=0.1)
        numbers = precision.for_plan(plan, [mx.cpu()])
        x, y = nd.random.uniform(shape=(6, 1, 4, 4)), nd.array([0, 1, 0, 1, 0, 1])
        loss = gluon.loss.SoftmaxCrossEntropyLoss()
        def refused(function, *arguments):
            try:
                function(*arguments)
            except PrecisionError as error:
                print("refused:", error)
            else:
                print("accepted")
    """
    child = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(prelude) + textwrap.dedent(code)],
        env=os.environ, capture_output=True, text=True,
    )  # fmt: skip
    assert child.returncode == 0, child.stderr
    return child.stdout


@needs.bfloat16
def test_bfloat16_trains_and_keeps_float32_weights():
    printed = in_child("""
        numbers.start()
        mx.random.seed(0)
        net = numbers.prepare(toy.network([mx.cpu()]))
        net.hybridize()
        trainer = numbers.attach(make_trainer(net, plan, numbers))
        for step in range(40):
            with autograd.record():
                value = loss(net(x), y)
                numbers.backward([value], trainer)
            numbers.step(trainer, 6)
            if step in (0, 39):
                print(float(value.mean().asscalar()))
        print({p.dtype.__name__ if hasattr(p.dtype, "__name__") else p.dtype
               for p in net.collect_params().values()}, numbers.skipped_steps)
    """).splitlines()
    assert float(printed[1]) < float(printed[0])
    assert printed[2] == "{'float32'} 0"


@needs.bfloat16
def test_an_overflow_skips_the_step_and_halves_the_scale():
    printed = in_child("""
        numbers.start()
        net = numbers.prepare(toy.network([mx.cpu(0), mx.cpu(1)]))
        trainer = numbers.attach(make_trainer(net, plan, numbers))
        for factor in (1.0, float("inf"), 1.0):
            shards = [x[:3].as_in_context(mx.cpu(0)), x[3:].as_in_context(mx.cpu(1))]
            before = None if not factor > 1 else net[2].weight.data(mx.cpu(1)).asnumpy()
            with autograd.record():
                numbers.backward([net(shard).sum() * factor for shard in shards], trainer)
            numbers.step(trainer, 6)
            after = net[2].weight.data(mx.cpu(1)).asnumpy()
            print(numbers.loss_scale(trainer), numbers.skipped_steps,
                  before is None or np.array_equal(before, after), np.isfinite(after).all())
    """).splitlines()
    assert printed == ["65536.0 0 True True", "32768.0 1 True True", "32768.0 1 True True"]


@needs.bfloat16
def test_a_fixed_scale_skips_overflows_and_stays():
    printed = in_child("""
        numbers = precision.for_plan(plan.replace(loss_scale=512.0), [mx.cpu()])
        numbers.start()
        net = numbers.prepare(toy.network([mx.cpu()]))
        trainer = numbers.attach(make_trainer(net, plan, numbers))
        for factor in (1.0, float("inf"), 1.0):
            net(x)
            before = net[2].weight.data().asnumpy()
            with autograd.record():
                numbers.backward([net(x).sum() * factor], trainer)
            gradient = float(abs(net[2].weight.grad()).max().asscalar())
            numbers.step(trainer, 6)
            moved = float(abs(net[2].weight.data().asnumpy() - before).max())
            print(numbers.loss_scale(trainer), numbers.skipped_steps, numbers.exhausted(trainer),
                  moved if factor > 1 else round(gradient / 512 * 0.1 / 6 / moved, 4))
    """).splitlines()
    assert printed == ["512.0 0 False 1.0", "512.0 1 False 0.0", "512.0 1 False 1.0"]


def test_waiting_for_overflows_is_counted(monkeypatch):
    """The scaler reads from the device, in each step, whether a gradient has overflowed."""

    class Scaler:
        def has_overflow(self, params):
            time.sleep(0.05)
            return params == "infinite"

    def init_trainer(trainer):
        trainer._amp_loss_scaler = Scaler()

    monkeypatch.setattr(amp.amp, "init_trainer", init_trainer)
    numbers = amp.Amp()
    net = toy.network([mx.cpu()])
    trainer = numbers.attach(
        gluon.Trainer(net.collect_params(), "sgd", kvstore=None, update_on_kvstore=False)
    )
    found = [trainer._amp_loss_scaler.has_overflow(params) for params in ("infinite", "finite")]
    assert found == [True, False]
    assert 0.1 <= numbers.waiting_seconds < 10


def test_a_loss_scale_needs_mixed_precision():
    assert Plan.parse(["precision=amp", "loss_scale=10"]).loss_scale == 10
    with pytest.raises(PlanError, match=r"loss_scale=10 belongs to .* precision='float32' has"):
        Plan(loss_scale=10)


@needs.bfloat16
def test_clipping_measures_the_gradient_without_the_loss_scale():
    printed = in_child("""
        numbers.start()
        net = numbers.prepare(toy.network([mx.cpu()]))
        net(x)
        trainer = numbers.attach(make_trainer(net, plan, numbers))
        before = [p.data().copy() for p in trainer._params]
        with autograd.record():
            numbers.backward([(1000 * loss(net(x), y)).sum()], trainer)
        def clip():
            numbers.unscale(trainer)
            clip_gradients(trainer, 0.5 * 6)
        numbers.step(trainer, 6, clip)
        moved = [p.data() - old for p, old in zip(trainer._params, before)]
        print(round(float(sum((m ** 2).sum() for m in moved).sqrt().asscalar()), 4))
    """)
    # learning rate 0.1 times a gradient of norm 0.5
    assert printed == "0.05\n"


@pytest.mark.quick(2)
@needs.bfloat16
@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("refused(numbers.prepare, toy.network([mx.cpu()]))", "call start() before"),
        (
            "net = toy.network([mx.cpu()]); numbers.start(); refused(numbers.prepare, net)",
            "was made before start()",
        ),
        (
            "numbers.start(); net = numbers.prepare(toy.network([mx.cpu()])); "
            "refused(numbers.attach, gluon.Trainer(net.collect_params(), 'sgd'))",
            "update_on_kvstore=False",
        ),
        (
            "numbers.start(); net = numbers.prepare(toy.network([mx.cpu()])); "
            "trainer = make_trainer(net, plan, numbers); "
            "autograd.set_recording(True); refused(numbers.backward, [loss(net(x), y)], trainer)",
            "call attach(trainer)",
        ),
        (
            "numbers.start(); net = numbers.prepare(toy.network([mx.cpu()])); "
            "trainer = numbers.attach(make_trainer(net, plan, numbers)); "
            "refused(numbers.backward, [loss(net(x), y)], trainer)",
            "inside autograd.record()",
        ),
        ("numbers.start(); refused(precision.Amp().start)", "process of its own"),
    ],
)
def test_steps_in_the_wrong_order_are_refused(code, says):
    printed = in_child(code)
    assert printed.startswith("refused:")
    assert says in printed


def test_float16_casts_the_network_and_computes_the_loss_in_float32():
    numbers = amp.Float16()
    numbers.start()
    net = numbers.prepare(toy.network([mx.cpu()]))
    assert {np.dtype(p.dtype).name for p in net.collect_params().values()} == {"float16"}
    image, index = numbers.inputs([nd.ones((2, 3)), nd.ones((2,), dtype="int32")])
    assert (image.dtype, index.dtype) == (np.float16, np.int32)
    assert numbers.outputs((image,))[0].dtype == np.float32
    trainer = make_trainer(net, Plan(), numbers)
    assert trainer._optimizer.multi_precision


@pytest.mark.parametrize("name", ["float16", "amp"])
def test_float16_on_the_cpu_is_refused_with_what_to_take(name):
    with pytest.raises(DeviceError, match=r"needs a GPU.*bfloat16"):
        amp.for_plan(Plan(precision=name), [mx.cpu()])


def test_bfloat16_without_avx512_is_refused(monkeypatch):
    older = dataclasses.replace(machine.cpu(), instruction_sets=("fma", "avx2"))
    monkeypatch.setattr(machine, "cpu", lambda: older)
    with pytest.raises(DeviceError, match=r"AVX-512.*precision='float32'"):
        amp.for_plan(Plan(precision="bfloat16"), [mx.cpu()])


def test_bfloat16_on_a_gpu_is_refused():
    with pytest.raises(DeviceError, match="precision='amp'"):
        amp.for_plan(Plan(precision="bfloat16"), [mx.gpu(0)])


@pytest.mark.parametrize("contexts", [[mx.cpu(0)], [mx.cpu(0), mx.cpu(1)]])
def test_clipping_agrees_with_gluon(contexts):
    mx.random.seed(3)
    net = toy.network(contexts)
    data = nd.random.uniform(shape=(4, 1, 4, 4))
    trainer = gluon.Trainer(net.collect_params(), "sgd", {}, update_on_kvstore=False)
    gradients = []
    for clip in (gluon.utils.clip_global_norm, None):
        with autograd.record():
            losses = [net(data.as_in_context(context)).sum() for context in contexts]
        autograd.backward(losses)
        trainer.allreduce_grads()
        mine = [p.grad(contexts[-1]) for p in trainer._params]
        if clip:
            clip(mine, 0.1)
        else:
            clip_gradients(trainer, 0.1)
        gradients.append([gradient.asnumpy().copy() for gradient in mine])
    for mine, theirs in zip(*gradients):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5)


def test_clipping_leaves_a_small_gradient_alone():
    net = toy.network([mx.cpu()])
    trainer = gluon.Trainer(net.collect_params(), "sgd", {}, update_on_kvstore=False)
    with autograd.record():
        value = net(nd.ones((1, 1, 4, 4))).sum()
    value.backward()
    before = [p.grad().asnumpy().copy() for p in trainer._params]
    clip_gradients(trainer, 1e6)
    for old, parameter in zip(before, trainer._params):
        np.testing.assert_array_equal(old, parameter.grad().asnumpy())


def test_plain_precision_needs_the_same_order():
    with pytest.raises(PrecisionError, match="float32: call start"):
        amp.Float32().prepare(toy.network([mx.cpu()]))
