"""One measured run of PyTorch's DataLoader over Penn-Fudan, with the recipe's transforms.

It reads a job from standard input (JSON): ``root`` (folder of the data set), ``names`` (of the
images), ``size``, ``batch_size``, ``workers``, ``epochs``, ``given`` (``uint8``: images and masks
are delivered as uint8, and images normalised as batches; ``kornia``: kornia-rs decodes instead of
Pillow), ``expected`` (file with mxopt's first samples, which the peer's must equal). OpenCV
resizes, as in mxopt. The last line that it prints contains the figures, as JSON.
"""

import json
import struct
import sys
import time
from pathlib import Path

import cv2
import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset

sys.path.insert(0, str(Path(__file__).parent))
from child import read_job
from facts import facts, peak_memory

MEAN = np.array((0.485, 0.456, 0.406), np.float32)
DEVIATION = np.array((0.229, 0.224, 0.225), np.float32)
# A pixel that is rounded differently is off by 1 / 255, which normalisation multiplies.
TOLERANCE = 0.02


def _by_pillow(path: Path, mode: str) -> np.ndarray:
    """Return an image or a mask, decoded by Pillow."""
    image = Image.open(path)
    return np.asarray(image.convert("RGB") if mode == "RGB" else image)


def _by_kornia(path: Path, mode: str) -> np.ndarray:
    """Return an image or a mask, decoded by kornia-rs, which wants to know its size first."""
    from kornia_rs import io

    content = path.read_bytes()
    width, height = struct.unpack_from(">II", content, 16)
    if mode == "RGB":
        return io.decode_image_png_u8(content, (height, width), "rgb")
    return io.decode_image_png_u8(content, (height, width), "mono")[:, :, 0]


class PennFudan(Dataset):
    """Images (3, size, size) float32, normalised, and masks (size, size) int64.

    With ``uint8``, images (3, size, size) and masks as uint8, for :func:`normalised`.
    ``read`` decodes a file, as (height, width, 3) or (height, width) uint8.
    """

    def __init__(self, root: Path, names: list, size: int, read=_by_pillow, uint8: bool = False):
        self.root, self.names, self.size, self.read, self.uint8 = root, names, size, read, uint8

    def __len__(self):
        return len(self.names)

    def __getitem__(self, index):
        name = self.names[index]
        image = self.read(self.root / "PNGImages" / f"{name}.png", "RGB")
        mask = self.read(self.root / "PedMasks" / f"{name}_mask.png", "L")
        image = self._square(image, cv2.INTER_LINEAR)
        mask = self._square((mask > 0).astype(np.uint8), cv2.INTER_NEAREST)
        if self.uint8:
            image = torch.from_numpy(np.ascontiguousarray(image.transpose(2, 0, 1)))
            return image, torch.from_numpy(np.ascontiguousarray(mask))
        image = (image.astype(np.float32) / 255 - MEAN) / DEVIATION
        image = torch.from_numpy(np.ascontiguousarray(image.transpose(2, 0, 1)))
        return image, torch.from_numpy(mask.astype(np.int64))

    def _square(self, array, interpolation):
        height, width = array.shape[:2]
        if height < width:
            sides = int(self.size * width / height), self.size
        else:
            sides = self.size, int(self.size * height / width)
        array = cv2.resize(array, sides, interpolation=interpolation)
        top, left = ((n - self.size) // 2 for n in array.shape[:2])
        return array[top : top + self.size, left : left + self.size]


def normalised(image, mask):
    """Return a batch of uint8 as a batch of float32 and int64.

    Args:
        image: (samples, 3, size, size) uint8.
        mask: (samples, size, size) uint8.
    """
    mean, deviation = (torch.from_numpy(a)[:, None, None] for a in (MEAN, DEVIATION))
    # Two passes instead of three: (x / 255 - mean) / deviation, with both multiplied by 255.
    return image.float().sub_(255 * mean).div_(255 * deviation), mask.long()


def main() -> None:
    """Run the job and print its figures."""
    job = read_job()
    given = job.get("given", {})
    uint8, read = given.get("uint8", False), _by_kornia if given.get("kornia") else _by_pillow
    cv2.setNumThreads(0)
    dataset = PennFudan(Path(job["root"]), job["names"], job["size"], read, uint8)
    difference = check(dataset, np.load(job["expected"]))
    loader = DataLoader(
        dataset,
        job["batch_size"],
        shuffle=True,
        num_workers=job["workers"],
        persistent_workers=job["workers"] > 0,
    )
    durations = []
    for _ in range(job["epochs"]):
        start, total = time.perf_counter(), 0.0
        for image, mask in loader:
            if uint8:
                image, mask = normalised(image, mask)
            total += float(image.sum()) + float(mask.sum())
        durations.append(time.perf_counter() - start)
    figures = {
        "samples_per_second": len(dataset) / float(np.median(durations[1:])),
        "first_epoch_seconds": durations[0],
        "difference": difference,
        "checksum": total,
        "peak_memory_bytes": peak_memory(),
        "version": torch.__version__,
        "facts": facts(),
    }
    print(json.dumps(figures))


def check(dataset, expected) -> float:
    """Return the greatest difference between the first images and mxopt's.

    Args:
        dataset: the data set.
        expected: ``images`` and ``masks`` of mxopt.

    Raises:
        SystemExit: the difference exceeds the tolerance, or a mask differs.
    """
    difference = 0.0
    for number, (image, mask) in enumerate(zip(expected["images"], expected["masks"])):
        found = [part[None] for part in dataset[number]]
        found_image, found_mask = normalised(*found) if dataset.uint8 else found
        difference = max(difference, float(np.abs(found_image[0].numpy() - image).max()))
        if not difference < TOLERANCE or (found_mask[0].numpy() != mask).any():
            sys.exit(f"the peer's sample {number} differs from mxopt's by {difference}")
    return difference


if __name__ == "__main__":
    main()
