import gzip

import pytest

from mxopt.core.errors import DataError
from mxopt.data import ParallelFolder, ParallelText
from mxopt.data.parallel_text import read_lines, read_pairs


def write(folder, **files):
    """Write each file's bytes (or text, in UTF-8); a name's underscore is its dot."""
    for name, content in files.items():
        content = content.encode() if isinstance(content, str) else content
        (folder / name.replace("_", ".")).write_bytes(content)
    return folder


def test_pairs_are_lines_of_two_files(tmp_path):
    write(tmp_path, a_en="A dog.\nA cat.\n", a_de="Ein Hund.\nEine Katze.\n")
    data = ParallelText(tmp_path / "a.en", tmp_path / "a.de")
    assert len(data) == 2
    assert data[1] == ("A cat.", "Eine Katze.")
    assert list(data.take(1)) == [("A dog.", "Ein Hund.")]
    assert data.left_out == []
    assert data.note == ""


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbfeins\r\nzwei\r\n",  # As Windows saves it.
        b"eins\nzwei",  # No line feed at the end.
        gzip.compress(b"eins\nzwei\n", mtime=0),
        b"  eins\t\nzwei \n",
    ],
)
def test_marks_line_ends_blanks_and_packing_make_no_difference(tmp_path, content):
    write(tmp_path, text=content)
    assert read_lines(tmp_path / "text") == ["eins", "zwei"]


def test_only_a_line_feed_ends_a_line(tmp_path):
    write(tmp_path, a="one\u2028two\x0bthree\x85four\n", b="eins\n")
    assert read_pairs(tmp_path / "a", tmp_path / "b").pairs == [
        ("one\u2028two\x0bthree\x85four", "eins")
    ]


def test_empty_lines_do_not_shift_what_follows(tmp_path):
    write(tmp_path, a="one\n\nthree\nfour\n \n", b="eins\nzwei\n\nvier\n\n")
    data = ParallelText(tmp_path / "a", tmp_path / "b")
    assert list(data) == [("one", "eins"), ("four", "vier")]
    assert data.left_out == [2, 3, 5]
    assert data.note.startswith("3 pairs of ")


@pytest.mark.fault(
    "files",
    "one of two parallel texts is cut off",
    sees="a has 3 lines and ...b has 2: each line needs its translation",
)
def test_files_of_different_length_are_refused_with_both_counts(tmp_path, sees):
    write(tmp_path, a="one\ntwo\nthree\n", b="eins\nzwei\n")
    with sees.raised(DataError):
        ParallelText(tmp_path / "a", tmp_path / "b")


@pytest.mark.fault("files", "a text is not UTF-8", sees="b is not UTF-8: line 2 has the byte 0xfc")
def test_text_that_is_not_utf8_is_named_by_file_and_line(tmp_path, sees):
    write(tmp_path, a="one\ntwo\n", b="eins\nfünf\n".encode("latin-1"))
    with sees.raised(DataError):
        ParallelText(tmp_path / "a", tmp_path / "b")


@pytest.mark.fault("files", "a packed text is cut off", sees="packed is not a complete gzip file")
def test_missing_empty_and_damaged_files_are_named(tmp_path, sees):
    write(tmp_path, a="one\n", empty="", packed=gzip.compress(b"eins\n" * 99)[:-9])
    with pytest.raises(DataError, match=r"missing cannot be read \(No such file"):
        ParallelText(tmp_path / "a", tmp_path / "missing")
    with pytest.raises(DataError, match="empty is empty: it must have one sentence"):
        ParallelText(tmp_path / "a", tmp_path / "empty")
    with sees.raised(DataError):
        ParallelText(tmp_path / "a", tmp_path / "packed")


def test_files_without_one_whole_pair_are_refused(tmp_path):
    write(tmp_path, a="one\n\n", b="\nzwei\n")
    with pytest.raises(DataError, match="no line with text in both: 2 lines, each empty"):
        ParallelText(tmp_path / "a", tmp_path / "b")


def test_a_folder_of_your_own_languages(tmp_path):
    write(tmp_path, train_en="a dog\n", train_fr="un chien\n", train_de="ein Hund\n")
    write(tmp_path, val_en=b"a cat\n", val_fr="un chat\n")
    write(tmp_path, test_en_gz=gzip.compress(b"a cow\n", mtime=0), test_fr="une vache\n")
    splits = [
        ParallelFolder(tmp_path, split, "en", "fr") for split in ("train", "validation", "test")
    ]
    assert [data[0][1] for data in splits] == ["un chien", "un chat", "une vache"]
    assert ParallelFolder(tmp_path, "train")[0] == ("a dog", "ein Hund")


def test_a_folder_without_the_files_says_which_were_looked_for(tmp_path):
    write(tmp_path, train_en="a dog\n")
    with pytest.raises(DataError, match=r"does not have train\.en and train\.de \(\.gz allowed\)"):
        ParallelFolder(tmp_path, "train")
    with pytest.raises(DataError, match=r"validation\.en and validation\.de or val\.en and val"):
        ParallelFolder(tmp_path, "validation")
    with pytest.raises(DataError, match="no split 'dev'; there are: train, validation, test"):
        ParallelFolder(tmp_path, "dev")
