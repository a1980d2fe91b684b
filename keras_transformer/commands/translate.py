"""Translate a file, a pipe, or what you type."""

import argparse
import contextlib
import functools
import sys
import warnings

from keras_transformer.commands import common
from keras_transformer.commands.common import positive, text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    flag = parser.add_argument
    common.add_search_flags(parser)
    common.add_ensemble_flag(parser)
    flag("--input", metavar="FILE", help="text, plain or .gz (default: standard input)")
    flag("--output", metavar="FILE", help="file for the translations (default: standard output)")
    flag("--num-hypotheses", type=positive, default=1, metavar="N", help="best translations per line")
    flag("--scores", action="store_true", help="write the score and a tab before every translation")
    help = "write the share of words that are probably right, from 0 to 1, and a tab before every translation"
    flag("--confidence", action="store_true", help=help)
    help = "write a tab and source-target pairs of token indices after every translation"
    flag("--alignments", action="store_true", help=help)
    flag("--prefix", type=text, metavar="TEXT", help="text that every translation must begin with")
    help = (
        "what the input is: a sentence in each line (default); messages of a program, with accelerators "
        "such as _Open; a document, whose line breaks and bullets stay; html or xml, whose markup stays"
    )
    flag("--format", choices=("sentences", "messages", "document", "html", "xml"), default="sentences", help=help)
    help = "terms that are always translated in the same way: a term, a tab and its translation in every line"
    flag("--glossary", metavar="FILE", help=help)


def run(arguments: argparse.Namespace) -> int:
    from tqdm import tqdm

    from keras_transformer.text.accelerators import split_accelerator, with_accelerator
    from keras_transformer.text.lines import Problems, lines, open_input

    inputs, runs = [arguments.input, arguments.glossary], [arguments.run, *arguments.ensemble]
    common.check_outputs([arguments.output], inputs, runs)
    if arguments.format in ("document", "html", "xml"):
        return _translate_document(arguments)
    split = split_accelerator if arguments.format == "messages" else lambda text: (text, "")
    name = arguments.input or "standard input"
    problems, count = Problems(name), 0
    with open_input(arguments.input) as file, contextlib.ExitStack() as stack:
        translator = common.load(arguments)
        output = stack.enter_context(common.open_output(arguments.output))  # Opened only when the model is loaded.
        # disable=None: tqdm shows no bar unless standard error is a terminal.
        progress = stack.enter_context(tqdm(unit=" lines", disable=True if file.isatty() else None))
        for chunk in _typed() if file.isatty() else lines(file, name):
            texts, accelerators = zip(*(split(line.text) for line in chunk), strict=True)
            translations = translator.translate(
                list(texts),
                num_hypotheses=arguments.num_hypotheses,
                return_scores=True,
                return_attention=arguments.alignments,
                return_confidence=arguments.confidence,
                prefixes=[arguments.prefix] * len(chunk) if arguments.prefix else None,
            )
            for line, accelerator, hypotheses in zip(chunk, accelerators, translations, strict=True):
                hypotheses = hypotheses if arguments.num_hypotheses > 1 else [hypotheses]
                for hypothesis in hypotheses:
                    marked = hypothesis._replace(text=with_accelerator(hypothesis.text, accelerator))
                    print(_row(marked, arguments), file=output)
                count += 1
                problems.add_line(count, line, hypotheses[0], translator.codec.max_source_length)
            output.flush()
            progress.update(len(chunk))
    return int(problems.summary())


def _translate_document(arguments):
    from tqdm import tqdm

    from keras_transformer.text.lines import Problems, problem_of, read_text
    from keras_transformer.text.markup_tree import declared_encoding

    others = {"--scores": arguments.scores, "--alignments": arguments.alignments, "--prefix": arguments.prefix}
    others |= {"--confidence": arguments.confidence, "--num-hypotheses": arguments.num_hypotheses > 1}
    if received := [name for name, value in others.items() if value]:
        raise ValueError(
            f"--format {arguments.format} writes one text, so it takes none of {', '.join(others)}. Received: "
            f"{received[0]}."
        )
    encoding_of = functools.partial(declared_encoding, is_html=arguments.format == "html")
    text = read_text(arguments.input, None if arguments.format == "document" else encoding_of)
    translator = common.load(arguments)
    if arguments.format != "document":
        translate_markup = translator.translate_html if arguments.format == "html" else translator.translate_xml
        with common.open_output(arguments.output) as output, warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("ignore")
            warnings.filterwarnings("always", ".* lack parts that must not change")
            output.write(translate_markup(text))
        for warning in caught:
            print(f"{arguments.input or 'standard input'}: {warning.message}", file=sys.stderr)
        return int(bool(caught))
    from keras_transformer.translation.documents import join_text, split_text, stream_sentences

    parts = split_text(translator, text)
    with (
        common.open_output(arguments.output) as output,
        tqdm(total=len(parts) // 2, unit=" sentences", disable=None) as progress,
    ):
        translations = []
        for translation in stream_sentences(translator, parts):
            translations.append(translation)
            progress.update()
        output.write(join_text(parts, translations).text)
    problems = Problems(arguments.input or "standard input")
    for number, translation in enumerate(translations):
        if problem := problem_of(translation, translator.codec.max_source_length):
            problems.add("".join(parts[: 2 * number + 1]).count("\n") + 1, *problem)
    return int(problems.summary())


def _row(translation, arguments):
    """One line of output: score, translation and alignment, separated by tabs."""
    row = [f"{translation.score:.4f}"] if arguments.scores else []
    row += [f"{translation.confidence.sentence:.2f}"] if arguments.confidence else []
    row.append(translation.text)
    if arguments.alignments:
        places = translation.attention.alignment() if translation.attention else []
        row.append(" ".join(f"{source}-{target}" for target, source in enumerate(places)))
    return "\t".join(row)


def _typed():
    from keras_transformer.text.lines import Line

    print("Type a sentence and press Enter; Ctrl-D ends.", file=sys.stderr)
    with contextlib.suppress(EOFError, KeyboardInterrupt):
        while True:
            yield [Line(input("> "))]
