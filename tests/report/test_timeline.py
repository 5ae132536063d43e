"""Traces of MXNet's profiler: which operator ran when, on which thread."""

import json
import os
import subprocess
import sys

import pytest

from mxopt.core.errors import RecordError
from mxopt.report import timeline
from mxopt.report.timeline import Span

# Two chains of products that do not depend on each other.
PROGRAM = """
import sys
import mxopt
import mxnet as mx
mx.profiler.set_config(filename=sys.argv[1], profile_imperative=True)
chains = [mx.nd.ones((150, 150)) / 150 for _ in range(2)]
mx.nd.waitall()
mx.profiler.set_state("run")
for _ in range(4):
    chains = [mx.nd.dot(chain, chain) for chain in chains]
mx.nd.waitall()
mx.profiler.set_state("stop")
mx.profiler.dump()
"""


@pytest.fixture(scope="module", params=["NaiveEngine", "ThreadedEnginePerDevice"])
def traced(request, tmp_path_factory):
    file = tmp_path_factory.mktemp("trace") / "trace.json"
    variables = {"MXNET_ENGINE_TYPE": request.param, "OMP_NUM_THREADS": "1",
                 "MXNET_CPU_WORKER_NTHREADS": "2"}  # fmt: skip
    command = [sys.executable, "-c", PROGRAM, str(file)]
    subprocess.run(command, check=True, env={**os.environ, **variables}, capture_output=True)
    return request.param, timeline.read(file)


def test_every_operator_of_a_real_trace_is_found(traced):
    engine, spans = traced
    products = [span for span in spans if span.name == "dot"]
    assert len(products) == 8
    assert spans[0].begin == 0
    assert all(0 <= span.begin <= span.end < 60 for span in spans)
    threads = {span.thread for span in products}
    assert threads == {0} if engine == "NaiveEngine" else threads <= {0, 1, 2}


def test_operators_on_one_thread_do_not_overlap(traced):
    _, spans = traced
    for thread in {span.thread for span in spans}:
        own = [span for span in spans if span.thread == thread]
        assert all(a.end <= b.begin for a, b in zip(own, own[1:]))


def trace(path, *events):
    marks = [
        {"cat": "operator", "name": name, "tid": thread, "ph": phase, "ts": time, "pid": 0}
        for name, thread, phase, time in events
    ]
    path.write_text(json.dumps({"traceEvents": [{"ph": "M", "name": "process_name"}, *marks]}))
    return path


def test_begins_and_ends_are_matched_by_thread(tmp_path):
    path = trace(
        tmp_path / "a.json",
        *[("dot", 77, "B", 1000), ("dot", 55, "B", 1500), ("dot", 77, "E", 3000)],
        *[("[add]", 77, "B", 3000), ("[add]", 77, "E", 3500), ("dot", 55, "E", 4000)],
    )
    assert timeline.read(path) == [
        Span("dot", 0, 0, 0.002),
        Span("dot", 1, 0.0005, 0.003),
        Span("add", 0, 0.002, 0.0025),
    ]


def test_nested_operators_count_once():
    spans = [Span("outer", 0, 0, 1), Span("inner", 0, 0.2, 0.4), Span("next", 0, 0.9, 1.5)]
    assert timeline.busy(spans) == {0: pytest.approx(1.5)}


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"traceEvents": [1]}'])
def test_another_file_is_refused(tmp_path, text):
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(RecordError, match=r"is not a trace of MXNet's profiler .*dump\(\)"):
        timeline.read(tmp_path / "a.json")


def test_a_trace_without_operators_is_refused(tmp_path):
    with pytest.raises(RecordError, match="holds no operator; call"):
        timeline.read(trace(tmp_path / "a.json"))


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(RecordError, match="cannot read the trace"):
        timeline.read(tmp_path / "a.json")


def test_the_plot_has_a_row_for_each_thread_and_bars_to_scale():
    one = [Span("dot", 0, 0, 0.010), Span("dot", 0, 0.010, 0.020)]
    two = [Span("dot", 0, 0, 0.010), Span("add", 1, 0.002, 0.010)]
    figure = timeline.plot({"before": one, "after": two})
    before, after = figure.axes
    assert [text.get_text() for text in after.get_yticklabels()] == ["thread 1", "thread 2"]
    assert before.get_title(loc="left") == "before: 20 ms, 1.00 operators at a time"
    assert after.get_title(loc="left") == "after: 10 ms, 1.80 operators at a time"
    assert before.get_xlim() == (0, 20)
    assert [bar.get_width() for bar in after.patches] == pytest.approx([10, 8])
    dot, add = after.patches
    assert dot.get_facecolor() == before.patches[0].get_facecolor() != add.get_facecolor()
    part = timeline.plot({"before": one}, begin=5, length=10)
    assert part.axes[0].get_xlim() == (5, 15)
