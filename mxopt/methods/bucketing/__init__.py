"""Bucketing: batches of sentences of similar length, to save padding."""

from mxopt.methods.method import Method, exports


class Bucketing(Method):
    """Declares the switch; the training loop makes the loader (``sequences``)."""

    switches = ("bucketing",)


__getattr__ = exports(__name__, SentenceLoader="sequences", PairBatch="sequences")
