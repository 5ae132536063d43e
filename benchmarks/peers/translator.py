"""The Transformer, with the same cells as GluonNLP's.

Written for speed in PyTorch on a CPU: the projections to queries, keys and values are one product;
masks are computed once for all layers, and added by the product that computes the scores. (With
dropout, ``scaled_dot_product_attention`` has no fast path on a CPU: it computes the same, with a
mask and a scaling of its own in each layer.)
"""

import torch
from torch import nn
from torch.nn import functional

NEVER = -1e4  # added to a masked attention score, as mxopt's network does
ROWS = 512  # of shared dropout, as in mxopt


class Rows:
    """Which words of padded sentences are computed: all, or only real ones, one after the other.

    Args:
        ids: (samples, length).
        lengths: words that are not padding, (samples,).
        unpadded: whether padding is left out.
    """

    def __init__(self, ids, lengths, unpadded):
        self.shape, self.index = ids.shape, None
        if unpadded:
            real = torch.arange(ids.shape[1]) < lengths[:, None]
            self.index = real.flatten().nonzero()[:, 0]

    def taken(self, x):
        """Return (samples, length, ...) as it is, or the real words of it, (words, ...)."""
        return x if self.index is None else x.flatten(0, 1).index_select(0, self.index)

    def padded(self, x):
        """Undo :meth:`taken`, with zeros at padding."""
        if self.index is None:
            return x
        whole = x.new_zeros(self.shape.numel(), *x.shape[1:])
        return whole.index_copy(0, self.index, x).unflatten(0, self.shape)


class Drop(nn.Module):
    """Dropout; if ``rows`` is set, each position takes one of these random rows, as in mxopt."""

    def __init__(self, probability):
        super().__init__()
        self.probability, self.rows = probability, None

    def forward(self, x):
        if self.rows is None or not self.training:
            return functional.dropout(x, self.probability, self.training)
        return x * functional.embedding(torch.randint(len(self.rows), x.shape[:-1]), self.rows)


class Attention(nn.Module):
    """Multi-head attention without biases; the output projection belongs to the cell."""

    def __init__(self, units, heads, dropout, crossed=False):
        super().__init__()
        self.heads, self.dropout, self.crossed = heads, dropout, crossed
        if crossed:
            self.proj_query = nn.Linear(units, units, bias=False)
            self.proj_key_value = nn.Linear(units, 2 * units, bias=False)
        else:
            self.proj_query_key_value = nn.Linear(units, 3 * units, bias=False)

    def forward(self, x, memory, mask, own, others):
        def split(y):
            return y.unflatten(2, (self.heads, -1)).transpose(1, 2).flatten(0, 1)

        if self.crossed:
            read = others.padded(self.proj_key_value(memory))
            parts = own.padded(self.proj_query(x)), *read.chunk(2, 2)
        else:
            parts = own.padded(self.proj_query_key_value(x)).chunk(3, 2)
        query, key, value = map(split, parts)
        scores = torch.baddbmm(mask, query, key.transpose(1, 2), alpha=query.shape[2] ** -0.5)
        weights = functional.dropout(scores.softmax(2), self.dropout, self.training)
        read = torch.bmm(weights, value)
        return own.taken(read.unflatten(0, (-1, self.heads)).transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    """The position-wise feed-forward layer, with its residual connection and norm."""

    def __init__(self, units, hidden, dropout):
        super().__init__()
        self.ffn_1, self.ffn_2 = nn.Linear(units, hidden), nn.Linear(hidden, units)
        self.layer_norm, self.drop = nn.LayerNorm(units), Drop(dropout)

    def forward(self, x):
        hidden = functional.relu(self.ffn_1(x), inplace=True)
        return self.layer_norm(self.drop(self.ffn_2(hidden)) + x)


class EncoderCell(nn.Module):
    """Self-attention and feed-forward."""

    def __init__(self, units, heads, hidden, dropout):
        super().__init__()
        self.attention_cell = Attention(units, heads, dropout)
        self.proj = nn.Linear(units, units, bias=False)
        self.layer_norm, self.drop = nn.LayerNorm(units), Drop(dropout)
        self.ffn = FeedForward(units, hidden, dropout)

    def forward(self, x, own, mask):
        read = self.proj(self.attention_cell(x, x, mask, own, own))
        return self.ffn(self.layer_norm(self.drop(read) + x))


class DecoderCell(nn.Module):
    """Self-attention, attention to the source, feed-forward."""

    def __init__(self, units, heads, hidden, dropout):
        super().__init__()
        self.attention_cell_in = Attention(units, heads, dropout)
        self.attention_cell_inter = Attention(units, heads, dropout, crossed=True)
        self.proj_in = nn.Linear(units, units, bias=False)
        self.proj_inter = nn.Linear(units, units, bias=False)
        self.layer_norm_in, self.layer_norm_inter = nn.LayerNorm(units), nn.LayerNorm(units)
        self.drop = Drop(dropout)
        self.ffn = FeedForward(units, hidden, dropout)

    def forward(self, x, own, memory, others, causal, across):
        read = self.proj_in(self.attention_cell_in(x, x, causal, own, own))
        x = self.layer_norm_in(self.drop(read) + x)
        read = self.proj_inter(self.attention_cell_inter(x, memory, across, own, others))
        return self.ffn(self.layer_norm_inter(self.drop(read) + x))


class Half(nn.Module):
    """An encoder or a decoder: positional encoding, norm of the input, cells."""

    def __init__(self, cell, layers, units, heads, hidden, dropout, longest):
        super().__init__()
        self.register_buffer("position_weight", torch.zeros(longest, units))
        self.layer_norm, self.drop = nn.LayerNorm(units), Drop(dropout)
        cells = [cell(units, heads, hidden, dropout) for _ in range(layers)]
        self.transformer_cells = nn.ModuleList(cells)

    def forward(self, x, rows, *others):
        positions = self.position_weight[: rows.shape[1]].expand(*rows.shape, -1)
        x = x * x.shape[-1] ** 0.5 + rows.taken(positions)
        x = self.layer_norm(self.drop(x))
        for cell in self.transformer_cells:
            x = cell(x, rows, *others)
        return x


class Translator(nn.Module):
    """Encoder and decoder; one embedding serves both languages and the output.

    The output has shape (samples, target length, vocabulary), or, ``unpadded``, (real target words,
    vocabulary).
    """

    def __init__(
        self, vocabulary, layers, units, heads, hidden, dropout, longest, shared_dropout=False,
        unpadded=False,
    ):  # fmt: skip
        super().__init__()
        sizes = (layers, units, heads, hidden, dropout, longest)
        self.heads, self.dropout, self.shared_dropout = heads, dropout, shared_dropout
        self.unpadded = unpadded
        self.encoder, self.decoder = Half(EncoderCell, *sizes), Half(DecoderCell, *sizes)
        self.source_embedding = self.target_embedding = nn.Embedding(vocabulary, units)
        self.projection = nn.Linear(units, vocabulary)
        self.projection.weight = self.source_embedding.weight

    def forward(self, *inputs):
        return self.projection(self.states(*inputs))

    def states(self, source, target, source_length, target_length):
        """Return the decoder's output, (samples, target length, units) or (real words, units).

        Args:
            source: ids, (samples, source length).
            target: ids, (samples, target length).
            source_length: words that are not padding, (samples,).
            target_length: words that are not padding, (samples,).
        """
        if self.shared_dropout and self.training:
            rows = functional.dropout(torch.ones(ROWS, self.projection.in_features), self.dropout)
            for module in self.modules():
                if isinstance(module, Drop):
                    module.rows = rows
        steps = torch.arange(source.shape[1])
        padding = (steps >= source_length[:, None]).float() * NEVER
        padding = padding[:, None].repeat_interleave(self.heads, 0)
        steps = torch.arange(target.shape[1])
        causal = (steps > steps[:, None]).float()[None] * NEVER
        sources = Rows(source, source_length, self.unpadded)
        targets = Rows(target, target_length, self.unpadded)
        memory = self.encoder(self.source_embedding(sources.taken(source)), sources, padding)
        words = self.target_embedding(targets.taken(target))
        return self.decoder(words, targets, memory, sources, causal, padding)


class ProjectedLoss(torch.autograd.Function):
    """Projection to the vocabulary and smoothed cross-entropy in one, as mxopt's fused loss.

    The gradient is computed with the loss and replaces the scores, which then need not be kept.
    """

    @staticmethod
    def forward(ctx, states, weight, bias, words, smoothing):
        """Return the summed loss.

        Args:
            ctx: keeps the gradients.
            states: the decoder's output at the words, (n, units).
            weight: of the projection, (vocabulary, units).
            bias: of the projection, (vocabulary,).
            words: the right words, (n,).
            smoothing: share of the target that is spread over the whole vocabulary.
        """
        scores = torch.addmm(bias, states, weight.t()).float()  # they are bfloat16 under autocast
        count = scores.shape[1]
        total, right = scores.logsumexp(1), scores.gather(1, words[:, None])[:, 0]
        loss = (total - (1 - smoothing) * right - smoothing / count * scores.sum(1)).sum()
        gradient = scores.sub_(total[:, None]).exp_().sub_(smoothing / count)
        gradient[torch.arange(len(words)), words] -= 1 - smoothing
        ctx.save_for_backward(gradient @ weight, gradient.t() @ states, gradient.sum(0))
        return loss

    @staticmethod
    def backward(ctx, outer):
        """Return the gradients of the states, the weight and the bias.

        Args:
            ctx: has the gradients of the loss.
            outer: gradient of what follows, a number.
        """
        return *(outer * gradient for gradient in ctx.saved_tensors), None, None
