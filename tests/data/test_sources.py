import hashlib
import os

import pytest

from mxopt.core.errors import DataError
from mxopt.data import download, fetch, hashes, locate, reachable, sources, verify
from mxopt.data.registry import RemoteFile, Source

needs_real = pytest.mark.skipif(
    not os.environ.get("MXOPT_DATA"), reason="MXOPT_DATA names no folder with the real data"
)
NOBODY = "http://127.0.0.1:9"  # The discard port: nothing answers there.


def source(url, names=("one", "two"), folder="numbers", stand_in="streets"):
    files = tuple(
        RemoteFile(name, hashlib.sha256(name.encode()).hexdigest(), f"{url}/{name}")
        for name in names
    )
    return Source("numbers", "Numbers", folder, names, files, stand_in=stand_in)


def fill(folder, names=("one", "two")):
    folder.mkdir(parents=True)
    for name in names:
        (folder / name).write_text(name)
    return folder


@pytest.fixture
def own(clean, tmp_path, monkeypatch):
    """An empty folder that MXOPT_DATA names."""
    (tmp_path / "own" / "data").mkdir(parents=True)
    monkeypatch.setenv("MXOPT_DATA", str(tmp_path / "own" / "data"))
    return tmp_path / "own" / "data"


def test_the_order_is_own_folder_cache_upstream_stand_in(server, own, clean, register):
    register(source(server.url))
    assert locate("numbers").origin == "embedded"  # The server has no files yet.
    assert locate("numbers").kind == "stand-in"
    server.files.update({"/one": b"one", "/two": b"two"})
    assert locate("numbers", allow_download=False).origin == "embedded"
    upstream = locate("numbers")
    assert (upstream.kind, upstream.origin) == ("real", "upstream")
    cached = locate("numbers")
    assert (cached.kind, cached.origin, cached.path) == ("real", "cache", upstream.path)
    fill(own / "numbers")
    first = locate("numbers")
    assert (first.kind, first.origin, first.path) == ("real", "MXOPT_DATA", own / "numbers")
    assert first.note == ""


def test_the_note_says_why_the_earlier_places_were_passed_over(own, register):
    register(source(NOBODY))
    note = locate("numbers").note
    assert "MXOPT_DATA has no numbers" in note
    assert "does not have it" in note
    assert f"{NOBODY}/one does not answer" in note


@pytest.mark.fault(
    "files",
    "the data folder in MXOPT_DATA lacks a file",
    sees="1 file missing of 2 (one); complete the folder or remove it",
)
def test_an_incomplete_folder_of_the_users_names_the_missing_files(own, register, sees):
    register(source(NOBODY))
    fill(own / "numbers", ["two"])
    with sees.raised(DataError):
        locate("numbers")
    able, why = reachable("numbers")
    assert not able
    assert "1 file missing of 2 (one)" in why


def test_many_missing_files_are_counted_and_the_first_named(own):
    (own / "PennFudanPed" / "PNGImages").mkdir(parents=True)
    with pytest.raises(DataError, match=r"340 files missing of \d+ \(PNGImages/FudanPed00001\.png"):
        locate("penn-fudan")


@pytest.mark.fault("files", "the cache lacks a file", sees="lacks 1 of its files")
def test_an_incomplete_cache_is_fetched_again(server, clean, register, sees):
    register(source(server.url))
    server.files.update({"/one": b"one", "/two": b"two"})
    fill(clean / "numbers", ["two"])
    location = locate("numbers")
    assert location.origin == "upstream"
    sees(location.note)
    assert (clean / "numbers" / "one").read_text() == "one"


def test_a_variable_that_names_no_folder_is_an_error(clean, monkeypatch, tmp_path):
    monkeypatch.setenv("MXOPT_DATA", str(tmp_path / "typing-error"))
    with pytest.raises(DataError, match=r"MXOPT_DATA is set to .*typing-error, which is"):
        locate("penn-fudan")


def test_a_download_of_the_wrong_content_is_not_replaced_by_the_stand_in(server, clean, register):
    register(source(server.url))
    server.files.update({"/one": b"one", "/two": b"three"})
    with pytest.raises(DataError, match=r"two from .* was expected"):
        locate("numbers")
    assert not (clean / "numbers").exists()


@pytest.mark.parametrize("place", ["own/data/weights", "own/weights", "elsewhere"])
def test_weights_are_found_in_or_beside_the_data_or_by_their_variable(
    own, tmp_path, monkeypatch, place
):
    name = "deeplabv3_mnv2_pascal_quant.tflite"
    if place == "elsewhere":
        monkeypatch.setenv("MXOPT_WEIGHTS", str(tmp_path / place))
    fill(tmp_path / place, [name])
    location = locate("deeplab-mobilenetv2", allow_download=False)
    assert location.path / name == tmp_path / place / name
    assert location.origin == ("MXOPT_WEIGHTS" if place == "elsewhere" else "MXOPT_DATA")


def test_weights_have_no_stand_in_and_the_error_says_how_to_get_them(clean):
    with pytest.raises(DataError, match="run `mxopt fetch deeplab-mobilenetv2`, or put weights/de"):
        locate("deeplab-mobilenetv2", allow_download=False)


def test_reachable_asks_without_downloading(server, clean, register):
    register(source(server.url))
    server.files.update({"/one": b"one", "/two": b"two"})
    able, where = reachable("numbers")
    assert able
    assert server.url in where
    assert [method for method, _ in server.requests] == ["HEAD"]
    assert not (clean / "numbers").exists()


def test_reachable_says_what_does_not_answer(clean, register):
    register(source(NOBODY))
    able, why = reachable("numbers")
    assert not able
    assert f"{NOBODY}/one does not answer" in why


def test_verify_finds_a_changed_byte_that_locate_does_not_look_for(own, register):
    register(source(NOBODY))
    fill(own / "numbers")
    assert verify("numbers").origin == "MXOPT_DATA"
    (own / "numbers" / "two").write_text("twp")
    assert locate("numbers").origin == "MXOPT_DATA"
    found, expected = (hashlib.sha256(word).hexdigest() for word in (b"twp", b"two"))
    with pytest.raises(DataError, match=f"numbers/two has SHA-256 {found} where {expected} was"):
        verify("numbers")


def test_verify_without_a_local_copy_says_so(clean, register):
    register(source(NOBODY))
    with pytest.raises(DataError, match="no local copy of numbers to check"):
        verify("numbers")


def test_fetch_reports_a_row_each_and_goes_on_after_a_problem(server, own, register):
    register(source(server.url, stand_in=None))
    fill(own / "weights", ["deeplabv3_mnv2_pascal_quant.tflite"])
    lines = []
    rows = fetch(["numbers", "deeplab-mobilenetv2"], report=lines.append)
    assert rows[0].location is None
    assert "Numbers was not found" in lines[0]
    assert rows[1].location.kind == "real"
    assert not rows[1].hash_checked
    assert "hash not checked" in lines[1]
    server.files.update({"/one": b"one", "/two": b"two"})
    (row,) = fetch(["numbers"], report=lines.append)
    assert (row.location.origin, row.size, row.hash_checked) == ("upstream", 6, True)
    (row,) = fetch(["numbers"], check=True, report=lines.append)
    assert (row.location.origin, row.hash_checked) == ("cache", True)


def test_the_stand_in_is_unpacked_into_the_cache_once(clean, monkeypatch):
    location = locate("penn-fudan", allow_download=False)
    assert location.kind == "stand-in"
    assert location.path.parent == clean
    assert len(list((location.path / "PNGImages").glob("*.png"))) == 48
    monkeypatch.setattr(sources, "unzip", None)  # not called again
    assert sources.stand_in("penn-fudan").path == location.path


def test_a_stand_in_with_a_file_missing_is_unpacked_again(clean):
    path = sources.stand_in("penn-fudan").path / "PNGImages" / "Street00001.png"
    path.unlink()
    sources.stand_in("penn-fudan")
    assert path.is_file()


def test_another_process_may_unpack_the_stand_in_first(clean, monkeypatch):
    def late(archive, folder):
        download.unzip(archive, clean / f"streets-{hashes.file_sha256(archive)[:8]}")
        raise OSError(39, "Directory not empty")

    monkeypatch.setattr(sources, "unzip", late)
    assert sources.stand_in("penn-fudan").path.parent == clean


@pytest.mark.fault(
    "disk",
    "the cache cannot be written to",
    sees="set MXOPT_CACHE to a folder that can be written to",
)
def test_a_cache_that_cannot_be_written_to_is_named(clean, monkeypatch, tmp_path, sees):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MXOPT_CACHE", str(tmp_path / "file"))
    with sees.raised(DataError):
        locate("penn-fudan", allow_download=False)


@pytest.mark.fault(
    "disk", "the disk is full during a download", sees="Numbers was not found: ...File too large"
)
def test_a_full_disk_during_a_download_leaves_nothing(server, clean, register, little_disk, sees):
    register(source(server.url, names=("one",), stand_in=None))
    server.files["/one"] = b"one" * 10_000
    with little_disk(5000), sees.raised(DataError):
        locate("numbers")
    assert list(clean.iterdir()) == []


@needs_real
@pytest.mark.parametrize("name", ["penn-fudan", "fashion-mnist", "multi30k"])
def test_the_real_data_has_the_hashes_of_the_registry(name):
    if not reachable(name)[0]:
        pytest.skip(f"MXOPT_DATA has no {name}")
    assert verify(name).kind == "real"
