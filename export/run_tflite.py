"""Translates with an exported `translator.tflite`, without TensorFlow and Keras. An example to copy into applications.

    python -m keras_transformer.export.run_tflite FOLDER/translator.tflite "a sentence"

Needs `ai-edge-litert` and `numpy`, and `translator.json` in the folder of the file. Models with placeholders
(`num_placeholders` in `translator.json`) also need `regex` and keras_transformer/text/placeholders.py, and whole texts
`regex` and keras_transformer/text/sentences.py: copy them, too, beside this file.
"""

import argparse
import importlib.util
import json
import sys
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np


class Sentence(NamedTuple):
    """A text as the model gets it."""

    ids: list[int]  # Cut, without the end token; the tag of the target language first, if there are tags.
    text: str  # With placeholders.
    parts: list[str]  # What the placeholders stand for, "" for those that were cut.
    unchanged: str | None  # The text, if there is nothing in it to translate.
    truncated: bool  # Whether the text had more tokens, and only its beginning is translated.


class TFLiteTranslator:
    """A translator in one file. Threads can share it; they take turns.

    Args:
        path: `translator.tflite`, with `translator.json` beside it.
        num_threads: Defaults to 1; one sentence is too little work for several threads. A server gets more from one
            translator for each of its own threads.
        target_language: of a model of several directions, one of `languages` in `translator.json`. Defaults to None:
            the one that was chosen at the export.

    Raises:
        ImportError: LiteRT is not installed.
        FileNotFoundError: a file is missing.
        ValueError: a file is damaged, was not written by the export, or belongs to another model; or the model does
            not have the target language.
    """

    def __init__(self, path: Path | str, num_threads: int = 1, target_language: str | None = None):
        check_litert()
        from ai_edge_litert.interpreter import Interpreter

        path = Path(path)
        file = path.with_name("translator.json")
        if not path.is_file() or not file.is_file():
            raise FileNotFoundError(f"{path} must be an exported translator.tflite, with translator.json beside it.")
        self.settings = _settings(file)
        try:
            self.interpreter = Interpreter(str(path), num_threads=num_threads)
            names = self.interpreter.get_signature_list()
            self._runners = {name: self.interpreter.get_signature_runner(name) for name in names}
            self._lock = threading.Lock()  # Two threads in one interpreter write into the same memory and crash.
            shape = tuple(self._runners["translate"].get_input_details()["token_ids"]["shape"])
        except (ValueError, RuntimeError, KeyError) as error:
            raise ValueError(f"{path} cannot be used as an exported translator: {_one_line(error)}") from error
        if shape != (1, self.settings["source_length"]):
            raise ValueError(
                f"{file} belongs to another model: source_length must be the length that {path.name} takes. "
                f"Received: {self.settings['source_length']}, and a model that takes {list(map(int, shape))}."
            )
        self._path, languages = path, self.settings["languages"]
        language = target_language or self.settings["target_language"]
        if language is not None and language not in languages:
            known = ", ".join(languages) or "one, without a tag"
            raise ValueError(f"The model translates into: {known}. Received: target_language={language!r}.")
        self._tag = [] if language is None else [languages[language]]

    def run(self, signature: str, **inputs: np.ndarray) -> dict[str, np.ndarray]:
        """The outputs of a signature, arrays by name.

        Raises:
            ValueError: the file does not have the signature.
        """
        if signature not in self._runners:
            raise ValueError(
                f"{self._path} must have the signature {signature!r}; those for texts need SentencePiece tokenizers "
                f"and a new export. Received: {', '.join(self._runners)}. Export it, or use `translate_ids`."
            )
        with self._lock:
            return self._runners[signature](**inputs)

    def padded(self, text: bytes) -> np.ndarray:
        """A text as the signatures take it, uint8 (1, N), cut or padded with zeros."""
        room = np.zeros((1, self.settings["source_bytes"]), np.uint8)
        text = text[: room.size]
        room[0, : len(text)] = np.frombuffer(text, np.uint8)
        return room

    def _tokenized(self, text):
        """The token ids of a text, at most source_length - 1, and whether it has more."""
        found = self.run("tokenize", text=self.padded(text.encode()))
        ids = found["token_ids"][0].tolist()
        return ids[: ids.index(self.settings["end_token_id"])], bool(found["truncated"][0])

    def encode(self, text: str) -> Sentence:
        """The `Sentence` of a text.

        Raises:
            ValueError: the text has half of a surrogate pair.
        """
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise ValueError(f"The text must be Unicode, without lone surrogates. Received: {text[:40]!r}.") from error
        parts, unchanged, count = (), None, self.settings.get("num_placeholders", 0)
        if count:
            placeholders = _beside("placeholders")
            text, parts = placeholders.protect(text, count)
            if parts and not placeholders.has_words(text):
                unchanged = placeholders.restored(text, parts)
        (ids, truncated), limit = self._tokenized(text), self.settings["source_length"] - 1
        ids = self._tag + ids if ids else []
        first, truncated = self.settings["end_token_id"] + 1, truncated or len(ids) > limit
        parts = [part if first + i in ids[:limit] else "" for i, part in enumerate(parts)]  # The rest is cut.
        return Sentence(ids[:limit], text, parts, unchanged, truncated and unchanged is None)

    def decode(self, token_ids: Iterable[int], sentence: Sentence) -> str:
        """The translation of a `Sentence` from its token ids."""
        padded = np.full((1, self.settings["target_length"]), self.settings["pad_token_id"], np.int32)
        token_ids = list(token_ids)[: padded.size]
        padded[0, : len(token_ids)] = token_ids
        text = unpadded(self.run("detokenize", translation_ids=padded)["text"])
        parts = sentence.parts
        return _beside("placeholders").restored(text, parts, source=sentence.text) if parts else text

    def translate(self, text: str, beam: bool = True) -> list[tuple[str, float]]:
        """Pairs (translation, score) of one text, best first; only one pair with greedy search."""
        sentence = self.encode(text)
        if sentence.unchanged is not None:
            return [(sentence.unchanged, 0.0)]
        return [(self.decode(row, sentence), score) for row, score in self.translate_ids(sentence.ids, beam)]

    def translate_document(self, text: str, beam: bool = True) -> str:
        """The translation of a whole text, sentence by sentence; line breaks and bullets are kept."""
        sentences = _beside("sentences")

        def fits(plain):
            rows = [self._tokenized(self.encode(text).text) for text in plain]
            tag = bool(self.settings["languages"])  # Also with a tag before them.
            return [not more and len(ids) + tag < self.settings["source_length"] for ids, more in rows]

        parts = sentences.fitted(sentences.split(text, self.settings["source_language"]), fits)
        for i in range(1, len(parts), 2):
            parts[i] = sentences.without_marks(self.translate(sentences.plain(parts[i]), beam)[0][0])
        return sentences.joined(parts)

    def translate_ids(self, token_ids: Iterable[int], beam: bool = True) -> list[tuple[list[int], float]]:
        """Pairs (token ids, score) of the token ids of one text, best first.

        Raises:
            ValueError: the model finds no translation at all, as one with damaged weights does.
        """
        length, end, padding = (self.settings[name] for name in ("source_length", "end_token_id", "pad_token_id"))
        token_ids = [i for i in token_ids if i != end][: length - 1]
        padded = np.full((1, length), padding, np.int32)
        padded[0, : len(token_ids) + 1] = [*token_ids, end]
        beam = beam and "translate_beam" in self._runners
        outputs = self.run("translate_beam" if beam else "translate", token_ids=padded)
        if beam:
            hypotheses, scores = outputs["hypothesis_ids"][0].tolist(), outputs["scores"][0].tolist()
        else:
            hypotheses, scores = outputs["translation_ids"].tolist(), outputs["score"].tolist()
        lowest, rows = self.settings["no_hypothesis_score"], zip(hypotheses, scores, strict=True)
        pairs = [([i for i in row if i != padding], score) for row, score in rows if score > lowest]
        if not pairs:
            raise ValueError(
                f"A model gives every text a translation above {lowest:g}; the weights of this one may be damaged. "
                f"Received: {', '.join(map(str, scores))}. Export it again."
            )
        return pairs


def unpadded(text: np.ndarray) -> str:
    """The string in an array of bytes that ends with zeros."""
    return bytes(text).rstrip(b"\0").decode(errors="replace")


def check_litert() -> None:
    """Raises an `ImportError` if LiteRT is not installed."""
    if not importlib.util.find_spec("ai_edge_litert"):
        raise ImportError("LiteRT is not installed. Try: pip install ai-edge-litert")


def _beside(name):
    """A module of the package, or the copy of it beside this file."""
    try:
        return importlib.import_module(f"keras_transformer.text.{name}")
    except ImportError:  # This file was copied.
        if not importlib.util.find_spec(name):
            raise ImportError(
                f"This model, or --format document, needs keras_transformer/text/{name}.py. "
                f"Copy it beside {Path(__file__).name}."
            ) from None
        return importlib.import_module(name)


def _settings(file):
    """The content of `translator.json`, after a check that the export wrote it."""
    try:
        settings = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{file} is damaged: it must be JSON. {_one_line(error)}.") from error
    settings = settings if isinstance(settings, dict) else {}

    def need(name, right, rule):
        if not right(settings.get(name)):
            received = repr(settings.get(name))[:80]
            raise ValueError(f"{file} is not what the export writes: {name} must be {rule}. Received: {received}.")

    settings.setdefault("source_bytes", 1)  # Earlier exports take no texts.
    for name in ("source_length", "target_length", "source_bytes"):
        need(name, lambda x: type(x) is int and x > 0, "a whole number from 1 on")
    for name in ("pad_token_id", "start_token_id", "end_token_id"):
        need(name, lambda x: type(x) is int and x >= 0, "a whole number from 0 on")
    need("no_hypothesis_score", lambda x: type(x) is float, "a number")
    for name in ("source_language", "target_language"):
        need(name, lambda x: x is None or isinstance(x, str), "a language code or null")
    need("languages", lambda x: isinstance(x, dict) and all(type(y) is int for y in x.values()), "numbers by name")
    return settings


def _one_line(error):
    return " ".join(str(error).split()).rstrip(".")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m keras_transformer.export.run_tflite", description="Translate with a TFLite file."
    )
    flag = parser.add_argument
    flag("file", help="translator.tflite, with translator.json beside it")
    flag("text", nargs="+", help="sentences")
    flag("--greedy", action="store_true", help="greedy search instead of beam search")
    flag("--nbest", action="store_true", help="all hypotheses, with their scores")
    help = "what each text is: a sentence (default), or a document, whose line breaks stay"
    flag("--format", choices=("sentences", "document"), default="sentences", help=help)
    flag("--target-language", metavar="CODE", help="for a model of several directions, such as de")
    flag("--num-threads", type=int, default=1, metavar="N", help="(default: 1)")
    arguments = parser.parse_args(argv)
    try:
        translator = TFLiteTranslator(arguments.file, arguments.num_threads, arguments.target_language)
        for text in arguments.text:
            if arguments.format == "document":
                print(translator.translate_document(text, beam=not arguments.greedy))
                continue
            hypotheses = translator.translate(text, beam=not arguments.greedy)
            for translation, score in hypotheses if arguments.nbest else hypotheses[:1]:
                print(f"{score:.4f}\t{translation}" if arguments.nbest else translation)
            if translator.encode(text).truncated:
                print(f"{text[:40]!r}... is too long: only its beginning was translated.", file=sys.stderr)
    except (ImportError, FileNotFoundError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
