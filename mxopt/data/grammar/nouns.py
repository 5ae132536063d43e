"""The nouns and adjectives of the little language, with all that is needed to inflect them.

A noun's ``kinds`` say what it may do: be eaten, be opened, be lived in. An adjective's ``kinds``
say what it may describe.
"""

from __future__ import annotations

from typing import NamedTuple


class Noun(NamedTuple):
    """A noun; German forms: nominative, genitive singular, nominative plural (empty: has none)."""

    english: str
    english_plural: str
    german: str
    genitive: str
    plural: str
    gender: str
    kinds: frozenset[str]

    def column(self, plural: bool) -> str:
        """Return the column of the tables that words beside this noun take their endings from."""
        return "p" if plural else self.gender


class Adjective(NamedTuple):
    """An adjective; ``stem`` takes the endings (teuer: teur-).

    Of words on the same ``scale`` only one can be true at a time: old and young are on "age".
    """

    english: str
    german: str
    stem: str
    comparative: str
    german_comparative: str
    kinds: frozenset[str]
    scale: str


# english, plural | german, genitive, plural, gender | kinds. "own": may be mine or the man's.
_NOUNS = """
man, men | Mann, Mannes, Männer, m | person
woman, women | Frau, Frau, Frauen, f | person
boy, boys | Junge, Jungen, Jungen, m | person
girl, girls | Mädchen, Mädchens, Mädchen, n | person
child, children | Kind, Kindes, Kinder, n | person own
teacher, teachers | Lehrer, Lehrers, Lehrer, m | person own
doctor, doctors | Arzt, Arztes, Ärzte, m | person own
farmer, farmers | Bauer, Bauern, Bauern, m | person
baker, bakers | Bäcker, Bäckers, Bäcker, m | person own
student, students | Student, Studenten, Studenten, m | person
neighbour, neighbours | Nachbar, Nachbarn, Nachbarn, m | person own
guest, guests | Gast, Gastes, Gäste, m | person own
queen, queens | Königin, Königin, Königinnen, f | person
aunt, aunts | Tante, Tante, Tanten, f | person own
uncle, uncles | Onkel, Onkels, Onkel, m | person own
sister, sisters | Schwester, Schwester, Schwestern, f | person own
brother, brothers | Bruder, Bruders, Brüder, m | person own
grandmother, grandmothers | Großmutter, Großmutter, Großmütter, f | person own
grandfather, grandfathers | Großvater, Großvaters, Großväter, m | person own
dog, dogs | Hund, Hundes, Hunde, m | animal own
cat, cats | Katze, Katze, Katzen, f | animal own
horse, horses | Pferd, Pferdes, Pferde, n | animal own
bird, birds | Vogel, Vogels, Vögel, m | animal own
cow, cows | Kuh, Kuh, Kühe, f | animal own
bear, bears | Bär, Bären, Bären, m | animal
duck, ducks | Ente, Ente, Enten, f | animal own
rabbit, rabbits | Kaninchen, Kaninchens, Kaninchen, n | animal own
apple, apples | Apfel, Apfels, Äpfel, m | food portable own
pear, pears | Birne, Birne, Birnen, f | food portable own
egg, eggs | Ei, Eies, Eier, n | food portable own
cake, cakes | Kuchen, Kuchens, Kuchen, m | food portable own
potato, potatoes | Kartoffel, Kartoffel, Kartoffeln, f | food portable own
book, books | Buch, Buches, Bücher, n | text written portable own
letter, letters | Brief, Briefes, Briefe, m | text written portable own
newspaper, newspapers | Zeitung, Zeitung, Zeitungen, f | text portable own
hat, hats | Hut, Hutes, Hüte, m | clothing portable own
coat, coats | Mantel, Mantels, Mäntel, m | garment clothing portable own
shirt, shirts | Hemd, Hemdes, Hemden, n | garment clothing portable own
jacket, jackets | Jacke, Jacke, Jacken, f | garment clothing portable own
cup, cups | Tasse, Tasse, Tassen, f | upright portable own
bottle, bottles | Flasche, Flasche, Flaschen, f | upright portable own
glass, glasses | Glas, Glases, Gläser, n | upright portable own
lamp, lamps | Lampe, Lampe, Lampen, f | upright switch portable own
radio, radios | Radio, Radios, Radios, n | upright switch portable own
computer, computers | Computer, Computers, Computer, m | switch own
picture, pictures | Bild, Bildes, Bilder, n | portable own
key, keys | Schlüssel, Schlüssels, Schlüssel, m | portable own
knife, knives | Messer, Messers, Messer, n | portable own
clock, clocks | Uhr, Uhr, Uhren, f | upright portable own
ring, rings | Ring, Ringes, Ringe, m | portable own
basket, baskets | Korb, Korbes, Körbe, m | upright container portable own
suitcase, suitcases | Koffer, Koffers, Koffer, m | upright container opening portable own
box, boxes | Kiste, Kiste, Kisten, f | container opening portable own
cupboard, cupboards | Schrank, Schrankes, Schränke, m | container opening furniture own
door, doors | Tür, Tür, Türen, f | opening
window, windows | Fenster, Fensters, Fenster, n | opening
table, tables | Tisch, Tisches, Tische, m | furniture surface cover own
chair, chairs | Stuhl, Stuhles, Stühle, m | furniture surface own
bed, beds | Bett, Bettes, Betten, n | furniture surface cover own
sofa, sofas | Sofa, Sofas, Sofas, n | furniture surface own
bench, benches | Bank, Bank, Bänke, f | furniture surface cover
car, cars | Auto, Autos, Autos, n | vehicle landmark own
bicycle, bicycles | Fahrrad, Fahrrades, Fahrräder, n | vehicle own
boat, boats | Boot, Bootes, Boote, n | vehicle built own
house, houses | Haus, Hauses, Häuser, n | inside landmark built tidy own
church, churches | Kirche, Kirche, Kirchen, f | inside landmark built
school, schools | Schule, Schule, Schulen, f | inside landmark
castle, castles | Schloss, Schlosses, Schlösser, n | inside landmark built
hotel, hotels | Hotel, Hotels, Hotels, n | inside landmark
shop, shops | Laden, Ladens, Läden, m | inside landmark own
tower, towers | Turm, Turmes, Türme, m | inside landmark built tall
kitchen, kitchens | Küche, Küche, Küchen, f | inside tidy own
room, rooms | Zimmer, Zimmers, Zimmer, n | inside tidy own
cellar, cellars | Keller, Kellers, Keller, m | inside tidy own
garden, gardens | Garten, Gartens, Gärten, m | inside passable own
forest, forests | Wald, Waldes, Wälder, m | inside passable
village, villages | Dorf, Dorfes, Dörfer, n | inside passable
city, cities | Stadt, Stadt, Städte, f | inside passable
bridge, bridges | Brücke, Brücke, Brücken, f | surface cover crossable built tall
street, streets | Straße, Straße, Straßen, f | surface crossable
roof, roofs | Dach, Daches, Dächer, n | surface climbable
wall, walls | Mauer, Mauer, Mauern, f | surface climbable landmark built tall
tree, trees | Baum, Baumes, Bäume, m | landmark cover tall
rain, | Regen, Regens, , m | reason
storm, storms | Sturm, Sturmes, Stürme, m | reason
snow, | Schnee, Schnees, , m | reason
noise, | Lärm, Lärms, , m | reason
night, nights | Nacht, Nacht, Nächte, f | time
concert, concerts | Konzert, Konzertes, Konzerte, n | time
exam, exams | Prüfung, Prüfung, Prüfungen, f | time
"""

# english, german, stem | comparatives | kinds described | scale.
_ADJECTIVES = """
old, alt, alt                    | older, älter             | person animal thing place | age
young, jung, jung                | younger, jünger          | person animal             | age
new, neu, neu                    | newer, neuer             | thing place               | age
big, groß, groß                  | bigger, größer           | animal thing food place   | size
small, klein, klein              | smaller, kleiner         | animal thing food place   | size
tall, groß, groß                 | taller, größer           | person                    | size
high, hoch, hoh                  | higher, höher            | tall                      | size
beautiful, schön, schön          | more beautiful, schöner  | thing place               | beauty
cheap, billig, billig            | cheaper, billiger        | thing food                | price
expensive, teuer, teur           | more expensive, teurer   | thing food                | price
heavy, schwer, schwer            | heavier, schwerer        | thing                     | weight
dark, dunkel, dunkl              | darker, dunkler          | place                     | light
fresh, frisch, frisch            | fresher, frischer        | food                      | taste
famous, berühmt, berühmt         | more famous, berühmter   | person place              | fame
rich, reich, reich               | richer, reicher          | person                    | wealth
poor, arm, arm                   | poorer, ärmer            | person                    | wealth
happy, glücklich, glücklich      | happier, glücklicher     | person                    | mood
sad, traurig, traurig            | sadder, trauriger        | person                    | mood
tired, müde, müd                 | ,                        | person animal             | sleep
hungry, hungrig, hungrig         | hungrier, hungriger      | person animal             | food
friendly, freundlich, freundlich | friendlier, freundlicher | person animal             | manner
clever, klug, klug               | cleverer, klüger         | person animal             | mind
lazy, faul, faul                 | lazier, fauler           | person animal             | work
strong, stark, stark             | stronger, stärker        | person animal             | strength
brave, mutig, mutig              | braver, mutiger          | person animal             | courage
black, schwarz, schwarz          | ,                        | thing animal              | colour
white, weiß, weiß                | ,                        | thing animal              | colour
brown, braun, braun              | ,                        | thing animal              | colour
red, rot, rot                    | ,                        | thing                     | colour
green, grün, grün                | ,                        | thing                     | colour
blue, blau, blau                 | ,                        | thing                     | colour
"""
_THINGS = {"portable", "furniture", "vehicle", "opening", "switch"}
_PLACES = {"inside", "landmark", "climbable", "crossable"}


def _cells(table: str) -> list[list[list[str]]]:
    return [
        [[word.strip() for word in cell.split(",")] for cell in line.split("|")]
        for line in table.strip().splitlines()
    ]


def _described_as(kinds: set[str]) -> set[str]:
    """Return the kinds of adjective that suit a noun of these kinds."""
    suits = kinds & {"person", "animal", "food", "tall"}
    if kinds & _THINGS and "food" not in kinds:
        suits.add("thing")
    if kinds & _PLACES and not kinds & _THINGS:
        suits.add("place")
    return suits


NOUNS = tuple(
    Noun(*english, *german, frozenset(kinds.split())) for english, german, [kinds] in _cells(_NOUNS)
)
ADJECTIVES = tuple(
    Adjective(*words, *more, frozenset(kinds.split()), scale)
    for words, more, [kinds], [scale] in _cells(_ADJECTIVES)
)
ADJECTIVES_FOR = {
    noun: tuple(word for word in ADJECTIVES if word.kinds & _described_as(set(noun.kinds)))
    for noun in NOUNS
}


def nouns_of(kinds: str) -> tuple[Noun, ...]:
    """Return the nouns that have any of these kinds, given as words in one string."""
    wanted = set(kinds.split())
    return tuple(noun for noun in NOUNS if noun.kinds & wanted)
