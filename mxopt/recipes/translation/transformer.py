"""A Transformer for translation: GluonNLP's encoder and decoder as one graph.

GluonNLP's ``NMTModel`` hybridises its parts, but the code between them, such as that of the masks,
runs in Python. :class:`Translator` has the same parts and is one hybrid block, so the forward pass
of a training step is one cached operator. It computes either with GluonNLP's cells (``fast=()``) or
with the same parameters in the operators of :mod:`mxopt.recipes.translation.cpu_operators`.

The architecture is that of Vaswani et al., "Attention Is All You Need" (2017). By default one table
is shared by both languages and the output (Press and Wolf, "Using the Output Embedding to Improve
Language Models", 2017).
"""

from __future__ import annotations

import gluonnlp
import numpy as np
from gluonnlp.model.transformer import get_transformer_encoder_decoder
from mxnet import gluon, init, nd
from mxnet.gluon import nn

from mxopt import kernels
from mxopt.core.errors import DataError, PlanError
from mxopt.kernels.operators import check_written
from mxopt.recipes.translation.cpu_operators import PIECES, Pass
from mxopt.recipes.translation.kernel_operators import BFLOAT16, KERNELS, KernelPass


class Translator(gluon.HybridBlock):
    """Score every next target word, given the source and the target words before it.

    Takes source ids (samples, source length), target ids that start with the begin-of-sentence id
    (samples, target length), and how many of each are not padding, (samples,) each; ids may be
    int32 or float32. Returns scores (samples, target length, vocabulary) float32; those at padding
    are computed from a state of zeros. With ``kernels``, sentences need no padding: all of a
    language in one row, ids (1, words), and the scores likewise.

    Args:
        encoder: GluonNLP's encoder, all layers after the embedding.
        decoder: GluonNLP's decoder, all layers between embedding and projection.
        source_embedding: an ``nn.Embedding``.
        target_embedding: an ``nn.Embedding``; may be the same block.
        projection: an ``nn.Dense`` to the vocabulary; may share the embedding's weight.
        fast: names from ``cpu_operators.PIECES``, or ``kernels``, or this and ``bfloat16``; if
            empty, GluonNLP's cells are used.

    Attributes:
        vocabulary: number of words that get a score.
        units: width of a state.
        heads: number of attention heads.
        dropout: probability of dropping an element in training.
        max_source_length: longest source, in words of the vocabulary.
        max_target_length: longest target, in words of the vocabulary.

    Raises:
        PlanError: ``fast`` has an unknown name, or ``bfloat16`` where there is no kernel for it.
        DataError: in a forward pass, if a batch is longer than the table of positions.
    """

    def __init__(
        self, encoder, decoder, source_embedding, target_embedding, projection, fast=(), **kwargs
    ):
        super().__init__(**kwargs)
        unknown = sorted(set(fast) - {*PIECES, KERNELS, BFLOAT16})
        if unknown:
            raise PlanError(
                f"fast={unknown[0]!r} is unknown; take some of {', '.join(PIECES)}, or {KERNELS}"
            )
        if KERNELS in fast:
            kernels.load()
        if BFLOAT16 in fast and not (KERNELS in fast and kernels.multiplies_bfloat16()):
            raise PlanError(
                "products in bfloat16 need mxopt's kernels (kernels=True) and a processor with "
                "AVX512-BF16 instructions (avx512_bf16 in /proc/cpuinfo); take dense='float32'"
            )
        self.fast = frozenset(fast)
        self.encoder, self.decoder = encoder, decoder
        self.source_embedding, self.target_embedding = source_embedding, target_embedding
        self.projection = projection
        self.vocabulary = projection.weight.shape[0]
        self.units = source_embedding.weight.shape[1]
        self.heads = encoder.transformer_cells[0].attention_cell._num_heads
        self.dropout = encoder._dropout
        self.max_source_length, self.max_target_length = encoder._max_length, decoder._max_length
        self._written = []  # parameters whose gradients are written, and not added to
        _complete_shapes(self, self.units)

    def forward(self, source, target, source_length, *args):
        """Check lengths and gradients, then compute."""
        self.check_lengths(source, target, source_length)
        self.check_gradients()
        return super().forward(source, target, source_length, *args)

    def write_gradients(self) -> None:
        """Let kernels read parameters without copies, for gradients that are never added to.

        Call it before the first forward pass: a graph that exists is not made again.
        """
        if KERNELS in self.fast:
            self._written = list(self.collect_params().values())

    def check_gradients(self) -> None:
        """Check that no gradient is added to if :meth:`write_gradients` was called.

        Raises:
            PlanError: one is (``grad_req="add"``); it would be written over.
        """
        check_written(self._written, "make it anew without write_gradients()")

    def cast(self, dtype):
        """Cast the parameters.

        Raises:
            PlanError: to float16, because masks and positions are computed in float32.
        """
        if dtype in ("float16", np.float16):
            raise PlanError(
                "precision='float16' casts the whole network, and the Transformer's masks and "
                "positions need float32; take precision='amp'"
            )
        super().cast(dtype)

    def check_lengths(self, source, target, source_length=None) -> None:
        """Check that the table of positions is long enough; symbols are not checked.

        Of sentences in one row, the kernels check each.

        Args:
            source: ids, (samples, source length).
            target: ids, (samples, target length).
            source_length: (samples,), if sentences may be in one row.

        Raises:
            DataError: a sentence is longer than the table.
            PlanError: sentences are in one row, and this network has no kernels.
        """
        if _packed(source, source_length):
            if KERNELS not in self.fast:
                raise PlanError("sentences without padding need mxopt's kernels; take kernels=True")
            return
        for name, ids, longest in (
            ("source", source, self.max_source_length),
            ("target", target, self.max_target_length),
        ):
            if isinstance(ids, nd.NDArray) and ids.shape[1] > longest:
                raise DataError(
                    f"a {name} of {ids.shape[1]} words is longer than the {longest} that this "
                    "network has positions for; shorten it, or make the network with a larger "
                    "max_length"
                )

    def hybrid_forward(self, F, source, target, source_length, target_length):
        """Return scores (samples, target length, vocabulary)."""
        return self.projection(self.states(F, source, target, source_length, target_length))

    def states(self, F, source, target, source_length, target_length):
        """Return the decoder's output, (samples, target length, units).

        Args:
            F: ``mxnet.ndarray`` or ``mxnet.symbol``.
            source: ids, (samples, source length).
            target: ids, (samples, target length).
            source_length: words that are not padding, (samples,).
            target_length: words that are not padding, (samples,).
        """
        # GluonNLP's masks compare float32 positions, which MXNet cannot compare with integers.
        arrays = (source, target, source_length, target_length)
        source, target, source_length, target_length = (F.cast(a, "float32") for a in arrays)
        if not self.fast:
            return self._gluonnlp_states(F, source, target, source_length, target_length)
        run = self.begin(F, source_length)
        padding = run.padding(source, source_length)
        memory = self.encode(run, source, padding, source_length)
        causal = run.causal(target, target_length)
        across = run.padded(target, padding, target_length)
        x = run.embed(target, self.target_embedding, self.decoder, target_length)
        for cell in self.decoder.transformer_cells:
            read = run.attend_self(x, cell.attention_cell_in, causal)
            x = run.residual(x, run.layer(read, cell.proj_in), cell.layer_norm_in, target)
            read = run.attend(
                x, run.memory(memory, cell.attention_cell_inter), cell.attention_cell_inter, across
            )
            x = run.residual(x, run.layer(read, cell.proj_inter), cell.layer_norm_inter, target)
            x = run.feed_forward(x, cell.ffn, target)
        return run.masked(x, target, target_length, self.max_target_length)

    def begin(self, F, lengths) -> Pass:
        """Return a forward pass with this network's settings.

        Args:
            F: ``mxnet.ndarray`` or ``mxnet.symbol``.
            lengths: (samples,) float32, an input of the network.
        """
        if KERNELS in self.fast:
            return KernelPass(
                F, lengths, self.units, self.heads, self.dropout, BFLOAT16 in self.fast,
                adds=not self._written,
            )  # fmt: skip
        return Pass(F, lengths, self.fast, self.units, self.heads, self.dropout)

    def encode(self, run: Pass, source, padding, lengths):
        """Return the encoder's output (samples, length, units).

        Args:
            run: the forward pass, from :meth:`begin`.
            source: ids, (samples, length) float32.
            padding: as ``run.padding`` returns it.
            lengths: words that are not padding, (samples,) float32.
        """
        padding = run.padded(source, padding, lengths)
        x = run.embed(source, self.source_embedding, self.encoder, lengths)
        for cell in self.encoder.transformer_cells:
            read = run.attend_self(x, cell.attention_cell, padding)
            x = run.residual(x, run.layer(read, cell.proj), cell.layer_norm, source)
            x = run.feed_forward(x, cell.ffn, source)
        return x

    def _gluonnlp_states(self, F, source, target, source_length, target_length):
        memory, _ = self.encoder(self.source_embedding(source), None, source_length)
        steps = F.reshape(F.contrib.arange_like(source, axis=1), shape=(1, -1))
        real = F.broadcast_lesser(steps, F.reshape(source_length, shape=(-1, 1)))
        states, _, _ = self.decoder(self.target_embedding(target), [memory, real], target_length)
        return states


def translator(
    vocabulary: int,
    layers: int = 3,
    units: int = 256,
    heads: int = 4,
    hidden: int = 1024,
    dropout: float = 0.1,
    max_length: int = 256,
    tied: bool = True,
    fast=PIECES,
) -> Translator:
    """Return a new translator, its parameters not yet initialised.

    Args:
        vocabulary: number of words, of both languages together if ``tied``.
        layers: number of layers of the encoder, and of the decoder.
        units: width of a state.
        heads: number of attention heads.
        hidden: width inside the feed-forward sublayers.
        dropout: probability of dropping elements of embeddings, attention weights and the output of
            every sublayer.
        max_length: longest sentence, in words of the vocabulary.
        tied: whether source, target and projection share one table.
        fast: see :class:`Translator`.

    Raises:
        PlanError: ``heads`` does not divide ``units``.
    """
    if units % heads:
        raise PlanError(f"units={units} cannot be divided among heads={heads}")
    encoder, decoder, _ = get_transformer_encoder_decoder(
        num_layers=layers,
        num_heads=heads,
        units=units,
        hidden_size=hidden,
        dropout=dropout,
        max_src_length=max_length,
        max_tgt_length=max_length,
    )
    # The embedding is multiplied by sqrt(units) later, so its elements are then of size 1.
    normal = init.Normal(units**-0.5)
    source = nn.Embedding(vocabulary, units, weight_initializer=normal)
    target = source if tied else nn.Embedding(vocabulary, units, weight_initializer=normal)
    projection = nn.Dense(
        vocabulary,
        flatten=False,
        in_units=units,
        weight_initializer=normal,
        params=source.params if tied else None,
    )
    return Translator(encoder, decoder, source, target, projection, fast)


MODEL = "transformer_en_de_512"


def transformer_en_de_512(pretrained: bool = True, fast=(), context=None, **options):
    """Return GluonNLP's ``transformer_en_de_512`` as a translator, and its two vocabularies.

    Six layers of 512 units, trained on WMT2014 by GluonNLP's authors.

    Args:
        pretrained: whether to load the weights; they are downloaded if they are not in GluonNLP's
            folder.
        fast: see :class:`Translator`.
        context: where the weights are loaded; the CPU if not given.
        options: for ``gluonnlp.model.get_model``, such as ``src_vocab`` and ``tgt_vocab``, whose
            defaults are those of ``WMT2014``.

    Returns:
        (translator, source vocabulary, target vocabulary)
    """
    if context is not None:
        options["ctx"] = context
    model, source, target = gluonnlp.model.get_model(
        MODEL,
        **{"dataset_name": "WMT2014", "pretrained": pretrained, **options},
    )
    net = Translator(
        model.encoder,
        model.decoder,
        model.src_embed[0],
        model.tgt_embed[0],
        model.tgt_proj,
        fast,
    )
    return net, source, target


def _packed(ids, lengths) -> bool:
    """Return whether several sentences are in one row of ids."""
    return isinstance(lengths, nd.NDArray) and len(ids) == 1 != len(lengths)


def _complete_shapes(net: Translator, units: int) -> None:
    """Set the shapes that GluonNLP leaves unknown until the first batch."""
    for cells in (net.encoder.transformer_cells, net.decoder.transformer_cells):
        for cell in cells:
            hidden = cell.ffn.ffn_1.weight.shape[0]
            for parameter in cell.collect_params().values():
                inputs = hidden if parameter is cell.ffn.ffn_2.weight else units
                parameter.shape = tuple(n or inputs for n in parameter.shape)
    net.decoder.layer_norm.gamma.shape = net.decoder.layer_norm.beta.shape = (units,)
