"""CPU operators: the Transformer's attention, norms and dropout in operators fast on a CPU."""

from mxopt.methods.method import Method


class CpuOperators(Method):
    """Declares the option of the recipe (``mxopt.recipes.translation.cpu_operators``)."""

    options = {"translation": ("cpu_operators",)}
