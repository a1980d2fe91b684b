"""How many small mistakes the unit tests catch, by mutation testing: `python tests/mutants.py [MODULE ...]`.

Needs `pip install cosmic-ray`, whose operators make the mistakes: a comparison turned around, a number that is one too
high, a condition negated. Each of the modules where a mistake is silent gets 40, at places drawn with a fixed seed. A
mutant is caught if the module's unit tests fail or do not end. What was not caught is printed as a difference, and at
the end a table. Modules are independent, so several of these commands may run side by side.

Each mutant is tested in a fork of one process that has imported TensorFlow and Keras, but nothing of the package. That
takes a third of the time of new processes.
"""

import argparse
import ast
import difflib
import importlib
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
# Module -> the unit tests that are run for it, in this order: test_masks.py, test_masks_*.py, ...
MODULES = {
    "masks": "masks attention",
    "attention": "attention blocks",
    "caches": "caches attention",
    "embeddings": "embeddings",
    "losses": "losses students",
    "search": "search decoding",
    "decoder": "decoding",
    "greedy": "decoding",
    "beam": "decoding",
    "next_token": "decoding",
    "encoding": "data cleaning",
    "batches": "data placeholders",
    "checkpoints": "checkpoints training",
    "placeholders": "placeholders",
    "sentences": "sentences",
}


def mutants(source, count, seed=0):
    """`count` variants of Python source, each with one mistake, at different places; with the line of each."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator, operator_names

    classes = [get_operator(name) for name in operator_names()]
    operators = [kind() for kind in classes if not kind.arguments()]
    places, annotated = {}, annotations(source)
    for operator in operators:
        occurrence = 0
        for node in ast_nodes(get_ast(source)):
            for start, _ in operator.mutation_positions(node):
                if start not in annotated:
                    places.setdefault(start, []).append((operator, occurrence))
                occurrence += 1
    draw = random.Random(seed)
    chosen = draw.sample(sorted(places), min(count, len(places)))
    for place in chosen:
        operator, occurrence = draw.choice(places[place])
        yield place[0], mutate_code(source, operator, occurrence)


def annotations(source):
    """Places inside annotations, whose `|` are no calculations."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        for part in (getattr(node, "annotation", None), getattr(node, "returns", None)):
            for inner in ast.walk(part) if part else ():
                if hasattr(inner, "lineno"):
                    found |= {(inner.lineno, column) for column in range(inner.col_offset, inner.end_col_offset)}
    return found


def passes(folder, files, seconds, log):
    """Whether tests in a copy of the repository pass, and the seconds that they took."""
    begun = time.monotonic()
    child = os.fork()
    if not child:
        os.setsid()
        code = 9
        try:
            output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(output, 1)
            os.dup2(output, 2)
            os.chdir(folder)
            sys.path.insert(0, str(folder))
            import pytest

            flags = "-x -p no:cacheprovider -p no:xdist -o addopts=--import-mode=importlib --tb=line"
            code = pytest.main([*flags.split(), *map(str, files)])
        finally:
            os._exit(int(code))
    while time.monotonic() < begun + seconds:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status) == 0, time.monotonic() - begun
        time.sleep(0.05)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False, seconds


def main(names, count):
    for name in ("tensorflow", "keras", "keras_nlp", "tensorflow_text", "sentencepiece", "regex", "pytest"):
        importlib.import_module(name)
    sys.dont_write_bytecode = True  # Two versions of a file within a second would be one to Python's cache.
    table = []
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch, "copy")
        left_out = shutil.ignore_patterns(".git", "runs", "__pycache__", ".pytest_cache", "node_modules")
        shutil.copytree(ROOT, copy, ignore=left_out)
        for name in names:
            (path,) = [p for p in (copy / "keras_transformer").rglob(f"{name}.py")]
            stems = [f"test_{stem}{more}.py" for stem in MODULES[name].split() for more in ("", "_*")]
            tests = [p for stem in stems for p in sorted((copy / "tests" / "unit").rglob(stem))]
            source = path.read_text(encoding="utf-8")
            good, seconds = passes(copy, tests, 3600, copy / "log")
            if not good:
                sys.exit(f"The tests of {name} fail without a mutant:\n{(copy / 'log').read_text()[-3000:]}")
            print(f"{name}: {len(tests)} files, {seconds:.0f} s", flush=True)
            caught = tried = 0
            for line, mutant in mutants(source, count):
                path.write_text(mutant, encoding="utf-8")
                survived, spent = passes(copy, tests, 2 * seconds + 20, copy / "log")
                path.write_text(source, encoding="utf-8")
                tried, caught = tried + 1, caught + (not survived)
                print(f"  {name}:{line} {'NOT CAUGHT' if survived else 'caught'} ({spent:.0f} s)", flush=True)
                if survived:
                    lines = difflib.unified_diff(source.split("\n"), mutant.split("\n"), lineterm="", n=0)
                    print("\n".join("    " + text for text in list(lines)[2:]), flush=True)
            table.append(f"{name:<14}{caught:>4} of {tried}  {100 * caught / tried:>4.0f} %")
            print(table[-1], flush=True)
    print("\n".join(["", "Caught:", *table]))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("modules", nargs="*", default=list(MODULES), metavar="MODULE", help=", ".join(MODULES))
    parser.add_argument("--count", type=int, default=40, help="mutants of each module (default: 40)")
    arguments = parser.parse_args()
    unknown = set(arguments.modules) - set(MODULES)
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}; known are {', '.join(MODULES)}")
    main(arguments.modules, arguments.count)
