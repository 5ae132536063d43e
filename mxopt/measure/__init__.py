"""Measuring: child processes, interleaved repeats, ratios with intervals.

Engine, threads and AMP are settings of a process, so every run has its own process. The arms are
interleaved (A B A B ...), so that a machine that slows down slows all of them. Results are ratios
of paired runs, with a 95 % interval and the number of pairs.
"""

from mxopt.measure.ablation import Ablation, ablate
from mxopt.measure.experiment import Experiment
from mxopt.measure.files import find_experiments
from mxopt.measure.interleave import interleave, ladder, left_over
from mxopt.measure.packing import pack
from mxopt.measure.process import run
from mxopt.measure.reading import read_experiment
from mxopt.measure.statistics import Difference, Ratio, difference, ratio
from mxopt.measure.target import Reach, TimeToTarget, history, time_to_target

__all__ = [
    "Ablation",
    "Difference",
    "Experiment",
    "Ratio",
    "Reach",
    "TimeToTarget",
    "ablate",
    "difference",
    "find_experiments",
    "history",
    "interleave",
    "ladder",
    "left_over",
    "pack",
    "ratio",
    "read_experiment",
    "run",
    "time_to_target",
]
