"""Data parallelism: each device computes the gradient of its part of a batch."""

from mxopt.methods.method import Method, exports


class DataParallel(Method):
    """Its steps are the loop's own: contexts, split, gradients, sum, update."""

    switches = ("devices",)


__getattr__ = exports(
    __name__,
    **dict.fromkeys(
        ("contexts", "split_sizes", "split_and_load", "gather", "mark_idle", "scaled", "Share"),
        "parallel",
    ),
)
