"""Train a small network to find people in photographs: plain Gluon, nothing optimised.

    python base.py FOLDER        FOLDER has PNGImages and PedMasks, as Penn-Fudan has

Every other script in this folder is this one and one feature: compare them with `diff`.
"""

import sys
import time
from pathlib import Path

import mxopt  # noqa: F401  (only makes MXNet 1.9 importable on today's Python)
import mxnet as mx
import numpy as np
from mxnet import autograd, gluon, init, nd
from mxnet.gluon import nn
from mxnet.gluon.data.vision import transforms

SIZE, BATCH, EPOCHS, RATE = 96, 4, 4, 0.1
DEVICE = mx.gpu(0) if mx.context.num_gpus() else mx.cpu()

resize = transforms.Compose([transforms.Resize(SIZE, True), transforms.CenterCrop(SIZE)])
normalize = transforms.Compose(
    [transforms.ToTensor(), transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))]
)


class People(gluon.data.Dataset):
    """Photographs and which of their pixels are people, both uint8 (height, width, channels)."""

    def __init__(self, folder):
        self.images = sorted(Path(folder, "PNGImages").glob("*.png"))

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        path = self.images[index]
        mask = path.parents[1] / "PedMasks" / f"{path.stem}_mask.png"
        return mx.image.imread(str(path)), mx.image.imread(str(mask), flag=0) > 0


def prepare(image, mask):
    """Return an image (3, SIZE, SIZE) float32 and its mask (SIZE, SIZE), 1 where people are."""
    return normalize(resize(image)), resize(255 * mask)[:, :, 0] > 127


def network():
    """Return a network that gives each pixel a score for background and one for person."""
    net = nn.HybridSequential()
    for channels, stride in ((16, 2), (32, 2), (64, 1), (64, 1)):
        net.add(nn.Conv2D(channels, 3, stride, 1), nn.Activation("relu"))
    net.add(nn.Conv2D(2, 1), nn.Conv2DTranspose(2, 8, 4, 2))
    return net


def main(folder):
    """Train, and print the mean loss and the seconds of every epoch."""
    mx.random.seed(0)
    np.random.seed(0)
    data = People(folder).transform(prepare)
    loader = gluon.data.DataLoader(data, BATCH, shuffle=True, last_batch="discard")

    net = network()
    net.initialize(init.Xavier(), ctx=DEVICE)
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss(axis=1)
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": RATE, "momentum": 0.9})

    for epoch in range(EPOCHS):
        begin, total = time.time(), 0
        for image, mask in loader:
            image, mask = image.as_in_context(DEVICE), mask.as_in_context(DEVICE)
            with autograd.record():
                loss = loss_of(net(image), mask)
            loss.backward()
            trainer.step(BATCH)
            total = total + loss.mean()
        nd.waitall()  # the engine computes behind the program's back: wait before reading the clock
        mean = total.asscalar() / len(loader)
        print(f"epoch {epoch}: loss {mean:.4f}, {time.time() - begin:.2f} s")


if __name__ == "__main__":
    if len(sys.argv) != 2 or len(People(sys.argv[1])) < BATCH:
        given = " ".join(sys.argv[1:]) or "nothing"
        sys.exit(f"{given}: give a folder with PNGImages, {BATCH} or more .png, and PedMasks")
    main(sys.argv[1])
