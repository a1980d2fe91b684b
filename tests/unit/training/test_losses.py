"""The loss and the metrics."""

import math

import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer.training.losses import LabelSmoothedCrossEntropy
from keras_transformer.training.metrics import Perplexity, TokenAccuracy

B, T, V = 3, 5, 11


def logits_labels_weights(seed=0):
    random = np.random.default_rng(seed)
    weights = np.ones((B, T), "float32")
    weights[1, 3:] = 0
    weights[2, 1:] = 0
    return random.normal(size=(B, T, V)).astype("float32") * 3, random.integers(0, V, (B, T)), weights


@pytest.mark.parametrize("label_smoothing", [0.0, 0.1, 0.3])
def test_smoothed_loss_equals_the_keras_loss_on_one_hot_labels(label_smoothing):
    logits, labels, weights = logits_labels_weights()
    ours = LabelSmoothedCrossEntropy(label_smoothing)(labels, logits, sample_weight=weights)
    theirs = keras.losses.CategoricalCrossentropy(from_logits=True, label_smoothing=label_smoothing, reduction="none")
    per_token = ops.convert_to_numpy(theirs(np.eye(V, dtype="float32")[labels], logits))
    np.testing.assert_allclose(float(ours), (per_token * weights).sum() / weights.sum(), rtol=1e-5)


def gradient_of(function, array):
    """d function / d array, on every backend."""
    if keras.backend.backend() == "jax":
        import jax

        return np.asarray(jax.grad(function)(array))
    import tensorflow as tf

    array = tf.convert_to_tensor(array)
    with tf.GradientTape() as tape:
        tape.watch(array)
        value = function(array)
    return tape.gradient(value, array).numpy()


@pytest.mark.parametrize("label_smoothing", [0.0, 0.1])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_the_custom_gradient_equals_the_automatic_gradient(label_smoothing, dtype):
    """The reference is Keras' cross-entropy on one-hot labels, with automatic gradients, at every logit."""
    logits, labels, weights = logits_labels_weights()
    logits = logits.astype(dtype)
    plain = keras.losses.CategoricalCrossentropy(from_logits=True, label_smoothing=label_smoothing, reduction="none")

    def theirs(logits):
        per_token = plain(np.eye(V, dtype="float32")[labels], ops.cast(logits, "float32"))
        return ops.sum(per_token * weights) / weights.sum()

    ours = LabelSmoothedCrossEntropy(label_smoothing)
    found = gradient_of(lambda logits: ours(labels, logits, sample_weight=weights), logits)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, gradient_of(theirs, logits), atol=1e-7 if dtype == "float32" else 1e-4)
    assert np.abs(found[weights == 0]).max() == 0


@pytest.mark.parametrize("jit_compile", [False, True])
def test_loss_gradient_and_metrics_stay_finite_with_extreme_logits(jit_compile):
    """With logits of +-1e4 a step changes the weights by finite numbers."""
    inputs = keras.Input((None, V))
    model = keras.Model(inputs, keras.layers.Dense(V, use_bias=False, kernel_initializer="identity")(inputs))
    model.compile(
        keras.optimizers.SGD(1e-6),
        LabelSmoothedCrossEntropy(),
        weighted_metrics=[TokenAccuracy(), Perplexity()],
        jit_compile=jit_compile,
    )
    _, labels, weights = logits_labels_weights()
    logits = np.where(np.eye(V)[labels] > 0, 1e4, -1e4).astype("float32")
    logs = model.train_on_batch(logits, labels, sample_weight=weights, return_dict=True)
    assert logs["token_accuracy"] == 1
    assert logs["perplexity"] == pytest.approx(1)
    assert np.isfinite(logs["loss"])
    assert np.isfinite(model.get_weights()[0]).all()
    assert not np.array_equal(model.get_weights()[0], np.eye(V))


def test_loss_is_the_mean_over_real_tokens():
    """Neither the values at padding nor the amount of padding change the loss."""
    logits, labels, weights = logits_labels_weights()
    loss = LabelSmoothedCrossEntropy(0.1)
    before = float(loss(labels, logits, sample_weight=weights))
    logits[weights == 0] = 50.0
    wider = [np.pad(x, [(0, 0), (0, 4)] + [(0, 0)] * (x.ndim - 2)) for x in (labels, logits, weights)]
    np.testing.assert_allclose(float(loss(labels, logits, sample_weight=weights)), before, rtol=1e-6)
    np.testing.assert_allclose(float(loss(wider[0], wider[1], sample_weight=wider[2])), before, rtol=1e-6)


def test_loss_does_not_depend_on_the_keras_mask():
    """Logits with and without a Keras mask give the same loss: only the sample weights matter."""
    _, labels, weights = logits_labels_weights()
    embedding = keras.layers.Embedding(V, 7, mask_zero=True)
    head = keras.layers.Dense(V)  # Dense keeps the mask, our projection drops it. Users may use either.
    inputs = keras.Input((None,), dtype="int32")
    masked = keras.Model(inputs, head(embedding(inputs)))
    token_ids = np.where(weights > 0, labels % (V - 1) + 1, 0)
    masked.compile(loss=LabelSmoothedCrossEntropy(0.1), jit_compile=False)
    loss = masked.evaluate(token_ids, labels, sample_weight=weights, verbose=0)
    plain = ops.convert_to_numpy(masked(token_ids))
    expected = float(LabelSmoothedCrossEntropy(0.1)(labels, plain, sample_weight=weights))
    np.testing.assert_allclose(loss, expected, rtol=1e-5)


@pytest.mark.parametrize("jit_compile", [False, True])
@pytest.mark.parametrize("label", [V, V + 3, -1, -100])
def test_a_label_outside_the_vocabulary_makes_loss_gradient_and_perplexity_nan(label, jit_compile):
    """Without the check, some backends give a number: the value at an index from the end, or at the nearest index."""
    inputs = keras.Input((None, V))
    model = keras.Model(inputs, keras.layers.Dense(V)(inputs))
    loss, metrics = LabelSmoothedCrossEntropy(), [Perplexity()]
    model.compile("sgd", loss, weighted_metrics=metrics, jit_compile=jit_compile)
    logits, labels, _ = logits_labels_weights()
    labels[1, 2] = label
    logs = model.train_on_batch(logits, labels, return_dict=True)
    assert np.isnan(logs["loss"]) and np.isnan(logs["perplexity"])
    assert np.isnan(model.get_weights()[0]).all()
    eager = LabelSmoothedCrossEntropy()(labels, logits)
    assert np.isnan(float(eager))


def test_the_loss_always_takes_logits():
    with pytest.raises(TypeError, match=r"always takes logits.*Received: from_logits=True. Leave it out"):
        LabelSmoothedCrossEntropy(from_logits=True)


def test_perplexity_is_the_exponential_of_the_unsmoothed_cross_entropy():
    logits, labels, weights = logits_labels_weights()
    metric = Perplexity()
    metric.update_state(labels, logits, sample_weight=weights)
    cross_entropy = float(LabelSmoothedCrossEntropy(0.0)(labels, logits, sample_weight=weights))
    np.testing.assert_allclose(float(metric.result()), math.exp(cross_entropy), rtol=1e-5)


def test_token_accuracy_counts_real_tokens_only():
    logits, labels, weights = logits_labels_weights()
    metric = TokenAccuracy()
    metric.update_state(labels, logits, sample_weight=weights)
    right = (logits.argmax(-1) == labels) * weights
    np.testing.assert_allclose(float(metric.result()), right.sum() / weights.sum(), rtol=1e-6)


@pytest.mark.parametrize("label_smoothing", [-0.1, 1.0])
def test_label_smoothing_out_of_range_is_an_error(label_smoothing):
    with pytest.raises(ValueError, match=r"`label_smoothing` must be in \[0, 1\)"):
        LabelSmoothedCrossEntropy(label_smoothing)


@pytest.mark.parametrize("kind", [LabelSmoothedCrossEntropy, Perplexity, TokenAccuracy])
def test_a_weight_of_a_sentence_is_that_of_its_tokens(kind):
    function = kind()
    rng = np.random.default_rng(0)
    logits, labels = rng.normal(size=(3, 4, V)).astype("float32"), rng.integers(0, V, (3, 4))
    weights = np.array([[1.0], [0.0], [2.0]], "float32")
    wanted = float(function(labels, logits, sample_weight=np.repeat(weights, 4, axis=1)))
    for given in (weights, weights[:, 0]):
        if isinstance(function, keras.metrics.Metric):
            function.reset_state()
        assert float(function(labels, logits, sample_weight=given)) == pytest.approx(wanted, rel=1e-6)
    for wrong in (labels.T, labels[:1, :1], labels[:, :3], np.zeros((3, 4, V), "int32")):
        with pytest.raises(ValueError, match=r"Labels must have the shape of the logits without their last axis\. Rec"):
            function(wrong, logits)


@pytest.mark.parametrize("kind", [LabelSmoothedCrossEntropy, Perplexity, TokenAccuracy])
@pytest.mark.parametrize("shape", [(6,), (3, 4)], ids=["classes", "tokens"])
def test_labels_and_weights_may_have_a_last_axis_of_one_as_in_keras(kind, shape):
    rng = np.random.default_rng(0)
    logits, labels, weights = (
        rng.normal(size=(*shape, V)).astype("float32"),
        rng.integers(V, size=shape),
        rng.random(shape),
    )
    wanted = float(kind()(labels, logits, sample_weight=weights))
    for given in ((labels[..., None], weights), (labels, weights[..., None]), (labels[..., None], weights[..., None])):
        assert float(kind()(given[0], logits, sample_weight=given[1])) == pytest.approx(wanted, rel=1e-6)
    # What broadcasts counts as if it was repeated.
    repeated = float(kind()(labels, logits, sample_weight=np.repeat(weights[:1], shape[0], axis=0)))
    assert float(kind()(labels, logits, sample_weight=weights[:1])) == pytest.approx(repeated, rel=1e-6)
