"""One change of the recipe, in as many steps as without it: what was tried, and what it gained.

    python benchmarks/recipe.py none --steps 2041 --dataset libreoffice --num-beams 1 --run-dir RUN
    python benchmarks/recipe.py muon --steps 2041 --dataset libreoffice --num-beams 1 --run-dir RUN --seed 2

Flags after --steps are those of `train_keras.py`. The learning rate falls to zero, except with `averages`, and subword
sampling never ends. The validation text is scored with the last weights. The changes are:

- averages: the learning rate falls with the inverse square root of the step, and the weights that are scored are moving
  averages (momentum 0.998). Recipes were like that before.
- linear: the learning rate falls in a straight line ("Straight to Zero", Bergsma et al., 2025).
- muon: Keras' Muon for matrices, Adam for all other weights ("Muon is Scalable for LLM Training", Liu et al., 2025).
- rms: `RMSNormalization` in place of `LayerNormalization` (Zhang and Sennrich, 2019).
- gated: feed-forward sublayers with a gate, of two thirds of the width ("GLU Variants Improve Transformer", Shazeer,
  2020).
- rdrop: two forward passes with different dropout, whose difference is part of the loss ("R-Drop", Wu et al., 2021),
  with the weight of the paper's alpha of 2.

Without pre-norm: `none --no-normalize-first`.
"""

import argparse
import os
import sys
import time

BATCHES = 200  # To be timed without a model.
CHANGES = ("none", "averages", "linear", "muon", "rms", "gated", "rdrop")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("change", choices=CHANGES)
    parser.add_argument("--steps", type=int, required=True, help="optimizer steps")
    arguments, flags = parser.parse_known_args()
    os.environ.setdefault("TF_CPU_ALLOCATOR_USE_BFC", "true")  # As `train_keras.py`, before TensorFlow is imported.
    import train_keras
    from keras_transformer.training import fit

    fit.fit = measured
    globals().get(arguments.change, lambda: None)()
    flags += ["--steps-per-epoch", str(arguments.steps), "--epochs", "1", "--no-export"]
    return train_keras.main(flags)


def measured(model, run, config, batches, validation, callbacks, done, strategy):
    """In place of `keras_transformer.training.fit.fit`: trains, scores and ends."""
    from keras_transformer.data.corpora import load_corpus
    from keras_transformer.translation.evaluation import score
    from keras_transformer.translation.translator import Translator

    began = time.process_time()
    model.fit(batches.from_step(0), steps_per_epoch=batches.steps_per_epoch, epochs=1, shuffle=False, verbose=2)
    minutes = (time.process_time() - began) / 60
    began = time.process_time()
    for _ in batches.from_step(0).take(BATCHES):
        pass
    making = (time.process_time() - began) / BATCHES
    found = model.evaluate(validation.dataset, steps=validation.steps_per_epoch, verbose=0, return_dict=True)
    print(f"{minutes:.1f} minutes of processor time; validation perplexity {found['perplexity']:.2f}")
    print(f"{1e3 * making:.1f} ms of a step's {6e4 * minutes / batches.steps_per_epoch:.1f} make its batch")
    translator = Translator(model, *run.tokenizers(), max_source_length=config.data.max_length, **vars(config.search))
    score(translator, load_corpus(config.data).validation[0], config, " ".join(sys.argv[1:]))
    sys.exit()


def averages():
    import keras

    from keras_transformer.training import fit
    from keras_transformer.training.schedules import InverseSquareRootSchedule

    fit.make_schedule = lambda peak, steps, ratio: InverseSquareRootSchedule(peak, max(1, round(ratio * steps)))
    adam = {"beta_2": 0.98, "epsilon": 1e-9, "use_ema": True, "ema_momentum": 0.998}
    fit.make_optimizer = lambda schedule, norm: keras.optimizers.Adam(schedule, global_clipnorm=norm, **adam)


def linear():
    import keras
    from keras import ops

    from keras_transformer.training import fit

    class Linear(keras.optimizers.schedules.LearningRateSchedule):
        def __init__(self, peak, steps, ratio):
            self.peak, self.steps, self.warmup = peak, steps, max(1, round(ratio * steps))

        def __call__(self, step):
            step = ops.cast(step, "float32")
            return self.peak * ops.minimum((step + 1) / self.warmup, (self.steps - step) / (self.steps - self.warmup))

        def get_config(self):
            return {}

    fit.make_schedule = Linear


def muon():
    import keras

    from keras_transformer.training import fit

    fit.make_optimizer = lambda schedule, norm: keras.optimizers.Muon(
        schedule,
        adam_beta_1=0.9,
        adam_beta_2=0.98,
        epsilon=1e-9,
        weight_decay=None,
        adam_weight_decay=None,
        global_clipnorm=norm,
        exclude_embeddings=True,
    )


def rms():
    import keras

    from keras_transformer.layers.block import Block

    Block.norm_class = keras.layers.RMSNormalization


def gated():
    import keras

    from keras_transformer.layers import block, feed_forward

    class Gated(feed_forward.FeedForward):
        def __init__(self, intermediate_dim, activation="relu", *args, **kwargs):
            super().__init__(round(intermediate_dim / 6) * 4, "swish", *args, **kwargs)
            self.gate_dense = keras.layers.Dense(self.intermediate_dim, name="gate", **self._dense_settings())

        def build(self, inputs_shape):
            super().build(inputs_shape)
            self.gate_dense.build(inputs_shape)

        def call(self, inputs, mask=None):
            x = feed_forward.without_padding(inputs, mask)
            return self.output_dense(self.intermediate_dense(x) * self.gate_dense(x))

    block.Block.feed_forward_class = Gated


def rdrop(alpha=1.0):
    import keras
    from keras import ops

    from keras_transformer.models.transformer import Transformer

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        def loss(logits):
            found = {"x": x, "y": y, "y_pred": logits, "sample_weight": sample_weight, "training": training}
            return keras.Model.compute_loss(self, **found)

        if not training:
            return loss(y_pred)
        other = self(x, training=True)
        a, b = (ops.log_softmax(ops.cast(logits, "float32")) for logits in (y_pred, other))
        apart = ops.sum((ops.exp(a) - ops.exp(b)) * (a - b), axis=-1) / 2
        weight = ops.cast(sample_weight, "float32")
        return (loss(y_pred) + loss(other)) / 2 + alpha * ops.sum(apart * weight) / ops.sum(weight)

    Transformer.compute_loss = compute_loss


if __name__ == "__main__":
    sys.exit(main())
