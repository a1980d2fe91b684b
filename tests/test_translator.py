"""Strings in, strings out: order, empties, n-best, scores, settings."""

import json

import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer.decoding import length_penalty_divisor
from keras_transformer.model import Transformer
from keras_transformer.tokenizers import END_TOKEN_ID, PAD_TOKEN_ID, START_TOKEN_ID
from keras_transformer.translator import Translation, Translator


def test_the_order_of_the_texts_is_kept(golden):
    """Texts of all lengths, in batches: each translation is the one that the text gets alone."""
    texts = golden.texts * 3
    together = golden.translator.translate(texts, batch_size=4)
    assert together == [golden.translator.translate([text])[0] for text in golden.texts] * 3


@pytest.mark.parametrize("text", ["", " ", "\t", "\u3000"])
def test_nothing_is_translated_to_nothing(golden, text):
    found = golden.translator.translate([text, golden.texts[0]], return_scores=True)
    assert found[0] == Translation("", 0.0)
    assert found[1].text


def test_an_empty_list_gives_an_empty_list(golden):
    assert golden.translator.translate([]) == []


def test_one_string_instead_of_a_list_is_an_error(golden):
    with pytest.raises(TypeError, match=r"`texts` must be a list of strings\. Received: one string"):
        golden.translator.translate("a sentence")


def test_n_best_come_best_first_and_begin_with_the_best(golden):
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
        token_ids, scores = translator._search([source[:-1]], num_beams, 0.6)
        target = [int(token) for token in token_ids[0, 0] if token != PAD_TOKEN_ID]
        inputs = {
            "encoder_token_ids": np.array([source], "int32"),
            "decoder_token_ids": np.array([[START_TOKEN_ID, *target[:-1]]], "int32"),
        }
        log_probs = ops.convert_to_numpy(ops.log_softmax(translator.model(inputs)[0], axis=-1))
        total = sum(log_probs[i, token] for i, token in enumerate(target))
        np.testing.assert_allclose(scores[0, 0], total / length_penalty_divisor(len(target), 0.6), rtol=1e-4)


def test_one_beam_is_greedy_search_whatever_the_length_penalty(golden):
    greedy = golden.translator.translate(golden.texts, num_beams=1, length_penalty=0.0)
    assert golden.translator.translate(golden.texts, num_beams=1, length_penalty=2.0) == greedy


def test_over_long_sources_are_cut(golden):
    translator = Translator(golden.model, golden.tokenizer, max_source_length=6, num_beams=1)
    text = golden.texts[0]
    assert translator.translate([" ".join([text] * 50)]) == translator.translate([" ".join([text] * 20)])


def test_max_length_limits_the_translation(golden):
    translator = Translator(golden.model, golden.tokenizer, max_length=3)
    for text in translator.translate(golden.texts):
        assert len(golden.tokenizer.tokenize([text])[0]) <= 3


def test_xla_gives_the_same_translations(golden):
    compiled = Translator(golden.model, golden.tokenizer, jit_compile=True)
    assert compiled.translate(golden.texts[:4]) == golden.translator.translate(golden.texts[:4])


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
    found = Translator(model, golden.tokenizer, max_source_length=9).translate([golden.texts[0]])
    assert len(golden.tokenizer.tokenize(found)[0]) <= 9


def test_a_tokenizer_of_another_size_is_an_error(golden):
    model = Transformer(19, num_layers=1, num_heads=1, hidden_dim=6, intermediate_dim=5)
    with pytest.raises(ValueError, match="The source tokenizer and the model must have one vocabulary"):
        Translator(model, golden.tokenizer)


def test_load_reads_what_a_run_folder_holds(golden):
    loaded = Translator.load(golden.run_dir)
    assert loaded.translate(golden.texts) == golden.translator.translate(golden.texts)
    config = json.loads((golden.run_dir / "config.json").read_text())
    assert loaded.length_penalty == config["decoding"]["length_penalty"]
    assert Translator.load(golden.run_dir, num_beams=2).num_beams == 2


def test_a_folder_that_is_no_run_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"is not the folder of a trained run: it has no config\.json"):
        Translator.load(tmp_path)
