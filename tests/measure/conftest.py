import importlib
import os

import pytest

from mxopt import methods
from mxopt.core.plan import Plan
from mxopt.core.records import read_run
from mxopt.measure.__main__ import do


@pytest.fixture
def in_process(monkeypatch):
    """Runs of experiments in this process, where theirs is not what is tested: it takes seconds."""
    monkeypatch.setenv("MXOPT_RECORD", "")  # which a run sets
    monkeypatch.setenv("MXNET_ENGINE_TYPE", Plan().engine)
    monkeypatch.setattr(methods, "check_environment", lambda plan: None)

    def run(workload, plan, record, options):
        do({"workload": workload, "plan": plan.as_dict(), "options": options,
            "record": os.fspath(record)})  # fmt: skip
        return read_run(record)

    for name in ("interleave", "search"):
        # Not by its dotted name, which is that of a function too.
        monkeypatch.setattr(importlib.import_module(f"mxopt.measure.{name}"), "run", run)
