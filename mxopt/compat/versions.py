"""A replacement for ``distutils.version``, which Python 3.12 no longer has.

MXNet and GluonCV use it to compare release numbers when they are imported. The rest of
``distutils`` is not provided.
"""

from __future__ import annotations

from packaging.version import Version


class LooseVersion(Version):
    """A version that can also be compared with strings, as in ``distutils``.

    Args:
        vstring: the version, such as ``"1.9.1"``.

    Attributes:
        vstring: as above.
    """

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
