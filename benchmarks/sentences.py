"""How well texts are split into sentences, beside pysbd: the test vectors, and sentences of corpora glued together.

    pip install pysbd
    python benchmarks/sentences.py [--data-dir shared/data/multi30k]

A text of a corpus has 2,000 sentences that end with a full stop, a question or an exclamation mark, with spaces between
them. Precision and recall count the ends of sentences. Seconds are for one text.
"""

import argparse
import json
import random
import time
import warnings
from pathlib import Path

from keras_transformer.data.corpora import multi30k
from keras_transformer.data.phrasebook import phrasebook
from keras_transformer.text import sentences

VECTORS = Path(__file__).parent.parent / "tests" / "sentences.json"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data-dir", help="folder of Multi30k")
    arguments = parser.parse_args()
    rows = list(vectors())
    texts = {f"phrasebook, {code}": [pair[i] for pair in phrasebook()["train"]] for i, code in enumerate(("en", "de"))}
    if arguments.data_dir:
        for code in ("de", "fr", "cs"):
            pairs = multi30k(arguments.data_dir, "en", code).train[0].pairs
            texts["Multi30k, en"], texts[f"Multi30k, {code}"] = zip(*pairs, strict=True)
    for name, lines in texts.items():
        rows.append(corpus(name, lines))
    print("| text | ends | rules: precision | recall | seconds | pysbd: precision | recall | seconds |")
    print("|---|---|---|---|---|---|---|---|")
    for row in rows:
        print("| " + " | ".join(f"{x:.3f}" if isinstance(x, float) else f"{x}" for x in row) + " |")


def ours(text, language):
    return sentences.split(text, language)[1::2]


def pysbd(text, language):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Its patterns have escapes that Python 3.11 warns of.
        from pysbd import Segmenter
        from pysbd.languages import LANGUAGE_CODES

    # Czech is not among its languages.
    return Segmenter(language=language if language in LANGUAGE_CODES else "en", clean=False).segment(text)


def vectors():
    found = json.loads(VECTORS.read_text(encoding="utf-8"))
    for title, failing in (("vectors", False), ("vectors that the rules are known to fail", True)):
        chosen = [one for one in found if ("known" in one) == failing]
        wanted = [(one["text"], one.get("language") or "en", one.get("known", one["sentences"])) for one in chosen]
        yield [f"{title} ({len(wanted)})", *score(wanted)]


def corpus(name, lines):
    ended = [line.strip() for line in lines if line.strip()[-1:] in tuple(".!?")]
    chosen = random.Random(0).sample(ended, 2000)
    return [name, *score([(" ".join(chosen), name[-2:], chosen)])]


def score(wanted):
    """The number of ends, and precision, recall and seconds of both."""
    count, row = sum(len(right) for _, _, right in wanted), []
    for function in (ours, pysbd):
        function("It rains.", "en")  # Loads it.
        begin = time.perf_counter()
        found = [function(text, language) for text, language, _ in wanted]
        seconds = time.perf_counter() - begin
        right = total = 0
        for (text, _, expected), got in zip(wanted, found, strict=True):
            a, b = ends(text, expected), ends(text, got)
            right, total = right + len(a & b), total + len(b)
        row += [right / total, right / count, seconds]
    return [count, *row]


def ends(text, parts):
    """For each sentence, the number of characters before its end that are no spaces."""
    found, place = set(), 0
    for part in parts:
        place = text.index(part.strip(), place) + len(part.strip())
        found.add(len("".join(text[:place].split())))
    return found


if __name__ == "__main__":
    main()
