"""mxopt beside what a user would pick instead, on the same work."""

import mxopt  # noqa: F401  (before MXNet, which would not import on today's NumPy)
