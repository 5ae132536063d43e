import re

import pytest

from mxopt.core.errors import DataError
from mxopt.data import SOURCES
from mxopt.data.registry import source


def test_every_shipped_address_is_https():
    addresses = [url for entry in SOURCES.values() for url in entry.urls]
    assert addresses
    assert [url for url in addresses if not url.startswith("https://")] == []


def test_everything_shipped_has_a_sha256():
    for entry in SOURCES.values():
        hashes = [file.sha256 for file in entry.files]
        hashes += [entry.archive.tree_sha256] if entry.archive else []
        assert hashes
        assert all(re.fullmatch("[0-9a-f]{64}", sha256) for sha256 in hashes)


def test_penn_fudan_is_170_images_and_170_masks():
    required = SOURCES["penn-fudan"].required
    assert sum(name.startswith("PNGImages/") for name in required) == 170
    assert sum(name.startswith("PedMasks/") for name in required) == 170
    assert len(set(required)) == 340


def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(DataError, match=r"'cityscapes'; there are: penn-fudan, fashion-mnist"):
        source("cityscapes")
