import os
from pathlib import Path

import choose_tatoeba
import pytest
from choose_tatoeba import choose, words

from mxopt.data import ParallelFolder, sources
from mxopt.data.download import unzip

FULL_FILE = Path(os.environ.get("MXOPT_DATA", "")) / "tatoeba" / "deu.txt"


@pytest.fixture(scope="module")
def shipped(tmp_path_factory):
    """The folder that the archive holds."""
    folder = tmp_path_factory.mktemp("tatoeba")
    unzip(sources.STAND_INS / "tatoeba.zip", folder)
    return folder


@pytest.fixture(scope="module")
def splits(shipped):
    return {split: list(ParallelFolder(shipped, split)) for split in choose_tatoeba.SIZES}


def test_the_sample_has_the_stated_sizes_and_short_sentences(splits):
    assert {split: len(pairs) for split, pairs in splits.items()} == choose_tatoeba.SIZES
    sentences = [words(side) for pairs in splits.values() for pair in pairs for side in pair]
    assert {len(sentence) for sentence in sentences} == {3, 4, 5, 6, 7}


def test_no_sentence_is_in_the_sample_twice(splits):
    for side in (0, 1):
        sentences = [words(pair[side]) for pairs in splits.values() for pair in pairs]
        assert len(set(sentences)) == sum(choose_tatoeba.SIZES.values())


def test_the_vocabulary_is_restricted(splits):
    for side, most in ((0, choose_tatoeba.ENGLISH_WORDS), (1, choose_tatoeba.GERMAN_WORDS)):
        used = {word for pairs in splits.values() for pair in pairs for word in words(pair[side])}
        assert 0.8 * most < len(used) <= most


def test_the_attribution_is_shipped_with_the_sentences(shipped):
    text = (shipped / sources.STAND_IN_MARK).read_text(encoding="utf-8")
    for part in ("tatoeba.org", "www.manythings.org/anki", "creativecommons.org/licenses/by/2.0"):
        assert part in text


@pytest.mark.skipif(not FULL_FILE.is_file(), reason="MXOPT_DATA has no tatoeba/deu.txt")
def test_choosing_again_from_the_full_file_gives_the_shipped_sample(splits):
    assert choose(choose_tatoeba.read(FULL_FILE)) == splits


KEPT = [("Who is it?", "Wer ist es?"), ("It is who?", "Es ist wer?"), ("Is it who?", "Ist es wer?")]


@pytest.mark.parametrize(
    "left_out",
    [
        ("It is.", "Es ist es."),  # too short
        ("It is it is it is it is.", "Es ist es ist."),  # too long
        ("Who is it? It is.", "Wer ist es wer?"),  # two sentences
        ("It is 1 who.", "Es ist wer ist."),  # a digit
        ("It's who is.", "Es ist wer ist."),  # a rare word
        ("Who is IT!", "Es ist wer ist."),  # the English of another pair
        ("It is who is.", "Wer ist es!"),  # the German of another pair
    ],
)
def test_a_pair_is_left_out_for_each_rule(left_out):
    frequent = [("Who is it?", "Wer ist es?")] * 3
    pairs = [*frequent, *KEPT, left_out]
    found = choose(pairs, {"test": 1, "train": 2}, english_words=3, german_words=3)
    assert sorted(found["test"] + found["train"]) == sorted(KEPT)
    with pytest.raises(ValueError, match="3 pairs are left, 4 are needed"):
        choose(pairs, {"train": 4}, english_words=3, german_words=3)


def test_the_same_file_gives_the_same_archive(tmp_path):
    source = tmp_path / "deu.txt"
    source.write_text("".join(f"{english}\t{german}\n" for english, german in KEPT), "utf-8")
    for name in ("first.zip", "second.zip"):
        found = choose(choose_tatoeba.read(source), {"test": 1, "validation": 1, "train": 1}, 3, 3)
        choose_tatoeba.write(found, tmp_path / name)
    assert (tmp_path / "first.zip").read_bytes() == (tmp_path / "second.zip").read_bytes()
