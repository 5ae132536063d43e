import os
from pathlib import Path

import pytest

from mxopt.core.atomic import by_number, replace_text
from mxopt.core.errors import RecordError


def test_a_text_is_replaced_and_nothing_else_stays(tmp_path):
    for text in ("old\n", "new: ü\n"):
        replace_text(tmp_path / "page.md", text)
        assert (tmp_path / "page.md").read_text(encoding="utf-8") == text
    assert [path.name for path in tmp_path.iterdir()] == ["page.md"]


def test_a_device_is_written_to_and_not_replaced():
    before = os.stat(os.devnull)
    replace_text(os.devnull, "text")
    after = os.stat(os.devnull)
    assert (before.st_ino, before.st_mode) == (after.st_ino, after.st_mode)


def test_a_folder_is_not_a_file_to_write(tmp_path):
    with pytest.raises(RecordError, match="cannot write"):
        replace_text(tmp_path, "text")


@pytest.mark.fault(
    "disk",
    "the disk is full when a page, a description or a notebook is written",
    sees="cannot write ...page.md (File too large); free some space",
)
def test_a_full_disk_leaves_the_old_text(tmp_path, little_disk, sees):
    replace_text(tmp_path / "page.md", "old\n")
    with little_disk(1000), sees.raised(RecordError):
        replace_text(tmp_path / "page.md", "new\n" * 1000)
    assert (tmp_path / "page.md").read_text() == "old\n"
    assert [path.name for path in tmp_path.iterdir()] == ["page.md"]


@pytest.mark.fault(
    "disk",
    "a page is to be written where nothing can be",
    sees="cannot write /proc/page.md (No such file or directory); free some space, "
    "or choose a folder that can be written to",
)
def test_a_folder_that_cannot_be_written_to_is_named(sees):
    with sees.raised(RecordError):
        replace_text("/proc/page.md", "new\n")


def test_files_are_put_in_the_order_of_their_numbers():
    names = ["epoch-9999", "epoch-10000", "epoch-10000-step-0000002", "epoch-10000-step-10000000"]
    paths = [Path(f"{name}.json") for name in names]
    assert by_number(reversed(paths)) == paths
