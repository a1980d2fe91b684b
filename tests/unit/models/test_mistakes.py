"""`find_mistakes` names each classic mistake, in models of this package and of others."""

from types import SimpleNamespace

import keras
import numpy as np
import pytest
from keras import ops

import keras_transformer as kt

SIZES = {"num_heads": 2, "intermediate_dim": 32}
V, D = 53, 16


def batch(rows=5, source_length=7, target_length=6, seed=0):
    """(inputs, labels, sample weights) of random sentences of different lengths."""
    random = np.random.default_rng(seed)
    source = random.integers(5, V, (rows, source_length))
    target = random.integers(5, V, (rows, target_length))
    source[:, -1] = target[:, -1] = 3
    for row in range(1, rows):
        for ids in (source, target):
            cut = random.integers(1, ids.shape[1] - 1)
            ids[row, cut] = 3
            ids[row, cut + 1 :] = 0
    decoder = np.pad(target[:, :-1], [(0, 0), (1, 0)], constant_values=2)
    decoder[target == 0] = 0
    return {"encoder_token_ids": source, "decoder_token_ids": decoder}, target, (target != 0).astype("float32")


class Positions(keras.layers.Layer):
    """Positions as many write them: numbers in the dtype of the layer."""

    supports_masking = True
    last = 10_000  # Places after it are taken for it.

    def call(self, x):
        places = ops.cast(ops.minimum(ops.arange(ops.shape(x)[1]), self.last), self.compute_dtype)[:, None]
        rates = ops.cast(ops.power(10000.0, -ops.arange(D, dtype="float32") / D), self.compute_dtype)
        return x + ops.cast(ops.sin(places * rates), self.compute_dtype)


def model(
    embed=None,
    source_too=lambda x: x,
    decode=lambda block, x, memory: block(x, memory),
    project=None,
    exchanged=False,
    num_layers=2,
):
    """A functional model; each argument but `num_layers` plants a mistake."""
    names = ("decoder_token_ids", "encoder_token_ids") if exchanged else ("encoder_token_ids", "decoder_token_ids")
    inputs = [keras.Input((None,), dtype="int32", name=name) for name in names]
    embedding = kt.PositionalEmbedding(V, D)
    embed = embed or embedding
    memory = source_too(embed(inputs[0]))
    for _ in range(num_layers):
        memory = kt.EncoderBlock(**SIZES)(memory)
    x = embed(inputs[1])
    for _ in range(num_layers):
        x = decode(kt.DecoderBlock(**SIZES), x, memory)
    return keras.Model(dict(zip(names, inputs, strict=True)), (project or embedding.project)(x))


@pytest.fixture(autouse=True)
def seed():
    keras.utils.set_random_seed(0)


def only(found, beginning):
    assert len(found) == 1, found
    assert found[0].startswith(beginning)


@pytest.mark.parametrize(
    ("dtype", "settings"),
    [
        ("float32", {}),
        ("mixed_bfloat16", {"normalize_first": True}),
        ("mixed_float16", {"position_type": "learned", "max_length": 7}),
    ],
)
def test_models_of_this_package_have_none(dtype, settings):
    transformer = kt.Transformer(V, num_layers=2, hidden_dim=D, dtype=dtype, **SIZES, **settings)
    assert kt.find_mistakes(transformer, batch(), tied_weights=True) == []
    assert kt.find_mistakes(transformer, batch(rows=1, source_length=6)) == []


def test_labels():
    inputs, labels, weights = batch()
    right = model(num_layers=1)
    for given in ((inputs, labels), [inputs, labels, weights], (inputs, labels[..., None], weights[:, 0])):
        assert kt.find_mistakes(right, given) == []
    sides = "encoder_token_ids", "decoder_token_ids"  # Keras sorts the inputs of a dict: the decoder's are first.
    pair = keras.Model([right.input[side] for side in sides], right.output)
    assert kt.find_mistakes(pair, ([inputs[side] for side in sides], labels)) == []
    same = np.where(labels != 0, inputs["decoder_token_ids"], 0)
    assert kt.find_mistakes(right, (inputs, same))[0].startswith("The labels are not shifted")
    only(kt.find_mistakes(right, (inputs, np.roll(labels, 2, axis=0))), "The labels do not continue what the decoder")
    only(kt.find_mistakes(right, (inputs, labels, np.ones_like(weights))), "The loss counts padding")
    missing = "The targets have no end token: the last label of 5 of 5 targets is not 53"
    only(kt.find_mistakes(right, (inputs, labels), end_token_id=V), missing)
    some = np.where((labels == 3) & (np.arange(5) < 3)[:, None], 7, labels)
    only(kt.find_mistakes(right, (inputs, some)), "The targets have no end token: the last label of 3 of 5")
    cut = np.where((labels == 3) & (np.arange(5) < 2)[:, None], 7, labels)
    assert kt.find_mistakes(right, (inputs, cut)) == []
    swapped = {"encoder_token_ids": inputs["decoder_token_ids"], "decoder_token_ids": inputs["encoder_token_ids"]}
    only(kt.find_mistakes(right, (swapped, labels)), "Source and target are exchanged in the batch")


def test_models_with_a_mistake():
    def without(block, x, memory):
        return block(x)

    def seeing_all(block, x, memory):
        return block(x, memory, use_causal_mask=False)

    def seeing_one_more(block, x, memory):
        places = ops.cumsum(ops.ones_like(x[..., 0]), axis=1)
        mask = ops.less_equal(places[:, None], places[:, :, None] + 1)
        return block(x, memory, use_causal_mask=False, decoder_attention_mask=mask)

    data = batch()
    only(kt.find_mistakes(model(exchanged=True), data), "Source and target are exchanged in the model: it has a logit")
    same_length = batch(source_length=6)
    only(
        kt.find_mistakes(model(exchanged=True), same_length), "Source and target are exchanged in the model: the first"
    )
    for wrong in (seeing_all, seeing_one_more):
        only(kt.find_mistakes(model(decode=wrong), batch(rows=20)), "The decoder sees later tokens")
    only(kt.find_mistakes(model(decode=without), data), "The decoder does not see the source")
    both = kt.find_mistakes(model(decode=lambda block, x, _: block(x, use_causal_mask=False)), data)
    assert [mistake.split(":")[0] for mistake in both] == [
        "The decoder sees later tokens",
        "The decoder does not see the source",
    ]
    # `a + b` drops a Keras mask.
    only(kt.find_mistakes(model(source_too=lambda x: x + 0.0), data), "Padding is attended to")
    alone = keras.layers.ReversibleEmbedding(V, D, mask_zero=True)
    found = kt.find_mistakes(model(embed=alone, project=lambda x: alone(x, reverse=True)), data)
    only(found, "The encoder does not know the order of its tokens")
    only(
        kt.find_mistakes(model(project=lambda x: keras.layers.Dense(V)(x) * np.nan), data), "The logits are not numbers"
    )
    longer = model(project=lambda x: keras.layers.Dense(V)(ops.pad(x, [[0, 0], [1, 1], [0, 0]])))
    only(kt.find_mistakes(longer, data), "There are logits for 8 positions, and the target has 6.")


def test_tied_weights():
    untied = model(project=keras.layers.Dense(V), num_layers=1)
    assert kt.find_mistakes(untied, batch()) == []
    only(kt.find_mistakes(untied, batch(), tied_weights=True), "The weights are not tied: 2 matrices have the size of")
    for tie, number in (("all", 0), ("target", 2), ("none", 3)):
        transformer = kt.Transformer(V, num_layers=1, hidden_dim=D, num_heads=2, intermediate_dim=V, tie_embeddings=tie)
        found = kt.find_mistakes(transformer, batch(), tied_weights=True)
        assert [f"{number} matrices" in mistake for mistake in found] == [True] * bool(number)


def test_logits_that_forbid_a_token_and_inputs_of_a_fixed_length():
    forbidden = np.where(np.arange(V) == 0, -1e9, 0).astype("float32")
    wary = model(project=lambda x: keras.layers.Dense(V)(x) + forbidden, num_layers=1)
    assert kt.find_mistakes(wary, batch()) == []
    whole = model(num_layers=1)
    fixed = [keras.Input((length,), dtype="int32") for length in (7, 6)]
    outputs = whole(dict(zip(("encoder_token_ids", "decoder_token_ids"), fixed, strict=True)))
    inputs, labels, _ = batch()
    assert kt.find_mistakes(keras.Model(fixed, outputs), (tuple(inputs.values()), labels)) == []


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_positions_in_half_precision(dtype):
    """Found also where only the layers have the dtype, and not the model."""
    policy = "float32" if dtype == "float32" else f"mixed_{dtype}"
    alone = keras.layers.ReversibleEmbedding(V, D, mask_zero=True, dtype=policy)
    positions = Positions(dtype=policy)
    wrong = model(lambda x: positions(alone(x)), project=lambda x: alone(x, reverse=True))
    found = kt.find_mistakes(wrong, batch())
    positions.last = 10
    assert kt.find_mistakes(wrong, batch()) == []
    if dtype == "float32":
        assert found == []
    else:
        only(found, f"Positions are in half precision: in {dtype}, ")


def test_padding_that_comes_first():
    def first(ids):
        return np.pad([[*row[row == 0], *row[row != 0]] for row in ids], [(0, 0), (9, 0)])

    inputs, labels, _ = batch()
    data = {name: first(ids) for name, ids in inputs.items()}, first(labels)
    assert kt.find_mistakes(model(), data) == []
    wrong = model(decode=lambda block, x, memory: block(x, memory, use_causal_mask=False))
    only(kt.find_mistakes(wrong, data), "The decoder sees later tokens")


def test_probabilities_of_a_trained_model():
    """Nearly all are close to 0, and only the few others have rounding errors that are larger than these."""
    sure = keras.layers.Dense(V, activation="softmax")
    whole = model(project=sure)
    sure.kernel.assign(sure.kernel * 100)
    assert kt.find_mistakes(whole, batch()) == []
    unseen = model(source_too=lambda x: x + 0.0, project=sure)
    only(kt.find_mistakes(unseen, batch()), "Padding is attended to")


def test_a_model_of_other_layers():
    """Keras' own attention removes the mask of its inputs, so the second block attends to padding."""
    encoder_inputs, decoder_inputs = (keras.Input((None,), name=f"{side}_inputs") for side in ("encoder", "decoder"))
    embedding = keras.layers.Embedding(V, D, mask_zero=True)
    memory = keras.layers.MultiHeadAttention(2, 8)(*[Positions()(embedding(encoder_inputs))] * 2)
    x = Positions()(embedding(decoder_inputs))
    x = keras.layers.Add()([x, keras.layers.MultiHeadAttention(2, 8)(x, x, use_causal_mask=True)])
    for _ in range(2):
        x = keras.layers.Add()([x, keras.layers.MultiHeadAttention(2, 8)(x, memory)])
    other = keras.Model({"encoder_inputs": encoder_inputs, "decoder_inputs": decoder_inputs}, keras.layers.Dense(V)(x))
    inputs, *others = batch()
    inputs = {"encoder_inputs": inputs["encoder_token_ids"], "decoder_inputs": inputs["decoder_token_ids"]}
    only(kt.find_mistakes(other, (inputs, *others)), "Padding is attended to")


def test_what_cannot_be_tried():
    class Sometimes(keras.Model):
        def call(self, inputs, training=None):
            return self.inner(inputs, training=True)

    random = Sometimes()
    random.inner = kt.Transformer(V, num_layers=1, hidden_dim=D, dropout=0.5, **SIZES)
    only(kt.find_mistakes(random, batch()), "The model gives other logits at each call")
    with pytest.raises(
        ValueError, match=r"logits of shape \(B, T, V\), one tensor. Received: dict. Wrap a model that gives"
    ):
        kt.find_mistakes(lambda inputs, training: {}, batch())


def test_padding_that_a_mask_leaves_out_of_the_loss():
    """Keras multiplies sample weights by the mask that the logits carry; the logits of `Transformer` carry none."""
    whole = model(project=keras.layers.Dense(V), num_layers=1)
    inputs, labels, weights = batch()
    whole.compile(loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    losses = [whole.evaluate(inputs, labels, sample_weight=w, verbose=0) for w in (weights, np.ones_like(weights))]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    assert kt.find_mistakes(whole, (inputs, labels, np.ones_like(weights))) == []


@pytest.mark.parametrize("softmax", [False, True])
def test_a_loss_that_counts_padding(softmax):
    """With and without sample weights; some losses leave padding out by themselves."""
    activation = "softmax" if softmax else None
    whole = model(project=lambda x: keras.layers.Dense(V, activation=activation)(x + 0.0), num_layers=1)
    inputs, labels, weights = batch()
    assert kt.find_mistakes(whole, (inputs, labels)) == [], "Without a loss, nothing counts padding."
    for settings, given, counts in (
        ({}, (labels,), True),
        ({}, (labels[..., None], weights), False),
        ({}, (labels, np.ones_like(weights)), True),
        ({}, (labels, weights[:, :1]), True),  # Those of whole sentences.
        ({"ignore_class": 0}, (labels,), False),
    ):
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=not softmax, **settings)
        whole.compile(loss=loss, weighted_metrics=["accuracy"])
        found = kt.find_mistakes(whole, (inputs, *given))
        assert [one.startswith("The loss counts padding") for one in found] == [True] * counts
    large = kt.Transformer(20_000, num_layers=1, hidden_dim=D, **SIZES)
    large.compile(loss=kt.LabelSmoothedCrossEntropy())
    only(kt.find_mistakes(large, (inputs, labels)), "The loss counts padding")
    assert kt.find_mistakes(large, (inputs, labels, weights)) == []


class OwnLoss(keras.Model):
    """As in Keras' guide to a `compute_loss` of one's own, which updates a metric."""

    masks = True

    def compute_loss(self, x, y, y_pred, sample_weight):
        losses = keras.losses.sparse_categorical_crossentropy(y, y_pred, from_logits=True)
        real = ops.cast((x["decoder_token_ids"] != 0) | (not self.masks), losses.dtype)
        self.mean.update_state(losses)
        return ops.sum(losses * real) / ops.sum(real)


class OwnStep(keras.Model):
    """Leaves padding out before its loss, so that nobody can see from outside whether it does."""

    def train_step(self, data):
        raise NotImplementedError


def test_a_loss_of_ones_own():
    whole, data = model(project=lambda x: keras.layers.Dense(V)(x + 0.0), num_layers=1), batch()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")
    whole.compile(loss=loss)  # Keras takes the gradient of the sum.
    only(kt.find_mistakes(whole, data[:2]), "The loss counts padding")
    own = OwnLoss(whole.input, whole.output)
    own.compile()
    own.mean = keras.metrics.Mean()
    assert kt.find_mistakes(own, data[:2]) == []
    own.masks = False
    only(kt.find_mistakes(own, data[:2]), "The loss counts padding")
    assert float(own.mean.count) == 0
    for settings in ({}, {"loss": loss}):
        step = OwnStep(whole.input, whole.output)
        step.compile(**settings)
        assert kt.find_mistakes(step, data) == []
    whole.compile()  # No loss at all.
    assert kt.find_mistakes(whole, data) == []


def test_batches_of_another_form():
    inputs, labels, _ = batch()
    with pytest.raises(ValueError, match=r"`batch` must be what `fit` takes.*Received: dict"):
        kt.find_mistakes(None, inputs)
    for wrong in ({"source": labels}, {"encoder_a": labels, "encoder_b": labels}, [labels], labels):
        with pytest.raises(ValueError, match=r"The inputs must be the token ids of source and target.*Wrap a model"):
            kt.find_mistakes(None, (wrong, labels))
    for wrong in (np.where(labels == 0, -100, labels), np.zeros_like(labels)):
        with pytest.raises(ValueError, match=r"Labels must be token ids, padded with 0, and not all of them padding"):
            kt.find_mistakes(None, (inputs, wrong))
    for wrong in (
        labels[0],
        np.eye(V)[labels],
        labels[:0],
        labels.astype(str),
        SimpleNamespace(to_tensor=None, shape=(5, None)),
    ):
        with pytest.raises(ValueError, match=r"Labels must be token ids of shape \(batch, length\), padded with 0"):
            kt.find_mistakes(None, (inputs, wrong))
