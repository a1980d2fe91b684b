"""The words of the phrasebook corpus, with their forms and uses for the grammar. Add new words here."""

from collections import namedtuple
from functools import cache

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

# English, German, case (1 accusative, 2 dative), kinds of noun. Two-way prepositions take the dative for a place and
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
DATED_TIMES = [("on {day}", "am {day}"), ("in {month}", "im {month}")]  # With the future and the past.

# Endings by gender (p: plural), each in the order nominative, accusative, dative; "-" is no ending.
ARTICLES = {"m": "der den dem", "f": "die die der", "n": "das das dem", "p": "die die den"}
EIN_ENDINGS = {"m": "- en em", "f": "e e er", "n": "- - em", "p": "e e en"}
WEAK = {"m": "e en en", "f": "e e en", "n": "e e en", "p": "en en en"}  # Of an adjective after der, die, das.
MIXED = {"m": "er en en", "f": "e e en", "n": "es es en", "p": "en en en"}  # After ein, kein, mein.
STRONG = {"m": "er en em", "f": "e e er", "n": "es es em", "p": "e e en"}  # After a number or nothing.
NOM, ACC, DAT = range(3)
PERSONS = ("1s", "2s", "3s", "1p", "3p")
PEOPLE = ("adult", "youth", "kin", "parent")
PLACES = ("room", "home", "building", "nature", "town")

# The rows of the tables above; `stem` is the infinitive without the separable `prefix`.
Noun = namedtuple("Noun", "en en_plural de gender de_plural kind")
Adjective = namedtuple("Adjective", "en de kinds")
Verb = namedtuple("Verb", "frame base third past ing prefix stem he_form participle auxiliary kinds uses")


@cache
def pairs(table: str) -> tuple[tuple[str, str], ...]:
    """The pairs of a table: (("one", "eins"), ("two", "zwei")) for "one eins two zwei"."""
    cells = table.split()
    return tuple(zip(cells[::2], cells[1::2], strict=True))


@cache
def rows(table: str) -> tuple[tuple[str, ...], ...]:
    """The rows of cells of a table; an underscore stands for a space."""
    return tuple(tuple(cell.replace("_", " ") for cell in line.split()) for line in table.strip().splitlines())


def _verb(frame: str, cells: tuple[str, ...]) -> Verb:
    *english_forms, infinitive, he_form, participle, auxiliary, kinds, uses = cells
    prefix, _, stem = infinitive.rpartition("-")
    return Verb(frame, *english_forms, prefix, stem, he_form, participle, auxiliary, tuple(kinds.split(",")), uses)


def number(value: int) -> tuple[str, str]:
    """A number from 1 to 100 in words; German says the unit first ("fünfundzwanzig")."""
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
