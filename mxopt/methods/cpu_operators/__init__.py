"""CPU operators: the Transformer's attention, norms and dropout in operators that suit a CPU."""

from mxopt.methods.method import Method


class CpuOperators(Method):
    """An option of the translation recipe (``mxopt.recipes.translation.cpu_operators``)."""

    options = {"translation": ("cpu_operators",)}
