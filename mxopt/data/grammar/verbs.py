"""The verbs of the little language: their forms, and what may stand beside them."""

from __future__ import annotations

from typing import NamedTuple

from mxopt.data.grammar.inflection import first_person


class Verb(NamedTuple):
    """A verb in both languages.

    ``english`` is the verb and what belongs to it: "look for", or with a word that moves,
    "pick _up" (picks up the man, picks him up). ``german`` is the infinitive without ``prefix``,
    the part that comes off in main clauses (empty: there is none). ``frame`` names what stands
    beside the verb (see ``_TABLES``), ``subjects`` and ``objects`` the kinds of noun that may.
    """

    frame: str
    english: str
    past: str
    prefix: str
    german: str
    du: str
    er: str
    auxiliary: str
    participle: str
    subjects: str
    objects: str

    def present(self, person: str) -> str:
        """Return the present form for ich, du, er, wir or sie, without the prefix."""
        forms = {"ich": first_person(self.german), "du": self.du, "er": self.er}
        return forms.get(person, self.german)

    @property
    def infinitive(self) -> str:
        """The infinitive in one word: aufmachen."""
        return self.prefix + self.german


# english, past | infinitive, du, er, auxiliary, participle | subjects > objects
_TABLES = {
    # An object in the accusative.
    "accusative": """
see, saw | sehen siehst sieht hat gesehen | person animal > person animal vehicle built
look for, looked | suchen suchst sucht hat gesucht | person animal > person animal portable
find, found | finden findest findet hat gefunden | person > person animal portable
buy, bought | kaufen kaufst kauft hat gekauft | person > portable vehicle furniture animal
sell, sold | verkaufen verkaufst verkauft hat verkauft | person > portable vehicle furniture
eat, ate | essen isst isst hat gegessen | person > food
read, read | lesen liest liest hat gelesen | person > text
write, wrote | schreiben schreibst schreibt hat geschrieben | person > written
love, loved | lieben liebst liebt hat geliebt | person > person animal
know, knew | kennen kennst kennt hat gekannt | person > person
visit, visited | besuchen besuchst besucht hat besucht | person > person
feed, fed | füttern fütterst füttert hat gefüttert | person > animal
carry, carried | tragen trägst trägt hat getragen | person > portable
wear, wore | tragen trägst trägt hat getragen | person > clothing
draw, drew | zeichnen zeichnest zeichnet hat gezeichnet | person > person animal built
repair, repaired | reparieren reparierst repariert hat repariert | person > vehicle switch furniture
forget, forgot | vergessen vergisst vergisst hat vergessen | person > portable
need, needed | brauchen brauchst braucht hat gebraucht | person > portable vehicle furniture
hear, heard | hören hörst hört hat gehört | person animal > person animal
watch, watched | beobachten beobachtest beobachtet hat beobachtet | person animal > person animal
build, built | bauen baust baut hat gebaut | person > built
steal, stole | stehlen stiehlst stiehlt hat gestohlen | person > portable vehicle
hide, hid | verstecken versteckst versteckt hat versteckt | person > portable
wash, washed | waschen wäschst wäscht hat gewaschen | person > clothing vehicle
lose, lost | verlieren verlierst verliert hat verloren | person > portable
meet, met | treffen triffst trifft hat getroffen | person > person
greet, greeted | begrüßen begrüßt begrüßt hat begrüßt | person > person
invite, invited | ein+laden lädst lädt hat eingeladen | person > person
open, opened | auf+machen machst macht hat aufgemacht | person > opening
close, closed | zu+machen machst macht hat zugemacht | person > opening
pick _up, picked | ab+holen holst holt hat abgeholt | person > person
bring _along, brought | mit+bringen bringst bringt hat mitgebracht | person > portable
call, called | an+rufen rufst ruft hat angerufen | person > person
tidy _up, tidied | auf+räumen räumst räumt hat aufgeräumt | person > tidy
take _off, took | aus+ziehen ziehst zieht hat ausgezogen | person > garment
put _on, put | an+ziehen ziehst zieht hat angezogen | person > garment
look at, looked | an+sehen siehst sieht hat angesehen | person animal > person animal portable
throw _away, threw | weg+werfen wirfst wirft hat weggeworfen | person > portable
turn _on, turned | ein+schalten schaltest schaltet hat eingeschaltet | person > switch
turn _off, turned | aus+schalten schaltest schaltet hat ausgeschaltet | person > switch
""",
    # An object in the dative.
    "dative": """
help, helped | helfen hilfst hilft hat geholfen | person > person animal
thank, thanked | danken dankst dankt hat gedankt | person > person
follow, followed | folgen folgst folgt ist gefolgt | person animal > person animal
trust, trusted | vertrauen vertraust vertraut hat vertraut | person > person
answer, answered | antworten antwortest antwortet hat geantwortet | person > person
listen to, listened | zu+hören hörst hört hat zugehört | person > person
""",
    # Somebody in the dative, something in the accusative.
    "giving": """
give, gave | geben gibst gibt hat gegeben | person > portable
show, showed | zeigen zeigst zeigt hat gezeigt | person > portable
bring, brought | bringen bringst bringt hat gebracht | person > portable
send, sent | schicken schickst schickt hat geschickt | person > portable
lend, lent | leihen leihst leiht hat geliehen | person > portable
""",
    # Somewhere: a two-way preposition with the dative.
    "place": """
sit, sat | sitzen sitzt sitzt hat gesessen | person animal >
stand, stood | stehen stehst steht hat gestanden | person animal upright >
lie, lay | liegen liegst liegt hat gelegen | animal portable >
live, lived | wohnen wohnst wohnt hat gewohnt | person >
""",
    # Somewhere, or nothing at all.
    "doing": """
sleep, slept | schlafen schläfst schläft hat geschlafen | person animal >
wait, waited | warten wartest wartet hat gewartet | person >
work, worked | arbeiten arbeitest arbeitet hat gearbeitet | person >
play, played | spielen spielst spielt hat gespielt | person animal >
sing, sang | singen singst singt hat gesungen | person >
dance, danced | tanzen tanzt tanzt hat getanzt | person >
cry, cried | weinen weinst weint hat geweint | person >
laugh, laughed | lachen lachst lacht hat gelacht | person >
""",
    # Where to; the objects are prepositions of ``phrases.DIRECTIONS``.
    "direction": """
go, went | gehen gehst geht ist gegangen | person > into,to,out of,through,across
run, ran | laufen läufst läuft ist gelaufen | person animal > into,to,out of,across,around
climb, climbed | klettern kletterst klettert ist geklettert | person animal > onto,over
""",
    # Something in the accusative, and where to: a two-way preposition with the accusative.
    "placing": """
lay, laid | legen legst legt hat gelegt | person > portable
place, placed | stellen stellst stellt hat gestellt | person > upright
""",
    # Nothing.
    "alone": """
arrive, arrived | an+kommen kommst kommt ist angekommen | person >
get up, got | auf+stehen stehst steht ist aufgestanden | person animal >
wake up, woke | auf+wachen wachst wacht ist aufgewacht | person animal >
fall asleep, fell | ein+schlafen schläfst schläft ist eingeschlafen | person animal >
come back, came | zurück+kommen kommst kommt ist zurückgekommen | person animal >
come along, came | mit+kommen kommst kommt ist mitgekommen | person >
run away, ran | weg+laufen läufst läuft ist weggelaufen | person animal >
give up, gave | auf+geben gibst gibt hat aufgegeben | person >
""",
    # A clause with dass, a clause with ob, an infinitive with zu.
    "that": """
say, said | sagen sagst sagt hat gesagt | person >
believe, believed | glauben glaubst glaubt hat geglaubt | person >
hope, hoped | hoffen hoffst hofft hat gehofft | person >
""",
    "whether": """
ask, asked | fragen fragst fragt hat gefragt | person >
""",
    "zu": """
try, tried | versuchen versuchst versucht hat versucht | person >
forget, forgot | vergessen vergisst vergisst hat vergessen | person >
hope, hoped | hoffen hoffst hofft hat gehofft | person >
""",
}


def _verb(frame: str, line: str) -> Verb:
    words, forms, kinds = line.split("|")
    english, past = words.split(",")
    infinitive, *forms = forms.split()
    prefix, _, german = infinitive.rpartition("+")
    subjects, _, objects = kinds.partition(">")
    return Verb(
        frame, english.strip(), past.strip(), prefix, german, *forms, subjects.strip(),
        objects.strip(),
    )  # fmt: skip


VERBS = {
    frame: tuple(_verb(frame, line) for line in table.strip().splitlines())
    for frame, table in _TABLES.items()
}
