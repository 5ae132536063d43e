"""The grammar's words by their English, and phrases and clauses of them, for its tests."""

from mxopt.data.grammar.clauses import Clause
from mxopt.data.grammar.nouns import ADJECTIVES, NOUNS
from mxopt.data.grammar.phrases import AMOUNTS, POSSESSIVES, THE, NounPhrase
from mxopt.data.grammar.prepositions import PLACES, PLACING
from mxopt.data.grammar.verbs import VERBS

NOUN = {noun.english: noun for noun in NOUNS}
ADJECTIVE = {adjective.english: adjective for adjective in ADJECTIVES}
ALL_VERBS = [verb for frame in VERBS.values() for verb in frame]
VERB = {verb.english: verb for verb in ALL_VERBS}
PLACE = {preposition.english: preposition for preposition in PLACES}
PLACED = {preposition.english: preposition for preposition in PLACING}
TWO, THREE, MANY, SOME = AMOUNTS
MY, YOUR, HIS, HER, OUR, THEIR = POSSESSIVES


def phrase(determiner, words, **more):
    """A noun phrase of English words in the singular, "old man"; plural=True makes it one."""
    *adjectives, noun = words.split()
    return NounPhrase(determiner, NOUN[noun], tuple(ADJECTIVE[word] for word in adjectives), **more)


def clause(english, subject=None, **more):
    """What a man, or another subject, does, by its English verb."""
    return Clause(subject or phrase(THE, "man"), VERB[english], **more)
