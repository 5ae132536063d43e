"""DeepLabv3 on MobileNetV2, as ``mxopt.recipes.segmentation.mobilenet_deeplab``."""

from functools import partial

import torch
from torch import nn
from torch.nn import functional

BLOCKS = (
    *[(1, 16, 1, 1)],
    *[(6, 24, 2, 1), (6, 24, 1, 1)],
    *[(6, 32, 2, 1), (6, 32, 1, 1), (6, 32, 1, 1)],
    *[(6, 64, 2, 1), (6, 64, 1, 1), (6, 64, 1, 1), (6, 64, 1, 1)],
    *[(6, 96, 1, 1), (6, 96, 1, 1), (6, 96, 1, 1)],
    *[(6, 160, 1, 1), (6, 160, 1, 2), (6, 160, 1, 2)],
    *[(6, 320, 1, 2)],
)
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class Stem(nn.Module):
    """Rescaling from ImageNet's normalisation to [-1, 1], and the first convolution."""

    def __init__(self, activate):
        super().__init__()
        self.activate = activate
        self.convolution = nn.Conv2d(3, 32, 3, 2, 1)
        scale, shift = 2 * torch.tensor(DEVIATION), 2 * torch.tensor(MEAN) - 1
        self.register_buffer("scale", scale.reshape(1, 3, 1, 1), persistent=False)
        self.register_buffer("shift", shift.reshape(1, 3, 1, 1), persistent=False)

    def forward(self, x):
        x = functional.pad(x, (0, 1, 0, 1), mode="replicate")
        return self.activate(self.convolution(x * self.scale + self.shift))


class InvertedResidual(nn.Module):
    """Expansion, depthwise convolution, projection."""

    def __init__(self, inputs, expansion, channels, stride, dilation, activate):
        super().__init__()
        width = inputs * expansion
        self.residual, self.activate = stride == 1 and inputs == channels, activate
        self.expand = nn.Conv2d(inputs, width, 1) if expansion > 1 else None
        self.depthwise = nn.Conv2d(width, width, 3, stride, dilation, dilation, groups=width)
        self.project = nn.Conv2d(width, channels, 1)

    def forward(self, x):
        y = self.activate(self.expand(x)) if self.expand else x
        y = self.project(self.activate(self.depthwise(y)))
        return x + y if self.residual else y


class MobileNetHead(nn.Module):
    """Scores from features at each position and features pooled over the image."""

    def __init__(self, inputs, classes):
        super().__init__()
        self.local, self.whole = nn.Conv2d(inputs, 256, 1), nn.Conv2d(inputs, 256, 1)
        self.join, self.scores = nn.Conv2d(512, 256, 1), nn.Conv2d(256, classes, 1)

    def forward(self, x):
        rows, columns = x.shape[2:]
        local = functional.relu(self.local(x), inplace=True)
        whole = functional.adaptive_avg_pool2d(x, 1)
        whole = functional.relu(self.whole(whole), inplace=True)
        x = torch.cat([whole.expand_as(local), local], 1)
        x = self.scores(functional.relu(self.join(x), inplace=True))
        sides = 16 * (rows - 1) + 1, 16 * (columns - 1) + 1
        x = functional.interpolate(x, sides, mode="bilinear", align_corners=True)
        return x[:, :, :-1, :-1]


class MobileNetDeepLab(nn.Module):
    """DeepLabv3-MobileNetV2 with output stride 16; the first ``relu6_stages`` have ReLU6."""

    def __init__(self, classes=2, relu6_stages=16):
        super().__init__()

        def activation(stage):
            return partial(
                functional.relu6 if stage < relu6_stages else functional.relu, inplace=True
            )

        self.stages = nn.Sequential(Stem(activation(0)))
        inputs, dilated = 32, nn.Sequential()
        for expansion, channels, stride, dilation in BLOCKS:
            home = self.stages if dilation == 1 else dilated
            activate = activation(min(len(self.stages), 15))
            home.append(InvertedResidual(inputs, expansion, channels, stride, dilation, activate))
            inputs = channels
        self.stages.append(dilated)
        self.head = MobileNetHead(inputs, classes)

    def forward(self, x):
        return self.head(self.stages(x))
