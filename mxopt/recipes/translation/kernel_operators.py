"""A Transformer layer computed by mxopt's own kernels, whose dropout draws every element.

The parameters are those of GluonNLP's cells, and the results are equal.
"""

from __future__ import annotations

import itertools

from mxopt import kernels
from mxopt.kernels import operators
from mxopt.recipes.translation.cpu_operators import Pass

KERNELS = "kernels"  # in place of ``cpu_operators.PIECES``
BFLOAT16 = "bfloat16"  # beside it


class KernelPass(Pass):
    """A forward pass with the operators of :mod:`mxopt.kernels`.

    Args:
        F: as for :class:`Pass`.
        lengths: as for :class:`Pass`.
        units: a multiple of 16.
        heads: number of attention heads of every layer.
        dropout: probability of dropping an element in training.
        bfloat16: whether large products round their factors to bfloat16.
        adds: whether gradients of the parameters may be added to.
    """

    fuses_losses = True

    def __init__(
        self, F, lengths, units: int, heads: int, dropout: float, bfloat16: bool = False,
        adds: bool = True,
    ):  # fmt: skip
        super().__init__(F, lengths, (), units, heads, dropout)
        self._adds = adds
        # How many bfloat16 stand for a float32 in large products; None: MXNet's operator.
        self._parts = 1 if bfloat16 else 3 if kernels.multiplies_float32() else None
        ones = F.broadcast_to(F.reshape(self._one, (1,)), shape=(operators.DRAWS,))
        self._draws = operators.draws(F, ones)
        self._salts = itertools.count()

    def product(self, x, weight, units: int, bias=None):
        """Return a dense layer's output, computed in the chosen precision."""
        if self._parts:
            return operators.dense(self.F, x, weight, bias, self._parts, self._adds)
        return self.dense(x, weight, units, bias)

    def losses(self, x, projection, words, smoothing: float):
        """Return the loss of each word (samples, length), by an operator that computes scores too.

        Args:
            x: the network's last states, (samples, length, units).
            projection: its last layer, an ``nn.Dense``.
            words: the correct words, (samples, length) float32.
            smoothing: share of the target that is spread over the vocabulary.
        """
        bias = None if projection.bias is None else self.value(projection.bias)
        return operators.cross_entropy(self.F, x, self.value(projection.weight), words, bias,
                                       smoothing, self._parts or 3, self._adds)  # fmt: skip

    def padding(self, source, lengths):
        """Return the lengths, which the kernel takes instead of a mask."""
        return lengths

    def padded(self, queries, padding, lengths):
        """Return what the kernel takes: the lengths of the queries and of the keys."""
        return lengths, padding, 0

    def causal(self, target, lengths):
        """Return what tells the kernel to hide later words."""
        return lengths, lengths, 1

    def positions(self, ids, lengths, longest: int):
        """Return the position of each word in its sentence, -1 for padding."""
        return operators.positions(self.F, ids, lengths, longest)

    def real(self, ids, lengths, longest: int):
        """Return 1 for words and 0 for padding."""
        return self.positions(ids, lengths, longest) >= 0

    def masked(self, x, ids, lengths, longest: int):
        """Return x with zeros at padding."""
        F = self.F  # not broadcast_mul, which would also sum up a gradient of what is real
        real = F.expand_dims(self.real(ids, lengths, longest), axis=-1)
        return F.elemwise_mul(x, F.broadcast_like(F.BlockGrad(real), x))

    def memory(self, x, cell):
        """Return the keys and values of an attention cell, (samples, length, 2 * units)."""
        return self._projected(x, cell.proj_key, cell.proj_value)

    def attend(self, query, memory, cell, mask=None):
        """Return the output of an attention cell, with a mask of this class."""
        query = self.layer(query, cell.proj_query)
        return self._attention(operators.attention, (query, memory, mask[0]), mask)

    def attend_self(self, x, cell, mask=None):
        """Return the output of an attention cell whose queries and memory are of the same words."""
        projected = self._projected(x, cell.proj_query, cell.proj_key, cell.proj_value)
        return self._attention(operators.self_attention, (projected,), mask)

    def _attention(self, operator, projected, mask):
        _, lengths, causal = mask
        return operator(
            self.F, *projected, lengths, self._draws, heads=self.heads, causal=causal,
            dropout=self._dropout, salt=next(self._salts),
        )  # fmt: skip

    def _projected(self, x, *blocks):
        """Return the outputs of dense blocks beside each other, computed by one product."""
        F = self.F
        weight = F.concat(*(self.value(block.weight) for block in blocks), dim=0)
        bias = None
        if blocks[0].bias is not None:
            bias = F.concat(*(self.value(block.bias) for block in blocks), dim=0)
        return self.product(x, weight, len(blocks) * self.units, bias)

    def norm(self, x, block, ids):
        """Normalise x over its last axis."""
        return self._normal(self.F.zeros_like(x), x, block, 0.0)

    def dropped_norm(self, x, block, ids):
        """Apply dropout, and normalise over the last axis."""
        return self._normal(self.F.zeros_like(x), x, block, self._dropout)

    def residual(self, x, change, norm, ids):
        """Add the output of a sublayer to its input, and normalise."""
        return self._normal(x, change, norm, self._dropout)

    def _normal(self, x, change, block, dropout):
        gamma, beta = self.value(block.gamma), self.value(block.beta)
        return operators.residual_norm(
            self.F, x, change, gamma, beta, self._draws, self._adds, dropout=dropout,
            epsilon=block._epsilon, salt=next(self._salts),
        )  # fmt: skip
