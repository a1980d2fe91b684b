"""Compares the answers of an exported model with those of the `Translator` that it was made from.

The inputs are random sentences of the vocabulary's pieces, which suit a model of any language, and odd inputs that
people and machines send by mistake.
"""

import contextlib
import ctypes
import itertools
import json
import sysconfig
from collections.abc import Iterator, Sequence
from operator import eq
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from keras_transformer.export import ExportError
from keras_transformer.export.run_tflite import TFLiteTranslator, unpadded
from keras_transformer.files import check_unchanged
from keras_transformer.search.decoder import NO_HYPOTHESIS
from keras_transformer.search.settings import SearchSettings
from keras_transformer.text.placeholders import protect, restored
from keras_transformer.text.sentencepiece_tokenizer import SentencePieceTokenizer
from keras_transformer.text.sentences import plain
from keras_transformer.text.special_ids import END_TOKEN_ID, PAD_TOKEN_ID
from keras_transformer.translation.batched_search import pad
from keras_transformer.translation.documents import join_text, split_text
from keras_transformer.translation.evaluation import corpus_scores
from keras_transformer.translation.results import Translation
from keras_transformer.translation.translator import Translator

# Empty, blanks, one word, emoji, right to left, combining and control characters, NUL, what placeholders stand for, not
# UTF-8, over-long.
ODD = (
    *map(str.encode, ("", "   ", "?", "a", "😀 👩‍👩‍👧", "שלום עולם", "Ünïcödé e\u0301", "a\x00b", "tab\t\r\n")),
    *("a {b} 5 kg a https://x.org/a?b a ⟦1⟧ %s".encode(), b"{a}{b}{c}{d}{e}{f}{g}{h} a {i}", b"word " * 300 + b"{x}"),
    *(b"caf\xe9 \xff\xfe", b"word " * 3000, b"x" * 20_000),
)
# The most that is searched, in source tokens times weights of the model, the shortest sources first: all sources for a
# tiny model, and ten for one of OPUS-MT's size, which with random weights would take minutes for all.
SEARCH_BUDGET, LEAST_SEARCHED = 3e9, 10
# In `export.json` of TFLite files: the share of sentences that they translated as Python at the export. Quantised files
# round differently on other processors, so later the share may be this much lower.
SHARE, MARGIN = "equal_translations", 0.1


def sentences(translator: Translator, count: int = 24, seed: int = 0) -> list[bytes]:
    """Sentences for a comparison, as bytes."""
    rng = np.random.default_rng(seed)
    tokenizer = translator.source_tokenizer
    lengths = rng.integers(1, min(translator.codec.max_source_length, 40), count)
    rows = [rng.integers(END_TOKEN_ID + 1, tokenizer.vocabulary_size, length) for length in lengths]
    hidden = tokenizer.hidden_languages.values()  # No text has these.
    rows = [[i for i in row if i not in hidden] for row in rows]
    return [*map(str.encode, tokenizer.detokenize(rows)), *ODD]


def longest_target(translator: Translator) -> int:
    """The maximum number of tokens of a target in the signature `score`, the end token included."""
    return translator.model.max_length or 2 * translator.codec.max_source_length


def verify(path: Path | str, translator: Translator) -> Iterator[tuple[Path, float, str]]:
    """Compares the files of an export with their hashes in `export.json`, and its answers with the translator.

    `path` is the folder of an export, of a SavedModel the version folder. For each model that was found right, it
    yields its folder, the share of translations that are the same (1 for what is not quantised), and a line about it.

    Raises:
        FileError: a file is missing, has changed or was added.
        ExportError: an answer differs.
    """
    path, manifest = Path(path), check_unchanged(path)
    if (path / "models.json").is_file():  # A page.
        for model in json.loads((path / "models.json").read_text(encoding="utf-8"))["models"]:
            yield from verify(path / model["folder"], translator)
    elif (path / "translator.json").is_file():
        share = verify_tflite(path, translator)
        if share < manifest[SHARE] - MARGIN:
            raise ExportError(
                f"{path} must translate as many made-up sentences like Python as at the export, {manifest[SHARE]:.0%}. "
                f"Received: {share:.0%}. Name the run that was exported, or export it again."
            )
        yield path, share, f"{path} translates {share:.0%} of made-up sentences as Python does."
    elif (path / "metadata.json").is_file():
        count = verify_saved_model(path, translator)
        yield path, 1.0, f"{path} gives Python's answers: {count} sentences, every signature."
    else:
        yield path, 1.0, f"{path} has the files of the export. Translations of CTranslate2 are not compared."


def verify_saved_model(path: Path | str, translator: Translator) -> int:
    """Compares every signature of a SavedModel, loaded as TensorFlow Serving loads it, with the translator.

    `path` is the version folder. Of a large model, only the shortest sentences are translated; of the others, token ids
    and log probabilities are compared. Returns the number of sentences that were translated.

    Raises:
        ExportError: an answer differs, or the graph has operations that a stock TensorFlow Serving refuses.
    """
    metadata_file = Path(path) / "metadata.json"
    if not metadata_file.is_file():
        raise ExportError(f"{path} is not an exported SavedModel: it has no metadata.json. Pass its version folder.")
    metadata = json.loads(metadata_file.read_text(encoding="utf-8"))
    codec = translator.codec
    languages = translator.source_language, codec.target_language
    translator = _without_xla(translator, metadata, codec.max_source_length, *languages)
    texts = sentences(translator)
    with ServedModel(path) as served:
        refused = sorted(name for name in served.operations if "Xla" in name)
        if refused and not metadata.get("jit_compile"):
            raise ExportError(f"A stock TensorFlow Serving refuses operations of the graph: {', '.join(refused)}.")
        lengths, problems = _tokenized(served, translator, texts)
        searched = _affordable(lengths, translator.model.count_params())
        strings = [*map(_decoded, searched)]
        problems += [
            *_problems_with_scores(served, translator, [_decoded(x) for x in lengths if x not in searched]),
            *_problems_with_signatures(served, translator, searched, strings, metadata["num_hypotheses"]),
            *_problems_with_documents(served, translator, strings),
            *_problems_with_languages(served, translator, searched, strings),
        ]
    if problems:
        raise ExportError(f"{path} does not give the translator's answers:\n  " + "\n  ".join(problems))
    return len(searched)


def _decoded(text):
    return text.decode("utf-8", errors="replace")


def _problems_with_signatures(served, translator, texts, strings, num_hypotheses):
    """Whether the signatures answer as Python does; scores are compared, because rounding may choose between equals."""
    nbest = translator.translate(strings, num_hypotheses=num_hypotheses, return_scores=True)
    nbest = nbest if num_hypotheses > 1 else [[translation] for translation in nbest]
    best = [hypotheses[0] for hypotheses in nbest]
    translations = [translation.text for translation in best]
    ids = translator.codec.source_ids(strings)
    lengths = [len(row) + 1 for row in translator.target_tokenizer.tokenize(translations)]
    targets = [text if n <= longest_target(translator) else "" for text, n in zip(translations, lengths, strict=True)]
    log_probs = [target.log_prob for target in translator.score(strings, targets)]
    requests = {
        "translate": {"text": texts},
        "translate_nbest": {"text": texts},
        "translate_ids": {"token_ids": pad(ids)},
        "detokenize": {"token_ids": pad([translation.token_ids for translation in best])},
        "score": {"source": texts, "target": targets},
    }
    # One run each: a session prepares a graph for each set of outputs, and documents need `translate` alone, too.
    all_answers = {name: served(name, **inputs) for name, inputs in requests.items()}
    for i, text in enumerate(strings):
        if text.encode() != texts[i]:  # Not UTF-8, so no Python string is equal. It only has to be answered.
            continue
        answers = {name: {key: array[i] for key, array in outputs.items()} for name, outputs in all_answers.items()}
        untranslated = best[i].text and not best[i].token_ids  # Nothing but placeholders: ids are translated even so.
        same_score = {name: close(best[i].score, answers[name]["score"]) for name in ("translate", "translate_ids")}
        wanted = [translation.score for translation in nbest[i]]
        scores = [score for score in answers["translate_nbest"]["scores"] if score > NO_HYPOTHESIS]
        same_scores = len(wanted) == len(scores) and all(map(close, wanted, scores))
        source = protect(text, translator.codec.num_placeholders).text
        back = restored(answers["detokenize"]["text"].decode(), best[i].parts, source=source)
        for name, right, answer, same in (
            ("translate", best[i], answers["translate"], same_score["translate"]),
            ("translate_ids", best[i], answers["translate_ids"], untranslated or same_score["translate_ids"]),
            ("translate_nbest", wanted, answers["translate_nbest"], same_scores),
            ("detokenize", translations[i], back, untranslated or translations[i] == back),
            ("score", log_probs[i], answers["score"], close(log_probs[i], answers["score"]["log_prob"])),
        ):
            if not same:
                yield f"`{name}` of {text[:60]!r}: {str(right)[:300]} became {str(answer)[:300]}"


def _tokenized(served, translator, texts):
    """The number of tokens of each text whose ids are those of Python, and the problems with the others."""
    answers, lengths, problems = served("tokenize", text=texts), {}, []

    def spelled(ids):
        return "".join(translator.source_tokenizer.pieces(ids))

    encoded = translator.codec.encode([*map(_decoded, texts)])
    for text, wanted, row, truncated in zip(texts, encoded, answers["token_ids"], answers["truncated"], strict=True):
        ids = row[row != PAD_TOKEN_ID].tolist()
        # Not UTF-8, so no Python string is equal: it only has to be answered.
        if text != _decoded(text).encode() or (ids, truncated) == (wanted.ids, wanted.truncated):
            lengths[text] = len(ids)
        # The same text in the same pieces, in another order, such as "0", "00" and "00", "0": it is as probable, and
        # versions of SentencePiece round sums of logarithms differently. Such a text is not compared further.
        elif sorted(ids) != sorted(wanted.ids) or spelled(ids) != spelled(wanted.ids) or truncated != wanted.truncated:
            wanted = wanted.ids, wanted.truncated
            problems.append(f"`tokenize` of {text[:60]!r}: {str(wanted)[:300]} became {str((ids, truncated))[:300]}")
    return lengths, problems


def _affordable(lengths, num_weights):
    """The shortest of the texts, as many as `SEARCH_BUDGET` allows but some always, in their order."""
    by_length = sorted(lengths, key=lengths.get)
    sums = itertools.accumulate(lengths[text] for text in by_length)
    number = sum(tokens * num_weights <= SEARCH_BUDGET for tokens in sums)
    chosen = by_length[: max(number, LEAST_SEARCHED)]
    return [text for text in lengths if text in chosen]


def _problems_with_scores(served, translator, texts):
    """Whether sources make a target as probable as in Python."""
    if not texts:
        return
    targets = [plain(text)[:3] for text in texts]  # None is longer than a short limit.
    found = served("score", source=texts, target=targets)["log_prob"]
    for text, right, answer in zip(texts, translator.score(texts, targets), found, strict=True):
        if not close(right.log_prob, answer):
            yield f"`score` of {text[:60]!r}: {right.log_prob} became {answer}"


def _search_settings(metadata):
    """The `SearchSettings` of an export."""
    try:
        return SearchSettings().replace(**metadata["settings"])
    except TypeError as error:
        raise ExportError(f"An earlier version of the package exported this. {error} Export it again.") from error


def _problems_with_documents(served, translator, texts):
    """Whether `translate_document` splits and joins as Python does, around its own translations of the sentences."""
    documents = [f" {first}.\n\n- {second}!{first}? {second}\n" for first, second in itertools.pairwise(texts[:6])]
    documents += ["", " ".join(texts[:8])]  # The last one has a sentence that is too long.
    answers = served("translate_document", text=documents)["translation"]
    split = [split_text(translator, document) for document in documents]
    translated = iter(served("translate", text=[plain(x) for parts in split for x in parts[1::2]])["translation"])
    for document, parts, answer in zip(documents, split, answers, strict=True):
        translations = [Translation(text.decode(), 0.0) for text in itertools.islice(translated, len(parts) // 2)]
        wanted = join_text(parts, translations).text
        if answer.decode() != wanted:
            yield f"`translate_document` of {document[:60]!r}: {wanted[:300]!r} became {answer.decode()[:300]!r}"


def _problems_with_languages(served, translator, texts, strings):
    """Whether the signatures with `target_language` answer as Python does; the languages of the texts alternate."""
    languages = list(translator.source_tokenizer.languages)
    if not languages:
        return
    chosen = list(itertools.islice(itertools.cycle(languages), len(texts)))
    best = [
        translation.score for translation in translator.translate(strings, target_language=chosen, return_scores=True)
    ]
    targets = [plain(text)[:3] for text in strings]  # None is longer than a short limit.
    names = "translate_to", "translate_document_to", "translate_nbest_to", "tokenize_to"
    answers = {name: served(name, text=texts, target_language=chosen) for name in names}
    answers["score_to"] = served("score_to", source=texts, target=targets, target_language=chosen)
    ids = [sorted(sentence.ids) for sentence in translator.codec.encode(strings, chosen)]  # Sorted as in `_tokenized`.
    compared = {
        "translate_to": (best, answers["translate_to"]["score"]),
        "translate_nbest_to": (best, answers["translate_nbest_to"]["scores"][:, 0]),
        "score_to": ([x.log_prob for x in translator.score(strings, targets, chosen)], answers["score_to"]["log_prob"]),
        "tokenize_to": (
            ids,
            [sorted(row[row != PAD_TOKEN_ID].tolist()) for row in answers["tokenize_to"]["token_ids"]],
        ),
    }
    for name, (wanted, found) in compared.items():
        same = eq if name == "tokenize_to" else close
        for text, string, language, right, answer in zip(texts, strings, chosen, wanted, found, strict=True):
            if string.encode() == text and not same(right, answer):
                yield f"`{name}` of {text[:60]!r}, {language}: {str(right)[:300]} became {str(answer)[:300]}"
    for name in ("translate_to", "translate_document_to", "translate_nbest_to"):
        used = [language.decode() for language in answers[name]["target_language"]]
        if used != chosen:
            yield f"`target_language` of `{name}`: {chosen} became {used}"


def verify_tflite(folder: Path | str, translator: Translator) -> float:
    """Compares the TFLite files of a folder with the translator, sentence by sentence, greedy and beam search.

    Of a large model, only the shortest sentences are translated; of the others, token ids are compared.

    Returns the share of translations that are the same, 1 unless the file is quantised.

    Raises:
        ExportError: an answer differs, and the file is not quantised.
    """
    folder = Path(folder)
    try:
        exported = TFLiteTranslator(folder / "translator.tflite")
    except (ImportError, FileNotFoundError) as error:
        raise ExportError(str(error)) from error
    reference = tflite_reference(translator, exported.settings)
    texts = sentences(reference)
    strings = [*map(_decoded, texts)]
    ids = reference.codec.source_ids(strings)
    text_to_text = all(isinstance(tokenizer, SentencePieceTokenizer) for tokenizer in reference.codec.tokenizers)
    if text_to_text:
        wrong = list(_problems_with_tokenizers(exported, reference, strings))
        if wrong:
            raise ExportError(f"{folder} does not have the translator's tokenizers:\n  " + "\n  ".join(wrong))
    searched = _affordable(dict(enumerate(map(len, ids))), reference.model.count_params())
    texts, strings, ids = ([column[i] for i in searched] for column in (texts, strings, ids))
    problems, count, total = [], 0, 0
    for num_beams in sorted({1, reference.settings.num_beams}):
        expected = reference.translate(strings, num_beams=num_beams, return_scores=True)
        for text, string, source, wanted in zip(texts, strings, ids, expected, strict=True):
            token_ids, score = exported.translate_ids(source, beam=num_beams > 1)[0]
            answers = {"`translate_ids`": (token_ids, score, tuple(token_ids) == wanted.token_ids)}
            if text_to_text and num_beams == reference.settings.num_beams:
                protected = protect(string, reference.codec.num_placeholders)
                text_of_model = protected.text.encode() if protected.parts else text
                answer, score = _translated(exported, text_of_model, reference.codec.target_language)
                # Other texts only have to be answered: no Python string is equal, or the file reads the beginning.
                if text == string.encode() and len(text_of_model) < exported.settings["source_bytes"]:
                    answer = restored(answer, wanted.parts, source=protected.text)
                    answers["`translate_text`"] = answer, score, answer == wanted.text
            if wanted.text and not wanted.token_ids:  # Nothing but placeholders: it is not translated.
                continue
            total += len(answers)
            for name, (answer, score, same) in answers.items():
                count += same
                # Rounding may choose between two translations with the same score.
                if not same and not close(wanted.score, score):
                    problems.append(f"{name}: {string[:60]!r}: {wanted} became {answer!r}, {score}")
    if problems and exported.settings["quantize"] == "none":
        raise ExportError(f"{folder} does not give the translator's answers:\n  " + "\n  ".join(problems))
    return count / total


def tflite_bleu(
    folder: Path | str, translator: Translator, pairs: Sequence[tuple[str, str]], tokenize: str = "13a"
) -> tuple[float, float]:
    """BLEU of the `translator.tflite` in a folder, and of the translator with the same lengths and search.

    `pairs` are (source, reference). `tokenize` is sacreBLEU's tokenizer, by default `"13a"`.
    """
    exported = TFLiteTranslator(Path(folder) / "translator.tflite")
    reference = tflite_reference(translator, exported.settings)
    sources, references = zip(*pairs, strict=True)
    token_ids = [exported.translate_ids(ids)[0][0] for ids in reference.codec.source_ids(sources)]
    expected = [translation.text for translation in reference.translate(sources, return_scores=True)]
    texts = reference.target_tokenizer.detokenize(token_ids)
    return corpus_scores(texts, references, tokenize).bleu, corpus_scores(expected, references, tokenize).bleu


def tflite_reference(translator: Translator, settings: dict[str, Any]) -> Translator:
    """The translator with the lengths and the search of a `translator.json`."""
    languages = settings["source_language"], settings["target_language"]
    return _without_xla(translator, settings, settings["source_length"], *languages)


def _without_xla(translator, metadata, source_length, source_language, target_language):
    """The translator with the search of an export. XLA would take longer to compile than these few texts take."""
    reference = Translator(
        translator.model,
        translator.source_tokenizer,
        translator.target_tokenizer,
        max_source_length=source_length,
        jit_compile=False,
        source_language=source_language,
        target_language=target_language,
        **vars(_search_settings(metadata)),
    )
    reference.shortlist = translator.shortlist
    return reference


def _problems_with_tokenizers(exported, reference, strings):
    """Whether the tokenizers in a TFLite file are those of the translator."""
    for string, wanted in zip(strings, reference.codec.encode(strings), strict=True):
        found, size = exported.encode(string), len(wanted.text.encode())
        if size >= exported.settings["source_bytes"]:  # The file reads the beginning, and says so.
            same = found.truncated or found.unchanged is not None
        else:
            same = (found.ids, found.truncated) == (wanted.ids[:-1], wanted.truncated)
        if not same:
            yield f"`tokenize` of {string[:60]!r}: {wanted} became {found}"
    length, size = exported.settings["target_length"], reference.target_tokenizer.vocabulary_size
    rows = [[(number + i) % size for i in range(length)] for number in range(0, size, length)]
    texts = reference.target_tokenizer.detokenize(rows)
    for row, wanted in zip(rows, texts, strict=True):
        outputs = exported.run("detokenize", translation_ids=np.array([row], "int32"))
        found, end = unpadded(outputs["text"]), outputs["ends"][0, -1]
        if found != wanted or end < len(found.encode()):
            yield f"`detokenize` of {row}: {wanted!r} became {found!r}, which ends at {end}"


def _translated(exported, text, target_language):
    """The best translation by `translate_text` of bytes, and its score."""
    inputs = {"text": exported.padded(text)}
    if "target_language" in exported.interpreter.get_signature_list()["translate_text"]["inputs"]:
        inputs["target_language"] = np.array([exported.settings["languages"].get(target_language, 0)], "int32")
    found = exported.run("translate_text", **inputs)
    return unpadded(found["translations"][0]), float(found["scores"][0])


def close(wanted: float, answer: float) -> bool:
    """Whether two scores are the same up to rounding."""
    return abs(wanted - answer) <= 1e-3 * max(1.0, abs(wanted))


def disable_xla() -> None:
    """Disables XLA for the rest of the process, as TensorFlow Serving does by default."""
    library = Path(sysconfig.get_paths()["purelib"], "tensorflow", "libtensorflow_cc.so.2")
    ctypes.CDLL(str(library))["_ZN10tensorflow21DisableXlaCompilationEv"]()


class ServedModel(contextlib.AbstractContextManager):
    """A SavedModel, by its version folder, in a session as in TensorFlow Serving: a context manager, or call `close`.

    Attributes:
        signatures: `SignatureDef`s by name.
        operations: the names of all types of operations in the graph.
    """

    def __init__(self, path: Path | str):
        import tensorflow_text  # noqa: F401  (registers the tokenizers' operations, which TensorFlow Serving links)

        self.session = tf.compat.v1.Session(graph=tf.Graph())
        logger = tf.get_logger()
        level = logger.level
        logger.setLevel("ERROR")  # Hides the loader's advice to use another loader, which hides errors of sessions.
        try:
            with self.session.graph.as_default():
                loaded = tf.compat.v1.saved_model.load(self.session, ["serve"], str(path))
        finally:
            logger.setLevel(level)
        self.signatures = loaded.signature_def
        self.operations = {node.op for node in loaded.graph_def.node}
        self.operations |= {node.op for function in loaded.graph_def.library.function for node in function.node_def}

    def __exit__(self, *error):
        self.close()

    def close(self) -> None:
        """Ends the session."""
        self.session.close()

    def __call__(self, name: str, **inputs: "np.ndarray | Sequence[str | bytes]") -> dict[str, "np.ndarray"]:
        """The outputs of a signature, arrays by name."""
        signature = self.signatures[name]
        fetches = {key: tensor.name for key, tensor in signature.outputs.items()}
        return self.session.run(fetches, {signature.inputs[key].name: value for key, value in inputs.items()})
