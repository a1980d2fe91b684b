"""Bulk translation on Apache Beam: `python -m keras_transformer.bulk --run RUN --input 'big-*.txt' --output FOLDER`.

Runs on this machine, or, with Beam's own flags (`--runner=...`), on any of its runners; needs `pip install
keras_transformer[beam]`. Each input file becomes a file of the same name in the output folder, line n the translation
of line n. A line that is not UTF-8 becomes an empty line and is reported in `errors.txt` there.
"""

import argparse
import os
import sys
import threading
from pathlib import PurePath

import apache_beam as beam
from apache_beam.io import fileio
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.utils.shared import Shared

from keras_transformer.config import ConfigError, DecodingConfig, add_flags, user_errors
from keras_transformer.datasets import DataError, decode_line

# Lines that are translated together: enough to fill batches of similar lengths.
CHUNK_SIZE = 2048
ERRORS = "errors.txt"


def main(argv=None):
    parser = argparse.ArgumentParser(
        prog="python -m keras_transformer.bulk",
        description="Translate many files on Apache Beam.",
        epilog="Other flags go to Beam, such as --runner and its settings; see --runner=... --help of Beam.",
    )
    parser.add_argument(
        "--run", required=True, metavar="DIR", help="folder of a trained run, where workers can read it"
    )
    parser.add_argument("--input", required=True, metavar="PATTERN", help="files, one sentence a line, .gz too")
    parser.add_argument("--output", required=True, metavar="DIR", help="folder for the translations")
    add_flags(parser, "decoding")
    arguments, beam_arguments = parser.parse_known_args(argv)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    with user_errors():
        settings = DecodingConfig.search_flags(vars(arguments))
        _check(arguments.input, arguments.output)
        _load(arguments.run, settings)  # What is wrong with the run is said here, not by every worker.
        with beam.Pipeline(options=PipelineOptions(beam_arguments)) as pipeline:
            translate_files(pipeline, arguments.input, arguments.output, arguments.run, **settings)
    return 0


def translate_files(pipeline, pattern, folder, run, **settings):
    """Adds the translation of files to a pipeline.

    Args:
        pipeline: a `beam.Pipeline`.
        pattern: files of text, on any file system that Beam knows; their names must differ.
        folder: where the translations go.
        run: the run folder; every worker loads it from there.
        **settings: `keras_transformer.translator.SearchSettings` by name.

    Returns:
        The collection of the errors, strings.
    """
    read = (
        pipeline
        | "Find" >> fileio.MatchFiles(pattern)
        | "Read" >> beam.ParDo(_Read()).with_outputs(ERRORS, main="lines")
    )
    chunks, errors = read["lines"], read[ERRORS]
    _ = (
        chunks
        | "Spread" >> beam.Reshuffle()
        | "Translate" >> beam.ParDo(_Translate(run, settings))
        | "Collect" >> beam.GroupByKey()
        | "Write" >> beam.Map(_write, folder)
    )
    _ = errors | "Write errors" >> beam.io.WriteToText(FileSystems.join(folder, ERRORS), shard_name_template="")
    return errors


class _Read(beam.DoFn):
    """A file -> (name, (number of the chunk, lines)), and the lines that cannot be read."""

    def process(self, match):
        lines, chunk = [], 0
        with FileSystems.open(match.path) as file:  # Unpacks by the suffix.
            for number, line in enumerate(iter(file.readline, b""), 1):
                try:
                    lines.append(decode_line(line, number))
                except DataError as error:
                    yield beam.pvalue.TaggedOutput(ERRORS, f"{match.path}, {error}; an empty line is written.")
                    lines.append("")
                if len(lines) == CHUNK_SIZE:
                    yield _name(match.path), (chunk, lines)
                    lines, chunk = [], chunk + 1
        yield _name(match.path), (chunk, lines)


class _Translate(beam.DoFn):
    """Translates chunks; the model is loaded once per worker, not once per thread."""

    def __init__(self, run, settings):
        self.run, self.settings = str(run), settings
        self.shared, self.translator = Shared(), None

    def setup(self):
        self.translator = self.shared.acquire(lambda: _Locked(_load(self.run, self.settings)))

    def process(self, element):
        name, (chunk, lines) = element
        yield name, (chunk, self.translator.translate(lines))


class _Locked:
    """A translator uses all cores by itself: one chunk at a time."""

    def __init__(self, translator):
        self.translator, self.lock = translator, threading.Lock()

    def translate(self, lines):
        with self.lock:
            return self.translator.translate(lines)


def _load(run, settings):
    from keras_transformer.translator import Translator

    return Translator.load(run, **settings)


def _name(path):
    return PurePath(path).name.removesuffix(".gz")


def _write(element, folder):
    """Writes a file; it appears under its name only when it is complete."""
    name, chunks = element
    temporary, final = FileSystems.join(folder, f".writing-{name}"), FileSystems.join(folder, name)
    with FileSystems.create(temporary, mime_type="text/plain") as file:
        for _, lines in sorted(chunks):
            file.write("".join(f"{line}\n" for line in lines).encode())
    if FileSystems.exists(final):  # A part of the pipeline may run twice.
        FileSystems.delete([final])
    FileSystems.rename([temporary], [final])


def _check(pattern, folder):
    """Whether there are files to read, and none in the way of those to write."""
    paths = [match.path for result in FileSystems.match([pattern]) for match in result.metadata_list]
    if not paths:
        raise DataError(f"--input matches no file. Received: {pattern}. Quote the pattern, such as 'big-*.txt'.")
    names = [_name(path) for path in paths]
    twice = sorted({name for name in names if names.count(name) > 1 or name == ERRORS})
    if twice:
        raise ConfigError(f"Translations get the names of their files, which must differ. Received twice: {twice[0]}.")
    for name in (*names, ERRORS):
        if FileSystems.exists(FileSystems.join(folder, name)):
            raise ConfigError(f"{folder} already has {name}: nothing is overwritten. Choose another folder.")
    if not FileSystems.exists(folder):
        FileSystems.mkdirs(folder)


if __name__ == "__main__":
    from keras_transformer.bulk import main  # Workers know what is in this module, not what is in `__main__`.

    sys.exit(main())
