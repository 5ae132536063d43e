"""A data set at whose seventh sample something happens, for the tests of worker processes."""

import contextlib
import faulthandler
import os
import signal

import psutil
from mxnet import gluon, nd

BATCHES = [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11]]


class Sick(gluon.data.Dataset):
    """Twelve samples, each its own number; something happens at the seventh."""

    def __init__(self, happens=lambda: None):
        self.happens = happens

    def __len__(self):
        return 12

    def __getitem__(self, index):
        if index == 7:
            self.happens()
        return nd.array([index, index])


def die(by=signal.SIGKILL):
    """End the worker process."""
    faulthandler.disable()  # it would fill the report of the tests
    os.kill(os.getpid(), by)


def alive(pids):
    """Return those of some processes that have not ended."""
    found = []
    for pid in pids:
        with contextlib.suppress(psutil.NoSuchProcess):
            if psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
                found.append(pid)
    return found
