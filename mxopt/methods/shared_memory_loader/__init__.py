"""Shared memory loader: batches made in reused memory, by monitored worker processes."""

from mxopt.methods.method import Method, exports


class SharedMemoryLoader(Method):
    """Declares the switch; the input pipeline makes the loaders."""

    switches = ("loader",)


__getattr__ = exports(__name__, Workers="workers", TakeRows="rows")
