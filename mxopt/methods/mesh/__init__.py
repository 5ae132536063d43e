"""Tensor parallelism: dense layers split over a mesh of devices."""

from mxopt.methods.method import Method, exports


class TensorParallel(Method):
    """Declares no switch: the training loop has one trainer, which refuses split parameters."""


_LAYERS = ("ColumnDense", "Mesh", "RowDense", "gradients", "split", "trainers")
_LAYOUT = ("bytes_per_device", "laid_out")
__getattr__ = exports(
    __name__, **dict.fromkeys(_LAYERS, "layers"), **dict.fromkeys(_LAYOUT, "layout")
)
__all__ = [
    "ColumnDense",
    "Mesh",
    "RowDense",
    "TensorParallel",
    "bytes_per_device",
    "gradients",
    "laid_out",
    "split",
    "trainers",
]
