"""What must not change in a translation: found by the same rules everywhere, and restored exactly.

tests/integration/test_web.py runs `PARTS` and random texts in JavaScript.
"""

import random

import keras
import numpy as np
import pytest
import tensorflow as tf
from texts import PARTS, random_parts

from keras_transformer import Translator, placeholders
from keras_transformer.data import EncodedPairs, Variation, encode_pairs
from keras_transformer.model import Transformer
from keras_transformer.placeholders import Glossary, mask_words, protect, protect_pair, protect_target, restored
from keras_transformer.tokenizers import END_TOKEN_ID, FIRST_PLACEHOLDER_ID, Tokenizer

# A small language whose words translate each other.
WORDS = [("dog", "Hund"), ("cat", "Katze"), ("birds", "Vögel"), ("house", "Haus"), ("garden", "Garten")]
DETERMINERS = [("the", "der"), ("a", "ein"), ("my", "mein"), ("your", "dein")]


def corpus(count=200):
    generator = random.Random(0)
    rows = [[*generator.sample(DETERMINERS, 2), *generator.sample(WORDS, 2)] for _ in range(count)]
    sides = [[" ".join([d[i], n[i], ("sees", "sieht")[i], e[i], m[i], "."]) for i in (0, 1)] for d, e, n, m in rows]
    return [tuple(pair) for pair in sides]


@pytest.fixture(scope="module")
def translator():
    """A model that was not trained: only the search makes its translations have the placeholders.

    It wants to end at once, and else to write placeholders.
    """
    texts = [text for pair in corpus() for text in pair]
    tokenizer = Tokenizer.train(texts, None, num_placeholders=8)
    keras.utils.set_random_seed(0)
    sizes = {"num_layers": 1, "num_heads": 2, "hidden_dim": 16, "intermediate_dim": 16}
    model = Transformer(tokenizer.vocabulary_size, output_bias=True, **sizes)
    bias = np.zeros(tokenizer.vocabulary_size, "float32")
    bias[END_TOKEN_ID : FIRST_PLACEHOLDER_ID + 8] = 6.0
    model.decoder_embedding.bias.assign(bias)
    return Translator(model, tokenizer, jit_compile=False)


@pytest.mark.parametrize(("text", "wanted", "parts"), PARTS)
def test_vectors(text, wanted, parts):
    assert protect(text) == (wanted, tuple(parts))


def test_a_long_list_of_numbers_takes_no_time():
    text = ",".join(["7"] * 20_000)
    assert protect(text) == (text, ())


def test_the_parts_come_back_exactly():
    for text in random_parts(3000):
        found = protect(text, 99)
        assert restored(*found) == "".join(" " if c in "\x01\x02\x03" else c for c in text)
        assert protect(found.text, 99).parts == tuple(f"⟦{i}⟧" for i in range(len(found.parts)))  # Nothing is left.


def test_the_graph_does_the_same():
    texts = random_parts(3000) + [text for text, _, _ in PARTS]
    others = random_parts(len(texts), seed=1)
    others = [a if i % 2 else f"{b} {a}" for i, (a, b) in enumerate(zip(others, texts, strict=True))]

    @tf.function
    def graph(texts, others):
        masked, parts = placeholders.graph_protect(texts)
        target = placeholders.graph_protect_target(others, parts)
        whole = placeholders.graph_restored(masked, parts, masked)
        return (
            masked,
            parts,
            target,
            whole,
            placeholders.graph_restored(target, parts, masked),
            placeholders.graph_has_words(masked),
        )

    found = [x.numpy() for x in graph(tf.constant(texts), tf.constant(others))]
    for text, other, *row in zip(texts, others, *found, strict=True):
        *strings, has_words = [[x.decode() for x in one] if isinstance(one, np.ndarray) else one for one in row]
        mine = protect(text)
        target = protect_target(other, mine.parts)
        assert strings[0].decode() == mine.text
        assert strings[1] == [*mine.parts, *[""] * (8 - len(mine.parts))]
        assert strings[2].decode() == target
        assert strings[3].decode() == restored(*mine, source=mine.text)
        assert strings[4].decode() == restored(target, mine.parts, source=mine.text)
        assert has_words == placeholders.has_words(mine.text)


@pytest.mark.parametrize(
    ("text", "parts", "wanted"),
    [
        ("⟦1⟧ und ⟦0⟧", ("{a}", "{b}"), "{b} und {a}"),
        ("Hallo", ("{a}", "", "{c}"), "Hallo {a} {c}"),  # The second one is not in the source that was read.
        ("⟦7⟧!", ("{a}",), "! {a}"),
        ("⟦0⟧", (), "⟦0⟧"),
    ],
)
def test_restored(text, parts, wanted):
    assert restored(text, parts) == wanted


@pytest.mark.parametrize(
    ("source", "translation", "wanted"),
    [
        ("Mail to a@b.org.", "Ende.⟦0⟧Dann", "Ende. a@b.org Dann"),
        ("Use %s of 5 %", "⟦1⟧⟦0⟧", "5 % %s"),
        ("A %s", "%⟦0⟧", "% %s"),  # "%%s" would be a literal "%s".
        ("<b>bold</b>", "⟦0⟧fett⟦1⟧", "<b>fett</b>"),
        ("{a} now", "现在⟦0⟧是", "现在{a}是"),
    ],
)
def test_a_part_does_not_touch_what_it_did_not_touch_in_the_source(source, translation, wanted):
    text, parts = protect(source)
    assert restored(translation, parts, source=text) == wanted
    graph = placeholders.graph_restored(tf.constant([translation]), placeholders.graph_protect([source])[1], [text])
    assert graph.numpy()[0].decode() == wanted


def test_a_part_that_a_translation_lacks_is_reported(translator):
    text = "the dog " + " ".join(f"{{p{i}}}" for i in range(10))
    (found,) = translator.translate([text], return_scores=True)
    missing = tuple(part for part in ("{p8}", "{p9}") if part not in found.text)
    assert found.lost == missing != ()
    with pytest.warns(UserWarning, match=r"1 translations lack parts .* Received: .*\{p9\}\. Shorten the text"):
        translator.translate([text])
    with pytest.warns(UserWarning, match=r"1 translations lack parts .*\{p9\}"):
        translator.translate_html(f"<p>{text}</p>")
    assert placeholders.lost("Save %s", "%%s") == ("%s",)
    assert placeholders.lost("coat {n}", "{n}", Glossary({"coat": "Mantel"})) == ()


def test_a_pair_keeps_what_both_sides_have():
    assert protect_pair("{a} {b} {a} 5 kg", "5 kg {a} %s {a}") == ("⟦0⟧ {b} ⟦2⟧ ⟦3⟧", "⟦3⟧ ⟦0⟧ %s ⟦2⟧")
    assert protect_pair("⟦4⟧ {a}", "x ⟦5⟧") == ("[4] {a}", "x [5]")


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_tokenizers(kind):
    tokenizer = Tokenizer.train([text for pair in corpus() for text in pair], None, kind, num_placeholders=8)
    assert tokenizer.num_placeholders == 8
    texts = ["the ⟦0⟧ sees ⟦7⟧.", "(⟦3⟧)⟦4⟧", "⟦8⟧", "a⟦1⟧b", "⟦"]
    ids = tokenizer.tokenize(texts)
    assert tokenizer.graph_tokenize(texts).to_list() == ids
    found = [[i - FIRST_PLACEHOLDER_ID for i in row if 0 <= i - FIRST_PLACEHOLDER_ID < 8] for row in ids]
    assert found == [[0, 7], [3, 4], [], [1], []]
    assert tokenizer.detokenize(ids)[0] == texts[0]
    if kind == "unigram":
        assert tokenizer.sample(texts[:2], 0.5, 0)[1] == ids[1]
    again = Tokenizer.train(["a b"] * 9, None)
    assert again.num_placeholders == 0
    with pytest.raises(ValueError, match="WordPiece has no placeholders"):
        Tokenizer.train(["a b"], None, "wordpiece", num_placeholders=8)


@pytest.mark.parametrize("settings", [{"num_beams": 1}, {"num_beams": 4}, {"sampling": True, "seed": 3}])
def test_a_translation_has_each_placeholder_once(translator, settings):
    texts = [
        "the dog {a} sees",
        "{x} a cat 5 kg https://x.org 😀 .",
        "my house ⟦3⟧ {a} {a}",
        "the dog",
        "two `x` birds",
    ]
    found = translator.translate(texts, return_scores=True, **settings)
    for text, translation in zip(texts, found, strict=True):
        parts = protect(text).parts
        assert translation.parts == parts
        used = [i for i in translation.token_ids if FIRST_PLACEHOLDER_ID <= i < FIRST_PLACEHOLDER_ID + 8]
        assert sorted(used) == [FIRST_PLACEHOLDER_ID + i for i in range(len(parts))]
        assert translation.token_ids[-1] == END_TOKEN_ID or not parts
        assert all(translation.text.count(part) == text.count(part) for part in parts)
        assert "⟦" not in translation.text.replace("⟦3⟧", "")


@pytest.mark.parametrize("num_beams", [1, 3])
def test_a_prefix_may_have_a_part_of_its_text(translator, num_beams):
    texts = ["the {a} dog {b} sees https://x.org", "the {a} dog"]
    prefixes = ["der {b} Hund", "{c} der"]
    found = translator.translate(texts, prefixes=prefixes, num_beams=num_beams, min_length=12)
    assert found[0].startswith(prefixes[0])
    assert all(found[0].count(part) == 1 for part in ("{a}", "{b}", "https://x.org")) and found[1].count("{a}") == 1


def test_batches_do_not_change_translations(translator):
    texts = ["the dog {a} sees", "the dog sees a cat", "", "{x}", "😀 my house"]
    together = translator.translate(texts)
    assert together == [translator.translate([text])[0] for text in texts]
    assert together[2:4] == ["", "{x}"]


def test_greedy_search_is_beam_search_with_one_beam(translator):
    """`num_beams=1` runs another loop."""
    from keras_transformer.decoding import SpecialIds, Stage, beam_search
    from keras_transformer.search import SearchSettings, placeholders_of

    (ids,) = translator.encode_sources(["the dog {a} sees {b}"])
    ids = np.array([ids], "int32")
    decoder = translator.model.start_decoding(ids, 40, 1, "growing")
    settings = SearchSettings(num_beams=1, length_penalty=0.0)
    special = SpecialIds(forbidden=(0, 1, 2), num_placeholders=8)
    found = beam_search(
        decoder, 1, 40, settings, 1, special_ids=special, stages=[Stage(40)], required=placeholders_of(ids, 8)
    )
    wanted = translator.translate(["the dog {a} sees {b}"], return_scores=True, num_beams=1, max_length=40)[0]
    row = keras.ops.convert_to_numpy(found.token_ids)[0, 0]
    assert tuple(int(i) for i in row if i) == wanted.token_ids


def test_a_text_without_words_stays_whole_however_long_it_is(translator):
    short = Translator(translator.model, translator.source_tokenizer, max_source_length=6, jit_compile=False)
    text = "? ! " * 30 + "{a} 5 kg"
    (found,) = short.translate([text], return_scores=True)
    assert (found.text, found.truncated) == (text, False)


def test_what_is_cut_off_is_not_added(translator):
    short = Translator(translator.model, translator.source_tokenizer, max_source_length=6, jit_compile=False)
    found = short.translate(["{a} the dog sees the dog sees the dog {b}"], return_scores=True)[0]
    assert found.truncated and found.parts == ("{a}", "") and "{b}" not in found.text


def test_pictures_and_scores_name_the_parts(translator):
    found = translator.translate(["the {a} dog"], return_attention=True)[0].attention
    assert "{a}" in found.source_tokens and "{a}" in found.target_tokens
    score = translator.score(["the {a} dog"], ["der {a} Hund"])[0]
    assert "{a}" in score.tokens


def test_a_long_address_does_not_make_a_sentence_too_long(translator):
    text = f"the dog sees https://x.org/{'a' * 300} ."
    assert translator.split_text(text)[1::2] == [text]
    assert not translator.translate([text], return_scores=True)[0].truncated


# Terms.


def test_terms():
    glossary = Glossary({"coat": "Mantel", "red coat": "Rotmantel", "Apple": "Apple", "straße": "road"})
    found = glossary.cut("Red  coat, coat, coats; an apple, Apple, STRASSE")
    assert found[1::2] == [("Red  coat", "Rotmantel"), ("coat", "Mantel"), ("Apple", "Apple")]
    assert "".join(part if isinstance(part, str) else part[0] for part in found) == (
        "Red  coat, coat, coats; an apple, Apple, STRASSE"
    )
    assert protect("A coat for {name}", glossary=glossary) == ("A ⟦0⟧ for ⟦1⟧", ("Mantel", "{name}"))
    assert Glossary({}).cut("a") == ["a"]


def test_terms_change_no_part_that_is_kept():
    terms = {"cat": "Katze", "org": "Org", "count": "Zahl", "Windows 2000": "W2K", "5 kg": "10 Pfund", "a 5": "x"}
    glossary = Glossary(terms)
    text = "cat@x.org: {count} cats, a cat at https://x.org/cat, Windows 2000, 2000, a 5 kg cat"
    found = protect(text, 9, glossary)
    assert found.text == "⟦0⟧: ⟦1⟧ cats, a ⟦2⟧ at ⟦3⟧, ⟦4⟧, ⟦5⟧, a ⟦6⟧ ⟦7⟧"
    kept = ("cat@x.org", "{count}", "Katze", "https://x.org/cat", "W2K", "2000", "10 Pfund", "Katze")
    assert found.parts == kept
    assert glossary.lacking("Write to cat@x.org", "Schreib an cat@x.org") is None


@pytest.mark.parametrize(("term", "text"), [("ışık", "Işık"), ("\u00b5m-scale", "\u039cm-scale")])
def test_letters_whose_capitals_are_those_of_other_letters(term, text):
    assert Glossary({term: "x"}).cut(f"{text}, {term}")[1::2] == [(text, "x"), (term, "x")]


def test_terms_are_in_the_translation(translator):
    terms = Translator(
        translator.model,
        translator.source_tokenizer,
        jit_compile=False,
        glossary={"dog": "Dackel", "cat": "5 {a} Kater"},
    )
    assert terms.translate(["the dog sees a cat"])[0].count("Dackel") == 1
    assert "5 {a} Kater" in terms.translate_text("the dog sees a cat. Dog!\n")
    assert terms.translate(["Dog!"]) == ["Dackel!"]
    found = terms.translate(["the dog", "my house", ""], num_hypotheses=2, return_attention=True)
    assert [[one.text.count("Dackel") for one in row] for row in found] == [[1, 1], [0, 0], [0]]
    assert "Dackel" in found[0][0].attention.target_tokens
    prefixed = terms.translate(["my house", "the dog"], prefixes=[None, "mein"])[1]
    assert prefixed.startswith("mein") and "Dackel" in prefixed


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("a\tb\nc\n", "line 2: a line must be a term, one tab and its translation. Received: 'c'"),
        ("a\tb\tc\n", "line 1: a line must be"),
        ("a\t \n", "line 1: a line must be"),
        ("a\tb\na\tc\n", "A term must have one translation. Received: 'a' with 'b' and with 'c'"),
    ],
)
def test_a_wrong_glossary_names_the_line(tmp_path, lines, message):
    path = tmp_path / "terms.tsv"
    path.write_text(lines)
    with pytest.raises(ValueError, match=message):
        Glossary.load(path)


def test_a_glossary_that_is_no_utf_8_is_named(tmp_path):
    path = tmp_path / "terms.tsv"
    path.write_bytes("dog\tDäckel".encode("latin-1"))
    with pytest.raises(ValueError, match=r"terms\.tsv must be UTF-8 text\. Received: 'utf-8' codec can't decode byte"):
        Glossary.load(path)


def test_a_glossary_file(tmp_path):
    path = tmp_path / "terms.tsv"
    path.write_text("# English\tGerman\n\ndog\tDackel\r\n", encoding="utf-8-sig")
    assert Glossary.load(path).terms == {"dog": "Dackel"}


def test_a_glossary_needs_placeholders():
    tokenizer = Tokenizer.train(["a b"] * 9, None)
    model = Transformer(tokenizer.vocabulary_size, num_layers=1, num_heads=1, hidden_dim=8, intermediate_dim=8)
    with pytest.raises(ValueError, match="A glossary needs a vocabulary with placeholders"):
        Translator(model, tokenizer, glossary={"a": "b"})
    assert Translator(model, tokenizer).translate(["{a}"], return_scores=True)[0].parts == ()


# Training.


def test_words_that_translate_each_other():
    words = placeholders.word_pairs(corpus())
    assert {("dog", "Hund"), ("cat", "Katze"), ("birds", "Vögel"), ("house", "Haus"), ("sees", "sieht")} <= words
    assert not {("dog", "Katze"), ("sees", "Hund")} & words
    assert placeholders.word_pairs(corpus()[:2]) == set()  # Too few to learn from.


def test_words_become_the_same_placeholders_on_both_sides():
    words, generator, count = placeholders.word_pairs(corpus()), random.Random(0), 0
    for source, target in corpus() + [("{a} Anna likes the dog", "{a} Anna mag den Hund")] * 50:
        pair = mask_words(*protect_pair(source, target), words, generator)
        names = [sorted(placeholders.regex.findall(placeholders.PLACEHOLDER, text)) for text in pair]
        assert names[0] == names[1] and len(set(names[0])) == len(names[0]) >= 1
        count += len(names[0])
    assert count > 260
    assert mask_words("x y", "z", words, generator) is None


def test_some_pairs_of_a_pass_are_masked(translator):
    pairs, tokenizers = corpus(), (translator.source_tokenizer,) * 2
    pairs.insert(3, ("the dog " * 40, "der Hund"))  # Too long.
    plain = encode_pairs(pairs, *tokenizers, max_length=32)
    assert plain.left_out["over-long"].samples == [[4, ("the dog " * 40)[:200], "der Hund"]]
    variation = Variation(tokenizers, 32, share=0.25, words=placeholders.word_pairs(pairs))

    def drawn(number):
        pairs = list(zip(plain.source, plain.target, strict=True))
        return EncodedPairs(*zip(*variation(pairs, number, range(len(pairs))), strict=True))

    found = drawn(0)
    changed = [i for i, (a, b) in enumerate(zip(plain.source, found.source, strict=True)) if a.tolist() != b]
    assert 20 < len(changed) < 90 and any(i > 3 for i in changed)
    for i in changed:
        rows = [side[i] for side in (found.source, found.target)]
        used = [{x - FIRST_PLACEHOLDER_ID for x in row if 0 <= x - FIRST_PLACEHOLDER_ID < 8} for row in rows]
        assert used[0] == used[1] != set()
        text = tokenizers[0].detokenize([plain.target[i][:-1]])[0].split()
        new = tokenizers[0].detokenize([found.target[i][:-1]])[0].split()
        assert len(text) == len(new) and sum(a != b for a, b in zip(text, new, strict=True)) == len(used[1])
    assert drawn(0) == found


def test_the_rules_fit_into_the_memory_of_re2(capfd):
    """TensorFlow's RE2 takes a slow way for a pattern that is too large, and prints a line for each text.

    A bounded repetition such as `\\p{L}{1,64}` makes a pattern 64 times as large.
    """
    placeholders.graph_protect(
        tf.constant(["My sister is buying {count} coats for 5 kg at https://x.org and in Aachen: %d%%."])
    )
    assert "out of memory" not in capfd.readouterr().err
