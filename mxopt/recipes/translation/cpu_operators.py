"""The arithmetic of a Transformer layer in operators that MXNet 1.9.1 is quick at on a processor.

The parameters are those of GluonNLP's cells and the numbers are the same (each piece is tested
against GluonNLP); only the way there differs, for reasons that a profile of one training step
shows:

``attention``
    GluonNLP fills masked scores, takes the softmax and multiplies by the mask again. A large
    negative number added before the softmax says the same in one operator, and the sum of all
    masks is made once for a step instead of once for a layer.
``norm``
    ``LayerNorm`` is quick forward and slow backward: its sums over an axis run an element at a
    time. A sum over an axis is a product with a vector of ones, and a broadcast is a product with
    a column of ones, so here both are left to the matrix product, in both directions.
``dropout``
    A random number for each element costs more than the layer norm behind it. Here a step draws a
    few hundred random rows, and each position of each layer takes one of them at random. Every
    element is still dropped with the same probability and independently of the others in its row;
    two positions share a row with probability 1 / ``ROWS``.

On a GPU, MXNet's own operators are the quick ones: use none of these there.
"""

from __future__ import annotations

from mxnet import symbol

PIECES = ("attention", "norm", "dropout")
ROWS = 512
# Added to a masked score: exp(NEVER) is 0 in float32, and float16 can still hold it.
NEVER = -1e4


class Pass:
    """One forward pass over arrays or symbols: what every layer of it shares.

    Args:
        F: ``mxnet.ndarray`` or ``mxnet.symbol``, as ``hybrid_forward`` gets it.
        lengths: (samples,) float32, an input of the network. Constants are derived from it rather
            than from parameters, whose gradient would then pass through them.
        fast: names out of ``PIECES``.
        units, heads: of every layer.
        dropout: probability of an element to be dropped in training.
    """

    def __init__(self, F, lengths, fast, units: int, heads: int, dropout: float):
        self.F, self._fast, self._dropout = F, fast, dropout
        self.units, self.heads = units, heads
        self._context = None if F is symbol else lengths.context
        self._one = F.reshape(F.ones_like(F.slice_axis(lengths, axis=0, begin=0, end=1)), (1, 1))
        self._masks = None
        if dropout and "dropout" in fast:
            rows = F.broadcast_to(self._one, shape=(ROWS, units))
            self._masks = F.Dropout(rows, p=dropout)

    def value(self, parameter):
        """Return a parameter as an array on the inputs' context, or as a symbol."""
        return parameter.var() if self._context is None else parameter.data(self._context)

    def ones(self, rows: int, columns: int):
        """Return a constant array of ones."""
        return self.F.broadcast_to(self._one, shape=(rows, columns))

    def dense(self, x, weight, units: int, bias=None):
        """Return x (..., n) times a weight (units, n), plus a bias (units,) if there is one."""
        inputs = (x, weight) if bias is None else (x, weight, bias)
        return self.F.FullyConnected(*inputs, num_hidden=units, no_bias=bias is None, flatten=False)

    def layer(self, x, block):
        """Return a ``Dense`` block's output without its activation."""
        bias = None if block.bias is None else self.value(block.bias)
        return self.dense(x, self.value(block.weight), block.weight.shape[0], bias)

    def drop(self, x, ids):
        """Drop elements of x (samples, length, units); ids is (samples, length)."""
        F = self.F
        if not self._dropout:
            return x
        if self._masks is None:
            return F.Dropout(x, p=self._dropout)
        rows = F.take(self._masks, F.random.uniform_like(ids, low=0, high=ROWS))
        return F.elemwise_mul(x, rows)

    def norm(self, x, block, ids):
        """Normalise x (samples, length, units) over its last axis, as ``LayerNorm`` does."""
        F, units = self.F, self.units
        gamma, beta, epsilon = self.value(block.gamma), self.value(block.beta), block._epsilon
        if "norm" not in self._fast:
            return F.LayerNorm(x, gamma, beta, axis=-1, eps=epsilon)
        # Minus the mean, since a sum has nothing to do in its gradient, and a difference has.
        mean = self.dense(x, self.ones(1, units) / -units, 1)
        centred = F.elemwise_add(x, self.dense(mean, self.ones(units, 1), units))
        # x / sqrt(sum of squares + units * epsilon), which is short of a factor sqrt(units).
        flat = F.L2Normalization(F.reshape(centred, shape=(-3, 0)), eps=epsilon * units)
        ones = F.ones_like(F.expand_dims(ids, axis=-1))
        scale = self.dense(ones, F.reshape(gamma, shape=(-1, 1)) * units**0.5, units)
        shift = self.dense(ones, F.reshape(beta, shape=(-1, 1)), units)
        scaled = F.elemwise_mul(F.reshape_like(flat, centred), scale)
        return F.elemwise_add(scaled, shift)

    def embed(self, ids, embedding, part):
        """Return embedded ids (samples, length, units) with their positions, normalised."""
        F = self.F
        words, units = embedding.weight.shape
        x = F.Embedding(ids, self.value(embedding.weight), input_dim=words, output_dim=units)
        # Rows of the table for every sample: a broadcast sum would be slow in the gradient.
        steps = F.reshape(F.contrib.arange_like(ids, axis=1), shape=(1, -1))
        rows = F.broadcast_like(steps, ids, lhs_axes=(0,), rhs_axes=(0,))
        positions = F.take(self.value(part.position_weight), rows)
        x = F.elemwise_add(x * units**0.5, positions)
        return self.norm(self.drop(x, ids), part.layer_norm, ids)

    def split(self, x):
        """Return (samples, length, units) as (samples * heads, length, units / heads)."""
        x = self.F.reshape(x, shape=(0, 0, self.heads, -1))
        return self.F.reshape(self.F.transpose(x, axes=(0, 2, 1, 3)), shape=(-3, 0, 0))

    def merge(self, x):
        """Undo :meth:`split`."""
        x = self.F.reshape(x, shape=(-4, -1, self.heads, 0, 0))
        return self.F.reshape(self.F.transpose(x, axes=(0, 2, 1, 3)), shape=(0, 0, -1))

    def memory(self, x, cell):
        """Return the keys and values that an attention cell makes of x, both split."""
        return self.split(self.layer(x, cell.proj_key)), self.split(self.layer(x, cell.proj_value))

    def attend(self, query, memory, cell, mask=None):
        """Return what queries (samples, length, units) read from a memory of keys and values.

        Args:
            mask: added to the scores, (samples * heads, queries, keys): 0 or ``NEVER``.
        """
        F = self.F
        # The scale of the scores goes onto the weight, which is smaller than what it multiplies.
        weight = self.value(cell.proj_query.weight) * (self.units // self.heads) ** -0.5
        keys, values = memory
        scores = F.batch_dot(self.split(self.dense(query, weight, self.units)), keys,
                             transpose_b=True)  # fmt: skip
        if mask is not None:
            scores = F.elemwise_add(scores, mask)
        weights = F.softmax(scores, axis=-1)
        if self._dropout:
            weights = F.Dropout(weights, p=self._dropout)
        return self.merge(F.batch_dot(weights, values))

    def residual(self, x, change, norm, ids):
        """Add what a sublayer changes to its input, and normalise."""
        return self.norm(self.F.elemwise_add(self.drop(change, ids), x), norm, ids)

    def feed_forward(self, x, block, ids):
        """Return the position-wise feed-forward sublayer's output."""
        hidden = self.F.Activation(self.layer(x, block.ffn_1), act_type="relu")
        return self.residual(x, self.layer(hidden, block.ffn_2), block.layer_norm, ids)
