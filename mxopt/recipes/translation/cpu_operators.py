"""A Transformer layer computed by operators that are fast on a CPU in MXNet 1.9.1.

The parameters are those of GluonNLP's cells and the results are equal (each piece is tested against
GluonNLP). A profile of one training step shows why the operators differ:

``attention``
    GluonNLP fills masked scores, takes the softmax and multiplies by the mask again. Adding a large
    negative number before the softmax has the same effect in one operator, and the sum of all masks
    is computed once per step instead of once per layer.
``norm``
    ``LayerNorm`` is fast forward and slow backward: its sums over an axis process one element at a
    time. A sum over an axis is a product with a vector of ones, and a broadcast is a product with a
    column of ones, so here matrix products compute both, forward and backward.
``dropout``
    A random number for each element costs more than the layer norm that follows. Here a step draws
    a few hundred random rows, and each position of each layer takes one of them at random. Every
    element is still dropped with the same probability and independently of the others in its row;
    two positions share a row with probability 1 / ``ROWS``.

On a GPU MXNet's own operators are faster: use none of these there.
"""

from __future__ import annotations

from mxnet import symbol

PIECES = ("attention", "norm", "dropout")
ROWS = 512
# Added to a masked score: exp(NEVER) is 0 in float32, and NEVER fits into float16.
NEVER = -1e4


def real_words(F, ids, lengths):
    """Return 1 for words and 0 for padding, (samples, length).

    Args:
        F: ``mxnet.ndarray`` or ``mxnet.symbol``.
        ids: (samples, length); only its shape is used.
        lengths: words that are not padding, (samples,) float32.
    """
    steps = F.reshape(F.contrib.arange_like(ids, axis=1), shape=(1, -1))
    return F.broadcast_lesser(steps, F.reshape(lengths, shape=(-1, 1)))


class Pass:
    """One forward pass over arrays or symbols, with the values that all its layers share.

    Args:
        F: ``mxnet.ndarray`` or ``mxnet.symbol``, as ``hybrid_forward`` gets it.
        lengths: (samples,) float32, an input of the network. Constants are derived from it and not
            from parameters, because gradients would flow through them.
        fast: names from ``PIECES``.
        units: width of every layer.
        heads: number of attention heads of every layer.
        dropout: probability of dropping an element in training.

    Attributes:
        F: as above.
        units: as above.
        heads: as above.
        fuses_losses: whether a method ``losses`` computes the loss of each word.
    """

    fuses_losses = False

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

    def padding(self, source, lengths):
        """Return the mask added to the scores of source words: (samples * heads, 1, length).

        Args:
            source: ids, (samples, length) float32.
            lengths: words that are not padding, (samples,) float32.
        """
        F = self.F
        steps = F.reshape(F.contrib.arange_like(source, axis=1), shape=(1, -1))
        beyond = F.broadcast_greater_equal(steps, F.reshape(lengths, shape=(-1, 1)))
        return F.expand_dims(F.repeat(beyond * NEVER, repeats=self.heads, axis=0), axis=1)

    def padded(self, queries, padding, lengths):
        """Return a mask of padding for each query: (samples * heads, queries, length).

        Args:
            queries: ids, (samples, queries) float32; only their shape is used.
            padding: as :meth:`padding` returns it.
            lengths: queries that are not padding, (samples,) float32; not used here.
        """
        F = self.F
        heads = F.repeat(F.zeros_like(queries), repeats=self.heads, axis=0)
        return F.broadcast_add(F.expand_dims(heads, axis=2), padding)

    def causal(self, target, lengths):
        """Return the mask that hides later words, and with them padding, which comes last.

        Args:
            target: ids, (samples, length) float32.
            lengths: words that are not padding, (samples,) float32; not used here.

        Returns:
            (samples * heads, length, length).
        """
        F = self.F
        steps = F.contrib.arange_like(target, axis=1)
        later = F.broadcast_greater(F.reshape(steps, (1, -1)), F.reshape(steps, (-1, 1)))
        heads = F.repeat(F.zeros_like(target), repeats=self.heads, axis=0)
        return F.broadcast_add(F.expand_dims(heads, axis=1), F.expand_dims(later * NEVER, axis=0))

    def ones(self, rows: int, columns: int):
        """Return a constant array of ones, (rows, columns) float32.

        Args:
            rows: number of rows.
            columns: number of columns.
        """
        return self.F.broadcast_to(self._one, shape=(rows, columns))

    def dense(self, x, weight, units: int, bias=None):
        """Return the product of x and a weight, plus a bias if there is one: (..., units).

        Args:
            x: (..., n).
            weight: (units, n).
            units: width of the result.
            bias: (units,), or None.
        """
        inputs = (x, weight) if bias is None else (x, weight, bias)
        return self.F.FullyConnected(*inputs, num_hidden=units, no_bias=bias is None, flatten=False)

    def product(self, x, weight, units: int, bias=None):
        """Return the same as :meth:`dense`; for large products, whose precision may be chosen.

        Args:
            x: (..., n).
            weight: (units, n).
            units: width of the result.
            bias: (units,), or None.
        """
        return self.dense(x, weight, units, bias)

    def layer(self, x, block):
        """Return the output of a ``Dense`` block without its activation.

        Args:
            x: the input, (..., n).
            block: an ``nn.Dense``.
        """
        bias = None if block.bias is None else self.value(block.bias)
        return self.product(x, self.value(block.weight), block.weight.shape[0], bias)

    def drop(self, x, ids):
        """Return x with dropout applied.

        Args:
            x: (samples, length, units).
            ids: any array (samples, length); only its shape is used.
        """
        F = self.F
        if not self._dropout:
            return x
        if self._masks is None:
            return F.Dropout(x, p=self._dropout)
        rows = F.take(self._masks, F.random.uniform_like(ids, low=0, high=ROWS))
        return F.elemwise_mul(x, rows)

    def norm(self, x, block, ids):
        """Normalise x over its last axis, as ``LayerNorm`` does.

        Args:
            x: (samples, length, units).
            block: an ``nn.LayerNorm``, for its parameters.
            ids: any array (samples, length); only its shape is used.
        """
        F, units = self.F, self.units
        gamma, beta, epsilon = self.value(block.gamma), self.value(block.beta), block._epsilon
        if "norm" not in self._fast:
            return F.LayerNorm(x, gamma, beta, axis=-1, eps=epsilon)
        # The negative mean: the gradient of a sum needs no computation, that of a difference does.
        mean = self.dense(x, self.ones(1, units) / -units, 1)
        centred = F.elemwise_add(x, self.dense(mean, self.ones(units, 1), units))
        # x / sqrt(sum of squares + units * epsilon); the factor sqrt(units) follows in the scale.
        flat = F.L2Normalization(F.reshape(centred, shape=(-3, 0)), eps=epsilon * units)
        ones = F.ones_like(F.expand_dims(ids, axis=-1))
        scale = self.dense(ones, F.reshape(gamma, shape=(-1, 1)) * units**0.5, units)
        shift = self.dense(ones, F.reshape(beta, shape=(-1, 1)), units)
        scaled = F.elemwise_mul(F.reshape_like(flat, centred), scale)
        return F.elemwise_add(scaled, shift)

    def positions(self, ids, lengths, longest: int):
        """Return the position of each word in its sentence, (samples, length).

        Args:
            ids: (samples, length) float32.
            lengths: words that are not padding, (samples,) float32; not used here.
            longest: number of positions that the network has; not used here.
        """
        F = self.F
        # Each sample looks up the rows of its positions: the gradient of a broadcast sum is slow.
        steps = F.reshape(F.contrib.arange_like(ids, axis=1), shape=(1, -1))
        return F.broadcast_like(steps, ids, lhs_axes=(0,), rhs_axes=(0,))

    def real(self, ids, lengths, longest: int):
        """Return 1 for words and 0 for padding, (samples, length).

        Args:
            ids: as for :meth:`positions`.
            lengths: words that are not padding, (samples,) float32.
            longest: as for :meth:`positions`.
        """
        return real_words(self.F, ids, lengths)

    def masked(self, x, ids, lengths, longest: int):
        """Return x, (samples, length, units), with zeros at padding.

        Args:
            x: of that shape.
            ids: as for :meth:`positions`.
            lengths: words that are not padding, (samples,) float32.
            longest: as for :meth:`positions`.
        """
        return self.F.SequenceMask(x, lengths, use_sequence_length=True, axis=1)

    def embed(self, ids, embedding, part, lengths):
        """Return the sum of word and position embeddings, normalised: (samples, length, units).

        Args:
            ids: (samples, length) float32.
            embedding: an ``nn.Embedding``.
            part: GluonNLP's encoder or decoder, for its positions and layer norm.
            lengths: words that are not padding, (samples,) float32.
        """
        F = self.F
        words, units = embedding.weight.shape
        x = F.Embedding(ids, self.value(embedding.weight), input_dim=words, output_dim=units)
        rows = self.positions(ids, lengths, part.position_weight.shape[0])
        positions = F.take(self.value(part.position_weight), rows)
        x = F.elemwise_add(x * units**0.5, positions)
        return self.dropped_norm(x, part.layer_norm, ids)

    def dropped_norm(self, x, block, ids):
        """Apply dropout, and normalise over the last axis.

        Args:
            x: (samples, length, units).
            block: an ``nn.LayerNorm``, for its parameters.
            ids: any array (samples, length); only its shape is used.
        """
        return self.norm(self.drop(x, ids), block, ids)

    def split(self, x):
        """Return (samples, length, units) as (samples * heads, length, units / heads)."""
        x = self.F.reshape(x, shape=(0, 0, self.heads, -1))
        return self.F.reshape(self.F.transpose(x, axes=(0, 2, 1, 3)), shape=(-3, 0, 0))

    def merge(self, x):
        """Undo :meth:`split`."""
        x = self.F.reshape(x, shape=(-4, -1, self.heads, 0, 0))
        return self.F.reshape(self.F.transpose(x, axes=(0, 2, 1, 3)), shape=(0, 0, -1))

    def memory(self, x, cell):
        """Return the keys and values of an attention cell, both as :meth:`split` returns them.

        Args:
            x: (samples, length, units).
            cell: one of GluonNLP's attention cells.
        """
        return self.split(self.layer(x, cell.proj_key)), self.split(self.layer(x, cell.proj_value))

    def attend(self, query, memory, cell, mask=None):
        """Return the output of an attention cell, (samples, queries, units).

        Args:
            query: (samples, queries, units).
            memory: keys and values, as :meth:`memory` returns them.
            cell: one of GluonNLP's attention cells.
            mask: added to the scores, (samples * heads, queries, keys): 0 or ``NEVER``, from
                :meth:`padded` or :meth:`causal`.
        """
        F = self.F
        # The scores are scaled by scaling the weight, which is smaller than the queries.
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

    def attend_self(self, x, cell, mask=None):
        """Return the output of an attention cell whose queries and memory are of the same words.

        Args:
            x: (samples, length, units).
            cell: one of GluonNLP's attention cells.
            mask: as for :meth:`attend`.
        """
        return self.attend(x, self.memory(x, cell), cell, mask)

    def residual(self, x, change, norm, ids):
        """Add the output of a sublayer to its input, and normalise.

        Args:
            x: the sublayer's input, (samples, length, units).
            change: the sublayer's output, of the same shape.
            norm: an ``nn.LayerNorm``, for its parameters.
            ids: any array (samples, length); only its shape is used.
        """
        return self.norm(self.F.elemwise_add(self.drop(change, ids), x), norm, ids)

    def feed_forward(self, x, block, ids):
        """Return the output of the position-wise feed-forward sublayer.

        Args:
            x: (samples, length, units).
            block: GluonNLP's ``PositionwiseFFN``, for its parameters.
            ids: any array (samples, length); only its shape is used.
        """
        hidden = self.F.Activation(self.layer(x, block.ffn_1), act_type="relu")
        return self.residual(x, self.layer(hidden, block.ffn_2), block.layer_norm, ids)
