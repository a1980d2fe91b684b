"""Score a run with sacreBLEU (BLEU and chrF), with intervals; compare it with another."""

import argparse
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from keras_transformer.commands.common import add_ensemble_flag, add_search_flags, both_or_none, check_outputs, load
from keras_transformer.files import output_file
from keras_transformer.training.config import check_bleu_tokenizer
from keras_transformer.training.run import Run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    flag = parser.add_argument
    add_search_flags(parser)
    add_ensemble_flag(parser)
    flag("--source", metavar="FILE", help="text to translate (default: the run's test set)")
    flag("--reference", metavar="FILE", help="its translation, line by line")
    flag("--output", metavar="FILE", help="file for the translations (default: none)")
    flag("--bleu-tokenize", metavar="NAME", help="sacreBLEU's tokenizer (default: the run's)")
    flag("--log-probs", metavar="FILE", help="file for the model's log probabilities of each reference and its tokens")
    help = "another run, or a file of translations of the same text, line by line: a paired test of the difference"
    flag("--compare", metavar="OTHER", help=help)
    help = "your own metric: a program that gets three more arguments: files of sources, translations and references"
    flag("--metric", metavar="COMMAND", help=help)
    help = "fit the confidence to this text and store it in the run, as training does with the validation text"
    flag("--calibrate", action="store_true", help=help)


def run(arguments: argparse.Namespace) -> int:
    from keras_transformer.data.corpora import load_corpus, read_parallel

    both_or_none(arguments, "source", "reference")
    if arguments.ensemble and arguments.calibrate:
        raise ValueError("--calibrate writes into the run, and is for one model. Received: --ensemble, too.")
    inputs = arguments.source, arguments.reference, arguments.compare
    metric = _command(arguments.metric)
    if arguments.bleu_tokenize:
        check_bleu_tokenizer(arguments.bleu_tokenize)
    is_run = arguments.compare is not None and Path(arguments.compare).is_dir()
    runs = [arguments.run, *arguments.ensemble, *([arguments.compare] if is_run else [])]
    for path in runs:
        Run(path).check_trained()
    check_outputs([arguments.output, arguments.log_probs], inputs, runs)
    translator = load(arguments)
    if arguments.source:
        texts = [read_parallel(arguments.source, arguments.reference)]
    else:
        texts = load_corpus(Run(arguments.run).config().data).test
        if arguments.target_language:
            texts = [text for text in texts if text.target_language in (None, arguments.target_language)]
    if not texts:
        raise ValueError(
            f"The run has no test set in that language. Received: --target-language {arguments.target_language}. Name "
            "a text with --source and --reference."
        )
    of_one = {
        "--output": arguments.output,
        "--log-probs": arguments.log_probs,
        "--calibrate": arguments.calibrate,
        "--compare FILE": arguments.compare and not is_run,
    }
    received = [name for name, value in of_one.items() if value]
    if len(texts) > 1 and received:
        raise ValueError(
            f"The run has {len(texts)} test sets, and {', '.join(of_one)} are for one. Received: {received[0]}. Name "
            "the text with --source, --reference and --target-language."
        )
    other = None
    if is_run:
        # A run of one direction has no languages to choose from. One of several translates into that of the first run.
        own = translator.translation_language
        target = own if own in Run(arguments.compare).tokenizers()[0].languages else None
        changed = {"run": arguments.compare, "ensemble": [], "target_language": target}
        other = load(argparse.Namespace(**{**vars(arguments), **changed}))
        _check_languages(translator, other, texts)
    elif arguments.compare:
        other = _translations(arguments.compare, texts[0])
    for text in texts:
        _score_text(arguments, translator, text, other, metric)
    return 0


def _check_languages(translator, other, texts):
    """Raises a ValueError unless two translators, one of which has several languages, translate texts into the same."""
    languages = other.source_tokenizer.languages or {other.translation_language}
    for text in texts:
        language = text.target_language or translator.translation_language
        if language not in languages and (translator.source_tokenizer.languages or other.source_tokenizer.languages):
            raise ValueError(
                "--compare needs a run that translates into the same language, or a file of translations. Received: "
                f"{text} in {language}, a run into {', '.join(map(str, languages))}. Choose with --target-language."
            )


def _command(metric):
    """The words of the command of --metric; an empty list without one."""
    if metric is None:
        return []
    try:
        words = shlex.split(metric)
    except ValueError:  # Quotation marks that are not closed.
        words = []
    if not words or not shutil.which(words[0]):
        raise ValueError(
            f"--metric must be a command that can be started, quoted as for a shell. Received: {metric!r}. Give the "
            "path of a program, and of a file in this folder ./NAME."
        )
    return words


def _translations(path, text):
    """The translations of a text that a file has, as a list."""
    from keras_transformer.text.lines import read_lines

    lines, pairs = read_lines(path), list(text.lines)
    if len(lines) != len(pairs):
        raise ValueError(
            f"--compare needs one translation of each line of the text. Received: {path} with {len(lines):,} lines, "
            f"{text.name} with {len(pairs):,}. Name the text that the file translates with --source and --reference."
        )
    return [line for line, pair in zip(lines, pairs, strict=True) if all(pair)]


def _score_text(arguments, translator, text, other, metric):
    from keras_transformer.text.lines import Problems, problem_of
    from keras_transformer.translation.checks import checks
    from keras_transformer.translation.evaluation import corpus_scores, paired_tests, translated

    found = translated(translator, text)
    problems, numbers = Problems(text.name), (number for number, pair in enumerate(text.lines, 1) if all(pair))
    for number, translation in zip(numbers, found.results, strict=False):
        if problem := problem_of(translation, translator.codec.max_source_length):
            problems.add(number, *problem)
    problems.summary()
    sources, texts, references, _ = found

    def write(path, rows):
        """Line n belongs to line n of the text. It is empty if that has an empty side."""
        rows = iter(rows)
        with output_file(path) as output:
            output.writelines((next(rows) if all(pair) else "") + "\n" for pair in text.lines)

    def row(scored):
        tokens = (f"{token} {x:.4f}" for token, x in zip(scored.tokens, scored.token_log_probs, strict=True))
        return "\t".join([f"{scored.log_prob:.4f}", *tokens])

    if arguments.output:
        write(arguments.output, texts)
    if arguments.log_probs:
        write(arguments.log_probs, map(row, translator.score(sources, references, text.target_language)))
    data = Run(arguments.run).config().data
    language = text.target_language or translator.codec.target_language
    tokenize = arguments.bleu_tokenize or data.sacrebleu_tokenizer(language)
    print(f"{text}, {len(sources):,} {text.unit}:\n{corpus_scores(texts, references, tokenize)}")
    print(checks(sources, texts))
    if metric:
        print(f"{arguments.metric}:\n{_measured(metric, sources, texts, references)}")
    if other is not None:
        others = other if isinstance(other, list) else translated(other, text).hypotheses
        print(f"{arguments.compare}:\n{corpus_scores(others, references, tokenize)}\n{checks(sources, others)}")
        if metric:
            print(f"{arguments.metric}:\n{_measured(metric, sources, others, references)}")
        for name, test in paired_tests(texts, others, references, tokenize).items():
            print(f"difference of {name}: {test.difference:+.2f}  (approximate randomization, p = {test.p_value:.3f})")
    if found.results and (arguments.calibrate or translator.calibration):
        _confidence(arguments, translator, found, text.target_language)


def _measured(command, *texts):
    """What a command prints about sources, translations and references, which it gets as files."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, name) for name in ("sources", "translations", "references")]
        for path, lines in zip(paths, texts, strict=True):
            path.write_text("".join(f"{' '.join(line.split())}\n" for line in lines), encoding="utf-8")
        text = {"encoding": "utf-8", "errors": "replace"}
        try:
            found = subprocess.run([*command, *map(str, paths)], stdin=subprocess.DEVNULL, capture_output=True, **text)
        except OSError as error:  # A script that does not say what runs it.
            raise ValueError(
                f"--metric must be a program that can be started. Received: {shlex.join(command)}: {error.strerror}. "
                "Does its first line say what runs it, such as #!/bin/sh?"
            ) from error
    if found.returncode or not found.stdout.strip():
        said = " ".join((found.stderr.strip() or found.stdout).split())[-500:]
        raise ValueError(
            "The command of --metric must print its result and end with status 0. Received: status "
            f"{found.returncode} of {shlex.join(command)}. It said: {said or 'nothing'}"
        )
    print(found.stderr, end="", file=sys.stderr)
    return found.stdout.rstrip("\n")


def _confidence(arguments, translator, found, language):
    """Says how far the confidences of these translations are right, or fits them to these."""
    from keras_transformer.text.confidence import Calibration, calibration_error, ranking
    from keras_transformer.translation.learning import judged_words

    log_probs, right = judged_words(translator, found.sources, found.references, language, found.results)
    if arguments.calibrate:
        calibration = Calibration.fit(log_probs, right)
        Run(arguments.run).save_calibration(calibration)
        print(f"confidence: fitted to {calibration.num_words:,} words, {calibration.right:.1%} of them right")
        return
    if not 0 < sum(right) < len(right):
        return  # Nothing to tell apart.
    expected = translator.calibration(log_probs)
    print(
        f"confidence: {len(right):,} words, {sum(right) / len(right):.1%} right, {expected.mean():.1%} expected; "
        f"calibration error {calibration_error(expected, right):.3f}, ranking (AUC) {ranking(expected, right):.3f}"
    )
