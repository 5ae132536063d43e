"""Several record files at the same time: every batch comes once, and errors arrive."""

import threading

import numpy as np
import pytest

from mxopt.methods.record_files import arrays, interleaved, write_images


@pytest.fixture
def files(tmp_path):
    """Three record files of 7, 7 and 6 images, and the sums of all pixels."""
    random = np.random.RandomState(0)
    images = [(random.randint(0, 256, (28, 28, 1)).astype("uint8"), n) for n in range(20)]
    paths = [write_images(images[7 * n : 7 * n + 7], tmp_path / f"{n}.rec") for n in range(3)]
    return paths, sorted(float(image.sum()) for image, _ in images)


def sums(batches):
    return [
        value
        for images, _ in list(batches)  # all are kept before the first is looked at
        for value in images.astype("float64").sum(axis=(1, 2, 3)).asnumpy().tolist()
    ]


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("shuffle", [True, False])
def test_every_image_comes_once(files, ordered, shuffle):
    paths, expected = files
    readers = [
        arrays(path, (1, 28, 28), 2, shuffle=shuffle, seed=3, dtype="uint8") for path in paths
    ]
    assert sorted(sums(interleaved(readers, ordered))) == expected


def test_batches_that_are_kept_do_not_change(tmp_path):
    # Many: the native reader writes over its first batches after some ten.
    images = [(np.full((28, 28, 1), value, np.uint8), value) for value in range(201)]
    path = write_images(images, tmp_path / "all.rec")
    found = list(arrays(path, (1, 28, 28), 2, dtype="uint8"))
    assert [len(images) for images, _ in found] == [2] * 100 + [1]
    assert [label for _, labels in found for label in labels.asnumpy()] == list(range(201))
    assert sums(found) == [28 * 28 * value for value in range(201)]


def test_in_order_each_reader_has_its_turn():
    assert list(interleaved(["ad", "b", "cef"])) == ["a", "b", "c", "d", "e", "f"]
    assert list(interleaved([])) == []


def test_out_of_order_nobody_waits_for_a_slow_reader():
    others_are_done = threading.Event()

    def slow():
        others_are_done.wait(30)
        yield "slow"

    def quick():
        yield from ("quick", "too")

    found = []
    for batch in interleaved([slow(), quick()], ordered=False):
        found.append(batch)
        if len(found) == 2:
            others_are_done.set()
    assert found == ["quick", "too", "slow"]


@pytest.mark.parametrize("ordered", [True, False])
def test_an_error_of_a_reader_is_raised_where_batches_are_taken(ordered):
    def broken():
        yield 1
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        list(interleaved([broken(), [2, 3, 4]], ordered))


def test_threads_end_when_nobody_takes_their_batches():
    before = set(threading.enumerate())
    batches = interleaved([iter(range(100)), iter(range(100))])
    assert next(batches) == 0
    ours = set(threading.enumerate()) - before
    assert len(ours) == 2
    batches.close()
    for thread in ours:
        thread.join(5)
        assert not thread.is_alive()
