"""A loader around another one."""

from __future__ import annotations


class Wrapped:
    """A loader that has the length, the epoch and the step of another one.

    Args:
        loader: a loader of :mod:`mxopt.methods.input_pipeline`.
    """

    def __init__(self, loader):
        self._loader = loader

    def __len__(self):
        return len(self._loader)

    def __iter__(self):
        return iter(self._loader)

    def __getattr__(self, name):
        return getattr(self._loader, name)

    def __setattr__(self, name, value):
        if name.startswith("_"):
            super().__setattr__(name, value)
        else:
            setattr(self._loader, name, value)
