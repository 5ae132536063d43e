"""The recipes' networks in PyTorch, layer for layer.

Blocks carry the names that they have in MXNet, so that weights are carried over by name: only the
norms' parameters are called otherwise (``RENAMED``). Nothing here imports MXNet or mxopt.
"""

import torch
from torch import nn
from torch.nn import functional

RENAMED = {"gamma": "weight", "beta": "bias"}
NEVER = -1e4  # added to a masked attention score, as mxopt's network does


def carry_over(net: nn.Module, weights: dict) -> None:
    """Load MXNet's parameters, NumPy arrays by name.

    Raises:
        RuntimeError: a name or a shape does not agree.
    """
    state = {}
    for name, array in weights.items():
        stem, _, last = name.rpartition(".")
        state[f"{stem}.{RENAMED.get(last, last)}"] = torch.from_numpy(array)
    found = net.load_state_dict(state, strict=False)
    missing = [name for name in found.missing_keys if not name.endswith("num_batches_tracked")]
    if missing or found.unexpected_keys:
        raise RuntimeError(f"missing: {missing}; not in the peer: {found.unexpected_keys}")


# --- DeepLabv3 on ResNet-50, as GluonCV builds it (v1s: three convolutions for a stem) ---


def convolution(inputs, outputs, size=1, stride=1, dilation=1):
    """Return a convolution without a bias that keeps the sides, up to its stride."""
    padding = dilation * (size // 2)
    return nn.Conv2d(inputs, outputs, size, stride, padding, dilation, bias=False)


class Bottleneck(nn.Module):
    """Narrow, filter, widen; the input is added."""

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
    """Return a stage; its first block is dilated by half as much as the others."""
    layers = [Bottleneck(inputs, planes, stride, max(1, dilation // 2), True)]
    layers += [Bottleneck(4 * planes, planes, 1, dilation, False) for _ in range(blocks - 1)]
    return nn.Sequential(*layers)


def with_norm(*layers):
    """Return layers followed by batch norm and ReLU."""
    channels = layers[-1].out_channels
    return nn.Sequential(*layers, nn.BatchNorm2d(channels), nn.ReLU(inplace=True))


class Pooling(nn.Module):
    """The average of all places, at every place."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.gap = with_norm(nn.AdaptiveAvgPool2d(1), convolution(inputs, outputs))

    def forward(self, x):
        return self.gap(x).expand(-1, -1, *x.shape[2:])


class Aspp(nn.Module):
    """What is seen at several dilations, side by side."""

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


# --- DeepLabv3 on MobileNetV2, as mxopt.networks.mobilenet_deeplab ---

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
    """The image from ImageNet's normalisation to -1 ... 1, and the first convolution."""

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
    """Widen, filter each channel alone, narrow."""

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
    """Scores of what is seen at a place and everywhere."""

    def __init__(self, inputs, classes):
        super().__init__()
        self.local, self.whole = nn.Conv2d(inputs, 256, 1), nn.Conv2d(inputs, 256, 1)
        self.join, self.scores = nn.Conv2d(512, 256, 1), nn.Conv2d(256, classes, 1)

    def forward(self, x):
        rows, columns = x.shape[2:]
        local = functional.relu(self.local(x))
        whole = functional.relu(self.whole(functional.adaptive_avg_pool2d(x, 1)))
        x = torch.cat([whole.expand_as(local), local], 1)
        x = self.scores(functional.relu(self.join(x)))
        sides = 16 * (rows - 1) + 1, 16 * (columns - 1) + 1
        x = functional.interpolate(x, sides, mode="bilinear", align_corners=True)
        return x[:, :, :-1, :-1]


class MobileNetDeepLab(nn.Module):
    """DeepLabv3-MobileNetV2 with output stride 16; the first ``bounded`` stages have ReLU6."""

    def __init__(self, classes=2, bounded=16):
        super().__init__()

        def activation(stage):
            return functional.relu6 if stage < bounded else functional.relu

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


# --- The Transformer, as GluonNLP's cells ---


class Attention(nn.Module):
    """Attention of several heads, without biases; the output's projection is the cell's."""

    def __init__(self, units, heads, dropout):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.proj_query = nn.Linear(units, units, bias=False)
        self.proj_key = nn.Linear(units, units, bias=False)
        self.proj_value = nn.Linear(units, units, bias=False)

    def forward(self, x, memory, mask):
        def split(y):
            return y.unflatten(2, (self.heads, -1)).transpose(1, 2)

        query, key, value = self.proj_query(x), self.proj_key(memory), self.proj_value(memory)
        dropout = self.dropout if self.training else 0.0
        read = functional.scaled_dot_product_attention(
            split(query), split(key), split(value), attn_mask=mask, dropout_p=dropout
        )
        return read.transpose(1, 2).flatten(2)


class FeedForward(nn.Module):
    """The position-wise sublayer, with its residual and norm."""

    def __init__(self, units, hidden, dropout):
        super().__init__()
        self.ffn_1, self.ffn_2 = nn.Linear(units, hidden), nn.Linear(hidden, units)
        self.layer_norm, self.drop = nn.LayerNorm(units), nn.Dropout(dropout)

    def forward(self, x):
        return self.layer_norm(self.drop(self.ffn_2(functional.relu(self.ffn_1(x)))) + x)


class EncoderCell(nn.Module):
    """Self-attention and feed-forward."""

    def __init__(self, units, heads, hidden, dropout):
        super().__init__()
        self.attention_cell = Attention(units, heads, dropout)
        self.proj = nn.Linear(units, units, bias=False)
        self.layer_norm, self.drop = nn.LayerNorm(units), nn.Dropout(dropout)
        self.ffn = FeedForward(units, hidden, dropout)

    def forward(self, x, mask):
        read = self.proj(self.attention_cell(x, x, mask))
        return self.ffn(self.layer_norm(self.drop(read) + x))


class DecoderCell(nn.Module):
    """Self-attention, attention to the source, feed-forward."""

    def __init__(self, units, heads, hidden, dropout):
        super().__init__()
        self.attention_cell_in = Attention(units, heads, dropout)
        self.attention_cell_inter = Attention(units, heads, dropout)
        self.proj_in = nn.Linear(units, units, bias=False)
        self.proj_inter = nn.Linear(units, units, bias=False)
        self.layer_norm_in, self.layer_norm_inter = nn.LayerNorm(units), nn.LayerNorm(units)
        self.drop = nn.Dropout(dropout)
        self.ffn = FeedForward(units, hidden, dropout)

    def forward(self, x, memory, causal, across):
        read = self.proj_in(self.attention_cell_in(x, x, causal))
        x = self.layer_norm_in(self.drop(read) + x)
        read = self.proj_inter(self.attention_cell_inter(x, memory, across))
        return self.ffn(self.layer_norm_inter(self.drop(read) + x))


class Half(nn.Module):
    """An encoder or a decoder: positions, the norm of its input, cells."""

    def __init__(self, cell, layers, units, heads, hidden, dropout, longest):
        super().__init__()
        self.register_buffer("position_weight", torch.zeros(longest, units))
        self.layer_norm, self.drop = nn.LayerNorm(units), nn.Dropout(dropout)
        cells = [cell(units, heads, hidden, dropout) for _ in range(layers)]
        self.transformer_cells = nn.ModuleList(cells)

    def forward(self, x, *others):
        x = x * x.shape[2] ** 0.5 + self.position_weight[: x.shape[1]]
        x = self.layer_norm(self.drop(x))
        for cell in self.transformer_cells:
            x = cell(x, *others)
        return x


class Translator(nn.Module):
    """Scores (samples, target length, vocabulary); one table for both languages and the output."""

    def __init__(self, vocabulary, layers, units, heads, hidden, dropout, longest):
        super().__init__()
        sizes = (layers, units, heads, hidden, dropout, longest)
        self.encoder, self.decoder = Half(EncoderCell, *sizes), Half(DecoderCell, *sizes)
        self.source_embedding = self.target_embedding = nn.Embedding(vocabulary, units)
        self.projection = nn.Linear(units, vocabulary)
        self.projection.weight = self.source_embedding.weight

    def forward(self, source, target, source_length, target_length):
        steps = torch.arange(source.shape[1])
        padding = (steps >= source_length[:, None])[:, None, None].float() * NEVER
        steps = torch.arange(target.shape[1])
        causal = (steps > steps[:, None]).float() * NEVER
        memory = self.encoder(self.source_embedding(source), padding)
        states = self.decoder(self.target_embedding(target), memory, causal, padding)
        return self.projection(states)
