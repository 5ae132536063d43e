"""Graph rewrites: the same network in operators that a CPU computes faster."""

from mxopt.methods.graph_rewrites.optimize import REWRITES, USUAL, Optimized, optimize

__all__ = ["REWRITES", "USUAL", "Optimized", "optimize"]
