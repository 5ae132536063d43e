"""Precision: float32, float16, and automatic mixed precision, one small class each.

Half-precision numbers move half the bytes and, on tensor cores, multiply several times faster;
they also end at 65504 and lose everything below about 6e-8. Pure ``float16`` casts the whole
network. Automatic mixed precision (AMP) keeps the weights in float32, runs only the operators
that profit in the short type, and multiplies the loss by a scale so that small gradients survive:
Micikevicius et al., "Mixed Precision Training" (2018).

AMP has an order, and MXNet checks almost none of it. Each class here does: ``start`` before the
network is made, ``prepare`` the network, ``attach`` the trainer, ``backward`` inside
``autograd.record``, then ``step``.

>>> precision = for_plan(plan, contexts)
>>> precision.start()
>>> net = precision.prepare(make_network())
>>> trainer = precision.attach(make_trainer(net))
>>> with autograd.record():
...     precision.backward([loss(net(x), y)], trainer)
>>> precision.step(trainer, batch_size)
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable

import numpy as np
from mxnet import autograd, gluon
from mxnet.contrib import amp

from mxopt.core.errors import DeviceError, PrecisionError
from mxopt.core.plan import Plan

# The float16 operators that MXNet 1.9.1 lacks on the CPU ("FP16 gemm on cpu not implemented").
_NO_HALF_ON_CPU = "convolution, dense, dot and batch_dot"
# Gradients that overflow without being scaled up are not the loss scale's to mend. MXNet's scaler
# has no such floor: it halves for ever and skips every step.
_SMALLEST_LOSS_SCALE = 1.0


class Float32:
    """Everything in float32: the reference, and the base of the other classes."""

    name = "float32"
    optimizer_options: dict = {}

    def __init__(self):
        self.skipped_steps = 0
        self._made_before = None

    def start(self) -> None:
        """Make ready; call it before the network is made."""
        # Operators are rewritten by AMP when this is called, so a network that exists already
        # may hold the old ones. Remember which those are, to refuse them in ``prepare``.
        self._made_before = weakref.WeakSet(
            thing for thing in gc.get_objects() if issubclass(type(thing), gluon.Block)
        )

    def prepare(self, net: gluon.Block) -> gluon.Block:
        """Return the network ready for this precision.

        Raises:
            PrecisionError: ``start`` was not called, or not before the network was made.
        """
        if self._made_before is None:
            raise PrecisionError(
                f"{self.name}: call start() before making the network, then prepare(net)"
            )
        if net in self._made_before:
            raise PrecisionError(
                f"{self.name}: this network was made before start(); make it anew after start()"
            )
        return net

    def attach(self, trainer: gluon.Trainer) -> gluon.Trainer:
        """Return the trainer ready for this precision."""
        return trainer

    def inputs(self, arrays):
        """Return the network's input arrays in the type that the network takes."""
        return arrays

    def outputs(self, output):
        """Return what the network put out in the type that the loss takes."""
        return output

    def backward(self, losses: list, trainer: gluon.Trainer) -> None:
        """Compute gradients of the losses, one array a device; call it while recording."""
        autograd.backward(losses)

    def step(
        self, trainer: gluon.Trainer, size: int, on_gradients: Callable[[], None] | None = None
    ) -> None:
        """Update the weights with the gradient of the summed losses divided by ``size``.

        Args:
            trainer: made with ``update_on_kvstore=False`` if ``on_gradients`` is given.
            size: samples (or tokens) that the losses were summed over, on all devices together.
            on_gradients: called when the devices' gradients are summed, before the update; it may
                change them, after :meth:`unscale`.
        """
        if on_gradients is None:
            trainer.step(size)
            return
        trainer.allreduce_grads()
        on_gradients()
        trainer.update(size)

    def exhausted(self, trainer: gluon.Trainer) -> bool:
        """Whether the last step overflowed and no smaller loss scale is left to try."""
        return False

    def unscale(self, trainer: gluon.Trainer) -> None:
        """Divide the gradients by what ``backward`` multiplied them by; harmless if repeated."""


class Float16(Float32):
    """The whole network in float16; the optimiser keeps a float32 copy of the weights."""

    name = "float16"
    optimizer_options = {"multi_precision": True}

    def prepare(self, net):
        """Cast the network to float16 (batch normalisation stays in float32)."""
        net = super().prepare(net)
        net.cast("float16")
        return net

    def inputs(self, arrays):
        """Cast float32 inputs to float16; whole numbers stay as they are."""
        return [a.astype("float16") if a.dtype == np.float32 else a for a in arrays]

    def outputs(self, output):
        """Cast outputs to float32, in which the loss is computed."""
        if isinstance(output, (list, tuple)):
            return type(output)(self.outputs(part) for part in output)
        return output.astype("float32")


class Amp(Float32):
    """Automatic mixed precision; ``amp.init`` cannot be undone in a process."""

    name = "amp"
    target_dtype = "float16"

    def start(self):
        """Rewrite MXNet's operators (``amp.init``).

        Raises:
            PrecisionError: AMP was already started in this process with the other type.
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
        """Give the trainer a dynamic loss scale (``amp.init_trainer``).

        Raises:
            PrecisionError: the trainer may update on the kvstore, which applies an overflow to
                the weights before the loss scaler has looked at it (apache/mxnet #17881).
        """
        if trainer._kvstore_params["update_on_kvstore"] is not False:
            raise PrecisionError(
                f"{self.name}: make the Trainer with update_on_kvstore=False, so that an overflow "
                "is seen before the weights are updated"
            )
        amp.init_trainer(trainer)
        return trainer

    def backward(self, losses, trainer):
        """Compute gradients of the scaled losses.

        Raises:
            PrecisionError: the trainer was not attached, or nothing is being recorded.
        """
        if getattr(trainer, "_amp_loss_scaler", None) is None:
            raise PrecisionError(f"{self.name}: call attach(trainer) before the first step")
        if not autograd.is_recording():
            raise PrecisionError(
                f"{self.name}: call backward inside autograd.record(), or the loss scale would "
                "be lost from the gradient"
            )
        with amp.scale_loss(losses, trainer) as scaled:
            autograd.backward(scaled)

    def step(self, trainer, size, on_gradients=None):
        """Update the weights, or skip the step and halve the loss scale after an overflow."""
        super().step(trainer, size, on_gradients)
        scaler = trainer._amp_loss_scaler
        self.skipped_steps += scaler._next_loss_scale < scaler._loss_scale

    def loss_scale(self, trainer) -> float:
        """Return the scale that the next losses are multiplied by."""
        return trainer._amp_loss_scaler._next_loss_scale

    def exhausted(self, trainer):
        """Whether the last step overflowed at a loss scale of 1: 17 overflows in a row at first."""
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
        """Run concatenation in float32: MXNet's lists let it meet mixed types, which it refuses."""
        operators = amp.list_fp32_ops(amp.amp.bfloat16)
        return {"fp32_ops": [*operators, "Concat", "concat"]}


_CLASSES = {kind.name: kind for kind in (Float32, Float16, Amp, BFloat16)}


def for_plan(plan: Plan, contexts: list) -> Float32:
    """Return the plan's precision for these contexts.

    Raises:
        DeviceError: the devices cannot compute in it: float16 needs GPUs, bfloat16 the CPU.
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
    return _CLASSES[plan.precision]()
