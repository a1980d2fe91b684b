"""Trains one model for several directions: a tag before each source says into which language it translates.

    python examples/several_directions.py                     # the embedded phrasebook, both ways
    python examples/several_directions.py --train a.en a.fr en-fr --train a.fr a.en fr-en --train b.de b.en de-en

It prints the metrics of each epoch, and then a translation and the BLEU of held-out sentences for each direction. With
the phrasebook, that takes two minutes on two cores, and both BLEU are above 75. The model and its tokenizer
are then in `directions.keras` and `directions.spm`.
"""

import argparse

import keras
import sacrebleu

import keras_transformer as kt
from keras_transformer.data.batches import encode_pairs, make_batches
from keras_transformer.data.corpora import read_parallel
from keras_transformer.data.phrasebook import phrasebook
from keras_transformer.training.schedules import make_optimizer, make_schedule

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
names = ("SOURCE", "TARGET", "DIRECTION")
parser.add_argument("--train", nargs=3, action="append", metavar=names, help="two text files, once for each direction")
parser.add_argument("--epochs", type=int, default=3)
arguments = parser.parse_args()
keras.utils.set_random_seed(0)

# The texts: a list of (source, target) for each direction. The last tenth of each, at most 200 pairs, is held out.
if arguments.train:
    texts = {direction: read_parallel(source, target).pairs for source, target, direction in arguments.train}
else:
    english_german = phrasebook()["train"]
    texts = {"en-de": english_german, "de-en": [(german, english) for english, german in english_german]}
if wrong := [direction for direction in texts if direction.count("-") != 1]:
    parser.error(f"A DIRECTION has two languages, as in en-de. Received: {wrong[0]}.")
train, held_out = {}, {}
for direction, pairs in texts.items():
    pairs = list(dict.fromkeys(pairs))
    num_held_out = min(200, max(1, len(pairs) // 10))
    train[direction], held_out[direction] = pairs[:-num_held_out], pairs[-num_held_out:]
target_languages = {direction: direction.split("-")[1] for direction in texts}

# The tokenizer: one vocabulary for all languages, with a tag for each target language.
sentences = dict.fromkeys(text for pairs in train.values() for pair in pairs for text in pair)
tokenizer = kt.Tokenizer.train(sentences, languages=sorted(set(target_languages.values())))
print(f"{tokenizer.vocabulary_size:,} token ids, tags: {dict(tokenizer.languages)}")

# Batches: each pass has all pairs of all directions, mixed. A smaller number draws some of them, a larger one repeats.
parts = []
for direction, pairs in train.items():
    encoded = encode_pairs(pairs, tokenizer, tokenizer, max_length=128, target_language=target_languages[direction])
    parts.append((encoded, len(encoded.source)))
batches = make_batches(parts, tokens_per_batch=1024, shuffle=True)

# The model is an ordinary Transformer; the tag is the first token of the source.
model = kt.Transformer(
    tokenizer.vocabulary_size, num_layers=2, num_heads=4, hidden_dim=128, intermediate_dim=256, normalize_first=True
)
model.compile(
    make_optimizer(make_schedule(peak=0.4 / 128, steps=arguments.epochs * batches.steps_per_epoch)),
    loss=kt.LabelSmoothedCrossEntropy(),
    weighted_metrics=[kt.Perplexity(), kt.TokenAccuracy()],
    jit_compile=False,
)
model.fit(batches.dataset, steps_per_epoch=batches.steps_per_epoch, epochs=arguments.epochs, shuffle=False, verbose=2)
model.save("directions.keras")
tokenizer.save("directions")

# Translate: the language is chosen for each call, or for each text by a list.
translator = kt.Translator(model, tokenizer, num_beams=4)
for direction, pairs in held_out.items():
    sources, references = zip(*pairs, strict=True)
    translations = translator.translate(sources, target_language=target_languages[direction])
    bleu = sacrebleu.corpus_bleu(translations, [references]).score
    print(f"{direction}: {sources[0]} -> {translations[0]}\n    BLEU of {len(pairs)} sentences: {bleu:.1f}")
