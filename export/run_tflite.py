"""Translates with an exported `translator.tflite`, without TensorFlow and Keras. An example to copy into applications.

    python -m keras_transformer.export.run_tflite FOLDER/translator.tflite "a sentence"

Needs `ai-edge-litert`, `numpy` and `sentencepiece`, and `translator.json` and the tokenizer in the folder of the file.
Whole texts also need `regex` and keras_transformer/text/sentences.py, and models with placeholders (`num_placeholders`
in `translator.json`) keras_transformer/text/placeholders.py: copy them, too, beside this file.
"""

import argparse
import importlib.util
import json
import sys
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

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
        path: `translator.tflite`, with `translator.json` and the tokenizers beside it.
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
        self._folder, self._tokenizers, languages = path.parent, None, self.settings["languages"]
        language = target_language or self.settings["target_language"]
        if language is not None and language not in languages:
            known = ", ".join(languages) or "one, without a tag"
            raise ValueError(f"The model translates into: {known}. Received: target_language={language!r}.")
        self._tag = [] if language is None else [languages[language]]

    def tokenizers(self) -> tuple[Any, Any]:
        """SentencePiece processors of the source and of the target."""
        if self._tokenizers is None:
            import sentencepiece

            # One for a shared vocabulary, or source and target.
            files = [self._folder / name for name in self.settings["tokenizers"]]
            if not all(file.suffix == ".spm" and file.is_file() for file in files):
                raise FileNotFoundError(f"{self._folder} has no SentencePiece tokenizer. Use `translate_ids`.")
            try:
                processors = [sentencepiece.SentencePieceProcessor(model_file=str(file)) for file in files]
            except (RuntimeError, OSError) as error:
                names = " and ".join(map(str, files))
                raise ValueError(f"{names} cannot be used as a tokenizer: {_one_line(error)}") from error
            self._tokenizers = processors[0], processors[-1]
        return self._tokenizers

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
        ids, limit = self.tokenizers()[0].encode(text), self.settings["source_length"] - 1
        ids = self._tag + ids if ids else []
        first = self.settings["end_token_id"] + 1
        parts = [part if first + i in ids[:limit] else "" for i, part in enumerate(parts)]  # The rest is cut.
        return Sentence(ids[:limit], text, parts, unchanged, len(ids) > limit and unchanged is None)

    def decode(self, token_ids: Iterable[int], sentence: Sentence) -> str:
        """The translation of a `Sentence` from its token ids."""
        special = {self.settings[f"{name}_token_id"] for name in ("pad", "start", "end")}
        text = self.tokenizers()[1].decode([i for i in token_ids if i not in special])
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
            rows = [self.tokenizers()[0].encode(self.encode(text).text) for text in plain]
            tag = bool(self.settings["languages"])  # Also with a tag before them.
            return [len(ids) + tag < self.settings["source_length"] for ids in rows]

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
        with self._lock:
            outputs = self._runners["translate_beam" if beam else "translate"](token_ids=padded)
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


def check_litert() -> None:
    """Raises an `ImportError` if LiteRT is not installed."""
    if not importlib.util.find_spec("ai_edge_litert"):
        raise ImportError("LiteRT is not installed. Try: pip install ai-edge-litert")


def _beside(name):
    """A module of the package, or the copy of it beside this file."""
    try:
        return importlib.import_module(f"keras_transformer.text.{name}")
    except ImportError:  # This file was copied.
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

    def names(x):
        return isinstance(x, list) and len(x) in (1, 2) and all(isinstance(y, str) and Path(y).name == y for y in x)

    for name in ("source_length", "target_length"):
        need(name, lambda x: type(x) is int and x > 0, "a whole number from 1 on")
    for name in ("pad_token_id", "start_token_id", "end_token_id"):
        need(name, lambda x: type(x) is int and x >= 0, "a whole number from 0 on")
    need("no_hypothesis_score", lambda x: type(x) is float, "a number")
    need("tokenizers", names, "the names of one or two files beside it")
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
    flag("file", help="translator.tflite, with translator.json and the tokenizer beside it")
    flag("text", nargs="+", help="sentences")
    flag("--greedy", action="store_true", help="greedy search instead of beam search")
    flag("--nbest", action="store_true", help="all hypotheses, with their scores")
    help = "each text is a whole text: split it into sentences, keep line breaks"
    flag("--document", action="store_true", help=help)
    flag("--target-language", metavar="CODE", help="for a model of several directions, such as de")
    flag("--num-threads", type=int, default=1, metavar="N", help="(default: 1)")
    arguments = parser.parse_args(argv)
    try:
        translator = TFLiteTranslator(arguments.file, arguments.num_threads, arguments.target_language)
        for text in arguments.text:
            if arguments.document:
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
