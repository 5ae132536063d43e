"""The Transformer, with the same cells as GluonNLP's."""

import torch
from torch import nn
from torch.nn import functional

NEVER = -1e4  # added to a masked attention score, as mxopt's network does


class Attention(nn.Module):
    """Multi-head attention without biases; the output projection belongs to the cell."""

    def __init__(self, units, heads, dropout):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.proj_query = nn.Linear(units, units, bias=False)
        self.proj_key = nn.Linear(units, units, bias=False)
        self.proj_value = nn.Linear(units, units, bias=False)

    def forward(self, x, memory, mask):
        def split(y):
            return y.unflatten(2, (self.heads, -1)).transpose(1, 2)

        query, key, value = self.proj_query(x), self.proj_key(memory), self.proj_value(memory)
        dropout = self.dropout if self.training else 0.0
        read = functional.scaled_dot_product_attention(
            split(query), split(key), split(value), attn_mask=mask, dropout_p=dropout
        )
        return read.transpose(1, 2).flatten(2)


class FeedForward(nn.Module):
    """The position-wise feed-forward layer, with its residual connection and norm."""

    def __init__(self, units, hidden, dropout):
        super().__init__()
        self.ffn_1, self.ffn_2 = nn.Linear(units, hidden), nn.Linear(hidden, units)
        self.layer_norm, self.drop = nn.LayerNorm(units), nn.Dropout(dropout)

    def forward(self, x):
        return self.layer_norm(self.drop(self.ffn_2(functional.relu(self.ffn_1(x)))) + x)


class EncoderCell(nn.Module):
    """Self-attention and feed-forward."""

    def __init__(self, units, heads, hidden, dropout):
        super().__init__()
        self.attention_cell = Attention(units, heads, dropout)
        self.proj = nn.Linear(units, units, bias=False)
        self.layer_norm, self.drop = nn.LayerNorm(units), nn.Dropout(dropout)
        self.ffn = FeedForward(units, hidden, dropout)

    def forward(self, x, mask):
        read = self.proj(self.attention_cell(x, x, mask))
        return self.ffn(self.layer_norm(self.drop(read) + x))


class DecoderCell(nn.Module):
    """Self-attention, attention to the source, feed-forward."""

    def __init__(self, units, heads, hidden, dropout):
        super().__init__()
        self.attention_cell_in = Attention(units, heads, dropout)
        self.attention_cell_inter = Attention(units, heads, dropout)
        self.proj_in = nn.Linear(units, units, bias=False)
        self.proj_inter = nn.Linear(units, units, bias=False)
        self.layer_norm_in, self.layer_norm_inter = nn.LayerNorm(units), nn.LayerNorm(units)
        self.drop = nn.Dropout(dropout)
        self.ffn = FeedForward(units, hidden, dropout)

    def forward(self, x, memory, causal, across):
        read = self.proj_in(self.attention_cell_in(x, x, causal))
        x = self.layer_norm_in(self.drop(read) + x)
        read = self.proj_inter(self.attention_cell_inter(x, memory, across))
        return self.ffn(self.layer_norm_inter(self.drop(read) + x))


class Half(nn.Module):
    """An encoder or a decoder: positional encoding, norm of the input, cells."""

    def __init__(self, cell, layers, units, heads, hidden, dropout, longest):
        super().__init__()
        self.register_buffer("position_weight", torch.zeros(longest, units))
        self.layer_norm, self.drop = nn.LayerNorm(units), nn.Dropout(dropout)
        cells = [cell(units, heads, hidden, dropout) for _ in range(layers)]
        self.transformer_cells = nn.ModuleList(cells)

    def forward(self, x, *others):
        x = x * x.shape[2] ** 0.5 + self.position_weight[: x.shape[1]]
        x = self.layer_norm(self.drop(x))
        for cell in self.transformer_cells:
            x = cell(x, *others)
        return x


class Translator(nn.Module):
    """Encoder and decoder; one embedding serves both languages and the output.

    The output has shape (samples, target length, vocabulary).
    """

    def __init__(self, vocabulary, layers, units, heads, hidden, dropout, longest):
        super().__init__()
        sizes = (layers, units, heads, hidden, dropout, longest)
        self.encoder, self.decoder = Half(EncoderCell, *sizes), Half(DecoderCell, *sizes)
        self.source_embedding = self.target_embedding = nn.Embedding(vocabulary, units)
        self.projection = nn.Linear(units, vocabulary)
        self.projection.weight = self.source_embedding.weight

    def forward(self, source, target, source_length, target_length):
        steps = torch.arange(source.shape[1])
        padding = (steps >= source_length[:, None])[:, None, None].float() * NEVER
        steps = torch.arange(target.shape[1])
        causal = (steps > steps[:, None]).float() * NEVER
        memory = self.encoder(self.source_embedding(source), padding)
        states = self.decoder(self.target_embedding(target), memory, causal, padding)
        return self.projection(states)
