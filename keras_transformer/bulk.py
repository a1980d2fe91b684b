"""Bulk translation on Apache Beam: `python -m keras_transformer.bulk --run RUN --input 'big-*.txt' --output FOLDER`.

Runs on this machine, or, with Beam's own flags (`--runner=...`), on any of its runners; needs `pip install
keras_transformer[beam]`. Each input file becomes a file of the same name in the output folder, line n the translation
of line n. A line that is no text becomes an empty line; of an over-long one only the beginning is translated; a file
that cannot be read to its end becomes no file. `errors.txt` in the output folder names them all.
"""

import argparse
import os
import sys
import threading
import uuid
from pathlib import PurePath

import apache_beam as beam
from apache_beam.io import fileio
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.utils.shared import Shared

from keras_transformer.config import ConfigError, add_flags, section_settings, user_errors
from keras_transformer.text import EMPTY_LINE, DataError, about_line, lines, over_long, unpacked

# Lines that are translated together: enough to fill batches of similar lengths.
CHUNK_SIZE = 2048
ERRORS = "errors.txt"
# A folder in the output folder, for files that are not complete.
WRITING = ".writing"


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
    with user_errors("Files that are in the output folder are complete."):
        settings = section_settings("decoding", vars(arguments))
        _check(arguments.input, arguments.output)
        _load(arguments.run, settings)  # What is wrong with the run is said here, not by every worker.
        writing = FileSystems.join(arguments.output, WRITING)
        _remove(writing)  # Of a process that was killed.
        FileSystems.mkdirs(writing)
        try:
            with beam.Pipeline(options=PipelineOptions(beam_arguments)) as pipeline:
                translate_files(pipeline, arguments.input, arguments.output, arguments.run, **settings)
        finally:
            _remove(writing)
        return _summary(FileSystems.join(arguments.output, ERRORS))


def translate_files(pipeline, pattern, folder, run, **settings):
    """Adds the translation of files to a pipeline.

    Args:
        pipeline: a `beam.Pipeline`.
        pattern: files of text, on any file system that Beam knows; their names must differ.
        folder: where the translations go.
        run: the run folder; every worker loads it from there.
        **settings: `keras_transformer.search.SearchSettings` by name.

    Returns:
        The collection of the errors, strings.
    """
    read = (
        pipeline
        | "Find" >> fileio.MatchFiles(pattern)
        | "Read" >> beam.ParDo(_Read()).with_outputs(ERRORS, main="lines")
    )
    translated = (
        read["lines"]
        | "Spread" >> beam.Reshuffle()
        | "Translate" >> beam.ParDo(_Translate(run, settings)).with_outputs(ERRORS, main="chunks")
    )
    _ = translated["chunks"] | "Collect" >> beam.GroupByKey() | "Write" >> beam.Map(_write, folder)
    errors = (read[ERRORS], translated[ERRORS]) | beam.Flatten()
    _ = errors | "Write errors" >> beam.io.WriteToText(FileSystems.join(folder, ERRORS), shard_name_template="")
    return errors


class _Read(beam.DoFn):
    """A file -> (path, (number of the first line, lines)), and what is wrong with it.

    The last chunk of a file that cannot be read to its end has None for its lines.
    """

    def process(self, match):
        chunk, number = [], 0
        try:
            with FileSystems.open(match.path, compression_type=CompressionTypes.UNCOMPRESSED) as file:
                for batch in lines(unpacked(file), match.path):
                    for line in batch:
                        number += 1
                        if line.problem:
                            yield _error(match.path, number, line.problem, EMPTY_LINE)
                        chunk.append(line.text)
                        if len(chunk) == CHUNK_SIZE:
                            yield match.path, (number - len(chunk), chunk)
                            chunk = []
        except DataError as error:
            chunk = None
            yield beam.pvalue.TaggedOutput(ERRORS, f"{error} Nothing of this file is written.")
        yield match.path, (number - len(chunk or ()), chunk)


class _Translate(beam.DoFn):
    """Translates chunks; the model is loaded once per worker, not once per thread."""

    def __init__(self, run, settings):
        self.run, self.settings = str(run), settings
        self.shared, self.translator = Shared(), None

    def setup(self):
        self.translator = self.shared.acquire(lambda: _Locked(_load(self.run, self.settings)))

    def process(self, element):
        path, (number, chunk) = element
        translations = None if chunk is None else self.translator.translate(chunk)
        for place, translation in enumerate(translations or ()):
            if translation.truncated:
                yield _error(path, number + place + 1, *over_long(self.translator.longest))
        yield _name(path), (number, translations and [translation.text for translation in translations])


def _error(*about):
    return beam.pvalue.TaggedOutput(ERRORS, about_line(*about))


class _Locked:
    """A translator uses all cores by itself: one chunk at a time."""

    def __init__(self, translator):
        self.translator, self.lock = translator, threading.Lock()
        self.longest = translator.max_source_length

    def translate(self, texts):
        with self.lock:
            return self.translator.translate(texts, return_scores=True)


def _load(run, settings):
    from keras_transformer.translator import Translator

    return Translator.load(run, **settings)


def _name(path):
    return PurePath(path).name.removesuffix(".gz")


def _write(element, folder):
    """Writes a file; it appears under its name only when it is complete."""
    name, chunks = element
    chunks = sorted(chunks, key=lambda chunk: chunk[0])
    if any(chunk is None for _, chunk in chunks):
        return
    # Two workers may be at the same file: a cluster repeats what is slow.
    temporary, final = FileSystems.join(folder, WRITING, f"{name}-{uuid.uuid4().hex}"), FileSystems.join(folder, name)
    with FileSystems.create(temporary, mime_type="text/plain") as file:
        for _, chunk in chunks:
            file.write("".join(f"{line}\n" for line in chunk).encode())
    if FileSystems.exists(final):  # Of the other worker: `_check` has found none.
        FileSystems.delete([final])
    FileSystems.rename([temporary], [final])


def _remove(folder):
    if FileSystems.exists(folder):
        FileSystems.delete([folder])


def _summary(path):
    """Says how many errors there are; returns the exit status."""
    with FileSystems.open(path) as file:
        count = sum(1 for _ in iter(file.readline, b""))
    if count:
        print(f"{count:,} line{'s' if count > 1 else ''} in {path} say what could not be translated.", file=sys.stderr)
    return int(count > 0)


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


if __name__ == "__main__":
    from keras_transformer.bulk import main  # Workers know what is in this module, not what is in `__main__`.

    sys.exit(main())
