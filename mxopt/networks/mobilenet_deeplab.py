"""DeepLabv3 on MobileNetV2: a segmenter small enough for two CPU cores.

Architecture: Sandler et al., "MobileNetV2" (2018), with output stride 16 and the reduced head of
its section 6.3; Chen et al., "Rethinking Atrous Convolution" (2017). Every convolution has a bias
and there is no batch normalisation, as in the published weights
(:mod:`mxopt.networks.deeplab_weights`), into which it is folded.

**Where the scores sit.** Four strides of 2 leave a score at every 16th pixel, and the scores are
then stretched from border to border. Both agree only for sides of 16 n + 1, such as the original's
513: pixels 0, 16, ..., 16 n. At a side of 16 n, TensorFlow's padding puts the scores at pixels 15,
31, ..., 16 n - 1, and stretching moves them by up to 15 pixels, which costs thin things such as
people dearly. ``padding="grid"`` therefore repeats the last row and column of the image, computes
at 16 n + 1 and cuts the scores back; ``padding="same"`` does as the original would.

**SAME padding without padding operators.** TensorFlow pads a convolution of stride 2 by (1, 1) at
an odd side and by (0, 1) at an even one. MXNet pads both ends alike, and a hybridised network does
not know its sides. But mirrored, (0, 1) is (1, 0), which is as good as (1, 1): at an even side the
stride never reaches the second 1. So ``padding="same"`` mirrors the image in both directions, keeps
its 3 x 3 kernels mirrored, and mirrors the scores back: exact at every size.
"""

from __future__ import annotations

from mxnet import gluon
from mxnet.gluon import nn

from mxopt.errors import PlanError

IMAGENET_MEAN, IMAGENET_DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
VOC_CLASSES = 21

# Expansion, channels, stride and dilation of each inverted residual. In place of a stride of 2
# where the 160 channels begin, the blocks after that one are dilated by 2: an output stride of 16.
_BLOCKS = (
    *[(1, 16, 1, 1)],
    *[(6, 24, 2, 1), (6, 24, 1, 1)],
    *[(6, 32, 2, 1), (6, 32, 1, 1), (6, 32, 1, 1)],
    *[(6, 64, 2, 1), (6, 64, 1, 1), (6, 64, 1, 1), (6, 64, 1, 1)],
    *[(6, 96, 1, 1), (6, 96, 1, 1), (6, 96, 1, 1)],
    *[(6, 160, 1, 1), (6, 160, 1, 2), (6, 160, 1, 2)],
    *[(6, 320, 1, 2)],
)
_HEAD_CHANNELS = 256


def relu6(F, x):
    """Return ``min(max(x, 0), 6)``."""
    return F.clip(x, 0, 6)


ACTIVATIONS = {"relu6": relu6}
PADDINGS = ("grid", "same")


class InvertedResidual(gluon.HybridBlock):
    """Widen by a 1 x 1 convolution, filter each channel alone by a 3 x 3 one, narrow again.

    The input is added to the output where their shapes agree (Sandler et al., 2018, section 3.3).
    """

    def __init__(self, inputs, expansion, channels, stride, dilation, activate, **kwargs):
        super().__init__(**kwargs)
        self._activate, self._residual = activate, stride == 1 and inputs == channels
        width = inputs * expansion
        with self.name_scope():
            self.expand = nn.Conv2D(width, 1, in_channels=inputs) if expansion > 1 else None
            self.depthwise = nn.Conv2D(
                width, 3, stride, dilation, dilation, groups=width, in_channels=width
            )
            self.project = nn.Conv2D(channels, 1, in_channels=width)

    def hybrid_forward(self, F, x):
        """Take and return (samples, channels, height, width)."""
        y = self._activate(F, self.expand(x)) if self.expand else x
        y = self.project(self._activate(F, self.depthwise(y)))
        return x + y if self._residual else y


class MobileNetDeepLab(gluon.HybridBlock):
    """DeepLabv3 on MobileNetV2 with output stride 16.

    Takes (samples, 3, height, width) float32, red green blue from 0 to 1, normalised with ``mean``
    and ``deviation``; returns scores (samples, classes, height, width).

    Args:
        classes: how many scores a pixel gets.
        padding: ``grid``, for sides that are multiples of 16, or ``same``, TensorFlow's at any
            side (see the module).
        activation: a name of ``ACTIVATIONS`` for the backbone; the weights were trained with
            ``relu6``. The head has ReLU throughout.
        mean, deviation: what the input was normalised with, a number for each colour. The network
            goes from there to the -1 to 1 that the weights take by itself, *before* the first
            convolution: folded into its weights, this would be wrong at the borders, where zeros
            are padded.

    Raises:
        PlanError: there is no such padding or activation.
    """

    def __init__(
        self,
        classes: int = VOC_CLASSES,
        padding: str = "grid",
        activation: str = "relu6",
        mean=IMAGENET_MEAN,
        deviation=IMAGENET_DEVIATION,
        **kwargs,
    ):
        super().__init__(**kwargs)
        _choice("padding", padding, PADDINGS)
        _choice("activation", activation, ACTIVATIONS)
        self._activate = ACTIVATIONS[activation]
        self.mirrored = padding == "same"
        # (x - shift) / scale is then 2 (x * deviation + mean) - 1.
        self._scale = tuple(1 / (2 * d) for d in deviation)
        self._shift = tuple((1 - 2 * m) / (2 * d) for m, d in zip(mean, deviation))
        with self.name_scope():
            self.stem = nn.Conv2D(32, 3, 2, 1, in_channels=3)
            self.blocks = nn.HybridSequential()
            inputs = 32
            for expansion, channels, stride, dilation in _BLOCKS:
                self.blocks.add(
                    InvertedResidual(inputs, expansion, channels, stride, dilation, self._activate)
                )
                inputs = channels
            self.local = nn.Conv2D(_HEAD_CHANNELS, 1, in_channels=inputs, activation="relu")
            self.whole = nn.Conv2D(_HEAD_CHANNELS, 1, in_channels=inputs, activation="relu")
            self.join = nn.Conv2D(
                _HEAD_CHANNELS, 1, in_channels=2 * _HEAD_CHANNELS, activation="relu"
            )
            self.scores = nn.Conv2D(classes, 1, in_channels=_HEAD_CHANNELS)

    def hybrid_forward(self, F, x):
        """Return scores at the resolution of the input."""
        image = x
        if not self.mirrored:
            x = F.pad(x, mode="edge", pad_width=(0, 0, 0, 0, 0, 1, 0, 1))
        size = x
        x = F.image.normalize(x, mean=self._shift, std=self._scale)
        x = self._mirror(F, x)
        x = self.blocks(self._activate(F, self.stem(x)))
        local, whole = self.local(x), self.whole(F.contrib.AdaptiveAvgPooling2D(x, output_size=1))
        whole = F.broadcast_like(whole, local, lhs_axes=(2, 3), rhs_axes=(2, 3))
        x = self.scores(self.join(F.concat(whole, local, dim=1)))
        x = self._mirror(F, x)
        x = F.contrib.BilinearResize2D(x, size, mode="like", align_corners=True)
        return x if self.mirrored else F.slice_like(x, image, axes=(2, 3))

    def _mirror(self, F, x):
        return F.reverse(x, axis=(2, 3)) if self.mirrored else x

    def convolutions(self) -> list[nn.Conv2D]:
        """Return all convolutions in the order in which the file of weights has them."""
        layers = [self.stem]
        for block in self.blocks:
            layers += [block.expand] if block.expand else []
            layers += [block.depthwise, block.project]
        return [*layers, self.local, self.whole, self.join, self.scores]


def _choice(name: str, value: str, allowed) -> None:
    if value not in allowed:
        raise PlanError(f"{name}={value!r} is not a choice; take one of {', '.join(allowed)}")
