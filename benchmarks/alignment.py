"""How often cross-attention aligns words rightly: each decoder block, and `Attention.alignment`, which weighs them.

    python benchmarks/alignment.py RUN [--input FILE]

An English noun or adjective of the phrasebook's lexicon that occurs once is aligned rightly if at least half of the
tokens of its German word point to it. Words without exactly one German word in the translation are left out. Without
--input, the sources are the phrasebook's first 500 test sentences. The last line puts each of these words into a `b`
and counts how often `Translator.translate_html` puts the `b` around the German word and nothing else.
"""

import argparse
import collections
import re

from keras_transformer.data.phrasebook import phrasebook
from keras_transformer.data.phrasebook.lexicon import ADJECTIVE_TABLE, NOUN_TABLE
from keras_transformer.text.lines import read_lines
from keras_transformer.translation.documents import token_spans
from keras_transformer.translation.translator import Translator


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("run", help="folder of a run that translates English to German")
    parser.add_argument("--input", metavar="FILE", help="English sentences; the first 500 are used")
    arguments = parser.parse_args()
    translator, stems = Translator.load(arguments.run), german_stems()
    sources = read_lines(arguments.input) if arguments.input else [source for source, _ in phrasebook()["test"]]
    sources = sources[:500]
    right, total, pages, expected = collections.Counter(), 0, [], []
    for source, ids, translation in zip(
        sources, translator.codec.source_ids(sources), translator.translate(sources, return_attention=True), strict=True
    ):
        source_spans = token_spans(translator.source_tokenizer, ids, source)
        target_spans = token_spans(translator.target_tokenizer, translation.token_ids, translation.text)
        ways = {f"decoder block {i}": i for i in range(len(translation.attention.scores))} | {
            "Attention.alignment": None
        }
        alignments = {name: translation.attention.alignment(layer) for name, layer in ways.items()}
        for word, german in word_pairs(source, translation.text, stems):
            total += 1
            pages.append(f"{source[: word[0]]}<b>{source[slice(*word)]}</b>{source[word[1] :]}")
            expected.append(translation.text[slice(*german)])
            wanted, tokens = inside(source_spans, word), inside(target_spans, german)
            for name, alignment in alignments.items():
                right[name] += 2 * sum(alignment[token] in wanted for token in tokens) >= len(tokens)
    print(f"{total} words of {len(sources)} sentences\n\n| aligned by | right |\n|---|---|")
    for name, count in right.items():
        print(f"| {name} | {count / total:.1%} |")
    html = translator.translate_html("".join(f"<p>{page}</p>" for page in pages))
    found = re.findall(r"<p>.*?<b>(.*?)</b>.*?</p>", html)
    exact = sum(a == b for a, b in zip(found, expected, strict=True))
    print(f"| `b` of HTML around exactly the word | {exact / total:.1%} |")


def german_stems():
    """The beginning of the German word, by English word."""
    stems = {}
    for entry in ",".join(NOUN_TABLE.values()).split(","):
        singular, plural, german, _, german_plural = entry.split()
        stems[singular] = german
        stems[plural] = german if german_plural == "-" else german_plural
    for line in ADJECTIVE_TABLE.strip().split("\n"):
        english, german, _ = line.split()
        stems[english] = german
    return {english: german[:4].lower() for english, german in stems.items() if english != "-"}


def word_pairs(source, translation, stems):
    """Yields the spans of an English and a German word."""
    words, german_words = ([*re.finditer(r"\w+", text.lower())] for text in (source, translation))
    count = collections.Counter(word[0] for word in words)
    for word in words:
        found = [one for one in german_words if one[0].startswith(stems.get(word[0], "?"))]
        if count[word[0]] == len(found) == 1:
            yield word.span(), found[0].span()


def inside(spans, word):
    """The tokens that overlap a word."""
    return [i for i, (begin, end) in enumerate(spans) if begin < word[1] and end > word[0]]


if __name__ == "__main__":
    main()
