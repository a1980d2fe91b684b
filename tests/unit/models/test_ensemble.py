"""Several models that translate together."""

import keras
import numpy as np
import pytest
from arrays import seed_weights
from keras import ops

from keras_transformer.models.ensemble import Ensemble
from keras_transformer.models.transformer import Transformer
from keras_transformer.search.search import search
from keras_transformer.search.settings import SearchSettings

V = 13
SIZES = {"num_layers": 1, "num_heads": 2, "hidden_dim": 8, "intermediate_dim": 11}
SOURCE, TARGET = np.array([[5, 7, 3], [9, 3, 0]], "int32"), np.array([[2, 6, 8, 4], [2, 11, 5, 0]], "int32")


@pytest.fixture(scope="module")
def models():
    seed_weights(0)
    other = {"num_layers": 2, "num_heads": 3, "hidden_dim": 12, "intermediate_dim": 5, "normalize_first": True}
    models = [Transformer(V, **SIZES), Transformer(V, **other)]
    for model in models:  # Sharper than new weights, so that no two tokens are nearly as probable.
        model.set_weights([3 * w for w in model.get_weights()])
    return models


def log_probs(model, source=SOURCE, target=TARGET):
    return ops.convert_to_numpy(ops.log_softmax(model((source, target)), axis=-1))


def test_its_distribution_is_the_geometric_mean(models):
    mean = (log_probs(models[0]) + log_probs(models[1])) / 2
    wanted = mean - np.log(np.exp(mean).sum(axis=-1, keepdims=True))
    np.testing.assert_allclose(log_probs(Ensemble(models)), wanted, atol=1e-5)
    np.testing.assert_allclose(log_probs(Ensemble(models[:1])), log_probs(models[0]), atol=1e-5)


@pytest.mark.parametrize("cache", ["growing", "fixed"])
@pytest.mark.parametrize("num_beams", [1, 3])
def test_a_search_gives_the_scores_of_the_full_forward_pass(models, num_beams, cache):
    if cache == "growing" and keras.backend.backend() == "jax":
        pytest.skip("JAX has fixed caches only")
    settings = SearchSettings(num_beams=num_beams, length_penalty=0.0)
    token_ids, scores = search(Ensemble(models), SOURCE, np.array([6, 5], "int32"), 6, settings, cache=cache)
    token_ids, scores = ops.convert_to_numpy(token_ids)[:, 0], ops.convert_to_numpy(scores)[:, 0]
    inputs = np.concatenate([np.full((2, 1), 2, "int32"), token_ids[:, :-1]], axis=1)
    picked = np.take_along_axis(log_probs(Ensemble(models), target=inputs), token_ids[..., None], axis=-1)[..., 0]
    np.testing.assert_allclose((picked * (token_ids != 0)).sum(axis=1), scores, atol=1e-4)
    alone = search(models[0], SOURCE, np.array([6, 5], "int32"), 6, settings, cache=cache)
    assert not np.allclose(ops.convert_to_numpy(alone.scores)[:, 0], scores, atol=1e-2)


def test_two_of_the_same_model_are_that_model(models):
    settings, limits = SearchSettings(num_beams=2), np.array([6, 6], "int32")
    one, two = (search(m, SOURCE, limits, 6, settings, cache="fixed") for m in (models[0], Ensemble(models[:1] * 2)))
    np.testing.assert_array_equal(*(ops.convert_to_numpy(found.token_ids) for found in (one, two)))
    np.testing.assert_allclose(*(ops.convert_to_numpy(found.scores) for found in (one, two)), atol=1e-4)


def test_attention_scores_have_the_blocks_of_all_models(models):
    scores = Ensemble(models).attention_scores(SOURCE, TARGET)
    assert [len(kind) for kind in scores] == [3, 3, 3]
    wanted = ops.convert_to_numpy(models[1].attention_scores(SOURCE, TARGET).cross[1]).mean(axis=1, keepdims=True)
    np.testing.assert_allclose(ops.convert_to_numpy(scores.cross[2]), wanted, atol=1e-6)


def test_other_vocabularies_are_an_error(models):
    with pytest.raises(ValueError, match=r"must have the same vocabulary.*\(13, 13\), \(17, 17\)"):
        Ensemble([models[0], Transformer(17, **SIZES)])
    with pytest.raises(ValueError, match=r"Received: models with the vocabulary sizes \[\]"):
        Ensemble([])
    limited = Transformer(V, **SIZES, position_type="learned", max_length=9)
    assert Ensemble([models[0], limited]).max_length == 9
