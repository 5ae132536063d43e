"""Compile the operators and print where the library is: ``python -m mxopt.kernels``."""

from mxopt.kernels.build import build

print(build())
