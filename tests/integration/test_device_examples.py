"""The programs of `examples/device` translate as Python does, without Python in their process."""

import shutil
import subprocess
import sys
from pathlib import Path

import ai_edge_litert
import pytest
from ai_edge_litert.interpreter import Interpreter

EXAMPLES = Path(__file__).parents[2] / "examples" / "device"
LIBRARY = Path(ai_edge_litert.__file__).with_name("libLiteRt.so")
WARNINGS = ("-Wall", "-Wextra", "-Werror", "-O2")


@pytest.fixture(scope="module")
def compiler():
    if not shutil.which("cc") or not LIBRARY.is_file():
        pytest.skip("no C compiler, or no libLiteRt.so")
    return "cc"


@pytest.fixture(scope="module")
def in_c(compiler, tmp_path_factory):
    """The command line of the program in C."""
    program = tmp_path_factory.mktemp("c") / "translate"
    subprocess.run([compiler, *WARNINGS, EXAMPLES / "translate.c", "-o", program, "-ldl"], check=True)
    return [program]


@pytest.fixture(scope="module")
def in_java(compiler, tmp_path_factory):
    """The command line of the program in Java."""
    if not shutil.which("javac"):
        pytest.skip("no JDK")
    folder, home = tmp_path_factory.mktemp("java"), Path(shutil.which("javac")).resolve().parents[1] / "include"
    subprocess.run(["javac", "-d", folder, EXAMPLES / "Translate.java"], check=True)
    sources = [EXAMPLES / "translate.c", EXAMPLES / "translate_jni.c"]
    library = ["-shared", "-fPIC", "-DTRANSLATE_LIBRARY", f"-I{home}", f"-I{home / 'linux'}", *sources]
    subprocess.run([compiler, *WARNINGS, *library, "-o", folder / "libtranslate.so", "-ldl"], check=True)
    return ["java", f"-Djava.library.path={folder}", "-cp", folder, "Translate"]


def run(command, model, *texts):
    return subprocess.run([*command, LIBRARY, model, *texts], capture_output=True, encoding="utf-8")


@pytest.mark.parametrize("language", ["in_c", "in_java"])
def test_the_program_translates_as_python_does(request, golden, tflite, language):
    texts = [*golden.texts, "", "  ", "Ünïcödé ▁ ½"]
    done = run(request.getfixturevalue(language), tflite / "float32" / "translator.tflite", *texts)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n") == [*golden.translator.translate(texts), ""]


def test_the_program_says_what_is_wrong(in_c, tflite, tmp_path):
    model = tflite / "float32" / "translator.tflite"
    done = run(in_c, model, "a dog " * 200)
    assert done.returncode == 0 and "text 1 is too long: only its beginning was translated" in done.stderr
    done = run(in_c, tmp_path / "missing", "a")
    assert done.returncode == 1 and done.stderr.splitlines()[-1].startswith("error: ")
    assert subprocess.run([*in_c, "missing.so", model, "a"], capture_output=True).returncode == 1


def test_the_program_needs_little_memory(golden, in_c, tflite):
    # A process of its own, because a child has at first the memory of its parent.
    code = (
        "import resource, subprocess, sys\n"
        "subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)\n"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    command = [*in_c, LIBRARY, tflite / "float32" / "translator.tflite", *golden.texts]
    done = subprocess.run([sys.executable, "-S", "-c", code, *command], capture_output=True, text=True)
    assert int(done.stdout) < 60 * 1024  # KiB


@pytest.mark.parametrize("name", ["Translator.kt", "Translator.swift", "translate.c"])
def test_an_example_uses_the_names_of_the_file(tflite, name):
    signatures = Interpreter(str(tflite / "float32" / "translator.tflite")).get_signature_list()
    source = (EXAMPLES / name).read_text(encoding="utf-8")
    assert '"translate_text"' in source and '"text"' in source
    assert signatures["translate_text"] == {"inputs": ["text"], "outputs": ["scores", "translations", "truncated"]}
    assert '"translations"' in source and '"truncated"' in source
