"""Space to batch: compute a convolution dilated by 2 as four convolutions without dilation."""

from mxopt.methods.method import Method, exports


class SpaceToBatch(Method):
    """Declares the option of the network ``deeplab_mobilenetv2``."""

    options = {"segmentation": ("space_to_batch",)}


__getattr__ = exports(__name__, SpaceToBatchBlock="block")
