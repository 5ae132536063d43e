"""The operators of :mod:`mxopt.kernels` as functions of ``mxnet.ndarray`` or ``mxnet.symbol``.

MXNet does not tell an operator of a library to add to a gradient (``grad_req="add"``): it would
write over it. So parameters are passed through a copy, whose own backward pass adds, unless
``adds=False`` says that none of their gradients is added to. Other inputs are not, which would take
memory: an array with ``attach_grad("add")`` goes through ``F.identity``.
"""

from __future__ import annotations

from mxnet import autograd

from mxopt.core.errors import PlanError

# How many ones that went through Dropout(p=0.5) an operator takes that draws random numbers.
DRAWS = 64


def inverted_residual(F, x, *parameters, **settings):
    """Return the output of MobileNetV2's block: (samples, channels, height, width).

    Args:
        F: ``mxnet.ndarray`` or ``mxnet.symbol``.
        x: (samples, inputs, height, width) float32.
        *parameters: weight and bias of the expansion (1 x 1; left out with ``expands=0``), of the
            depthwise convolution (3 x 3), and of the projection (1 x 1).
        **settings: ``stride`` (1 or 2), ``dilation``, ``six`` (1 for ReLU6, 0 for ReLU),
            ``expands`` and ``residual`` (1 or 0), and ``clips``: with ``expands=0``, whether the
            filter reads x activated (1 or 0); ``residual`` adds x itself.
    """
    return F.mxopt_inverted_residual(x, *map(F.identity, parameters), **settings)


def winograd(F, x, weight, dilation: int = 1):
    """Return a 3 x 3 convolution at stride 1 that is padded by its dilation.

    It is computed by Winograd's minimal filtering, with a quarter of the products; the error is
    about twice that of the usual sum in float32.

    Args:
        F: ``mxnet.ndarray`` or ``mxnet.symbol``.
        x: (samples, channels, height, width) float32.
        weight: (filters, channels, 3, 3).
        dilation: dilation of the convolution.
    """
    return F.mxopt_winograd(x, F.identity(weight), dilation=dilation)


def seen_taps(F, x, *weights, dilations, mean: bool = False):
    """Return convolutions of one input, at stride 1 and padded so that all sides stay the same.

    Products with padding are left out: many, where a dilation is of the order of the sides.

    Args:
        F: ``mxnet.ndarray`` or ``mxnet.symbol``.
        x: (samples, channels, height, width) float32.
        *weights: (filters, channels, 3, 3) or (filters, channels, 1, 1), one for each convolution.
        dilations: their dilations.
        mean: whether the last output is the mean of x over its pixels, (samples, channels, 1, 1).
    """
    dilations = " ".join(map(str, dilations))
    return F.mxopt_seen_taps(x, *map(F.identity, weights), dilations=dilations, mean=int(mean))


def pointwise(F, x, weight):
    """Return a 1 x 1 convolution at stride 1.

    The error is about that of float32, also by tiles (:func:`mxopt.kernels.multiplies_by_tiles`).

    Args:
        F: ``mxnet.ndarray`` or ``mxnet.symbol``.
        x: (samples, channels, height, width) float32.
        weight: (filters, channels, 1, 1).
    """
    return F.mxopt_pointwise(x, F.identity(weight))


def pooled_convolution(F, x, weight, bias):
    """Return ``relu(max_pool(convolution(x)))``: (samples, filters, height // 2, width // 2).

    The filters are 3 x 3 at stride 1, padded by 1; the maxima those of windows of 2 x 2.

    Args:
        F: ``mxnet.ndarray`` or ``mxnet.symbol``.
        x: (samples, channels, height, width) float32.
        weight: (filters, channels, 3, 3).
        bias: (filters,).
    """
    return F.mxopt_pooled_convolution(x, F.identity(weight), F.identity(bias))[0]


def batch_norm(F, x, gamma, beta, mean, variance, draws, other=None, norm=(), **settings):
    """Return ``relu(norm(x) + other)``, where norm is batch normalisation.

    Args:
        F: ``mxnet.ndarray`` or ``mxnet.symbol``.
        x: (samples, channels, height, width) float32.
        gamma: (channels,).
        beta: (channels,).
        mean: (channels,), the running mean, which is updated in training.
        variance: (channels,), the running variance, likewise.
        draws: as for :func:`residual_norm`.
        other: array like x, or None.
        norm: gamma, beta, mean and variance of the other array, if its norm is added.
        **settings: ``relu`` (0 to leave it out), ``epsilon`` and ``momentum``.
    """
    identity = F.identity
    more = [] if other is None else [other, *map(identity, norm[:2]), *norm[2:]]
    added = (other is not None) + bool(norm)
    return F.mxopt_batch_norm(x, identity(gamma), identity(beta), mean, variance, draws, *more,
                              added=added, **settings)  # fmt: skip


def residual_norm(F, x, change, gamma, beta, draws, adds: bool = True, **settings):
    """Return ``LayerNorm(x + Dropout(change))``, over the last axis.

    Args:
        F: ``mxnet.ndarray`` or ``mxnet.symbol``.
        x: (..., units) float32, units a multiple of 16.
        change: of the same shape.
        gamma: (units,).
        beta: (units,).
        draws: (``DRAWS``,), as :func:`draws` returns them.
        adds: whether gradients of the parameters may be added to.
        **settings: ``dropout``, ``epsilon``, and ``salt``, a number that no other operator with the
            same draws has.
    """
    gamma, beta = _parameters(F, (gamma, beta), adds)
    return F.mxopt_residual_norm(x, change, gamma, beta, draws, **settings)


def positions(F, ids, lengths, longest: int):
    """Return the position of each word in its sentence, -1 for padding: (rows, length).

    Args:
        F: ``mxnet.ndarray`` or ``mxnet.symbol``.
        ids: (sentences, length) float32; or (1, words), all sentences one after the other.
        lengths: (sentences,) float32, words that are not padding.
        longest: number of words that a sentence may have.
    """
    return F.mxopt_positions(ids, lengths, longest=longest)


def attention(F, query, memory, query_lengths, lengths, draws, **settings):
    """Return scaled dot-product attention of several heads: (samples, queries, units).

    Two or more samples can also be given in one row, one after the other: then ``query`` is (1, all
    queries, units) and ``memory`` (1, all keys, 2 * units), and the lengths divide them. What is
    left behind the last sample is padding; its output and gradients are 0.

    Args:
        F: ``mxnet.ndarray`` or ``mxnet.symbol``.
        query: (samples, queries, units) float32; each head has consecutive units.
        memory: keys and values beside each other, (samples, keys, 2 * units).
        query_lengths: (samples,), queries that are not padding; read for samples in one row only.
        lengths: (samples,), keys that are not padding; of padded samples not read with
            ``causal=1``.
        draws: as for :func:`residual_norm`.
        **settings: ``heads``, ``causal`` (1: a query sees the keys up to its own position),
            ``dropout`` and ``salt``.
    """
    return F.mxopt_attention(query, memory, query_lengths, lengths, draws, own=0, **settings)


def self_attention(F, projected, lengths, draws, **settings):
    """Return the attention of words to each other: (samples, length, units).

    Samples can be in one row, as for :func:`attention`.

    Args:
        F: ``mxnet.ndarray`` or ``mxnet.symbol``.
        projected: queries, keys and values beside each other, (samples, length, 3 * units).
        lengths: as for :func:`attention`.
        draws: as for :func:`residual_norm`.
        **settings: as for :func:`attention`.
    """
    return F.mxopt_attention(projected, lengths, draws, own=1, **settings)


def dense(F, x, weight, bias=None, parts: int = 3, adds: bool = True):
    """Return a dense layer's output: (..., units).

    Args:
        F: ``mxnet.ndarray`` or ``mxnet.symbol``.
        x: (..., n) float32.
        weight: (units, n) float32.
        bias: (units,) float32, or None.
        parts: 3 for products of float32, by three bfloat16 for each number where there are tiles
            (:func:`mxopt.kernels.multiplies_by_tiles`; the error is then about that of float32); 1
            to round each number to bfloat16 (:func:`mxopt.kernels.multiplies_bfloat16`).
        adds: whether gradients of the parameters may be added to.
    """
    inputs = _parameters(F, (weight, bias), adds)
    return F.mxopt_dense(x, *inputs, no_bias=int(bias is None), parts=parts)


def cross_entropy(
    F, x, weight, labels, bias=None, smoothing: float = 0.0, parts: int = 3, adds: bool = True
):
    """Return the cross entropy of a dense layer's outputs: (...).

    The outputs are no array of MXNet's. The operator keeps up to 128 MiB of them for the backward
    pass of its last forward pass, and otherwise computes them again there.

    Args:
        F: ``mxnet.ndarray`` or ``mxnet.symbol``.
        x: (..., n) float32.
        weight: (classes, n) float32.
        labels: (...) float32, numbers of classes.
        bias: (classes,) float32, or None.
        smoothing: share of the target that is spread over all classes.
        parts: as for :func:`dense`; on a processor without the instructions 1 rounds nothing.
        adds: whether gradients of the parameters may be added to.
    """
    weight, *more = _parameters(F, (weight, bias), adds)
    return F.mxopt_cross_entropy(x, weight, labels, *more, no_bias=int(bias is None),
                                 smoothing=smoothing, parts=parts)[0]  # fmt: skip


def draws(F, ones):
    """Return what an operator's dropout depends on: ones in prediction, random in training.

    Args:
        F: ``mxnet.ndarray`` or ``mxnet.symbol``.
        ones: (``DRAWS``,) float32.
    """
    return F.BlockGrad(F.Dropout(ones, p=0.5))


def check_written(parameters, instead: str) -> None:
    """Check, in a step, that no gradient of parameters is added to that are read without a copy.

    Args:
        parameters: those read so, ``gluon.Parameter``.
        instead: what to do about it, for the message.

    Raises:
        PlanError: one is (``grad_req="add"``), and would be written over.
    """
    if autograd.is_recording() and any(each.grad_req == "add" for each in parameters):
        raise PlanError(
            "this network's gradients are written, and not added to as grad_req='add' asks; "
            + instead
        )


def _parameters(F, given, adds: bool) -> list:
    """Return those parameters that are not None as an operator reads them."""
    return [F.identity(each) if adds else each for each in given if each is not None]
