"""The Transformer as two blocks, so that encoder and decoder can be on devices of their own."""

from __future__ import annotations

from mxnet import gluon

from mxopt.core.errors import PlanError
from mxopt.recipes.translation.transformer import Translator


class _Encoder(gluon.HybridBlock):
    """Source embedding and encoder: ids and lengths to (samples, length, units)."""

    def __init__(self, net: Translator, **kwargs):
        super().__init__(**kwargs)
        self.embedding, self.encoder = net.source_embedding, net.encoder

    def hybrid_forward(self, F, source, source_length):
        source, source_length = F.cast(source, "float32"), F.cast(source_length, "float32")
        return self.encoder(self.embedding(source), None, source_length)[0]


class _Decoder(gluon.HybridBlock):
    """Target embedding, decoder and projection: scores (samples, target length, vocabulary)."""

    def __init__(self, net: Translator, **kwargs):
        super().__init__(**kwargs)
        self.embedding, self.decoder = net.target_embedding, net.decoder
        self.projection = net.projection

    def hybrid_forward(self, F, memory, target, source_length, target_length):
        arrays = (target, source_length, target_length)
        target, source_length, target_length = (F.cast(a, "float32") for a in arrays)
        steps = F.reshape(F.contrib.arange_like(memory, axis=1), shape=(1, -1))
        real = F.broadcast_lesser(steps, F.reshape(source_length, shape=(-1, 1)))
        states, _, _ = self.decoder(self.embedding(target), [memory, real], target_length)
        return self.projection(states)


class EncoderHalf(gluon.Block):
    """Source embedding and encoder of a translator.

    Takes what a :class:`~mxopt.recipes.translation.transformer.Translator` takes, and returns the
    encoder's output (samples, source length, units) and the other three inputs as they are, so that
    no gradient is asked for ids.

    Args:
        net: the translator; the half has its parameters.
    """

    def __init__(self, net: Translator, **kwargs):
        super().__init__(**kwargs)
        self.encode = _Encoder(net)

    def forward(self, source, target, source_length, target_length):
        """Return the encoder's output, target, source length and target length."""
        return self.encode(source, source_length), target, source_length, target_length


def halves(net: Translator) -> list[gluon.Block]:
    """Return encoder and decoder of a translator as blocks for two devices.

    The second takes what the first returns (:class:`EncoderHalf`), and returns scores (samples,
    target length, vocabulary).
    Both have the translator's parameters, which are initialised through them, each on its own
    context. ``mxopt.methods.model_parallel.Stages`` trains them.

    Args:
        net: a translator whose parameters are not initialised yet.

    Raises:
        PlanError: both halves would share a table of words, or ``net`` has ``fast`` operators.
    """
    if net.fast:
        raise PlanError("halves are of GluonNLP's cells; make the translator with fast=()")
    if net.source_embedding is net.target_embedding:
        raise PlanError(
            "source and target share a table of words, which cannot be on two devices; "
            "make the translator with tied=False"
        )
    return [EncoderHalf(net), _Decoder(net)]
