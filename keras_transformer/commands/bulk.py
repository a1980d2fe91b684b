"""Translate many files with several processes, on this machine or on a cluster.

The processes are actors of Ray (https://docs.ray.io), on this machine or on the cluster of `$RAY_ADDRESS`. Each loads
the model once. An actor that dies is started again, and gets the lines again that it was translating.

This process reads and writes all files; the other machines only read the run. What becomes of a file is in
docs/commands.md#bulk.
"""

import argparse
import collections
import contextlib
import importlib.util
import itertools
import os
import secrets
import signal
import sys
from pathlib import Path
from typing import Any, NamedTuple

from keras_transformer.commands import common
from keras_transformer.files import locked, output_file, output_path
from keras_transformer.text.lines import EMPTY_LINE, DataError, Line, Problems, lines, open_input, problem_of
from keras_transformer.training.run import Run

# How often an actor may die, and how often the same chunk is tried again: if all who try it die, it is the chunk.
RESTARTS, RETRIES = 100, 3
# Number of chunks that an actor has or waits for: it has the next one when it has finished one.
WAITING = 3
# Number of rows of a `.parquet` file that are translated together.
ROWS = 2048
PARQUET, TRANSLATION = ".parquet", "translation"
# Bytes for the chunks that are on their way, on this machine. Ray would take a third of the memory.
MEMORY = 128 * 2**20
# Seconds after which it is said that processes are waited for.
PATIENCE = 60


class Chunk(NamedTuple):
    """Some lines of a file.

    Attributes:
        file: the path of the file.
        lines: a list of `Line`s.
        rows: what the translations are added to: a table of a `.parquet` file, or None.
        error: a `DataError` if the file cannot be read any further, or None.
    """

    file: str
    lines: list[Line]
    rows: Any = None
    error: DataError | None = None


class Worker:
    """A translator in a process of its own.

    Args:
        arguments: the parsed flags of the run and of the search.
    """

    def __init__(self, arguments: argparse.Namespace):
        self.arguments, self.translator = arguments, None

    def translate(self, texts: list[str]) -> list[tuple]:
        """For each text its translation, and `problem_of` it."""
        # Not in `__init__`: Ray would hide the errors of a run in its own.
        self.translator = self.translator or common.load(self.arguments)
        limit = self.translator.codec.max_source_length
        translations = self.translator.translate(texts, return_scores=True)
        return [(translation.text, problem_of(translation, limit)) for translation in translations]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    flag = parser.add_argument
    common.add_search_flags(parser)
    help = "text, one sentence per line, plain or .gz, or .parquet"
    flag("--input", nargs="+", required=True, metavar="FILE", help=help)
    help = "folder for the translations; a file that is there already is not translated again"
    flag("--output", required=True, metavar="DIR", help=help)
    help = "processes, each with its own copy of the model (default: one for each machine, which uses all its cores)"
    flag("--workers", type=common.positive, metavar="N", help=help)
    flag("--column", default="text", metavar="NAME", help="column of .parquet files to translate (default: text)")


def hint(arguments: argparse.Namespace) -> str:
    return f"The files in {arguments.output} are complete. The same command translates the others."


def run(arguments: argparse.Namespace) -> int:
    from tqdm import tqdm

    Run(arguments.run).check_trained()
    outputs = _outputs(arguments)
    common.check_outputs(outputs.values(), arguments.input, [arguments.run])
    for path in [path for path, output in outputs.items() if os.path.exists(output)]:
        print(f"{outputs.pop(path)} is there already.")
    os.makedirs(arguments.output, exist_ok=True)
    failed = False
    with locked(arguments.output), _workers(arguments) as workers, tqdm(unit=" lines", disable=None) as progress:
        results = _in_order(workers, (chunk for path in outputs for chunk in _chunks(path, arguments.column)))
        for path, results_of_file in itertools.groupby(results, key=lambda result: result[0].file):
            problems, count = Problems(path), 0
            try:
                with _writing(outputs[path], path.endswith(PARQUET)) as write:
                    for chunk, translations in results_of_file:
                        if chunk.error:
                            raise chunk.error
                        write(chunk, [text for text, _ in translations])
                        for line, (_, problem) in zip(chunk.lines, translations, strict=True):
                            count += 1
                            if line.problem or problem:
                                problems.add(count, *(problem or (line.problem, EMPTY_LINE)))
                        progress.update(len(chunk.lines))
            except DataError as error:
                print(f"{error} Nothing of this file is written.", file=sys.stderr)
                failed = True
            failed |= problems.summary()
    return int(failed)


def _outputs(arguments):
    """The paths of the translations, by the paths of the texts."""
    outputs = {path: os.path.join(arguments.output, Path(path).name.removesuffix(".gz")) for path in arguments.input}
    twice = [name for name, count in collections.Counter(outputs.values()).items() if count > 1]
    if twice:
        raise ValueError(
            f"Translations get the names of their files, which must differ. Received twice: {Path(twice[0]).name}."
        )
    for path in outputs:
        with open_input(path):
            pass
    needed = ["ray", *(["pyarrow"] if any(path.endswith(PARQUET) for path in outputs) else [])]
    if missing := [name for name in needed if not importlib.util.find_spec(name)]:
        raise ImportError(f"{' and '.join(missing)} must be installed. Try: pip install {' '.join(missing)}")
    return outputs


@contextlib.contextmanager
def _workers(arguments):
    """Ray's actors."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    local = {}
    # Whoever can connect to Ray can run code in its processes. So only this machine can, and only with the token.
    if not os.environ.get("RAY_ADDRESS"):
        os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
        os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # Else Ray replaces 127.0.0.1.
        local = {"address": "local", "_node_ip_address": "127.0.0.1", "object_store_memory": MEMORY}
    import ray

    on_sigterm = signal.getsignal(signal.SIGTERM)
    ray.init(log_to_driver=False, logging_level="error", include_dashboard=False, **local)
    signal.signal(signal.SIGTERM, on_sigterm)  # Ray's own would end with another status, and with no message.
    try:
        machines = [node for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU")]
        count, most = arguments.workers or len(machines), int(ray.cluster_resources()["CPU"])
        if count > most:
            raise ValueError(f"--workers must be at most {most}, the number of cores. Received: {count}.")
        actor = ray.remote(num_cpus=1, max_restarts=RESTARTS, max_task_retries=RETRIES, scheduling_strategy="SPREAD")
        yield [actor(Worker).remote(arguments) for _ in range(count)]
    finally:
        ray.shutdown()


def _in_order(workers, chunks):
    """Yields each chunk with what `Worker.translate` returns for it, in their order; few are in memory."""
    import ray
    from ray.exceptions import RayError, RayTaskError

    waiting, turns = collections.deque(), itertools.cycle(workers)

    def finished():
        chunk, reference = waiting.popleft()
        try:
            return chunk, ray.get(reference)
        except RayTaskError as error:
            raise error.cause from error
        except RayError as error:
            what = f"A part of {chunk.file} ended {RETRIES + 1} processes, one after the other: {type(error).__name__}."
            return Chunk(chunk.file, [], error=DataError(what)), []

    # All load the model now, so that an error of the run comes before anything is written.
    loading = [worker.translate.remote([]) for worker in workers]
    ready, missing = ray.wait(loading, num_returns=len(loading), timeout=PATIENCE)
    if missing:
        print(f"{len(ready)} of {len(loading)} processes are ready; waiting for the others.", file=sys.stderr)
    waiting.extend((Chunk("the run", []), reference) for reference in loading)
    for chunk, _ in [finished() for _ in loading]:
        if chunk.error:
            raise chunk.error
    for chunk in chunks:
        waiting.append((chunk, next(turns).translate.remote([line.text for line in chunk.lines])))
        if len(waiting) == WAITING * len(workers):
            yield finished()
    while waiting:
        yield finished()


def _chunks(path, column):
    """Yields the `Chunk`s of a file; the last one has no lines."""
    try:
        if path.endswith(PARQUET):
            yield from _tables(path, column)
        else:
            with open_input(path) as file:
                for batch in lines(file, path):
                    yield Chunk(path, batch)
        yield Chunk(path, [])
    except DataError as error:
        yield Chunk(path, [], error=error)


def _tables(path, column):
    import pyarrow
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path) as file:
            schema = file.schema_arrow
            if column not in schema.names or TRANSLATION in schema.names:
                raise DataError(
                    f"{path} must have the column of --column, and no column `{TRANSLATION}`. Received: "
                    f"--column {column}, and the columns {', '.join(schema.names)}."
                )
            for rows in file.iter_batches(ROWS):
                texts = rows.column(column).to_pylist()
                if not all(isinstance(text, str | None) for text in texts):
                    raise DataError(f"{path}: the column {column} must have strings, not {schema.field(column).type}.")
                yield Chunk(path, [Line(text or "") for text in texts], rows)
            yield Chunk(path, [], pyarrow.RecordBatch.from_pylist([], schema))  # An empty file has columns, too.
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise DataError(f"Cannot read {path}: {error}.") from error


@contextlib.contextmanager
def _writing(path, is_parquet):
    """A function that writes a `Chunk` and its translations to a file, which appears when it is complete."""
    if not is_parquet:
        with output_file(path) as file:
            yield lambda chunk, translations: file.writelines(f"{text}\n" for text in translations)
        return
    import pyarrow
    from pyarrow import parquet

    with output_path(Path(path)) as temporary, contextlib.ExitStack() as stack:
        writer = None

        def write(chunk, translations):
            nonlocal writer
            if chunk.rows is not None:
                rows = chunk.rows.append_column(TRANSLATION, pyarrow.array(translations, pyarrow.string()))
                writer = writer or stack.enter_context(parquet.ParquetWriter(temporary, rows.schema))
                writer.write_batch(rows)

        yield write
