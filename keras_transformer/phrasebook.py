"""The embedded corpus ``phrasebook``: English-German sentence pairs from a small bilingual grammar.

:func:`phrasebook` returns the corpus, :func:`corpus` the same with the grammatical background of each sentence.  The
module reads from top to bottom: lexicon, phrases, clauses, random clauses, constructions, corpus.

Three decisions make English -> German a function that a small model can learn and generalise:

* An English word or construction has one German rendering: "you" is always "du", the simple past is always the Perfekt
  (only "was" is "war"), "will" with a time is the present tense, "if" is "wenn" and "whether" is "ob".
* German word order is fixed: pronouns, definite objects, time, free phrases, indefinite objects, "nicht", complement.
* A small share of word combinations (say, a verb with an object) is reserved for the held-out sentences: each of those
  has at least one, no training sentence has any.  Remembering the training sentences does not translate the others.
"""

from __future__ import annotations

import hashlib
import random
from collections import Counter, namedtuple
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain, islice

# ------------------------------------------------------------------------------------------------------------ lexicon

# By kind: singular, plural | German singular, gender (w: weak masculine), German plural; "-": a mass noun, no plural.
NOUN_TABLE = {
    "adult": "man men Mann m Männer, woman women Frau f Frauen, teacher teachers Lehrer m Lehrer,"
    " doctor doctors Arzt m Ärzte",
    "youth": "child children Kind n Kinder, boy boys Junge w Jungen",
    "parent": "mother mothers Mutter f Mütter, father fathers Vater m Väter",
    "kin": "sister sisters Schwester f Schwestern, brother brothers Bruder m Brüder, friend friends Freund m Freunde,"
    " aunt aunts Tante f Tanten, daughter daughters Tochter f Töchter, son sons Sohn m Söhne",
    "animal": "dog dogs Hund m Hunde, cat cats Katze f Katzen, mouse mice Maus f Mäuse, bird birds Vogel m Vögel",
    "food": "apple apples Apfel m Äpfel, egg eggs Ei n Eier, cake cakes Kuchen m Kuchen",
    "dish": "soup - Suppe f -, rice - Reis m -, meat - Fleisch n -",
    "drink": "tea - Tee m -, milk - Milch f -, water - Wasser n -",
    "reading": "book books Buch n Bücher, newspaper newspapers Zeitung f Zeitungen",
    "writing": "letter letters Brief m Briefe, story stories Geschichte f Geschichten",
    "clothes": "coat coats Mantel m Mäntel, jacket jackets Jacke f Jacken, shirt shirts Hemd n Hemden",
    "vehicle": "car cars Auto n Autos, bicycle bicycles Fahrrad n Fahrräder",
    "transport": "train trains Zug m Züge",
    "furniture": "table tables Tisch m Tische, bed beds Bett n Betten",
    "seat": "chair chairs Stuhl m Stühle, sofa sofas Sofa n Sofas",
    "thing": "bag bags Tasche f Taschen, picture pictures Bild n Bilder, key keys Schlüssel m Schlüssel,"
    " flower flowers Blume f Blumen",
    "opening": "door doors Tür f Türen, window windows Fenster n Fenster",
    "room": "kitchen kitchens Küche f Küchen, room rooms Zimmer n Zimmer",
    "home": "house houses Haus n Häuser, hotel hotels Hotel n Hotels",
    "building": "school schools Schule f Schulen, station stations Bahnhof m Bahnhöfe",
    "nature": "garden gardens Garten m Gärten, park parks Park m Parks",
    "town": "city cities Stadt f Städte, village villages Dorf n Dörfer",
    "weather": "weather - Wetter n -",
}

# English, German, the kinds of noun that it goes with.
ADJECTIVE_TABLE = """
old alt adult,animal,reading,clothes,vehicle,furniture,seat,thing,opening,home,building,town
young jung adult,animal
small klein youth,animal,food,furniture,thing,opening,room,home,nature,town
big groß animal,food,vehicle,furniture,seat,thing,opening,room,home,building,nature,town
friendly freundlich adult,youth
clever klug adult,youth,kin,parent,animal
happy glücklich adult,youth,kin,parent
sad traurig adult,youth,kin,parent
tired müde adult,youth,kin,parent
hungry hungrig adult,youth,kin,parent,animal
sick krank adult,youth,kin,parent,animal
new neu reading,clothes,vehicle,furniture,seat,thing,home,building
red rot clothes,vehicle,seat,thing
blue blau clothes,vehicle,seat,thing
black schwarz animal,clothes,vehicle
expensive teuer clothes,vehicle,furniture,seat
cheap billig food,clothes,vehicle,furniture,seat
beautiful schön animal,clothes,thing,home,nature,town
good gut dish,drink,reading,writing,weather
bad schlecht writing,weather
cold kalt drink,dish,weather
hot heiß drink,dish
long lang writing
"""

# English base, -s, past, -ing | German infinitive ("-" after a separable prefix), he-form, participle | haben or sein
# | kinds of object or place | uses: a animals do it, b for somebody's benefit, c in company, h habitual, l done at a
# place, m with plural objects, n now (progressive), t trains do it, x a state (plain present only).
VERB_TABLE = {
    "accusative": """
buy buys bought buying kaufen kauft gekauft haben reading,clothes,vehicle,furniture,seat,thing,food,animal bmn
sell sells sold selling verkaufen verkauft verkauft haben clothes,vehicle,furniture,seat,animal mn
read reads read reading lesen liest gelesen haben reading,writing hlmn
write writes wrote writing schreiben schreibt geschrieben haben writing bhlmn
eat eats ate eating essen isst gegessen haben food,dish chlmn
drink drinks drank drinking trinken trinkt getrunken haben drink chln
cook cooks cooked cooking kochen kocht gekocht haben dish bchn
see sees saw seeing sehen sieht gesehen haben adult,youth,kin,parent,animal,vehicle,transport,home m
look_for looks_for looked_for looking_for suchen sucht gesucht haben youth,kin,parent,animal,clothes,thing mn
need needs needed needing brauchen braucht gebraucht haben clothes,vehicle,furniture,seat,thing,drink mx
have has had having haben hat gehabt haben kin,animal,vehicle,furniture,seat,clothes,thing mx
love loves loved loving lieben liebt geliebt haben kin,parent,animal x
know knows knew knowing kennen kennt gekannt haben adult,youth,kin,parent x
visit visits visited visiting besuchen besucht besucht haben adult,youth,kin,parent chn
ask asks asked asking fragen fragt gefragt haben adult,youth,kin,parent n
wear wears wore wearing tragen trägt getragen haben clothes hn
clean cleans cleaned cleaning putzen putzt geputzt haben room,opening,vehicle chn
repair repairs repaired repairing reparieren repariert repariert haben vehicle,furniture,seat bmn
open opens opened opening auf-machen macht aufgemacht haben opening n
close closes closed closing zu-machen macht zugemacht haben opening n
put_on puts_on put_on putting_on an-ziehen zieht angezogen haben clothes n
call calls called calling an-rufen ruft angerufen haben adult,kin,parent hn
collect collects collected collecting ab-holen holt abgeholt haben adult,youth,kin,parent hn
invite invites invited inviting ein-laden lädt eingeladen haben adult,youth,kin,parent n
bring_along brings_along brought_along bringing_along mit-bringen bringt mitgebracht haben food,reading,thing bm
""",
    "dative": """
help helps helped helping helfen hilft geholfen haben adult,youth,kin,parent hn
thank thanks thanked thanking danken dankt gedankt haben adult,youth,kin,parent n
""",
    "giving": """
give gives gave giving geben gibt gegeben haben reading,thing,food mn
show shows showed showing zeigen zeigt gezeigt haben reading,writing,thing,animal mn
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
""",
    "location": """
live lives lived living wohnen wohnt gewohnt haben home,town x
sit sits sat sitting sitzen sitzt gesessen haben room,nature,furniture,seat achn
wait waits waited waiting warten wartet gewartet haben room,home,building,nature chn
play plays played playing spielen spielt gespielt haben room,home,nature achn
""",
    "motion": """
go goes went going gehen geht gegangen sein room,home,building,nature,town chn
drive drives drove driving fahren fährt gefahren sein building,town chn
""",
    "placing": "put puts put putting legen legt gelegt haben reading,clothes,thing n",
    "belonging": "belong_to belongs_to belonged_to belonging_to gehören gehört gehört haben - x",
    "reporting": """
say says said saying sagen sagt gesagt haben - x
think thinks thought thinking denken denkt gedacht haben - x
hope hopes hoped hoping hoffen hofft gehofft haben - x
know knows knew knowing wissen weiß gewusst haben - x
""",
    "rain": """
rain rains rained raining regnen regnet geregnet haben - x
snow snows snowed snowing schneien schneit geschneit haben - x
""",
    "price": "cost costs cost costing kosten kostet gekostet haben - x",
    "copula": "be is was being sein ist gewesen sein - x",
}

# English, German, case (1 accusative, 2 dative), kinds of noun.  Two-way prepositions take the dative for a place and
# the accusative for a direction.
LOCATIONS = """
in in 2 room,home,nature,town
on auf 2 furniture,seat
under unter 2 furniture
next_to neben 2 furniture,seat
behind hinter 2 home,building
near bei 2 home,building
"""
DIRECTIONS = """
into in 1 room,home,nature,town
to zu 2 building
through durch 1 nature,town
behind hinter 1 home
out_of aus 2 room,home
"""
DESTINATIONS = """
on auf 1 furniture,seat
under unter 1 furniture
next_to neben 1 furniture,seat
"""
CONTRACTIONS = {"in dem": "im", "in das": "ins", "bei dem": "beim", "zu dem": "zum", "zu der": "zur"}

# Person: English subject and object form; German nominative, accusative and dative.
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
IRREGULAR = {
    "sein": "bin bist ist sind sind",
    "waren": "war warst war waren waren",
    "haben": "habe hast hat haben haben",
    "wissen": "weiß weißt weiß wissen wissen",
    "können": "kann kannst kann können können",
    "müssen": "muss musst muss müssen müssen",
    "wollen": "will willst will wollen wollen",
}
ENGLISH_BE = {"present": "am are is are are", "past": "was were was were were"}

DAYS = """Monday Montag Tuesday Dienstag Wednesday Mittwoch Thursday Donnerstag Friday Freitag Saturday Samstag
Sunday Sonntag"""
MONTHS = """January Januar February Februar March März April April May Mai June Juni July Juli August August
September September October Oktober November November December Dezember"""
ORDINALS = """first erste second zweite third dritte fourth vierte fifth fünfte sixth sechste seventh siebte
eighth achte ninth neunte tenth zehnte eleventh elfte twelfth zwölfte"""
SMALL_NUMBERS = """one eins two zwei three drei four vier five fünf six sechs seven sieben eight acht nine neun ten zehn
eleven elf twelve zwölf thirteen dreizehn fourteen vierzehn fifteen fünfzehn sixteen sechzehn seventeen siebzehn
eighteen achtzehn nineteen neunzehn"""
TENS = """twenty zwanzig thirty dreißig forty vierzig fifty fünfzig sixty sechzig seventy siebzig eighty achtzig
ninety neunzig"""
TIMES = {
    "progressive": [("now", "jetzt"), ("at the moment", "im Moment"), ("today", "heute")],
    "habit": [("every day", "jeden Tag"), ("every morning", "jeden Morgen"), ("in summer", "im Sommer")],
    "future": [("tomorrow", "morgen"), ("next week", "nächste Woche"), ("next {day}", "nächsten {day}")],
    "past": [("yesterday", "gestern"), ("last week", "letzte Woche"), ("last {day}", "letzten {day}")],
}
DATED_TIMES = [("on {day}", "am {day}"), ("in {month}", "im {month}")]  # with the future and the past

# Endings by gender (p: plural), each in the order nominative, accusative, dative; "-" is no ending.
ARTICLES = {"m": "der den dem", "f": "die die der", "n": "das das dem", "p": "die die den"}
EIN_ENDINGS = {"m": "- en em", "f": "e e er", "n": "- - em", "p": "e e en"}
WEAK = {"m": "e en en", "f": "e e en", "n": "e e en", "p": "en en en"}  # adjective after der, die, das
MIXED = {"m": "er en en", "f": "e e en", "n": "es es en", "p": "en en en"}  # after ein, kein, mein
STRONG = {"m": "er en em", "f": "e e er", "n": "es es em", "p": "e e en"}  # after a number or nothing
NOM, ACC, DAT = range(3)
PERSONS = ("1s", "2s", "3s", "1p", "3p")
PEOPLE = ("adult", "youth", "kin", "parent")
PLACES = ("room", "home", "building", "nature", "town")


# The rows of the tables above; ``stem`` is the infinitive without the separable ``prefix``.
Noun = namedtuple("Noun", "en en_plural de gender de_plural kind")
Adjective = namedtuple("Adjective", "en de kinds")
Verb = namedtuple("Verb", "frame base third past ing prefix stem he_form participle auxiliary kinds uses")


@cache
def pairs(table: str) -> tuple[tuple[str, str], ...]:
    """Split "one eins two zwei" into (("one", "eins"), ("two", "zwei"))."""
    cells = table.split()
    return tuple(zip(cells[::2], cells[1::2], strict=True))


@cache
def rows(table: str) -> tuple[tuple[str, ...], ...]:
    """Split a table into rows of cells; an underscore stands for a space."""
    return tuple(tuple(cell.replace("_", " ") for cell in line.split()) for line in table.strip().splitlines())


def _verb(frame: str, cells: tuple[str, ...]) -> Verb:
    *english_forms, infinitive, he_form, participle, auxiliary, kinds, uses = cells
    prefix, _, stem = infinitive.rpartition("-")
    return Verb(frame, *english_forms, prefix, stem, he_form, participle, auxiliary, tuple(kinds.split(",")), uses)


def number(value: int) -> tuple[str, str]:
    """Return a number from 1 to 100 in words; German says the unit first ("fünfundzwanzig")."""
    if value == 100:
        return "a hundred", "hundert"
    if value < 20:
        return pairs(SMALL_NUMBERS)[value - 1]
    en, de = pairs(TENS)[value // 10 - 2]
    if value % 10 == 0:
        return en, de
    unit_en, unit_de = number(value % 10)
    return f"{en}-{unit_en}", f"{'ein' if unit_de == 'eins' else unit_de}und{de}"


NOUN = {cells[0]: Noun(*cells, kind) for kind, t in NOUN_TABLE.items() for cells in map(str.split, t.split(","))}
ADJECTIVE = {en: Adjective(en, de, tuple(kinds.split(","))) for en, de, kinds in rows(ADJECTIVE_TABLE)}
VERBS = [_verb(frame, cells) for frame, table in VERB_TABLE.items() for cells in rows(table)]
VERB = {verb.prefix + verb.stem: verb for verb in VERBS}
NUMBERS = dict(number(value) for value in range(2, 101))

# ------------------------------------------------------------------------------------------------------------ phrases

Combination = tuple[str, str, str]  # what is combined ("object", "adjective", ...) and the two words


@dataclass(frozen=True)
class Text:
    """A piece of text in both languages, with the combinations in it and the noun that it is about, if any."""

    en: str
    de: str
    combinations: frozenset[Combination] = frozenset()
    head: str = ""


@dataclass(frozen=True)
class Phrase:
    """A noun phrase or pronoun: its English subject and object form and its three German cases."""

    en: tuple[str, str]
    de: tuple[str, str, str]
    person: str = "3s"
    head: str = ""  # the English noun or name; empty for pronouns
    rank: str = "definite"  # or "pronoun", "indefinite", "kein": decides the place in the German clause
    combinations: frozenset[Combination] = frozenset()


NOTHING = Text("", "")
WHO = Phrase(("who", "who"), ("wer", "wen", "wem"))
IT = Phrase(("it", "it"), ("es", "es", "ihm"), rank="pronoun")
PRONOUN = {cells[1]: Phrase((cells[1], cells[2]), cells[3:], cells[0], rank="pronoun") for cells in rows(PRONOUN_TABLE)}


def join(*words: str) -> str:
    """Join the words that are not empty."""
    return " ".join(word for word in words if word)


def ending(table: dict[str, str], gender: str, case: int) -> str:
    """Look up an ending (or an article) by gender and case."""
    return table[gender].split()[case].replace("-", "")


def inflect(adjective: Adjective, suffix: str) -> str:
    """Add an ending to an adjective: "rot" + "es", but "müde" + "er" is "müder" and "teuer" + "e" is "teure"."""
    stem = adjective.de.removesuffix("e")
    return (stem[:-2] + "r" if stem.endswith("euer") else stem) + suffix


def noun_form(noun: Noun, plural: bool, case: int) -> str:
    """Dative plurals end in -n (but "Autos"); weak masculines show the plural form outside the nominative."""
    if plural:
        return noun.de_plural + ("n" if case == DAT and noun.de_plural[-1] not in "ns" else "")
    return noun.de_plural if noun.gender == "w" and case != NOM else noun.de


def noun_phrase(noun: Noun, determiner: str, adjective: Adjective | None = None, plural: bool = False) -> Phrase:
    """Build a noun phrase; ``determiner`` is "the", "a", "no" (a negated "a": kein), a possessive or a number word.

    Before plurals and mass nouns "a" is no article at all, in both languages ("cold tea": "kalter Tee").
    """
    gender = "p" if plural else noun.gender.replace("w", "m")
    bare = plural or noun.en_plural == "-"
    ein_word = {"a": "" if bare else "ein", "no": "kein", **POSSESSIVES}.get(determiner, "")
    german_cases = []
    for case in (NOM, ACC, DAT):
        if determiner == "the":
            article, endings = ending(ARTICLES, gender, case), WEAK
        elif ein_word:
            article, endings = ein_word + ending(EIN_ENDINGS, gender, case), MIXED
        else:
            article, endings = NUMBERS.get(determiner, ""), STRONG
        description = inflect(adjective, ending(endings, gender, case)) if adjective else ""
        german_cases.append(join(article, description, noun_form(noun, plural, case)))
    en = join(adjective.en if adjective else "", noun.en_plural if plural else noun.en)
    if determiner not in ("a", "no"):
        en = join(determiner, en)
    elif not bare:
        en = join("an" if en[0] in "aeiou" else "a", en)
    found = {("adjective", adjective.en, noun.en)} if adjective else set()
    found |= {("number", determiner, noun.en)} if determiner in NUMBERS else set()
    rank = {"a": "indefinite", "no": "kein"}.get(determiner, "indefinite" if determiner in NUMBERS else "definite")
    return Phrase((en, en), tuple(german_cases), "3p" if plural else "3s", noun.en, rank, frozenset(found))


def name(word: str) -> Phrase:
    """A first name, which has the same form in all cases."""
    return Phrase((word, word), (word, word, word), head=word)


def prepositional(en: str, de: str, case: int, phrase: Phrase) -> Text:
    """Put a phrase into the case of its preposition and contract the article ("in dem" to "im")."""
    german_words = join(de, phrase.de[case]).split()
    start = " ".join(german_words[:2])
    german_words[:2] = CONTRACTIONS.get(start, start).split()
    return Text(join(en, phrase.en[1]), " ".join(german_words), phrase.combinations, phrase.head)


def clock(hour: int, style: str) -> Text:
    """Tell the time; "half past three" is half of the next hour in German ("halb vier")."""
    (en, de), (_, following) = number(hour), number(hour % 12 + 1)
    return {
        "full": Text(f"{en} o'clock", f"{'ein' if hour == 1 else de} Uhr"),
        "half": Text(f"half past {en}", f"halb {following}"),
        "past": Text(f"a quarter past {en}", f"Viertel nach {de}"),
        "to": Text(f"a quarter to {en}", f"Viertel vor {de}"),
    }[style]


def date(ordinal: tuple[str, str], month: tuple[str, str], case: int = DAT) -> Text:
    """Name a date as a time ("on the third of May", "am dritten Mai") or as a subject ("der dritte Mai")."""
    combinations = frozenset({("date", ordinal[0], month[0])})
    en = f"the {ordinal[0]} of {month[0]}"
    if case == NOM:
        return Text(en, f"der {ordinal[1]} {month[1]}", combinations)
    return Text(f"on {en}", f"am {ordinal[1]}n {month[1]}", combinations)


# ------------------------------------------------------------------------------------------------------------ clauses


@dataclass(frozen=True)
class Clause:
    """The parts of a clause, to be put into words in either language and in any word order.

    ``tense`` is present, progressive, future (all three are the German present) or past.  ``complement`` is a phrase
    that belongs to the verb ("goes into the house", "is old"), ``adjunct`` a free one ("with the dog").
    """

    subject: Phrase
    verb: Verb
    objects: tuple[tuple[Phrase, int], ...] = ()  # each with its German case
    complement: Text = NOTHING
    adjunct: Text = NOTHING
    time: Text = NOTHING
    tense: str = "present"
    modal: str = ""
    negated: bool = False

    @property
    def combinations(self) -> frozenset[Combination]:
        """All word combinations in the clause, the units by which training and held-out sentences differ."""
        verb = self.verb.prefix + self.verb.stem
        objects = [phrase for phrase, _ in self.objects]
        found = {("subject", phrase.head, verb) for phrase in (self.subject,) if phrase.head}
        found |= {("object", verb, phrase.head) for phrase in objects if phrase.head}
        found |= {("place", verb, text.head) for text in (self.complement, self.adjunct) if text.head}
        parts = (self.subject, *objects, self.complement, self.adjunct, self.time)
        return frozenset(found).union(*(part.combinations for part in parts))


def conjugate(infinitive: str, he_form: str, person: str) -> str:
    """Present tense: "ich" and the plural follow the infinitive, "du" the he-form ("du liest, er liest")."""
    if infinitive in IRREGULAR:
        return IRREGULAR[infinitive].split()[PERSONS.index(person)]
    stem = he_form[:-1]
    du_form = stem + ("t" if stem[-1] in "sßz" else "st")
    return {"1s": infinitive[:-1], "2s": du_form, "3s": he_form}.get(person, infinitive)


def german_verb(clause: Clause) -> tuple[str, str]:
    """Return the finite verb and what closes the verbal bracket: a prefix, an infinitive, a participle or nothing."""
    verb, person = clause.verb, clause.subject.person
    if clause.modal:
        return conjugate(MODALS[clause.modal], "", person), verb.prefix + verb.stem
    if clause.tense != "past":
        return conjugate(verb.stem, verb.he_form, person), verb.prefix
    if verb.frame == "copula":
        return conjugate("waren", "", person), ""
    return conjugate(verb.auxiliary, "", person), verb.participle


def german(clause: Clause, order: str = "statement", front: str = "") -> str:
    """Put a clause into German.

    The finite verb comes second in a statement (after the subject, or after ``front``, which moves the subject behind
    the verb), first or after the question word in a "question", and last in a "subordinate" clause.
    """
    finite, bracket = german_verb(clause)
    subject = clause.subject.de[NOM]
    ranked = {rank: [p.de[case] for p, case in clause.objects if p.rank == rank] for rank in ("pronoun", "definite")}
    indefinite = [p.de[case] for p, case in clause.objects if p.rank in ("indefinite", "kein")]
    has_kein = any(phrase.rank == "kein" for phrase, _ in clause.objects)
    known = join(*ranked["pronoun"], *ranked["definite"], clause.time.de, clause.adjunct.de)
    new = join(*indefinite, "nicht" if clause.negated and not has_kein else "", clause.complement.de)
    if order == "subordinate":
        verb = bracket + finite if bracket == clause.verb.prefix else join(bracket, finite)
        return join(subject, known, new, verb)
    start = (front, finite, subject) if front or order == "question" else (subject, finite)
    return join(*start, known, new, bracket)


def english_verb(clause: Clause, with_auxiliary: bool) -> tuple[str, str]:
    """Return the auxiliary and the main verb; questions and negations need an auxiliary ("does ... read")."""
    verb, third_person = clause.verb, clause.subject.person == "3s"
    be = {tense: forms.split()[PERSONS.index(clause.subject.person)] for tense, forms in ENGLISH_BE.items()}
    if verb.frame == "copula":
        return be[clause.tense], ""
    if clause.tense == "progressive":
        return be["present"], verb.ing
    if clause.tense == "future" or clause.modal == "can":
        return "will" if clause.tense == "future" else "can", verb.base
    base, third = verb.base, verb.third
    if clause.modal:  # "have to" and "want to" behave like main verbs
        base = join(clause.modal, verb.base)
        third = join({"have to": "has to", "want to": "wants to"}[clause.modal], verb.base)
    if with_auxiliary:
        return "did" if clause.tense == "past" else "does" if third_person else "do", base
    return "", verb.past if clause.tense == "past" else third if third_person else base


def english(clause: Clause, order: str = "statement", front: str = "") -> str:
    """Put a clause into English: subject, verb, objects, places, time; in a question the auxiliary comes first."""
    auxiliary, verb = english_verb(clause, order == "question" or clause.negated)
    negation = "not" if clause.negated else ""
    objects = [phrase.en[1] for phrase, _ in clause.objects]
    rest = join(verb, *objects, clause.complement.en, clause.adjunct.en, clause.time.en)
    if order == "question":
        return join(front, auxiliary, clause.subject.en[0], negation, rest)
    return join(front, clause.subject.en[0], join(auxiliary, negation).replace("can not", "cannot"), rest)


def put(clause: Clause, order: str = "statement", front: Text = NOTHING) -> Text:
    """Put a clause into both languages."""
    mark = "?" if order == "question" else ""
    en, de = english(clause, order, front.en), german(clause, order, front.de)
    return Text(en + mark, de + mark, clause.combinations | front.combinations)


def time_first(clause: Clause) -> Text:
    """Put a statement into words with its time in the first place."""
    return put(replace(clause, time=NOTHING), front=clause.time)


def subordinate(en: str, de: str, clause: Clause) -> Text:
    """Build a subordinate clause with its conjunction; the German verb comes last."""
    return Text(f"{en} {english(clause)}", f"{de} {german(clause, 'subordinate')}", clause.combinations)


def attach(main: Text, clause: Text) -> Text:
    """Add a subordinate clause, which German always sets off by a comma; a question mark moves to the end."""
    mark = "?" if main.en.endswith("?") else ""
    en, de = main.en.removesuffix("?"), main.de.removesuffix("?")
    return Text(f"{en} {clause.en}{mark}", f"{de}, {clause.de}{mark}", main.combinations | clause.combinations)


def state(subject: Phrase, adjective: Adjective, tense: str = "present", negated: bool = False) -> Clause:
    """Say how something is; a predicate adjective has no ending."""
    combinations = frozenset({("adjective", adjective.en, subject.head)} if subject.head else ())
    complement = Text(adjective.en, adjective.de, combinations)
    return Clause(subject, VERB["sein"], complement=complement, tense=tense, negated=negated)


# ----------------------------------------------------------------------------------------------------- random clauses


def random_clock(rng: random.Random) -> Text:
    """Choose a time of day, every quarter of an hour."""
    return clock(rng.randint(1, 12), rng.choice(("full", "half", "past", "to")))


def random_time(rng: random.Random, tense: str, with_clock: bool) -> Text:
    """Choose a time that fits the tense, sometimes with the hour ("tomorrow at three o'clock")."""
    dated = tense in ("future", "past")
    day, month = rng.choice(pairs(DAYS)), rng.choice(pairs(MONTHS))
    if dated and rng.random() < 0.2:
        return date(rng.choice(pairs(ORDINALS)), month)
    en, de = rng.choice(TIMES[tense] + DATED_TIMES * dated)
    time = Text(en.format(day=day[0], month=month[0]), de.format(day=day[1], month=month[1]))
    names_day = any(word in en for word in ("{day}", "every day", "tomorrow", "yesterday"))
    if with_clock and names_day and rng.random() < 0.4:
        hour = random_clock(rng)
        time = Text(f"{time.en} at {hour.en}", f"{time.de} um {hour.de}")
    return time


def random_tense(rng: random.Random, verb: Verb, negated: bool) -> tuple[str, str, Text]:
    """Choose tense, modal and time: states have the plain present only, habits are not negated."""
    options = ["present"]
    if "x" not in verb.uses:
        options += ["past", "past", "future"]
        options += ["modal", "modal"] if "t" not in verb.uses else []
    options += ["progressive"] if "n" in verb.uses else []
    options += ["habit"] if "h" in verb.uses and not negated else []
    choice = rng.choice(options)
    modal = rng.choice(list(MODALS)) if choice == "modal" else ""
    # Without a time, "they put" or "they read" could be either tense.
    needs_time = choice in ("progressive", "habit", "future") or (choice == "past" and verb.past == verb.base)
    timed = needs_time or (choice != "present" and rng.random() < 0.5)
    time = random_time(rng, choice.replace("modal", "future"), not negated) if timed else NOTHING
    return {"habit": "present", "modal": "present"}.get(choice, choice), modal, time


def random_phrase(
    rng: random.Random, kinds: tuple[str, ...], determiners: tuple[str, ...] = ("the",), plurals: float = 0.0
) -> Phrase:
    """Choose a noun of these kinds, a determiner ("my" is any possessive) and sometimes an adjective."""
    noun = rng.choice([noun for noun in NOUN.values() if noun.kind in kinds])
    can_be_plural = noun.en_plural != "-" and noun.kind not in ("parent", "opening", "transport", *PLACES)
    plural = can_be_plural and rng.random() < plurals
    determiner = rng.choice(determiners)
    if noun.kind in ("kin", "parent") and "the" in determiners:
        determiner = "my"  # one has "a sister", but visits "my sister"
    if determiner == "my":
        personal = noun.kind not in ("adult", "youth", "transport", "opening", "dish", "drink", *PLACES)
        determiner = rng.choice(list(POSSESSIVES)) if personal else "the"
    if plural and determiner == "a" and rng.random() < 0.6:
        determiner = number(rng.randint(2, 12))[0]
    fitting = [adjective for adjective in ADJECTIVE.values() if noun.kind in adjective.kinds]
    adjective = rng.choice(fitting) if fitting and rng.random() < 0.35 else None
    return noun_phrase(noun, determiner, adjective, plural)


def random_person(rng: random.Random, pronouns: float = 0.3, plurals: float = 0.25) -> Phrase:
    """Choose a pronoun, a name or a phrase for one or more people."""
    if rng.random() < pronouns:
        return rng.choice(list(PRONOUN.values()))
    if rng.random() < 0.2:
        return name(rng.choice(NAMES))
    return random_phrase(rng, PEOPLE, ("the", "the", "the", "a"), plurals)


def random_subject(rng: random.Random, verb: Verb) -> Phrase:
    """Choose who does it: people, and for some verbs also animals or trains."""
    if "t" in verb.uses and rng.random() < 0.5:
        return random_phrase(rng, ("transport",))
    if "a" in verb.uses and rng.random() < 0.3:
        return random_phrase(rng, ("animal",), ("the", "my", "a"), plurals=0.3)
    return random_person(rng)


def random_other(rng: random.Random, subject: Phrase) -> Phrase:
    """Choose somebody definite who is not the subject again."""
    while True:
        person = random_person(rng, plurals=0.1)
        same_speaker = person.person[0] == subject.person[0] != "3"
        same = same_speaker or person == subject or (person.head and person.head == subject.head)
        if person.rank != "indefinite" and not same:
            return person


def random_place(rng: random.Random, table: str, kinds: tuple[str, ...], definite: bool = False) -> Text:
    """Choose a preposition from a table and a noun that both it and the verb allow."""
    allowed = [(row, tuple(kind for kind in row[3].split(",") if kind in kinds)) for row in rows(table)]
    (en, de, case, _), fitting = rng.choice([(row, fitting) for row, fitting in allowed if fitting])
    determiners = ("the",) if definite else ("the", "the", "the", "the", "a")
    return prepositional(en, de, int(case), random_phrase(rng, fitting, determiners))


def random_adjunct(rng: random.Random, verb: Verb, subject: Phrase) -> Text:
    """Choose a phrase that the verb allows but does not require: for, with or without whom, or where."""
    uses = [use for use in "bccl" if use in verb.uses]
    if not uses or rng.random() < 0.6:
        return NOTHING
    use = rng.choice(uses)
    if use == "l":
        return random_place(rng, LOCATIONS, ("room", "nature"))
    companionship = rng.choice((("with", "mit", DAT), ("without", "ohne", ACC)))
    return prepositional(*(("for", "für", ACC) if use == "b" else companionship), random_other(rng, subject))


def random_objects(rng: random.Random, verb: Verb, subject: Phrase, negated: bool) -> tuple[tuple[Phrase, int], ...]:
    """Choose the objects that the verb requires; a negated clause has "kein" instead of "ein"."""
    article = "no" if negated else "a"
    plurals = 0.3 if "m" in verb.uses else 0.0
    if verb.base == "have":
        return ((random_phrase(rng, verb.kinds, (article,), plurals), ACC),)
    if verb.frame == "dative":
        return ((random_other(rng, subject), DAT),)
    if verb.frame == "giving":
        theme, receiver = random_phrase(rng, verb.kinds, (article,), plurals), random_other(rng, subject)
        if receiver.en[1] == "her" and not theme.en[1].startswith(("a ", "an ")):
            receiver = PRONOUN["he"]  # in "brings her water", "her" could be a possessive
        return (receiver, DAT), (theme, ACC)
    if verb.frame in ("accusative", "placing"):
        things = tuple(kind for kind in verb.kinds if kind not in PEOPLE)
        if "kin" in verb.kinds and (not things or rng.random() < 0.5):
            return ((random_other(rng, subject), ACC),)
        return ((random_phrase(rng, things, ("the", "the", "my", article, article), plurals), ACC),)
    return ()


def random_clause(rng: random.Random, negations: float = 0.15, general: bool = False) -> Clause:
    """Choose an event: who does what, to whom, where and when; a ``general`` one is a habit without a time."""
    frames = ("accusative",) * 4 + ("dative", "giving", "plain", "location", "motion", "placing")
    frame = rng.choice([frame for frame in frames if not (general and frame in ("giving", "placing"))])
    verb = rng.choice([verb for verb in VERBS if verb.frame == frame and ("h" in verb.uses or not general)])
    subject = random_subject(rng, verb)
    negated = rng.random() < negations
    tense, modal, time = random_tense(rng, verb, negated)
    if general:
        tense, time = "present", NOTHING
    complement = NOTHING
    if frame == "placing":
        complement = random_place(rng, DESTINATIONS, ("furniture", "seat"), definite=negated)
    elif frame in ("location", "motion"):
        table = LOCATIONS if frame == "location" else DIRECTIONS
        complement = random_place(rng, table, verb.kinds, definite=negated)
    objects = random_objects(rng, verb, subject, negated)
    adjunct = NOTHING if negated else random_adjunct(rng, verb, subject)
    return Clause(subject, verb, objects, complement, adjunct, time, tense, modal, negated)


# ------------------------------------------------------------------------------------------------------ constructions


def statement(rng: random.Random) -> Text:
    """A main clause; the German verb stays second when the time comes first."""
    clause = random_clause(rng)
    return time_first(clause) if rng.random() < 0.45 else put(clause)


def yes_no_question(rng: random.Random) -> Text:
    """A question that begins with the verb."""
    return put(random_clause(rng, negations=0), "question")


def who_question(rng: random.Random) -> Text:
    """A question about the subject, in the word order of a statement."""
    text = put(replace(random_clause(rng, negations=0), subject=WHO))
    return replace(text, en=text.en + "?", de=text.de + "?")


def wh_question(rng: random.Random) -> Text:
    """Leave out a part of a clause and ask for it; German tells "wo" from "wohin" and "wen" from "wem"."""
    clause = random_clause(rng, negations=0)
    frame = clause.verb.frame
    options = [(Text("why", "warum"), clause)]
    if clause.tense in ("future", "past"):
        options.append((Text("when", "wann"), replace(clause, time=NOTHING)))
    if frame in ("location", "motion"):
        where = Text("where", "wo" if frame == "location" else "wohin")
        options = [(where, replace(clause, complement=NOTHING))]
    if frame in ("accusative", "dative") and clause.objects[0][0].head:
        phrase, case = clause.objects[0]
        is_person = phrase.head in NAMES or NOUN[phrase.head].kind in PEOPLE
        what = Text("who", WHO.de[case]) if is_person else Text("what", "was")
        options.append((what, replace(clause, objects=())))
    front, rest = rng.choice(options)
    return put(rest, "question", front)


def reported(rng: random.Random) -> Text:
    """ "She says that ...", "He does not know whether ..." or "Do you know whether ...?"."""
    subject = random_person(rng, pronouns=0.6, plurals=0.1)
    style = rng.choice(("that", "that", "ask", "doubt", "question"))
    if style == "that":
        verb = rng.choice([verb for verb in VERBS if verb.frame == "reporting"])
        return attach(put(Clause(subject, verb)), subordinate("that", "dass", random_clause(rng)))
    inner = random_clause(rng, negations=0)
    if style == "ask":  # nobody says "I ask whether"
        outer = put(Clause(subject if subject.person[0] == "3" else PRONOUN["she"], VERB["fragen"]))
    elif style == "doubt" or inner.subject.person == "2s":
        outer = put(Clause(subject, VERB["wissen"], negated=True))
    else:
        outer = put(Clause(PRONOUN["you"], VERB["wissen"]), "question")
    return attach(outer, subordinate("whether", "ob", inner))


def because(rng: random.Random) -> Text:
    """A feeling and its reason."""
    feeling = state(random_person(rng, pronouns=0.6), ADJECTIVE[rng.choice(("happy", "sad"))])
    return attach(put(feeling), subordinate("because", "weil", random_clause(rng)))


def conditional(rng: random.Random) -> Text:
    """A clause with "wenn", after the main clause or in its first place, where the main verb follows at once."""
    main = random_clause(rng, negations=0.1, general=True)
    condition = Clause(IT, VERB[rng.choice(("regnen", "schneien"))])
    if rng.random() < 0.7:
        person = main.subject.rank == "pronoun"
        subject = main.subject if person else noun_phrase(NOUN["weather"], "the")
        adjectives = ("tired", "hungry", "sick", "happy", "sad") if person else ("good", "bad", "cold")
        condition = state(subject, ADJECTIVE[rng.choice(adjectives)], negated=rng.random() < 0.2)
    clause = subordinate("if", "wenn", condition)
    if rng.random() < 0.4:
        return attach(put(main), clause)
    return put(main, front=replace(clause, en=clause.en + ",", de=clause.de + ","))


def description(rng: random.Random) -> Text:
    """How people and things are or were, also as a question."""
    subject = random_phrase(rng, tuple(NOUN_TABLE), ("the", "my"), plurals=0.25)
    if rng.random() < 0.3:
        subject = random_person(rng)
    kind = NOUN[subject.head].kind if subject.head in NOUN else "adult"
    attributes = {adjective for what, adjective, _ in subject.combinations if what == "adjective"}
    fitting = [a for a in ADJECTIVE.values() if kind in a.kinds and a.en not in attributes]
    if not fitting or attributes:
        return description(rng)
    clause = state(subject, rng.choice(fitting), rng.choice(("present", "present", "past")))
    if rng.random() < 0.3:
        return put(clause, "question")
    return put(replace(clause, negated=rng.random() < 0.2))


def whereabouts(rng: random.Random) -> Text:
    """Where somebody or something is, also as a question."""
    if rng.random() < 0.6:
        subject = random_phrase(rng, ("reading", "clothes", "thing", "animal"), ("the", "my"), plurals=0.2)
        place = random_place(rng, LOCATIONS, ("furniture", "seat"))
    else:
        subject = random_phrase(rng, (*PEOPLE, "animal"), ("the", "my"), plurals=0.2)
        place = random_place(rng, LOCATIONS, ("room", "nature", "home"))
    clause = Clause(subject, VERB["sein"])
    if rng.random() < 0.2:
        return put(clause, "question", Text("where", "wo"))
    return put(replace(clause, complement=place, negated=rng.random() < 0.15))


def measure(rng: random.Random) -> Text:
    """How old somebody is, what something costs or how many somebody has."""
    style = rng.choice(("age", "age", "price", "price", "amount"))
    if style == "amount":
        noun = rng.choice([noun for noun in NOUN.values() if noun.kind in VERB["haben"].kinds])
        combinations = frozenset({("object", "haben", noun.en)})
        how = Text(f"how many {noun.en_plural}", f"wie viele {noun.de_plural}", combinations)
        return put(Clause(random_other(rng, IT), VERB["haben"]), "question", how)
    small = rng.random() < 0.4
    value = rng.randint(2, 16 if style == "age" else 19) if small else rng.randrange(20, 101, 5)
    if style == "age":
        subject = random_phrase(rng, ("youth",)) if small else random_other(rng, IT)
        verb, unit, question = VERB["sein"], Text("years old", "Jahre alt"), Text("how old", "wie alt")
    else:
        kinds = ("food", "dish", "drink", "reading") if small else ("clothes", "furniture", "seat", "thing")
        subject = random_phrase(rng, kinds, plurals=0.3)
        verb, unit, question = VERB["kosten"], Text("euros", "Euro"), Text("how much", "wie viel")
    clause = Clause(subject, verb)
    if rng.random() < 0.25:
        return put(clause, "question", question)
    en, de = number(value)
    combinations = frozenset({("number", en, subject.head)} if subject.head else ())
    return put(replace(clause, complement=Text(f"{en} {unit.en}", f"{de} {unit.de}", combinations)))


def belonging(rng: random.Random) -> Text:
    """Whose something is; "gehören" takes the dative."""
    subject = random_phrase(rng, ("animal", "vehicle", "clothes", "thing", "home"), plurals=0.3)
    objects = ((random_other(rng, subject), DAT),)
    return put(Clause(subject, VERB["gehören"], objects, negated=rng.random() < 0.2))


def calendar(rng: random.Random) -> Text:
    """The time, the day and the date."""
    if rng.random() < 0.4:
        hour = random_clock(rng)
        return Text(f"it is {hour.en}", f"es ist {hour.de}")
    start = rng.choice((("today is", "heute ist"), ("tomorrow is", "morgen ist"), ("yesterday was", "gestern war")))
    day = Text(*rng.choice(pairs(DAYS)))
    if rng.random() < 0.7:
        day = date(rng.choice(pairs(ORDINALS)), rng.choice(pairs(MONTHS)), NOM)
    return Text(f"{start[0]} {day.en}", f"{start[1]} {day.de}", day.combinations)


CONSTRUCTIONS = {  # with their relative frequencies
    statement: 34,
    yes_no_question: 8,
    who_question: 4,
    wh_question: 11,
    reported: 9,
    because: 6,
    conditional: 6,
    description: 6,
    whereabouts: 4,
    measure: 7,
    belonging: 2,
    calendar: 3,
}

# ------------------------------------------------------------------------------------------------------------- corpus

SIZES = {"train": 12_000, "validation": 600, "test": 600}
MAX_WORDS = 14
RESERVED_PERCENT = 5
MIN_COUNT = 8  # how often each word of a held-out sentence occurs in the training sentences


@dataclass(frozen=True)
class Sentence:
    """A sentence pair, the name of its construction and the word combinations in it."""

    en: str
    de: str
    construction: str
    combinations: frozenset[Combination]

    @property
    def is_held_out(self) -> bool:
        """Whether a reserved combination keeps the sentence out of training."""
        return any(is_reserved(combination) for combination in self.combinations)


def is_reserved(combination: Combination) -> bool:
    """Tell by a fixed digest whether a combination belongs to the held-out sentences, the same for every seed."""
    digest = hashlib.sha256("|".join(combination).encode()).digest()
    return int.from_bytes(digest[:4], "big") % 100 < RESERVED_PERCENT


def words(text: str) -> list[str]:
    """Split a sentence into its words, without punctuation."""
    return text.rstrip(".?").replace(",", "").split()


def random_sentence(rng: random.Random) -> Sentence:
    """Choose a construction and finish its text with a capital and a final mark."""
    construction = rng.choices(list(CONSTRUCTIONS), list(CONSTRUCTIONS.values()))[0]
    text = construction(rng)
    mark = "" if text.en.endswith("?") else "."
    en, de = (part[0].upper() + part[1:] + mark for part in (text.en, text.de))
    return Sentence(en, de, construction.__name__, text.combinations)


def distinct_sentences(rng: random.Random) -> Iterator[Sentence]:
    """Generate short sentences without end, each English and each German one only once."""
    seen: set[str] = set()
    while True:
        sentence = random_sentence(rng)
        texts = {sentence.en, sentence.de}
        if not seen & texts and all(len(words(text)) <= MAX_WORDS for text in texts):
            seen |= texts
            yield sentence


def corpus(seed: int = 0) -> dict[str, list[Sentence]]:
    """Generate the corpus as :class:`Sentence` objects, split into "train", "validation" and "test"."""
    train: list[Sentence] = []
    held_out: list[Sentence] = []
    sentences = distinct_sentences(random.Random(seed))
    while len(train) < SIZES["train"]:
        sentence = next(sentences)
        (held_out if sentence.is_held_out else train).append(sentence)
    counts = Counter(word for sentence in train for text in (sentence.en, sentence.de) for word in words(text))
    candidates = chain(held_out, (sentence for sentence in sentences if sentence.is_held_out))
    known = (s for s in candidates if all(counts[word] >= MIN_COUNT for word in words(s.en) + words(s.de)))
    return {"train": train, **{split: list(islice(known, SIZES[split])) for split in ("validation", "test")}}


def phrasebook(seed: int = 0) -> dict[str, list[tuple[str, str]]]:
    """Return English-German sentence pairs: 12,000 for "train", 600 each for "validation" and "test"."""
    return {split: [(s.en, s.de) for s in sentences] for split, sentences in corpus(seed).items()}
