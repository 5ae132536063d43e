"""Benchmarks: mxopt and PyTorch on the same work."""

import mxopt  # noqa: F401  (before MXNet, which cannot be imported on current NumPy otherwise)
