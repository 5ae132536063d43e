"""MXNet's record files (RecordIO): written from a data set, read by position or natively.

A record file ``name.rec`` has the samples, ``name.idx`` where each begins. Images with a class are
in MXNet's own layout: ``gluon.data.vision.ImageRecordDataset`` and ``mx.io.ImageRecordIter`` read
them too. Images with a mask are two encoded images one after the other.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import cv2
import mxnet as mx
import numpy as np
from mxnet import recordio

from mxopt.core import progress_bar
from mxopt.core.errors import DataError
from mxopt.data import ndarray_memory


def write_images(
    dataset: Sequence, path: str | Path, quality: int | None = None, side: int | None = None
) -> Path:
    """Write images with a class each into a record file.

    Args:
        dataset: samples (image, label): (height, width, channels) uint8, 1 or 3 channels in the
            order red, green, blue, and a number.
        path: of the file, ``name.rec``; ``name.idx`` is written beside it.
        quality: of JPEG, from 1 to 100; None writes PNG, without loss.
        side: the shorter side that images are resized to; None keeps their size.

    Returns:
        The path.

    Raises:
        DataError: there is no sample, a file cannot be written, an image cannot be encoded, or
            the quality or the side is out of range.
    """
    _check(quality, side)

    def packed(index, image, label):
        header = recordio.IRHeader(0, float(label), index, 0)
        return recordio.pack(header, _encoded(_resized(image, side), quality))

    return _write(dataset, path, packed)


def write_pairs(
    dataset: Sequence, path: str | Path, quality: int | None = None, side: int | None = None
) -> Path:
    """Write images with a mask each into a record file.

    Args:
        dataset: samples (image, mask): (height, width, 3) and (height, width, 1), uint8.
        path: of the file, ``name.rec``; ``name.idx`` is written beside it.
        quality: of JPEG for the images; None writes PNG. Masks are always PNG.
        side: the shorter side that both are resized to; None keeps their size.

    Returns:
        The path.

    Raises:
        DataError: as for :func:`write_images`.
    """
    _check(quality, side)

    def packed(index, image, mask):
        first = _encoded(_resized(image, side), quality)
        second = _encoded(_resized(mask, side, cv2.INTER_NEAREST), None)
        # The label says where the mask begins; float32 holds whole numbers up to 2**24.
        if len(first) >= 2**24:
            raise DataError(f"image {index} has {len(first):,} bytes; write it smaller (side)")
        return recordio.pack(recordio.IRHeader(0, float(len(first)), index, 0), first + second)

    return _write(dataset, path, packed)


class RecordPairs(mx.gluon.data.Dataset):
    """The samples that :func:`write_pairs` wrote: sample i is ``(image, mask)``.

    MXNet opens the file again in every worker process.

    Args:
        path: of the file, ``name.rec``.

    Raises:
        DataError: the file or its index is missing.
    """

    def __init__(self, path: str | Path):
        path = Path(path)
        for file in (path, path.with_suffix(".idx")):
            if not file.exists():
                raise DataError(f"{file} does not exist; write it with write_pairs")
        self._records = recordio.MXIndexedRecordIO(str(path.with_suffix(".idx")), str(path), "r")
        self._keys = list(self._records.keys)

    def __len__(self):
        """Return the number of samples."""
        return len(self._keys)

    def __getitem__(self, index):
        """Return sample ``index`` as (image, mask)."""
        header, content = recordio.unpack(self._records.read_idx(self._keys[index]))
        begin = int(header.label)
        image = _decoded(content[:begin], cv2.IMREAD_COLOR)[..., ::-1]
        mask = _decoded(content[begin:], cv2.IMREAD_GRAYSCALE)[..., None]
        return ndarray_memory.copied(image), ndarray_memory.copied(mask)


def native_reader(
    path: str | Path,
    shape: tuple[int, int, int],
    batch_size: int,
    threads: int = 1,
    shuffle: bool = False,
    seed: int = 0,
    part: tuple[int, int] = (0, 1),
    **options,
):
    """Return MXNet's reader of record files, which decodes in threads of its own, without Python.

    Args:
        path: of the file, ``name.rec``, from :func:`write_images`.
        shape: (channels, height, width) of an image of a batch.
        batch_size: number of samples of a batch; the last one is filled up with the first samples.
        threads: number of threads that decode.
        shuffle: whether the order changes in each epoch.
        seed: seed of the orders.
        part: number of the part that is read, and of all parts, as for several processes.
        **options: further arguments of ``mx.io.ImageRecordIter``.
    """
    return mx.io.ImageRecordIter(
        path_imgrec=str(path),
        path_imgidx=str(Path(path).with_suffix(".idx")),
        data_shape=shape,
        batch_size=batch_size,
        preprocess_threads=threads,
        shuffle=shuffle,
        seed=seed,
        part_index=part[0],
        num_parts=part[1],
        **options,
    )


def _write(dataset, path, packed: Callable) -> Path:
    path = Path(path)
    if not len(dataset):
        raise DataError("there is no sample to write")
    if path.suffix != ".rec":
        raise DataError(f"{path} has to end in .rec; MXNet looks for the index by that name")
    unfinished = path.with_name(f".{path.stem}.{os.getpid()}.rec")
    files = [(unfinished.with_suffix(end), path.with_suffix(end)) for end in (".rec", ".idx")]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished.touch()  # MXNet's error does not say why a file cannot be made
        writer = recordio.MXIndexedRecordIO(str(files[1][0]), str(files[0][0]), "w")
        try:
            with progress_bar.track(f"write {path.name}", len(dataset)) as step:
                for index in range(len(dataset)):
                    step("")
                    record = packed(index, *map(_array, dataset[index]))
                    _append(writer, index, record)
        finally:
            writer.close()
        for part, whole in files:
            part.replace(whole)
    except OSError as error:
        raise DataError(
            f"{path} cannot be written ({error.strerror or error}); free some space, or name a "
            "file in another folder"
        ) from error
    finally:
        for part, _ in files:
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)
    return path


def _append(writer, index: int, record: bytes) -> None:
    try:
        writer.write_idx(index, record)
    except mx.MXNetError as error:  # such as a full disk
        raise OSError(str(error).strip().splitlines()[-1]) from None


def _check(quality: int | None, side: int | None) -> None:
    if quality is not None and not 1 <= quality <= 100:
        raise DataError(f"quality={quality} must be from 1 to 100; leave it out for PNG")
    if side is not None and side < 1:
        raise DataError(f"side={side} must be at least 1 pixel; leave it out to keep the sizes")


def _array(value):
    return value.asnumpy() if hasattr(value, "asnumpy") else value


def _resized(image: np.ndarray, side: int | None, how: int = cv2.INTER_AREA) -> np.ndarray:
    if side is None:
        return image
    scale = side / min(image.shape[:2])
    size = [max(side, round(scale * length)) for length in image.shape[1::-1]]
    return cv2.resize(image, size, interpolation=how).reshape((*size[::-1], image.shape[2]))


def _encoded(image: np.ndarray, quality: int | None) -> bytes:
    ending = ".png" if quality is None else ".jpg"
    how = [] if quality is None else [cv2.IMWRITE_JPEG_QUALITY, quality]
    pixels = image[..., ::-1] if image.shape[2] == 3 else image
    done, content = cv2.imencode(ending, pixels, how)
    if not done:
        raise DataError(f"an image of shape {image.shape} cannot be encoded as {ending}")
    return content.tobytes()


def _decoded(content: bytes, how: int) -> np.ndarray:
    image = cv2.imdecode(np.frombuffer(content, np.uint8), how)
    if image is None:
        raise DataError("a record is damaged: its image cannot be decoded; write the file again")
    return image
