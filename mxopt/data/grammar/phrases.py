"""Noun phrases and pronouns, each in English and in every German case.

What can be a subject or an object has ``english(role)``, role "subject" or "object", and
``german(case)``; ``agreement`` is the German pronoun whose verb form it takes (ich, du, er, wir,
sie), which gives the English verb form too.
"""

from __future__ import annotations

from typing import NamedTuple

from mxopt.data.grammar.inflection import (
    ADJECTIVE_AFTER,
    DEFINITE,
    MIXED,
    STRONG,
    UNCHANGED,
    decline,
    indefinite_article,
)
from mxopt.data.grammar.nouns import Adjective, Noun


class Determiner(NamedTuple):
    """A word before the adjectives: its English forms and a German stem that takes ``endings``.

    ``adjectives`` names the column of ``ADJECTIVE_AFTER`` that follows it.
    """

    english: str
    english_plural: str
    stem: str
    endings: dict
    adjectives: str
    definite: bool = False


THE = Determiner("the", "the", "d", DEFINITE, "der", definite=True)
THIS = Determiner("this", "these", "dies", STRONG, "der", definite=True)
EVERY = Determiner("every", "", "jed", STRONG, "der")
ALL = Determiner("", "all", "all", STRONG, "der")
A = Determiner("a", "", "ein", MIXED, "ein")
NO = Determiner("no", "no", "kein", MIXED, "ein")
# German says "sees no dog" where English says "does not see a dog".
NOT_ANY = Determiner("a", "any", "kein", MIXED, "ein")
POSSESSIVES = tuple(
    Determiner(english, english, stem, MIXED, "ein", definite=True)
    for english, stem in (
        ("my", "mein"), ("your", "dein"), ("his", "sein"), ("her", "ihr"), ("our", "unser"),
        ("their", "ihr"),
    )
)  # fmt: skip
BARE = Determiner("", "", "", UNCHANGED, "nothing")
AMOUNTS = (
    Determiner("", "two", "zwei", UNCHANGED, "nothing"),
    Determiner("", "three", "drei", UNCHANGED, "nothing"),
    Determiner("", "many", "viel", STRONG, "nothing"),
    Determiner("", "some", "einig", STRONG, "nothing"),
)


class NounPhrase(NamedTuple):
    """A determiner, adjectives, a noun; perhaps its owner, perhaps a relative clause.

    ``owner`` is a noun phrase in the singular and needs ``THE`` as determiner: "the man's hat",
    der Hut des Mannes. ``relative`` is the clause in English and in German.
    """

    determiner: Determiner
    noun: Noun
    adjectives: tuple[Adjective, ...] = ()
    plural: bool = False
    owner: NounPhrase | None = None
    relative: tuple[str, str] = ("", "")

    @property
    def agreement(self) -> str:
        """The pronoun with the same verb form: er or sie (they)."""
        return "sie" if self.plural else "er"

    @property
    def definite(self) -> bool:
        """Whether both know which one is meant; decides the German word order."""
        return self.determiner.definite

    @property
    def denied(self) -> bool:
        """Whether it has kein for its determiner."""
        return self.determiner is NOT_ANY

    @property
    def column(self) -> str:
        """The column of the tables: m, f, n or p."""
        return self.noun.column(self.plural)

    def english(self, role: str = "subject") -> str:
        """Return the phrase in English; the role changes nothing."""
        noun = self.noun.english_plural if self.plural else self.noun.english
        words = joined(*(adjective.english for adjective in self.adjectives), noun)
        determiner = self.determiner
        article = determiner.english_plural if self.plural else determiner.english
        if article == "a":
            article = indefinite_article(words)
        if self.owner:
            article = self.owner.english() + "'s"
        return joined(article, words, self.relative[0])

    def german(self, case: str) -> str:
        """Return the phrase in a case; a relative clause stands between commas."""
        cell = case, self.column
        determiner = self.determiner.stem + self.determiner.endings[cell]
        ending = ADJECTIVE_AFTER[self.determiner.adjectives][cell]
        adjectives = (adjective.stem + ending for adjective in self.adjectives)
        owner = self.owner.german("genitive") if self.owner else ""
        words = joined(determiner, *adjectives, decline(self.noun, case, self.plural), owner)
        return f"{words}, {self.relative[1]}," if self.relative[1] else words

    def pronoun(self) -> Pronoun | None:
        """Return he, she, it or they for this; None where English and German disagree.

        English goes by the person and German by the noun: das Mädchen is es, the girl is she.
        """
        if self.plural:
            return THEY
        german = dict(zip("mfn", (HE, SHE, IT)))[self.noun.gender]
        if "person" not in self.noun.kinds:
            return german._replace(english_subject="it", english_object="it")
        return None if german is IT else german


class Pronoun(NamedTuple):
    """A pronoun: English subject and object, German cases by name."""

    english_subject: str
    english_object: str
    nominative: str
    accusative: str
    dative: str
    agreement: str
    definite = True
    denied = False

    def pronoun(self) -> Pronoun:
        """Return the pronoun itself."""
        return self

    def english(self, role: str = "subject") -> str:
        """Return I or me."""
        return self.english_subject if role == "subject" else self.english_object

    def german(self, case: str) -> str:
        """Return ich, mich or mir."""
        return getattr(self, case)


I_ = Pronoun("I", "me", "ich", "mich", "mir", "ich")
YOU = Pronoun("you", "you", "du", "dich", "dir", "du")
HE = Pronoun("he", "him", "er", "ihn", "ihm", "er")
SHE = Pronoun("she", "her", "sie", "sie", "ihr", "er")
IT = Pronoun("it", "it", "es", "es", "ihm", "er")
WE = Pronoun("we", "us", "wir", "uns", "uns", "wir")
THEY = Pronoun("they", "them", "sie", "sie", "ihnen", "sie")
PRONOUNS = (I_, YOU, HE, SHE, WE, THEY)
WHO = Pronoun("who", "whom", "wer", "wen", "wem", "er")


def joined(*words: str) -> str:
    """Join what is not empty with blanks."""
    return " ".join(word for word in words if word)
