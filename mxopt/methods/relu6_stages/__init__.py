"""ReLU6 stages: ReLU in place of ReLU6 in the later stages of a MobileNetV2."""

from mxopt.methods.method import Method


class ReLU6Stages(Method):
    """Declares the option of the network ``deeplab_mobilenetv2``."""

    options = {"segmentation": ("relu6_stages",)}
