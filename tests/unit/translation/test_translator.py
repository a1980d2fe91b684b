"""The translator: order of texts, empty texts, n-best lists, scores, settings."""

import os

import keras
import numpy as np
import pytest

from keras_transformer.model import Transformer
from keras_transformer.search import has_loop
from keras_transformer.tokenizers import PAD_TOKEN_ID, START_TOKEN_ID, UNKNOWN_TOKEN_ID, Tokenizer
from keras_transformer.translations import Attention
from keras_transformer.translator import Translator, available_cpus

# Padding, start tokens and, by default, unknown tokens are never written, even if the model prefers them.


@pytest.fixture(scope="module")
def translator():
    """`translator(token_id)` is one whose model gives one token nearly all of the probability."""
    keras.utils.set_random_seed(0)
    tokenizer = Tokenizer.train(["a small dog", "a small cat", "a big dog"] * 9, vocabulary_size=17)
    sizes = {"num_layers": 1, "num_heads": 1, "hidden_dim": 8, "intermediate_dim": 5, "tie_embeddings": "none"}
    model = Transformer(17, **sizes)
    norm = model.decoder_blocks[-1].feed_forward_norm
    norm.gamma.assign(0.01 * np.ones(8))
    norm.beta.assign(np.ones(8))  # The last hidden state is about (1, ..., 1).
    shared = Translator(model, tokenizer, max_length=7)  # What was compiled for one token is there for the next.

    def wants(token_id):
        projection = np.random.default_rng(1).normal(scale=0.1, size=(8, 17))
        projection[:, token_id] = 2.0
        model.decoder_embedding.token_embedding.reverse_embeddings.assign(projection)
        return shared

    return wants


@pytest.mark.parametrize("token_id", [PAD_TOKEN_ID, UNKNOWN_TOKEN_ID, START_TOKEN_ID])
@pytest.mark.parametrize(
    "settings",
    [{"num_beams": 1}, {"num_beams": 3}, {"sampling": True}, {"num_beams": 2, "repetition_penalty": 1.3}],
    ids=str,
)
def test_no_translation_has_padding_unknown_or_start_tokens(translator, token_id, settings):
    translator = translator(token_id)
    for jit_compile in (False, True):
        translator.jit_compile = jit_compile
        (found,) = translator.translate(["a dog"], return_scores=True, **settings)
        assert found.token_ids
        assert not {PAD_TOKEN_ID, UNKNOWN_TOKEN_ID, START_TOKEN_ID} & set(found.token_ids)
    translator.jit_compile = False
    (found,) = translator.translate(["a dog"], return_scores=True, allow_unknown=True, **settings)
    assert UNKNOWN_TOKEN_ID in found.token_ids or token_id != UNKNOWN_TOKEN_ID
    assert not {PAD_TOKEN_ID, START_TOKEN_ID} & set(found.token_ids)


def test_a_translation_that_repeats_itself_is_searched_again_on_every_backend():
    texts = ["a small dog", "", " ".join(["dog"] * 20)]
    tokenizer = Tokenizer.train(["a small dog", "a small cat", "a big dog"] * 9, vocabulary_size=17)
    model = Transformer(17, num_layers=1, num_heads=1, hidden_dim=4, intermediate_dim=5)
    model.set_weights([0.0 * weight for weight in model.get_weights()])  # All tokens are equally probable, ...
    translator = Translator(model, tokenizer, num_beams=2, max_length=16, min_length=12, jit_compile=False)
    before = translator.translate(texts, return_scores=True)
    after = translator.translate(texts, return_scores=True, avoid_loops=True)
    assert has_loop(before[0].token_ids) and not has_loop(after[0].token_ids)  # ... and the first one is repeated.
    assert after[0] == translator.translate(texts[:1], return_scores=True, no_repeat_ngram_size=3)[0]
    assert after[1:] == before[1:]  # The last source repeats itself, too.
    assert translator.translate(texts[:1], avoid_loops=True, sampling=True, seed=1)  # Sampling is left alone.


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
