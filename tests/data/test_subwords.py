import pickle
import zipfile
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mxopt.core.errors import DataError
from mxopt.data import subwords
from mxopt.data.sources import STAND_INS
from mxopt.data.subwords import train_subwords

with zipfile.ZipFile(STAND_INS / "tatoeba.zip") as packed:
    texts = [packed.read(name).decode().splitlines() for name in ("train.en", "train.de")]
LINES = [line for pair in list(zip(*texts))[:400] for line in pair]


@pytest.fixture(scope="module")
def trained():
    return train_subwords(LINES, 500)


def test_text_comes_back_from_its_numbers(trained):
    assert len(trained) == 500
    assert trained.note == ""
    for line in LINES:
        numbers = trained.encode(line)
        assert min(numbers) > trained.eos
        assert max(numbers) < len(trained)
        assert trained.decode(numbers) == line


@given(st.text(alphabet=sorted(set("".join(LINES))), max_size=40))
def test_any_text_of_known_characters_comes_back_with_single_blanks(trained, text):
    assert trained.decode(trained.encode(text)) == " ".join(text.split())


def test_one_vocabulary_serves_both_languages(trained):
    assert trained.pieces("the") == ["▁the"]
    assert trained.pieces("die") == ["▁die"]
    compound = trained.pieces("Großmutterhund")
    assert len(compound) > 1
    assert "".join(compound) == "▁Großmutterhund"


def test_special_numbers_are_fixed_and_silent(trained):
    assert (trained.pad, trained.unknown, trained.bos, trained.eos) == (0, 1, 2, 3)
    numbers = trained.encode("The dog runs.")
    assert trained.decode([2, *numbers, 3, *numbers, 0, 0]) == "The dog runs."
    assert trained.decode([]) == ""


def test_an_unknown_character_is_marked_and_nothing_else_lost(trained):
    numbers = trained.encode("the 漢 dog")
    assert trained.unknown in numbers
    assert trained.decode(numbers) == "the ⁇ dog"


def test_the_same_lines_give_the_same_vocabulary(tmp_path):
    one, other = (train_subwords(LINES, 300, tmp_path / name) for name in ("one", "other"))
    assert one.path.read_bytes() == other.path.read_bytes()
    assert one.path.name == other.path.name


def test_a_kept_vocabulary_is_read_and_not_learned_again(tmp_path, monkeypatch):
    first = train_subwords(LINES, 300, tmp_path)
    monkeypatch.setattr(subwords, "_trained", None)
    again = train_subwords(LINES, 300, tmp_path)
    assert again.encode(LINES[0]) == first.encode(LINES[0])
    kept = {path.name for path in tmp_path.iterdir()}
    assert kept == {first.path.name, first.path.with_suffix(".sha256").name}
    named = first.path.with_suffix(".sha256").read_text().split()
    assert named == [sha256(first.path.read_bytes()).hexdigest(), first.path.name]


def test_other_lines_or_sizes_have_files_of_their_own(tmp_path):
    paths = {
        train_subwords(lines, size, tmp_path).path
        for lines, size in ((LINES, 300), (LINES, 310), (LINES[1:], 300))
    }
    assert len(paths) == 3


@pytest.mark.fault("files", "a kept vocabulary is damaged", sees="nothing")
def test_a_damaged_vocabulary_is_learned_anew(tmp_path, sees):
    first = train_subwords(LINES, 300, tmp_path)
    whole = first.path.read_bytes()
    first.path.write_bytes(whole[:-100])
    again = train_subwords(LINES, 300, tmp_path)
    assert again.path.read_bytes() == whole
    sees(again.note or "nothing")
    first.path.with_suffix(".sha256").write_text("")
    assert train_subwords(LINES, 300, tmp_path).path.read_bytes() == whole


def test_a_worker_process_can_receive_it(trained):
    copy = pickle.loads(pickle.dumps(trained))
    assert len(copy) == len(trained)
    assert copy.encode(LINES[0]) == trained.encode(LINES[0])


def test_too_little_text_gives_fewer_pieces_and_says_so():
    small = train_subwords(["abc abd"], 60)
    assert len(small) < 60
    assert small.note.startswith(f"The vocabulary has {len(small)} pieces and not 60")
    assert small.decode(small.encode("abc abd")) == "abc abd"


def test_too_small_a_vocabulary_is_refused_with_the_number_of_characters():
    with pytest.raises(DataError, match="of 8 subwords cannot be learned from text with 7 differ"):
        train_subwords(["abc def"], 8)


def test_no_text_at_all_is_refused():
    with pytest.raises(DataError, match="no text to learn subwords from"):
        train_subwords(["", "  "], 100)


@pytest.mark.fault(
    "disk",
    "the folder for a vocabulary cannot be written to",
    sees="name a folder that can be written to",
)
def test_a_folder_that_cannot_be_written_to_is_named(tmp_path, sees):
    (tmp_path / "file").write_text("")
    with sees.raised(DataError):
        train_subwords(["abc abd"], 60, tmp_path / "file")
