"""The embedded corpus `phrasebook`: English-German sentence pairs from a small bilingual grammar.

`phrasebook` returns the pairs, `corpus` also the construction and the word combinations of each sentence. The words are
in `lexicon`, the rules in `grammar`, the constructions here.

Three decisions make English -> German a function that a small model can learn and generalise:

- An English word or construction has one German rendering: "you" is always "du", the simple past is always the Perfekt
  (only "was" is "war"), "will" with a time is the present tense, "if" is "wenn" and "whether" is "ob".
- German word order is fixed: pronouns, definite objects, time, free phrases, indefinite objects, "nicht", complement.
- A small share of word combinations (such as a verb with an object) is reserved for the held-out sentences: each of
  these has at least one, and no training sentence has any. So a model cannot translate them from memory.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain, islice
from random import Random

from keras_transformer.data.phrasebook import grammar, lexicon
from keras_transformer.data.phrasebook.grammar import NOTHING, PRONOUN, Clause, Phrase, Text, attach, put
from keras_transformer.data.phrasebook.lexicon import ACC, ADJECTIVE, DAT, NOUN, PEOPLE, PLACES, VERB, Verb

# Random clauses.


def random_clock(rng: Random) -> Text:
    """A time of day, every quarter of an hour."""
    return grammar.clock(rng.randint(1, 12), rng.choice(("full", "half", "past", "to")))


def random_time(rng: Random, tense: str, with_clock: bool) -> Text:
    """A time that fits the tense, sometimes with the hour ("tomorrow at three o'clock")."""
    dated = tense in ("future", "past")
    day, month = rng.choice(lexicon.pairs(lexicon.DAYS)), rng.choice(lexicon.pairs(lexicon.MONTHS))
    if dated and rng.random() < 0.2:
        return grammar.date(rng.choice(lexicon.pairs(lexicon.ORDINALS)), month)
    en, de = rng.choice(lexicon.TIMES[tense] + lexicon.DATED_TIMES * dated)
    time = Text(en.format(day=day[0], month=month[0]), de.format(day=day[1], month=month[1]))
    names_day = any(word in en for word in ("{day}", "every day", "tomorrow", "yesterday"))
    if with_clock and names_day and rng.random() < 0.4:
        hour = random_clock(rng)
        time = Text(f"{time.en} at {hour.en}", f"{time.de} um {hour.de}")
    return time


def random_tense(rng: Random, verb: Verb, negated: bool) -> tuple[str, str, Text]:
    """Tense, modal and time: states have only the plain present, habits are not negated."""
    options = ["present"]
    if "x" not in verb.uses:
        options += ["past", "past", "future"]
        options += ["modal", "modal"] if "t" not in verb.uses else []
    options += ["progressive"] if "n" in verb.uses else []
    options += ["habit"] if "h" in verb.uses and not negated else []
    choice = rng.choice(options)
    modal = rng.choice(list(lexicon.MODALS)) if choice == "modal" else ""
    # Without a time, "they put" or "they read" could be either tense.
    needs_time = choice in ("progressive", "habit", "future") or (choice == "past" and verb.past == verb.base)
    timed = needs_time or (choice != "present" and rng.random() < 0.5)
    time = random_time(rng, choice.replace("modal", "future"), not negated) if timed else NOTHING
    return "present" if choice in ("habit", "modal") else choice, modal, time


def random_phrase(
    rng: Random, kinds: tuple[str, ...], determiners: tuple[str, ...] = ("the",), plurals: float = 0.0
) -> Phrase:
    """A noun of these kinds with a determiner ("my" is any possessive) and sometimes an adjective."""
    noun = rng.choice([noun for noun in NOUN.values() if noun.kind in kinds])
    can_be_plural = noun.en_plural != "-" and noun.kind not in ("parent", "opening", "transport", *PLACES)
    plural = can_be_plural and rng.random() < plurals
    determiner = rng.choice(determiners)
    if noun.kind in ("kin", "parent") and "the" in determiners:
        determiner = "my"  # One has "a sister", but visits "my sister".
    if determiner == "my":
        personal = noun.kind not in ("adult", "youth", "transport", "opening", "dish", "drink", *PLACES)
        determiner = rng.choice(list(lexicon.POSSESSIVES)) if personal else "the"
    if plural and determiner == "a" and rng.random() < 0.6:
        determiner = lexicon.number(rng.randint(2, 12))[0]
    fitting = [adjective for adjective in ADJECTIVE.values() if noun.kind in adjective.kinds]
    adjective = rng.choice(fitting) if fitting and rng.random() < 0.35 else None
    return grammar.noun_phrase(noun, determiner, adjective, plural)


def random_person(rng: Random, pronouns: float = 0.3, plurals: float = 0.25) -> Phrase:
    """A pronoun, a name or a phrase for one or more people."""
    if rng.random() < pronouns:
        return rng.choice(list(PRONOUN.values()))
    if rng.random() < 0.2:
        return grammar.name(rng.choice(lexicon.NAMES))
    return random_phrase(rng, PEOPLE, ("the", "the", "the", "a"), plurals)


def random_subject(rng: Random, verb: Verb) -> Phrase:
    """The subject: people, and for some verbs also animals or trains."""
    if "t" in verb.uses and rng.random() < 0.5:
        return random_phrase(rng, ("transport",))
    if "a" in verb.uses and rng.random() < 0.3:
        return random_phrase(rng, ("animal",), ("the", "my", "a"), plurals=0.3)
    return random_person(rng)


def random_other(rng: Random, subject: Phrase) -> Phrase:
    """A definite person other than the subject."""
    while True:
        person = random_person(rng, plurals=0.1)
        same_speaker = person.person[0] == subject.person[0] != "3"
        same = same_speaker or person == subject or (person.head and person.head == subject.head)
        if person.rank != "indefinite" and not same:
            return person


def random_place(rng: Random, table: str, kinds: tuple[str, ...], definite: bool = False) -> Text:
    """A preposition from a table, with a noun that the preposition and the verb allow."""
    allowed = [(row, tuple(kind for kind in row[3].split(",") if kind in kinds)) for row in lexicon.rows(table)]
    (en, de, case, _), fitting = rng.choice([(row, fitting) for row, fitting in allowed if fitting])
    determiners = ("the",) if definite else ("the", "the", "the", "the", "a")
    return grammar.prepositional(en, de, int(case), random_phrase(rng, fitting, determiners))


def random_adjunct(rng: Random, verb: Verb, subject: Phrase) -> Text:
    """A phrase that the verb allows but does not require: for, with or without somebody, or a place."""
    uses = [use for use in "bccl" if use in verb.uses]
    if not uses or rng.random() < 0.6:
        return NOTHING
    use = rng.choice(uses)
    if use == "l":
        return random_place(rng, lexicon.LOCATIONS, ("room", "nature"))
    companionship = rng.choice((("with", "mit", DAT), ("without", "ohne", ACC)))
    return grammar.prepositional(*(("for", "für", ACC) if use == "b" else companionship), random_other(rng, subject))


def random_objects(rng: Random, verb: Verb, subject: Phrase, negated: bool) -> tuple[tuple[Phrase, int], ...]:
    """The objects that the verb requires; a negated clause has "kein" instead of "ein"."""
    article = "no" if negated else "a"
    plurals = 0.3 if "m" in verb.uses else 0.0
    if verb.base == "have":
        return ((random_phrase(rng, verb.kinds, (article,), plurals), ACC),)
    if verb.frame == "dative":
        return ((random_other(rng, subject), DAT),)
    if verb.frame == "giving":
        theme, receiver = random_phrase(rng, verb.kinds, (article,), plurals), random_other(rng, subject)
        if receiver.en[1] == "her" and not theme.en[1].startswith(("a ", "an ")):
            receiver = PRONOUN["he"]  # In "brings her water", "her" could be a possessive.
        return (receiver, DAT), (theme, ACC)
    if verb.frame in ("accusative", "placing"):
        things = tuple(kind for kind in verb.kinds if kind not in PEOPLE)
        if "kin" in verb.kinds and (not things or rng.random() < 0.5):
            return ((random_other(rng, subject), ACC),)
        return ((random_phrase(rng, things, ("the", "the", "my", article, article), plurals), ACC),)
    return ()


def random_clause(rng: Random, negations: float = 0.15, general: bool = False) -> Clause:
    """All parts of a clause; a `general` clause is a habit without a time."""
    frames = ["accusative"] * 4 + ["dative", "giving", "plain", "location", "motion", "placing"]
    frame = rng.choice([frame for frame in frames if not (general and frame in ("giving", "placing"))])
    verb = rng.choice([verb for verb in lexicon.VERBS if verb.frame == frame and ("h" in verb.uses or not general)])
    subject = random_subject(rng, verb)
    negated = rng.random() < negations
    tense, modal, time = random_tense(rng, verb, negated)
    if general:
        tense, time = "present", NOTHING
    places = {
        "placing": (lexicon.DESTINATIONS, ("furniture", "seat")),
        "location": (lexicon.LOCATIONS, verb.kinds),
        "motion": (lexicon.DIRECTIONS, verb.kinds),
    }
    complement = random_place(rng, *places[frame], definite=negated) if frame in places else NOTHING
    objects = random_objects(rng, verb, subject, negated)
    adjunct = NOTHING if negated else random_adjunct(rng, verb, subject)
    return Clause(subject, verb, objects, complement, adjunct, time, tense, modal, negated)


# Constructions.


def statement(rng: Random) -> Text:
    """A main clause; the German verb stays second when the time comes first."""
    clause = random_clause(rng)
    return grammar.time_first(clause) if rng.random() < 0.45 else put(clause)


def yes_no_question(rng: Random) -> Text:
    """A question that begins with the verb."""
    return put(random_clause(rng, negations=0), "question")


def who_question(rng: Random) -> Text:
    """A question about the subject, in the word order of a statement."""
    text = put(replace(random_clause(rng, negations=0), subject=grammar.WHO))
    return replace(text, en=text.en + "?", de=text.de + "?")


def wh_question(rng: Random) -> Text:
    """A question for a part of a clause, which is left out; German distinguishes "wo" and "wohin", "wen" and "wem"."""
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
        is_person = phrase.head in lexicon.NAMES or NOUN[phrase.head].kind in PEOPLE
        what = Text("who", grammar.WHO.de[case]) if is_person else Text("what", "was")
        options.append((what, replace(clause, objects=())))
    front, rest = rng.choice(options)
    return put(rest, "question", front)


def reported(rng: Random) -> Text:
    """A clause with "that" or "whether": "She says that ...", "Do you know whether ...?"."""
    subject = random_person(rng, pronouns=0.6, plurals=0.1)
    style = rng.choice(("that", "that", "ask", "doubt", "question"))
    if style == "that":
        verb = rng.choice([verb for verb in lexicon.VERBS if verb.frame == "reporting"])
        return attach(put(Clause(subject, verb)), grammar.subordinate("that", "dass", random_clause(rng)))
    inner = random_clause(rng, negations=0)
    if style == "ask":  # Nobody says "I ask whether".
        outer = put(Clause(subject if subject.person[0] == "3" else PRONOUN["she"], VERB["fragen"]))
    elif style == "doubt" or inner.subject.person == "2s":
        outer = put(Clause(subject, VERB["wissen"], negated=True))
    else:
        outer = put(Clause(PRONOUN["you"], VERB["wissen"]), "question")
    return attach(outer, grammar.subordinate("whether", "ob", inner))


def because(rng: Random) -> Text:
    """A feeling and its reason."""
    feeling = grammar.state(random_person(rng, pronouns=0.6), ADJECTIVE[rng.choice(("happy", "sad"))])
    return attach(put(feeling), grammar.subordinate("because", "weil", random_clause(rng)))


def conditional(rng: Random) -> Text:
    """A clause with "wenn", after the main clause or in its first place, where the main verb follows at once."""
    main = random_clause(rng, negations=0.1, general=True)
    condition = Clause(grammar.IT, VERB[rng.choice(("regnen", "schneien"))])
    if rng.random() < 0.7:
        person = main.subject.rank == "pronoun"
        subject = main.subject if person else grammar.noun_phrase(NOUN["weather"], "the")
        adjectives = ("tired", "hungry", "sick", "happy", "sad") if person else ("good", "bad", "cold")
        condition = grammar.state(subject, ADJECTIVE[rng.choice(adjectives)], negated=rng.random() < 0.2)
    clause = grammar.subordinate("if", "wenn", condition)
    if rng.random() < 0.4:
        return attach(put(main), clause)
    return put(main, front=replace(clause, en=clause.en + ",", de=clause.de + ","))


def description(rng: Random) -> Text:
    """How people and things are or were, also as a question."""
    subject = random_phrase(rng, tuple(lexicon.NOUN_TABLE), ("the", "my"), plurals=0.25)
    if rng.random() < 0.3:
        subject = random_person(rng)
    kind = NOUN[subject.head].kind if subject.head in NOUN else "adult"
    attributes = {adjective for what, adjective, _ in subject.combinations if what == "adjective"}
    fitting = [a for a in ADJECTIVE.values() if kind in a.kinds and a.en not in attributes]
    if not fitting or attributes:
        return description(rng)
    clause = grammar.state(subject, rng.choice(fitting), rng.choice(("present", "present", "past")))
    if rng.random() < 0.3:
        return put(clause, "question")
    return put(replace(clause, negated=rng.random() < 0.2))


def whereabouts(rng: Random) -> Text:
    """Where somebody or something is, also as a question."""
    if rng.random() < 0.6:
        subject = random_phrase(rng, ("reading", "clothes", "thing", "animal"), ("the", "my"), plurals=0.2)
        place = random_place(rng, lexicon.LOCATIONS, ("furniture", "seat"))
    else:
        subject = random_phrase(rng, (*PEOPLE, "animal"), ("the", "my"), plurals=0.2)
        place = random_place(rng, lexicon.LOCATIONS, ("room", "nature", "home"))
    clause = Clause(subject, VERB["sein"])
    if rng.random() < 0.2:
        return put(clause, "question", Text("where", "wo"))
    return put(replace(clause, complement=place, negated=rng.random() < 0.15))


def measure(rng: Random) -> Text:
    """How old somebody is, what something costs or how many somebody has."""
    style = rng.choice(("age", "age", "price", "price", "amount"))
    if style == "amount":
        noun = rng.choice([noun for noun in NOUN.values() if noun.kind in VERB["haben"].kinds])
        combinations = frozenset({("object", "haben", noun.en)})
        how = Text(f"how many {noun.en_plural}", f"wie viele {noun.de_plural}", combinations)
        return put(Clause(random_other(rng, grammar.IT), VERB["haben"]), "question", how)
    small = rng.random() < 0.4
    value = rng.randint(2, 16 if style == "age" else 19) if small else rng.randrange(20, 101, 5)
    if style == "age":
        subject = random_phrase(rng, ("youth",)) if small else random_other(rng, grammar.IT)
        verb, unit, question = VERB["sein"], Text("years old", "Jahre alt"), Text("how old", "wie alt")
    else:
        kinds = ("food", "dish", "drink", "reading") if small else ("clothes", "furniture", "seat", "thing")
        subject = random_phrase(rng, kinds, plurals=0.3)
        verb, unit, question = VERB["kosten"], Text("euros", "Euro"), Text("how much", "wie viel")
    clause = Clause(subject, verb)
    if rng.random() < 0.25:
        return put(clause, "question", question)
    en, de = lexicon.number(value)
    combinations = frozenset({("number", en, subject.head)} if subject.head else ())
    return put(replace(clause, complement=Text(f"{en} {unit.en}", f"{de} {unit.de}", combinations)))


def belonging(rng: Random) -> Text:
    """Whose something is; "gehören" takes the dative."""
    subject = random_phrase(rng, ("animal", "vehicle", "clothes", "thing", "home"), plurals=0.3)
    objects = ((random_other(rng, subject), DAT),)
    return put(Clause(subject, VERB["gehören"], objects, negated=rng.random() < 0.2))


def calendar(rng: Random) -> Text:
    """The time, the day and the date."""
    if rng.random() < 0.4:
        hour = random_clock(rng)
        return Text(f"it is {hour.en}", f"es ist {hour.de}")
    en, de = rng.choice((("today is", "heute ist"), ("tomorrow is", "morgen ist"), ("yesterday was", "gestern war")))
    day = Text(*rng.choice(lexicon.pairs(lexicon.DAYS)))
    if rng.random() < 0.7:
        day = grammar.date(
            rng.choice(lexicon.pairs(lexicon.ORDINALS)), rng.choice(lexicon.pairs(lexicon.MONTHS)), lexicon.NOM
        )
    return Text(f"{en} {day.en}", f"{de} {day.de}", day.combinations)


# With their relative frequencies.
CONSTRUCTIONS = {
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

# Corpus.

SIZES = {"train": 12_000, "validation": 600, "test": 600}
MAX_WORDS = 14
RESERVED_PERCENT = 5
MIN_COUNT = 8  # How often each word of a held-out sentence occurs in the training sentences, at least.


@dataclass(frozen=True)
class Sentence:
    """A sentence pair, the name of its construction and the word combinations in it."""

    en: str
    de: str
    construction: str
    combinations: frozenset[grammar.Combination]

    @property
    def is_held_out(self) -> bool:
        """Whether a reserved combination keeps the sentence out of training."""
        return any(is_reserved(combination) for combination in self.combinations)


def is_reserved(combination: grammar.Combination) -> bool:
    """Whether a combination is reserved for the held-out sentences: decided by its hash, so equal for every seed."""
    digest = hashlib.sha256("|".join(combination).encode()).digest()
    return int.from_bytes(digest[:4], "big") % 100 < RESERVED_PERCENT


def words(text: str) -> list[str]:
    """The words of a sentence, without punctuation."""
    return text.rstrip(".?").replace(",", "").split()


def random_sentence(rng: Random) -> Sentence:
    """A sentence of a random construction, with a capital and a final mark."""
    construction = rng.choices(list(CONSTRUCTIONS), list(CONSTRUCTIONS.values()))[0]
    text = construction(rng)
    mark = "" if text.en.endswith("?") else "."
    en, de = (part[0].upper() + part[1:] + mark for part in (text.en, text.de))
    return Sentence(en, de, construction.__name__, text.combinations)


def distinct_sentences(rng: Random) -> Iterator[Sentence]:
    """Yields short sentences endlessly; no English and no German sentence occurs twice."""
    seen: set[str] = set()
    while True:
        sentence = random_sentence(rng)
        texts = {sentence.en, sentence.de}
        if not seen & texts and all(len(words(text)) <= MAX_WORDS for text in texts):
            seen |= texts
            yield sentence


def corpus(seed: int = 0) -> dict[str, list[Sentence]]:
    """The `Sentence`s of the splits "train", "validation" and "test"."""
    train, held_out = [], []
    sentences = distinct_sentences(Random(seed))
    while len(train) < SIZES["train"]:
        sentence = next(sentences)
        (held_out if sentence.is_held_out else train).append(sentence)
    counts = Counter(word for sentence in train for text in (sentence.en, sentence.de) for word in words(text))
    candidates = chain(held_out, (sentence for sentence in sentences if sentence.is_held_out))
    known = (s for s in candidates if all(counts[word] >= MIN_COUNT for word in words(s.en) + words(s.de)))
    return {"train": train, **{split: list(islice(known, SIZES[split])) for split in ("validation", "test")}}


def phrasebook(seed: int = 0) -> dict[str, list[tuple[str, str]]]:
    """English-German sentence pairs: 12,000 for "train", 600 each for "validation" and "test"."""
    return {split: [(s.en, s.de) for s in sentences] for split, sentences in corpus(seed).items()}
