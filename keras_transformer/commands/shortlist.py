"""Find the target tokens that each sentence may need."""

import argparse

from keras_transformer.commands.common import both_or_none, load
from keras_transformer.training.run import Run

# Pairs that are aligned, at most: a tiny model aligns 29,000 in a minute.
SHORTLIST_PAIRS = 100_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", help="folder of a trained run; shortlist.npz is written into it")
    parser.add_argument("--source", metavar="FILE", help="text to align (default: the run's training text)")
    parser.add_argument("--target", metavar="FILE", help="its translation, line by line")


def run(arguments: argparse.Namespace) -> int:
    """Learns the shortlist of a run from alignments of its training text."""
    from keras_transformer.data.corpora import load_corpus, parallel_files
    from keras_transformer.training.prepare import some_pairs

    both_or_none(arguments, "source", "target")
    arguments.shortlist = 0  # A run whose settings ask for one cannot be loaded without it.
    run, translator = Run(arguments.run), load(arguments)
    if arguments.source:
        texts = [parallel_files(arguments.source, arguments.target)]
    else:
        texts = load_corpus(run.config().data).train
    pairs = some_pairs(((*pair, text.target_language) for text in texts for pair in text), 0, SHORTLIST_PAIRS)
    from keras_transformer.translation.learning import learn_shortlist

    learn_shortlist(translator, *map(list, zip(*pairs, strict=True))).save(run.shortlist_file)
    print(f"{run.shortlist_file}: from {len(pairs):,} pairs. Use it with --shortlist 500.")
    return 0
