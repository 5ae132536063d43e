"""Label-smoothed cross entropy of translations, from scores or in one graph with the network.

With smoothing e over a vocabulary of V words, the target of a word y is (1 - e) on y plus e / V on
every word (Szegedy et al., "Rethinking the Inception Architecture", 2016), and the loss of the
scores s is  lse(s) - (1 - e) s[y] - e mean(s)  with lse the logarithm of the sum of exponentials.
This needs no table of (words, vocabulary) targets, which GluonNLP's ``LabelSmoothing`` makes. For a
batch of 128 x 18 words and a vocabulary of 8,000 each pass over such a table moves 74 MB, and those
passes take half of a naive training step.
"""

from __future__ import annotations

from mxnet import gluon

from mxopt.core.errors import PlanError
from mxopt.recipes.translation.cpu_operators import real_words
from mxopt.recipes.translation.transformer import Translator

FORMS = ("one-hot", "pick")
# About the smallest normal float32; smaller probabilities are raised to it, which caps the loss.
_SMALLEST = 1.2e-38


class TranslationLoss(gluon.HybridBlock):
    """The loss of each sentence, summed over its words, from a network's scores.

    Takes scores (samples, length, vocabulary), the correct words (samples, length), and how many of
    them are not padding (samples,); padding is left out of the sum. Returns (samples,) float32.

    Args:
        vocabulary: number of words that have a score.
        smoothing: share of the target that is spread over the whole vocabulary.
        form: ``pick``, without a table of targets, or ``one-hot``, with one, as in GluonNLP.

    Attributes:
        vocabulary: as above.
        smoothing: as above.
        form: as above.

    Raises:
        PlanError: there is no such form, or the smoothing is not in [0, 1).
    """

    def __init__(self, vocabulary: int, smoothing: float = 0.1, form: str = "pick", **kwargs):
        super().__init__(**kwargs)
        if form not in FORMS:
            raise PlanError(f"form={form!r} is not a choice; take one of {', '.join(FORMS)}")
        self.vocabulary, self.smoothing, self.form = vocabulary, _checked(smoothing), form

    def hybrid_forward(self, F, scores, words, length):
        """Return the losses of the samples, (samples,)."""
        smoothing, share = self.smoothing, self.smoothing / self.vocabulary
        log_probability = F.log_softmax(scores, axis=-1)
        if self.form == "one-hot":
            table = F.one_hot(words, depth=self.vocabulary) * (1 - smoothing) + share
            return _sum_of_real(F, -F.sum(log_probability * table, axis=-1), length)
        losses = F.pick(log_probability, words, axis=-1) * (smoothing - 1)
        if smoothing:
            # A sum over an axis is fast as a product with a row of ones, and slow as F.sum.
            one = F.reshape(F.ones_like(F.slice_axis(length, axis=0, begin=0, end=1)), shape=(1, 1))
            ones = F.broadcast_to(F.cast(one, "float32"), shape=(1, self.vocabulary))
            total = F.FullyConnected(
                log_probability, ones, num_hidden=1, no_bias=True, flatten=False
            )
            losses = losses - share * F.reshape(total, shape=(0, 0))
        return _sum_of_real(F, losses, length)


class TranslatorLoss(gluon.HybridBlock):
    """A translator with its loss in the same graph, which does not keep the scores.

    Takes the translator's inputs and then the correct words (samples, target length); returns the
    losses (samples,) float32, equal to those of :class:`TranslationLoss`. Of sentences in one row,
    the words are (1, all words) and the loss is their sum, (1,).

    With mxopt's kernels one operator computes them, without an array of scores
    (:func:`mxopt.kernels.operators.cross_entropy`); otherwise :func:`_losses` does.

    Args:
        translator: a :class:`~.transformer.Translator`, which can still be used on its own.
        smoothing: as in :class:`TranslationLoss`.

    Attributes:
        translator: as above.
        smoothing: as above.

    Raises:
        PlanError: the smoothing is not in [0, 1).
    """

    def __init__(self, translator: Translator, smoothing: float = 0.1, **kwargs):
        super().__init__(**kwargs)
        self.translator, self.smoothing = translator, _checked(smoothing)

    def forward(self, source, target, source_length, *args):
        """Check lengths and gradients as the translator does, then compute."""
        self.translator.check_lengths(source, target, source_length)
        self.translator.check_gradients()
        return super().forward(source, target, source_length, *args)

    def hybrid_forward(self, F, source, target, source_length, target_length, words):
        """Return the losses of the samples, (samples,)."""
        net = self.translator
        target_length, words = F.cast(target_length, "float32"), F.cast(words, "float32")
        states = net.states(F, source, target, source_length, target_length)
        run = net.begin(F, target_length)
        real = run.real(words, target_length, net.max_target_length)
        if run.fuses_losses:
            losses = run.losses(states, net.projection, words, self.smoothing)
        else:
            losses = _losses(run, states, net.projection, words, self.smoothing)
        return F.sum(losses * real, axis=1)


def _losses(run, states, projection, words, smoothing):
    """Return the loss of each word (samples, length), by MXNet's operators.

    The gradient of the scores, (probability - target) for each word of the vocabulary, is used in
    two products only: with the projection's weight, for the gradient of the states, and with the
    states, for the gradient of the weight. The product of probabilities and weight, the expected
    row of the table, can be computed in the forward pass; then the backward pass makes no array of
    shape (words, vocabulary). The forward pass makes one: the scores, overwritten by the
    probabilities.

    Args:
        run: the forward pass.
        states: (samples, length, units).
        projection: the network's last layer.
        words: (samples, length) float32, the correct ones.
        smoothing: as of the loss.
    """
    F, fixed, weight = run.F, run.F.BlockGrad, run.value(projection.weight)
    vocabulary = projection.weight.shape[0]
    across = F.transpose(weight)
    bias = None if projection.bias is None else run.value(projection.bias)

    scores = run.product(
        fixed(states), fixed(weight), vocabulary, None if bias is None else fixed(bias)
    )
    probability = fixed(F.softmax(scores, axis=-1))
    row = run.ones(1, vocabulary) / vocabulary
    mean = run.dense(row, across, run.units)
    ones = F.ones_like(F.expand_dims(words, axis=-1))

    # The loss's gradient for each state: the expected row of the table minus the target's row.
    own = F.Embedding(words, weight, input_dim=vocabulary, output_dim=run.units)
    target_row = own * (1 - smoothing) + run.dense(ones, F.transpose(mean) * smoothing, run.units)
    pull = F.elemwise_sub(run.product(probability, across, run.units), target_row)
    slope = run.dense(F.elemwise_mul(states, pull), run.ones(1, run.units), 1)
    average = run.dense(fixed(states), fixed(mean), 1)
    # The target's score is computed again: then only the softmax reads the scores, and can
    # write the probabilities in their place.
    chosen = run.dense(F.elemwise_mul(fixed(states), fixed(own)), run.ones(1, run.units), 1)
    if bias is not None:
        column = F.reshape(bias, shape=(-1, 1))
        line = F.reshape(bias, shape=(1, -1))
        middle = run.dense(row, line, 1)
        own = F.Embedding(words, column, input_dim=vocabulary, output_dim=1)
        chosen = chosen + fixed(own)
        target_row = own * (1 - smoothing) + run.dense(ones, middle * smoothing, 1)
        slope = slope + F.elemwise_sub(run.dense(probability, line, 1), target_row)
        average = F.broadcast_add(average, F.reshape(fixed(middle), shape=(1, 1, 1)))
    slope, average, chosen = (F.reshape(x, shape=(0, 0)) for x in (slope, average, chosen))

    likely = F.maximum(F.pick(probability, words, axis=-1), _SMALLEST)
    value = smoothing * (chosen - average) - F.log(likely)
    # The value of the loss, with the gradient of the slope.
    return slope + fixed(value - slope)


def _checked(smoothing: float) -> float:
    if not 0 <= smoothing < 1:
        raise PlanError(f"smoothing={smoothing!r} must be at least 0 and less than 1")
    return smoothing


def _sum_of_real(F, losses, length):
    """Return the sums of losses (samples, words) over each sample's first ``length`` words."""
    return F.sum(losses * real_words(F, losses, F.cast(length, "float32")), axis=1)
