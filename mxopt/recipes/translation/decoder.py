"""A translator's decoder, word by word: the state of the hypotheses of a beam search."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from mxnet import nd

from mxopt.recipes.translation.cpu_operators import Pass
from mxopt.recipes.translation.transformer import Translator


class Decoder:
    """The decoder's state after some words, for a batch of sources with some beams each."""

    def __init__(self, net: Translator, sources: list[list[int]]):
        context = net.projection.weight.list_ctx()[0]
        lengths = np.array([len(source) for source in sources], np.float32)
        ids = np.zeros((len(sources), int(lengths.max())), np.float32)
        for row, source in zip(ids, sources):
            row[: len(source)] = source
        ids, lengths = nd.array(ids, ctx=context), nd.array(lengths, ctx=context)
        net.check_lengths(ids, ids[:, :1])
        # No dropout, and MXNet's own layer norm, which is the faster one in a forward pass.
        self._run = Pass(nd, lengths, (), net.units, net.heads, dropout=0)
        self._net, self._context = net, context
        self._padding = self._run.padding(ids, lengths)
        memory = net.encode(self._run, ids, self._padding, lengths)
        cells = net.decoder.transformer_cells
        self._memory = [self._run.memory(memory, cell.attention_cell_inter) for cell in cells]
        self._past: list = [None] * len(cells)
        self._length = 0

    def step(self, words: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Append one word to each hypothesis and return the likeliest words after it.

        Args:
            words: ids, (rows, beam).
            count: number of words to return, at most.

        Returns:
            Ids and log-probabilities, both (rows, beam, count).
        """
        run, net = self._run, self._net
        rows, beam = words.shape
        ids = nd.array(words, ctx=self._context)
        table = run.value(net.decoder.position_weight)
        vectors = run.value(net.target_embedding.weight)
        x = nd.take(vectors, ids) * net.units**0.5
        x = nd.broadcast_add(x, table[self._length].reshape((1, 1, -1)))
        x = run.norm(x, net.decoder.layer_norm, ids)
        padding = nd.broadcast_axis(self._padding, axis=1, size=beam)
        for layer, cell in enumerate(net.decoder.transformer_cells):
            # Each hypothesis attends to its own words, so here it is a sample of one word.
            alone = x.reshape((rows * beam, 1, -1))
            own = run.memory(alone, cell.attention_cell_in)
            if self._past[layer]:
                own = [nd.concat(old, new, dim=1) for old, new in zip(self._past[layer], own)]
            self._past[layer] = own
            read = run.attend(alone, own, cell.attention_cell_in).reshape((rows, beam, -1))
            x = run.residual(x, run.layer(read, cell.proj_in), cell.layer_norm_in, ids)
            # All hypotheses of a sentence attend to the same source, as words of one sample.
            read = run.attend(x, self._memory[layer], cell.attention_cell_inter, padding)
            x = run.residual(x, run.layer(read, cell.proj_inter), cell.layer_norm_inter, ids)
            x = run.feed_forward(x, cell.ffn, ids)
        self._length += 1
        self._beam = beam
        logs = nd.log_softmax(run.layer(x, net.projection), axis=-1)
        count = min(count, net.vocabulary)
        logs, ids = nd.topk(logs, k=count, axis=-1, ret_typ="both", dtype="int32")
        logs, ids = logs.asnumpy().astype(np.float64), ids.asnumpy()
        # In the order of the vocabulary: of equal scores, always the same one comes first.
        order = ids.argsort(axis=-1)
        return np.take_along_axis(ids, order, axis=-1), np.take_along_axis(logs, order, axis=-1)

    def keep(self, rows: np.ndarray, parents: np.ndarray) -> None:
        """Keep only these rows, and in each the hypotheses that were at these beams.

        Args:
            rows: indices of rows.
            parents: indices of beams before, (rows, beam).
        """
        if not len(rows):
            return
        hypotheses = (rows[:, None] * self._beam + parents).reshape(-1)
        self._past = [self._take(arrays, hypotheses) for arrays in self._past]
        if len(rows) * self._net.heads < len(self._padding):
            self._memory = [self._take(arrays, rows) for arrays in self._memory]
            [self._padding] = self._take([self._padding], rows)

    def _take(self, arrays: Iterable, rows: np.ndarray) -> list:
        """Return these rows of arrays (rows * heads, length, ...)."""
        heads = self._net.heads
        if len(rows) * heads == len(arrays[0]) and (rows == np.arange(len(rows))).all():
            return arrays
        index = (rows[:, None] * heads + np.arange(heads)).reshape(-1)
        index = nd.array(index, ctx=self._context, dtype="int32")
        return [nd.take(array, index) for array in arrays]
