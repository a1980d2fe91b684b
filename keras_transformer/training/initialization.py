"""Other models for a new one: the weights that it begins with, and a teacher that it learns from."""

from collections.abc import Sequence

import numpy as np

from keras_transformer.models.ensemble import Ensemble
from keras_transformer.models.transformer import Transformer
from keras_transformer.training.losses import TeacherCrossEntropy


def copy_weights(
    model: Transformer,
    other: Transformer,
    encoder_layers: Sequence[int] | None = None,
    decoder_layers: Sequence[int] | None = None,
    same_vocabulary: bool = True,
) -> list[str]:
    """Copies those weights of another `Transformer` that fit: embeddings, blocks and final normalisations.

    Embeddings fit if their shapes do. Blocks must also have the same number of heads and the same activation.

    A student begins with blocks of its teacher ("Pre-trained Summarization Distillation", Shleifer and Rush, 2020).

    Args:
        model: a `Transformer`, which is changed.
        other: a `Transformer`.
        encoder_layers: for each encoder block, the index of the other model's block. Defaults to None: spread evenly,
            from the first to the last.
        decoder_layers: the same for the decoder.
        same_vocabulary: whether both have the same vocabulary; otherwise embeddings are not copied. Defaults to True.

    Returns:
        What was copied, a list of phrases.

    Raises:
        ValueError: one is pre-norm and the other post-norm, there are other numbers of blocks, or nothing fits.
    """
    config, others_config = model.get_config(), other.get_config()
    if config["normalize_first"] != others_config["normalize_first"]:
        raise ValueError(
            "Both models must be pre-norm or both post-norm: with the same weights, the two compute different things. "
            f"Received: a model with normalize_first={config['normalize_first']} and another with "
            f"normalize_first={others_config['normalize_first']}. Make both the same."
        )
    pairs = []
    if same_vocabulary:
        for name, side in (("source", "encoder"), ("target", "decoder")):
            pairs.append((f"embedding of the {name}", *_of_both(f"{side}_embedding", model, other)))
    for side, numbers in (("encoder", encoder_layers), ("decoder", decoder_layers)):
        blocks = _blocks(side, numbers, *_of_both(f"{side}_blocks", model, other))
        # With the same weights, blocks with other heads compute different things, too.
        if all(config[name] == others_config[name] for name in ("num_heads", "activation")):
            norms = _of_both(f"{side}_norm", model, other)
            pairs += [*blocks, (f"normalisation of the {side}", *norms)]
    copied = []
    for name, layer, original in pairs:
        if layer and original and [w.shape for w in layer.weights] == [w.shape for w in original.weights]:
            layer.set_weights(original.get_weights())
            copied.append(name)
    if not copied:
        width = others_config["hidden_dim"]
        raise ValueError(
            "No weights of the other model fit: blocks and embeddings must have the same sizes, blocks also the same "
            f"number of heads and activation. Received: a model of width {config['hidden_dim']}, another of width "
            f"{width}. Train without --layers-from, or with --hidden-dim {width}."
        )
    return copied


def _of_both(name, *models):
    return (getattr(model, name) for model in models)


def _blocks(side, numbers, blocks, others):
    """The blocks and those that they are copied from: (phrase, block, block of the other model) each."""
    if numbers is None:
        numbers = np.linspace(0, len(others) - 1, len(blocks)).round().astype(int).tolist()
    if len(numbers) != len(blocks) or not set(numbers) <= set(range(len(others))):
        raise ValueError(
            f"`{side}_layers` must name one block of the other model for each {side} block, from 0 to "
            f"{len(others) - 1}. Received: {side}_layers={list(numbers)} for {len(blocks)} blocks."
        )
    return [(f"{side} block {i}", block, others[i]) for block, i in zip(blocks, numbers, strict=True)]


def add_teacher(model: Transformer, teacher: Transformer | Ensemble, weight: float = 0.5) -> None:
    """Lets `fit` of a compiled model also learn the distributions of a teacher, see `TeacherCrossEntropy`.

        loss = (1 - weight) * loss of the labels + weight * loss of the teacher

    Validation has the loss of the labels alone. Saved files have no teacher: call this again before training continues.
    A second call replaces the teacher of the first.

    Args:
        model: a compiled `Transformer`.
        teacher: a `Transformer` with the same vocabulary, or an `Ensemble`. Its weights do not change.
        weight: in (0, 1]. Defaults to 0.5.

    Raises:
        ValueError: the vocabularies differ, or the weight is not in (0, 1].
    """
    if not 0 < weight <= 1:
        raise ValueError(f"`weight` must be in (0, 1]. Received: weight={weight}.")
    sizes = [(either.vocabulary_size, either.target_vocabulary_size) for either in (model, teacher)]
    if sizes[0] != sizes[1]:
        raise ValueError(
            "A teacher in the loss must have the vocabulary of the model: its distribution is over the same tokens. "
            f"Received: a model with {sizes[0]} ids, a teacher with {sizes[1]}. Train with --vocabulary-from."
        )
    loss_of_labels = getattr(model.compute_loss, "of_labels", model.compute_loss)
    loss_of_teacher = TeacherCrossEntropy()

    def compute_loss(x=None, y=None, y_pred=None, sample_weight=None, training=True):
        loss = loss_of_labels(x, y, y_pred, sample_weight, training=training)
        if not training:
            return loss
        return (1 - weight) * loss + weight * loss_of_teacher(teacher(x), y_pred, sample_weight)

    compute_loss.of_labels = loss_of_labels
    model.compute_loss = compute_loss
    model.train_function = None  # An earlier `fit` has made one with the loss of before.
