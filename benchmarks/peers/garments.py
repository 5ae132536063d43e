"""The garments' network of ``mxopt.recipes.fashion_mnist``, layer for layer."""

from torch import nn
from torch.nn import functional


class GarmentNet(nn.Module):
    """Two convolutions and two dense layers, without an activation between the latter.

    Args:
        bias: whether the layers have biases.
        hidden: units of the first dense layer; 0 leaves the layer out.
        channels: channels of both convolutions.
    """

    def __init__(self, bias: bool = True, hidden: int = 512, channels=(32, 64)):
        super().__init__()
        first, second = channels
        # The numbers of the layers are those in MXNet, where pooling is a layer too.
        self.features = nn.ModuleDict(
            {
                "0": nn.Conv2d(1, first, 3, padding=1, bias=bias),
                "2": nn.Conv2d(first, second, 3, padding=1, bias=bias),
            }
        )
        units = [second * 7 * 7, *([hidden] if hidden else []), 10]
        self.head = nn.Sequential(
            *(nn.Linear(inputs, outputs, bias) for inputs, outputs in zip(units, units[1:]))
        )

    def forward(self, images):
        """Return scores (samples, 10) of images (samples, 1, 28, 28)."""
        x = images
        for layer in self.features.values():
            # The same as pooling after ReLU, on a quarter of the elements.
            x = functional.relu(functional.max_pool2d(layer(x), 2), inplace=True)
        return self.head(x.flatten(1))
