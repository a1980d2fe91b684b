"""Fine-tunes a public model on your own text: OPUS-MT by its name at the Hugging Face hub, or the folder of a run.

    python examples/fine_tune_a_public_model.py --train domain.en domain.de
    python examples/fine_tune_a_public_model.py --train domain.en domain.de --model runs/phrasebook-tiny --lora-rank 8

With `--lora-rank`, low-rank updates of the matrices are trained (LoRA, Hu et al., 2021); without, all weights but the
embeddings. It prints the loss of each epoch, and the BLEU of held-out sentences before and after. With a model of
OPUS-MT's size, an epoch of 1,000 short pairs takes two to three minutes on two cores. The new run folder translates:

    python -m keras_transformer translate runs/fine-tuned --input sentences.en
"""

import argparse
from pathlib import Path

import keras
import sacrebleu

import keras_transformer as kt
from keras_transformer.data.batches import encode_pairs, make_batches
from keras_transformer.data.corpora import read_parallel
from keras_transformer.training.checkpoints import save_model
from keras_transformer.training.fit import add_low_rank_updates
from keras_transformer.training.run import Run
from keras_transformer.training.schedules import make_optimizer, make_schedule
from keras_transformer.transfer import importing

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--train", nargs=2, required=True, metavar=("SOURCE", "TARGET"), help="two text files")
parser.add_argument("--model", default="Helsinki-NLP/opus-mt-en-de", help="a name at the hub, or a run folder")
parser.add_argument("--output", type=Path, default="runs/fine-tuned", help="the run folder to write")
parser.add_argument("--lora-rank", type=int, default=0)
parser.add_argument("--epochs", type=int, default=3)
arguments = parser.parse_args()
if arguments.output.exists():
    parser.error(f"{arguments.output} exists. Choose another --output.")
keras.utils.set_random_seed(0)

# The model, with its tokenizers and search settings. A public model becomes a run folder first.
folder = Path(arguments.model)
if not folder.is_dir():
    folder = Path("runs", folder.name)
    if not folder.is_dir():
        importing.write(importing.read("opus-mt", arguments.model), folder)
translator = kt.Translator.load(folder)
model, tokenizers = translator.model, (translator.source_tokenizer, translator.target_tokenizer)

# Your text. The last tenth, at most 200 pairs, is held out.
pairs = list(dict.fromkeys(read_parallel(*arguments.train).pairs))
num_held_out = min(200, max(1, len(pairs) // 10))
sources, references = zip(*pairs[-num_held_out:], strict=True)
batches = make_batches(encode_pairs(pairs[:-num_held_out], *tokenizers, max_length=128), 1024, shuffle=True)


def print_bleu(when):
    translations = translator.translate(sources)
    bleu = sacrebleu.corpus_bleu(translations, [references]).score
    print(f"BLEU of {num_held_out} held-out sentences {when}: {bleu:.1f}\n    {sources[0]} -> {translations[0]}")


# What is trained; low-rank updates begin at 0, so that the translations before stay the same.
if arguments.lora_rank:
    add_low_rank_updates(model, arguments.lora_rank)
else:
    model.encoder_embedding.trainable = model.decoder_embedding.trainable = False
print_bleu("before")

# A low learning rate forgets less. Low-rank updates need a higher one.
peak = (1.28 if arguments.lora_rank else 0.064) / model.encoder_embedding.hidden_dim
schedule = make_schedule(peak, arguments.epochs * batches.steps_per_epoch)
model.compile(make_optimizer(schedule), loss=kt.LabelSmoothedCrossEntropy(), jit_compile=False)
model.fit(batches.dataset, steps_per_epoch=batches.steps_per_epoch, epochs=arguments.epochs, shuffle=False, verbose=2)
print_bleu("after")

# Write a run folder: the tuned weights, the settings and tokenizers of the old run, and the names of both sources.
run, own_text = Run(arguments.output), {"name": Path(arguments.train[0]).name, "license": None}
run.folder.mkdir(parents=True)
run.write(translator.run.config(), translator.codec.tokenizers, {"made from": [*translator.run.made_from(), own_text]})
save_model(model, run.model_file)
