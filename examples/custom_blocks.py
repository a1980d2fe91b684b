"""Replaces parts of the blocks: feed-forward by SwiGLU (Shazeer, 2020), normalisation by RMSNorm (Zhang et al., 2019).

    python examples/custom_blocks.py

It trains the usual model and the changed one, of equal size, and prints their validation losses: 2.2 and 1.8. The
search of the changed one, saved and loaded, must find what a full pass predicts. It takes 90 seconds on two cores.
"""

import argparse

import keras
import numpy as np

import keras_transformer as kt
from keras_transformer.data.batches import encode_pairs, make_batches
from keras_transformer.data.phrasebook import phrasebook
from keras_transformer.text.special_ids import START_TOKEN_ID
from keras_transformer.training.schedules import make_optimizer, make_schedule

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--epochs", type=int, default=3)
arguments = parser.parse_args()


class SwiGLU(kt.FeedForward):
    def build(self, inputs_shape):
        super().build(inputs_shape)
        self.gate_dense = keras.layers.Dense(self.intermediate_dim, dtype=self.dtype_policy, name="gate")
        self.gate_dense.build(inputs_shape)

    def call(self, inputs):
        return self.output_dense(self.intermediate_dense(inputs) * self.gate_dense(inputs))  # (silu(x W) * x V) W2


class GatedEncoderBlock(kt.EncoderBlock):
    feed_forward_class, norm_class = SwiGLU, keras.layers.RMSNormalization


class GatedDecoderBlock(kt.DecoderBlock):
    feed_forward_class, norm_class = SwiGLU, keras.layers.RMSNormalization


@keras.saving.register_keras_serializable(package="custom_blocks")  # So that `load_model` finds it.
class GatedTransformer(kt.Transformer):
    encoder_block_class, decoder_block_class = GatedEncoderBlock, GatedDecoderBlock


# The text and its batches, as in train_from_scratch.py.
text = phrasebook()
tokenizer = kt.Tokenizer.train(sentence for pair in text["train"] for sentence in pair)
train, validation = (
    make_batches(encode_pairs(pairs, tokenizer, tokenizer, max_length=64), tokens_per_batch=1024, shuffle=shuffle)
    for pairs, shuffle in ((text["train"][:6000], True), (text["validation"], False))
)

# Both models. The gate of SwiGLU is a third matrix, so two thirds of the width give as many weights.
keras.utils.set_random_seed(0)
sizes = {"vocabulary_size": tokenizer.vocabulary_size, "num_layers": 2, "num_heads": 4, "hidden_dim": 128}
for model in (
    kt.Transformer(**sizes, intermediate_dim=384, normalize_first=True),
    GatedTransformer(**sizes, intermediate_dim=256, normalize_first=True, activation="silu"),
):
    schedule = make_schedule(peak=0.4 / 128, steps=arguments.epochs * train.steps_per_epoch)
    model.compile(make_optimizer(schedule), loss=kt.LabelSmoothedCrossEntropy(), jit_compile=False)
    model.fit(train.dataset, steps_per_epoch=train.steps_per_epoch, epochs=arguments.epochs, shuffle=False, verbose=2)
    loss = model.evaluate(validation.dataset, verbose=0)
    print(f"{type(model).__name__}: {model.count_params():,} weights, validation loss {loss:.3f}")

# The changed model is saved, loaded and searched as any other.
model.save("gated.keras")
translator = kt.Translator(keras.saving.load_model("gated.keras"), tokenizer, num_beams=1)
for source, _ in text["test"][:3]:
    (found,) = translator.translate([source], return_scores=True)
    encoder_ids, decoder_ids = translator.codec.source_ids([source]), [[START_TOKEN_ID, *found.token_ids[:-1]]]
    logits = translator.model([np.array(encoder_ids), np.array(decoder_ids)])
    assert np.argmax(logits[0], axis=-1).tolist() == list(found.token_ids)
    print(f"{source} -> {found.text}")
