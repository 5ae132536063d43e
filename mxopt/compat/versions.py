"""A stand-in for ``distutils.version``, which Python 3.12 no longer has.

MXNet and GluonCV compare release numbers with it when they are imported; nothing else of
``distutils`` is offered.
"""

from __future__ import annotations

from packaging.version import Version


class LooseVersion(Version):
    """A version that also compares with plain strings, as the class of this name did."""

    def __init__(self, vstring: str) -> None:
        super().__init__(vstring)
        self.vstring = vstring

    @property
    def version(self) -> list[int]:
        """The numbers of the release, such as ``[1, 9, 1]``."""
        return list(self.release)

    def __lt__(self, other):
        return super().__lt__(_parsed(other))

    def __le__(self, other):
        return super().__le__(_parsed(other))

    def __eq__(self, other):
        return super().__eq__(_parsed(other))

    def __ge__(self, other):
        return super().__ge__(_parsed(other))

    def __gt__(self, other):
        return super().__gt__(_parsed(other))

    __hash__ = Version.__hash__


def _parsed(other):
    return Version(other) if isinstance(other, str) else other


StrictVersion = LooseVersion
