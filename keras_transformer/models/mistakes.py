"""Finds the classic mistakes of encoder-decoder models, in any Keras model and in what `fit` gives it."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np

from keras_transformer.text.special_ids import END_TOKEN_ID, PAD_TOKEN_ID

ROWS, TOKENS = 4, 12  # Of a batch, the part that the model is tried with.
# Whole numbers up to these are exact; the next one is rounded to one of its neighbours.
LARGEST_EXACT = {"bfloat16": 2**8, "float16": 2**11}


def find_mistakes(model: Callable, batch: Any, end_token_id: int = END_TOKEN_ID) -> list[str]:
    """Tries a model with a batch, and names each mistake that it finds.

    None of these mistakes raises an error: training continues, the loss falls, and translations are wrong. What a model
    computes says more than its code: this function changes ids of the batch and looks at what changes in the logits. So
    it takes every encoder-decoder model, also one that has nothing of this package. It finds:

    - labels that are not the decoder's input shifted by one position, and targets without an end token;
    - a loss that counts padding;
    - source and target exchanged, in the batch or in the model;
    - padding of the source that changes the logits;
    - a decoder that sees later tokens, and one that does not see the source;
    - positions that are missing, or that half precision makes equal;
    - embeddings and output projection that are not one matrix ("Attention Is All You Need", section 3.4).

    Args:
        model: a Keras model from token ids of source and target, of any length, to logits (B, T, V). Padding is id 0.
        batch: what `fit` takes: (inputs, labels) or (inputs, labels, sample weights). The inputs are a dict or a pair:
            token ids of the source (B, S), and of the target (B, T), shifted right. The keys of a dict begin with
            "encoder" or "source", and with "decoder" or "target".
        end_token_id: id of the token that ends a target. Defaults to 3.

    Returns:
        A list of sentences, one for each mistake; empty if none was found.

    Raises:
        ValueError: the batch has another form.

    Example:
        >>> model = Transformer(100, num_layers=1, num_heads=2, hidden_dim=16, intermediate_dim=16)
        >>> inputs = {"encoder_token_ids": np.array([[7, 8, 3]]), "decoder_token_ids": np.array([[2, 9, 5]])}
        >>> find_mistakes(model, (inputs, np.array([[9, 5, 3]])))
        []
        >>> find_mistakes(model, (inputs, np.array([[2, 9, 5]])))[0].split(":")[0]
        'The labels are not shifted'
    """
    inputs, labels, weights = _parts(batch)
    source, target, arranged = _source_and_target(inputs)
    mistakes = _mistakes_of_labels(source, target, labels, weights, end_token_id)
    if any("exchanged" in mistake for mistake in mistakes):
        return mistakes  # The model would be tried with the wrong texts.

    def logits(source, target):
        x = model(arranged(source.astype("int32"), target.astype("int32")), training=False)
        return keras.ops.convert_to_numpy(keras.ops.cast(x, "float32"))

    return mistakes + _mistakes_of_model(model, logits, source[:ROWS, :TOKENS], target[:ROWS, :TOKENS])


def _parts(batch):
    """The inputs, labels and sample weights, or None, of a batch."""
    if not isinstance(batch, tuple | list) or len(batch) not in (2, 3):
        raise ValueError(
            "`batch` must be what `fit` takes: (inputs, labels) or (inputs, labels, sample weights). "
            f"Received: {type(batch).__name__}. Take one of a data set: `next(iter(dataset))`."
        )
    inputs, labels, *weights = batch
    return inputs, np.asarray(labels), np.asarray(weights[0]) if weights else None


def _source_and_target(inputs):
    """The ids of source and target, and a function that makes inputs of such ids."""
    if isinstance(inputs, dict):
        sides = [[name for name in inputs if str(name).startswith(side)] for side in _SIDES]
        if [len(names) for names in sides] == [1, 1] == [len(inputs) - 1] * 2:
            (source,), (target,) = sides
            return np.asarray(inputs[source]), np.asarray(inputs[target]), lambda *ids: {source: ids[0], target: ids[1]}
    elif isinstance(inputs, tuple | list) and len(inputs) == 2:
        return *map(np.asarray, inputs), lambda *ids: type(inputs)(ids)
    raise ValueError(
        "The inputs must be the token ids of source and target: a pair, or a dict whose keys begin with 'encoder' or "
        f"'source', and with 'decoder' or 'target'. Received: {keras.tree.map_structure(np.shape, inputs)}."
    )


_SIDES = ("encoder", "source"), ("decoder", "target")


def _mistakes_of_labels(source, target, labels, weights, end_token_id):
    """What is wrong with the ids of a batch."""
    mistakes, real = [], labels != PAD_TOKEN_ID
    if not _continue(target, labels):
        if target.shape == labels.shape and (target == labels)[real].all():
            mistakes.append(
                "The labels are not shifted: each label is the token that the decoder reads at the same position, so "
                "the model learns to copy it. The decoder reads the start token and the target; the labels are the "
                "target and the end token (section 3.1)."
            )
        elif _continue(source, labels):
            mistakes.append(
                "Source and target are exchanged in the batch: the labels continue what the encoder reads. The encoder "
                "reads the source, the decoder the target, shifted right."
            )
        else:
            mistakes.append(
                "The labels do not continue what the decoder reads: the label at position t must be the decoder's "
                f"input at position t + 1. The first row has the input {target[0].tolist()} and the labels "
                f"{labels[0].tolist()}."
            )
    if not (labels == end_token_id).any():
        mistakes.append(
            f"The targets have no end token: no label is {end_token_id}, so the model never learns to stop, and "
            "translations run on to the limit of the search. Append it to every target."
        )
    if weights is not None and np.any(np.broadcast_to(weights, labels.shape)[~real]):
        mistakes.append(
            "The loss counts padding: sample weights are above 0 where labels are padding, so the model learns to "
            "write padding. Set the weights to `labels != 0`."
        )
    return mistakes


def _continue(inputs, labels):
    """Whether each label is the next token of the inputs."""
    if inputs.shape != labels.shape:
        return False
    following = inputs[:, 1:]
    return (following == labels[:, :-1])[following != PAD_TOKEN_ID].all()


def _mistakes_of_model(model, logits, source, target):
    """What is wrong with a model, from what its logits depend on."""
    source = source[:, : max(2, source.shape[1] - (source.shape[1] == target.shape[1]))]  # Of different lengths.
    before = logits(source, target)
    if before.shape[1] != target.shape[1]:
        return [EXCHANGED.format(f"there are logits for {before.shape[1]} positions of the source, not of the target")]
    precision = getattr(model, "compute_dtype", "float32")
    tolerance = (1e-2 if precision in LARGEST_EXACT else 1e-4) * np.abs(before).max()

    def differ(found, wanted):
        return np.abs(found - wanted).max() > tolerance

    mistakes = []
    real = target != PAD_TOKEN_ID  # Logits at padding may depend on anything.
    earlier = real[:, :-1]
    sees_later = differ(logits(source, _changed_last(target))[:, :-1][earlier], before[:, :-1][earlier])
    sees_source = differ(logits(_changed_last(source), target)[:, 0], before[:, 0])
    if sees_later and not sees_source:
        return [EXCHANGED.format("the first logits depend on the last target token, and not on the last source token")]
    if sees_later:
        mistakes.append(
            "The decoder sees later tokens: a change of the last target token changes earlier logits. In training the "
            "model reads the answer, which it does not have when it translates. Use a causal mask (section 3.2.3)."
        )
    if not sees_source:
        mistakes.append(
            "The decoder does not see the source: a change of the last source token does not change the first logits. "
            "Each decoder block needs cross-attention to the output of the encoder (section 3.2.3)."
        )
    longer = np.pad(source, [(0, 0), (0, 2 * TOKENS)], constant_values=PAD_TOKEN_ID)
    if differ(logits(longer, target)[real], before[real]):
        mistakes.append(
            "Padding is attended to: more padding after the source changes the logits, so a translation depends on the "
            "other sentences of its batch. Some attention gets no padding mask; `keras.layers.MultiHeadAttention` "
            "removes it from its inputs, and `a + b` loses it."
        )
    learned = getattr(model, "max_length", None)  # A table, whose rows are found by whole numbers.
    precision = "float32" if learned else precision
    mistakes += _mistakes_of_positions(logits, source, target, precision, differ)
    vocabulary_size = before.shape[-1]
    matrices = [w for w in getattr(model, "weights", ()) if len(w.shape) == 2 and vocabulary_size in tuple(w.shape)]
    if len(matrices) > 1:
        mistakes.append(
            f"The weights are not tied: {len(matrices)} matrices have the size of the vocabulary, {vocabulary_size}. "
            "Both embeddings and the output projection share one (section 3.4), which small corpora need. It is no "
            "mistake if you want it so."
        )
    return mistakes


def _changed_last(ids):
    """Token ids with another token at the last position of each row."""
    changed = ids.copy()
    changed[:, -1] = np.where(ids[:, -1] == END_TOKEN_ID, END_TOKEN_ID + 1, END_TOKEN_ID)
    return changed


def _mistakes_of_positions(logits, source, target, precision, differ):
    """Whether the decoder cannot tell two positions apart: one token alone, at the one or at the other."""

    def moves_matter(position):
        ids = np.full((2, position + 2), PAD_TOKEN_ID)
        ids[[0, 1], [position, position + 1]] = target[0, 0]
        found = logits(np.repeat(source[:1], 2, axis=0), ids)
        return differ(found[0, position], found[1, position + 1])

    if not moves_matter(1):
        return ["There are no positions: a token has the same logits at each of them. Add positions to the embeddings."]
    exact = LARGEST_EXACT.get(precision)
    if exact and not moves_matter(exact):
        return [
            f"Positions are in half precision: in {precision}, {exact} and {exact + 1} are one number, so the decoder "
            "cannot tell these positions apart. Compute positions in float32, and cast their sum with the embeddings."
        ]
    return []


EXCHANGED = (
    "Source and target are exchanged in the model: {}. The encoder reads the source. The decoder reads the target, and "
    "attends to the output of the encoder."
)
