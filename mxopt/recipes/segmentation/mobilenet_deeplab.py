"""DeepLabv3 on MobileNetV2: a segmenter small enough for two CPU cores.

Architecture: Sandler et al., "MobileNetV2" (2018), with output stride 16 and the reduced head of
its section 6.3; Chen et al., "Rethinking Atrous Convolution" (2017). Every convolution has a bias
and there is no batch normalisation, as in the published weights
(:mod:`mxopt.recipes.segmentation.weights`), into which it is folded.

**Position of the scores.** Four strides of 2 leave a score at every 16th pixel. The scores are then
resized so that the first and the last lie on the image's borders. This is correct only for sides
of 16 n + 1, such as the original's 513: the scores belong to pixels 0, 16, ..., 16 n. At a side of
16 n, TensorFlow's padding places them at pixels 15, 31, ..., 16 n - 1, and resizing shifts them by
up to 15 pixels, which makes the masks of thin objects such as people much worse. Therefore
``padding="grid"`` repeats the last row and column of the image, computes at 16 n + 1 and crops the
scores; ``padding="same"`` computes what the original would.

**SAME padding without padding operators.** TensorFlow pads a convolution of stride 2 by (1, 1) at
an odd side and by (0, 1) at an even one. MXNet pads both ends equally, and a hybridised network
does not know the sides of its input. In a mirrored image (0, 1) becomes (1, 0), which gives the
same result as (1, 1): at an even side the stride never reaches the second 1. So ``padding="same"``
mirrors the image in both directions, keeps its 3 x 3 kernels mirrored, and mirrors the scores back:
exact at every size.

**Operators that are slow on a CPU.** Three things are computed differently here. The first and the
last give the same scores, the second changes them slightly:

- ``space_to_batch``: oneDNN 2.4 computes the gradient of a dilated depthwise convolution by matrix
  products over copies of its input, at a fiftieth of the usual speed. A convolution dilated by 2
  never mixes even with odd rows or columns, so it equals the plain convolution on four grids, each
  of every second pixel in both directions. The layers between dilated convolutions work on single
  pixels, so the image is split into grids once before the dilated blocks and merged once after.
- ``relu6_stages``: ReLU6 is ``clip``, for which MXNet 1.9 does not use oneDNN's memory layout: each
  costs two conversions, and two more in the backward pass. Stages after the first ``relu6_stages``
  ones use a plain ReLU. The weights were not trained with it, but its values differ little.
- Scores are resized by two products with a matrix of weights instead of ``BilinearResize2D``, whose
  gradient is computed pixel by pixel. This has no switch.
"""

from __future__ import annotations

from mxnet import gluon
from mxnet.gluon import nn

from mxopt.core.errors import PlanError
from mxopt.methods.space_to_batch.block import SpaceToBatchBlock

IMAGENET_MEAN, IMAGENET_DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
VOC_CLASSES = 21

# Expansion, channels, stride and dilation of each inverted residual. The first block of 160
# channels has stride 1 and not 2, and the blocks after it are dilated by 2: output stride 16.
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
_OUTPUT_STRIDE = 16
# The first convolution, each block without dilation, and all dilated blocks as one stage.
STAGES = 2 + sum(dilation == 1 for *_, dilation in _BLOCKS)
PADDINGS = ("grid", "same")


def relu(F, x):
    """Return ``max(x, 0)``.

    Args:
        F: ``mxnet.ndarray`` or ``mxnet.symbol``.
        x: of any shape.
    """
    return F.Activation(x, "relu")


def relu6(F, x):
    """Return ``min(max(x, 0), 6)``.

    Args:
        F: ``mxnet.ndarray`` or ``mxnet.symbol``.
        x: of any shape.
    """
    return F.clip(x, 0, 6)


class Stem(gluon.HybridBlock):
    """Normalise and pad or mirror the image, and apply the first convolution.

    Takes (samples, 3, height, width), returns (samples, 32, about height / 2, about width / 2).

    Args:
        mirrored: whether to mirror the image (``padding="same"``) and not to pad it.
        mean: mean of each colour that the input was normalised with.
        deviation: standard deviation of each colour that the input was normalised with.
        activate: ``activate(F, x)``, the activation.
    """

    def __init__(self, mirrored, mean, deviation, activate, **kwargs):
        super().__init__(**kwargs)
        self._mirrored, self._activate = mirrored, activate
        # (x - shift) / scale is then 2 (x * deviation + mean) - 1.
        self._scale = tuple(1 / (2 * d) for d in deviation)
        self._shift = tuple((1 - 2 * m) / (2 * d) for m, d in zip(mean, deviation))
        with self.name_scope():
            self.convolution = nn.Conv2D(32, 3, 2, 1, in_channels=3)

    def hybrid_forward(self, F, x):
        """Normalise, pad or mirror, convolve."""
        if not self._mirrored:
            x = F.pad(x, mode="edge", pad_width=(0, 0, 0, 0, 0, 1, 0, 1))
        x = F.image.normalize(x, mean=self._shift, std=self._scale)
        if self._mirrored:
            x = F.reverse(x, axis=(2, 3))
        return self._activate(F, self.convolution(x))


class InvertedResidual(gluon.HybridBlock):
    """Expand by a 1 x 1 convolution, filter by a depthwise 3 x 3 one, project by a 1 x 1 one.

    The input is added to the output if their shapes are equal (Sandler et al., 2018, section 3.3).

    Args:
        inputs: channels of the input.
        expansion: factor by which the first convolution multiplies the channels.
        channels: channels of the output.
        stride: stride of the depthwise convolution.
        dilation: dilation of the depthwise convolution.
        activate: ``activate(F, x)``, the activation after the first two convolutions.
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

    def convolutions(self) -> list[nn.Conv2D]:
        """Return the block's convolutions in order."""
        return [*([self.expand] if self.expand else []), self.depthwise, self.project]


class Head(gluon.HybridBlock):
    """Compute scores from the features of the stages, at the resolution of the image.

    The features of each position are concatenated with their average over all positions.

    Args:
        inputs: channels of the features.
        classes: number of classes.
        mirrored: whether the features are those of a mirrored image.
    """

    def __init__(self, inputs, classes, mirrored, **kwargs):
        super().__init__(**kwargs)
        self._mirrored = mirrored
        with self.name_scope():
            self.local = nn.Conv2D(_HEAD_CHANNELS, 1, in_channels=inputs, activation="relu")
            self.whole = nn.Conv2D(_HEAD_CHANNELS, 1, in_channels=inputs, activation="relu")
            self.join = nn.Conv2D(
                _HEAD_CHANNELS, 1, in_channels=2 * _HEAD_CHANNELS, activation="relu"
            )
            self.scores = nn.Conv2D(classes, 1, in_channels=_HEAD_CHANNELS)

    def hybrid_forward(self, F, x, image=None):
        """Take (samples, inputs, h, w); if mirrored, scores get the sides of ``image``."""
        local, whole = self.local(x), self.whole(F.contrib.AdaptiveAvgPooling2D(x, output_size=1))
        whole = F.broadcast_like(whole, local, lhs_axes=(2, 3), rhs_axes=(2, 3))
        x = self.scores(self.join(F.concat(whole, local, dim=1)))
        if self._mirrored:
            x = F.reverse(x, axis=(2, 3))
            return F.contrib.BilinearResize2D(x, image, mode="like", align_corners=True)
        rows, columns = (_stretching(F, x, axis) for axis in (2, 3))
        x = F.swapaxes(F.dot(F.swapaxes(x, 2, 3), rows), 2, 3)
        return F.dot(x, columns)

    def convolutions(self) -> list[nn.Conv2D]:
        """Return the head's convolutions in order."""
        return [self.local, self.whole, self.join, self.scores]


def _stretching(F, x, axis):
    """Return the matrix (n, 16 (n - 1)) that interpolates n scores to 16 pixels for each interval.

    Pixel p is at position p / 16. The weight of a score is 1 minus its distance, at least 0.
    """
    places = F.contrib.arange_like(x, axis=axis)
    line = F.slice_axis(F.slice_axis(x, axis=1, begin=0, end=1), axis=axis, begin=1, end=None)
    line = F.repeat(line, repeats=_OUTPUT_STRIDE, axis=axis)
    pixels = F.contrib.arange_like(line, axis=axis) / _OUTPUT_STRIDE
    distance = F.abs(F.broadcast_sub(F.reshape(pixels, (1, -1)), F.reshape(places, (-1, 1))))
    return F.BlockGrad(F.relu(1 - distance))


class MobileNetDeepLab(gluon.HybridBlock):
    """DeepLabv3 on MobileNetV2 with output stride 16.

    Takes images (samples, 3, height, width) float32, red, green and blue from 0 to 1, normalised
    with ``mean`` and ``deviation``; returns scores (samples, classes, height, width).

    Args:
        classes: number of scores per pixel.
        padding: ``grid``, for sides that are multiples of 16 and at least 32, or ``same``,
            TensorFlow's padding, for any side (see the module).
        space_to_batch: whether to compute the dilated blocks on four grids; the scores are the
            same.
        relu6_stages: number of stages, counted from the image, with ReLU6, which the weights were
            trained with; the others have ReLU. The head always has ReLU.
        mean: mean of each colour that the input was normalised with. The network rescales its input
            to -1 to 1, as the weights need, *before* the first convolution: folded into that
            convolution, the shift would be wrong at the borders, which are padded with zeros.
        deviation: standard deviation of each colour that the input was normalised with.

    Attributes:
        stages: ``STAGES`` blocks in sequence, from the image to features (samples, 320,
            height / 16 + 1, width / 16 + 1). With ``grid`` the network is just these and ``head``
            in sequence, so it can be split between any two (``mxopt.methods.layer_freezing``).
        head: computes the scores from the features.
        mirrored: whether the padding is ``same``.

    Raises:
        PlanError: ``padding`` or ``relu6_stages`` is not one of these values.
    """

    def __init__(
        self,
        classes: int = VOC_CLASSES,
        padding: str = "grid",
        space_to_batch: bool = False,
        relu6_stages: int = STAGES,
        mean=IMAGENET_MEAN,
        deviation=IMAGENET_DEVIATION,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if padding not in PADDINGS:
            raise PlanError(f"padding={padding!r} is not a choice; take one of grid, same")
        if not 0 <= relu6_stages <= STAGES:
            raise PlanError(
                f"relu6_stages={relu6_stages} must be a number of stages, 0 to {STAGES}"
            )
        self.mirrored = padding == "same"
        activations = [relu6] * relu6_stages + [relu] * (STAGES - relu6_stages)
        with self.name_scope():
            self.stages = nn.HybridSequential()
            self.stages.add(Stem(self.mirrored, mean, deviation, activations[0]))
            inputs, dilated = 32, nn.HybridSequential()
            for expansion, channels, stride, dilation in _BLOCKS:
                home = self.stages if dilation == 1 else dilated
                activate = activations[min(len(self.stages), STAGES - 1)]
                apart = 1 if space_to_batch else dilation
                home.add(InvertedResidual(inputs, expansion, channels, stride, apart, activate))
                inputs = channels
            self.stages.add(SpaceToBatchBlock(dilated) if space_to_batch else dilated)
            self.head = Head(inputs, classes, self.mirrored)

    def hybrid_forward(self, F, x):
        """Return scores at the resolution of the input."""
        found = self.stages(x)
        return self.head(found, x) if self.mirrored else self.head(found)

    def convolutions(self) -> list[tuple[nn.Conv2D, int]]:
        """Return all convolutions, each with its dilation, in the order of the weights' file.

        With ``space_to_batch`` the layers themselves are not dilated; the dilation returned is that
        of the equivalent layer without it.
        """
        stem, *blocks, dilated = self.stages
        dilated = getattr(dilated, "body", dilated)
        layers = [(stem.convolution, 1)]
        for block, (*_, dilation) in zip([*blocks, *dilated], _BLOCKS):
            layers += [
                (layer, dilation if layer is block.depthwise else 1)
                for layer in block.convolutions()
            ]
        return layers + [(layer, 1) for layer in self.head.convolutions()]
