"""Semantic segmentation: the task of the chapter's tour and of its second recipe.

The data is Penn-Fudan, people in street scenes, resized and centre-cropped to a square as in the
chapter, or a folder of the user's own images and masks.
"""

from __future__ import annotations

import inspect

import mxnet as mx
from mxnet import gluon
from mxnet.gluon import nn

from mxopt.core.errors import PlanError
from mxopt.core.option_values import check_limit
from mxopt.core.recipe import Data, Recipe
from mxopt.data.pretrained import gluoncv_weights
from mxopt.methods import image_decoder as decoders
from mxopt.recipes.segmentation.mobilenet_deeplab import STAGES
from mxopt.recipes.segmentation.transform import Transform, check_side

PENN_FUDAN_CLASSES = 2  # background, person


class TinySegmenter(gluon.HybridBlock):
    """A small encoder and decoder for the tour, trained from scratch: seconds per epoch on a CPU.

    Takes images (samples, 3, height, width) float32, height and width multiples of 4, and returns
    class scores (samples, classes, height, width).

    Args:
        classes: number of classes.
        channels: number of channels of the first layer.
        norm: whether to use batch normalisation. Without it, several contexts give exactly the
            gradients of one; with it they do not, because MXNet computes batch statistics per
            context.
    """

    def __init__(self, classes: int = 2, channels: int = 16, norm: bool = True, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.body = nn.HybridSequential()
            for width, stride in ((1, 2), (2, 2), (4, 1), (4, 1)):
                self.body.add(nn.Conv2D(channels * width, 3, stride, 1, use_bias=not norm))
                if norm:
                    self.body.add(nn.BatchNorm())
                self.body.add(nn.Activation("relu"))
            self.body.add(nn.Conv2D(classes, 1))

    def hybrid_forward(self, F, x):
        """Return scores at the resolution of the input."""
        return F.contrib.BilinearResize2D(self.body(x), scale_height=4, scale_width=4)


def _tiny(contexts, classes: int, channels: int = 16, norm: bool = True):
    net = TinySegmenter(classes, channels, norm)
    net.initialize(mx.init.Xavier(), ctx=contexts)
    return net


def _deeplab_resnet50(contexts, classes: int, size: int, fixed_statistics: bool = False):
    """Return GluonCV's smaller DeepLabv3 with random weights, for comparing speed.

    With ``fixed_statistics`` its batch normalisation uses the running statistics, as is usual when
    fine-tuning with small batches.
    """
    from gluoncv.model_zoo import DeepLabV3

    net = DeepLabV3(classes, "resnet50", aux=False, pretrained_base=False, crop_size=size,
                    norm_kwargs={"use_global_stats": fixed_statistics})  # fmt: skip
    net.initialize(mx.init.Xavier(), ctx=contexts, force_reinit=True)
    # GluonCV gives its head ten times the learning rate of a pretrained backbone; here the backbone
    # is not pretrained.
    net.collect_params().setattr("lr_mult", 1)
    return net


def _deeplab_resnet101(contexts, classes: int, size: int, pretrained: bool = True):
    """Return the chapter's network: COCO weights, a new head, no auxiliary output.

    Without ``pretrained`` its weights are random, for comparing speed and memory.
    """
    from gluoncv import model_zoo
    from gluoncv.model_zoo.deeplabv3 import _DeepLabHead

    if not pretrained:
        net = model_zoo.DeepLabV3(classes, "resnet101", aux=False, pretrained_base=False,
                                  crop_size=size)  # fmt: skip
        net.initialize(mx.init.Xavier(), ctx=contexts, force_reinit=True)
        return net
    name = "deeplab_resnet101_coco"
    gluoncv_weights(name)
    net = model_zoo.get_model(name, pretrained=True, ctx=contexts, crop_size=size)
    with net.name_scope():
        net.head = _DeepLabHead(classes, height=size // 8, width=size // 8)
    net.head.initialize(mx.init.Xavier(), ctx=contexts)
    net.aux = False
    net.auxlayer.collect_params().setattr("grad_req", "null")
    return net


def _deeplab_mobilenetv2(
    contexts,
    classes: int,
    weights: str | None = None,
    reset_head: bool = False,
    padding: str = "grid",
    space_to_batch: bool = False,
    relu6_stages: int = STAGES,
):
    """Return a network for two CPU cores, which finds people with its weights from Pascal VOC."""
    from mxopt.recipes.segmentation.weights import load

    return load(contexts, classes, weights, reset_head, padding=padding,
                space_to_batch=space_to_batch, relu6_stages=relu6_stages)  # fmt: skip


NETWORKS = {
    "tiny": _tiny,
    "deeplab_mobilenetv2": _deeplab_mobilenetv2,
    "deeplab_resnet50": _deeplab_resnet50,
    "deeplab_resnet101": _deeplab_resnet101,
}
_OF_ONE_SIZE = ("deeplab_resnet50", "deeplab_resnet101")  # they resize scores to a fixed side


def network_options(network: str = "tiny", **others) -> list[str]:
    """Return the names of the options that only this network takes.

    Args:
        network: a name in ``NETWORKS``; an unknown one has no options.
        others: the recipe's other options; ignored.
    """
    parameters = inspect.signature(NETWORKS[network]).parameters if network in NETWORKS else ()
    return [name for name in parameters if name not in ("contexts", "classes", "size")]


class PixelLoss(gluon.HybridBlock):
    """Softmax cross-entropy at every pixel; returns (samples,), the mean over each image.

    For two classes it is computed as log(1 + exp(d)) - d y, where d is the second score minus the
    first and y the class: the same value in less than a third of the time, because a softmax along
    the second axis is slow.

    Args:
        classes: number of classes.
    """

    def __init__(self, classes: int, **kwargs):
        super().__init__(**kwargs)
        self._classes = classes
        self._loss = gluon.loss.SoftmaxCrossEntropyLoss(axis=1)

    def hybrid_forward(self, F, output, mask):
        """Take scores (samples, classes, height, width) and masks (samples, height, width)."""
        if self._classes != 2:
            return self._loss(output, mask)
        background, person = F.split(output, 2, axis=1, squeeze_axis=True)
        difference = person - background
        losses = F.Activation(difference, "softrelu") - F.cast(mask, "float32") * difference
        return F.mean(losses, axis=0, exclude=True)


def _data(size, classes, limit, root, fixed, decode) -> Data:
    from mxopt.data import MaskFolder, PennFudan

    def split(name):
        if classes:
            return MaskFolder(root, name, classes, decode=decode)
        return PennFudan(name, root, decode)

    splits = {name: split(name) for name in ("train", "validation", "test")}
    kind, origin = "real", "given folder"
    if not classes:
        kind, origin = splits["train"].location.kind, splits["train"].location.origin
    if limit:
        splits = {name: part.take(min(limit, len(part))) for name, part in splits.items()}
    return Data(**splits, transform=Transform(size, fixed), kind=kind, origin=origin)


def _scores(output):
    """Return the scores in a network's output; those of GluonCV return a tuple."""
    return output[0] if isinstance(output, (list, tuple)) else output


def _metric(classes: int):
    """Return GluonCV's metric with names for its values: pixel accuracy and mean IoU."""
    from gluoncv.utils.metrics.segmentation import SegmentationMetric

    class Named(SegmentationMetric):
        def update(self, labels, outputs):
            # One array at a time: for lists GluonCV starts threads, which lose their errors.
            for label, output in zip(labels, outputs):
                super().update(label, _scores(output))

        def get(self):
            return ["PixAcc", "mIoU"], list(super().get())

    return Named(classes)


def segmentation(
    network: str = "tiny",
    size: int = 96,
    limit: int | None = None,
    root: str | None = None,
    classes: int | None = None,
    image_decoder: str = "pillow",
    **options,
) -> Recipe:
    """Return the segmentation recipe.

    Args:
        network: a name in ``NETWORKS``.
        size: side of the square that images are cropped to, in pixels; a multiple of 16.
        limit: maximum number of samples in each split; ``None`` for all.
        root: the data folder; ``None`` takes Penn-Fudan as found by ``mxopt.data.locate``.
        classes: number of classes of a ``root`` in the layout of ``mxopt.data.MaskFolder``;
            ``None`` for a ``root`` in Penn-Fudan's layout.
        image_decoder: what reads PNG files: ``pillow`` or ``kornia`` (the same numbers, faster).
        options: options of the network (:func:`network_options`).

    Raises:
        PlanError: there is no such network or decoder, the size is not a multiple of 16,
            ``limit`` is less than 1, or ``classes`` is given without ``root`` or is less than 2.
        DeviceError: the decoder is not installed.
    """
    if network not in NETWORKS:
        raise PlanError(f"network={network!r} is not a choice; take one of {', '.join(NETWORKS)}")
    check_side("size", size)
    check_limit(limit)
    if classes is not None and (classes < 2 or root is None):
        raise PlanError(
            f"classes={classes} must be at least 2 and needs a folder of images and masks; give it "
            "as root=..."
        )
    decode = decoders.find(image_decoder)
    outputs = classes or PENN_FUDAN_CLASSES
    pixel_loss = PixelLoss(outputs)
    fixed = network if network in _OF_ONE_SIZE else ""
    if fixed:
        options["size"] = size

    def make(contexts):
        return NETWORKS[network](contexts, outputs, **options)

    def loss(output, mask):
        return pixel_loss(_scores(output), mask)

    return Recipe(
        name=f"segmentation, {network}, {size} px",
        data=lambda: _data(size, classes, limit, root, fixed, decode),
        network=make,
        loss=loss,
        metric=lambda: _metric(outputs),
    )


segmentation.more_options = network_options
