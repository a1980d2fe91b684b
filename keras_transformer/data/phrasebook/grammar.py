"""The grammar of the phrasebook corpus: phrases and clauses, each made in English and German at once."""

from dataclasses import dataclass, replace

from keras_transformer.data.phrasebook import lexicon
from keras_transformer.data.phrasebook.lexicon import ACC, DAT, NOM, NUMBERS, Adjective, Noun, Verb

# Phrases.

Combination = tuple[str, str, str]  # What is combined ("object", "adjective", ...) and the two words


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
    head: str = ""  # The English noun or name; empty for pronouns.
    rank: str = "definite"  # Or "pronoun", "indefinite", "kein": decides the place in the German clause.
    combinations: frozenset[Combination] = frozenset()


NOTHING = Text("", "")
WHO = Phrase(("who", "who"), ("wer", "wen", "wem"))
IT = Phrase(("it", "it"), ("es", "es", "ihm"), rank="pronoun")
PRONOUN = {
    cells[1]: Phrase((cells[1], cells[2]), cells[3:], cells[0], rank="pronoun")
    for cells in lexicon.rows(lexicon.PRONOUN_TABLE)
}


def join(*words: str) -> str:
    """The words that are not empty, with spaces."""
    return " ".join(word for word in words if word)


def ending(table: dict[str, str], gender: str, case: int) -> str:
    """An ending (or an article) by gender and case."""
    return table[gender].split()[case].replace("-", "")


def inflect(adjective: Adjective, suffix: str) -> str:
    """An adjective with an ending: "rot" + "es", but "müde" + "er" is "müder" and "teuer" + "e" is "teure"."""
    stem = adjective.de.removesuffix("e")
    return (stem[:-2] + "r" if stem.endswith("euer") else stem) + suffix


def noun_form(noun: Noun, plural: bool, case: int) -> str:
    """A noun in a case: dative plurals end in -n (but "Autos"); weak masculines differ only in the nominative."""
    if plural:
        return noun.de_plural + ("n" if case == DAT and noun.de_plural[-1] not in "ns" else "")
    return noun.de_plural if noun.gender == "w" and case != NOM else noun.de


def noun_phrase(noun: Noun, determiner: str, adjective: Adjective | None = None, plural: bool = False) -> Phrase:
    """A noun phrase; `determiner` is "the", "a", "no" (a negated "a": kein), a possessive or a number word.

    Before plurals and mass nouns "a" is no article at all, in both languages ("cold tea": "kalter Tee").
    """
    gender = "p" if plural else noun.gender.replace("w", "m")
    bare = plural or noun.en_plural == "-"
    ein_word = {"a": "" if bare else "ein", "no": "kein", **lexicon.POSSESSIVES}.get(determiner, "")
    german_cases = []
    for case in (NOM, ACC, DAT):
        if determiner == "the":
            article, endings = ending(lexicon.ARTICLES, gender, case), lexicon.WEAK
        elif ein_word:
            article, endings = ein_word + ending(lexicon.EIN_ENDINGS, gender, case), lexicon.MIXED
        else:
            article, endings = NUMBERS.get(determiner, ""), lexicon.STRONG
        description = inflect(adjective, ending(endings, gender, case)) if adjective else ""
        german_cases.append(join(article, description, noun_form(noun, plural, case)))
    en = join(adjective.en if adjective else "", noun.en_plural if plural else noun.en)
    if determiner not in ("a", "no"):
        en = join(determiner, en)
    elif not bare:
        en = join("an" if en[0] in "aeiou" else "a", en)
    combinations = {("adjective", adjective.en, noun.en)} if adjective else set()
    combinations |= {("number", determiner, noun.en)} if determiner in NUMBERS else set()
    rank = {"a": "indefinite", "no": "kein"}.get(determiner, "indefinite" if determiner in NUMBERS else "definite")
    return Phrase((en, en), tuple(german_cases), "3p" if plural else "3s", noun.en, rank, frozenset(combinations))


def name(word: str) -> Phrase:
    """A first name, which has the same form in all cases."""
    return Phrase((word, word), (word, word, word), head=word)


def prepositional(en: str, de: str, case: int, phrase: Phrase) -> Text:
    """A phrase in the case of its preposition, with a contracted article ("im" for "in dem")."""
    german_words = join(de, phrase.de[case]).split()
    start = " ".join(german_words[:2])
    german_words[:2] = lexicon.CONTRACTIONS.get(start, start).split()
    return Text(join(en, phrase.en[1]), " ".join(german_words), phrase.combinations, phrase.head)


def clock(hour: int, style: str) -> Text:
    """A time of day; "half past three" is half of the next hour in German ("halb vier")."""
    (en, de), (_, following) = lexicon.number(hour), lexicon.number(hour % 12 + 1)
    return {
        "full": Text(f"{en} o'clock", f"{'ein' if hour == 1 else de} Uhr"),
        "half": Text(f"half past {en}", f"halb {following}"),
        "past": Text(f"a quarter past {en}", f"Viertel nach {de}"),
        "to": Text(f"a quarter to {en}", f"Viertel vor {de}"),
    }[style]


def date(ordinal: tuple[str, str], month: tuple[str, str], case: int = DAT) -> Text:
    """A date, as a time ("on the third of May", "am dritten Mai") or as a subject ("der dritte Mai")."""
    combinations = frozenset({("date", ordinal[0], month[0])})
    en = f"the {ordinal[0]} of {month[0]}"
    if case == NOM:
        return Text(en, f"der {ordinal[1]} {month[1]}", combinations)
    return Text(f"on {en}", f"am {ordinal[1]}n {month[1]}", combinations)


# Clauses.


@dataclass(frozen=True)
class Clause:
    """The parts of a clause, to be put into words in either language and in any word order.

    `tense` is present, progressive, future (all three are the German present) or past. `complement` is a phrase
    that belongs to the verb ("goes into the house", "is old"), `adjunct` a free one ("with the dog").
    """

    subject: Phrase
    verb: Verb
    objects: tuple[tuple[Phrase, int], ...] = ()  # Each with its German case.
    complement: Text = NOTHING
    adjunct: Text = NOTHING
    time: Text = NOTHING
    tense: str = "present"
    modal: str = ""
    negated: bool = False

    @property
    def combinations(self) -> frozenset[Combination]:
        """All word combinations in the clause; some combinations occur only in held-out sentences."""
        verb = self.verb.prefix + self.verb.stem
        objects = [phrase for phrase, _ in self.objects]
        combinations = {("subject", phrase.head, verb) for phrase in (self.subject,) if phrase.head}
        combinations |= {("object", verb, phrase.head) for phrase in objects if phrase.head}
        combinations |= {("place", verb, text.head) for text in (self.complement, self.adjunct) if text.head}
        parts = (self.subject, *objects, self.complement, self.adjunct, self.time)
        return frozenset(combinations).union(*(part.combinations for part in parts))


def conjugate(infinitive: str, he_form: str, person: str) -> str:
    """Present tense: "ich" and the plural follow the infinitive, "du" the he-form ("du liest, er liest")."""
    if infinitive in lexicon.IRREGULAR:
        return lexicon.IRREGULAR[infinitive].split()[lexicon.PERSONS.index(person)]
    stem = he_form[:-1]
    du_form = stem + ("t" if stem[-1] in "sßz" else "st")
    return {"1s": infinitive[:-1], "2s": du_form, "3s": he_form}.get(person, infinitive)


def german_verb(clause: Clause) -> tuple[str, str]:
    """The finite verb and the second part of the verb: a prefix, an infinitive, a participle or nothing."""
    verb, person = clause.verb, clause.subject.person
    if clause.modal:
        return conjugate(lexicon.MODALS[clause.modal], "", person), verb.prefix + verb.stem
    if clause.tense != "past":
        return conjugate(verb.stem, verb.he_form, person), verb.prefix
    if verb.frame == "copula":
        return conjugate("waren", "", person), ""
    return conjugate(verb.auxiliary, "", person), verb.participle


def german(clause: Clause, order: str = "statement", front: str = "") -> str:
    """A clause in German.

    The finite verb comes second in a statement: after the subject, or between `front` and the subject. In a "question"
    it comes first or after the question word, and in a "subordinate" clause last.
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
    """The auxiliary and the main verb; questions and negations need an auxiliary ("does ... read")."""
    verb, third_person = clause.verb, clause.subject.person == "3s"
    be = {
        tense: forms.split()[lexicon.PERSONS.index(clause.subject.person)]
        for tense, forms in lexicon.ENGLISH_BE.items()
    }
    if verb.frame == "copula":
        return be[clause.tense], ""
    if clause.tense == "progressive":
        return be["present"], verb.ing
    if clause.tense == "future" or clause.modal == "can":
        return "will" if clause.tense == "future" else "can", verb.base
    base, third = verb.base, verb.third
    if clause.modal:  # "have to" and "want to" behave like main verbs.
        base = join(clause.modal, verb.base)
        third = join({"have to": "has to", "want to": "wants to"}[clause.modal], verb.base)
    if with_auxiliary:
        return "did" if clause.tense == "past" else "does" if third_person else "do", base
    return "", verb.past if clause.tense == "past" else third if third_person else base


def english(clause: Clause, order: str = "statement", front: str = "") -> str:
    """A clause in English: subject, verb, objects, places, time; in a question the auxiliary comes first."""
    auxiliary, verb = english_verb(clause, order == "question" or clause.negated)
    negation = "not" if clause.negated else ""
    objects = [phrase.en[1] for phrase, _ in clause.objects]
    rest = join(verb, *objects, clause.complement.en, clause.adjunct.en, clause.time.en)
    if order == "question":
        return join(front, auxiliary, clause.subject.en[0], negation, rest)
    return join(front, clause.subject.en[0], join(auxiliary, negation).replace("can not", "cannot"), rest)


def put(clause: Clause, order: str = "statement", front: Text = NOTHING) -> Text:
    """A clause in both languages."""
    mark = "?" if order == "question" else ""
    en, de = english(clause, order, front.en), german(clause, order, front.de)
    return Text(en + mark, de + mark, clause.combinations | front.combinations)


def time_first(clause: Clause) -> Text:
    """A statement with its time in the first place."""
    return put(replace(clause, time=NOTHING), front=clause.time)


def subordinate(en: str, de: str, clause: Clause) -> Text:
    """A subordinate clause with its conjunction; the German verb comes last."""
    return Text(f"{en} {english(clause)}", f"{de} {german(clause, 'subordinate')}", clause.combinations)


def attach(main: Text, clause: Text) -> Text:
    """A main and a subordinate clause, in German always with a comma; a question mark moves to the end."""
    mark = "?" if main.en.endswith("?") else ""
    en, de = main.en.removesuffix("?"), main.de.removesuffix("?")
    return Text(f"{en} {clause.en}{mark}", f"{de}, {clause.de}{mark}", main.combinations | clause.combinations)


def state(subject: Phrase, adjective: Adjective, tense: str = "present", negated: bool = False) -> Clause:
    """A clause that says how something is; a predicate adjective has no ending."""
    combinations = frozenset({("adjective", adjective.en, subject.head)} if subject.head else ())
    complement = Text(adjective.en, adjective.de, combinations)
    return Clause(subject, lexicon.VERB["sein"], complement=complement, tense=tense, negated=negated)
