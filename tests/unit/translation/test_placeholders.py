"""Parts that must not change, in translations of a model that was not trained; and in the batches of a training."""

import keras
import numpy as np
import pytest
from arrays import seed_weights
from texts import worded

from keras_transformer import Translator
from keras_transformer.data import masking
from keras_transformer.data.batches import EncodedPairs, Variation, encode_pairs
from keras_transformer.models.transformer import Transformer
from keras_transformer.text.placeholders import protect
from keras_transformer.text.special_ids import END_TOKEN_ID, FIRST_PLACEHOLDER_ID
from keras_transformer.text.tokenizer import Tokenizer
from keras_transformer.translation.documents import split_text


@pytest.fixture(scope="module")
def translator():
    """A model that was not trained: only the search makes its translations have the placeholders.

    It wants to end at once, and else to write placeholders.
    """
    texts = [text for pair in worded() for text in pair]
    tokenizer = Tokenizer.train(texts, None, num_placeholders=8)
    seed_weights(0)
    sizes = {"num_layers": 1, "num_heads": 2, "hidden_dim": 16, "intermediate_dim": 16}
    model = Transformer(tokenizer.vocabulary_size, output_bias=True, **sizes)
    bias = np.zeros(tokenizer.vocabulary_size, "float32")
    bias[END_TOKEN_ID : FIRST_PLACEHOLDER_ID + 8] = 6.0
    model.decoder_embedding.bias.assign(bias)
    return Translator(model, tokenizer, jit_compile=False)


def test_a_part_that_a_translation_lacks_is_reported(translator):
    text = "the dog " + " ".join(f"{{p{i}}}" for i in range(10))
    (found,) = translator.translate([text], return_scores=True)
    missing = tuple(part for part in ("{p8}", "{p9}") if part not in found.text)
    assert found.lost == missing != ()
    with pytest.warns(UserWarning, match=r"1 translations lack parts .* Received: .*\{p9\}\. Shorten the text"):
        translator.translate([text])
    with pytest.warns(UserWarning, match=r"1 translations lack parts .*\{p9\}"):
        translator.translate_html(f"<p>{text}</p>")


@pytest.mark.parametrize("settings", [{"num_beams": 1}, {"num_beams": 4}, {"sampling": True, "sampling_seed": 3}])
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
    from keras_transformer.search.beam import beam_search
    from keras_transformer.search.decoder import SpecialIds, Stage
    from keras_transformer.search.search import placeholders_of
    from keras_transformer.search.settings import SearchSettings

    (ids,) = translator.codec.source_ids(["the dog {a} sees {b}"])
    ids = np.array([ids], "int32")
    cache = "fixed" if keras.backend.backend() == "jax" else "growing"  # JAX compiles for one shape.
    decoder = translator.model.start_decoding(ids, 40, 1, cache)
    settings = SearchSettings(num_beams=1, length_penalty=0.0)
    special = SpecialIds(forbidden=(0, 1, 2), num_placeholders=8)
    found = beam_search(
        decoder, 1, 40, settings, 1, special_ids=special, stages=[Stage(40)], required=placeholders_of(ids, 8)
    )
    wanted = translator.translate(["the dog {a} sees {b}"], return_scores=True, num_beams=1, max_target_length=40)[0]
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
    assert split_text(translator, text)[1::2] == [text]
    assert not translator.translate([text], return_scores=True)[0].truncated


def test_terms_are_in_the_translation(translator):
    terms = Translator(
        translator.model,
        translator.source_tokenizer,
        jit_compile=False,
        glossary={"dog": "Dackel", "cat": "5 {a} Kater"},
    )
    found = terms.translate(["the dog sees a cat", "Dog!"])
    assert found[0].count("Dackel") == 1 and "5 {a} Kater" in found[0] and found[1] == "Dackel!"
    assert "5 {a} Kater" in terms.translate_text("the dog sees a cat. Dog!\n")
    found = terms.translate(["the dog", "my house", ""], num_hypotheses=2, return_attention=True)
    assert [[one.text.count("Dackel") for one in row] for row in found] == [[1, 1], [0, 0], [0]]
    assert "Dackel" in found[0][0].attention.target_tokens
    prefixed = terms.translate(["my house", "the dog"], prefixes=[None, "mein"])[1]
    assert prefixed.startswith("mein") and "Dackel" in prefixed


def test_a_glossary_needs_placeholders():
    tokenizer = Tokenizer.train(["a b"] * 9, None)
    model = Transformer(tokenizer.vocabulary_size, num_layers=1, num_heads=1, hidden_dim=8, intermediate_dim=8)
    with pytest.raises(ValueError, match="A glossary needs a vocabulary with placeholders"):
        Translator(model, tokenizer, glossary={"a": "b"})
    assert Translator(model, tokenizer).translate(["{a}"], return_scores=True)[0].parts == ()


def test_some_pairs_of_a_pass_are_masked(translator):
    pairs, tokenizers = worded(), (translator.source_tokenizer,) * 2
    pairs.insert(3, ("the dog " * 40, "der Hund"))  # Too long.
    plain = encode_pairs(pairs, *tokenizers, max_length=32)
    assert plain.left_out["over-long"].samples == [[4, ("the dog " * 40)[:200], "der Hund"]]
    variation = Variation(tokenizers, 32, share=0.25, words=masking.word_pairs(pairs))

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
