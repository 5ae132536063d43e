"""Drawing clauses at random, so that subject, verb, objects, tense and adverbs go together."""

from __future__ import annotations

from mxopt.data.grammar.clauses import TENSES, Adverb, Clause, Description
from mxopt.data.grammar.nouns import Noun
from mxopt.data.grammar.phrases import NounPhrase, Pronoun
from mxopt.data.grammar.prepositions import (
    BECAUSE_OF,
    DIRECTIONS,
    DURING,
    FOR,
    PLACES,
    PLACING,
    WITH,
    WITHOUT,
)
from mxopt.data.grammar.speaker import Speaker
from mxopt.data.grammar.verbs import VERBS, Verb

# What stands here n times is drawn n times as often.
FRAMES = ("accusative",) * 8 + ("dative", "giving", "place", "doing", "direction", "alone") * 2 + (
    "placing",
)  # fmt: skip
_TENSES = ("present",) * 4 + ("past",) * 4 + TENSES[2:]
_ACTORS = ("person",) * 7 + ("animal",) * 2
_DESCRIBED = "person animal portable vehicle furniture opening switch inside built"
_OFTEN = ("present", "past")
_LATER = ("can", "must", "want", "will")
_ENDS = ("front", "end")
_ADVERBS = (
    Adverb("today", "heute", TENSES, _ENDS),
    Adverb("yesterday", "gestern", ("past",), _ENDS),
    Adverb("tomorrow", "morgen", _LATER, _ENDS),
    Adverb("now", "jetzt", ("present", "must", "want"), _ENDS),
    Adverb("every day", "jeden Tag", _OFTEN, _ENDS),
    Adverb("in the morning", "am Morgen", _OFTEN, _ENDS),
    Adverb("in the evening", "am Abend", _OFTEN, _ENDS),
    Adverb("on Monday", "am Montag", ("past", *_LATER), _ENDS),
    Adverb("on Sunday", "am Sonntag", ("past", *_LATER), _ENDS),
    Adverb("in winter", "im Winter", _OFTEN, _ENDS),
    Adverb("perhaps", "vielleicht", ("present", "past", "will"), ("front",)),
    Adverb("unfortunately,", "leider", TENSES, ("front",)),
    Adverb("suddenly", "plötzlich", ("past",), ("front",)),
    Adverb("often", "oft", _OFTEN, ("middle",)),
    Adverb("sometimes", "manchmal", _OFTEN, ("front", "middle")),
    Adverb("never", "nie", _OFTEN, ("middle",)),
)
# "not every day" is not "every day not".
_AFFIRMATIVE = [word for word in _ADVERBS if word.english in ("every day", "suddenly")]
_NOWHERE = {"love", "know", "need", "forget"}
_FOR_SOMEBODY = {"buy", "draw", "build", "repair", "write", "work", "sing", "dance"}


def draw_verb(speaker: Speaker, frames, kinds: frozenset[str], tense: str, person: str) -> Verb:
    """Return a verb for a subject of these kinds and this person (see ``agreement``).

    "They read" tells no tense in English, so such verbs have a present tense only with he or she.
    """
    while True:
        verb = speaker.pick(VERBS[speaker.pick(frames)])
        ambiguous = verb.past == verb.english.split()[0] and tense == "present" and person != "er"
        if kinds & set(verb.subjects.split()) and not ambiguous:
            return verb


def draw_clause(
    speaker: Speaker,
    subject: NounPhrase | Pronoun | None = None,
    kinds: frozenset[str] = frozenset({"person"}),
    tense: str | None = None,
    frames: tuple[str, ...] = FRAMES,
    negated: bool = False,
    slots: tuple[str, ...] = (),
) -> Clause:
    """Return a clause.

    Args:
        speaker: draws the words.
        subject: who does it; None draws somebody.
        kinds: of the noun that is, or that stands behind, a given subject.
        tense: one of ``TENSES``; None draws one.
        frames: those the verb is drawn from.
        negated: whether it is denied.
        slots: where an adverb may stand; without any there is none.
    """
    tense = tense or speaker.pick(_TENSES)
    if negated and tense == "must":
        tense = "present"  # "must not" is not "muss nicht".
    if subject is None:
        kind = speaker.pick(_ACTORS)
        subject = speaker.subject(kind, known=negated)
        kinds = subject.noun.kinds if isinstance(subject, NounPhrase) else frozenset({kind})
    verb = draw_verb(speaker, frames, kinds, tense, subject.agreement)
    adverb, slot = _draw_adverb(speaker, slots, tense, negated, subject)
    given = verb.frame in ("accusative", "giving", "placing")
    return Clause(
        subject,
        verb,
        tense,
        accusative=speaker.object(verb, subject, negated=negated) if given else None,
        dative=_draw_dative(speaker, verb, subject, negated),
        phrases=_draw_adverbials(speaker, verb, subject, negated),
        adverb=adverb,
        slot=slot,
        negated=negated,
    )


def _draw_dative(speaker: Speaker, verb: Verb, subject, negated: bool):
    if verb.frame == "dative":
        return speaker.object(verb, subject, known=negated)
    if verb.frame != "giving":
        return None
    # German puts the dative first, as it does here, only if it is the better known of the two.
    if speaker.chance(0.3):
        return speaker.other_person(subject)
    return speaker.noun_phrase("person", known=True)


def _draw_adverb(speaker: Speaker, slots, tense: str, negated: bool, subject):
    if not slots or speaker.chance(0.45):
        return None, "front"
    slot = speaker.pick(slots)
    if slot == "middle" and (negated or not subject.definite):
        return None, "front"  # "does not often" and "every man never" are other stories.
    if slot == "front" and speaker.chance(0.15):
        cause = speaker.pick((BECAUSE_OF, DURING))
        english, german = cause.with_phrase(speaker.noun_phrase(cause.kinds, known=True))
        return Adverb(f"{english},", german, TENSES, ("front",)), slot
    fitting = [
        word
        for word in _ADVERBS
        if slot in word.slots and tense in word.tenses and not (negated and word in _AFFIRMATIVE)
    ]
    return (speaker.pick(fitting), slot) if fitting else (None, "front")


def _draw_adverbials(speaker: Speaker, verb: Verb, subject, negated: bool):
    """Return a place or direction, then company, each in both languages; perhaps neither."""
    place, company = (), ()
    if verb.frame == "direction":
        place = tuple(DIRECTIONS[name] for name in verb.objects.split(","))
    elif verb.frame == "placing":
        place = PLACING
    elif verb.english == "live":
        place = PLACES[:1]
    elif verb.frame == "place" or (verb.frame == "doing" and speaker.chance(0.6)):
        place = PLACES
    elif verb.frame == "accusative" and verb.english not in _NOWHERE and not negated:
        place = PLACES if speaker.chance(0.12) else ()
    phrases = (speaker.where(place),) if place else ()
    if not negated and speaker.chance(0.2):
        if verb.english in _FOR_SOMEBODY:
            company = (FOR,)
        elif verb.frame in ("direction", "doing"):
            company = (WITH, WITH, WITHOUT)
    if company:
        somebody = speaker.other_person(subject) if speaker.chance(0.3) else None
        phrases += (speaker.where(company, somebody),)
    return phrases


def draw_description(
    speaker: Speaker,
    subject: NounPhrase | Pronoun | None = None,
    noun: Noun | None = None,
    tense: str | None = None,
    negated: bool = False,
) -> Description:
    """Return a clause with to be: an adjective, or a comparison with something of its kind.

    ``noun`` is the one that is, or that stands behind, a given subject; without, both are drawn.
    """
    subject = subject or speaker.noun_phrase(_DESCRIBED, known=negated)
    beside = ()
    if isinstance(subject, NounPhrase):
        noun, beside = subject.noun, subject.adjectives
    word = speaker.adjective(noun, beside)
    if isinstance(subject, NounPhrase):
        speaker.word_pairs.add((word.german, noun.german))
    told, than = (word.english, word.german), ("", "")
    if word.comparative and speaker.chance(0.3):
        kind = next(kind for kind in _DESCRIBED.split() if kind in noun.kinds)
        other = speaker.noun_phrase(kind)
        told = word.comparative, word.german_comparative
        than = f"than {other.english()}", f"als {other.german('nominative')}"
    return Description(subject, told, than, tense or speaker.pick(_OFTEN), negated)
