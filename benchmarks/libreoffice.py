"""What a run does with text that people wrote and marked up: the test pages and messages of LibreOffice.

    python benchmarks/libreoffice.py RUN --data-dir PACKAGES [--output FOLDER]
    python benchmarks/libreoffice.py --write FOLDER --data-dir PACKAGES

`--write` writes what a run trains, validates and tests with, cleaned, as files of sentences for other tools, and a
vocabulary and a configuration for JoeyNMT: `python -m joeynmt train FOLDER/joeynmt.yaml`, and `translate` in the same
way. `benchmarks/imported.py train FOLDER --text FOLDER/train.en FOLDER/train.de` trains transformers' MarianMT.
`score RUN --source FOLDER/test.en --reference FOLDER/test.de --compare FILE` compares a run with their translations.

The run is one of `train_keras.py --dataset libreoffice`. It prints:

- markup: in how many test pages, translated as HTML, every tag and attribute is kept, in the order of the tree;
- elements: how often an inline element stands around the right words. The right ones are those that the translators of
  the help put it around: each reference is aligned with its source as if the model had written it, and the elements of
  the source are placed over it. `inline_positions.json` has 50 of these elements that somebody looked at: the page, the
  paragraph, the number of the element, and the words that it has on both sides, by their numbers;
- messages: how often placeholders and accelerators are kept;
- paragraphs: the score of the same ones alone, in the text of their page and in its HTML, for those without inline
  elements and those with them.

`--output` gets three of the pages, before and after.
"""

import argparse
import dataclasses
import itertools
import json
import re
from collections import Counter, defaultdict
from pathlib import Path

import sentencepiece

from keras_transformer.data.cleaning import Cleaner
from keras_transformer.data.corpora import load_corpus
from keras_transformer.data.libreoffice import libreoffice, paragraphs, raw_paragraphs
from keras_transformer.text import sentences
from keras_transformer.text.accelerators import split_accelerator, with_accelerator
from keras_transformer.text.markup_alignment import Aligned, Target, placed, sources_of
from keras_transformer.text.markup_tree import HtmlTree, Node
from keras_transformer.text.placeholders import kept_pieces
from keras_transformer.training.config import RunConfig
from keras_transformer.training.run import Run
from keras_transformer.translation import documents
from keras_transformer.translation.evaluation import corpus_scores
from keras_transformer.translation.results import Translation
from keras_transformer.translation.translator import Translator

POSITIONS = Path(__file__).with_name("inline_positions.json")
_WORD = re.compile(r"\w+")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("run", nargs="?", help="folder of a run")
    parser.add_argument("--data-dir", help="folder of the packages (default: downloaded)")
    parser.add_argument("--output", metavar="DIR", help="folder for three pages, before and after")
    parser.add_argument("--write", metavar="DIR", help="folder for the text and JoeyNMT's configuration")
    arguments = parser.parse_args()
    config = Run(arguments.run).config() if arguments.run else RunConfig.make({"dataset": "libreoffice"})
    data = dataclasses.replace(config.data, data_dir=arguments.data_dir)
    corpus = load_corpus(data)
    if arguments.write:
        write(Path(arguments.write), corpus, data)
    if arguments.run:
        tests = {text.name.removeprefix("libreoffice "): text.pairs for text in corpus.test}
        translator = Translator.load(arguments.run)
        print(f"elements: {around(translator, tests['html'])}")
        codes = data.source_language, data.target_language
        print(f"messages: {messages(translator, libreoffice(data.data_dir, *codes).marked_messages)}")
        print(f"markup: {markup(translator, tests['html'], arguments.output)}")
        for name, scores in in_pages(translator, tests["html"], config.data.sacrebleu_tokenizer()).items():
            print(f"paragraphs, {name}:\n{scores}")


# Files for others.

JOEYNMT = """name: "libreoffice"
joeynmt_version: "2.3.0"
model_dir: "{folder}/joeynmt"
use_cuda: False
fp16: False
random_seed: 0
data:
    train: "{folder}/train"
    dev: "{folder}/few"
    test: "{folder}/test"
    dataset_type: "plain"
    src: &side
        lang: "{source}"
        level: "bpe"
        lowercase: False
        max_length: 128
        voc_file: "{folder}/vocabulary.txt"
        tokenizer_type: "sentencepiece"
        tokenizer_cfg: {{model_file: "{folder}/vocabulary.model"}}
    trg:
        <<: *side
        lang: "{target}"
training:
    optimizer: "adamw"
    adam_betas: [0.9, 0.98]
    scheduling: "warmupinversesquareroot"
    learning_rate: 0.0025
    learning_rate_min: 0.00000001
    learning_rate_warmup: 400
    clip_grad_norm: 1.0
    loss: "crossentropy"
    label_smoothing: 0.1
    normalization: "tokens"
    batch_size: 1024
    batch_type: "token"
    epochs: 1000
    validation_freq: 500
    logging_freq: 50
    early_stopping_metric: "bleu"
    keep_best_ckpts: 1
    shuffle: True
testing:
    n_best: 1
    beam_size: 5
    beam_alpha: 1.0
    batch_size: 1024
    batch_type: "token"
    max_output_length: 128
    eval_metrics: ["bleu"]
model:
    initializer: "xavier_uniform"
    embed_initializer: "xavier_uniform"
    tied_embeddings: True
    tied_softmax: True
    encoder: &coder
        type: "transformer"
        num_layers: 4
        num_heads: 4
        embeddings: {{embedding_dim: 128, scale: True, dropout: 0.0}}
        hidden_size: 128
        ff_size: 256
        dropout: 0.1
        layer_norm: "pre"
    decoder: *coder
"""


def write(folder, corpus, data):
    """Writes the cleaned training pairs, those of validation and the sentences of the test; and JoeyNMT's files."""
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    codes, pairs = (data.source_language, data.target_language), []
    for text in corpus.train:
        cleaner = Cleaner.of(data)
        cleaner.find_duplicates(text.lines)
        pairs += [pair for number, pair in enumerate(text.lines, 1) if cleaner.reason(number, *pair) is None]
    validation = corpus.validation[0].pairs
    splits = {"train": pairs, "val": validation, "few": validation[:60], "test": corpus.test[0].pairs}
    for name, rows in splits.items():
        for code, side in zip(codes, zip(*rows, strict=True), strict=True):
            (folder / f"{name}.{code}").write_text("".join(f"{line}\n" for line in side), encoding="utf-8")
    lines = itertools.chain.from_iterable(pairs)
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=lines, model_prefix=str(folder / "vocabulary"), vocab_size=8000, minloglevel=2
    )
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(folder / "vocabulary.model"))
    names = [pieces.id_to_piece(i) for i in range(3, pieces.vocab_size())]
    (folder / "vocabulary.txt").write_text("".join(f"{name}\n" for name in names), encoding="utf-8")
    settings = JOEYNMT.format(folder=folder, source=codes[0], target=codes[1])
    (folder / "joeynmt.yaml").write_text(settings, encoding="utf-8")
    print(f"{folder}: {len(pairs):,} pairs to train with")


# Elements.


def children_of(inline):
    for child in inline.children:
        yield child
        yield from children_of(child)


def inline_of(content):
    """The text of a paragraph and its inline elements that have words."""
    root = HtmlTree(content).root()
    sources = list(sources_of(root, ""))
    if len(sources) != 1:
        return None, []
    return sources[0], list(children_of(sources[0].tree))


def marked(pairs):
    """Yields (page, paragraph, source, its elements, reference, its elements) where both have the same elements."""
    for page, (source_page, target_page) in enumerate(pairs):
        sides = raw_paragraphs(source_page), raw_paragraphs(target_page)
        for key in sides[0].keys() & sides[1].keys():
            (source, ours), (target, theirs) = (inline_of(side[key]) for side in sides)
            names = [[(child.node.name, child.is_open) for child in one] for one in (ours, theirs)]
            if ours and names[0] == names[1]:
                yield page, key, source, ours, target, theirs


def words_in(text, begin, end):
    """The numbers of the first word and after the last one in an interval of a text; None without a word."""
    inside = [i for i, word in enumerate(_WORD.finditer(text)) if begin <= word.start() < end]
    return (inside[0], inside[-1] + 1) if inside else None


def is_one_sentence(text):
    return len(sentences.split(text, "en")) == 3


def around(translator, pairs):
    """How often the elements of a source go to the words of the reference that its translators put them around."""
    rows = json.loads(POSITIONS.read_text())
    looked_at = {(page, key, number) for page, key, number, *_ in rows}
    counts = Counter()
    for page, key, source, ours, target, theirs in marked(pairs):
        everything = words_in(source.text, 0, len(source.text))
        spans = [
            (words_in(source.text, a.begin, a.end), words_in(target.text, b.begin, b.end))
            for a, b in zip(ours, theirs, strict=True)
        ]
        if not is_one_sentence(source.text):
            continue
        translation = aligned(translator, source.text, target.text)
        source.run.contents = placed(source.tree, Target(source, translation), 0, len(target.text))
        for number, (one, pair) in enumerate(zip(ours, spans, strict=True)):
            if not (one.is_open and all(pair) and pair[0] != everything):
                continue
            wanted, found = (
                Counter(_WORD.findall(target.text)[slice(*pair[1])]),
                Counter(_WORD.findall(text_of(one.node))),
            )
            for which in ["all", *["looked at"] * ((page, key, number) in looked_at)]:
                counts[which] += 1
                counts[which, "exact"] += found == wanted
                counts[which, "half"] += 2 * (found & wanted).total() >= (found | wanted).total()
    return "; ".join(
        f"{which}: {counts[which, 'exact'] / counts[which]:.1%} of {counts[which]:,} around exactly the right words, "
        f"{counts[which, 'half'] / counts[which]:.1%} around most of them and few others"
        for which in ("all", "looked at")
        if counts[which]
    )


def text_of(node):
    return "".join(part if isinstance(part, str) else text_of(part) for part in node.contents)


def aligned(translator, source, target):
    """The reference, as if the model had written it."""
    (sentence,) = translator.codec.encode([source])
    (ids,) = translator.codec.encode_targets([target], [sentence])
    (attention,) = translator.scorer.attention([sentence], [ids], [sentence.parts])
    translation = Translation(target, 0.0, tuple(ids), attention, parts=sentence.parts)
    return Aligned(target, *documents.character_origins(translator, source, translation, None))


# Messages and pages.


def messages(translator, pairs):
    texts, accelerators = zip(*(split_accelerator(source) for source, _ in pairs), strict=True)
    counts, translations = Counter(), translator.translate(list(texts))
    for (source, _), translation, accelerator in zip(pairs, translations, accelerators, strict=True):
        translation = with_accelerator(translation, accelerator)
        parts, kept = (Counter(kept_pieces(text)[1::2]) for text in (source, translation))
        counts["placeholders"] += parts.total()
        counts["placeholders kept"] += (parts & kept).total()
        if accelerator:
            counts["accelerators"] += 1
            counts["accelerators kept"] += bool(split_accelerator(translation)[1])
    return ", ".join(
        f"{counts[f'{name} kept']:,} of {counts[name]:,} {name} kept ({counts[f'{name} kept'] / counts[name]:.1%})"
        for name in ("placeholders", "accelerators")
    )


def shape(html):
    """The tags of a page as a tree, without the language."""

    def of(node):
        tag = re.sub(r"(\s(?:xml:)?lang=)[\"'][^\"']*[\"']", r"\1", node.open)
        inside = [of(part) for part in node.contents if isinstance(part, Node)]
        # Inline elements may change their order within their parent.
        return (tag, node.close, tuple(sorted(map(repr, inside))))

    return of(HtmlTree(html).root())


def markup(translator, pairs, output):
    kept, pages = 0, []
    for source, _ in pairs:
        translation = translator.translate_html(source)
        kept += shape(source) == shape(translation)
        pages.append((source, translation))
    if output:
        Path(output).mkdir(parents=True, exist_ok=True)
        for number, page in enumerate(sorted(pages, key=lambda page: len(page[0]))[len(pages) // 2 :][:3]):
            for name, html in zip(("before", "after"), page, strict=True):
                Path(output, f"{number}-{name}.html").write_text(html, encoding="utf-8")
    return f"every tag and attribute kept in {kept} of {len(pairs)} pages"


def in_pages(translator, pairs, tokenize):
    """The `CorpusScores` of paragraphs by where they were translated, and whether they have inline elements."""
    found, references = defaultdict(list), defaultdict(list)
    for source, target in pairs:
        sides = paragraphs(source), paragraphs(target)
        keys = [key for key, text in sides[0].items() if text and sides[1].get(key) not in (None, "", text)]
        texts = [sides[0][key] for key in keys]
        of_page = translator.translate_text("\n\n".join(texts)).split("\n\n")
        html, raw = paragraphs(translator.translate_html(source)), raw_paragraphs(source)
        for key, text, in_text in zip(keys, texts, of_page, strict=True):
            kind = "with elements" if "<" in raw[key] else "without elements"
            references[kind].append(sides[1][key])
            places = {"alone": translator.translate_text(text), "in text": in_text, "in HTML": html.get(key, "")}
            for place, translation in places.items():
                found[place, kind].append(translation)
    return {
        f"{len(rows):,} {kind}, {place}": corpus_scores(rows, references[kind], tokenize)
        for (place, kind), rows in found.items()
    }


if __name__ == "__main__":
    main()
