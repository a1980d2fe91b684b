"""The embedded corpus: its splits, its grammar by example, and German that can be checked over the whole corpus."""

import hashlib
import random
import re
from collections import Counter
from dataclasses import replace

import pytest

from keras_transformer.data import phrasebook as pb
from keras_transformer.data.phrasebook import grammar, lexicon
from keras_transformer.data.phrasebook.grammar import PRONOUN, Clause, Text
from keras_transformer.data.phrasebook.lexicon import ACC, ADJECTIVE, DAT, NOUN, VERB


@pytest.fixture(scope="module")
def corpus():
    return pb.corpus(0)


@pytest.fixture(scope="module")
def sentences(corpus):
    return [sentence for split in corpus.values() for sentence in split]


# ------------------------------------------------------------------------------------------------------------- splits


def test_sizes(corpus):
    assert {split: len(rows) for split, rows in corpus.items()} == {"train": 12_000, "validation": 600, "test": 600}


def test_sentences_are_distinct_in_both_languages(sentences):
    assert len({s.en for s in sentences}) == len({s.de for s in sentences}) == len(sentences)


def test_english_determines_german():
    """Before duplicates are removed: no English sentence ever gets a second German one."""
    rng = random.Random(7)
    german = {}
    for _ in range(20_000):
        sentence = pb.random_sentence(rng)
        assert german.setdefault(sentence.en, sentence.de) == sentence.de


def test_held_out_sentences_recombine_known_words(corpus):
    train = {combination for sentence in corpus["train"] for combination in sentence.combinations}
    assert not any(pb.is_reserved(combination) for combination in train)
    for split in ("validation", "test"):
        for sentence in corpus[split]:
            assert sentence.combinations - train, sentence
            assert any(map(pb.is_reserved, sentence.combinations)), sentence


def test_held_out_words_and_constructions_are_frequent_in_training(corpus):
    for language in ("en", "de"):
        counts = Counter(word for s in corpus["train"] for word in pb.words(getattr(s, language)))
        held_out = {
            w for split in ("validation", "test") for s in corpus[split] for w in pb.words(getattr(s, language))
        }
        assert min(counts[word] for text in held_out for word in pb.words(text)) >= 8
    constructions = Counter(s.construction for s in corpus["train"])
    assert set(constructions) == {construction.__name__ for construction in pb.CONSTRUCTIONS}
    assert min(constructions.values()) >= 100


def test_every_word_of_the_lexicon_is_used(sentences):
    text = " ".join(f"{s.en} {s.de}" for s in sentences).lower()
    used = set(re.findall(r"[\w'-]+", text))
    expected = [noun.de for noun in NOUN.values()] + [adjective.en for adjective in ADJECTIVE.values()]
    expected += [verb.participle for verb in lexicon.VERBS if "x" not in verb.uses]
    expected += [word for table in (lexicon.DAYS, lexicon.MONTHS, lexicon.ORDINALS) for word in table.split()]
    assert [word for word in expected if word.lower() not in used] == []


def test_the_corpus_depends_on_the_seed_alone(corpus):
    again = pb.phrasebook(0)
    assert again == {split: [(s.en, s.de) for s in rows] for split, rows in corpus.items()}
    assert again["train"][:100] != pb.phrasebook(1)["train"][:100]


def test_the_corpus_is_the_same_everywhere(corpus):
    """A change of the grammar changes these values; anything else must not."""
    assert [(s.en, s.de) for s in corpus["train"][:2] + corpus["test"][:1]] == [
        ("Her sons are behind the hotel.", "Ihre Söhne sind hinter dem Hotel."),
        ("His clever sister has to close a door in June.", "Seine kluge Schwester muss im Juni eine Tür zumachen."),
        (
            "Why does he want to give me five bags next Wednesday?",
            "Warum will er mir nächsten Mittwoch fünf Taschen geben?",
        ),
    ]
    text = "\n".join(f"{s.en}\t{s.de}" for split in corpus.values() for s in split)
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == "de51a823bf69ffc5"


# ------------------------------------------------------------------------------------------------- grammar by example


def noun(text, determiner="the", plural=False):
    """ "old dog" -> its noun phrase."""
    *adjective, head = text.split()
    return grammar.noun_phrase(NOUN[head], determiner, ADJECTIVE[adjective[0]] if adjective else None, plural)


def clause(subject, verb, *objects, **parts):
    """A clause whose objects are accusative unless given with a case."""
    cases = tuple(item if isinstance(item, tuple) else (item, ACC) for item in objects)
    return Clause(subject, VERB[verb], cases, **parts)


def place(en, de, case, text, determiner="the", **parts):
    return grammar.prepositional(en, de, case, noun(text, determiner, **parts))


ANNA, PAUL = grammar.name("Anna"), grammar.name("Paul")
MAN, WOMAN, CHILD, BOY = noun("man"), noun("woman"), noun("child"), noun("boy")
ME, YOU, HE, SHE, WE, THEY = PRONOUN.values()
TOMORROW, YESTERDAY, NOW = Text("tomorrow", "morgen"), Text("yesterday", "gestern"), Text("now", "jetzt")
A_BOOK = noun("book", "a")
SEPARABLE = clause(MAN, "anrufen", noun("friend", "his"))
KITCHEN = {"complement": place("in", "in", DAT, "kitchen")}
INTO_KITCHEN = {"complement": place("into", "in", ACC, "kitchen")}
RAIN = grammar.subordinate("if", "wenn", Clause(grammar.IT, VERB["regnen"]))

CLAUSES = {
    "masculine accusative": (clause(WOMAN, "sehen", MAN), "the woman sees the man", "die Frau sieht den Mann"),
    "dative": (clause(MAN, "helfen", (WOMAN, DAT)), "the man helps the woman", "der Mann hilft der Frau"),
    "dative and accusative": (
        clause(SHE, "geben", (CHILD, DAT), noun("apple", "a")),
        "she gives the child an apple",
        "sie gibt dem Kind einen Apfel",
    ),
    "dative plural": (
        clause(ME, "danken", (noun("old man", plural=True), DAT)),
        "I thank the old men",
        "ich danke den alten Männern",
    ),
    "weak masculine": (clause(ME, "kennen", BOY), "I know the boy", "ich kenne den Jungen"),
    "adjective after der": (
        clause(noun("small child"), "lesen", noun("old newspaper")),
        "the small child reads the old newspaper",
        "das kleine Kind liest die alte Zeitung",
    ),
    "adjective after ein": (
        clause(noun("young man", "a"), "kaufen", noun("new shirt", "a")),
        "a young man buys a new shirt",
        "ein junger Mann kauft ein neues Hemd",
    ),
    "adjective after a possessive": (
        clause(noun("clever sister", "our"), "suchen", noun("black cat", "her")),
        "our clever sister looks for her black cat",
        "unsere kluge Schwester sucht ihre schwarze Katze",
    ),
    "adjective without article": (
        clause(WE, "trinken", noun("hot tea", "a")),
        "we drink hot tea",
        "wir trinken heißen Tee",
    ),
    "adjective in -euer": (
        clause(HE, "kaufen", noun("expensive car", "a")),
        "he buys an expensive car",
        "er kauft ein teures Auto",
    ),
    "adjective in -e": (clause(YOU, "fragen", noun("tired man")), "you ask the tired man", "du fragst den müden Mann"),
    "number": (
        clause(WOMAN, "haben", noun("small dog", "three", plural=True)),
        "the woman has three small dogs",
        "die Frau hat drei kleine Hunde",
    ),
    "kein": (
        clause(MAN, "haben", noun("red coat", "no"), negated=True),
        "the man does not have a red coat",
        "der Mann hat keinen roten Mantel",
    ),
    "nicht": (
        clause(MAN, "kaufen", noun("book"), negated=True),
        "the man does not buy the book",
        "der Mann kauft das Buch nicht",
    ),
    "nicht before a place": (
        clause(PAUL, "warten", negated=True, **KITCHEN),
        "Paul does not wait in the kitchen",
        "Paul wartet nicht in der Küche",
    ),
    "place": (clause(SHE, "sitzen", **KITCHEN), "she sits in the kitchen", "sie sitzt in der Küche"),
    "direction": (clause(SHE, "gehen", **INTO_KITCHEN), "she goes into the kitchen", "sie geht in die Küche"),
    "putting": (
        clause(ME, "legen", A_BOOK, complement=place("on", "auf", ACC, "table")),
        "I put a book on the table",
        "ich lege ein Buch auf den Tisch",
    ),
    "contraction": (
        clause(HE, "fahren", complement=place("to", "zu", DAT, "big station")),
        "he drives to the big station",
        "er fährt zum großen Bahnhof",
    ),
    "für": (
        clause(HE, "kaufen", noun("flower", "a"), adjunct=place("for", "für", ACC, "friend", "his")),
        "he buys a flower for his friend",
        "er kauft für seinen Freund eine Blume",
    ),
    "ohne": (
        clause(ANNA, "einkaufen", adjunct=grammar.prepositional("without", "ohne", ACC, ME)),
        "Anna goes shopping without me",
        "Anna kauft ohne mich ein",
    ),
    "mit": (
        clause(WE, "tanzen", adjunct=place("with", "mit", DAT, "child", plural=True)),
        "we dance with the children",
        "wir tanzen mit den Kindern",
    ),
    "pronoun before the time": (
        clause(MAN, "sehen", HE, time=YESTERDAY, tense="past"),
        "the man saw him yesterday",
        "der Mann hat ihn gestern gesehen",
    ),
    "indefinite object after the time": (
        clause(MAN, "kaufen", A_BOOK, time=TOMORROW, tense="future"),
        "the man will buy a book tomorrow",
        "der Mann kauft morgen ein Buch",
    ),
    "perfect with sein": (
        clause(YOU, "gehen", tense="past", **INTO_KITCHEN),
        "you went into the kitchen",
        "du bist in die Küche gegangen",
    ),
    "perfect with prefix": (
        clause(THEY, "aufstehen", time=YESTERDAY, tense="past", negated=True),
        "they did not get up yesterday",
        "sie sind gestern nicht aufgestanden",
    ),
    "progressive": (
        clause(ME, "lesen", noun("letter", "my"), time=NOW, tense="progressive"),
        "I am reading my letter now",
        "ich lese meinen Brief jetzt",
    ),
    "separable prefix": (SEPARABLE, "the man calls his friend", "der Mann ruft seinen Freund an"),
    "separable with modal": (
        replace(SEPARABLE, modal="want to"),
        "the man wants to call his friend",
        "der Mann will seinen Freund anrufen",
    ),
    "can": (clause(SHE, "fernsehen", modal="can"), "she can watch television", "sie kann fernsehen"),
    "cannot": (clause(YOU, "schlafen", modal="can", negated=True), "you cannot sleep", "du kannst nicht schlafen"),
    "must": (
        clause(ME, "putzen", noun("window", "a"), modal="have to"),
        "I have to clean a window",
        "ich muss ein Fenster putzen",
    ),
    "need not": (
        clause(ANNA, "arbeiten", modal="have to", negated=True),
        "Anna does not have to work",
        "Anna muss nicht arbeiten",
    ),
    "predicate adjective": (
        grammar.state(noun("house", plural=True), ADJECTIVE["expensive"], "past"),
        "the houses were expensive",
        "die Häuser waren teuer",
    ),
}


@pytest.mark.parametrize("name", CLAUSES)
def test_statement(name):
    built, en, de = CLAUSES[name]
    assert (grammar.english(built), grammar.german(built)) == (en, de)


TEXTS = [
    (
        grammar.time_first(clause(MAN, "kaufen", A_BOOK, time=TOMORROW, tense="future")),
        "tomorrow the man will buy a book",
        "morgen kauft der Mann ein Buch",
    ),
    (
        grammar.time_first(
            clause(CHILD, "aufstehen", tense="past", time=grammar.date(("third", "dritte"), ("May", "Mai")))
        ),
        "on the third of May the child got up",
        "am dritten Mai ist das Kind aufgestanden",
    ),
    (grammar.put(SEPARABLE, "question"), "does the man call his friend?", "ruft der Mann seinen Freund an?"),
    (
        grammar.put(clause(YOU, "kaufen", A_BOOK, tense="past"), "question"),
        "did you buy a book?",
        "hast du ein Buch gekauft?",
    ),
    (
        grammar.put(clause(MAN, "gehen"), "question", Text("where", "wohin")),
        "where does the man go?",
        "wohin geht der Mann?",
    ),
    (
        grammar.put(clause(MAN, "kaufen", tense="past"), "question", Text("what", "was")),
        "what did the man buy?",
        "was hat der Mann gekauft?",
    ),
    (
        grammar.subordinate("because", "weil", SEPARABLE),
        "because the man calls his friend",
        "weil der Mann seinen Freund anruft",
    ),
    (
        grammar.subordinate("that", "dass", replace(SEPARABLE, tense="past")),
        "that the man called his friend",
        "dass der Mann seinen Freund angerufen hat",
    ),
    (
        grammar.subordinate("whether", "ob", replace(SEPARABLE, modal="can")),
        "whether the man can call his friend",
        "ob der Mann seinen Freund anrufen kann",
    ),
    (
        grammar.attach(
            grammar.put(clause(YOU, "wissen"), "question"),
            grammar.subordinate("whether", "ob", clause(SHE, "schlafen")),
        ),
        "do you know whether she sleeps?",
        "weißt du, ob sie schläft?",
    ),
    (
        grammar.put(clause(WE, "fernsehen"), front=replace(RAIN, en=RAIN.en + ",", de=RAIN.de + ",")),
        "if it rains, we watch television",
        "wenn es regnet, sehen wir fern",
    ),
    (grammar.clock(1, "full"), "one o'clock", "ein Uhr"),
    (grammar.clock(3, "half"), "half past three", "halb vier"),
    (grammar.clock(12, "half"), "half past twelve", "halb eins"),
    (grammar.clock(7, "to"), "a quarter to seven", "Viertel vor sieben"),
    (grammar.date(("first", "erste"), ("June", "Juni"), lexicon.NOM), "the first of June", "der erste Juni"),
    (place("in", "in", DAT, "big garden"), "in the big garden", "im großen Garten"),
    (place("into", "in", ACC, "new house"), "into the new house", "ins neue Haus"),
    (place("through", "durch", ACC, "park"), "through the park", "durch den Park"),
    (place("near", "bei", DAT, "hotel"), "near the hotel", "beim Hotel"),
]


@pytest.mark.parametrize(("text", "en", "de"), TEXTS, ids=[en for _, en, _ in TEXTS])
def test_text(text, en, de):
    assert (text.en, text.de) == (en, de)


@pytest.mark.parametrize(
    ("value", "en", "de"),
    [
        (1, "one", "eins"),
        (17, "seventeen", "siebzehn"),
        (21, "twenty-one", "einundzwanzig"),
        (30, "thirty", "dreißig"),
        (75, "seventy-five", "fünfundsiebzig"),
        (100, "a hundred", "hundert"),
    ],
)
def test_number(value, en, de):
    assert lexicon.number(value) == (en, de)


@pytest.mark.parametrize(
    ("verb", "forms"),
    [
        ("arbeiten", "arbeite arbeitest arbeitet arbeiten arbeiten"),
        ("lesen", "lese liest liest lesen lesen"),
        ("sitzen", "sitze sitzt sitzt sitzen sitzen"),
        ("tanzen", "tanze tanzt tanzt tanzen tanzen"),
        ("helfen", "helfe hilfst hilft helfen helfen"),
        ("haben", "habe hast hat haben haben"),
        ("sein", "bin bist ist sind sind"),
        ("wissen", "weiß weißt weiß wissen wissen"),
    ],
)
def test_present_tense(verb, forms):
    row = VERB[verb]
    assert " ".join(grammar.conjugate(row.stem, row.he_form, person) for person in lexicon.PERSONS) == forms


@pytest.mark.parametrize(
    ("phrase", "cases"),
    [
        (noun("black dog", "a"), "ein schwarzer Hund, einen schwarzen Hund, einem schwarzen Hund"),
        (noun("cold milk", "a"), "kalte Milch, kalte Milch, kalter Milch"),
        (noun("cold water", "no"), "kein kaltes Wasser, kein kaltes Wasser, keinem kalten Wasser"),
        (noun("small bird", "a", plural=True), "kleine Vögel, kleine Vögel, kleinen Vögeln"),
        (noun("new car", plural=True), "die neuen Autos, die neuen Autos, den neuen Autos"),
        (noun("boy", "a"), "ein Junge, einen Jungen, einem Jungen"),
        (noun("sad mother", "my"), "meine traurige Mutter, meine traurige Mutter, meiner traurigen Mutter"),
    ],
)
def test_declension(phrase, cases):
    assert ", ".join(phrase.de) == cases


# ------------------------------------------------------------------------------------------------- the whole corpus


def test_capitals_and_final_marks(sentences):
    shape = re.compile(r"[A-ZÄÖÜ][\w'-]*(,? [\w'-]+)*[.?]")
    for s in sentences:
        assert shape.fullmatch(s.en) and shape.fullmatch(s.de) and s.en[-1] == s.de[-1], s


def test_sentences_are_short_but_vary(sentences):
    lengths = Counter(len(pb.words(s.en)) for s in sentences)
    assert max(lengths) <= 14 and min(lengths) <= 3
    assert sum(lengths[length] for length in range(4, 12)) > 0.8 * len(sentences)


def test_questions_are_questions_in_both_languages(sentences):
    openings = "who what where when why how do does did is are am was were will can"
    for s in sentences:
        assert (s.en.split()[0].lower() in openings.split()) == s.en.endswith("?"), s


WRONG_GERMAN = {
    "contraction": r"\b(in|bei|zu) dem\b|\bin das\b|\bzu der\b",
    "dative preposition": r"\b(mit|bei|beim|aus|zu|zum) (das|die|eine|einen|meine|mich|dich|ihn|sie)\b",
    "accusative preposition": r"\b(für|durch|ohne) (dem|der|einem|einer|meinem|meiner|mir|dir|ihm|ihnen)\b",
    "place": r"\b(wohn|wart|sitz)\w* (\w+ )*(ins|in (die|den|eine|einen)|auf (das|den|ein|einen))\b",
    "direction": r"\b(geh|fähr|leg)\w* (\w+ )*(in (der|einem|einer)|auf (dem|einem)|unter (dem|einem))\b",
    "two negations": r"\b(kein|nicht)[^,]* (kein\w*|nicht)\b",
    "kein": r"\bnicht (ein|eine|einen|einem|einer) \w",
    "comma": r"[^,] (weil|dass|ob|wenn)\b",
    "repetition": r"\b(?!sie\b)(\w+) \1\b",
    "adjective": r"euer(e|en|er|es)\b|müdee",
}


@pytest.mark.parametrize("rule", WRONG_GERMAN)
def test_no_wrong_german(sentences, rule):
    assert [s.de for s in sentences if re.search(WRONG_GERMAN[rule], s.de)][:5] == []


@pytest.mark.parametrize(
    ("gender", "wrong"),
    [("m", "das|die|eine|einer"), ("f", "das|den|dem|ein|einen|einem"), ("n", "den|die|eine|einer")],
)
def test_articles_agree_with_their_nouns(sentences, gender, wrong):
    """Also across an adjective; "Lehrer" could be a plural and "Milch" have no article, so these say nothing."""
    rows = [row for row in NOUN.values() if row.gender == gender and row.de_plural not in (row.de, "-")]
    nouns = "|".join(row.de for row in rows)
    pattern = re.compile(rf"\b({wrong}) ([a-zäöüß]+(e|en|er|es) )?({nouns})\b", re.IGNORECASE)
    assert [s.de for s in sentences if pattern.search(s.de)][:5] == []


def test_german_nouns_are_capitalised(sentences):
    forms = {form.lower() for row in NOUN.values() if row.en != "boy" for form in (row.de, row.de_plural)}
    assert [s.de for s in sentences if forms & set(pb.words(s.de))][:5] == []  # "jungen" can be an adjective


def test_a_subordinate_clause_ends_with_its_finite_verb(sentences):
    modals = {form for verb in lexicon.MODALS.values() for form in lexicon.IRREGULAR[verb].split()}
    auxiliaries = {form for verb in ("haben", "sein") for form in lexicon.IRREGULAR[verb].split()}
    present = {
        verb.prefix + grammar.conjugate(verb.stem, verb.he_form, person)
        for verb in lexicon.VERBS
        for person in lexicon.PERSONS
    }
    for s in sentences:
        match = re.search(r", (?:weil|dass|ob|wenn) (.*)[.?]|^Wenn (.*),", s.de)
        if match:
            assert (match[1] or match[2]).split()[-1] in modals | auxiliaries | present, s
