# %% [markdown]
# # Translation with a Transformer, in one file
#
# This trains an English-German Transformer on two CPU cores in eight minutes, and exports it. Section numbers are those
# of "Attention Is All You Need" (Vaswani et al., 2017, https://arxiv.org/abs/1706.03762). Run it as a script,
# `python examples/translation_in_one_file.py`, or as a notebook.
#
# The text is a corpus inside the package, which a grammar generates: a tiny model learns it in minutes. To use your own
# text, put two files into `FILES`, with one sentence per line: line n of the second one translates line n of the first.

# %%
import random

import keras
import numpy as np
import sacrebleu
import tensorflow as tf
import tensorflow_text  # noqa: F401, the SavedModel has operations of it

import keras_transformer as kt
from keras_transformer.data.corpora import read_parallel
from keras_transformer.data.phrasebook import phrasebook
from keras_transformer.export.run_tflite import TFLiteTranslator
from keras_transformer.export.saved_model import export_saved_model
from keras_transformer.export.tflite import export_tflite

FILES = []  # Such as ["text.en", "text.de"]. Empty: the corpus of the package.
OUTPUT = "translation_in_one_file"  # Folder for the model and its exports.
PAD, START, END = 0, 2, 3  # Token ids that are the same in all tokenizers here; 1 is an unknown token.
EPOCHS, BATCH_SIZE, MAX_LENGTH = 10, 64, 64  # Lengths are numbers of tokens, the end token included.
keras.utils.set_random_seed(0)

# %% [markdown]
# ## Text (section 5.1)
#
# Pairs of a source and a target sentence. No source of the test is in the training text.

# %%
if FILES:
    pairs = list({source: (source, target) for source, target in read_parallel(*FILES).pairs}.values())
    random.Random(0).shuffle(pairs)
    held_out = min(500, max(1, len(pairs) // 20))
    val_pairs, test_pairs, train_pairs = pairs[:held_out], pairs[held_out : 2 * held_out], pairs[2 * held_out :]
else:
    train_pairs, val_pairs, test_pairs = phrasebook().values()
print(f"{len(train_pairs):,} pairs to train on, such as {train_pairs[0]}")

# %% [markdown]
# ## Tokens (section 5.1)
#
# One subword vocabulary for both languages: a frequent word is one token, a rare one is several.

# %%
tokenizer = kt.Tokenizer.train([text for pair in train_pairs for text in pair])
print(tokenizer.pieces(tokenizer.tokenize([train_pairs[0][1]])[0]))

# %% [markdown]
# ## Batches (sections 3.1 and 5.1)
#
# For the target "A B", the decoder reads "start A B", and its labels are "A B end": at each position the label is the
# next token. That is what "shifted right" means. Short sentences are padded with id 0, which has no weight in the loss.
# Pairs that are too long are left out: from a target that is cut, the model would learn to stop in the middle.


# %%
def make_batches(pairs, shuffle=False):
    rows = zip(*(tokenizer.tokenize(texts) for texts in zip(*pairs, strict=True)), strict=True)
    rows = [(source, target) for source, target in rows if max(len(source), len(target)) < MAX_LENGTH]
    encoder = [[*source, END] for source, _ in rows]
    decoder = [[START, *target] for _, target in rows]
    labels = [[*target, END] for _, target in rows]
    dataset = tf.data.Dataset.from_tensor_slices(tuple(map(tf.ragged.constant, (encoder, decoder, labels))))
    if shuffle:
        dataset = dataset.shuffle(len(rows), seed=0)
    return dataset.batch(BATCH_SIZE).map(as_fit_takes_it).prefetch(2)


def as_fit_takes_it(*columns):
    encoder, decoder, labels = (ids.to_tensor(PAD) for ids in columns)
    inputs = {"encoder_token_ids": encoder, "decoder_token_ids": decoder}
    return inputs, labels, tf.cast(labels != PAD, "float32")


train, val = make_batches(train_pairs, shuffle=True), make_batches(val_pairs)
print(keras.tree.map_structure(lambda x: x.shape, next(iter(val))))

# %% [markdown]
# ## Model (section 3)
#
# The encoder reads the whole source. The decoder reads the target up to a position, attends to the output of the
# encoder, and gives the next token. Keras passes the padding masks from the embedding through all blocks.
#
# - `PositionalEmbedding` (3.4 and 3.5): $\sqrt{d}\,E[x_t] + PE_t$, where $PE_{t,2i} = \sin(t / 10000^{2i/d})$ and
#   $PE_{t,2i+1} = \cos(t / 10000^{2i/d})$. `project` multiplies by the same matrix $E$ again: the weights are tied.
# - `EncoderBlock` (3.1): self-attention, $\mathrm{softmax}(QK^T/\sqrt{d_k})\,V$ in several heads (3.2), then a
#   feed-forward network, $\max(0, xW_1 + b_1)W_2 + b_2$ (3.3).
# - `DecoderBlock` (3.1): causal self-attention, cross-attention to the encoder, the feed-forward network.
#
# The paper normalises after each sublayer. With `normalize_first`, as in most models since, it is done before, and once
# more after the last block: this trains faster.

# %%
SIZES = {"num_heads": 4, "intermediate_dim": 256, "dropout": 0.1, "normalize_first": True}
HIDDEN_DIM, NUM_LAYERS = 128, 3


def build_model():
    encoder_token_ids = keras.Input((None,), dtype="int32", name="encoder_token_ids")
    decoder_token_ids = keras.Input((None,), dtype="int32", name="decoder_token_ids")
    embedding = kt.PositionalEmbedding(tokenizer.vocabulary_size, HIDDEN_DIM, dropout=SIZES["dropout"])
    encoder_sequence = embedding(encoder_token_ids)
    for _ in range(NUM_LAYERS):
        encoder_sequence = kt.EncoderBlock(**SIZES)(encoder_sequence)
    encoder_sequence = keras.layers.LayerNormalization(epsilon=1e-6)(encoder_sequence)
    x = embedding(decoder_token_ids)
    for _ in range(NUM_LAYERS):
        x = kt.DecoderBlock(**SIZES)(x, encoder_sequence)
    inputs = {"encoder_token_ids": encoder_token_ids, "decoder_token_ids": decoder_token_ids}
    return keras.Model(inputs, embedding.project(keras.layers.LayerNormalization(epsilon=1e-6)(x)))


model = build_model()
model.summary()

# %% [markdown]
# ## Check before you train
#
# The classic mistakes raise no error: the loss falls, and translations are wrong. `find_mistakes` changes ids of a
# batch and looks at what changes in the logits, so it finds them in any Keras model. Try it: above, make the labels
# `[START, *target]`, which are not shifted; or add 0.0 to `embedding(encoder_token_ids)`, which drops the padding mask.

# %%
mistakes = kt.find_mistakes(model, next(iter(train)), tied_weights=True)
if mistakes:
    raise ValueError("\n".join(mistakes))
print("No mistake was found.")

# %% [markdown]
# ## Training (sections 5.3 and 5.4)
#
# Adam with a learning rate that rises for `warmup_steps` and then falls with the inverse square root of the step; label
# smoothing; dropout. The model learns the next token of every position at once ("teacher forcing").

# %%
model.compile(
    keras.optimizers.Adam(
        kt.InverseSquareRootSchedule(peak=2.5e-3, warmup_steps=400), beta_1=0.9, beta_2=0.98, epsilon=1e-9
    ),
    loss=kt.LabelSmoothedCrossEntropy(label_smoothing=0.1),
    weighted_metrics=[kt.Perplexity(), kt.TokenAccuracy()],
    jit_compile=False,  # XLA would compile every shape of a batch anew.
)
model.fit(train, validation_data=val, epochs=EPOCHS, shuffle=False, verbose=2)  # The data set shuffles itself.

# %% [markdown]
# ## Search (section 6.1)
#
# A translation is written token by token. Beam search keeps the four best partial translations. `kt.Transformer` is the
# same model with cached decoding, which computes keys and values of each token once. So it accepts these weights.

# %%
transformer = kt.Transformer(tokenizer.vocabulary_size, num_layers=NUM_LAYERS, hidden_dim=HIDDEN_DIM, **SIZES)
transformer.set_weights(model.get_weights())
inputs, *_ = next(iter(val))
np.testing.assert_allclose(transformer(inputs), model(inputs), atol=1e-3)

translator = kt.Translator(transformer, tokenizer, max_source_length=MAX_LENGTH, num_beams=4, length_penalty=0.6)
sources, references = zip(*test_pairs, strict=True)
for hypothesis in translator.translate(sources[:1], num_hypotheses=4, return_scores=True)[0]:
    print(f"{hypothesis.score:8.3f}  {hypothesis.text}")

# %% [markdown]
# ## BLEU (section 6.1)
#
# From 0 to 100: how many n-grams of the translations are in the references. The interval is from a bootstrap over
# sentences, and the signature says how the score was computed. On the corpus of the package, a high score says that
# everything works, and nothing about real text.

# %%
translations = translator.translate(sources)
bleu = sacrebleu.BLEU()
score = bleu.corpus_score(translations, [references], n_bootstrap=1000)
print(score, bleu.get_signature(), sep="\n")
for row in list(zip(sources, references, translations, strict=True))[:3]:
    print("", *row, sep="\n  ")

# %% [markdown]
# ## Attention (section 3.2.3)
#
# Where the decoder looked in the source to write each token: the token with the largest score, averaged over heads.

# %%
(shown,) = translator.translate(sources[:1], return_attention=True)
attention, scores = shown.attention, shown.attention.mean_scores()  # (T, S)
for piece, row, place in zip(attention.target_tokens, scores, attention.alignment(), strict=True):
    print(f"{piece:>12}  {attention.source_tokens[place]:<12} {row[place]:.0%}")

# %% [markdown]
# ## Export
#
# A SavedModel for TensorFlow Serving, and a `.tflite` file for a phone or a browser. Both have tokenizer and search
# inside: text in, text out. Each is compared with Python's translations before it appears.

# %%
model.save(f"{OUTPUT}.keras")
folder = export_saved_model(translator, f"{OUTPUT}/saved_model", overwrite=True)
servable = tf.saved_model.load(folder).signatures["translate"]
print(servable(text=tf.constant(sources[:1]))["translation"][0].numpy().decode())

folder, _ = export_tflite(translator, f"{OUTPUT}/tflite", quantize="int8", overwrite=True)
print(TFLiteTranslator(folder / "translator.tflite").translate(sources[0])[0][0])
