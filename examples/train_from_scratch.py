"""Trains a translator on parallel text with Keras' `fit`: tokenizer, batches, model, BLEU, saved files.

    python examples/train_from_scratch.py                          # the embedded phrasebook, English to German
    python examples/train_from_scratch.py --train text.en text.de  # line n of text.de translates line n of text.en

It prints the metrics of each epoch, and at the end three translations and the BLEU of sentences that were held out.
With the phrasebook, that takes a minute and a half on two cores, and the BLEU is above 80. The model and its tokenizer
are then in `translator.keras` and `translator.spm`.
"""

import argparse
from random import Random

import keras
import sacrebleu

import keras_transformer as kt
from keras_transformer.data.batches import encode_pairs, make_batches
from keras_transformer.data.corpora import read_parallel
from keras_transformer.data.phrasebook import phrasebook
from keras_transformer.training.schedules import make_optimizer, make_schedule

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--train", nargs=2, metavar=("SOURCE", "TARGET"), help="two text files (default: the phrasebook)")
parser.add_argument("--epochs", type=int, default=4)
arguments = parser.parse_args()
keras.utils.set_random_seed(0)

# The text: a list of (source, target). A pair that occurs twice must not be in both parts.
pairs = read_parallel(*arguments.train).pairs if arguments.train else phrasebook()["train"]
pairs = list(dict.fromkeys(pairs))
Random(0).shuffle(pairs)
if len(pairs) < 2:
    parser.error("Some pairs are held out, so there must be two different ones or more.")
num_held_out = min(500, max(1, len(pairs) // 10))
held_out, train = pairs[:num_held_out], pairs[num_held_out:]

# The tokenizer: one vocabulary of subword pieces for both languages. It learns from the training text alone.
tokenizer = kt.Tokenizer.train(text for pair in train for text in pair)
print(f"{len(train):,} pairs to train with, {len(held_out):,} held out, {tokenizer.vocabulary_size:,} token ids")

# Batches of sentences of similar lengths: inputs, labels, and weights that are 0 at padding. Their number varies with
# the lengths, so a batch has a number of target tokens, and not of sentences.
batches, validation = (
    make_batches(encode_pairs(part, tokenizer, tokenizer, max_length=128), tokens_per_batch=1024, shuffle=shuffle)
    for part, shuffle in ((train, True), (held_out, False))
)

# A small Transformer. The wider the model, the lower its learning rate.
model = kt.Transformer(
    tokenizer.vocabulary_size, num_layers=2, num_heads=4, hidden_dim=128, intermediate_dim=256, normalize_first=True
)
model.compile(
    make_optimizer(make_schedule(peak=0.4 / 128, steps=arguments.epochs * batches.steps_per_epoch)),
    loss=kt.LabelSmoothedCrossEntropy(label_smoothing=0.1),
    weighted_metrics=[kt.Perplexity(), kt.TokenAccuracy()],
    jit_compile=False,  # XLA would compile each shape of a batch anew.
)
model.fit(
    batches.dataset,  # It has no end, and is shuffled.
    steps_per_epoch=batches.steps_per_epoch,
    epochs=arguments.epochs,
    validation_data=validation.dataset,
    shuffle=False,
    verbose=2,
)

# Save, load and translate.
model.save("translator.keras")
tokenizer.save("translator")
translator = kt.Translator(keras.saving.load_model("translator.keras"), kt.Tokenizer.load("translator"), num_beams=4)
sources, references = zip(*held_out, strict=True)
translations = translator.translate(sources)
for source, translation in list(zip(sources, translations, strict=True))[:3]:
    print(f"{source}\n    {translation}")
print(f"BLEU: {sacrebleu.corpus_bleu(translations, [references]).score:.1f}")
