"""Fused loss: network and loss in one graph, with one array of (tokens, vocabulary)."""

from mxopt.methods.method import Method


class FusedLoss(Method):
    """An option of the translation recipe (``mxopt.recipes.translation.loss``)."""

    options = {"translation": ("loss",)}
