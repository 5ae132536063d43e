"""Sentences: the patterns that clauses are put into, each a function of a speaker.

Every pattern returns the sentence in English and in German, without capital and full stop.
"""

from __future__ import annotations

from dataclasses import replace

from mxopt.data.grammar.clauses import Clause
from mxopt.data.grammar.drawing import draw_clause, draw_description
from mxopt.data.grammar.inflection import RELATIVE
from mxopt.data.grammar.nouns import NOUNS
from mxopt.data.grammar.phrases import WHO, NounPhrase
from mxopt.data.grammar.speaker import Speaker
from mxopt.data.grammar.verbs import VERBS

_CONJUNCTIONS = {"because": "weil", "although": "obwohl", "while": "während", "before": "bevor"}
# What I, you and we are like is said with the words for this noun.
ANYBODY = NOUNS[0]
_OFTEN = ("present", "past")
_TO_DO = ("accusative",) * 4 + ("dative", "giving", "placing")


def statement(speaker: Speaker) -> tuple[str, str]:
    """Subject first, or an adverb: Heute macht der Mann die Tür auf."""
    negated = speaker.chance(0.2)
    clause = draw_clause(speaker, negated=negated, slots=("front", "end", "middle"))
    english, german = clause.english().statement(), clause.german()
    if clause.adverb and clause.slot == "front":
        return f"{clause.adverb.english} {english}", german.after(clause.adverb.german)
    return english, german.main()


def description(speaker: Speaker) -> tuple[str, str]:
    """What something is like, perhaps more than another: Der Turm war höher als die Kirche."""
    clause = draw_description(speaker, negated=speaker.chance(0.2))
    return clause.english().statement(), clause.german().main()


def reason(speaker: Speaker) -> tuple[str, str]:
    """Two clauses, one with the verb last, in either order; the second may say er for der Mann."""
    conjunction = speaker.pick(tuple(_CONJUNCTIONS))
    tense = speaker.pick(_OFTEN)
    first = draw_clause(speaker, tense=tense)
    second = _next_clause(speaker, first, tense, may_be=conjunction in ("because", "although"))
    return _joined_by(speaker, conjunction, _CONJUNCTIONS[conjunction], first, second)


def condition(speaker: Speaker) -> tuple[str, str]:
    """If and wenn; what follows is now or to come."""
    if_clause = draw_clause(speaker, tense="present")
    main = _next_clause(speaker, if_clause, speaker.pick(("present", "will")), may_be=False)
    english = f"if {if_clause.english().statement()}, {main.english().statement()}"
    return english, main.german().after(if_clause.german().subordinate("wenn") + ",")


def _joined_by(speaker, english, german, first, second) -> tuple[str, str]:
    if speaker.chance(0.4):  # The subordinate clause first: then the main clause begins with it.
        front = first.german().subordinate(german) + ","
        return (
            f"{english} {first.english().statement()}, {second.english().statement()}",
            second.german().after(front),
        )
    return (
        f"{first.english().statement()} {english} {second.english().statement()}",
        f"{first.german().main()}, {second.german().subordinate(german)}",
    )


def _next_clause(speaker: Speaker, first: Clause, tense: str, may_be: bool):
    """Return a clause that goes on about the first one's subject or object, or about another."""
    be = may_be and speaker.chance(0.5)
    # "because it likes him" would leave open who likes whom: the object is only described.
    told = first.accusative if be and first.accusative and speaker.chance(0.5) else first.subject
    pronoun = told.pronoun() if speaker.chance(0.7) and not _open_to_doubt(first) else None
    noun = told.noun if isinstance(told, NounPhrase) else ANYBODY
    if be:
        return draw_description(speaker, pronoun, noun, tense)
    return draw_clause(speaker, pronoun, noun.kinds, tense)


def _open_to_doubt(clause: Clause) -> bool:
    """Say whether "it" could be either of two, which are er, sie and es in German."""
    said = [phrase.pronoun() for phrase in (clause.subject, clause.accusative) if phrase]
    return [word.english() for word in said if word] == ["it", "it"] and said[0] != said[1]


def report(speaker: Speaker) -> tuple[str, str]:
    """Somebody says that, asks whether: Sie fragt, ob der Zug angekommen ist."""
    frame = speaker.pick(("that", "that", "whether"))
    tense = speaker.pick(_OFTEN)
    outer = draw_clause(speaker, tense=tense, frames=(frame,), subject=speaker.subject("person"))
    if speaker.chance(0.3):
        inner = draw_description(speaker, tense=tense)
    else:
        inner = draw_clause(speaker, tense=tense)
    return (
        f"{outer.english().statement()} {frame} {inner.english().statement()}",
        f"{outer.german().main()}, "
        + inner.german().subordinate("dass" if frame == "that" else "ob"),
    )


def intention(speaker: Speaker) -> tuple[str, str]:
    """An infinitive with zu, perhaps with um: Er versucht, die Tür aufzumachen."""
    frame, conjunction = speaker.pick((("zu", ""), ("zu", ""), ("direction", "um")))
    tense = speaker.pick(_OFTEN)
    outer = draw_clause(speaker, tense=tense, frames=(frame,), subject=speaker.subject("person"))
    inner = draw_clause(speaker, outer.subject, frames=_TO_DO, tense="will")
    infinitive = f"{conjunction} {inner.german_infinitive()}".strip()
    return (
        f"{outer.english().statement()} {inner.english_infinitive()}",
        f"{outer.german().main()}, {infinitive}",
    )


def relative(speaker: Speaker) -> tuple[str, str]:
    """A subject with a relative clause: Der Hund, dem die Frau hilft, schläft."""
    subject = speaker.noun_phrase(speaker.pick(("person", "person", "animal")), known=True)
    person = "person" in subject.noun.kinds
    tense = speaker.pick(_OFTEN)
    if speaker.chance(0.5):
        inner = draw_clause(speaker, subject, subject.noun.kinds, tense)
        word = "who" if person else "that"
        english = inner.english().without_subject()
        german = replace(inner.german(), subject="").subordinate
        case = "nominative"
    else:
        case = speaker.pick(("accusative", "accusative", "dative"))
        actor = speaker.noun_phrase("person", known=True)
        verbs = [verb for verb in VERBS[case] if subject.noun.kinds & set(verb.objects.split())]
        inner = Clause(actor, speaker.pick(verbs), tense)
        speaker.word_pairs.add((inner.verb.infinitive, subject.noun.german))
        word = "whom" if person else "that"
        english, german = inner.english().statement(), inner.german().subordinate
    clause = f"{word} {english}", german(RELATIVE[case][subject.column])
    subject = subject._replace(relative=clause)
    if speaker.chance(0.3):
        main = draw_description(speaker, subject, subject.noun, tense)
    else:
        main = draw_clause(speaker, subject, subject.noun.kinds, tense)
    return main.english().statement(), main.german().main()


def question(speaker: Speaker) -> tuple[str, str]:
    """Yes or no, why, when: Warum hat der Mann die Tür aufgemacht"""
    english, german = speaker.pick((("", ""), ("", ""), ("why", "warum"), ("when", "wann")))
    if not english and speaker.chance(0.2):
        clause = draw_description(speaker)
    else:
        clause = draw_clause(speaker, slots=() if english else ("end",))
    return clause.english().question(english), clause.german().after(german)


def question_of_who(speaker: Speaker) -> tuple[str, str]:
    """Ask for the subject or an object: Wem hilft die Frau"""
    kind = speaker.pick(("nominative", "accusative", "dative"))
    if kind == "nominative":
        clause = draw_clause(speaker, WHO, slots=("end",))
        return clause.english().statement(), clause.german().main()
    tense, subject = speaker.pick(_OFTEN), speaker.subject("person")
    verb = speaker.pick([verb for verb in VERBS[kind] if verb.past != verb.english.split()[0]])
    clause = Clause(subject, verb, tense)
    if "person" in verb.objects.split():
        return clause.english().question("whom"), clause.german().after(WHO.german(kind))
    return clause.english().question("what"), clause.german().after("was")


def two_things(speaker: Speaker) -> tuple[str, str]:
    """Two main clauses side by side: ..., aber die Frau hat ihn nicht gesehen."""
    tense = speaker.pick(_OFTEN)
    first = draw_clause(speaker, tense=tense)
    but = speaker.chance(0.5)
    second = draw_clause(speaker, tense=tense, negated=but)
    english, german = (", but", ", aber") if but else (" and", " und")
    return (
        f"{first.english().statement()}{english} {second.english().statement()}",
        f"{first.german().main()}{german} {second.german().main()}",
    )


# What stands here n times is drawn n times as often.
STATEMENTS = (
    (statement,) * 8 + (description,) * 2 + (reason,) * 3
    + (condition, report, relative, relative, intention, two_things)
)  # fmt: skip
QUESTIONS = (question, question, question_of_who)


def draw_sentence(speaker: Speaker) -> tuple[str, str]:
    """Return a sentence in English and in German, with capital and full stop."""
    asks = speaker.chance(0.12)
    pattern = speaker.pick(QUESTIONS if asks else STATEMENTS)
    return tuple(
        sentence[0].upper() + sentence[1:] + ("?" if asks else ".") for sentence in pattern(speaker)
    )
