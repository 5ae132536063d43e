import gzip
import os

import pytest

from mxopt.core.errors import DataError
from mxopt.data import Multi30k, ParallelFolder, fetch, locate, reachable

needs_real = pytest.mark.skipif(
    not os.environ.get("MXOPT_DATA"), reason="MXOPT_DATA names no folder with the real data"
)


@needs_real
@pytest.mark.parametrize(
    ("split", "pairs"), [("train", 29_000), ("validation", 1_014), ("test", 1_000)]
)
def test_the_real_splits_have_their_published_sizes(split, pairs):
    if not reachable("multi30k")[0]:
        pytest.skip("MXOPT_DATA has no multi30k")
    data = Multi30k(split)
    assert data.location.kind == "real"
    assert len(data) == pairs
    assert data.left_out == []


def test_a_given_folder_has_the_published_names(tmp_path):
    for stem in ("train", "val", "test_2016_flickr"):
        (tmp_path / f"{stem}.en.gz").write_bytes(gzip.compress(f"{stem}\n".encode()))
        (tmp_path / f"{stem}.de.gz").write_bytes(gzip.compress(b"deutsch\n"))
    assert Multi30k("train", tmp_path)[0] == ("train", "deutsch")
    assert Multi30k("validation", tmp_path)[0] == ("val", "deutsch")
    test = Multi30k("test", tmp_path)
    assert test[0] == ("test_2016_flickr", "deutsch")
    assert (test.location.kind, test.location.origin) == ("real", "given folder")


def test_an_unknown_split_is_answered_with_the_known_ones(tmp_path):
    with pytest.raises(DataError, match="no split 'val'; there are: train, validation, test"):
        Multi30k("val", tmp_path)


def test_tatoeba_stands_in(clean, monkeypatch):
    monkeypatch.setenv("MXOPT_OFFLINE", "1")
    data = Multi30k("test")
    assert (data.location.kind, data.location.origin) == ("stand-in", "embedded")
    assert [len(Multi30k(split)) for split in ("train", "validation", "test")] == [3600, 200, 200]
    again = Multi30k("test", data.location.path)
    assert again.location.kind == "stand-in"
    assert list(again) == list(ParallelFolder(data.location.path, "test"))


def test_fetch_reports_the_stand_in(clean, monkeypatch):
    monkeypatch.setenv("MXOPT_OFFLINE", "1")
    (row,) = fetch(["multi30k"], report=lambda line: None)
    assert row.location == locate("multi30k")
    assert row.location.kind == "stand-in"
