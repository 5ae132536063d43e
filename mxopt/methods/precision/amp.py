"""Precision: float32, float16, and automatic mixed precision, one small class each.

Half-precision numbers take half the memory and are multiplied several times faster on tensor cores,
but the largest is 65504 and numbers below about 6e-8 become 0. ``float16`` casts the whole network.
Automatic mixed precision (AMP) keeps the weights in float32, runs only the operators that benefit
in the short type, and multiplies the loss by a scale that keeps small gradients from becoming 0:
Micikevicius et al., "Mixed Precision Training" (2018).

The steps of AMP have a fixed order, most of which MXNet does not check. The classes here do:
``start`` before the network is made, ``prepare`` the network, ``attach`` the trainer, ``backward``
inside ``autograd.record``, then ``step``::

    precision = for_plan(plan, contexts)
    precision.start()
    net = precision.prepare(make_network())
    trainer = precision.attach(make_trainer(net))
    with autograd.record():
        precision.backward([loss(net(x), y)], trainer)
    precision.step(trainer, batch_size)
"""

from __future__ import annotations

import gc
import time
import weakref
from collections.abc import Callable

import numpy as np
from mxnet import autograd, gluon
from mxnet.contrib import amp

from mxopt import machine
from mxopt.core.errors import DeviceError, PrecisionError
from mxopt.core.plan import Plan

# The float16 operators that MXNet 1.9.1 lacks on the CPU ("FP16 gemm on cpu not implemented").
_NO_HALF_ON_CPU = "convolution, dense, dot and batch_dot"
# A smaller loss scale does not help if gradients overflow without any. MXNet's scaler has no such
# limit: it halves the scale forever and skips every step.
_SMALLEST_LOSS_SCALE = 1.0


class Float32:
    """Everything in float32; base of the other classes.

    Attributes:
        name: value of the switch.
        optimizer_options: arguments that the optimizer needs for this precision.
        skipped_steps: number of steps skipped because of overflows.
        waiting_seconds: seconds in which steps waited for the devices, to look for overflows.
    """

    name = "float32"
    optimizer_options: dict = {}

    def __init__(self):
        self.skipped_steps = 0
        self.waiting_seconds = 0.0
        self._made_before = None

    def start(self) -> None:
        """Prepare the process; call it before the network is made."""
        # AMP replaces MXNet's operators when this is called, so a network that exists already may
        # have the old ones. Remember such networks, to refuse them in ``prepare``.
        self._made_before = weakref.WeakSet(
            thing for thing in gc.get_objects() if issubclass(type(thing), gluon.Block)
        )

    def prepare(self, net: gluon.Block) -> gluon.Block:
        """Return the network ready for this precision.

        Raises:
            PrecisionError: ``start`` was not called before the network was made.
        """
        if self._made_before is None:
            raise PrecisionError(
                f"{self.name}: call start() before making the network, then prepare(net)"
            )
        if net in self._made_before:
            raise PrecisionError(
                f"{self.name}: this network was made before start(); make it after start()"
            )
        return net

    def attach(self, trainer: gluon.Trainer) -> gluon.Trainer:
        """Return the trainer ready for this precision."""
        return trainer

    def inputs(self, arrays):
        """Return the input arrays in the dtype that the network takes."""
        return arrays

    def outputs(self, output):
        """Return the network's output in the dtype that the loss takes."""
        return output

    def backward(self, losses: list, trainer: gluon.Trainer) -> None:
        """Compute the gradients of the losses; call it inside ``autograd.record``.

        Args:
            losses: one array for each device.
            trainer: the attached trainer.
        """
        autograd.backward(losses)

    def step(
        self, trainer: gluon.Trainer, size: int, on_gradients: Callable[[], None] | None = None
    ) -> None:
        """Update the weights with the gradient of the summed losses divided by ``size``.

        Args:
            trainer: the attached trainer, made with ``update_on_kvstore=False`` if
                ``on_gradients`` is given.
            size: number of samples (or tokens) that the losses were summed over, on all devices.
            on_gradients: function called before the update, when the gradients of all devices are
                summed; it may change them after :meth:`unscale`.
        """
        if on_gradients is None:
            trainer.step(size)
            return
        trainer.allreduce_grads()
        on_gradients()
        trainer.update(size)

    def exhausted(self, trainer: gluon.Trainer) -> bool:
        """Return whether the last step overflowed at the smallest loss scale."""
        return False

    def unscale(self, trainer: gluon.Trainer) -> None:
        """Divide the gradients by the loss scale; further calls have no effect."""


class Float16(Float32):
    """The whole network in float16; the optimizer keeps a float32 copy of the weights."""

    name = "float16"
    optimizer_options = {"multi_precision": True}

    def prepare(self, net):
        """Cast the network to float16 (batch normalisation stays in float32)."""
        net = super().prepare(net)
        net.cast("float16")
        return net

    def inputs(self, arrays):
        """Cast float32 inputs to float16; integers are unchanged."""
        return [a.astype("float16") if a.dtype == np.float32 else a for a in arrays]

    def outputs(self, output):
        """Cast outputs to float32 for the loss."""
        if isinstance(output, (list, tuple)):
            return type(output)(self.outputs(part) for part in output)
        return output.astype("float32")


class Amp(Float32):
    """Automatic mixed precision; ``amp.init`` cannot be undone in a process."""

    name = "amp"
    target_dtype = "float16"

    def __init__(self, loss_scale: float | None = None):
        """Take a fixed loss scale; None for a dynamic one."""
        super().__init__()
        self._fixed = loss_scale

    def start(self):
        """Rewrite MXNet's operators (``amp.init``).

        Raises:
            PrecisionError: AMP was already started in this process with the other dtype.
        """
        started = getattr(amp.amp, "_mxopt_target", None)
        if started not in (None, self.target_dtype):
            raise PrecisionError(
                f"AMP was started with {started} in this process and cannot be undone; "
                f"run {self.target_dtype} in a process of its own"
            )
        super().start()
        amp.init(self.target_dtype, **self.operator_lists())
        amp.amp._mxopt_target = self.target_dtype

    def operator_lists(self) -> dict:
        """Return the operator lists that differ from MXNet's, as ``amp.init`` takes them."""
        return {}

    def attach(self, trainer):
        """Give the trainer a loss scale (``amp.init_trainer``).

        Raises:
            PrecisionError: the trainer may update on the kvstore, which would apply an overflow
                to the weights before the loss scaler checks it (apache/mxnet #17881).
        """
        if trainer._kvstore_params["update_on_kvstore"] is not False:
            raise PrecisionError(
                f"{self.name}: make the Trainer with update_on_kvstore=False, so that an overflow "
                "is detected before the weights are updated"
            )
        amp.init_trainer(trainer)
        if self._fixed is not None:
            trainer._amp_loss_scaler = _FixedLossScale(self._fixed)
        self._time_overflows(trainer._amp_loss_scaler)
        return trainer

    def _time_overflows(self, scaler) -> None:
        """Count how long a loss scaler waits for the gradients."""
        look = scaler.has_overflow

        def timed(params):
            before = time.perf_counter()
            try:
                return look(params)
            finally:
                self.waiting_seconds += time.perf_counter() - before

        scaler.has_overflow = timed

    def backward(self, losses, trainer):
        """Compute gradients of the scaled losses.

        Raises:
            PrecisionError: the trainer was not attached, or ``autograd`` is not recording.
        """
        if getattr(trainer, "_amp_loss_scaler", None) is None:
            raise PrecisionError(f"{self.name}: call attach(trainer) before the first step")
        if not autograd.is_recording():
            raise PrecisionError(
                f"{self.name}: call backward inside autograd.record(); otherwise the gradient "
                "would lack the loss scale"
            )
        with amp.scale_loss(losses, trainer) as scaled:
            autograd.backward(scaled)

    def step(self, trainer, size, on_gradients=None):
        """Update the weights, or skip the step and halve the loss scale after an overflow."""
        super().step(trainer, size, on_gradients)
        scaler = trainer._amp_loss_scaler
        if self._fixed is None:
            self.skipped_steps += scaler._next_loss_scale < scaler._loss_scale
        else:
            self.skipped_steps += scaler.overflowed

    def loss_scale(self, trainer) -> float:
        """Return the scale of the next losses."""
        return trainer._amp_loss_scaler._next_loss_scale

    def exhausted(self, trainer):
        """Return whether the last step overflowed at a loss scale of 1.

        From the initial scale, this takes 17 overflows in a row.
        """
        return self.loss_scale(trainer) < _SMALLEST_LOSS_SCALE

    def unscale(self, trainer):
        """Divide the gradients by the loss scale (``amp.unscale``)."""
        if trainer._scale != 1.0:
            amp.unscale(trainer)


class BFloat16(Amp):
    """Automatic mixed precision with bfloat16: float32's range, eight bits of precision."""

    name = "bfloat16"
    target_dtype = "bfloat16"

    def operator_lists(self):
        """Run concatenation in float32: by MXNet's lists it gets mixed dtypes, and fails."""
        operators = amp.list_fp32_ops(amp.amp.bfloat16)
        return {"fp32_ops": [*operators, "Concat", "concat"]}


class _FixedLossScale(amp.amp.LossScaler):
    """A loss scale that overflows do not change; their steps are skipped all the same."""

    def __init__(self, scale: float):
        super().__init__()
        self._loss_scale = self._next_loss_scale = scale
        self.overflowed = False

    def has_overflow(self, params):
        """Return whether a gradient is infinite or NaN."""
        scale = self._loss_scale
        self.overflowed = super().has_overflow(params)
        self._loss_scale = self._next_loss_scale = scale
        return self.overflowed


_CLASSES = {kind.name: kind for kind in (Float32, Float16, Amp, BFloat16)}


def for_plan(plan: Plan, contexts: list) -> Float32:
    """Return the plan's precision for these contexts.

    Args:
        plan: the switches, for ``precision``.
        contexts: devices to compute on.

    Raises:
        DeviceError: the devices do not support it: float16 needs GPUs, bfloat16 a CPU with AVX-512.
    """
    on_cpu = all(context.device_type == "cpu" for context in contexts)
    if on_cpu and plan.precision in ("float16", "amp"):
        raise DeviceError(
            f"precision={plan.precision!r} needs a GPU: MXNet 1.9.1 has no float16 "
            f"{_NO_HALF_ON_CPU} on the CPU; take precision='bfloat16' or 'float32' there"
        )
    if not on_cpu and plan.precision == "bfloat16":
        raise DeviceError(
            "precision='bfloat16' runs on the CPU only in MXNet 1.9.1; take precision='amp' on GPUs"
        )
    if plan.precision == "bfloat16" and not machine.cpu().computes_bfloat16:
        raise DeviceError(
            "precision='bfloat16' needs a processor with AVX-512: oneDNN has no bfloat16 operators "
            f"for this one ({machine.cpu().model}); take precision='float32' here"
        )
    kind = _CLASSES[plan.precision]
    return kind(plan.loss_scale) if issubclass(kind, Amp) else kind()
