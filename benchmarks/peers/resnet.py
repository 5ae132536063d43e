"""DeepLabv3 on ResNet-50, as in GluonCV (v1s: the stem has three convolutions)."""

import torch
from torch import nn
from torch.nn import functional


def convolution(inputs, outputs, size=1, stride=1, dilation=1):
    """Return a convolution without bias, padded so that only its stride reduces the sides.

    Args:
        inputs: input channels.
        outputs: output channels.
        size: side of the kernel.
        stride: the stride.
        dilation: the dilation.
    """
    padding = dilation * (size // 2)
    return nn.Conv2d(inputs, outputs, size, stride, padding, dilation, bias=False)


class Bottleneck(nn.Module):
    """Bottleneck block: 1x1, 3x3 and 1x1 convolutions, with a shortcut."""

    def __init__(self, inputs, planes, stride, dilation, first):
        super().__init__()
        self.conv1, self.bn1 = convolution(inputs, planes), nn.BatchNorm2d(planes)
        self.conv2 = convolution(planes, planes, 3, stride, dilation)
        self.bn2 = nn.BatchNorm2d(planes)
        self.conv3, self.bn3 = convolution(planes, 4 * planes), nn.BatchNorm2d(4 * planes)
        self.downsample = None
        if first:
            down = convolution(inputs, 4 * planes, stride=stride)
            self.downsample = nn.Sequential(down, nn.BatchNorm2d(4 * planes))

    def forward(self, x):
        y = functional.relu(self.bn1(self.conv1(x)), inplace=True)
        y = functional.relu(self.bn2(self.conv2(y)), inplace=True)
        y = self.bn3(self.conv3(y))
        return functional.relu(y + (self.downsample(x) if self.downsample else x), inplace=True)


def stage(inputs, planes, blocks, stride=1, dilation=1):
    """Return a stage; its first block has half the dilation of the others.

    Args:
        inputs: input channels.
        planes: channels inside the blocks; the output has four times as many.
        blocks: number of blocks.
        stride: stride of the first block.
        dilation: dilation of the blocks after the first.
    """
    layers = [Bottleneck(inputs, planes, stride, max(1, dilation // 2), True)]
    layers += [Bottleneck(4 * planes, planes, 1, dilation, False) for _ in range(blocks - 1)]
    return nn.Sequential(*layers)


def with_norm(*layers):
    """Return layers, followed by batch norm and ReLU."""
    channels = layers[-1].out_channels
    return nn.Sequential(*layers, nn.BatchNorm2d(channels), nn.ReLU(inplace=True))


class Pooling(nn.Module):
    """Global average pooling, expanded to all positions."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.gap = with_norm(nn.AdaptiveAvgPool2d(1), convolution(inputs, outputs))

    def forward(self, x):
        return self.gap(x).expand(-1, -1, *x.shape[2:])


class Aspp(nn.Module):
    """Atrous spatial pyramid pooling: convolutions of several dilations, concatenated."""

    def __init__(self, inputs, channels=256):
        super().__init__()
        branches = [with_norm(convolution(inputs, channels))]
        branches += [with_norm(convolution(inputs, channels, 3, 1, d)) for d in (12, 24, 36)]
        self.concurent = nn.ModuleList([*branches, Pooling(inputs, channels)])
        self.project = with_norm(convolution(5 * channels, channels)).append(nn.Dropout(0.5))

    def forward(self, x):
        return self.project(torch.cat([branch(x) for branch in self.concurent], 1))


class ResNetHead(nn.Module):
    """ASPP and two convolutions."""

    def __init__(self, classes):
        super().__init__()
        self.aspp = Aspp(2048)
        self.block = with_norm(convolution(256, 256, 3))
        self.block.extend([nn.Dropout(0.1), nn.Conv2d(256, classes, 1)])

    def forward(self, x):
        return self.block(self.aspp(x))


class ResNetDeepLab(nn.Module):
    """DeepLabv3-ResNet-50 with output stride 8."""

    def __init__(self, classes=2):
        super().__init__()
        first = with_norm(convolution(3, 64, 3, 2))
        self.conv1 = nn.Sequential(*first, *with_norm(convolution(64, 64, 3)))
        self.conv1.append(convolution(64, 128, 3))
        self.bn1 = nn.BatchNorm2d(128)
        self.layer1, self.layer2 = stage(128, 64, 3), stage(256, 128, 4, stride=2)
        self.layer3 = stage(512, 256, 6, dilation=2)
        self.layer4 = stage(1024, 512, 3, dilation=4)
        self.head = ResNetHead(classes)

    def forward(self, x):
        sides = x.shape[2:]
        x = functional.relu(self.bn1(self.conv1(x)), inplace=True)
        x = functional.max_pool2d(x, 3, 2, 1)
        x = self.head(self.layer4(self.layer3(self.layer2(self.layer1(x)))))
        return functional.interpolate(x, sides, mode="bilinear", align_corners=True)
