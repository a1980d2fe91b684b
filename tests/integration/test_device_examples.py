"""The programs of `examples/device` translate as Python does, without Python in their process."""

import itertools
import json
import shutil
import subprocess
import sys
from pathlib import Path

import ai_edge_litert
import pytest
from ai_edge_litert.interpreter import Interpreter
from texts import LANGUAGES, PARTS, SENTENCES, random_parts, random_sentences

from keras_transformer.export.verify import tflite_reference
from keras_transformer.text import placeholders, sentences

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
    (folder / "WholeTexts.java").write_text(WHOLE_TEXTS, encoding="utf-8")
    sources = [EXAMPLES / "Translate.java", EXAMPLES / "Texts.java", folder / "WholeTexts.java"]
    subprocess.run(["javac", "-Xlint:all", "-Werror", "-encoding", "UTF-8", "-d", folder, *sources], check=True)
    sources = [EXAMPLES / "translate.c", EXAMPLES / "translate_jni.c"]
    library = ["-shared", "-fPIC", "-DTRANSLATE_LIBRARY", f"-I{home}", f"-I{home / 'linux'}", *sources]
    subprocess.run([compiler, *WARNINGS, *library, "-o", folder / "libtranslate.so", "-ldl"], check=True)
    return ["java", f"-Djava.library.path={folder}", "-cp", folder, "Translate"]


# Reads the settings and texts from a file, and writes their translations to another one. Without a model, texts of more
# than nine characters are too long. The settings are written as a tree: "S text", "N number", "L size", "M size".
WHOLE_TEXTS = r"""
import java.nio.file.*;
import java.util.*;

class WholeTexts {
    static Object value(Iterator<String> lines) {
        String line = lines.next(), rest = line.substring(1);
        if (line.charAt(0) == 'S') return rest.translateEscapes();
        if (line.charAt(0) == 'N') return Double.valueOf(rest);
        List<Object> list = new ArrayList<>();
        for (int i = 0; i < Integer.parseInt(rest); i++) list.add(value(lines));
        if (line.charAt(0) == 'L') return list;
        Map<Object, Object> map = new HashMap<>();
        for (int i = 0; i < list.size(); i += 2) map.put(list.get(i), list.get(i + 1));
        return map;
    }

    public static void main(String[] paths) throws Exception {
        Iterator<String> lines = Files.readAllLines(Path.of(paths[0])).iterator();
        StringBuilder found = new StringBuilder();
        Translate model = paths.length > 2 ? new Translate(paths[2], paths[3]) : null;
        while (lines.hasNext()) {
            Texts texts = new Texts((Map<?, ?>) value(lines));
            for (Object text : (List<?>) value(lines)) {
                String translation = texts.translate((String) text, sentence -> {
                    if (model != null) return model.translate(sentence);
                    return sentence.codePointCount(0, sentence.length()) > 9 ? null : "<" + sentence + ">.";
                });
                found.append(translation).append('\u0007');
            }
        }
        Files.writeString(Path.of(paths[1]), found);
    }
}
"""


def tree(value):
    """Lines of a value for `WholeTexts`, without line ends and backslashes in them."""
    if isinstance(value, dict):
        yield f"M{2 * len(value)}"
        for item in itertools.chain.from_iterable(value.items()):
            yield from tree(item)
    elif isinstance(value, list | tuple):
        yield f"L{len(value)}"
        for item in value:
            yield from tree(item)
    elif isinstance(value, str):
        yield "S" + "".join(x if x.isprintable() and x != "\\" else escaped(x) for x in value)
    else:
        yield f"N{value}"


def escaped(character):
    """An escape of Java's: octal, or the character itself."""
    return f"\\{ord(character):03o}" if ord(character) < 256 else character


def run(command, model, *texts):
    return subprocess.run([*command, LIBRARY, model, *texts], capture_output=True, encoding="utf-8")


@pytest.mark.parametrize("language", ["in_c", "in_java"])
def test_the_program_translates_as_python_does(request, golden, tflite, language):
    texts = [*golden.texts, "", "  ", "Ünïcödé ▁ ½"]
    done = run(request.getfixturevalue(language), tflite / "float32" / "translator.tflite", *texts)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n") == [*golden.translator.translate(texts), ""]


def whole_texts(command, folder, rows, *model):
    """The translations of texts by Texts.java; `rows` are pairs of settings and texts."""
    lines = [line for row in rows for value in row for line in tree(value)]
    (folder / "texts").write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    subprocess.run([*command[:-1], "WholeTexts", folder / "texts", folder / "found", *model], check=True)
    return (folder / "found").read_bytes().decode().split("\x07")[:-1]


def test_whole_texts_in_java_are_cut_and_joined_as_in_python(in_java, tmp_path):
    rows, wanted = [], []
    for language in [*LANGUAGES, "en"]:
        texts = random_sentences(200, seed=7) + [x["text"] for x in SENTENCES if x.get("language", "") == language]
        texts += [text for text, _, _ in PARTS] + random_parts(300, seed=7)
        for count in (0, 8):
            settings = {
                "sentences": sentences.specification(language),
                "placeholders": placeholders.specification(),
                "num_placeholders": count,
            }
            rows.append((settings, texts))
            wanted += [with_python(text, language, count) for text in texts]
    assert whole_texts(in_java, tmp_path, rows) == wanted


def with_python(text, language, count):
    """What `WholeTexts` makes of a text without a model."""

    def protected(plain):
        found = placeholders.protect(plain, count)
        return found, bool(found.parts) and not placeholders.has_words(found.text)

    def fits(plains):
        return [unchanged or len(found.text) <= 9 for found, unchanged in map(protected, plains)]

    parts = sentences.fitted(sentences.split(text, language), fits)
    for i in range(1, len(parts), 2):
        found, unchanged = protected(sentences.plain(parts[i]))
        translation = found.text if unchanged else f"<{found.text}>."
        parts[i] = sentences.without_marks(placeholders.restored(translation, found.parts, source=found.text))
    return sentences.joined(parts)


def test_whole_texts_in_java_are_translated_as_in_python(in_java, golden, tflite, tmp_path):
    settings = json.loads((tflite / "float32" / "translator.json").read_text(encoding="utf-8"))
    texts = [
        f"- {golden.texts[0]} {golden.texts[1]}\n\n{golden.texts[2]}",
        "{x} 5 kg",
        f"{{x}}! {golden.texts[3]}",
    ]
    texts += [" ".join(text.rstrip(".") for text in golden.texts)]
    reference = tflite_reference(golden.translator, settings)
    settings = {name: settings[name] for name in ("sentences", "placeholders", "num_placeholders")}
    found = whole_texts(in_java, tmp_path, [(settings, texts)], LIBRARY, tflite / "float32" / "translator.tflite")
    assert found == [reference.translate_text(text) for text in texts]


def test_the_program_says_what_is_wrong(in_c, tflite, tmp_path):
    model = tflite / "float32" / "translator.tflite"
    done = run(in_c, model, "a dog " * 200)
    assert done.returncode == 0 and "text 1 is too long: only its beginning was translated" in done.stderr
    done = run(in_c, tmp_path / "missing", "a")
    assert done.returncode == 1 and done.stderr.splitlines()[-1].startswith("error: ")
    assert subprocess.run([*in_c, "missing.so", model, "a"], capture_output=True).returncode == 1


def test_the_program_in_java_says_what_is_too_long(in_java, tflite):
    done = run(in_java, tflite / "float32" / "translator.tflite", "a dog", "a dog " * 200)
    assert done.returncode == 1 and "text 2 is too long" in done.stderr


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
