import pytest
from grammar_words import ALL_VERBS, VERB, clause, phrase

from mxopt.data.grammar.clauses import Adverb, Description
from mxopt.data.grammar.phrases import HE, I_, NOT_ANY, THE, THEY, A
from mxopt.data.grammar.prepositions import DIRECTIONS, WITH


def orders(clause):
    german = clause.german()
    return german.main(), german.after("heute"), german.subordinate("weil")


@pytest.mark.parametrize(
    ("tense", "expected"),
    [
        ("present", ("macht die Tür auf", "die Tür aufmacht")),
        ("past", ("hat die Tür aufgemacht", "die Tür aufgemacht hat")),
        ("can", ("kann die Tür aufmachen", "die Tür aufmachen kann")),
        ("must", ("muss die Tür aufmachen", "die Tür aufmachen muss")),
        ("want", ("will die Tür aufmachen", "die Tür aufmachen will")),
        ("will", ("wird die Tür aufmachen", "die Tür aufmachen wird")),
    ],
)
def test_the_verb_is_second_first_or_last_and_comes_apart(tense, expected):
    opening = clause("open", tense=tense, accusative=phrase(THE, "door"))
    finite, rest = expected[0].split(" ", 1)
    assert orders(opening) == (
        f"der Mann {finite} {rest}",
        f"heute {finite} der Mann {rest}",
        f"weil der Mann {expected[1]}",
    )


@pytest.mark.parametrize(
    ("tense", "statement", "question", "denial"),
    [
        ("present", "picks up {}", "does the man pick up {}", "does not pick up {}"),
        ("past", "picked up {}", "did the man pick up {}", "did not pick up {}"),
        ("can", "can pick up {}", "can the man pick up {}", "cannot pick up {}"),
        ("will", "will pick up {}", "will the man pick up {}", "will not pick up {}"),
        ("want", "wants to pick up {}", "does the man want to pick up {}", "does not want to pick "
         "up {}"),
    ],
)  # fmt: skip
def test_english_asks_and_denies_with_a_helper(tense, statement, question, denial):
    calling = {"tense": tense, "accusative": phrase(THE, "boy")}
    plain = clause("pick _up", **calling).english()
    assert plain.statement() == "the man " + statement.format("the boy")
    assert plain.question() == question.format("the boy")
    denied = clause("pick _up", negated=True, **calling).english()
    assert denied.statement() == "the man " + denial.format("the boy")
    moved = clause("pick _up", tense="past", accusative=HE).english()
    assert moved.statement() == "the man picked him up"


TO_SCHOOL = DIRECTIONS["to"].with_phrase(phrase(THE, "school"))
TODAY = Adverb("today", "heute", ("present",), ("end",))


@pytest.mark.parametrize(
    ("of", "expected"),
    [
        (clause("see", accusative=phrase(THE, "dog"), negated=True), "sieht den Hund nicht"),
        (clause("see", accusative=phrase(NOT_ANY, "dog"), negated=True), "sieht keinen Hund"),
        (clause("see", accusative=HE, negated=True, tense="past"), "hat ihn nicht gesehen"),
        (
            clause("see", accusative=phrase(THE, "dog"), adverb=TODAY, slot="end", negated=True),
            "sieht den Hund heute nicht",
        ),
        (
            clause("see", accusative=phrase(A, "dog"), adverb=TODAY, slot="end"),
            "sieht heute einen Hund",
        ),
        (clause("help", dative=phrase(THE, "child"), negated=True), "hilft dem Kind nicht"),
        (
            clause("go", phrases=(TO_SCHOOL,), negated=True),
            "geht nicht zur Schule",
        ),
        (clause("arrive", negated=True), "kommt nicht an"),
        (
            clause("give", dative=phrase(THE, "child"), accusative=phrase(A, "apple")),
            "gibt dem Kind einen Apfel",
        ),
        (
            clause("give", dative=THEY, accusative=phrase(A, "apple"), adverb=TODAY, slot="end"),
            "gibt ihnen heute einen Apfel",
        ),
        (
            clause(
                "go",
                phrases=(
                    DIRECTIONS["into"].with_phrase(phrase(THE, "garden")),
                    WITH.with_phrase(phrase(THE, "dog")),
                ),
                adverb=TODAY,
                slot="end",
            ),
            "geht heute mit dem Hund in den Garten",
        ),
    ],
)  # fmt: skip
def test_the_middle_of_a_german_clause_has_its_order(of, expected):
    assert of.german().main() == f"der Mann {expected}"


def test_infinitives_with_zu():
    door = phrase(THE, "door")
    assert clause("open", accusative=door).german_infinitive() == "die Tür aufzumachen"
    assert clause("open", accusative=door).english_infinitive() == "to open the door"
    assert clause("help", dative=HE).german_infinitive() == "ihm zu helfen"


def test_to_be_and_to_be_more_than():
    tower = phrase(THE, "tower")
    higher = Description(
        tower, ("higher", "höher"), ("than the house", "als das Haus"), "past", negated=True
    )
    assert higher.english().statement() == "the tower was not higher than the house"
    assert higher.german().main() == "der Turm war nicht höher als das Haus"
    assert higher.german().subordinate("weil") == "weil der Turm nicht höher war als das Haus"
    assert Description(I_, ("tired", "müde")).german().main() == "ich bin müde"
    assert Description(THEY, ("old", "alt"), tense="past").english().statement() == "they were old"


FORMS = {
    "sehen": "sehe siehst sieht sehen sehen",
    "füttern": "füttere fütterst füttert füttern füttern",
    "laden": "lade lädst lädt laden laden",
    "schlafen": "schlafe schläfst schläft schlafen schlafen",
    "essen": "esse isst isst essen essen",
}


def test_present_forms_of_all_persons():
    by_infinitive = {verb.german: verb for verb in VERB.values()}
    for infinitive, forms in FORMS.items():
        verb = by_infinitive[infinitive]
        assert [verb.present(p) for p in ("ich", "du", "er", "wir", "sie")] == forms.split()


@pytest.mark.parametrize("verb", ALL_VERBS, ids=lambda verb: verb.english)
def test_every_verbs_forms_follow_the_rules(verb):
    """What holds for regular and irregular verbs alike; vowels are the table's business."""
    stem = verb.german[:-1] if verb.german.endswith("ern") else verb.german[:-2]
    assert verb.german.endswith(("en", "ern"))
    # du siehst, er sieht; du wartest, er wartet; du sitzt, er sitzt; du lädst, er lädt.
    if stem.endswith(("s", "ß", "z", "ss")):
        assert verb.du == verb.er
    else:
        assert verb.du[:-2] == verb.er[:-1].rstrip("e" if stem[-1] in "td" else "") or (
            verb.du == verb.er[:-1] + "st"
        )
    assert verb.er.endswith("t")
    assert verb.auxiliary in ("hat", "ist")
    assert verb.participle.startswith(verb.prefix)
    assert verb.participle.endswith(("t", "en"))
    # Unstressed beginnings, and foreign -ieren, leave no room for ge-.
    bare = verb.german.startswith(("be", "ver", "ge")) or verb.german.endswith("ieren")
    inner = verb.participle[len(verb.prefix) :]
    assert inner.startswith("ge") or (bare and not verb.prefix)
