"""How well terms of a glossary are placed: `python benchmarks/terms.py RUN --data-dir FOLDER`.

The glossary is made of words that translate each other in Multi30k's training text, one translation per word. Of every
test sentence with such words, one of them, drawn at random, or all are translated by the glossary. Printed are BLEU of
these sentences, how often the translation has the terms, and how often a term stands beside the same word as in the
reference, of those that both have. References often have another form of a word; the first row of the table says how
often they have that of the glossary.
"""

import argparse
import random
import re

from keras_transformer import Translator
from keras_transformer.data.corpora import load_corpus
from keras_transformer.data.masking import word_pairs
from keras_transformer.text.glossary import Glossary
from keras_transformer.training.config import RunConfig
from keras_transformer.translation.evaluation import corpus_scores

WORD = re.compile(r"[^\W_][\w'’-]*")


def neighbours(text, word):
    """The words before and behind a word that a text has once, or None."""
    words = ["<", *WORD.findall(text), ">"]
    place = words.index(word) if words.count(word) == 1 else 0
    return (words[place - 1], words[place + 1]) if place else None


def row(name, texts, references, terms):
    """Prints how many of the terms of each sentence its text has, and how many stand beside a word of the reference."""
    wanted = [
        (text, reference, term) for text, reference, mine in zip(texts, references, terms, strict=True) for term in mine
    ]
    has = sum(text.count(term) > 0 for text, _, term in wanted)
    places = [(neighbours(text, term), neighbours(reference, term)) for text, reference, term in wanted]
    both = [(one, other) for one, other in places if one and other]
    beside = sum(one[0] == other[0] or one[1] == other[1] for one, other in both)
    bleu = corpus_scores(texts, references).bleu
    print(
        f"| {name} | {len(texts):,} | {bleu:.2f} | {100 * has / len(wanted):.1f} % of {len(wanted):,} "
        f"| {100 * beside / len(both):.1f} % of {len(both):,} |",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", help="run folder of a model for Multi30k with placeholders")
    parser.add_argument("--data-dir", required=True, help="folder with the Multi30k files")
    arguments = parser.parse_args()
    corpus = load_corpus(RunConfig.make({"dataset": "multi30k", "data_dir": arguments.data_dir}).data)
    translator = Translator.load(arguments.run)
    glossary = dict(sorted(word_pairs(corpus.train[0].pairs)))
    generator = random.Random(0)
    print(f"terms: {len(glossary):,}\n\n| translation | sentences | BLEU | has the term | beside the same word |")
    print("|---|---|---|---|---|")
    for name, choose in (
        ("one term", lambda found: [generator.choice(found)]),
        ("all terms, at most 8", lambda found: found[:8]),
    ):
        rows = []
        for source, reference in corpus.test[0].pairs:
            found = [word for word in dict.fromkeys(WORD.findall(source)) if word in glossary]
            if found:
                rows.append((source, reference, choose(found)))
        sources, references, chosen = zip(*rows, strict=True)
        terms = [[glossary[word] for word in words] for words in chosen]
        row(f"{name}: the reference itself", references, references, terms)
        row(f"{name}: without the glossary", translator.translate(sources), references, terms)
        with_terms = []
        for source, words in zip(sources, chosen, strict=True):
            translator.find.glossary = Glossary({word: glossary[word] for word in words})
            with_terms += [translator.translate([source])[0]]
        translator.find.glossary = None
        row(f"{name}: with it", with_terms, references, terms)


if __name__ == "__main__":
    main()
