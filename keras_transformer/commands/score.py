"""Score a run with sacreBLEU (BLEU and chrF)."""

import argparse

from keras_transformer.commands.common import add_ensemble_flag, add_search_flags, both_or_none, check_outputs, load
from keras_transformer.files import output_file
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
    flag("--confidence", action="store_true", help="print how well the confidence of words tells right from wrong ones")
    help = "fit the confidence to this text and store it in the run, as training does with the validation text"
    flag("--calibrate", action="store_true", help=help)


def run(arguments: argparse.Namespace) -> int:
    from keras_transformer.data.corpora import load_corpus, read_parallel

    both_or_none(arguments, "source", "reference")
    if arguments.ensemble and arguments.calibrate:
        raise ValueError("--calibrate writes into the run, and is for one model. Received: --ensemble, too.")
    inputs = arguments.source, arguments.reference
    check_outputs([arguments.output, arguments.log_probs], inputs, [arguments.run, *arguments.ensemble])
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
    of_one = {"--output": arguments.output, "--log-probs": arguments.log_probs, "--calibrate": arguments.calibrate}
    received = [name for name, value in of_one.items() if value]
    if len(texts) > 1 and received:
        raise ValueError(
            f"The run has {len(texts)} test sets, and {', '.join(of_one)} are for one. Received: {received[0]}. Name "
            "the text with --source, --reference and --target-language."
        )
    for text in texts:
        _score_text(arguments, translator, text)
    return 0


def _score_text(arguments, translator, text):
    from keras_transformer.text.lines import Problems, problem_of
    from keras_transformer.translation.evaluation import corpus_scores

    numbers = [number for number, pair in enumerate(text.lines, 1) if all(pair)]
    sources, references = zip(*text.pairs, strict=True)
    translations = translator.translate(sources, target_language=text.target_language, return_scores=True)
    problems = Problems(text.name)
    for number, translation in zip(numbers, translations, strict=True):
        if problem := problem_of(translation, translator.codec.max_source_length):
            problems.add(number, *problem)
    problems.summary()
    texts = [translation.text for translation in translations]

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
    tokenize = arguments.bleu_tokenize or Run(arguments.run).config().data.sacrebleu_tokenizer()
    print(f"{text}, {len(sources):,} sentences:\n{corpus_scores(texts, references, tokenize)}")
    if arguments.calibrate:
        from keras_transformer.translation.learning import calibrate

        Run(arguments.run).save_calibration(calibrate(translator, sources, references, text.target_language))
    if arguments.confidence or arguments.calibrate:
        _print_confidence(translator, sources, references, text.target_language)


def _print_confidence(translator, sources, references, target_language):
    from keras_transformer.text.confidence import calibration_error, ranking
    from keras_transformer.translation.learning import check_calibrated, judged_words

    check_calibrated(translator)
    log_probs, right = judged_words(translator, sources, references, target_language)
    expected = translator.calibration(log_probs)
    print(
        f"confidence: {len(right):,} words, {sum(right) / len(right):.1%} right, {expected.mean():.1%} expected; "
        f"calibration error {calibration_error(expected, right):.3f}, ranking (AUC) {ranking(expected, right):.3f}"
    )
