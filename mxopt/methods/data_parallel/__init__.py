"""Data parallelism: each device computes the gradient of its part of a batch."""

from mxopt.methods.method import Method, exports


class DataParallel(Method):
    """Declares the switch; the training loop calls the functions of ``parallel``."""

    switches = ("devices",)


__getattr__ = exports(
    __name__,
    **dict.fromkeys(
        ("contexts", "split_sizes", "split_and_load", "gather", "mark_idle", "scaled", "Share"),
        "parallel",
    ),
)
