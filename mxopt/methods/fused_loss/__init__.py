"""Fused loss: network and loss in one graph, with one array of (tokens, vocabulary)."""

from mxopt.methods.method import Method


class FusedLoss(Method):
    """Declares the option of the translation recipe (``mxopt.recipes.translation.loss``)."""

    options = {"translation": ("loss",)}
