"""Prepositions: each asks for a case, some for one or another.

In, on, under and the like take the dative to say where, the accusative to say where to.
"""

from __future__ import annotations

from typing import NamedTuple

from mxopt.data.grammar.phrases import joined

CONTRACTIONS = {"in dem": "im", "in das": "ins", "zu dem": "zum", "zu der": "zur"}


class Preposition(NamedTuple):
    """A preposition, the case it takes here, and the kinds of noun it suits."""

    english: str
    german: str
    case: str
    kinds: str

    def with_phrase(self, phrase) -> tuple[str, str]:
        """Return the phrase with its preposition, in English and in German."""
        first, _, rest = phrase.german(self.case).partition(" ")
        first = f"{self.german} {first}"
        german = joined(CONTRACTIONS.get(first, first), rest)
        return f"{self.english} {phrase.english('object')}", german


PLACES = (
    Preposition("in", "in", "dative", "inside"),
    Preposition("on", "auf", "dative", "surface"),
    Preposition("under", "unter", "dative", "cover"),
    Preposition("behind", "hinter", "dative", "landmark"),
    Preposition("in front of", "vor", "dative", "landmark"),
    Preposition("next to", "neben", "dative", "landmark"),
)
PLACING = (
    Preposition("into", "in", "accusative", "container"),
    Preposition("on", "auf", "accusative", "surface"),
    Preposition("under", "unter", "accusative", "cover"),
    Preposition("next to", "neben", "accusative", "furniture"),
)
DIRECTIONS = {
    "into": Preposition("into", "in", "accusative", "inside"),
    "onto": Preposition("onto", "auf", "accusative", "climbable"),
    "over": Preposition("over", "über", "accusative", "climbable"),
    "across": Preposition("across", "über", "accusative", "crossable"),
    "through": Preposition("through", "durch", "accusative", "passable"),
    "around": Preposition("around", "um", "accusative", "landmark"),
    "to": Preposition("to", "zu", "dative", "landmark person"),
    "out of": Preposition("out of", "aus", "dative", "inside"),
}
WITH = Preposition("with", "mit", "dative", "person animal")
WITHOUT = Preposition("without", "ohne", "accusative", "person animal")
FOR = Preposition("for", "für", "accusative", "person")
BECAUSE_OF = Preposition("because of", "wegen", "genitive", "reason")
DURING = Preposition("during", "während", "genitive", "time")
