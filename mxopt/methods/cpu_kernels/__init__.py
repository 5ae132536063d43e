"""CPU kernels: operators of our own, compiled for the machine (:mod:`mxopt.kernels`)."""

from mxopt.methods.method import Method


class CpuKernels(Method):
    """An option of the recipe ``translation``; for MobileNetV2 it is a rewrite of the graph."""

    options = {"translation": ("kernels", "packed")}
