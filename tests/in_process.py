"""Runs of experiments in this process, where theirs is not what is tested: one takes seconds."""

import importlib
import os
from contextlib import contextmanager

import pytest

from mxopt import methods
from mxopt.core.plan import Plan
from mxopt.core.records import read_run
from mxopt.measure.__main__ import do


def _run(workload, plan, record, options=None):
    do({"workload": workload, "plan": plan.as_dict(), "options": options or {},
        "record": os.fspath(record)})  # fmt: skip
    return read_run(record)


@contextmanager
def runs_in_process():
    """Let measurements and searches compute here what they would start processes for."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MXOPT_RECORD", "")  # which a run sets
        patch.setenv("MXNET_ENGINE_TYPE", Plan().engine)
        patch.setattr(methods, "check_environment", lambda plan: None)
        for name in ("batch_size", "interleave", "search"):
            # Not by its dotted name, which is that of a function too.
            patch.setattr(importlib.import_module(f"mxopt.measure.{name}"), "run", _run)
        yield
