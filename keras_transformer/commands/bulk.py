"""Bulk translation on Apache Beam: `python -m keras_transformer.commands.bulk --run RUN --input 'big-*.txt' --output
FOLDER`.

Runs on this machine, or, with Beam's own flags (`--runner=...`), on any of its runners; needs `pip install
apache-beam`. Each input file becomes a file of the same name in the output folder; its line n is the
translation of line n. A line that is not valid text becomes an empty line. Of an over-long line only the beginning is
translated. A file that cannot be read to its end gets no output file. `errors.txt` in the output folder lists all of
these.

With `--train SOURCE TARGET`, any number of times, it tokenizes training corpora instead, one per worker, with the
vocabulary of the run, into `--cache-dir`. `train_keras.py --init-from RUN` with the same corpora and folder finds them.
"""

import dataclasses
import itertools
import os
import sys
import threading
import uuid
from pathlib import PurePath
from typing import Any

try:
    import apache_beam as beam
    from apache_beam.io import fileio
    from apache_beam.io.filesystem import CompressionTypes
    from apache_beam.io.filesystems import FileSystems
    from apache_beam.options.pipeline_options import PipelineOptions
    from apache_beam.pvalue import TaggedOutput
    from apache_beam.utils.shared import Shared
except ModuleNotFoundError as error:
    message = "Apache Beam is not installed. Try: pip install apache-beam"
    raise (SystemExit(f"error: {message}") if __name__ == "__main__" else ImportError(message)) from error

from keras_transformer.commands.flags import FlagParser, add_flags, user_errors
from keras_transformer.data.cleaning import Cleaner
from keras_transformer.data.corpora import corpus_text
from keras_transformer.data.encoding import encoded_in
from keras_transformer.text.lines import EMPTY_LINE, DataError, about_line, lines, problem_of
from keras_transformer.training.config import ConfigError, section_settings
from keras_transformer.training.run import Run
from keras_transformer.training.sections import CLEANING, DataConfig

# Number of lines that are translated together: enough to fill batches of similar lengths.
CHUNK_SIZE = 2048
ERRORS = "errors.txt"
# A folder in the output folder, for incomplete files.
WRITING = ".writing"
# One chunk at a time is translated in each process: a translator already uses all cores.
LOCK = threading.Lock()


def main(argv: list[str] | None = None) -> int:
    parser = FlagParser(
        prog="python -m keras_transformer.commands.bulk",
        usage="%(prog)s --run DIR [FLAGS]",
        description="Translate many files on Apache Beam, or tokenize many corpora for training (--train).",
        epilog="Other flags are passed to Beam, such as --runner and its settings; Beam's documentation lists them.",
        known_only=False,
    )
    flag = parser.add_argument
    flag("--run", required=True, metavar="DIR", help="folder of a trained run; all workers must be able to read it")
    flag("--input", metavar="PATTERN", help="files of text, one sentence per line, plain or .gz")
    flag("--output", metavar="DIR", help="folder for the translations")
    add_flags(parser, "data", only=("train", "cache_dir", "clean", *CLEANING))
    add_flags(parser, "search")
    arguments, beam_arguments = parser.parse_known_args(argv)
    needed = ("train", "cache_dir") if "train" in arguments else ("input", "output")
    missing = [f"--{name.replace('_', '-')}" for name in needed if vars(arguments).get(name) is None]
    if missing:
        parser.error(f"the following arguments are required: {', '.join(missing)}")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    if "train" in arguments:
        with user_errors("What was tokenized is kept."):
            return _prepare(arguments, beam_arguments)
    with user_errors("All files in the output folder are complete."):
        return _translate_all(arguments, beam_arguments)


def _translate_all(arguments, beam_arguments):
    settings = section_settings("search", vars(arguments))
    if "target_language" in arguments:
        settings["target_language"] = arguments.target_language
    _check(arguments.input, arguments.output)
    _load(arguments.run, settings)  # So that errors of the run are printed once, not by every worker.
    writing = FileSystems.join(arguments.output, WRITING)
    _remove(writing)  # Left by a killed process.
    FileSystems.mkdirs(writing)
    try:
        with beam.Pipeline(options=PipelineOptions(beam_arguments)) as pipeline:
            translate_files(pipeline, arguments.input, arguments.output, arguments.run, **settings)
    finally:
        _remove(writing)
    return _summary(FileSystems.join(arguments.output, ERRORS))


def _prepare(arguments, beam_arguments):
    run = Run(arguments.run)
    run.check_trained()
    data = dataclasses.replace(run.config().data, **section_settings("data", vars(arguments)))
    with beam.Pipeline(options=PipelineOptions(beam_arguments)) as pipeline:
        _ = prepare_corpora(pipeline, data, arguments.run) | beam.Map(print)
    print(f"All {len(data.train)} are in {data.cache_dir}.")
    return 0


def prepare_corpora(pipeline: beam.Pipeline, data: DataConfig, run: str) -> Any:
    """Adds the preparation of training corpora to a pipeline; returns the collection of reports, strings.

    All workers must be able to use the corpora and the folder of `data`. `run` is the folder with the tokenizers.
    """
    corpora = pipeline | "Corpora" >> beam.Create(list(data.train)) | "Spread" >> beam.Reshuffle()
    return corpora | "Tokenize" >> beam.Map(_tokenize, data, str(run))


def _tokenize(corpus, data, run):
    text, run = corpus_text(corpus), Run(run)
    cleaner = Cleaner.of(data, text.direction) if data.clean else None
    tokenizers = run.tokenizers()[0], run.tokenizers()[-1]
    tagged_targets = run.config().model.source_language_token_id is not None
    pairs = encoded_in(data.cache_dir, text, tokenizers, data.max_length, data.over_long, cleaner, tagged_targets)
    return ", ".join([f"{text.name}: {len(pairs.source):,} pairs", *pairs.about_left_out(data.over_long)])


def translate_files(pipeline: beam.Pipeline, pattern: str, folder: str, run: str, **settings: Any) -> Any:
    """Adds the translation of files to a pipeline; returns the collection of the errors, strings.

    Args:
        pipeline: the pipeline.
        pattern: files of text, on any file system that Beam supports; their names must differ.
        folder: the folder for the translations.
        run: the run folder; every worker loads the model from there.
        **settings: arguments of `keras_transformer.Translator`, such as `num_beams` or `target_language`.
    """
    reading = beam.ParDo(_Read()).with_outputs(ERRORS, main="lines")
    read = pipeline | "Find" >> fileio.MatchFiles(pattern) | "Read" >> reading
    translating = beam.ParDo(_Translate(run, settings)).with_outputs(ERRORS, main="chunks")
    translated = read["lines"] | "Spread" >> beam.Reshuffle() | "Translate" >> translating
    _ = translated["chunks"] | "Collect" >> beam.GroupByKey() | "Write" >> beam.Map(_write, folder)
    errors = (read[ERRORS], translated[ERRORS]) | beam.Flatten()
    _ = errors | "Write errors" >> beam.io.WriteToText(FileSystems.join(folder, ERRORS), shard_name_template="")
    return errors


class _Read(beam.DoFn):
    """A file -> (path, (index of the first line, lines)) for each chunk, and errors.

    If a file cannot be read to its end, the lines of its last chunk are None.
    """

    def process(self, match):
        chunk, number = [], 0
        try:
            with FileSystems.open(match.path, compression_type=CompressionTypes.UNCOMPRESSED) as file:
                for line in itertools.chain.from_iterable(lines(file, match.path)):
                    number += 1
                    if line.problem:
                        yield _error(match.path, number, line.problem, EMPTY_LINE)
                    chunk.append(line.text)
                    if len(chunk) == CHUNK_SIZE:
                        yield match.path, (number - len(chunk), chunk)
                        chunk = []
        except DataError as error:
            chunk = None
            yield TaggedOutput(ERRORS, f"{error} Nothing of this file is written.")
        yield match.path, (number - len(chunk or ()), chunk)


class _Translate(beam.DoFn):
    """Translates chunks; the model is loaded once per worker, not once per thread."""

    def __init__(self, run, settings):
        self.run, self.settings = str(run), settings
        self.shared, self.translator = Shared(), None

    def setup(self):
        self.translator = self.shared.acquire(lambda: _load(self.run, self.settings))

    def process(self, element):
        path, (number, chunk) = element
        with LOCK:
            translations = chunk and self.translator.translate(chunk, return_scores=True)
        for place, translation in enumerate(translations or ()):
            if problem := problem_of(translation, self.translator.codec.max_source_length):
                yield _error(path, number + place + 1, *problem)
        yield _name(path), (number, translations and [translation.text for translation in translations])


def _error(*about):
    return TaggedOutput(ERRORS, about_line(*about))


def _load(run, settings):
    from keras_transformer.translation.translator import Translator

    return Translator.load(run, **settings)


def _name(path):
    return PurePath(path).name.removesuffix(".gz")


def _write(element, folder):
    """Writes a file; it appears under its name only when it is complete."""
    name, chunks = element
    chunks = sorted(chunks, key=lambda chunk: chunk[0])
    if any(chunk is None for _, chunk in chunks):
        return
    # Two workers may write the same file: a cluster repeats slow tasks.
    temporary, final = FileSystems.join(folder, WRITING, f"{name}-{uuid.uuid4().hex}"), FileSystems.join(folder, name)
    with FileSystems.create(temporary, mime_type="text/plain") as file:
        for _, chunk in chunks:
            file.write("".join(f"{line}\n" for line in chunk).encode())
    _remove(final)  # Written by another worker: `_check` found no such file at the start.
    FileSystems.rename([temporary], [final])


def _remove(path):
    if FileSystems.exists(path):
        FileSystems.delete([path])


def _summary(path):
    """Prints how many errors there are; returns the exit status."""
    with FileSystems.open(path) as file:
        count = sum(1 for _ in iter(file.readline, b""))
    if count:
        print(f"{count:,} line{'s' if count > 1 else ''} in {path} say what could not be translated.", file=sys.stderr)
    return int(count > 0)


def _check(pattern, folder):
    """Raises an error unless there are files to read, and no output file exists already."""
    paths = [match.path for result in FileSystems.match([pattern]) for match in result.metadata_list]
    if not paths:
        raise DataError(f"--input matches no file. Received: {pattern}. Quote the pattern, such as 'big-*.txt'.")
    names = [_name(path) for path in paths]
    twice = sorted({name for name in names if names.count(name) > 1 or name == ERRORS})
    if twice:
        raise ConfigError(
            f"Translations get the names of their input files, which must differ. Received twice: {twice[0]}."
        )
    for name in (*names, ERRORS):
        if FileSystems.exists(FileSystems.join(folder, name)):
            raise ConfigError(f"{folder} already has {name}: nothing is overwritten. Choose another folder.")


if __name__ == "__main__":
    from keras_transformer.commands.bulk import main  # Workers can import this module, but not `__main__`.

    sys.exit(main())
