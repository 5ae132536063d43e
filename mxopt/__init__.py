"""Audited training-speed switches for MXNet: chapter 8 of the MXNet Cookbook, measured honestly."""

from mxopt import compat

compat.activate()

__version__ = "0.1.0"
