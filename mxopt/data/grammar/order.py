"""Word order: the pieces of a clause, and how each language puts them together.

German puts the finite verb second in a main clause, first in a question, last in a subordinate
clause; whatever else belongs to the verb (a prefix, a participle, an infinitive) stands at the end.
English keeps subject, verb, object, and asks and denies with do.
"""

from __future__ import annotations

from dataclasses import dataclass

from mxopt.data.grammar.phrases import joined


@dataclass(frozen=True)
class German:
    """A clause in pieces: ``last`` is what ends it where the finite verb goes last."""

    subject: str
    finite: str
    middle: str
    tail: str
    last: str

    def main(self) -> str:
        """Verb second, subject first: der Mann macht die Tür auf."""
        return joined(self.subject, self.finite, self.middle, self.tail)

    def after(self, front: str = "") -> str:
        """Verb second after something else, or first after nothing: heute macht der Mann ..."""
        return joined(front, self.finite, self.subject, self.middle, self.tail)

    def subordinate(self, conjunction: str = "") -> str:
        """Verb last: weil der Mann die Tür aufmacht."""
        return joined(conjunction, self.subject, self.middle, self.last)


@dataclass(frozen=True)
class English:
    """A clause in pieces: the helper and what follows it serve questions and denials."""

    subject: str
    finite: str
    helper: str
    bare: str
    rest: str

    def statement(self) -> str:
        """Return the man opens the door."""
        return joined(self.subject, self.finite, self.rest)

    def question(self, word: str = "") -> str:
        """Return does the man open the door."""
        return joined(word, self.helper, self.subject, self.bare, self.rest)

    def without_subject(self) -> str:
        """Return opens the door."""
        return joined(self.finite, self.rest)
