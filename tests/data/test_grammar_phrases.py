import itertools

import pytest
from grammar_words import (
    HER,
    HIS,
    MANY,
    MY,
    OUR,
    PLACE,
    PLACED,
    SOME,
    THEIR,
    THREE,
    TWO,
    YOUR,
    phrase,
)

from mxopt.data.grammar import inflection
from mxopt.data.grammar.nouns import ADJECTIVES_FOR, NOUNS
from mxopt.data.grammar.phrases import (
    ALL,
    AMOUNTS,
    BARE,
    EVERY,
    HE,
    NOT_ANY,
    POSSESSIVES,
    PRONOUNS,
    SHE,
    THE,
    THEY,
    THIS,
    WHO,
    A,
)
from mxopt.data.grammar.prepositions import BECAUSE_OF, DIRECTIONS, DURING, FOR, WITH


def cases(phrase):
    return [phrase.german(case) for case in inflection.CASES]


# From a school grammar, all four cases; every determiner and gender, both numbers.
PARADIGMS = [
    (THE, "old man", False, "der alte Mann, den alten Mann, dem alten Mann, des alten Mannes"),
    (THE, "old woman", False, "die alte Frau, die alte Frau, der alten Frau, der alten Frau"),
    (THE, "old book", False, "das alte Buch, das alte Buch, dem alten Buch, des alten Buches"),
    (THE, "old book", True, "die alten Bücher, die alten Bücher, den alten Büchern, der alten Bü"
     "cher"),
    (THIS, "old man", False, "dieser alte Mann, diesen alten Mann, diesem alten Mann, dieses alten "
     "Mannes"),
    (THIS, "old woman", False, "diese alte Frau, diese alte Frau, dieser alten Frau, dieser alten "
     "Frau"),
    (THIS, "old book", False, "dieses alte Buch, dieses alte Buch, diesem alten Buch, dieses alten "
     "Buches"),
    (THIS, "old man", True, "diese alten Männer, diese alten Männer, diesen alten Männern, dieser "
     "alten Männer"),
    (EVERY, "old man", False, "jeder alte Mann, jeden alten Mann, jedem alten Mann, jedes alten "
     "Mannes"),
    (EVERY, "old woman", False, "jede alte Frau, jede alte Frau, jeder alten Frau, jeder alten "
     "Frau"),
    (EVERY, "old book", False, "jedes alte Buch, jedes alte Buch, jedem alten Buch, jedes alten "
     "Buches"),
    (ALL, "old man", True, "alle alten Männer, alle alten Männer, allen alten Männern, aller alten "
     "Männer"),
    (A, "old man", False, "ein alter Mann, einen alten Mann, einem alten Mann, eines alten Mannes"),
    (A, "old woman", False, "eine alte Frau, eine alte Frau, einer alten Frau, einer alten Frau"),
    (A, "old book", False, "ein altes Buch, ein altes Buch, einem alten Buch, eines alten Buches"),
    (NOT_ANY, "old man", False, "kein alter Mann, keinen alten Mann, keinem alten Mann, keines "
     "alten Mannes"),
    (NOT_ANY, "old woman", False, "keine alte Frau, keine alte Frau, keiner alten Frau, keiner "
     "alten Frau"),
    (NOT_ANY, "old book", False, "kein altes Buch, kein altes Buch, keinem alten Buch, keines "
     "alten Buches"),
    (NOT_ANY, "old man", True, "keine alten Männer, keine alten Männer, keinen alten Männern, "
     "keiner alten Männer"),
    (MY, "old uncle", False, "mein alter Onkel, meinen alten Onkel, meinem alten Onkel, meines "
     "alten Onkels"),
    (YOUR, "old aunt", False, "deine alte Tante, deine alte Tante, deiner alten Tante, deiner "
     "alten Tante"),
    (HIS, "old book", False, "sein altes Buch, sein altes Buch, seinem alten Buch, seines alten "
     "Buches"),
    (HER, "old uncle", True, "ihre alten Onkel, ihre alten Onkel, ihren alten Onkeln, ihrer alten "
     "Onkel"),
    (OUR, "old uncle", False, "unser alter Onkel, unseren alten Onkel, unserem alten Onkel, "
     "unseres alten Onkels"),
    (THEIR, "old book", True, "ihre alten Bücher, ihre alten Bücher, ihren alten Büchern, ihrer "
     "alten Bücher"),
    (BARE, "old man", True, "alte Männer, alte Männer, alten Männern, alter Männer"),
    (TWO, "old man", True, "zwei alte Männer, zwei alte Männer, zwei alten Männern, -"),
    (THREE, "old woman", True, "drei alte Frauen, drei alte Frauen, drei alten Frauen, -"),
    (MANY, "old book", True, "viele alte Bücher, viele alte Bücher, vielen alten Büchern, vieler "
     "alter Bücher"),
    (SOME, "old book", True, "einige alte Bücher, einige alte Bücher, einigen alten Büchern, "
     "einiger alter Bücher"),
    # Nouns that decline in ways of their own.
    (THE, "boy", False, "der Junge, den Jungen, dem Jungen, des Jungen"),
    (THE, "neighbour", False, "der Nachbar, den Nachbarn, dem Nachbarn, des Nachbarn"),
    (THE, "bear", True, "die Bären, die Bären, den Bären, der Bären"),
    (THE, "girl", False, "das Mädchen, das Mädchen, dem Mädchen, des Mädchens"),
    (THE, "car", True, "die Autos, die Autos, den Autos, der Autos"),
    (THE, "queen", True, "die Königinnen, die Königinnen, den Königinnen, der Königinnen"),
    (THE, "apple", True, "die Äpfel, die Äpfel, den Äpfeln, der Äpfel"),
    # Adjectives whose stem is not what stands alone.
    (A, "expensive coat", False, "ein teurer Mantel, einen teuren Mantel, einem teuren Mantel, "
     "eines teuren Mantels"),
    (THE, "dark forest", False, "der dunkle Wald, den dunklen Wald, dem dunklen Wald, des dunklen "
     "Waldes"),
    (A, "high tower", False, "ein hoher Turm, einen hohen Turm, einem hohen Turm, eines hohen "
     "Turmes"),
    (A, "tired child", False, "ein müdes Kind, ein müdes Kind, einem müden Kind, eines müden "
     "Kindes"),
    (THE, "big black dog", False, "der große schwarze Hund, den großen schwarzen Hund, dem großen "
     "schwarzen Hund, des großen schwarzen Hundes"),
]  # fmt: skip


@pytest.mark.parametrize(("determiner", "words", "plural", "expected"), PARADIGMS)
def test_noun_phrases_decline_as_in_a_school_grammar(determiner, words, plural, expected):
    found = cases(phrase(determiner, words, plural=plural))
    for form, right in zip(found, expected.split(", ")):
        assert right in (form, "-")


def test_every_gender_number_and_determiner_is_among_the_paradigms():
    met = {(row[0].stem, phrase(row[0], row[1], plural=row[2]).column) for row in PARADIGMS}
    for determiner in (THE, THIS, NOT_ANY, A, EVERY):
        assert {(determiner.stem, gender) for gender in "mfn"} <= met
    for determiner in (THE, THIS, NOT_ANY, ALL, BARE, *AMOUNTS):
        assert (determiner.stem, "p") in met
    assert {possessive.stem for possessive in POSSESSIVES} <= {stem for stem, _ in met}


def test_possessives_decline_like_ein():
    for possessive, words in itertools.product(POSSESSIVES, ("uncle", "aunt", "book")):
        stem = possessive.stem
        like = [form.replace("kein", stem, 1) for form in cases(phrase(NOT_ANY, words))]
        assert cases(phrase(possessive, words)) == like


@pytest.mark.parametrize("noun", NOUNS, ids=lambda noun: noun.english)
def test_every_noun_is_a_german_noun_and_has_its_forms(noun):
    assert noun.german[0].isupper()
    assert noun.gender in ("m", "f", "n")
    if noun.gender == "f":
        assert noun.genitive == noun.german
    elif noun.genitive.endswith("s"):
        assert noun.genitive in (noun.german + "s", noun.german + "es")
    else:
        assert noun.gender == "m"
        assert noun.genitive in (noun.german + "n", noun.german + "en")
        assert noun.plural == noun.genitive  # Weak nouns have one ending for all.
    assert bool(noun.plural) == bool(noun.english_plural)
    if noun.plural:
        dative = inflection.decline(noun, "dative", True)
        assert dative[-1] in "ns"
    assert ADJECTIVES_FOR[noun] or noun.kinds & {"reason", "time"}


def test_an_owner_stands_after_in_the_genitive():
    owner = phrase(MY, "old brother")
    hat = phrase(THE, "blue hat", owner=owner)
    assert hat.english() == "my old brother's blue hat"
    assert hat.german("accusative") == "den blauen Hut meines alten Bruders"
    assert phrase(THE, "door").german("genitive") == "der Tür"


def test_english_articles_and_plurals():
    assert phrase(A, "old man").english() == "an old man"
    assert phrase(A, "man").english() == "a man"
    assert phrase(NOT_ANY, "apple").english() == "an apple"
    assert phrase(NOT_ANY, "apple", plural=True).english() == "any apples"
    assert phrase(THIS, "child", plural=True).english() == "these children"
    assert phrase(EVERY, "wall").english() == "every wall"
    assert phrase(BARE, "potato", plural=True).english() == "potatoes"


def test_english_verbs_with_he():
    bases = ["watch", "carry", "go", "play", "buy", "wash", "lie", "fall", "tidy", "say"]
    found = [inflection.third_person(base) for base in bases]
    assert found == "watches carries goes plays buys washes lies falls tidies says".split()  # noqa: SIM905


def test_pronouns_in_three_cases():
    found = [[word.german(case) for case in inflection.CASES[:3]] for word in (*PRONOUNS, WHO)]
    assert [" ".join(forms) for forms in found] == [
        "ich mich mir",
        "du dich dir",
        "er ihn ihm",
        "sie sie ihr",
        "wir uns uns",
        "sie sie ihnen",
        "wer wen wem",
    ]


def test_a_pronoun_has_the_gender_of_the_noun():
    assert phrase(THE, "hat").pronoun().german("nominative") == "er"
    assert phrase(THE, "lamp").pronoun().german("accusative") == "sie"
    assert phrase(THE, "book").pronoun().german("nominative") == "es"
    assert phrase(THE, "lamp").pronoun().english() == "it"
    assert phrase(THE, "uncle").pronoun() == HE
    assert phrase(THE, "aunt").pronoun() == SHE
    assert phrase(THE, "girl", plural=True).pronoun() == THEY
    assert phrase(THE, "girl").pronoun() is None  # English she, German es.


@pytest.mark.parametrize(
    ("preposition", "words", "plural", "expected"),
    [
        (PLACE["in"], "garden", False, "im Garten"),
        (PLACE["in"], "dark kitchen", False, "in der dunklen Küche"),
        (PLACE["in"], "old house", False, "im alten Haus"),
        (PLACE["in"], "house", True, "in den Häusern"),
        (PLACE["on"], "table", False, "auf dem Tisch"),
        (PLACE["under"], "bed", False, "unter dem Bett"),
        (PLACE["behind"], "church", False, "hinter der Kirche"),
        (PLACE["in front of"], "tree", True, "vor den Bäumen"),
        (PLACE["next to"], "car", True, "neben den Autos"),
        (PLACED["into"], "box", False, "in die Kiste"),
        (PLACED["into"], "suitcase", False, "in den Koffer"),
        (PLACED["on"], "table", False, "auf den Tisch"),
        (PLACED["under"], "bed", False, "unter das Bett"),
        (PLACED["next to"], "sofa", False, "neben das Sofa"),
        (DIRECTIONS["into"], "big house", False, "ins große Haus"),
        (DIRECTIONS["into"], "forest", False, "in den Wald"),
        (DIRECTIONS["onto"], "wall", False, "auf die Mauer"),
        (DIRECTIONS["over"], "roof", False, "über das Dach"),
        (DIRECTIONS["across"], "street", False, "über die Straße"),
        (DIRECTIONS["through"], "forest", False, "durch den Wald"),
        (DIRECTIONS["around"], "house", False, "um das Haus"),
        (DIRECTIONS["to"], "doctor", False, "zum Arzt"),
        (DIRECTIONS["to"], "church", False, "zur Kirche"),
        (DIRECTIONS["to"], "neighbour", True, "zu den Nachbarn"),
        (DIRECTIONS["out of"], "cellar", False, "aus dem Keller"),
        (WITH, "old dog", False, "mit dem alten Hund"),
        (FOR, "boy", False, "für den Jungen"),
        (BECAUSE_OF, "rain", False, "wegen des Regens"),
        (DURING, "night", False, "während der Nacht"),
    ],
)
def test_prepositions_ask_for_their_case(preposition, words, plural, expected):
    assert preposition.with_phrase(phrase(THE, words, plural=plural))[1] == expected


def test_only_the_article_melts_into_a_preposition():
    assert PLACE["in"].with_phrase(phrase(THIS, "garden"))[1] == "in diesem Garten"
    assert PLACE["in"].with_phrase(phrase(A, "garden"))[1] == "in einem Garten"
    assert WITH.with_phrase(HE) == ("with him", "mit ihm")
