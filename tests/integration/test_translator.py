"""The translator: order of texts, empty texts, n-best lists, scores, settings."""

import json
import shutil
import threading

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from keras_transformer.compiled import BATCH_SIZES, COMPILE_AFTER, COMPILE_AFTER_IDLE, SOURCE_LENGTHS, AutoCompiled
from keras_transformer.decoding import length_penalty_divisor
from keras_transformer.model import Transformer
from keras_transformer.search import SearchSettings
from keras_transformer.settings import ConfigError
from keras_transformer.tokenizers import END_TOKEN_ID, START_TOKEN_ID
from keras_transformer.translations import Translation
from keras_transformer.translator import Translator


def test_the_order_of_the_texts_is_kept(golden):
    """Texts of all lengths, in batches: each translation equals that of the text alone."""
    texts = golden.texts * 3
    together = golden.translator.translate(texts)
    assert together == [golden.translator.translate([text])[0] for text in golden.texts] * 3


@pytest.mark.parametrize("text", ["", " ", "\t", "\u3000"])
def test_empty_texts_have_empty_translations(golden, text):
    found = golden.translator.translate([text, golden.texts[0]], return_scores=True)
    assert found[0] == Translation("", 0.0)
    assert found[1].text


def test_an_empty_list_gives_an_empty_list(golden):
    assert golden.translator.translate([]) == []


def test_one_string_instead_of_a_list_is_an_error(golden):
    for odd in (None, b"a dog", 7):
        with pytest.raises(TypeError, match=rf"`texts` must be a list of strings\. Received: {odd!r} at texts\[1\]\."):
            golden.translator.translate(["a dog", odd])
    with pytest.raises(TypeError, match=r"`texts` must be a list of strings\. Received: one string"):
        golden.translator.translate("a sentence")


def test_half_of_a_surrogate_pair_is_an_error(golden):
    message = r"must be valid Unicode\. Received: half of a surrogate pair, '\\ud83d', at 2 of 'a \\ud83d dog'"
    with pytest.raises(ValueError, match=rf"`texts\[1\]` {message}"):
        golden.translator.translate(["a dog", "a \ud83d dog"])
    with pytest.raises(ValueError, match=f"`text` {message}"):
        golden.translator.translate_text("a \ud83d dog")


def test_n_best_lists_are_sorted_and_begin_with_the_best_translation(golden):
    found = golden.translator.translate(golden.texts, num_beams=3, num_hypotheses=3, return_scores=True)
    best = golden.translator.translate(golden.texts, num_beams=3)
    for hypotheses, text in zip(found, best, strict=True):
        assert hypotheses[0].text == text
        scores = [hypothesis.score for hypothesis in hypotheses]
        assert scores == sorted(scores, reverse=True)
        assert len(hypotheses) == 3


@pytest.mark.parametrize("num_hypotheses", [0, 5])
def test_more_hypotheses_than_beams_is_an_error(golden, num_hypotheses):
    with pytest.raises(ValueError, match="`num_hypotheses` must be between 1 and `num_beams`"):
        golden.translator.translate(["x"], num_beams=4, num_hypotheses=num_hypotheses)


@pytest.mark.parametrize("num_beams", [1, 4])
def test_scores_are_those_of_a_full_forward_pass(golden, num_beams):
    """The score of a translation is the model's own log probability of it, divided by the length penalty."""
    translator = golden.translator
    for text in golden.texts[:5]:
        source = [*translator.source_tokenizer.tokenize([text])[0], END_TOKEN_ID]
        found = translator.translate([text], num_beams=num_beams, return_scores=True)[0]
        target = found.token_ids
        inputs = {
            "encoder_token_ids": np.array([source], "int32"),
            "decoder_token_ids": np.array([[START_TOKEN_ID, *target[:-1]]], "int32"),
        }
        log_probs = ops.convert_to_numpy(ops.log_softmax(translator.model(inputs)[0], axis=-1))
        total = sum(log_probs[i, token] for i, token in enumerate(target))
        np.testing.assert_allclose(found.score, total / length_penalty_divisor(len(target), 0.6), rtol=1e-4)


def test_one_beam_is_greedy_search_whatever_the_length_penalty(golden):
    greedy = golden.translator.translate(golden.texts, num_beams=1, length_penalty=0.0)
    assert golden.translator.translate(golden.texts, num_beams=1, length_penalty=2.0) == greedy


def test_over_long_sources_are_cut_and_marked(golden):
    translator = Translator(golden.model, golden.tokenizer, max_source_length=6, num_beams=1)
    text = golden.texts[0]
    with pytest.warns(UserWarning, match=r"1 of 2 texts have more .* the first is texts\[1\].*max_source_length=6"):
        first = translator.translate(["a", " ".join([text] * 50)])
    second = translator.translate(["", "a", " ".join([text] * 20)], return_scores=True)
    assert first == [translation.text for translation in second[1:]]
    assert [translation.truncated for translation in second] == [False, False, True]
    assert [score.truncated for score in translator.score(["a", text * 2], ["b", "b"])] == [False, True]


def test_max_length_limits_the_translation(golden):
    translator = Translator(golden.model, golden.tokenizer, max_length=3)
    for text in translator.translate(golden.texts):
        assert len(golden.tokenizer.tokenize([text])[0]) <= 3


def test_xla_gives_the_same_translations(golden):
    compiled = Translator(golden.model, golden.tokenizer, jit_compile=True)
    assert compiled.translate(golden.texts[:4]) == golden.translator.translate(golden.texts[:4])


def test_a_process_that_keeps_translating_becomes_fast_by_itself(golden, monkeypatch):
    """And its answers stay the same: those of XLA are compared with those without."""
    monkeypatch.setattr("keras_transformer.translator.COMPILE_AFTER_IDLE", 0.0)
    translator = Translator(golden.model, golden.tokenizer)
    settings = {"num_hypotheses": 2, "return_scores": True, "num_beams": 2}
    text = golden.texts[0]
    (expected,) = translator.translate([text], **settings)
    for _ in range(3):
        (found,) = translator.translate([text], **settings)
        assert found == expected
    for thread in threading.enumerate():
        if thread.name == "XLA":
            thread.join()
    function = translator._compiled_search(translator.settings.replace(num_beams=2, max_length_ratio=0.0), 2)
    assert translator._compiled_search.cache_info().misses == 1
    function._plain = None  # From now on XLA alone answers.
    (found,) = translator.translate([text], **settings)
    assert [(h.text, h.token_ids) for h in found] == [(h.text, h.token_ids) for h in expected]
    np.testing.assert_allclose([h.score for h in found], [h.score for h in expected], rtol=1e-5)


def test_with_many_texts_a_shape_is_compiled_later_than_with_one_batch(golden, monkeypatch):
    """One batch leaves the other cores idle: then compiling delays nothing."""
    asked, real = [], AutoCompiled.__call__

    def call(self, arguments, shapes, jit_compile, compile_after):
        asked.append((jit_compile, compile_after))
        return real(self, arguments, shapes, False)

    monkeypatch.setattr(AutoCompiled, "__call__", call)
    translator = Translator(golden.model, golden.tokenizer, num_beams=1)
    for count, expected in ((1, COMPILE_AFTER_IDLE), (BATCH_SIZES[-1], COMPILE_AFTER_IDLE), (40, COMPILE_AFTER)):
        asked.clear()
        translator.translate((golden.texts * 40)[:count])
        assert set(asked) == {("auto", expected)}
    translator = Translator(golden.model, golden.tokenizer, num_beams=1, jit_compile=False)
    asked.clear()
    translator.translate(golden.texts[:1] * 12)
    assert {jit_compile for jit_compile, _ in asked} == {False}
    with pytest.raises(ConfigError, match=r"`jit_compile` must be one of \('auto', True, False\). Received: 'yes'"):
        Translator(golden.model, golden.tokenizer, jit_compile="yes")


def test_learned_positions_limit_the_translation(golden):
    keras.utils.set_random_seed(0)
    model = Transformer(
        golden.tokenizer.vocabulary_size,
        num_layers=1,
        num_heads=1,
        hidden_dim=6,
        intermediate_dim=5,
        position_type="learned",
        max_length=9,
    )
    translator = Translator(model, golden.tokenizer, max_source_length=9)
    (found,) = translator.translate([golden.texts[0]], return_scores=True)
    assert found.truncated
    assert len(found.token_ids) <= 9


def test_a_tokenizer_of_another_size_is_an_error(golden):
    model = Transformer(19, num_layers=1, num_heads=1, hidden_dim=6, intermediate_dim=5)
    with pytest.raises(ValueError, match="The source tokenizer and the model must have the same vocabulary"):
        Translator(model, golden.tokenizer)


def test_load_reads_all_files_of_a_run_folder(golden):
    loaded = Translator.load(golden.run_dir)
    assert loaded.translate(golden.texts) == golden.translator.translate(golden.texts)
    config = json.loads((golden.run_dir / "config.json").read_text())
    assert loaded.settings.length_penalty == config["decoding"]["length_penalty"]
    settings = Translator.load(golden.run_dir, num_beams=2, max_length=7).settings
    assert settings == SearchSettings(num_beams=2, length_penalty=0.6, max_length=7)


def copy_of_run(golden, folder):
    """A copy of the files of a run that `Translator.load` reads."""
    for name in ("config.json", "model.keras", "tokenizer.spm"):
        shutil.copy(golden.run_dir / name, folder / name)
    return folder


def changed_in_the_middle(content):
    place = len(content) // 2
    return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("model.keras", lambda old: old[: len(old) // 2], "a `.keras` file is a zip file, and this is none"),
        ("model.keras", lambda old: b"", "a `.keras` file is a zip file, and this is none"),
        ("model.keras", lambda old: changed_in_the_middle(old), "BadZipFile: Bad CRC-32"),
        ("tokenizer.spm", lambda old: old[:-1], "cannot be used as a tokenizer"),
        ("config.json", lambda old: old[:-9], "not JSON"),
        ("config.json", lambda old: b"{}", "must have the sections of a run"),
    ],
)
def test_a_damaged_file_of_a_run_is_named_with_the_repair(golden, tmp_path, file, content, message):
    run = copy_of_run(golden, tmp_path)
    (run / file).write_bytes(content((run / file).read_bytes()))
    with pytest.raises(
        ValueError, match=rf"^{run / file}.*{message}.*Restore (it|the file) from a copy, or train"
    ) as caught:
        Translator.load(run)
    assert "\n" not in str(caught.value)


# Settings


def test_a_setting_that_does_not_exist_is_an_error(golden):
    with pytest.raises(TypeError, match=r"No such setting of a search: beams\. There are: num_beams, length_penalty"):
        golden.translator.translate(["x"], beams=3)
    with pytest.raises(TypeError, match="No such setting of a search: jit"):
        Translator(golden.model, golden.tokenizer, jit=True)


def test_settings_are_checked_in_the_constructor_and_in_each_call(golden):
    with pytest.raises(ValueError, match=r"`num_beams` must be int\. Received: 2\.5"):
        Translator(golden.model, golden.tokenizer, num_beams=2.5)
    with pytest.raises(ValueError, match="`max_length` must be at least 1"):
        golden.translator.translate(["x"], max_length=0)


def test_other_limits_do_not_compile_again(golden):
    translator = Translator(golden.model, golden.tokenizer, num_beams=1)
    for settings in ({}, {"max_length_ratio": 1.5}, {"max_length": 9}, {"seed": 3}):
        translator.translate(golden.texts[:1], **settings)
    assert translator._compiled_search.cache_info().misses == 1


def test_only_the_searches_that_were_used_last_are_kept(golden, monkeypatch):
    monkeypatch.setattr("keras_transformer.translator.NUM_SEARCHES", 2)
    translator = Translator(golden.model, golden.tokenizer, num_beams=1, jit_compile=False)
    for penalty in (0.1, 0.2, 0.3):
        translator.translate(golden.texts[:1], length_penalty=penalty)
    assert translator._compiled_search.cache_info()[2:] == (2, 2)


def test_limits_are_per_sentence_and_relative_to_the_source(golden):
    """In a batch with a long sentence, a short sentence has the same limit as alone."""
    untrained = Translator(
        Transformer(golden.tokenizer.vocabulary_size, num_layers=1, num_heads=1, hidden_dim=6, intermediate_dim=5),
        golden.tokenizer,
        num_beams=1,
        max_length_ratio=0.5,
    )
    sources = golden.tokenizer.tokenize(golden.texts)
    for ids, found in zip(sources, untrained.translate(golden.texts, return_scores=True), strict=True):
        assert len(found.token_ids) <= int(0.5 * (len(ids) + 1) + 16)


def test_min_length_and_ngram_rules_hold_in_the_translation(golden):
    for found in golden.translator.translate(golden.texts[:4], return_scores=True, min_length=20):
        assert len(found.token_ids) >= 20
    for found in golden.translator.translate(golden.texts[:4], return_scores=True, no_repeat_ngram_size=1):
        assert len(set(found.token_ids)) == len(found.token_ids)


# Prefixes and sampling


@pytest.mark.parametrize("num_beams", [1, 3])
def test_translations_begin_with_their_prefix(golden, num_beams):
    beginning = " ".join(golden.translator.translate(golden.texts[5:6])[0].split()[:2])
    prefixes = [beginning, None, ""]
    found = golden.translator.translate(golden.texts[:3], prefixes=prefixes, num_beams=num_beams)
    assert found[0].startswith(beginning)
    assert found[1:] == golden.translator.translate(golden.texts[1:3], num_beams=num_beams)


def test_there_must_be_one_prefix_per_text(golden):
    with pytest.raises(ValueError, match="`prefixes` must be a list with one entry per text"):
        golden.translator.translate(["a", "b"], prefixes=["x"])


def test_a_sample_depends_only_on_the_seed_and_the_place_of_the_text(golden):
    settings = {"sampling": True, "temperature": 3.0, "num_hypotheses": 3, "return_scores": True}
    found = golden.translator.translate(golden.texts[:5], **settings)
    assert found == golden.translator.translate(golden.texts[:5], **settings)
    for alone, together in zip(golden.translator.translate(golden.texts[:2], **settings), found, strict=False):
        assert [hypothesis.text for hypothesis in alone] == [hypothesis.text for hypothesis in together]
    assert found != golden.translator.translate(golden.texts[:5], **settings, seed=1)
    for hypotheses in found:
        scores = [hypothesis.score for hypothesis in hypotheses]
        assert scores == sorted(scores, reverse=True)


# Streaming, scoring, attention


def test_a_stream_reads_only_one_chunk_ahead_and_keeps_the_order(golden):
    read = []

    def lines():
        for text in golden.texts * 2:
            read.append(text)
            yield text

    stream = golden.translator.stream(lines(), chunk_size=4)
    first = next(stream)
    assert len(read) == 4
    assert [first, *stream] == golden.translator.translate(golden.texts) * 2


def test_a_stream_takes_a_prefix_for_each_text(golden):
    prefixes = [text.split()[0] for text in golden.translator.translate(golden.texts)][::-1]
    found = list(golden.translator.stream(golden.texts, chunk_size=4, prefixes=iter(prefixes)))
    with pytest.raises(TypeError, match=r"Received: one string. Pass \[text\]"):
        next(golden.translator.stream("a dog"))
    assert found == golden.translator.translate(golden.texts, prefixes=prefixes)


def test_score_is_the_sum_of_the_models_log_probabilities(golden):
    translations = golden.translator.translate(golden.texts, return_scores=True)
    found = golden.translator.score(golden.texts, [translation.text for translation in translations])
    for translation, target in zip(translations, found, strict=True):
        assert target.log_prob == pytest.approx(sum(target.token_log_probs), rel=1e-4)
        assert len(target.tokens) == len(target.token_log_probs)
        penalised = target.log_prob / length_penalty_divisor(len(target.tokens), 0.6)
        assert penalised == pytest.approx(translation.score, rel=1e-3)
    worse = golden.translator.score(golden.texts, golden.texts)
    assert all(a.log_prob > b.log_prob for a, b in zip(found, worse, strict=True))


def test_score_holds_the_logits_of_few_rows_at_a_time(golden):
    rows = []
    translator = Translator(golden.model, golden.tokenizer)
    expected = translator.score(golden.texts * 2, golden.texts * 2)
    score = translator._compiled["score"]
    translator._compiled["score"] = lambda inputs: rows.append(len(inputs["labels"])) or score(inputs)
    assert translator.score(golden.texts * 2, golden.texts * 2) == expected
    assert rows == [8, 8, 8, 8]


def test_score_needs_lists_of_the_same_length(golden):
    assert golden.translator.score([], []) == []
    with pytest.raises(ValueError, match="`sources` and `targets` must have the same length"):
        golden.translator.score(["a"], [])
    with pytest.raises(TypeError, match="`targets` must be a list of strings"):
        golden.translator.score(["a"], "b")


def test_attention_comes_with_the_tokens_and_sums_to_one(golden):
    found = golden.translator.translate(["", *golden.texts], return_attention=True)
    assert found[0].attention is None
    for translation in found[1:]:
        attention = translation.attention
        layers, heads, target, source = attention.scores.shape
        assert (layers, heads) == (len(golden.model.decoder_blocks), golden.model.decoder_blocks[0].num_heads)
        assert (target, source) == (len(attention.target_tokens), len(attention.source_tokens))
        np.testing.assert_allclose(attention.scores.sum(axis=-1), 1.0, atol=1e-4)
        assert len(attention.alignment()) == target
        assert set(attention.alignment(layer=0)) <= set(range(source))


def test_xla_compiles_a_bounded_number_of_shapes(golden, monkeypatch, caplog):
    """At most one compilation per pair of a batch size (of 3) and a length of `SOURCE_LENGTHS`, for any texts."""
    made, real = [], tf.function

    def function(*args, **kwargs):
        made.append(real(*args, **kwargs))
        return made[-1]

    monkeypatch.setattr(tf, "function", function)
    compiled = Translator(golden.model, golden.tokenizer, jit_compile=True, num_beams=1)
    for count in (1, 5, 8, 9):
        compiled.translate(golden.texts[:count])
    shapes = {(b, s) for b in BATCH_SIZES for s in SOURCE_LENGTHS}
    assert 0 < sum(one.experimental_get_tracing_count() for one in made) <= 2 * 3 < len(shapes)
    assert "retracing" not in caplog.text  # TensorFlow must not warn about so many shapes.


def test_a_translator_needs_a_transformer(golden):
    model = keras.Sequential([keras.layers.Dense(3)])
    with pytest.raises(TypeError, match=r"needs a `keras_transformer.Transformer`.*Received: Sequential"):
        Translator(model, golden.tokenizer)
