import hashlib
import io
import stat
import zipfile

import pytest

from mxopt.core.errors import DataError
from mxopt.data.download import UnreachableError, download
from mxopt.data.hashes import tree_sha256
from mxopt.data.registry import Archive, RemoteFile, Source

CONTENT = bytes(range(256)) * 400


def one_file(server, sha256=None):
    server.files["/letters.bin"] = CONTENT
    sha256 = sha256 or hashlib.sha256(CONTENT).hexdigest()
    file = RemoteFile("letters.bin", sha256, server.url + "/letters.bin")
    return Source("letters", "Letters", "letters", ("letters.bin",), (file,))


def zipped(members):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()


def one_archive(server, packed, tree="0" * 64, members=("a.bin", "b.txt"), urls=("/set.zip",)):
    server.files["/set.zip"] = packed
    archive = Archive(tuple(server.url + url for url in urls), members, tree)
    return Source("set", "A set", "Set", members, archive=archive)


def good_tree(tmp_path):
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "a.bin").write_bytes(CONTENT)
    (tmp_path / "tree" / "b.txt").write_bytes(b"two\nlines\n")
    return tree_sha256(tmp_path / "tree", ["a.bin", "b.txt"])


def leftovers(cache):
    return sorted(path.name for path in cache.rglob("*"))


def test_a_whole_download_is_put_in_place(server, clean):
    download(one_file(server), clean / "letters")
    assert leftovers(clean) == ["letters", "letters.bin"]
    assert (clean / "letters" / "letters.bin").read_bytes() == CONTENT


@pytest.mark.fault("network", "the connection breaks once", sees="nothing")
def test_a_broken_connection_is_started_again(server, clean, capfd, sees):
    server.drops = 1
    download(one_file(server), clean / "letters")
    assert (clean / "letters" / "letters.bin").read_bytes() == CONTENT
    assert server.requests == [("GET", "/letters.bin")] * 2
    sees("".join(capfd.readouterr()) or "nothing")


@pytest.mark.fault(
    "network",
    "the connection breaks again and again",
    sees="letters.bin broke twice",
)
def test_a_connection_that_keeps_breaking_leaves_nothing_and_the_next_call_succeeds(
    server, clean, sees
):
    server.drops = 2
    source = one_file(server)
    with sees.raised(UnreachableError):
        download(source, clean / "letters")
    assert leftovers(clean) == []
    download(source, clean / "letters")
    assert (clean / "letters" / "letters.bin").read_bytes() == CONTENT


@pytest.mark.fault(
    "network",
    "a download has another SHA-256",
    sees="has another SHA-256 than was expected, twice, so it is not used",
)
def test_a_wrong_hash_is_refused_with_file_expected_and_found(server, clean, sees):
    with pytest.raises(DataError) as refused:
        download(one_file(server, sha256="a" * 64), clean / "letters")
    message = str(refused.value)
    sees(message)
    assert "letters.bin" in message
    assert "a" * 64 in message
    assert hashlib.sha256(CONTENT).hexdigest() in message
    assert len(server.requests) == 2
    assert not isinstance(refused.value, UnreachableError)
    assert leftovers(clean) == []


@pytest.mark.fault(
    "network",
    "an address no longer has the file",
    sees="letters.bin does not answer (HTTP 404)",
)
def test_an_address_without_the_file_is_unreachable(server, clean, sees):
    source = one_file(server)
    server.files.clear()
    with sees.raised(UnreachableError):
        download(source, clean / "letters")
    assert len(server.requests) == 1  # another attempt would not help


@pytest.mark.fault("network", "there is no network", sees="did not answer a moment ago")
def test_a_host_that_is_not_there_is_asked_once_a_minute(server, clean, sees):
    source = one_file(server)
    server.stop()
    with pytest.raises(UnreachableError, match="does not answer"):
        download(source, clean / "letters")
    with sees.raised(UnreachableError):
        download(source, clean / "letters")


def test_an_archive_is_unpacked_and_its_content_checked(server, clean, tmp_path):
    members = {"Set/a.bin": CONTENT, "Set/b.txt": b"two\r\nlines\r\n", "Set/extra": b"more"}
    source = one_archive(server, zipped(members), good_tree(tmp_path))
    download(source, clean / "Set")
    assert leftovers(clean) == ["Set", "a.bin", "b.txt", "extra"]


def test_the_second_address_serves_where_the_first_does_not(server, clean, tmp_path):
    packed = zipped({"Set/a.bin": CONTENT, "Set/b.txt": b"two\nlines\n"})
    source = one_archive(server, packed, good_tree(tmp_path), urls=("/gone.zip", "/set.zip"))
    download(source, clean / "Set")
    assert (clean / "Set" / "a.bin").read_bytes() == CONTENT


@pytest.mark.fault(
    "files",
    "an archive unpacks to other files than the published ones",
    sees="SHA-256 ... was expected",
)
def test_an_archive_of_other_content_is_refused(server, clean, tmp_path, sees):
    expected = good_tree(tmp_path)
    packed = zipped({"Set/a.bin": CONTENT, "Set/b.txt": b"two other lines\n"})
    with sees.raised(DataError):
        download(one_archive(server, packed, expected), clean / "Set")
    assert leftovers(clean) == []


@pytest.mark.fault("files", "an archive lacks files", sees="1 file missing of 2 (b.txt)")
def test_an_archive_without_its_files_is_refused(server, clean, sees):
    packed = zipped({"Set/a.bin": CONTENT})
    with sees.raised(DataError):
        download(one_archive(server, packed), clean / "Set")
    assert leftovers(clean) == []


@pytest.mark.parametrize("name", ["../outside", "Set/../../outside", "/outside", "..\\outside"])
@pytest.mark.fault(
    "files",
    "an archive would write outside its folder",
    sees="was refused: its member ... would be written outside the data folder",
)
def test_an_archive_that_would_write_outside_is_refused(server, clean, tmp_path, name, sees):
    packed = zipped({"Set/a.bin": CONTENT, name: b"!"})
    with sees.raised(DataError):
        download(one_archive(server, packed), clean / "Set")
    assert leftovers(clean) == []
    assert not list(tmp_path.rglob("*outside*"))


def test_an_archive_with_a_link_is_refused(server, clean):
    link = zipfile.ZipInfo("Set/a.bin")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with pytest.raises(DataError, match="would be written outside"):
        download(one_archive(server, zipped({link: "/etc"})), clean / "Set")


@pytest.mark.fault(
    "files",
    "an archive is cut off or damaged",
    sees="is not a complete zip file ... fetch it again",
)
def test_a_damaged_archive_is_refused(server, clean, sees):
    packed = bytearray(zipped({"Set/a.bin": CONTENT, "Set/b.txt": b"two\nlines\n"}))
    packed[len(packed) // 3] ^= 0xFF
    with sees.raised(DataError):
        download(one_archive(server, bytes(packed)), clean / "Set")
    with sees.raised(DataError):
        download(one_archive(server, bytes(packed[:-30])), clean / "Set")
    with sees.raised(DataError):
        download(one_archive(server, b"<html>Please log in</html>"), clean / "Set")
    assert leftovers(clean) == []


def test_a_folder_that_another_process_finished_first_is_kept(server, clean):
    source = one_file(server)
    download(source, clean / "letters")
    first = (clean / "letters").stat().st_ino
    download(source, clean / "letters")
    assert (clean / "letters").stat().st_ino == first
    (clean / "letters" / "letters.bin").unlink()
    download(source, clean / "letters")
    assert leftovers(clean) == ["letters", "letters.bin"]
