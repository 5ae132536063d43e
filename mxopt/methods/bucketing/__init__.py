"""Bucketing: sentences of similar length share a batch, and less of it is padding."""

from mxopt.methods.method import Method, exports


class Bucketing(Method):
    """Its loader is made by the loop (:mod:`mxopt.methods.bucketing.sequences`)."""

    switches = ("bucketing",)


__getattr__ = exports(__name__, SentenceLoader="sequences", PairBatch="sequences")
