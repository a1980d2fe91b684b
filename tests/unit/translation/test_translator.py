"""The translator: order of texts, empty texts, n-best lists, scores, settings."""

import os
import threading
from types import SimpleNamespace

import keras
import numpy as np
import pytest
from arrays import seed_weights

from keras_transformer.models.transformer import Transformer
from keras_transformer.search.search import has_loop
from keras_transformer.settings import ConfigError
from keras_transformer.text.special_ids import END_TOKEN_ID, PAD_TOKEN_ID, START_TOKEN_ID, UNKNOWN_TOKEN_ID
from keras_transformer.text.tokenizer import Tokenizer
from keras_transformer.translation import batched_search, scorer
from keras_transformer.translation.batched_search import available_cpus
from keras_transformer.translation.compiled import (
    BATCH_SIZES,
    COMPILE_AFTER,
    COMPILE_AFTER_IDLE,
    FORWARD_ROWS,
    SOURCE_LENGTHS,
    AutoCompiled,
)
from keras_transformer.translation.results import Attention
from keras_transformer.translation.translator import Translator

# Padding, start tokens and, by default, unknown tokens are never written, even if the model prefers them.


@pytest.fixture(scope="module")
def wants():
    """`wants(token_id)` is a translator whose model gives one token nearly all of the probability."""
    seed_weights(0)
    tokenizer = Tokenizer.train(["a small dog", "a small cat", "a big dog"] * 9, vocabulary_size=17)
    sizes = {"num_layers": 1, "num_heads": 1, "hidden_dim": 8, "intermediate_dim": 5, "tie_embeddings": "none"}
    model = Transformer(17, **sizes)
    norm = model.decoder_blocks[-1].feed_forward_norm
    norm.gamma.assign(0.01 * np.ones(8))
    norm.beta.assign(np.ones(8))  # The last hidden state is about (1, ..., 1).
    shared = Translator(model, tokenizer, max_target_length=7)  # What was compiled for one token is there for the next.

    def of(token_id):
        projection = np.random.default_rng(1).normal(scale=0.1, size=(8, 17))
        projection[:, token_id] = 2.0
        model.decoder_embedding.token_embedding.reverse_embeddings.assign(projection)
        return shared

    return of


@pytest.mark.parametrize("token_id", [PAD_TOKEN_ID, UNKNOWN_TOKEN_ID, START_TOKEN_ID])
@pytest.mark.parametrize(
    "settings",
    [{"num_beams": 1}, {"sampling": True}, {"num_beams": 2, "repetition_penalty": 1.3}],
    ids=str,
)
def test_no_translation_has_padding_unknown_or_start_tokens(wants, token_id, settings):
    translator = wants(token_id)
    for jit_compile in (False, True) if settings == {"num_beams": 1} else (False,):
        translator.search.jit_compile = jit_compile
        (found,) = translator.translate(["a dog"], return_scores=True, **settings)
        assert found.token_ids
        assert not {PAD_TOKEN_ID, UNKNOWN_TOKEN_ID, START_TOKEN_ID} & set(found.token_ids)
    translator.search.jit_compile = False
    (found,) = translator.translate(["a dog"], return_scores=True, allow_unknown=True, **settings)
    assert UNKNOWN_TOKEN_ID in found.token_ids or token_id != UNKNOWN_TOKEN_ID
    assert not {PAD_TOKEN_ID, START_TOKEN_ID} & set(found.token_ids)


def test_a_translation_that_repeats_itself_is_searched_again_on_every_backend():
    texts = ["a small dog", "", " ".join(["dog"] * 20)]
    tokenizer = Tokenizer.train(["a small dog", "a small cat", "a big dog"] * 9, vocabulary_size=17)
    model = Transformer(17, num_layers=1, num_heads=1, hidden_dim=4, intermediate_dim=5)
    model.set_weights([0.0 * weight for weight in model.get_weights()])  # All tokens are equally probable, ...
    translator = Translator(model, tokenizer, num_beams=2, max_target_length=16, min_length=12, jit_compile=False)
    before = translator.translate(texts, return_scores=True)
    after = translator.translate(texts, return_scores=True, avoid_loops=True)
    assert has_loop(before[0].token_ids) and not has_loop(after[0].token_ids)  # ... and the first one is repeated.
    assert after[0] == translator.translate(texts[:1], return_scores=True, no_repeat_ngram_size=3)[0]
    assert after[1:] == before[1:]  # The last source repeats itself, too.
    assert translator.translate(texts[:1], avoid_loops=True, sampling=True, sampling_seed=1)  # Sampling is left alone.


def test_a_folder_that_is_not_a_run_folder_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"is not the folder of a trained run: it has no config\.json"):
        Translator.load(tmp_path)


def test_a_translator_uses_the_cores_that_its_process_may_use():
    allowed = os.sched_getaffinity(0)
    assert available_cpus() == len(allowed)
    try:
        os.sched_setaffinity(0, {min(allowed)})
        assert available_cpus() == 1
    finally:
        os.sched_setaffinity(0, allowed)


def test_the_layer_that_aligns_both_ways_counts_most():
    """Block 1 points from each token to another one; block 0 to the first one, with larger scores; 2 is even."""
    right = [2, 0, 1, 3]
    scores = np.zeros((3, 2, 4, 4))
    scores[0, :, :, 0] = 0.9
    scores[1, :, range(4), right] = 0.5
    scores[2] = 0.25
    attention = Attention(list("abcd"), list("wxyz"), scores.astype("float32"))
    assert attention.alignment() == right
    assert attention.alignment(layer=0) == [0, 0, 0, 0]
    one_token = Attention(["a"], ["b", "c"], np.ones((2, 1, 2, 1), "float32"))
    assert one_token.alignment() == [0, 0]


# What needs no trained model.

TEXTS = ["a small dog", "a big cat and a small dog and a dog", "dog", "a cat a cat", "big"]


@pytest.fixture(scope="module")
def tiny():
    """An untrained translator. Tests share its compiled searches, so most of them search with one beam."""
    seed_weights(2)
    tokenizer = Tokenizer.train(["a small dog", "a small cat", "a big dog"] * 9, vocabulary_size=17)
    model = Transformer(17, num_layers=1, num_heads=1, hidden_dim=6, intermediate_dim=5)
    return Translator(model, tokenizer, num_beams=1, max_target_length=11, jit_compile=False)


def another(tiny, **arguments):
    """Another translator with the same model: its searches are compiled anew."""
    return Translator(tiny.model, tiny.source_tokenizer, **{"num_beams": 1, "jit_compile": False, **arguments})


def test_an_empty_list_gives_an_empty_list(tiny):
    assert tiny.translate([]) == []


def test_one_string_instead_of_a_list_is_an_error(tiny):
    for odd in (None, b"a dog", 7):
        with pytest.raises(TypeError, match=rf"`texts` must be a list of strings\. Received: {odd!r} at texts\[1\]\."):
            tiny.translate(["a dog", odd])
    with pytest.raises(TypeError, match=r"`texts` must be a list of strings\. Received: one string"):
        tiny.translate("a sentence")
    with pytest.raises(TypeError, match=r"Received: one string. Pass \[text\]"):
        next(tiny.stream("a dog"))


def test_half_of_a_surrogate_pair_is_an_error(tiny):
    message = r"must be valid Unicode\. Received: half of a surrogate pair, '\\ud83d', at 2 of 'a \\ud83d dog'"
    with pytest.raises(ValueError, match=rf"`texts\[1\]` {message}"):
        tiny.translate(["a dog", "a \ud83d dog"])
    with pytest.raises(ValueError, match=f"`text` {message}"):
        tiny.translate_text("a \ud83d dog")


@pytest.mark.parametrize("num_hypotheses", [0, 5])
def test_more_hypotheses_than_beams_is_an_error(tiny, num_hypotheses):
    with pytest.raises(ValueError, match="`num_hypotheses` must be between 1 and `num_beams`"):
        tiny.translate(["x"], num_beams=4, num_hypotheses=num_hypotheses)


def test_there_must_be_one_prefix_per_text(tiny):
    with pytest.raises(ValueError, match="`prefixes` must be a list with one entry per text"):
        tiny.translate(["a", "b"], prefixes=["x"])


def test_score_needs_lists_of_the_same_length(tiny):
    assert tiny.score([], []) == []
    with pytest.raises(ValueError, match="`sources` and `targets` must have the same length"):
        tiny.score(["a"], [])
    with pytest.raises(TypeError, match="`targets` must be a list of strings"):
        tiny.score(["a"], "b")


def test_a_setting_that_does_not_exist_is_an_error(tiny):
    with pytest.raises(TypeError, match=r"No such setting of a search: beams\. There are: num_beams, length_penalty"):
        tiny.translate(["x"], beams=3)
    with pytest.raises(TypeError, match="No such setting of a search: jit"):
        another(tiny, jit=True)


def test_settings_are_checked_in_the_constructor_and_in_each_call(tiny):
    with pytest.raises(ValueError, match=r"`num_beams` must be int\. Received: 2\.5"):
        another(tiny, num_beams=2.5)
    with pytest.raises(ValueError, match="`max_target_length` must be at least 1"):
        tiny.translate(["x"], max_target_length=0)
    with pytest.raises(ConfigError, match=r"`jit_compile` must be one of \('auto', True, False\). Received: 'yes'"):
        another(tiny, jit_compile="yes")


def test_a_translator_needs_a_transformer(tiny):
    model = keras.Sequential([keras.layers.Dense(3)])
    with pytest.raises(TypeError, match=r"needs a `keras_transformer.Transformer`.*Received: Sequential"):
        Translator(model, tiny.source_tokenizer)


def test_a_tokenizer_of_another_size_is_an_error(tiny):
    model = Transformer(19, num_layers=1, num_heads=1, hidden_dim=6, intermediate_dim=5)
    with pytest.raises(ValueError, match="The source tokenizer and the model must have the same vocabulary"):
        Translator(model, tiny.source_tokenizer)


def test_one_beam_is_greedy_search_whatever_the_length_penalty(tiny):
    assert tiny.translate(TEXTS, length_penalty=2.0) == tiny.translate(TEXTS)


def test_over_long_sources_are_cut_and_marked(tiny):
    translator = another(tiny, max_source_length=6, max_target_length=5)
    with pytest.warns(UserWarning, match=r"1 of 2 texts have more .* the first is texts\[1\].*max_source_length=6"):
        first = translator.translate(["a", "a small dog " * 50])
    second = translator.translate(["", "a", "a small dog " * 20], return_scores=True)
    assert first == [translation.text for translation in second[1:]]
    assert [translation.truncated for translation in second] == [False, False, True]
    assert [score.truncated for score in translator.score(["a", "a small dog " * 2], ["b", "b"])] == [False, True]


def test_max_length_limits_the_translation(tiny):
    for most, settings in ((11, {}), (3, {"max_target_length": 3})):  # That of the constructor, and that of the call.
        lengths = [len(found.token_ids) for found in tiny.translate(TEXTS, return_scores=True, **settings)]
        assert max(lengths) == most  # An untrained model rarely ends.


def test_learned_positions_limit_the_translation(tiny):
    seed_weights(0)
    sizes = {"num_layers": 1, "num_heads": 1, "hidden_dim": 6, "intermediate_dim": 5}
    model = Transformer(17, **sizes, position_type="learned", max_length=9)
    translator = Translator(model, tiny.source_tokenizer, max_source_length=9, num_beams=1)
    (found,) = translator.translate(["a small dog and a big cat"], return_scores=True)
    assert found.truncated
    assert len(found.token_ids) <= 9


def test_limits_are_per_sentence_and_relative_to_the_source(tiny):
    """In a batch with a long sentence, a short sentence has the same limit as alone."""
    texts = ["a", "a small dog " * 9, "a cat"]
    found = tiny.translate(texts, return_scores=True, max_target_length=None, max_length_ratio=0.5)
    limits = [int(0.5 * (len(ids) + 1) + 16) for ids in tiny.source_tokenizer.tokenize(texts)]
    lengths = [len(translation.token_ids) for translation in found]
    assert all(length <= limit for length, limit in zip(lengths, limits, strict=True))
    assert max(lengths) > min(limits)


def test_min_length_and_ngram_rules_hold_in_the_translation(wants):
    ends = wants(END_TOKEN_ID)
    for found in ends.translate(TEXTS[:3], return_scores=True, num_beams=1, min_length=5):
        assert len(found.token_ids) >= 5
    repeats = wants(9)
    for settings, distinct in (({}, False), ({"no_repeat_ngram_size": 1}, True)):
        for found in repeats.translate(TEXTS[:3], return_scores=True, num_beams=1, avoid_loops=False, **settings):
            assert (len(set(found.token_ids)) == len(found.token_ids)) == distinct


def test_a_sample_depends_only_on_the_seed_and_the_place_of_the_text(tiny):
    settings = {"sampling": True, "temperature": 3.0, "num_hypotheses": 3, "return_scores": True}
    found = tiny.translate(TEXTS, **settings)
    assert found == tiny.translate(TEXTS, **settings)
    for alone, together in zip(tiny.translate(TEXTS[:2], **settings), found, strict=False):
        assert [hypothesis.text for hypothesis in alone] == [hypothesis.text for hypothesis in together]
    assert found != tiny.translate(TEXTS, **settings, sampling_seed=1)
    for hypotheses in found:
        scores = [hypothesis.score for hypothesis in hypotheses]
        assert scores == sorted(scores, reverse=True)


def test_score_holds_the_logits_of_few_rows_at_a_time(tiny, monkeypatch):
    rows, real = [], scorer.compile_function

    def counted(*arguments, **settings):
        call = real(*arguments, **settings)
        return lambda inputs: rows.append(len(inputs["labels"])) or call(inputs)

    monkeypatch.setattr(scorer, "compile_function", counted)
    translator = another(tiny)
    texts = TEXTS * 4
    found = translator.score(texts, texts[::-1])
    assert max(rows) == FORWARD_ROWS and sum(rows) == len(texts)
    few = [one for i in range(0, len(texts), 5) for one in translator.score(texts[i : i + 5], texts[::-1][i : i + 5])]
    assert [one.log_prob for one in found] == pytest.approx([one.log_prob for one in few], rel=1e-4)


# Compiled searches.


@pytest.fixture
def made(monkeypatch):
    """A list with an entry for each search that a translator compiles."""
    made = []

    class Counted(AutoCompiled):
        def __init__(self, *arguments):
            made.append(arguments)
            super().__init__(*arguments)

    monkeypatch.setattr(batched_search, "AutoCompiled", Counted)
    return made


def test_other_limits_do_not_compile_again(tiny, made):
    translator = another(tiny)
    for settings in ({}, {"max_length_ratio": 1.5}, {"max_target_length": 9}, {"sampling_seed": 3}):
        translator.translate(TEXTS[:1], **settings)
    assert len(made) == 1


def test_only_the_searches_that_were_used_last_are_kept(tiny, made, monkeypatch):
    monkeypatch.setattr(batched_search, "NUM_SEARCHES", 2)
    translator = another(tiny, max_target_length=3)
    counts = []
    for penalty in (0.1, 0.2, 0.3, 0.3, 0.2, 0.1):
        translator.translate(TEXTS[:1], length_penalty=penalty)
        counts.append(len(made))
    assert counts == [1, 2, 3, 3, 3, 4]


@pytest.mark.skipif(keras.backend.backend() == "jax", reason="JAX always compiles")
def test_with_many_texts_a_shape_is_compiled_later_than_with_one_batch(tiny, monkeypatch):
    """One batch leaves the other cores idle: then compiling delays nothing."""
    asked, real = [], AutoCompiled.__call__

    def call(self, arguments, shapes, jit_compile, compile_after):
        asked.append((jit_compile, compile_after))
        return real(self, arguments, shapes, False)

    monkeypatch.setattr(AutoCompiled, "__call__", call)
    assert Translator(tiny.model, tiny.source_tokenizer).search.jit_compile == "auto"
    translator = another(tiny, jit_compile="auto", max_target_length=3)
    for count, expected in ((1, COMPILE_AFTER_IDLE), (BATCH_SIZES[-1], COMPILE_AFTER_IDLE), (40, COMPILE_AFTER)):
        asked.clear()
        translator.translate((TEXTS * 40)[:count])
        assert set(asked) == {("auto", expected)}
    translator = another(tiny, max_target_length=3)
    asked.clear()
    translator.translate(TEXTS[:1])
    assert {jit_compile for jit_compile, _ in asked} == {False}


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="the compiled functions are TensorFlow's")
def test_a_process_that_keeps_translating_becomes_fast_by_itself(tiny, made, monkeypatch):
    """And its answers stay the same: those of XLA are compared with those without."""
    import tensorflow as tf

    with_xla, real = [], tf.function  # Whether XLA had compiled what was called, call by call.

    def function(*arguments, jit_compile=None, **settings):
        graph = real(*arguments, jit_compile=jit_compile, **settings)

        def concrete(*specs):
            compiled = graph.get_concrete_function(*specs)
            return lambda *inputs: with_xla.append(bool(jit_compile)) or compiled(*inputs)

        return SimpleNamespace(get_concrete_function=concrete)

    monkeypatch.setattr(tf, "function", function)
    monkeypatch.setattr(batched_search, "COMPILE_AFTER_IDLE", 0.0)
    translator = another(tiny, jit_compile="auto", max_target_length=7)
    settings = {"num_hypotheses": 2, "return_scores": True, "num_beams": 2}
    (expected,) = translator.translate(TEXTS[:1], **settings)
    for _ in range(3):
        (found,) = translator.translate(TEXTS[:1], **settings)
        assert found == expected
    for thread in threading.enumerate():
        if thread.name == "XLA":
            thread.join()
    assert with_xla.count(False) == 4
    with_xla.clear()
    (found,) = translator.translate(TEXTS[:1], **settings)
    assert with_xla == [True] and len(made) == 1
    assert [(h.text, h.token_ids) for h in found] == [(h.text, h.token_ids) for h in expected]
    np.testing.assert_allclose([h.score for h in found], [h.score for h in expected], rtol=1e-5)


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="the compiled functions are TensorFlow's")
def test_xla_compiles_a_bounded_number_of_shapes(tiny, monkeypatch, caplog):
    """At most one compilation per pair of a batch size (of 3) and a length of `SOURCE_LENGTHS`, for any texts."""
    import tensorflow as tf

    made, real = [], tf.function

    def function(*arguments, jit_compile, **settings):
        assert jit_compile is True  # Here it is only traced, which is quick, once for each compilation.
        made.append(real(*arguments, **settings))
        return made[-1]

    monkeypatch.setattr(tf, "function", function)
    compiled = another(tiny, jit_compile=True, max_target_length=3)
    for count in (1, 5, 8, 9):
        compiled.translate((TEXTS * 2)[:count])
    count = sum(one.experimental_get_tracing_count() for one in made)
    assert 0 < count <= 2 * 3 < len(BATCH_SIZES) * len(SOURCE_LENGTHS)
    assert "retracing" not in caplog.text  # TensorFlow warns if it traces a function too often.
