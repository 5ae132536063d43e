import hashlib
import itertools
from random import Random

import pytest
from grammar_words import ALL_VERBS, VERB, clause, phrase

from mxopt.data import grammar
from mxopt.data.grammar.nouns import ADJECTIVES, NOUNS, nouns_of
from mxopt.data.grammar.order import German
from mxopt.data.grammar.phrases import HE, THE, A
from mxopt.data.grammar.sentences import _open_to_doubt
from mxopt.data.grammar.speaker import Speaker


@pytest.fixture(scope="module")
def many():
    """Twenty thousand sentences, each with its word pairs' being held out or not."""
    return list(itertools.islice(grammar._sentences("many"), 20_000))


def test_an_english_sentence_has_one_german_one(many):
    german = {}
    for english, sentence, _ in many:
        assert german.setdefault(english, sentence) == sentence
    assert len(german) > 19_000


def test_sentences_are_well_formed_and_say_all_that_the_language_has(many):
    for english, german, _ in many:
        for sentence in (english, german):
            assert sentence[0].isupper()
            assert sentence[-1] in ".?"
            assert "  " not in sentence
            assert ", ." not in sentence
            assert "_" not in sentence
        assert english[-1] == german[-1]
    text = "\n".join(english for english, _, _ in many).lower()
    words = set(text.replace(".", "").replace(",", "").replace("?", "").split())
    spoken = {word for noun in NOUNS for word in noun.english.split()}
    spoken |= {word for verb in ALL_VERBS for word in verb.past.split()}
    spoken |= {word.english.split()[0] for word in ADJECTIVES}
    assert spoken <= words


def test_word_pairs_are_collected_where_words_meet():
    class Always(Speaker):
        def chance(self, probability):
            return probability >= 0.2

        def pick(self, choices):
            return choices[0]

    speaker = Always(None)
    dog = speaker.object(VERB["feed"], HE)
    assert ("füttern", dog.noun.german) in speaker.word_pairs


def test_it_is_not_said_where_it_could_be_either_of_two():
    cat, rabbit = phrase(A, "cat"), phrase(THE, "rabbit")
    assert _open_to_doubt(clause("see", rabbit, accusative=cat))  # es or sie?
    assert not _open_to_doubt(clause("see", rabbit, accusative=phrase(A, "car")))  # es, either way.
    assert not _open_to_doubt(clause("see", accusative=cat))


def test_splits_have_their_sizes_and_share_no_sentence(monkeypatch):
    def few(seed):  # So few that chance alone would repeat them.
        random = Random(seed)
        while True:
            number = random.randrange(900)
            yield f"{number}", "Zahl", number < 100

    monkeypatch.setattr(grammar, "_sentences", few)
    made = grammar.splits(train=500, validation=60, test=50)
    assert {split: len(pairs) for split, pairs in made.items()} == {
        "train": 500,
        "validation": 60,
        "test": 50,
    }
    english = [pair[0] for pairs in made.values() for pair in pairs]
    assert len(set(english)) == len(english)


def test_held_out_word_pairs_are_in_every_second_test_sentence_and_never_in_training(monkeypatch):
    met = {}

    def remember(speaker):
        english, german = draw(speaker)
        met.setdefault(english, set(speaker.word_pairs))
        return english, german

    draw = grammar.draw_sentence
    monkeypatch.setattr(grammar, "draw_sentence", remember)
    made = grammar.splits(train=800, validation=100, test=100)

    def held_out(split):
        return [any(map(grammar.is_held_out, met[english])) for english, _ in made[split]]

    assert not any(held_out("train"))
    assert held_out("test") == [True, False] * 50
    assert held_out("validation") == [True, False] * 50


def test_a_larger_training_split_begins_with_a_smaller_one():
    small, large = grammar.splits(200, 20, 20), grammar.splits(400, 20, 20)
    assert large["train"][:200] == small["train"]
    assert large["test"] == small["test"]
    assert grammar.splits(200, 20, 20, seed=2)["test"] != small["test"]


def test_the_sentences_are_the_same_on_every_python():
    """Raise EDITION when this changes, so that copies in caches are made anew."""
    text = "\n".join(f"{english}\t{german}" for english, german in grammar.splits()["train"])
    assert grammar.EDITION == 1
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == "dceda19347357597"


def test_generate_writes_what_is_listed(tmp_path):
    grammar.generate(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == set(grammar.file_names())
    lines = (tmp_path / "train.de").read_bytes().decode("utf-8").splitlines()
    assert len(lines) == grammar.SIZES["train"]
    assert "\r" not in "".join(lines)


def test_nouns_are_found_by_kind():
    assert {noun.english for noun in nouns_of("reason time")} == {
        "rain",
        "storm",
        "snow",
        "noise",
        "night",
        "concert",
        "exam",
    }


def test_questions_put_the_verb_first():
    german = German("der Mann", "macht", "die Tür", "auf", "aufmacht")
    assert german.after() == "macht der Mann die Tür auf"
