"""Dense layers that multiply in bfloat16, by an operator of our own (:mod:`mxopt.kernels`)."""

from mxopt.methods.method import Method


class Bfloat16Dense(Method):
    """An option of the recipe ``translation``."""

    options = {"translation": ("dense",)}
