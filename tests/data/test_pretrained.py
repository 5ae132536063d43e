"""GluonCV's weights: a small file stands for them, under the name and hash of its own."""

import hashlib
import zipfile

import pytest
from gluoncv.model_zoo import model_store

from mxopt.core.errors import DataError
from mxopt.core.plan import Plan
from mxopt.data import fetch, pretrained
from mxopt.measure import run

[NAME] = pretrained.NAMES
CONTENT = b"weights"


@pytest.fixture
def zoo(monkeypatch, tmp_path):
    """A zoo with one file; yields the addresses that it was asked for."""
    asked, digest = [], hashlib.sha1(CONTENT).hexdigest()

    def download(url, path, overwrite):
        asked.append(url)
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(f"{NAME}-{digest[:8]}.params", CONTENT)

    monkeypatch.setenv("MXNET_HOME", str(tmp_path))
    monkeypatch.delenv("MXOPT_OFFLINE", raising=False)
    monkeypatch.setitem(model_store._model_sha1, NAME, digest)
    monkeypatch.setattr(model_store, "download", download)
    return asked


def test_weights_are_fetched_once_and_found_offline(zoo, monkeypatch):
    (row,) = fetch([NAME], report=lambda line: None)
    assert row.location.path.read_bytes() == CONTENT
    assert (row.size, row.hash_checked) == (len(CONTENT), True)
    monkeypatch.setenv("MXOPT_OFFLINE", "1")
    assert pretrained.gluoncv_weights(NAME) == row.location.path
    row.location.path.write_bytes(b"damaged")
    with pytest.raises(DataError, match="or are damaged"):
        pretrained.gluoncv_weights(NAME)
    assert len(zoo) == 1


def test_nothing_is_downloaded_offline(zoo, monkeypatch):
    monkeypatch.setenv("MXOPT_OFFLINE", "1")
    with pytest.raises(DataError, match=f"downloads nothing; run `mxopt fetch {NAME}` first"):
        pretrained.gluoncv_weights(NAME)
    (row,) = fetch([NAME], report=lambda line: None)
    assert row.location is None
    assert zoo == []


def test_a_measured_process_without_the_weights_is_refused_with_advice(monkeypatch, tmp_path):
    monkeypatch.setenv("MXNET_HOME", str(tmp_path))
    options = {"recipe": "segmentation", "network": "deeplab_resnet101", "size": 240, "limit": 4}
    done = run("mxopt.chapter.workloads:train", Plan(), tmp_path / "run.jsonl", options)
    assert done.status == "refused"
    assert f"run `mxopt fetch {NAME}` first" in done.reason
