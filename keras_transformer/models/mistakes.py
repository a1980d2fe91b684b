"""Finds the classic mistakes of encoder-decoder models, in any Keras model and in what `fit` gives it."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np

from keras_transformer.text.special_ids import END_TOKEN_ID, PAD_TOKEN_ID

# Whole numbers up to these are exact; the next one is rounded to one of its neighbours.
LARGEST_EXACT = {"bfloat16": 2**8, "float16": 2**11}
STEPS = ("keras", "keras_transformer")  # Packages whose `train_step` passes labels and weights to the loss as they are.
LARGEST_LOGIT = 1e6  # Larger ones belong to tokens that the model forbids.


def find_mistakes(
    model: Callable, batch: Any, end_token_id: int = END_TOKEN_ID, tied_weights: bool = False
) -> list[str]:
    """Tries a model with a batch, and names each mistake that it finds.

    These mistakes raise no error: training continues, the loss falls, and translations are wrong. What a model computes
    says more than its code, so this function changes ids of the batch and looks at what changes in the logits. The
    model may have been made of any layers. It finds:

    - labels that are not the decoder's input shifted by one position, and targets without an end token;
    - a loss that counts padding: as `compile` set it, or, before that and with a `train_step` of your own, sample
      weights above 0 at padding, unless the logits carry a Keras mask;
    - source and target exchanged, in the batch or in the model;
    - padding of the source that changes the logits, unless the inputs of the model have a fixed length;
    - a decoder that sees later tokens, and one that does not see the source;
    - an encoder that does not know the order of its tokens;
    - positions that half precision makes equal;
    - with `tied_weights`, embeddings and output projection that are not one matrix.

    Args:
        model: a Keras model from two arrays of token ids, of source and target, to logits (B, T, V), or probabilities.
            Padding is id 0, before or after the tokens.
        batch: what `fit` takes: (inputs, labels) or (inputs, labels, sample weights). The inputs are a dict or a pair:
            token ids of the source (B, S), and of the target (B, T), shifted right. The keys of a dict begin with
            "encoder" or "source", and with "decoder" or "target". Labels are ids (B, T).
        end_token_id: id of the token that ends a target. Defaults to 3.
        tied_weights: whether the embeddings and the output projection should be one matrix ("Attention Is All You
            Need", section 3.4). Defaults to False: it is not checked.

    Returns:
        A list of sentences, one for each mistake; empty if none was found.

    Raises:
        ValueError: the batch has another form.

    Example:
        >>> model = Transformer(100, num_layers=1, num_heads=2, hidden_dim=16, intermediate_dim=16)
        >>> inputs = {"encoder_token_ids": np.array([[7, 8, 3]]), "decoder_token_ids": np.array([[2, 9, 5]])}
        >>> find_mistakes(model, (inputs, np.array([[9, 5, 3]])))
        []
        >>> find_mistakes(model, (inputs, np.array([[2, 9, 3]])))[0].split(":")[0]
        'The labels do not continue what the decoder reads'
    """
    inputs, labels = _parts(batch)
    source, target, arranged = _source_and_target(inputs)
    mistakes, exchanged = _mistakes_of_labels(source, target, labels, end_token_id)
    if exchanged:
        return mistakes  # The model would be tried with the wrong texts.

    def tensors(*ids):
        return arranged(*(keras.ops.convert_to_tensor(part, "int32") for part in ids))

    def call(*ids):
        return model(tensors(*ids), training=False)

    longest = np.argsort(-(target != PAD_TOKEN_ID).sum(axis=1), kind="stable")
    rows = np.r_[longest[:2], longest[-2:]]  # The last ones have padding.
    source, target, *given = (np.asarray(part)[rows] for part in (source, target, *batch[1:]) if part is not None)
    found = call(source, target)
    if len(getattr(found, "shape", ())) != 3:
        raise ValueError(
            f"`model` must give logits of shape (B, T, V), one tensor. Received: {type(found).__name__}. Wrap a model "
            "that gives more: `keras.Model(model.inputs, model.outputs[0])`."
        )
    if _counts_padding(model, found, tensors(source, target), *given):
        mistakes.append(
            "The loss counts padding, so the model learns to write padding. Give `fit` sample weights that are 0 where "
            "labels are padding: `labels != 0`."
        )
    mistakes += _mistakes_of_model(model, lambda *ids: _numbers(call(*ids)), source, target, _numbers(found))
    return mistakes + (_untied(model, found.shape[-1]) if tied_weights else [])


def _numbers(logits):
    numbers = keras.ops.convert_to_numpy(keras.ops.cast(logits, "float32"))
    # Most probabilities of a trained model are near 0, where all differences are small. Their logarithms are logits.
    if (numbers >= 0).all() and np.allclose(numbers.sum(axis=-1), 1, atol=0.1):
        return np.log(np.maximum(numbers, 1e-30))
    return numbers


def _parts(batch):
    """The inputs and labels (B, T) of a batch."""
    if not isinstance(batch, tuple | list) or len(batch) not in (2, 3):
        raise ValueError(
            "`batch` must be what `fit` takes: (inputs, labels) or (inputs, labels, sample weights). "
            f"Received: {type(batch).__name__}. Take one of a data set: `next(iter(dataset))`."
        )
    labels = _ids("Labels", batch[1])
    if labels.min() < 0 or not labels.any():
        raise ValueError(
            "Labels must be token ids, padded with 0, and not all of them padding. Received: labels from "
            f"{labels.min()} to {labels.max()}. Use 0 for padding, and weights `labels != 0`."
        )
    return batch[0], labels


def _ids(name, values):
    """Token ids as an array (B, L)."""
    if not hasattr(values, "to_tensor"):  # Not ragged.
        ids = np.asarray(values)
        if ids.ndim == 3 and ids.shape[-1] == 1:
            ids = ids[..., 0]
        if ids.ndim == 2 and ids.size and ids.dtype.kind in "iuf":
            return ids
    raise ValueError(
        f"{name} must be token ids of shape (batch, length), padded with 0. Received: {type(values).__name__} of shape "
        f"{tuple(np.shape(values)) if not hasattr(values, 'to_tensor') else values.shape}."
    )


def _source_and_target(inputs):
    """The ids of source and target, and a function that makes inputs of such ids."""
    if isinstance(inputs, dict):
        sides = [[name for name in inputs if str(name).startswith(side)] for side in _SIDES]
        if [len(names) for names in sides] == [1, 1] == [len(inputs) - 1] * 2:
            (source,), (target,) = sides
            return (
                _ids(source, inputs[source]),
                _ids(target, inputs[target]),
                lambda *ids: {source: ids[0], target: ids[1]},
            )
    elif isinstance(inputs, tuple | list) and len(inputs) == 2:
        return _ids("Source", inputs[0]), _ids("Target", inputs[1]), lambda *ids: type(inputs)(ids)
    received = list(inputs) if isinstance(inputs, dict) else type(inputs).__name__
    raise ValueError(
        "The inputs must be the token ids of source and target: a pair, or a dict whose keys begin with 'encoder' or "
        f"'source', and with 'decoder' or 'target'. Received: {received}. Wrap a model that has other inputs: "
        "`keras.Model([source, target], logits)`."
    )


_SIDES = ("encoder", "source"), ("decoder", "target")


def _mistakes_of_labels(source, target, labels, end_token_id):
    """What is wrong with the ids of a batch, and whether source and target are exchanged in it."""
    mistakes, real = [], labels != PAD_TOKEN_ID
    exchanged = not _continue(target, labels) and _continue(source, labels)
    if exchanged:
        mistakes.append(
            "Source and target are exchanged in the batch: the labels continue what the encoder reads. The encoder "
            "reads the source, the decoder the target, shifted right."
        )
    elif target.shape == labels.shape and (target == labels)[real].all():
        mistakes.append(
            "The labels are not shifted: each label is the token that the decoder reads at the same position, so the "
            "model learns to copy it. The decoder reads the start token and the target; the labels are the target and "
            "the end token (section 3.1)."
        )
    elif not _continue(target, labels):
        mistakes.append(
            "The labels do not continue what the decoder reads: the label at position t must be the decoder's input at "
            f"position t + 1. The first row has the input {target[0].tolist()} and the labels {labels[0].tolist()}."
        )
    last = labels.shape[1] - 1 - np.argmax(real[:, ::-1], axis=1)
    unfinished = (labels[np.arange(len(labels)), last] != end_token_id)[real.any(axis=1)]
    if unfinished.mean() > 0.5:  # Some may have been cut.
        mistakes.append(
            f"The targets have no end token: the last label of {unfinished.sum()} of {len(unfinished)} targets is not "
            f"{end_token_id}, so the model does not learn to stop, and translations run on to the limit of the search. "
            "Append it to every target, or pass `end_token_id` if it has another id."
        )
    return mistakes, exchanged


def _continue(inputs, labels):
    """Whether each label is the next token of the inputs."""
    if inputs.shape != labels.shape:
        return False
    following, labels = inputs[:, 1:], labels[:, :-1]
    return (following == labels)[(following != PAD_TOKEN_ID) & (labels != PAD_TOKEN_ID)].all()


def _counts_padding(model, found, inputs, labels, weights=None):
    """Whether other predictions where labels are padding change the loss; `found` are logits of the model."""
    padding = labels.reshape(len(labels), -1) == PAD_TOKEN_ID
    # Keras multiplies the weights by a mask that the logits carry.
    masked = getattr(found, "_keras_mask", None) is not None
    given = {"y": keras.ops.convert_to_tensor(labels), "sample_weight": weights}

    def loss(at_padding):
        # Probabilities, which a loss may ask for, are also logits.
        likely = keras.ops.one_hot(np.where(padding, at_padding, END_TOKEN_ID), found.shape[-1], dtype="float32")
        predictions = (likely + 1 / found.shape[-1]) / 2
        if masked:
            predictions._keras_mask = keras.ops.convert_to_tensor(~padding)
        with keras.StatelessScope():  # The user's own `compute_loss` may update metrics.
            return float(keras.ops.sum(model.compute_loss(x=inputs, y_pred=predictions, **given)))

    # A `train_step` of the user's own may leave padding out before it calls the loss, or call another one.
    known = getattr(model, "compiled", False) and model.train_step.__module__.split(".")[0] in STEPS
    losses = known and _or_else(lambda: [loss(token_id) for token_id in (PAD_TOKEN_ID, END_TOKEN_ID)], None)
    if losses:
        return abs(losses[1] - losses[0]) > 1e-6 * abs(losses[0])
    # Weights of whole sentences say nothing about padding.
    by_token = not masked and weights is not None and weights.size == padding.size
    return by_token and bool(weights.reshape(padding.shape)[padding].any())


def _mistakes_of_model(model, logits, source, target, before):
    """What is wrong with a model, from what its logits depend on; `before` are those of the batch as it is."""
    real = target != PAD_TOKEN_ID  # Logits at padding may be anything.
    if before.shape[1] != target.shape[1]:
        if before.shape[1] == source.shape[1]:
            return [EXCHANGED.format("it has a logit for each position of the source, and not of the target")]
        return [f"There are logits for {before.shape[1]} positions, and the target has {target.shape[1]}."]
    if np.isnan(before[real]).any():
        return ["The logits are not numbers: some are NaN, also at tokens that are not padding."]
    usual = before[real][np.abs(before[real]) < LARGEST_LOGIT]
    scale = np.subtract(*np.percentile(usual, (90, 10)))
    precision = _precision(model)

    def differ(found, wanted, tolerance=1e-3):
        """Whether logits differ by more than a share of their usual size; in half precision, twenty times as much."""
        both = (np.abs(found) < LARGEST_LOGIT) & (np.abs(wanted) < LARGEST_LOGIT)
        tolerance *= scale * (20 if precision in LARGEST_EXACT else 1)
        return bool((np.abs(found - wanted)[both] > tolerance).any())

    if differ(logits(source, target)[real], before[real]):
        return ["The model gives other logits at each call, also with `training=False`: some dropout is always on."]
    mistakes, last = [], np.flatnonzero(real.any(axis=0))[-1]  # Padding may come first.
    earlier = real & (np.arange(target.shape[1]) < last)
    sees_later = differ(logits(source, _changed(target, last))[earlier], before[earlier])
    sees_end, sees_begin = (differ(logits(_changed(source, i), target)[:, 0], before[:, 0], 1e-6) for i in (-1, 0))
    if sees_later and sees_begin and not sees_end:
        return [EXCHANGED.format("the first logits depend on the last target token, and not on the last source token")]
    if sees_later:
        mistakes.append(
            "The decoder sees later tokens: a change of the last target token changes earlier logits. In training the "
            "model reads the answer, which it does not have when it translates. Use a causal mask (section 3.2.3)."
        )
    places = _knows_places(logits, source, target, differ)
    half_precision = _half_precision(logits, source, target, precision, differ, places)
    if not differ(logits(_changed(source, slice(None)), target)[real], before[real], 1e-6):
        mistakes.append(
            "The decoder does not see the source: other source tokens give the same logits. Each decoder block needs "
            "cross-attention to the output of the encoder (section 3.2.3). If it has a weight that begins with 0, "
            "check again after some steps."
        )
        return mistakes + half_precision
    if half := source.shape[1] // 2:
        short = source[:, :half]
        padded = np.pad(short, [(0, 0), (0, source.shape[1] - half)], constant_values=PAD_TOKEN_ID)
        with_padding = logits(padded, target)
        without = _or_else(lambda: logits(short, target), with_padding)
        known = real & short.any(axis=1, keepdims=True)  # Attention to nothing but padding may be anything.
        if differ(with_padding[known], without[known], 5e-3):
            mistakes.append(
                "Padding is attended to: padding after the source changes the logits, so a translation depends on the "
                "other sentences of its batch. Some attention gets no padding mask; "
                "`keras.layers.MultiHeadAttention` removes it from its inputs, and `a + b` loses it."
            )
    if not (places[0] or _knows_order(logits, source, target, before, differ)):
        mistakes.append(
            "The encoder does not know the order of its tokens: the reversed source gives the same logits. Add "
            "positions to the embeddings (section 3.5)."
        )
    return mistakes + half_precision


def _precision(model):
    """The dtype of the least precise layer."""
    found = {getattr(layer, "compute_dtype", None) for layer in (model, *getattr(model, "layers", ()))}
    return next((dtype for dtype in LARGEST_EXACT if dtype in found), "float32")


def _or_else(function, value):
    """What a function returns, or the value if the model takes no inputs of this length."""
    try:
        return function()
    except Exception:
        return value


def _changed(ids, places):
    """Token ids with other tokens at places of each row."""
    changed = ids.copy()
    changed[:, places] = np.where(ids[:, places] == END_TOKEN_ID, END_TOKEN_ID + 1, END_TOKEN_ID)
    return changed


def _knows_order(logits, source, target, before, differ):
    """Whether the logits change if the source is reversed."""
    reversed_source = source.copy()
    for row, ids in zip(reversed_source, source, strict=True):
        row[ids != PAD_TOKEN_ID] = ids[ids != PAD_TOKEN_ID][::-1]
    if (reversed_source == source).all():
        return True  # One cannot know.
    return differ(logits(reversed_source, target)[:, 0], before[:, 0], 1e-4)


def _knows_places(logits, source, target, differ, place=0, step=1):
    """Whether encoder and decoder tell a token at a place from the same token, alone, `step` places later."""
    found = []
    for ids, others in ((source, target), (target, source)):
        length = max(ids.shape[1], place + step + 1)
        at = np.full((2, length), PAD_TOKEN_ID)
        at[[0, 1], [place, place + step]] = ids[ids > 0][0]
        rows = [at[i : i + 1] for i in (0, 1)]
        if ids is source:
            one, other = (logits(row, others[:1])[0, 0] for row in rows)
        else:
            one, other = (logits(others[:1], row)[0, place + step * i] for i, row in enumerate(rows))
        found.append(differ(one, other, 1e-5))
    return found


def _half_precision(logits, source, target, precision, differ, near):
    """Whether places that are known at the beginning, `near`, are not known where half precision has no odd numbers."""
    if precision not in LARGEST_EXACT:
        return []
    exact = LARGEST_EXACT[precision]

    def known(step):
        # A table of positions may end before: the model takes no such places, or takes all for the last one.
        return _or_else(lambda: _knows_places(logits, source, target, differ, exact, step), near)

    odd = known(step=1)
    unknown = [side for side in (0, 1) if near[side] and not odd[side]]
    even = known(step=2) if unknown else []
    if not any(even[side] for side in unknown):
        return []
    return [
        f"Positions are in half precision: in {precision}, {exact} and {exact + 1} are one number, so these positions "
        "are one. Compute positions in float32, and cast their sum with the embeddings."
    ]


def _untied(model, vocabulary_size):
    """Embeddings and projections are layers of the model, or named so."""
    matrices = [
        weight
        for weight in model.weights
        if len(weight.shape) == 2
        and vocabulary_size in tuple(weight.shape)
        and ("embed" in weight.path or weight.path.count("/") < 2)
        and "position_" not in weight.path.rsplit("/", 1)[-1]
    ]
    if len(matrices) < 2:
        return []
    return [
        f"The weights are not tied: {len(matrices)} matrices have the size of the vocabulary, {vocabulary_size}. Both "
        "embeddings and the output projection should be one (section 3.4)."
    ]


EXCHANGED = (
    "Source and target are exchanged in the model: {}. The encoder reads the source. The decoder reads the target, and "
    "attends to the output of the encoder."
)
