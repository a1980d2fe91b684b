"""The embedded corpus ``phrasebook``: English-German sentence pairs from a small bilingual grammar.

:func:`phrasebook` returns the corpus, :func:`corpus` the same as :class:`Sentence` objects.  The module reads from top
to bottom: the lexicon (tables), words to phrases, phrases to clauses, clauses to sentences, sentences to splits.

Three decisions make English -> German a function that a small model can learn and generalise:

* Every English word or construction has one German rendering: "you" is always "du", the simple past is always the
  Perfekt (only "was" is "war"), "will" with a time is the present tense, "if" is "wenn" and "whether" is "ob".
* German word order is fixed: pronouns, definite objects, time, other phrases, indefinite objects, "nicht", complement.
* A small share of word combinations (such as verb + object) is reserved for the held-out sentences.  Each held-out
  sentence has at least one of them, no training sentence has any: memorised sentences cannot translate the test set.
"""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace


# ---------------------------------------------------------------------------------------------------------- lexicon

# kind: singular, plural | German singular, gender (w: weak masculine), German plural.  "-": no plural (mass noun).
NOUN_TABLE = {
    "adult": "man men Mann m Männer, woman women Frau f Frauen, teacher teachers Lehrer m Lehrer,"
    " doctor doctors Arzt m Ärzte, neighbour neighbours Nachbar w Nachbarn",
    "youth": "child children Kind n Kinder, girl girls Mädchen n Mädchen, boy boys Junge w Jungen",
    "parent": "mother mothers Mutter f Mütter, father fathers Vater m Väter",
    "kin": "sister sisters Schwester f Schwestern, brother brothers Bruder m Brüder, friend friends Freund m Freunde,"
    " aunt aunts Tante f Tanten, daughter daughters Tochter f Töchter, son sons Sohn m Söhne",
    "animal": "dog dogs Hund m Hunde, cat cats Katze f Katzen, horse horses Pferd n Pferde, bird birds Vogel m Vögel",
    "food": "apple apples Apfel m Äpfel, egg eggs Ei n Eier, tomato tomatoes Tomate f Tomaten,"
    " cake cakes Kuchen m Kuchen",
    "dish": "soup - Suppe f -, rice - Reis m -, meat - Fleisch n -",
    "drink": "tea - Tee m -, milk - Milch f -, water - Wasser n -, coffee - Kaffee m -",
    "reading": "book books Buch n Bücher, newspaper newspapers Zeitung f Zeitungen",
    "writing": "letter letters Brief m Briefe, story stories Geschichte f Geschichten",
    "clothes": "coat coats Mantel m Mäntel, jacket jackets Jacke f Jacken, shirt shirts Hemd n Hemden,"
    " hat hats Hut m Hüte",
    "vehicle": "car cars Auto n Autos, bicycle bicycles Fahrrad n Fahrräder",
    "transport": "train trains Zug m Züge, bus buses Bus m Busse",
    "furniture": "table tables Tisch m Tische, chair chairs Stuhl m Stühle, bed beds Bett n Betten,"
    " sofa sofas Sofa n Sofas",
    "thing": "lamp lamps Lampe f Lampen, picture pictures Bild n Bilder, key keys Schlüssel m Schlüssel,"
    " bag bags Tasche f Taschen, flower flowers Blume f Blumen, ball balls Ball m Bälle",
    "opening": "door doors Tür f Türen, window windows Fenster n Fenster",
    "room": "kitchen kitchens Küche f Küchen, room rooms Zimmer n Zimmer",
    "home": "house houses Haus n Häuser, hotel hotels Hotel n Hotels",
    "building": "school schools Schule f Schulen, church churches Kirche f Kirchen, station stations Bahnhof m Bahnhöfe",
    "nature": "garden gardens Garten m Gärten, park parks Park m Parks, forest forests Wald m Wälder",
    "weather": "weather - Wetter n -",
    "town": "city cities Stadt f Städte, village villages Dorf n Dörfer",
}

# English, German, the kinds of noun that it goes with.
ADJECTIVE_TABLE = """
old alt adult,animal,reading,writing,clothes,vehicle,furniture,thing,opening,home,building,town
young jung adult,animal
small klein youth,animal,food,furniture,thing,opening,room,home,nature,town
big groß animal,food,vehicle,furniture,thing,opening,room,home,building,nature,town
friendly freundlich adult,youth,animal
clever klug adult,youth,kin,parent,animal
happy glücklich adult,youth,kin,parent
tired müde adult,youth,kin,parent
hungry hungrig adult,youth,kin,parent,animal
ill krank adult,youth,kin,parent
new neu reading,clothes,vehicle,furniture,thing,home,building
red rot clothes,vehicle,furniture,thing
blue blau clothes,vehicle,furniture,thing
black schwarz animal,clothes,vehicle
white weiß animal,clothes
expensive teuer clothes,vehicle,furniture
cheap billig food,clothes,vehicle,furniture
beautiful schön animal,clothes,thing,home,nature,town,weather
good gut food,dish,drink,reading,weather
bad schlecht writing,weather
fresh frisch food,dish
cold kalt drink,dish,weather
hot heiß drink,dish
long lang writing
interesting interessant reading,writing
"""

# English base, -s, past, -ing | German infinitive ("-" after a separable prefix), he-form, participle | haben or sein
# | kinds of object or place | uses: a animals do it, b done for somebody, c in company, h habitual, l done at a place,
# m with plural objects, n now (progressive), t transport does it, x a state (present tense only), . none of these.
VERB_TABLE = {
    "accusative": """
buy buys bought buying kaufen kauft gekauft haben reading,clothes,vehicle,furniture,thing,food,animal bmn
sell sells sold selling verkaufen verkauft verkauft haben clothes,vehicle,furniture,animal mn
read reads read reading lesen liest gelesen haben reading,writing hlmn
write writes wrote writing schreiben schreibt geschrieben haben writing bhlmn
eat eats ate eating essen isst gegessen haben food,dish chlmn
drink drinks drank drinking trinken trinkt getrunken haben drink chln
cook cooks cooked cooking kochen kocht gekocht haben dish bchn
see sees saw seeing sehen sieht gesehen haben adult,youth,kin,parent,animal,vehicle,transport,home m
look_for looks_for looked_for looking_for suchen sucht gesucht haben youth,kin,parent,animal,clothes,thing mn
find finds found finding finden findet gefunden haben animal,clothes,thing m
need needs needed needing brauchen braucht gebraucht haben clothes,vehicle,furniture,thing,drink mx
have has had having haben hat gehabt haben kin,animal,vehicle,furniture,clothes,thing mx
love loves loved loving lieben liebt geliebt haben kin,parent,animal x
know knows knew knowing kennen kennt gekannt haben adult,youth,kin,parent x
visit visits visited visiting besuchen besucht besucht haben adult,youth,kin,parent chn
ask asks asked asking fragen fragt gefragt haben adult,youth,kin,parent n
hear hears heard hearing hören hört gehört haben adult,youth,animal,transport m
wear wears wore wearing tragen trägt getragen haben clothes hn
clean cleans cleaned cleaning putzen putzt geputzt haben room,opening,vehicle chn
repair repairs repaired repairing reparieren repariert repariert haben vehicle,furniture bmn
draw draws drew drawing zeichnen zeichnet gezeichnet haben animal,home,building,thing bhlmn
open opens opened opening auf-machen macht aufgemacht haben opening n
close closes closed closing zu-machen macht zugemacht haben opening n
put_on puts_on put_on putting_on an-ziehen zieht angezogen haben clothes n
call calls called calling an-rufen ruft angerufen haben adult,kin,parent hn
pick_up picks_up picked_up picking_up ab-holen holt abgeholt haben adult,youth,kin,parent chn
invite invites invited inviting ein-laden lädt eingeladen haben adult,youth,kin,parent n
bring_along brings_along brought_along bringing_along mit-bringen bringt mitgebracht haben food,reading,thing,animal bm
tidy_up tidies_up tidied_up tidying_up auf-räumen räumt aufgeräumt haben room chn
""",
    "dative": """
help helps helped helping helfen hilft geholfen haben adult,youth,kin,parent hn
thank thanks thanked thanking danken dankt gedankt haben adult,youth,kin,parent n
""",
    "giving": """
give gives gave giving geben gibt gegeben haben reading,thing,food mn
show shows showed showing zeigen zeigt gezeigt haben writing,thing,animal mn
bring brings brought bringing bringen bringt gebracht haben drink,food,reading,thing mn
""",
    "plain": """
sleep sleeps slept sleeping schlafen schläft geschlafen haben - ahln
work works worked working arbeiten arbeitet gearbeitet haben - chln
get_up gets_up got_up getting_up auf-stehen steht aufgestanden sein - hn
arrive arrives arrived arriving an-kommen kommt angekommen sein - hnt
go_shopping goes_shopping went_shopping going_shopping ein-kaufen kauft eingekauft haben - chn
watch_television watches_television watched_television watching_television fern-sehen sieht ferngesehen haben - chn
dance dances danced dancing tanzen tanzt getanzt haben - chln
sing sings sang singing singen singt gesungen haben - chln
laugh laughs laughed laughing lachen lacht gelacht haben - n
""",
    "location": """
live lives lived living wohnen wohnt gewohnt haben home,town x
sit sits sat sitting sitzen sitzt gesessen haben room,nature,furniture achn
wait waits waited waiting warten wartet gewartet haben room,home,building,nature chn
play plays played playing spielen spielt gespielt haben room,home,nature achn
""",
    "motion": """
go goes went going gehen geht gegangen sein room,home,building,nature,town chn
run runs ran running laufen läuft gelaufen sein room,home,building,nature,town ahn
drive drives drove driving fahren fährt gefahren sein building,town chn
""",
    "placing": """
put puts put putting legen legt gelegt haben reading,clothes,thing n
""",
    "belonging": """
belong_to belongs_to belonged_to belonging_to gehören gehört gehört haben - x
""",
    "reporting": """
say says said saying sagen sagt gesagt haben - x
think thinks thought thinking denken denkt gedacht haben - x
hope hopes hoped hoping hoffen hofft gehofft haben - x
know knows knew knowing wissen weiß gewusst haben - x
""",
    "price": """
cost costs cost costing kosten kostet gekostet haben - x
""",
    "copula": """
be is was being sein ist gewesen sein - x
""",
}

# English, German, case index (1 accusative, 2 dative), kinds of noun.  Two-way prepositions occur with both cases.
LOCATION_TABLE = """
in in 2 room,home,nature,town
on auf 2 furniture
under unter 2 furniture
next_to neben 2 furniture
behind hinter 2 home,building
near bei 2 home,building
"""
MOTION_TABLE = """
into in 1 room,home,nature,town
to zu 2 building
through durch 1 nature,town
behind hinter 1 home
out_of aus 2 room,home
"""
PLACING_TABLE = """
on auf 1 furniture
under unter 1 furniture
next_to neben 1 furniture
"""
CONTRACTIONS = {"in dem": "im", "in das": "ins", "bei dem": "beim", "zu dem": "zum", "zu der": "zur"}

# Person (1s, 2s, 3s, 1p, 3p): English subject and object; German nominative, accusative, dative.
PRONOUN_TABLE = """
1s I me ich mich mir
2s you you du dich dir
3s he him er ihn ihm
3s she her sie sie ihr
1p we us wir uns uns
3p they them sie sie ihnen
"""
POSSESSIVES = {"my": "mein", "your": "dein", "his": "sein", "her": "ihr", "our": "unser"}
NAMES = ("Anna", "Paul", "Maria", "Peter")
MODALS = {"can": "können", "have to": "müssen", "want to": "wollen"}

DAYS = (
    "Monday Montag Tuesday Dienstag Wednesday Mittwoch Thursday Donnerstag Friday Freitag Saturday Samstag"
    " Sunday Sonntag"
)
MONTHS = (
    "January Januar February Februar March März April April May Mai June Juni July Juli August August"
    " September September October Oktober November November December Dezember"
)
ORDINALS = (
    "first erste second zweite third dritte fourth vierte fifth fünfte sixth sechste seventh siebte eighth achte"
    " ninth neunte tenth zehnte eleventh elfte twelfth zwölfte"
)
SMALL_NUMBERS = (
    "one eins two zwei three drei four vier five fünf six sechs seven sieben eight acht nine neun ten zehn eleven elf"
    " twelve zwölf thirteen dreizehn fourteen vierzehn fifteen fünfzehn sixteen sechzehn seventeen siebzehn"
    " eighteen achtzehn nineteen neunzehn"
)
TENS = (
    "twenty zwanzig thirty dreißig forty vierzig fifty fünfzig sixty sechzig seventy siebzig eighty achtzig"
    " ninety neunzig"
)


def pairs(table: str) -> list[tuple[str, str]]:
    """Split ``"one eins two zwei"`` into ``[("one", "eins"), ("two", "zwei")]``."""
    words = table.split()
    return list(zip(words[::2], words[1::2], strict=True))


def rows(table: str) -> list[list[str]]:
    """Split a table into rows of cells; an underscore in a cell stands for a space."""
    return [[cell.replace("_", " ") for cell in line.split()] for line in table.strip().splitlines()]


def number(value: int) -> tuple[str, str]:
    """Return a number from 1 to 100 in words; German says the unit first ("fünfundzwanzig")."""
    tens, unit = divmod(value, 10)
    if value == 100:
        return "a hundred", "hundert"
    if value < 20:
        return pairs(SMALL_NUMBERS)[value - 1]
    en, de = pairs(TENS)[tens - 2]
    if unit == 0:
        return en, de
    unit_en, unit_de = pairs(SMALL_NUMBERS)[unit - 1]
    return f"{en}-{unit_en}", f"{unit_de.replace('eins', 'ein')}und{de}"


NUMBERS = dict(number(value) for value in range(2, 101))


@dataclass(frozen=True)
class Noun:
    """One row of a noun table; ``gender`` is m, f, n or w (weak masculine: "der Junge, den Jungen")."""

    en: str
    en_plural: str
    de: str
    gender: str
    de_plural: str
    kind: str

    @property
    def is_mass(self) -> bool:
        return self.en_plural == "-"


@dataclass(frozen=True)
class Adjective:
    en: str
    de: str
    kinds: tuple[str, ...]


@dataclass(frozen=True)
class Verb:
    """One row of a verb table; ``prefix`` is the separable part ("an" in "anrufen") or empty."""

    frame: str
    base: str
    third: str
    past: str
    ing: str
    prefix: str
    stem_infinitive: str
    he_form: str
    participle: str
    auxiliary: str
    kinds: tuple[str, ...]
    uses: str

    @property
    def infinitive(self) -> str:
        return self.prefix + self.stem_infinitive


def _verb(frame: str, cells: list[str]) -> Verb:
    *english_forms, infinitive, he_form, participle, auxiliary, kinds, uses = cells
    prefix, _, stem = infinitive.rpartition("-")
    return Verb(frame, *english_forms, prefix, stem, he_form, participle, auxiliary, tuple(kinds.split(",")), uses)


NOUNS = [Noun(*entry.split(), kind) for kind, table in NOUN_TABLE.items() for entry in table.split(",")]
ADJECTIVES = [Adjective(en, de, tuple(kinds.split(","))) for en, de, kinds in rows(ADJECTIVE_TABLE)]
VERBS = [_verb(frame, cells) for frame, table in VERB_TABLE.items() for cells in rows(table)]
NOUN = {noun.en: noun for noun in NOUNS}
ADJECTIVE = {adjective.en: adjective for adjective in ADJECTIVES}
VERB = {verb.infinitive: verb for verb in VERBS}

# ---------------------------------------------------------------------------------------------------------- phrases

NOM, ACC, DAT = range(3)
PERSONS = ("1s", "2s", "3s", "1p", "3p")
Combination = tuple[str, str, str]  # what is combined ("object", "adjective", ...) and the two words

# Endings by gender (p: plural), each in the order nominative, accusative, dative; "-" is no ending.
ARTICLES = {"m": "der den dem", "f": "die die der", "n": "das das dem", "p": "die die den"}
EIN_ENDINGS = {"m": "- en em", "f": "e e er", "n": "- - em", "p": "e e en"}
WEAK = {"m": "e en en", "f": "e e en", "n": "e e en", "p": "en en en"}  # adjective after der, die, das
MIXED = {"m": "er en en", "f": "e e en", "n": "es es en", "p": "en en en"}  # after ein, kein, mein
STRONG = {"m": "er en em", "f": "e e er", "n": "es es em", "p": "e e en"}  # after a number or nothing


def ending(table: dict[str, str], gender: str, case: int) -> str:
    return table[gender].split()[case].replace("-", "")


def join(*words: str) -> str:
    return " ".join(word for word in words if word)


@dataclass(frozen=True)
class Phrase:
    """A noun phrase or pronoun with its English subject and object form and its three German cases."""

    en: tuple[str, str]
    de: tuple[str, str, str]
    person: str = "3s"
    head: str = ""  # the English noun or name; empty for pronouns
    rank: str = "definite"  # or "pronoun", "indefinite", "kein": decides the place in the German clause
    combinations: frozenset[Combination] = frozenset()


@dataclass(frozen=True)
class Adverbial:
    """A phrase with one form per language: a time, a prepositional phrase or a predicate adjective."""

    en: str
    de: str
    head: str = ""
    combinations: frozenset[Combination] = frozenset()


def inflect(adjective: Adjective, suffix: str) -> str:
    """Add an ending; adjectives in -euer lose the e ("teuer", "teure")."""
    stem = adjective.de[:-2] + "r" if adjective.de.endswith("euer") else adjective.de
    return stem + suffix


def noun_form(noun: Noun, plural: bool, case: int) -> str:
    """Dative plurals end in -n (but "Autos"); weak masculines show the plural form outside the nominative."""
    if plural:
        return noun.de_plural + ("n" if case == DAT and noun.de_plural[-1] not in "ns" else "")
    return noun.de_plural if noun.gender == "w" and case != NOM else noun.de


def noun_phrase(noun: Noun, determiner: str, adjective: Adjective | None = None, plural: bool = False) -> Phrase:
    """Build a noun phrase; ``determiner`` is "the", "a", "no" (a negated "a": kein), a possessive or a number word.

    "a" is no article at all before plurals and mass nouns, in both languages ("drinks cold tea": "kalten Tee").
    """
    gender = "p" if plural else noun.gender.replace("w", "m")
    bare = plural or noun.is_mass
    ein_word = {"a": "" if bare else "ein", "no": "kein", **POSSESSIVES}.get(determiner, "")
    german = []
    for case in (NOM, ACC, DAT):
        if determiner == "the":
            article, endings = ending(ARTICLES, gender, case), WEAK
        elif ein_word:
            article, endings = ein_word + ending(EIN_ENDINGS, gender, case), MIXED
        else:
            article, endings = NUMBERS.get(determiner, ""), STRONG
        inflected = inflect(adjective, ending(endings, gender, case)) if adjective else ""
        german.append(join(article, inflected, noun_form(noun, plural, case)))
    words = join(adjective.en if adjective else "", noun.en_plural if plural else noun.en)
    article = {"a": "a", "no": "a"}.get(determiner, determiner)
    if article == "a":
        article = "" if bare else "an" if words[0] in "aeiou" else "a"
    english = join(article, words)
    combinations = set()
    if adjective:
        combinations.add(("adjective", adjective.en, noun.en))
    if determiner in NUMBERS:
        combinations.add(("number", determiner, noun.en))
    rank = {"a": "indefinite", "no": "kein"}.get(determiner, "indefinite" if determiner in NUMBERS else "definite")
    person = "3p" if plural else "3s"
    return Phrase((english, english), tuple(german), person, noun.en, rank, frozenset(combinations))


PRONOUN = {
    cells[1]: Phrase((cells[1], cells[2]), tuple(cells[3:]), cells[0], rank="pronoun") for cells in rows(PRONOUN_TABLE)
}
WHO = Phrase(("who", "who"), ("wer", "wen", "wem"))


def name(word: str) -> Phrase:
    return Phrase((word, word), (word, word, word), head=word)


def prepositional(preposition: tuple[str, str, int], phrase: Phrase) -> Adverbial:
    """Put a phrase into the case of the preposition and contract the article ("in dem" -> "im")."""
    en, de, case = preposition
    german = join(de, phrase.de[case])
    start = " ".join(german.split()[:2])
    if start in CONTRACTIONS:
        german = CONTRACTIONS[start] + german[len(start) :]
    return Adverbial(join(en, phrase.en[1]), german, phrase.head, phrase.combinations)


def clock(hour: int, style: str) -> Adverbial:
    """Tell a time; "half past three" is halfway to the next hour in German ("halb vier")."""
    (en, de), (_, following) = number(hour), number(hour % 12 + 1)
    return {
        "full": Adverbial(f"{en} o'clock", f"{de.replace('eins', 'ein')} Uhr"),
        "half": Adverbial(f"half past {en}", f"halb {following}"),
        "past": Adverbial(f"a quarter past {en}", f"Viertel nach {de}"),
        "to": Adverbial(f"a quarter to {en}", f"Viertel vor {de}"),
    }[style]


def date(ordinal: tuple[str, str], month: tuple[str, str]) -> Adverbial:
    """ "on the third of May": the ordinal is an adjective, so the dative is "am dritten Mai"."""
    combinations = frozenset({("date", ordinal[0], month[0])})
    return Adverbial(f"on the {ordinal[0]} of {month[0]}", f"am {ordinal[1]}n {month[1]}", "", combinations)


# ---------------------------------------------------------------------------------------------------------- clauses

IRREGULAR = {
    "sein": "bin bist ist sind sind",
    "können": "kann kannst kann können können",
    "müssen": "muss musst muss müssen müssen",
    "wollen": "will willst will wollen wollen",
    "wissen": "weiß weißt weiß wissen wissen",
    "haben": "habe hast hat haben haben",
    "waren": "war warst war waren waren",
}
ENGLISH_BE = {"present": "am are is are are", "past": "was were was were were"}


@dataclass(frozen=True)
class Clause:
    """A clause in terms of its parts, ready to be put into words in either language and any word order.

    ``tense`` is present, progressive, future (all three are the German present) or past.  ``modal`` is an English
    modal or empty.  ``adjunct`` is an optional phrase; ``complement`` is one that belongs to the verb ("goes into the
    house", "is old") and stands last in the German clause.
    """

    subject: Phrase
    verb: Verb
    objects: tuple[tuple[Phrase, int], ...] = ()
    complement: Adverbial | None = None
    adjunct: Adverbial | None = None
    time: Adverbial | None = None
    tense: str = "present"
    modal: str = ""
    negated: bool = False

    @property
    def combinations(self) -> frozenset[Combination]:
        """All word combinations in this clause, the units that are kept apart between training and test."""
        verb = self.verb.infinitive
        found = {("subject", self.subject.head, verb)} if self.subject.head else set()
        found |= {("object", verb, phrase.head) for phrase, _ in self.objects if phrase.head}
        parts = [self.subject, *(phrase for phrase, _ in self.objects), self.complement, self.adjunct, self.time]
        found |= {("place", verb, part.head) for part in (self.complement, self.adjunct) if part and part.head}
        return frozenset(found.union(*(part.combinations for part in parts if part)))


def conjugate(infinitive: str, he_form: str, person: str) -> str:
    """Present tense: "ich" and plural from the infinitive, "du" and "er" share a stem ("du liest, er liest")."""
    if infinitive in IRREGULAR:
        return IRREGULAR[infinitive].split()[PERSONS.index(person)]
    stem = he_form[:-1]
    du_form = stem + ("t" if stem[-1] in "sßz" else "st")
    return {"1s": infinitive[:-1], "2s": du_form, "3s": he_form}.get(person, infinitive)


def german_verb(clause: Clause) -> tuple[str, str]:
    """Return the finite verb and what closes the verbal bracket (prefix, infinitive or participle)."""
    verb, person = clause.verb, clause.subject.person
    if clause.modal:
        return conjugate(MODALS[clause.modal], "", person), verb.infinitive
    if clause.tense == "past" and verb.frame == "copula":
        return conjugate("waren", "", person), ""
    if clause.tense == "past":
        return conjugate(verb.auxiliary, "", person), verb.participle
    return conjugate(verb.stem_infinitive, verb.he_form, person), verb.prefix


def german(clause: Clause, order: str = "v2", front: str = "") -> str:
    """Put the clause into German words.

    "v2": the verb follows the subject or, if given, ``front``; "v1": it comes first (yes/no question);
    "final": the finite verb comes last (subordinate clause), joined to a separable prefix ("anruft").
    """
    finite, bracket = german_verb(clause)
    rank: dict[str, list[str]] = {"pronoun": [], "definite": [], "indefinite": [], "kein": []}
    for phrase, case in clause.objects:
        rank[phrase.rank].append(phrase.de[case])
    has_kein = any(rank["kein"])
    time, adjunct, complement = (part.de if part else "" for part in (clause.time, clause.adjunct, clause.complement))
    middle = join(
        *rank["pronoun"],
        *rank["definite"],
        "" if front and front == time else time,
        adjunct,
        *rank["indefinite"],
        *rank["kein"],
        "nicht" if clause.negated and not has_kein else "",
        complement,
    )
    subject = clause.subject.de[NOM]
    if order == "final":
        last = clause.verb.prefix + finite if bracket == clause.verb.prefix else join(bracket, finite)
        return join(subject, middle, last)
    if front or order == "v1":
        return join(front, finite, subject, middle, bracket)
    return join(subject, finite, middle, bracket)


def english_verb(clause: Clause, with_auxiliary: bool) -> tuple[str, str]:
    """Return auxiliary and main verb; questions and negations need an auxiliary ("does ... read")."""
    verb, person = clause.verb, PERSONS.index(clause.subject.person)
    be = {tense: forms.split()[person] for tense, forms in ENGLISH_BE.items()}
    if verb.frame == "copula":
        return be[clause.tense], ""
    if clause.tense == "progressive":
        return be["present"], verb.ing
    if clause.tense == "future" or clause.modal == "can":
        return "will" if clause.tense == "future" else "can", verb.base
    does = "does" if clause.subject.person == "3s" else "do"
    base, third = verb.base, verb.third
    if clause.modal:  # "have to" and "want to" behave like main verbs
        base = join(clause.modal, verb.base)
        third = join({"have to": "has to", "want to": "wants to"}[clause.modal], verb.base)
    if with_auxiliary:
        return "did" if clause.tense == "past" else does, base
    return "", verb.past if clause.tense == "past" else third if does == "does" else base


def english(clause: Clause, question: bool = False, front: str = "") -> str:
    """Put the clause into English words: subject, verb, objects, places, time; a question starts with its auxiliary."""
    auxiliary, main = english_verb(clause, question or clause.negated)
    negation = "not" if clause.negated else ""
    objects = [phrase.en[1] for phrase, _ in clause.objects]
    complement, adjunct, time = (part.en if part else "" for part in (clause.complement, clause.adjunct, clause.time))
    rest = join(main, *objects, complement, adjunct, "" if front and front == time else time)
    subject = clause.subject.en[0]
    if question:
        return join(front, auxiliary, subject, negation, rest)
    return join(front, subject, join(auxiliary, negation).replace("can not", "cannot"), rest)


# -------------------------------------------------------------------------------------------------- random clauses

PEOPLE = ("adult", "youth", "kin", "parent")
PLACES = ("room", "home", "building", "nature", "town")
TIMES = {
    "progressive": [("now", "jetzt"), ("at the moment", "im Moment"), ("today", "heute")],
    "habit": [("every day", "jeden Tag"), ("every morning", "jeden Morgen"), ("in summer", "im Sommer")],
    "future": [("tomorrow", "morgen"), ("next week", "nächste Woche"), ("next {day}", "nächsten {day}")],
    "past": [("yesterday", "gestern"), ("last week", "letzte Woche"), ("last {day}", "letzten {day}")],
}
DATED = [("on {day}", "am {day}"), ("in {month}", "im {month}")]  # with the future and the past


def chance(rng: random.Random, probability: float) -> bool:
    return rng.random() < probability


def random_clock(rng: random.Random) -> Adverbial:
    return clock(rng.randint(1, 12), rng.choice(("full", "full", "half", "past", "to")))


def random_date(rng: random.Random) -> Adverbial:
    return date(rng.choice(pairs(ORDINALS)), rng.choice(pairs(MONTHS)))


def random_time(rng: random.Random, tense: str, with_clock: bool) -> Adverbial:
    """Choose a time that fits the tense, sometimes with the hour ("tomorrow at three o'clock")."""
    dated = tense in ("future", "past")
    if dated and chance(rng, 0.2):
        return random_date(rng)
    en, de = rng.choice(TIMES[tense] + DATED * dated)
    (day_en, day_de), (month_en, month_de) = rng.choice(pairs(DAYS)), rng.choice(pairs(MONTHS))
    en, de = en.format(day=day_en, month=month_en), de.format(day=day_de, month=month_de)
    if with_clock and tense != "progressive" and any(word in en for word in ("day", "tomorrow")) and chance(rng, 0.4):
        hour = random_clock(rng)
        en, de = f"{en} at {hour.en}", f"{de} um {hour.de}"
    return Adverbial(en, de)


def random_tense(rng: random.Random, verb: Verb, negated: bool) -> tuple[str, str, Adverbial | None]:
    """Choose tense, modal and time: states only have the plain present, habits are not negated."""
    options = ["present"]
    if "x" not in verb.uses:
        options += ["past", "past", "future", "modal", "modal"]
    if "n" in verb.uses:
        options += ["progressive"]
    if "h" in verb.uses and not negated:
        options += ["habit"]
    choice = rng.choice(options)
    modal = rng.choice(sorted(MODALS)) if choice == "modal" else ""
    timed = choice not in ("present", "past", "modal") or (choice != "present" and chance(rng, 0.5))
    time = random_time(rng, choice.replace("modal", "future"), not negated) if timed else None
    return {"habit": "present", "modal": "present"}.get(choice, choice), modal, time


def random_phrase(
    rng: random.Random,
    kinds: tuple[str, ...],
    determiners: tuple[str, ...] = ("the", "the", "a", "my"),
    plurals: float = 0.0,
) -> Phrase:
    """Choose a noun of one of the kinds, with a determiner ("my" is any possessive) and perhaps an adjective."""
    noun = rng.choice([noun for noun in NOUNS if noun.kind in kinds])
    plural = chance(rng, plurals) and not noun.is_mass and noun.kind != "parent"
    determiner = rng.choice(determiners)
    if noun.kind in ("kin", "parent") and determiner == "a" and "the" in determiners:
        determiner = "my"  # "a sister" only makes sense after "have"
    if determiner == "my":
        personal = noun.kind not in ("adult", "youth", "transport", *PLACES) and not noun.is_mass
        determiner = rng.choice(list(POSSESSIVES)) if personal else "the"
    if plural and determiner == "a" and chance(rng, 0.6):
        determiner = number(rng.randint(2, 12))[0]
    fitting = [adjective for adjective in ADJECTIVES if noun.kind in adjective.kinds]
    adjective = rng.choice(fitting) if fitting and chance(rng, 0.35) else None
    return noun_phrase(noun, determiner, adjective, plural)


def random_person(rng: random.Random, pronouns: float = 0.3, plurals: float = 0.25) -> Phrase:
    """Choose a pronoun, a name or a phrase for one or more people."""
    if chance(rng, pronouns):
        return rng.choice(list(PRONOUN.values()))
    if chance(rng, 0.2):
        return name(rng.choice(NAMES))
    return random_phrase(rng, PEOPLE, plurals=plurals)


def random_subject(rng: random.Random, verb: Verb) -> Phrase:
    if "t" in verb.uses and chance(rng, 0.6):
        return random_phrase(rng, ("transport",), ("the",))
    if "a" in verb.uses and chance(rng, 0.3):
        return random_phrase(rng, ("animal",), plurals=0.3)
    return random_person(rng)


def random_companion(rng: random.Random, subject: Phrase) -> Phrase:
    """Choose another definite person; never the subject again, nor "them", in the accusative the same as "her"."""
    while True:
        person = random_person(rng, pronouns=0.3, plurals=0.1)
        ambiguous = person.en[1] == "them" or {person.person[0], subject.person[0]} in ({"1"}, {"2"})
        if person.rank != "indefinite" and not ambiguous and person.head != (subject.head or None):
            return person


def random_place(rng: random.Random, table: str, kinds: tuple[str, ...], definite: bool = False) -> Adverbial:
    """Choose a preposition from a table and a noun that both it and the verb allow."""
    fitting = [(row, tuple(kind for kind in kinds if kind in row[3].split(","))) for row in rows(table)]
    (en, de, case, _), allowed = rng.choice([(row, allowed) for row, allowed in fitting if allowed])
    determiners = ("the",) if definite else ("the", "the", "the", "a")
    return prepositional((en, de, int(case)), random_phrase(rng, allowed, determiners))


def random_adjunct(rng: random.Random, verb: Verb, subject: Phrase) -> Adverbial | None:
    """Choose a phrase that is not required by the verb: for whom, with whom, without whom or where."""
    options: list[Callable[[], Adverbial]] = []
    if "b" in verb.uses:
        options.append(lambda: prepositional(("for", "für", ACC), random_companion(rng, subject)))
    if "c" in verb.uses:
        options.append(lambda: prepositional(("with", "mit", DAT), random_companion(rng, subject)))
        options.append(lambda: prepositional(("without", "ohne", ACC), random_companion(rng, subject)))
    if "l" in verb.uses:
        options.append(lambda: random_place(rng, LOCATION_TABLE, ("room", "nature")))
    return rng.choice(options)() if options and chance(rng, 0.4) else None


def random_objects(rng: random.Random, verb: Verb, subject: Phrase, negated: bool) -> tuple[tuple[Phrase, int], ...]:
    """Choose the objects that the frame of the verb asks for; a negated clause has "kein" instead of "ein"."""
    indefinite = "no" if negated else "a"
    determiners = ("the", "the", "my", indefinite, indefinite)
    if verb.base == "have":
        determiners = (indefinite,)
    plurals = 0.3 if "m" in verb.uses else 0.0
    person = random_companion(rng, subject) if "kin" in verb.kinds and verb.base != "have" else None
    if verb.frame == "dative":
        return ((person, DAT),)
    if verb.frame == "giving":
        return (random_companion(rng, subject), DAT), (random_phrase(rng, verb.kinds, (indefinite, "the"), plurals), ACC)
    if verb.frame in ("accusative", "placing"):
        things = tuple(kind for kind in verb.kinds if kind not in PEOPLE or verb.base == "have")
        use_person = person and (not things or chance(rng, 0.5))
        return ((person if use_person else random_phrase(rng, things, determiners, plurals), ACC),)
    return ()


EVENT_FRAMES = ("accusative", "accusative", "accusative", "dative", "giving", "plain", "location", "motion", "placing")
PLACE_TABLES = {"location": LOCATION_TABLE, "motion": MOTION_TABLE, "placing": PLACING_TABLE}


def random_clause(rng: random.Random, timed: bool = True, negations: float = 0.15) -> Clause:
    """Choose an event: who does what, to whom, where and when."""
    frame = rng.choice(EVENT_FRAMES)
    verb = rng.choice([verb for verb in VERBS if verb.frame == frame])
    subject = random_subject(rng, verb)
    negated = chance(rng, negations)
    tense, modal, time = random_tense(rng, verb, negated)
    if not timed:
        tense, modal, time = "present", rng.choice(("", "", *sorted(MODALS))) if "x" not in verb.uses else "", None
    complement = None
    if frame in PLACE_TABLES:
        kinds = verb.kinds if frame != "placing" else ("furniture",)
        complement = random_place(rng, PLACE_TABLES[frame], kinds, definite=negated)
    objects = random_objects(rng, verb, subject, negated)
    adjunct = None if negated else random_adjunct(rng, verb, subject)
    return Clause(subject, verb, objects, complement, adjunct, time, tense, modal, negated)


def state(subject: Phrase, adjective: Adjective, tense: str = "present", negated: bool = False) -> Clause:
    """ "The house is old": a predicate adjective has no ending."""
    combinations = frozenset({("adjective", adjective.en, subject.head)} if subject.head else ())
    complement = Adverbial(adjective.en, adjective.de, "", combinations)
    return Clause(subject, VERB["sein"], complement=complement, tense=tense, negated=negated)


# ------------------------------------------------------------------------------------------------------- sentences


@dataclass(frozen=True)
class Sentence:
    """A sentence pair with its construction and the word combinations in it."""

    en: str
    de: str
    construction: str
    combinations: frozenset[Combination]

    @property
    def is_held_out(self) -> bool:
        return any(is_reserved(combination) for combination in self.combinations)


Wording = tuple[str, str, frozenset[Combination]]  # English and German without capital and final mark


def statement(rng: random.Random) -> Wording:
    """A main clause; the German verb stays second when the time comes first."""
    return main_clause(random_clause(rng), chance(rng, 0.45))


def main_clause(clause: Clause, time_first: bool = False) -> Wording:
    front = clause.time if time_first and clause.time else Adverbial("", "")
    return english(clause, front=front.en), german(clause, front=front.de), clause.combinations


def yes_no_question(rng: random.Random) -> Wording:
    clause = random_clause(rng, negations=0)
    return english(clause, question=True), german(clause, "v1"), clause.combinations


def who_question(rng: random.Random) -> Wording:
    return main_clause(replace(random_clause(rng, negations=0), subject=WHO))


def object_question(rng: random.Random) -> Wording:
    """Ask for the object: "what", or "who" in the case that the verb wants ("wen", "wem")."""
    while True:
        clause = random_clause(rng, negations=0)
        if clause.verb.frame in ("accusative", "dative") and clause.objects[0][0].rank != "pronoun":
            break
    phrase, case = clause.objects[0]
    is_person = phrase.head in NAMES or NOUN[phrase.head].kind in PEOPLE
    en, de = ("who", WHO.de[case]) if is_person else ("what", "was")
    return ask(replace(clause, objects=()), en, de)


def ask(clause: Clause, en: str, de: str) -> Wording:
    return english(clause, question=True, front=en), german(clause, front=de), clause.combinations


def place_question(rng: random.Random) -> Wording:
    """German asks "wo" for a place and "wohin" for a direction."""
    while True:
        clause = random_clause(rng, negations=0)
        if clause.verb.frame in ("location", "motion"):
            return ask(replace(clause, complement=None), "where", "wo" if clause.verb.frame == "location" else "wohin")


def time_question(rng: random.Random) -> Wording:
    while True:
        clause = random_clause(rng, negations=0)
        if clause.tense in ("future", "past"):
            return ask(replace(clause, time=None), "when", "wann")


def reason_question(rng: random.Random) -> Wording:
    return ask(random_clause(rng), "why", "warum")


def reported(rng: random.Random) -> Wording:
    """ "She says that ..." or "He does not know whether ...": the German verb comes last."""
    inner = random_clause(rng)
    subject = random_person(rng, pronouns=0.6, plurals=0.1)
    style = rng.choice(("that", "that", "asks", "does not know", "do you know"))
    if style == "do you know":
        outer, conjunction = Clause(PRONOUN["you"], VERB["wissen"]), ("whether", "ob")
        wording = english(outer, question=True), german(outer, "v1")
    elif style == "that":
        outer = Clause(subject, rng.choice([verb for verb in VERBS if verb.frame == "reporting"]))
        conjunction, wording = ("that", "dass"), main_clause(outer)[:2]
    else:
        know = style == "does not know"
        outer, conjunction = Clause(subject, VERB["wissen" if know else "fragen"], negated=know), ("whether", "ob")
        wording = main_clause(outer)[:2]
    return (
        f"{wording[0]} {conjunction[0]} {english(inner)}",
        f"{wording[1]}, {conjunction[1]} {german(inner, 'final')}",
        inner.combinations | outer.combinations,
    )


def random_state(rng: random.Random, subject: Phrase | None = None) -> Clause:
    """Choose how something or someone is or was; negated now and then."""
    adjective = None
    while adjective is None:
        phrase = subject or random_phrase(rng, tuple(NOUN_TABLE), ("the", "the", "my"), plurals=0.25)
        kind = NOUN[phrase.head].kind if phrase.head in NOUN else "adult"
        fitting = [adjective for adjective in ADJECTIVES if kind in adjective.kinds]
        if fitting and not any(kind == "adjective" for kind, _, _ in phrase.combinations):
            adjective = rng.choice(fitting)
    return state(phrase, adjective, rng.choice(("present", "present", "past")), chance(rng, 0.2))


def because(rng: random.Random) -> Wording:
    """ "She is happy because ...": the German verb comes last after "weil"."""
    adjective = ADJECTIVE[rng.choice(("happy", "tired"))]
    outer = state(random_person(rng, pronouns=0.6), adjective)
    inner = random_clause(rng)
    return (
        f"{english(outer)} because {english(inner)}",
        f"{german(outer)}, weil {german(inner, 'final')}",
        inner.combinations | outer.combinations,
    )


def conditional(rng: random.Random) -> Wording:
    """ "If ..., ...": the clause with "wenn" takes the first place, so the main verb follows at once."""
    main = random_clause(rng, timed=False, negations=0.1)
    weather = noun_phrase(NOUN["weather"], "the")
    condition = random_state(rng, main.subject if main.subject.rank == "pronoun" else weather)
    condition = replace(condition, tense="present")
    combinations = main.combinations | condition.combinations
    if chance(rng, 0.6):
        front_en, front_de = f"if {english(condition)},", f"wenn {german(condition, 'final')},"
        return english(main, front=front_en), german(main, front=front_de), combinations
    return f"{english(main)} if {english(condition)}", f"{german(main)}, wenn {german(condition, 'final')}", combinations


def description(rng: random.Random) -> Wording:
    """How people and things are, also as a question."""
    subject = random_person(rng) if chance(rng, 0.4) else None
    clause = random_state(rng, subject if subject and not subject.combinations else None)
    if not clause.negated and chance(rng, 0.3):
        return english(clause, question=True), german(clause, "v1"), clause.combinations
    return main_clause(clause)


def whereabouts(rng: random.Random) -> Wording:
    """ "The key is under the table", or the question where it is."""
    on_furniture = chance(rng, 0.6)
    kinds = ("reading", "clothes", "thing") if on_furniture else (*PEOPLE, "animal")
    subject = random_phrase(rng, kinds, ("the", "my"), plurals=0.2)
    place = random_place(rng, LOCATION_TABLE, ("furniture",) if on_furniture else ("room", "nature", "home"))
    clause = Clause(subject, VERB["sein"], complement=place, negated=chance(rng, 0.15))
    if chance(rng, 0.2):
        return ask(replace(clause, complement=None, negated=False), "where", "wo")
    return main_clause(clause)


def age(rng: random.Random) -> Wording:
    """ "My brother is twenty years old", or the question how old he is."""
    subject = random_phrase(rng, ("youth",), ("the",)) if chance(rng, 0.4) else random_person(rng, 0.4, plurals=0)
    child = subject.head in NOUN and NOUN[subject.head].kind == "youth"
    years = number(rng.randint(2, 16) if child else rng.choice([*range(17, 21), *range(25, 101, 5)]))
    combinations = frozenset({("number", years[0], subject.head)} if subject.head else ())
    complement = Adverbial(f"{years[0]} years old", f"{years[1]} Jahre alt", "", combinations)
    clause = Clause(subject, VERB["sein"], complement=complement)
    if chance(rng, 0.25):
        return ask(replace(clause, complement=None), "how old", "wie alt")
    return main_clause(clause)


def price(rng: random.Random) -> Wording:
    """ "The hat costs thirty euros", or the question how much it costs."""
    cheap = chance(rng, 0.4)
    kinds = ("food", "drink", "reading") if cheap else ("clothes", "furniture", "thing")
    subject = random_phrase(rng, kinds, ("the",), plurals=0.3)
    amount = number(rng.randint(2, 20) if cheap else rng.randrange(10, 101, 5))
    combinations = frozenset({("number", amount[0], subject.head)})
    complement = Adverbial(f"{amount[0]} euros", f"{amount[1]} Euro", "", combinations)
    clause = Clause(subject, VERB["kosten"], complement=complement)
    if chance(rng, 0.25):
        return ask(replace(clause, complement=None), "how much", "wie viel")
    return main_clause(clause)


def quantity(rng: random.Random) -> Wording:
    """ "How many brothers does she have?" """
    noun = rng.choice([noun for noun in NOUNS if noun.kind in VERB["haben"].kinds])
    clause = Clause(random_person(rng), VERB["haben"], ((noun_phrase(noun, "a", plural=True), ACC),))
    return ask(replace(clause, objects=()), f"how many {noun.en_plural}", f"wie viele {noun.de_plural}")[:2] + (
        clause.combinations,
    )


def belonging(rng: random.Random) -> Wording:
    """ "gehören" has its owner in the dative."""
    subject = random_phrase(rng, ("animal", "vehicle", "clothes", "thing", "home"), ("the",), plurals=0.3)
    owner = random_companion(rng, subject)
    return main_clause(Clause(subject, VERB["gehören"], ((owner, DAT),), negated=chance(rng, 0.2)))


def calendar(rng: random.Random) -> Wording:
    """The hour, the day and the date; as a subject, the date is in the nominative ("der dritte Mai")."""
    style = rng.choice(("clock", "clock", "day", "date", "date"))
    if style == "clock":
        hour = random_clock(rng)
        return f"it is {hour.en}", f"es ist {hour.de}", frozenset()
    en, de = rng.choice((("today is", "heute ist"), ("tomorrow is", "morgen ist"), ("yesterday was", "gestern war")))
    if style == "day":
        day_en, day_de = rng.choice(pairs(DAYS))
        return f"{en} {day_en}", f"{de} {day_de}", frozenset()
    when = random_date(rng)
    return f"{en} {when.en[3:]}", f"{de} der {when.de[3:].replace('n ', ' ', 1)}", when.combinations


# construction: how often, final mark
CONSTRUCTIONS: dict[Callable[[random.Random], Wording], tuple[int, str]] = {
    statement: (34, "."),
    yes_no_question: (9, "?"),
    who_question: (4, "?"),
    object_question: (4, "?"),
    place_question: (3, "?"),
    time_question: (3, "?"),
    reason_question: (3, "?"),
    reported: (9, "."),
    because: (6, "."),
    conditional: (6, "."),
    description: (6, "."),
    whereabouts: (4, "."),
    age: (3, "."),
    price: (3, "."),
    quantity: (1, "?"),
    belonging: (2, "."),
    calendar: (2, "."),
}
QUESTION_STARTS = frozenset("who what where when why how do does did is are am was were will can".split())
RESERVED_PERCENT = 5
MAX_WORDS = 14
MIN_TRAINING_COUNT = 8
SIZES = {"train": 12_000, "validation": 600, "test": 600}


def is_reserved(combination: Combination) -> bool:
    """Tell by a fixed digest whether a combination is kept out of the training sentences."""
    return int.from_bytes(hashlib.sha256("|".join(combination).encode()).digest()[:4]) % 100 < RESERVED_PERCENT


def words(text: str) -> list[str]:
    """Split a sentence into its words, without punctuation."""
    return text.rstrip(".?").replace(",", "").split()


def random_sentence(rng: random.Random) -> Sentence:
    construction = rng.choices(list(CONSTRUCTIONS), [weight for weight, _ in CONSTRUCTIONS.values()])[0]
    en, de, combinations = construction(rng)
    mark = "?" if en.split()[0] in QUESTION_STARTS else "."
    return Sentence(
        en[0].upper() + en[1:] + mark, de[0].upper() + de[1:] + mark, construction.__name__, combinations
    )


def distinct_sentences(rng: random.Random) -> Iterator[Sentence]:
    """Generate short sentences without end, each English and each German sentence once."""
    seen: set[str] = set()
    while True:
        sentence = random_sentence(rng)
        if max(len(words(sentence.en)), len(words(sentence.de))) <= MAX_WORDS and not seen & {sentence.en, sentence.de}:
            seen |= {sentence.en, sentence.de}
            yield sentence


def corpus(seed: int = 0) -> dict[str, list[Sentence]]:
    """Generate the corpus as :class:`Sentence` objects, split into "train", "validation" and "test"."""
    sentences = distinct_sentences(random.Random(seed))
    train: list[Sentence] = []
    held_out: list[Sentence] = []
    for sentence in sentences:
        (held_out if sentence.is_held_out else train).append(sentence)
        if len(train) == SIZES["train"]:
            break
    counts = [Counter(word for s in train for word in words(getattr(s, side))) for side in ("en", "de")]

    def is_covered(s: Sentence) -> bool:
        return all(count[w] >= MIN_TRAINING_COUNT for count, text in zip(counts, (s.en, s.de), strict=True) for w in words(text))

    known = [sentence for sentence in held_out if is_covered(sentence)]
    middle = SIZES["validation"]
    return {"train": train, "validation": known[:middle], "test": known[middle : middle + SIZES["test"]]}


def phrasebook(seed: int = 0) -> dict[str, list[tuple[str, str]]]:
    """Return English-German sentence pairs as {"train": [...], "validation": [...], "test": [...]}."""
    return {split: [(s.en, s.de) for s in sentences] for split, sentences in corpus(seed).items()}
