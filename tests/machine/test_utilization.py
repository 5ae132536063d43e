"""How busy GPUs are: the mean over all readings, only while it is asked, and never a failure."""

import itertools
import time

import pytest
from made_up_gpus import GPU_BUILD, FakeNvml

from mxopt import machine

TWO = (("Tesla V100", (7, 0)), ("NVIDIA H100", (9, 0)), ("Tesla T4", (7, 5)))


def _read(nvml, indices, seconds=0.1, skipped=0.0):
    busy = machine.Utilization(indices, 0.005, GPU_BUILD, nvml, skipped)
    with busy:
        time.sleep(seconds)
    return busy


def test_zeros_are_part_of_the_mean():
    rates = [itertools.cycle((0, 0, 0, 80)), None, itertools.repeat(40)]
    nvml = FakeNvml(*TWO, rates=rates)
    busy = _read(
        nvml, [0, 1], seconds=0.5
    )  # MXNet's GPU 1 is the driver's 2: it cannot use the H100
    assert busy.figures()["gpu_utilization"] == pytest.approx(30, abs=4)
    assert not nvml.open


def test_nothing_is_read_outside_of_the_block():
    counted = itertools.count()
    nvml = FakeNvml(TWO[0], rates=[counted])
    busy = _read(nvml, [0])
    read = next(counted)
    assert read > 2
    time.sleep(0.05)
    assert next(counted) == read + 1
    before = busy.figures()["gpu_utilization"]
    with busy:
        time.sleep(0.1)
    assert busy.figures()["gpu_utilization"] > before, "the second block added no readings"


def test_what_is_of_the_time_before_is_not_read():
    counted = itertools.count()
    assert _read(FakeNvml(TWO[0], rates=[counted]), [0], 0.1, skipped=60).figures() == {}
    assert next(counted) == 0
    assert _read(FakeNvml(TWO[0], rates=[counted]), [0], 0.3, skipped=0.05).figures()


@pytest.mark.parametrize(
    ("nvml", "indices"),
    [
        (FakeNvml(TWO[0]), []),
        (FakeNvml(TWO[0]), [1]),
        (FakeNvml(TWO[1]), [0]),
        (FakeNvml(error=FakeNvml.NVMLError_LibraryNotFound()), [0]),
    ],
)
def test_without_a_gpu_there_is_no_figure(nvml, indices):
    assert _read(nvml, indices, 0.02).figures() == {}


def test_a_driver_that_cannot_tell_stops_nothing():
    def lost():
        yield 50
        raise FakeNvml.NVMLError("GPU is lost")

    assert _read(FakeNvml(TWO[0], rates=[lost()]), [0]).figures() == {"gpu_utilization": 50}
