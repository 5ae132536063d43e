"""Clauses: a verb with all that stands beside it, said in English and in German."""

from __future__ import annotations

from dataclasses import dataclass

from mxopt.data.grammar.inflection import third_person
from mxopt.data.grammar.order import English, German
from mxopt.data.grammar.phrases import NounPhrase, Pronoun, joined
from mxopt.data.grammar.verbs import Verb

_PERSONS = ("ich", "du", "er", "wir", "sie")


def _forms(words: str) -> dict[str, str]:
    return dict(zip(_PERSONS, words.split()))


HELPERS = {
    "hat": _forms("habe hast hat haben haben"),
    "ist": _forms("bin bist ist sind sind"),
    "war": _forms("war warst war waren waren"),
    "can": _forms("kann kannst kann können können"),
    "must": _forms("muss musst muss müssen müssen"),
    "want": _forms("will willst will wollen wollen"),
    "will": _forms("werde wirst wird werden werden"),
}
TENSES = ("present", "past", "can", "must", "want", "will")


@dataclass(frozen=True)
class Adverb:
    """An adverb in both languages; ``slots`` are where English has it: front, middle, end."""

    english: str
    german: str
    tenses: tuple[str, ...]
    slots: tuple[str, ...]


@dataclass(frozen=True)
class Clause:
    """A verb with all that stands beside it.

    ``phrases`` are adverbials in English order, each in English and in German; ``adverb`` has its
    place in ``slot`` (front: it is left to the sentence). A negated clause has no ``must`` (German
    would say another thing) and only definite or ``NOT_ANY`` objects.
    """

    subject: NounPhrase | Pronoun
    verb: Verb
    tense: str = "present"
    accusative: NounPhrase | Pronoun | None = None
    dative: NounPhrase | Pronoun | None = None
    phrases: tuple[tuple[str, str], ...] = ()
    adverb: Adverb | None = None
    slot: str = "front"
    negated: bool = False

    def german(self) -> German:
        """Return the German pieces."""
        finite, tail, last = self._german_verb(self.subject.agreement)
        objects = [(self.dative, "dative"), (self.accusative, "accusative")]
        objects = [(phrase, case) for phrase, case in objects if phrase]
        known = [phrase.german(case) for phrase, case in objects if phrase.definite]
        fresh = [phrase.german(case) for phrase, case in objects if not phrase.definite]
        adverb = self.adverb.german if self.adverb and self.slot != "front" else ""
        # kein denies already.
        denied = self.negated and not any(phrase.denied for phrase, _ in objects)
        # English tells place before company, German company before place.
        places = [german for _, german in reversed(self.phrases)]
        middle = joined(*known, adverb, *fresh, "nicht" if denied else "", *places)
        return German(self.subject.german("nominative"), finite, middle, tail, last)

    def _german_verb(self, person: str) -> tuple[str, str, str]:
        verb = self.verb
        if self.tense == "present":
            finite = verb.present(person)
            return finite, verb.prefix, verb.prefix + finite
        if self.tense == "past":
            finite, tail = HELPERS[verb.auxiliary][person], verb.participle
        else:
            finite, tail = HELPERS[self.tense][person], verb.infinitive
        return finite, tail, f"{tail} {finite}"

    def german_infinitive(self) -> str:
        """Return the clause as an infinitive with zu: die Tür aufzumachen."""
        verb = self.verb
        zu = f"{verb.prefix}zu{verb.german}" if verb.prefix else f"zu {verb.german}"
        return joined(self.german().middle, zu)

    def english_infinitive(self) -> str:
        """Return the clause as an infinitive with to: to open the door."""
        return joined("to", self.verb.english.split()[0], self._english_rest())

    def english(self) -> English:
        """Return the English pieces."""
        singular = self.subject.agreement == "er"
        base = self.verb.english.split()[0]
        middle = self.adverb.english if self.adverb and self.slot == "middle" else ""
        does = "does" if singular else "do"
        if self.tense == "past":
            helper, bare, finite = "did", base, joined(middle, self.verb.past)
        elif self.tense == "present":
            helper, bare = does, base
            finite = joined(middle, third_person(base) if singular else base)
        elif self.tense == "want":
            helper, bare = does, f"want to {base}"
            finite = joined(middle, "wants" if singular else "want", "to", base)
        else:
            helper, bare = self.tense, base
            finite = joined(self.tense, middle, base)
        if self.negated:
            finite = joined("cannot" if helper == "can" else f"{helper} not", bare)
        rest = self._english_rest()
        return English(self.subject.english(), finite, helper, joined(middle, bare), rest)

    def _english_rest(self) -> str:
        particle = " ".join(self.verb.english.split()[1:])
        moves = particle.startswith("_")
        particle = particle.lstrip("_")
        direct = self.accusative.english("object") if self.accusative else ""
        indirect = self.dative.english("object") if self.dative else ""
        if moves and isinstance(self.accusative, Pronoun):
            words = [direct, particle]
        else:
            words = [particle, indirect, direct]
        end = self.adverb.english if self.adverb and self.slot == "end" else ""
        return joined(*words, *(english for english, _ in self.phrases), end)


@dataclass(frozen=True)
class Description:
    """A clause with to be: what somebody or something is.

    ``told`` is an adjective or its comparative, ``than`` what is compared, in both languages.
    """

    subject: NounPhrase | Pronoun
    told: tuple[str, str]
    than: tuple[str, str] = ("", "")
    tense: str = "present"
    negated: bool = False

    def german(self) -> German:
        """Return the German pieces."""
        form = "ist" if self.tense == "present" else "war"
        finite = HELPERS[form][self.subject.agreement]
        middle = joined("nicht" if self.negated else "", self.told[1])
        # "weil er älter ist als sie": what is compared follows even the last verb.
        last = joined(finite, self.than[1])
        return German(self.subject.german("nominative"), finite, middle, self.than[1], last)

    def english(self) -> English:
        """Return the English pieces."""
        helper = be(self.subject.agreement, self.tense)
        finite = f"{helper} not" if self.negated else helper
        return English(
            self.subject.english(), finite, helper, "", joined(self.told[0], self.than[0])
        )


def be(person: str, tense: str) -> str:
    """Return am, are, is, was or were."""
    if tense == "present":
        return {"ich": "am", "er": "is"}.get(person, "are")
    return "was" if person in ("ich", "er") else "were"
