"""From teacher to student: the weights that a student begins with, and the loss of the teacher."""

import keras
import numpy as np
import pytest
from arrays import seed_weights
from keras import ops

from keras_transformer.models.transformer import Transformer
from keras_transformer.training.initialization import add_teacher, copy_weights
from keras_transformer.training.losses import LabelSmoothedCrossEntropy, TeacherCrossEntropy

SIZES = {"num_heads": 2, "hidden_dim": 8, "intermediate_dim": 12}


def test_a_student_begins_with_blocks_spread_over_those_of_its_teacher():
    teacher, student = (
        Transformer(13, num_layers=4, num_decoder_layers=n, normalize_first=True, **SIZES) for n in (5, 3)
    )
    copied = copy_weights(student, teacher, encoder_layers=[3, 2, 1, 0])
    assert copied[:3] == ["embedding of the source", "embedding of the target", "encoder block 3"] and len(copied) == 11

    def same(a, b):
        return all(np.array_equal(*pair) for pair in zip(a.get_weights(), b.get_weights(), strict=True))

    assert all(same(student.encoder_blocks[i], teacher.encoder_blocks[3 - i]) for i in range(4))
    assert all(same(student.decoder_blocks[i], teacher.decoder_blocks[j]) for i, j in enumerate((0, 2, 4)))
    assert same(student.decoder_norm, teacher.decoder_norm)
    other = Transformer(11, num_layers=1, normalize_first=True, **SIZES)
    assert "embedding of the source" not in copy_weights(other, teacher)
    same_size = Transformer(13, num_layers=1, normalize_first=True, **SIZES)
    assert "embedding of the source" not in copy_weights(same_size, teacher, same_vocabulary=False)
    with pytest.raises(ValueError, match=r"from 0 to 4\. Received: decoder_layers=\[0, 5, 1\] for 3 blocks"):
        copy_weights(student, teacher, decoder_layers=[0, 5, 1])
    other_heads = Transformer(13, num_layers=1, normalize_first=True, **{**SIZES, "num_heads": 4})
    assert copy_weights(other_heads, teacher) == ["embedding of the source", "embedding of the target"]
    post_norm = Transformer(13, num_layers=1, **SIZES)
    with pytest.raises(ValueError, match=r"normalize_first=False and another with normalize_first=True\. Make both"):
        copy_weights(post_norm, teacher)
    wide = Transformer(17, num_layers=1, num_heads=2, hidden_dim=16, intermediate_dim=12, normalize_first=True)
    with pytest.raises(ValueError, match="a model of width 16, another of width 8"):
        copy_weights(wide, teacher)


def test_the_loss_of_the_teacher_is_its_cross_entropy():
    rng = np.random.default_rng(0)
    theirs, mine = rng.normal(size=(2, 2, 3, 5)).astype("float32")
    weights = np.array([[1, 1, 0], [1, 0, 0]], "float32")
    probabilities, log_probs = ops.softmax(theirs), ops.log_softmax(mine)
    wanted = -(ops.convert_to_numpy(ops.sum(probabilities * log_probs, axis=-1)) * weights).sum() / 3
    assert float(TeacherCrossEntropy()(theirs, mine, weights)) == pytest.approx(wanted, rel=1e-5)


def test_fit_learns_from_the_teacher_alone_or_beside_the_labels(tmp_path):
    seed_weights(0)
    teacher = Transformer(13, num_layers=1, **SIZES)
    teacher.set_weights([3 * w for w in teacher.get_weights()])
    before = teacher.get_weights()
    rng = np.random.default_rng(1)
    source, target = rng.integers(4, 13, (2, 16, 6)).astype("int32")
    inputs = {"encoder_token_ids": source, "decoder_token_ids": target}

    def distance(model):
        a, b = (ops.convert_to_numpy(ops.log_softmax(m(inputs))) for m in (teacher, model))
        return (np.exp(a) * (a - b)).sum(axis=-1).mean()

    model = Transformer(13, num_layers=1, **SIZES)
    count = len(model.weights)
    model.compile(keras.optimizers.Adam(0.01), LabelSmoothedCrossEntropy(), jit_compile=False)
    add_teacher(model, teacher, 1.0)
    began = distance(model)
    history = model.fit(inputs, target, sample_weight=np.ones((16, 6)), epochs=30, verbose=0, batch_size=16).history
    assert distance(model) < began / 2
    assert history["loss"][-1] < history["loss"][0]
    assert all(np.array_equal(*pair) for pair in zip(before, teacher.get_weights(), strict=True))
    assert len(model.weights) == count
    # After a `fit`, a teacher counts, too, and another one takes its place.
    again = Transformer(13, num_layers=1, dropout=0.0, **SIZES)
    # Without graphs, which take longer than these few steps.
    again.compile(keras.optimizers.SGD(0.0), LabelSmoothedCrossEntropy(), jit_compile=False, run_eagerly=True)
    losses, validated = [], []
    for one in (None, model, teacher):
        if one:
            add_teacher(again, one, 1.0)
        history = again.fit(inputs, target, sample_weight=np.ones((16, 6)), verbose=0, batch_size=16).history
        losses.append(history["loss"][0])
        validated.append(again.evaluate(inputs, target, sample_weight=np.ones((16, 6)), verbose=0))
    assert validated == pytest.approx(losses[:1] * 3, rel=1e-5)  # Validation has the loss of the labels alone.
    wanted = float(TeacherCrossEntropy()(teacher(inputs), again(inputs), np.ones((16, 6), "float32")))
    assert losses[2] == pytest.approx(wanted, rel=1e-4) and len({round(loss, 4) for loss in losses}) == 3
    with pytest.raises(ValueError, match=r"`weight` must be in \(0, 1\]\. Received: weight=0"):
        add_teacher(again, teacher, 0)
    model.save(tmp_path / "model.keras")
    assert type(keras.saving.load_model(tmp_path / "model.keras")) is Transformer
    with pytest.raises(ValueError, match=r"Received: a model with \(13, 13\) ids, a teacher with \(17, 17\)"):
        add_teacher(model, Transformer(17, num_layers=1, **SIZES))
