"""Drawing words at random: noun phrases that make sense enough."""

from __future__ import annotations

from random import Random

from mxopt.data.grammar.nouns import ADJECTIVES_FOR, Adjective, Noun, nouns_of
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
    A,
    NounPhrase,
    Pronoun,
)
from mxopt.data.grammar.prepositions import Preposition
from mxopt.data.grammar.verbs import Verb

# What stands here n times is drawn n times as often.
_SINGULAR = (THE,) * 5 + (A,) * 4 + (THIS, EVERY)
_PLURAL = (THE,) * 4 + (THIS, ALL, *AMOUNTS) + (BARE,) * 2
_KNOWN = (THE,) * 4 + (THIS,)


class Speaker:
    """Draws phrases from ``random``: the same seed gives the same words on every Python.

    ``word_pairs`` collects which words were put together: adjective and noun, verb and object, in
    German. Some pairs are kept out of the training split, so that the other splits can show whether
    a network has learned words or sentences.
    """

    def __init__(self, random: Random):
        # Of all that Random offers, Python promises only for random() that its numbers will stay.
        self._random = random
        self.word_pairs: set[tuple[str, str]] = set()

    def chance(self, probability: float) -> bool:
        """Return True so often."""
        return self._random.random() < probability

    def pick(self, choices):
        """Return one of a sequence."""
        return choices[int(self._random.random() * len(choices))]

    def noun_phrase(self, kinds: str, known: bool = False, negated: bool = False) -> NounPhrase:
        """Return a noun phrase of these kinds.

        ``known`` asks for a definite one, ``negated`` for one that may be denied: "not the dog",
        "not a dog", but not "not every dog".
        """
        noun = self.pick(nouns_of(kinds))
        plural = bool(noun.plural) and self.chance(0.3)
        owner = None
        if negated and self.chance(0.5):
            determiner = NOT_ANY
        elif "own" in noun.kinds and self.chance(0.2):
            determiner = self.pick(POSSESSIVES)
        elif "own" in noun.kinds and self.chance(0.08):
            determiner, owner = THE, self._owner()
        elif known or negated:
            determiner = self.pick(_KNOWN)
        else:
            determiner = self.pick(_PLURAL if plural else _SINGULAR)
        return NounPhrase(determiner, noun, self._adjectives(noun), plural, owner)

    def _owner(self) -> NounPhrase:
        noun = self.pick(nouns_of("person"))
        determiner = self.pick(POSSESSIVES) if "own" in noun.kinds and self.chance(0.5) else THE
        return NounPhrase(determiner, noun, self._adjectives(noun) if self.chance(0.5) else ())

    def _adjectives(self, noun: Noun) -> tuple[Adjective, ...]:
        if not ADJECTIVES_FOR[noun] or self.chance(0.5):
            return ()
        found = (self.adjective(noun),)
        # Both languages say "big black", and neither needs a comma there.
        colours = [word for word in ADJECTIVES_FOR[noun] if word.scale == "colour"]
        if colours and found[0].scale != "colour" and self.chance(0.2):
            found += (self.pick(colours),)
        self.word_pairs.update((word.german, noun.german) for word in found)
        return found

    def adjective(self, noun: Noun, beside: tuple[Adjective, ...] = ()) -> Adjective:
        """Return a word that describes such a thing, and says another thing than those beside."""
        scales = {word.scale for word in beside}
        return self.pick([word for word in ADJECTIVES_FOR[noun] if word.scale not in scales])

    def subject(self, kinds: str, known: bool = False) -> NounPhrase | Pronoun:
        """Return a noun phrase of these kinds, or where persons are among them a pronoun."""
        if "person" in kinds.split() and self.chance(0.15):
            return self.pick(PRONOUNS)
        return self.noun_phrase(kinds, known)

    def object(self, verb: Verb, subject, known=False, negated=False) -> NounPhrase | Pronoun:
        """Return somebody or something that the verb may be done to."""
        if "person" in verb.objects.split() and self.chance(0.15):
            return self.other_person(subject)
        phrase = self.noun_phrase(verb.objects, known, negated)
        self.word_pairs.add((verb.infinitive, phrase.noun.german))
        return phrase

    def other_person(self, subject) -> Pronoun:
        """Return a pronoun for somebody else: I do not see me."""
        first_or_second = subject.agreement in ("ich", "du", "wir")
        return self.pick((HE, SHE, THEY) if first_or_second else PRONOUNS)

    def where(self, choices: tuple[Preposition, ...], phrase=None) -> tuple[str, str]:
        """Return a phrase with one of these prepositions, in English and in German."""
        preposition = self.pick(choices)
        return preposition.with_phrase(phrase or self.noun_phrase(preposition.kinds))
