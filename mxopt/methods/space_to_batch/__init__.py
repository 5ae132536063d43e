"""Space to batch: a convolution dilated by 2 as plain ones on every second row and column."""

from mxopt.methods.method import Method, exports


class SpaceToBatch(Method):
    """An option of the network ``deeplab_mobilenetv2``."""

    options = {"segmentation": ("space_to_batch",)}


__getattr__ = exports(__name__, SpaceToBatchBlock="block")
