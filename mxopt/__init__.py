"""Audited training-speed switches for MXNet: chapter 8 of the MXNet Cookbook, measured honestly."""

from mxopt import compat
from mxopt.plan import Plan

compat.activate()

__all__ = ["Plan", "compat"]
__version__ = "0.1.0"
