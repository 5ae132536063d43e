"""Engine: how MXNet orders operators, and how many of them run at the same time.

MXNet enqueues an operator and returns at once; its engine runs the queue. ``NaiveEngine`` runs each
operator inside the call, ``ThreadedEnginePerDevice`` on a pool of threads for each device. The
engine is read from the environment once, when MXNet loads. A clock that is stopped before the queue
is empty measures only the enqueueing: :func:`timed` waits at the start and at the end.
"""

from mxopt.methods.method import Method, exports


class Engine(Method):
    """Sets ``MXNET_ENGINE_TYPE`` and ``MXNET_CPU_WORKER_NTHREADS``.

    The names are those of MXNet's "Environment Variables" page (1.9.1).
    """

    switches = ("engine", "engine_threads")
    options = {"mxopt.chapter.dispatch_workloads:dispatched": ("bulk",)}

    @classmethod
    def environment(cls, plan):
        """Return the variables of the engine."""
        variables = {"MXNET_ENGINE_TYPE": plan.engine}
        if plan.engine_threads is not None:
            variables["MXNET_CPU_WORKER_NTHREADS"] = str(plan.engine_threads)
        return variables


__getattr__ = exports(__name__, timed="clock", Stopwatch="clock")
