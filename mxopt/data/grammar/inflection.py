"""Endings: how German articles, adjectives and nouns change, and English verbs and articles.

German has four cases and four columns to decline in: masculine ``m``, feminine ``f``, neuter ``n``,
and one plural ``p`` for all genders. The endings are those of any school grammar.
"""

from __future__ import annotations

CASES = ("nominative", "accusative", "dative", "genitive")
COLUMNS = ("m", "f", "n", "p")
VOWELS = "aeiou"


def _table(*rows: str) -> dict[tuple[str, str], str]:
    """Read one row a case, one word a column; a dash is no ending at all."""
    return {
        (case, column): "" if ending == "-" else ending
        for case, row in zip(CASES, rows)
        for column, ending in zip(COLUMNS, row.split())
    }


DEFINITE = _table("er ie as ie", "en ie as ie", "em er em en", "es er es er")
# dieser, jeder, viele: the endings of der, spelled a little differently.
STRONG = _table("er e es e", "en e es e", "em er em en", "es er es er")
# ein, kein, mein: no ending where der would tell masculine and neuter apart.
MIXED = _table("- e - e", "en e - e", "em er em en", "es er es er")
UNCHANGED = _table(*["- - - -"] * 4)

# What an adjective takes after each: the less the article tells, the more the adjective does.
ADJECTIVE_AFTER = {
    "der": _table("e e e en", "en e e en", *["en en en en"] * 2),
    "ein": _table("er e es en", "en e es en", *["en en en en"] * 2),
    "nothing": _table("er e es e", "en e es e", "em er em en", "en er en er"),
}
RELATIVE = {
    "nominative": {"m": "der", "f": "die", "n": "das", "p": "die"},
    "accusative": {"m": "den", "f": "die", "n": "das", "p": "die"},
    "dative": {"m": "dem", "f": "der", "n": "dem", "p": "denen"},
}


def decline(noun, case: str, plural: bool) -> str:
    """Return a German noun in a case.

    In the singular only masculine and neuter nouns change, in the genitive; weak masculine ones
    (der Junge, des Jungen) have their genitive's form in every case but the first. The dative
    plural ends in n unless the plural ends in n or s already.
    """
    if plural:
        return noun.plural + ("n" if case == "dative" and noun.plural[-1] not in "ns" else "")
    weak = noun.gender == "m" and not noun.genitive.endswith("s")
    if case == "genitive" or (weak and case != "nominative"):
        return noun.genitive
    return noun.german


def first_person(infinitive: str) -> str:
    """Return the form with ich: sehen, sehe; füttern, füttere."""
    return infinitive[:-1] + "e" if infinitive.endswith("ern") else infinitive[:-2] + "e"


def third_person(verb: str) -> str:
    """Return the English form with he, she, it: sees, watches, carries, goes."""
    if verb.endswith(("s", "sh", "ch", "x", "z", "o")):
        return verb + "es"
    if verb.endswith("y") and verb[-2] not in VOWELS:
        return verb[:-1] + "ies"
    return verb + "s"


def indefinite_article(following: str) -> str:
    """Return a or an, by the first letter of what follows (no word here starts with a silent one).

    >>> indefinite_article("old man")
    'an'
    """
    return "an" if following[0] in VOWELS else "a"
