"""The commands of `python -m keras_transformer`: functions of the parsed flags that return the exit status.

Each one imports what it needs, so that a mistake in the flags is reported at once.
"""

import contextlib
import functools
import json
import math
import os
import shlex
import socket
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path

from keras_transformer.files import check_unchanged, output_file
from keras_transformer.text.glossary import Glossary
from keras_transformer.training.config import CLEANING, PICTURES, PICTURES_WITHOUT_RUN, RunConfig, section_settings
from keras_transformer.training.run import Run

# Pairs that are aligned for a shortlist, at most: a tiny model aligns 29,000 in a minute.
SHORTLIST_PAIRS = 100_000
# A worker notices after a time-out of TensorFlow that another one is gone. If they never connected, it waits forever.
GRACE_SECONDS = 60
# Test sentences that show what quantisation costs: they take a minute with a base model.
BLEU_SENTENCES = 200


def _load(arguments):
    """The translator of a run. A folder without a model and wrong settings are reported before TensorFlow is loaded."""
    Run(arguments.run).check_trained()
    settings = section_settings("decoding", vars(arguments))
    if getattr(arguments, "target_language", None):
        settings["target_language"] = arguments.target_language
    if getattr(arguments, "glossary", None):
        settings["glossary"] = Glossary.load(arguments.glossary)
    with _without("matplotlib.pyplot"):  # Where Matplotlib is installed, Keras imports it: half a second for nothing.
        from keras_transformer.translation.translator import Translator

    return Translator.load([arguments.run, *getattr(arguments, "ensemble", ())], **settings)


@contextlib.contextmanager
def _without(module):
    """A context in which an import of a module that is not loaded fails, as if it was not installed."""
    if module in sys.modules:
        yield
        return
    sys.modules[module] = None  # Python's way to say so.
    try:
        yield
    finally:
        del sys.modules[module]


def clean(arguments):
    """Writes the pairs of two files that are probably translations of each other, and prints a report."""
    from keras_transformer.data.cleaning import Cleaner, clean_files
    from keras_transformer.data.corpora import parallel_files
    from keras_transformer.data.encoding import Progress, report
    from keras_transformer.training.config import DataConfig

    names = *CLEANING, "workers"
    data = DataConfig(**section_settings("data", {name: vars(arguments)[name] for name in names if name in arguments}))
    text, outputs = (
        parallel_files(arguments.source, arguments.target),
        (arguments.output_source, arguments.output_target),
    )
    if os.path.realpath(outputs[0]) == os.path.realpath(outputs[1]):
        raise ValueError(f"--output-source and --output-target must be two files. Received: {outputs[0]} twice.")
    _check_outputs(outputs, (arguments.source, arguments.target))
    workers = data.workers or os.cpu_count()
    with contextlib.redirect_stdout(sys.stderr):  # An output may be /dev/stdout.
        kept, left_out = clean_files(text, Cleaner.of(data), outputs, workers, Progress(text.name))
        dropped = sum(one.count for one in left_out.values())
        print("\n".join([f"{text.name}: {kept:,} pairs kept, {dropped:,} left out", *report(left_out)]))
    return 0


def import_(arguments):
    from keras_transformer.text.lines import read_lines

    run = Run(arguments.run_dir)
    if not run.is_free():
        with run.claimed(arguments.overwrite):
            pass  # Before the model is read, which takes seconds; `write` checks again.
    names = arguments.trim_source, arguments.trim_target
    corpus = tuple(read_lines(name) if name else None for name in names)
    trim = arguments.trim_vocabulary or any(names)
    from keras_transformer.transfer import importing

    names = "source_language", "target_language"
    languages = {name: getattr(arguments, name) for name in names if getattr(arguments, name)}
    if languages and arguments.family == "opus-mt":
        raise importing.ModelImportError(
            "--source-language and --target-language are for m2m-100 and nllb: an OPUS-MT model has its languages, or "
            f"tags in its sources. Received: {' and '.join(languages.values())}."
        )
    imported = importing.read(arguments.family, arguments.folder, trim, corpus, **languages)
    print("\n".join(importing.report(imported)), flush=True)
    if trim:
        whole = importing.read(arguments.family, arguments.folder, **languages)
        print("\n".join(importing.trim_report(whole, imported, corpus[0])), flush=True)
    importing.write(imported, run, arguments.overwrite)
    print(f"Run folder: {run}\nTo translate with it:")
    print(f"  python -m keras_transformer translate {shlex.quote(str(run))} --input FILE")
    return 0


def distill(arguments):
    """Lets teachers translate a text, trains a student with it, exports it and compares both; all can be resumed."""
    os.environ.setdefault("TF_CPU_ALLOCATOR_USE_BFC", "true")  # As train_keras.py, before TensorFlow is imported.
    import train_keras
    from keras_transformer.transfer import distilling

    names = RunConfig().flat()
    work = distilling.Distillation(arguments, {key: value for key, value in vars(arguments).items() if key in names})
    resume = arguments.resume and work.run.config_file.is_file()
    run, config = train_keras.configure(work.flags, {} if resume else work.settings(), work.run.folder, resume)
    with train_keras.claimed(run, config, resume, arguments.overwrite):
        if not resume:
            train_keras.check_sizes(config)  # Now, and not after hours of translation.
            print("\n".join(work.write_text()), flush=True)
        status = train_keras.train(run, config, resume, export=not arguments.no_export)
    if status or arguments.no_export:
        return status
    from keras_transformer.export.report import write_report
    from keras_transformer.export.tflite import export_tflite
    from keras_transformer.translation.translator import Translator

    translator = Translator.load(run.folder)
    for quantize in ("none", "int8"):
        folder, _ = export_tflite(translator, run.export_folder("tflite", quantize), quantize, overwrite=True)
        print(folder, flush=True)
    ensemble = [",".join(arguments.teachers)] if len(arguments.teachers) > 1 else []
    # A teacher that made sources translates in the other direction.
    teachers = [] if work.backward else [*ensemble, *arguments.teachers]
    write_report([*teachers, str(run)], run.report_folder)
    return 0


def report(arguments):
    for folder in ",".join(arguments.runs).split(","):
        Run(folder).check_trained()
    from keras_transformer.export.report import write_report

    folder = Path(arguments.output or Run(arguments.runs[-1]).report_folder)
    write_report(arguments.runs, folder, arguments.text or (), arguments.browser)
    return 0


def translate(arguments):
    from tqdm import tqdm

    from keras_transformer.text.lines import Problems, lines, open_input

    _check_outputs([arguments.output], [arguments.input, arguments.glossary], [arguments.run, *arguments.ensemble])
    if arguments.document or arguments.format != "text":
        return _translate_document(arguments)
    name = arguments.input or "standard input"
    problems, count = Problems(name), 0
    with open_input(arguments.input) as file, contextlib.ExitStack() as stack:
        translator = _load(arguments)
        output = stack.enter_context(_output(arguments.output))  # Opened only when the model is loaded.
        # disable=None: tqdm shows no bar unless standard error is a terminal.
        progress = stack.enter_context(tqdm(unit=" lines", disable=True if file.isatty() else None))
        for chunk in _typed() if file.isatty() else lines(file, name):
            translations = translator.translate(
                [line.text for line in chunk],
                num_hypotheses=arguments.num_hypotheses,
                return_scores=True,
                return_attention=arguments.alignments,
                return_confidence=arguments.confidence,
                prefixes=[arguments.prefix] * len(chunk) if arguments.prefix else None,
            )
            for line, hypotheses in zip(chunk, translations, strict=True):
                hypotheses = hypotheses if arguments.num_hypotheses > 1 else [hypotheses]
                for hypothesis in hypotheses:
                    print(_row(hypothesis, arguments), file=output)
                count += 1
                problems.add_line(count, line, hypotheses[0], translator.codec.max_source_length)
            output.flush()
            progress.update(len(chunk))
    return int(problems.summary())


def _translate_document(arguments):
    from tqdm import tqdm

    from keras_transformer.text.lines import Problems, problem_of, read_text
    from keras_transformer.text.markup import declared_encoding

    others = {"--scores": arguments.scores, "--alignments": arguments.alignments, "--prefix": arguments.prefix}
    others["--confidence"] = arguments.confidence
    others["--num-hypotheses"] = arguments.num_hypotheses > 1
    received = [name for name, given in others.items() if given]
    if received:
        name = "--document" if arguments.document else f"--format {arguments.format}"
        raise ValueError(f"{name} writes one text, so it takes none of {', '.join(others)}. Received: {received[0]}.")
    encoding_of = functools.partial(declared_encoding, is_html=arguments.format == "html")
    text = read_text(arguments.input, None if arguments.format == "text" else encoding_of)
    translator = _load(arguments)
    if arguments.format != "text":
        translate_markup = translator.translate_html if arguments.format == "html" else translator.translate_xml
        with _output(arguments.output) as output, warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("ignore")
            warnings.filterwarnings("always", ".* lack parts that must not change")
            output.write(translate_markup(text))
        for warning in caught:
            print(f"{arguments.input or 'standard input'}: {warning.message}", file=sys.stderr)
        return int(bool(caught))
    from keras_transformer.translation.documents import join_text, split_text, stream_sentences

    parts = split_text(translator, text)
    with _output(arguments.output) as output, tqdm(total=len(parts) // 2, unit=" sentences", disable=None) as progress:
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


def _check_outputs(outputs, inputs, runs=()):
    """Raises an error if an output is one of the inputs, or a file of one of the runs. A path may be None."""
    inputs = [*filter(None, inputs), *(file for run in runs for file in Run(run).own_files())]
    files = set(map(os.path.realpath, inputs))
    if replaced := [path for path in outputs if path and os.path.realpath(path) in files]:
        raise ValueError(
            f"An output must not replace what the command reads. Received: {replaced[0]} for both. Choose another file."
        )


def _output(path):
    """Standard output, or a file that appears only when it is complete."""
    return contextlib.nullcontext(sys.stdout) if path is None else output_file(path)


def launch(arguments):
    """Starts the workers with their `TF_CONFIG`; when one fails, the others have `GRACE_SECONDS` to end."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(arguments.workers)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        addresses = [f"127.0.0.1:{one.getsockname()[1]}" for one in sockets]
    processes = []
    for index in range(arguments.workers):
        config = {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": index}}
        environment = {**os.environ, "TF_CONFIG": json.dumps(config), "PYTHONUNBUFFERED": "1"}
        call = [sys.executable, arguments.script, *arguments.arguments]
        processes.append(
            subprocess.Popen(call, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        )

    def show(index):
        with processes[index].stdout as lines:
            for line in lines:
                print(f"[{index}] {line}", end="", flush=True)
        if processes[index].wait():
            print(f"[{index}] ended with {processes[index].returncode}", flush=True)

    threads = [threading.Thread(target=show, args=(index,), daemon=True) for index in range(arguments.workers)]
    for thread in threads:
        thread.start()
    deadline = math.inf
    while any(thread.is_alive() for thread in threads) and time.monotonic() < deadline:
        try:
            time.sleep(0.1)
            stop = any(process.poll() for process in processes)
        except KeyboardInterrupt:  # The workers are interrupted, too, and save what they have.
            stop = True
        if stop and deadline == math.inf:
            deadline = time.monotonic() + GRACE_SECONDS
    for process in processes:
        process.kill()  # TensorFlow's workers ignore SIGTERM.
    for thread in threads:
        thread.join()
    return int(any(process.returncode for process in processes))


def score(arguments):
    from keras_transformer.data.corpora import load_corpus, read_parallel

    if bool(arguments.source) != bool(arguments.reference):
        raise ValueError("--source and --reference must be given together. Received: one of them.")
    if arguments.ensemble and arguments.calibrate:
        raise ValueError("--calibrate writes into the run, and is for one model. Received: --ensemble, too.")
    inputs = arguments.source, arguments.reference
    _check_outputs([arguments.output, arguments.log_probs], inputs, [arguments.run, *arguments.ensemble])
    translator = _load(arguments)
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
    received = [name for name, given in of_one.items() if given]
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
    from keras_transformer.translation.scores import corpus_scores

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

    def scored(one):
        tokens = (f"{token} {x:.4f}" for token, x in zip(one.tokens, one.token_log_probs, strict=True))
        return "\t".join([f"{one.log_prob:.4f}", *tokens])

    if arguments.output:
        write(arguments.output, texts)
    if arguments.log_probs:
        write(arguments.log_probs, map(scored, translator.score(sources, references, text.target_language)))
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
    found = translator.calibration(log_probs)
    print(
        f"confidence: {len(right):,} words, {sum(right) / len(right):.1%} right, {found.mean():.1%} expected; "
        f"calibration error {calibration_error(found, right):.3f}, ranking (AUC) {ranking(found, right):.3f}"
    )


def shortlist(arguments):
    """Learns the shortlist of a run from alignments of its training text."""
    from keras_transformer.data.corpora import load_corpus, parallel_files
    from keras_transformer.training.run import some_pairs

    if bool(arguments.source) != bool(arguments.target):
        raise ValueError("--source and --target must be given together. Received: one of them.")
    arguments.shortlist = 0  # A run whose settings ask for one cannot be loaded without it.
    run, translator = Run(arguments.run), _load(arguments)
    if arguments.source:
        texts = [parallel_files(arguments.source, arguments.target)]
    else:
        texts = load_corpus(run.config().data).train
    pairs = some_pairs(((*pair, text.target_language) for text in texts for pair in text), 0, SHORTLIST_PAIRS)
    from keras_transformer.translation.learning import learn_shortlist

    found = learn_shortlist(translator, *map(list, zip(*pairs, strict=True)))
    found.save(run.shortlist_file)
    print(f"{run.shortlist_file}: from {len(pairs):,} pairs. Use it with --shortlist 500.")
    return 0


def plot(arguments):
    from keras_transformer.pictures.figures import empty_figure

    empty_figure()  # An error if Matplotlib is missing, before TensorFlow is loaded.
    translator, text, reference = _load(arguments) if arguments.run else None, arguments.text, None
    from keras_transformer.pictures.drawing import draw, example_sentences

    kinds = PICTURES if arguments.kind == "all" else (arguments.kind,)
    if arguments.run:
        if not text:
            ((text, reference),) = example_sentences(translator, 1)
        print(f"sentence: {text}", file=sys.stderr)
    elif arguments.kind == "all":
        left_out = [kind for kind in kinds if kind not in PICTURES_WITHOUT_RUN]
        print(f"left out, they need a trained run: {', '.join(left_out)}", file=sys.stderr)
        kinds = PICTURES_WITHOUT_RUN
    folder = Path(arguments.output)
    folder.mkdir(parents=True, exist_ok=True)
    for kind in kinds:
        for name, picture in draw(kind, translator, text, reference):
            still = hasattr(picture, "savefig")
            path = folder / f"{name}.{arguments.format if still else 'gif'}"
            with output_file(path, "wb") as file:
                picture.savefig(file, format=arguments.format) if still else file.write(_animated(picture))
            print(path, flush=True)
    return 0


def _animated(picture):
    """The bytes of a GIF; Matplotlib writes animations only to files with a name."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "animation.gif"
        picture.save(path, writer="pillow")
        return path.read_bytes()


def explore(arguments):
    from keras_transformer.text.lines import read_lines

    texts = [*(arguments.text or ()), *(filter(None, read_lines(arguments.input)) if arguments.input else ())]
    translator = _load(arguments)
    from keras_transformer.pictures.drawing import example_sentences, explorer

    texts = texts or [source for source, _ in example_sentences(translator, 5)]
    path = Path(arguments.output or Run(arguments.run).explorer_file)
    with output_file(path) as output:
        output.write(explorer(translator, texts, f"Attention in {Path(arguments.run).name}"))
    print(path)
    return 0


def export(arguments):
    quantize = arguments.quantize if arguments.quantized else "none"
    output = arguments.output or Run(arguments.run).export_folder(arguments.target, quantize)
    translator = _load(arguments)
    if arguments.target == "ctranslate2":
        from keras_transformer.export.ctranslate2 import export_ctranslate2

        print(export_ctranslate2(translator, output, arguments.quantize, arguments.overwrite))
    elif arguments.target == "tflite":
        from keras_transformer.export.tflite import export_tflite

        lengths = arguments.source_length, arguments.target_length
        folder, same = export_tflite(
            translator, output, arguments.quantize, arguments.overwrite, *lengths, arguments.text_file
        )
        _print_loss_by_quantization(arguments.quantize, same, folder, translator, arguments.run)
        print(folder)
    elif arguments.target == "web":
        from keras_transformer.export.web import export_web, server

        lengths = {"source_length": arguments.source_length, "target_length": arguments.target_length}
        with contextlib.ExitStack() as stack:
            if arguments.serve:  # Before the export, which takes minutes: the port may be in use.
                site = stack.enter_context(server(output, arguments.port))
            folder, shares = export_web(translator, output, arguments.quantize, arguments.overwrite, **lengths)
            for name, same in shares.items():
                _print_loss_by_quantization(name, same, folder / "models" / name, translator, arguments.run)
            print(folder, flush=True)
            if arguments.serve:
                host, port = site.server_address
                print(f"Open http://{host}:{port} in a browser. Ctrl-C ends.", file=sys.stderr, flush=True)
                with contextlib.suppress(KeyboardInterrupt):
                    site.serve_forever()
    else:
        from keras_transformer.export.saved_model import export_saved_model

        print(
            export_saved_model(translator, output, arguments.overwrite, arguments.num_hypotheses, arguments.jit_compile)
        )
    return 0


def _print_loss_by_quantization(name, same, folder, translator, run):
    """Prints how many translations quantisation changed, and what BLEU it cost."""
    from keras_transformer.data.corpora import DataError, one_test_set
    from keras_transformer.export.verify import tflite_bleu

    if same == 1:
        return
    print(f"{name}: {same:.0%} of made-up sentences are translated as in Python.", file=sys.stderr)
    try:
        data = Run(run).config().data
        test = one_test_set(data, translator.codec.target_language)
    except (DataError, OSError) as error:
        print(f"BLEU was not compared, because the test set of the run cannot be read: {error}", file=sys.stderr)
        return
    bleu = tflite_bleu(folder, translator, test.pairs[:BLEU_SENTENCES], data.sacrebleu_tokenizer())
    print(
        f"{name}: BLEU {bleu[0]:.1f}, Python {bleu[1]:.1f}, {bleu[0] - bleu[1]:+.1f} "
        f"({min(BLEU_SENTENCES, len(test.pairs))} sentences of {test.name})",
        file=sys.stderr,
    )


def verify(arguments):
    check_unchanged(arguments.path)  # Before the model is loaded, which takes seconds.
    translator = _load(arguments)
    from keras_transformer.export import verify

    for folder, same, line in verify.verify(arguments.path, translator):
        _print_loss_by_quantization(folder.name, same, folder, translator, arguments.run)
        print(line)
    return 0
