"""Public models become runs: `python -m keras_transformer import FAMILY FOLDER --run-dir RUN`.

Each family of models is a module with a function `read(folder)`, which returns an `Original`: the model in the words of
this package. What follows is the same for all families: one id space (`vocabulary`), the `Transformer` and its weights,
and the run folder.
"""

import hashlib
import importlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from keras_transformer.search.settings import LENGTH_MARGIN, SearchSettings
from keras_transformer.text.sentencepiece_tokenizer import SentencePieceTokenizer
from keras_transformer.text.special_ids import END_TOKEN_ID
from keras_transformer.training.config import RunConfig
from keras_transformer.training.run import Run
from keras_transformer.training.sections import DataConfig, ModelConfig, TokenizerConfig
from keras_transformer.transfer import FAMILIES
from keras_transformer.transfer.importing import vocabulary


class ModelImportError(ValueError):
    """A folder that is not a model of its family, or a model that this package cannot express."""


class Original(NamedTuple):
    """A public model.

    Attributes:
        architecture: arguments of `Transformer` without the sizes of vocabularies.
        weights: `Weights`; None in what `keras_transformer.transfer.importing.read` returns, whose model has them.
        tokens: the tokens of source and target by id, two lists; the same list twice for one vocabulary.
        models: the SentencePiece files of source and target, two pairs of bytes and a name for messages.
        unknown, end: ids in these lists, of source and target.
        start: the id that a translation starts with, or None if it starts with a zero embedding.
        search: changes of `SearchSettings`, such as `num_beams`.
        max_length: maximum number of source tokens.
        languages: language codes of source and target, or None.
        source_tag: the tag of the source language, such as `>>en<<`, which the encoder reads first; every translation
            then begins with the tag of its language. Defaults to None: tags are read at the beginning of a source.
        start_counts: whether the start token counts in the softmax, though no translation contains it. Defaults to
            False.
        notes: sentences about what was left out.
    """

    architecture: dict[str, Any]
    weights: "Weights | None"
    tokens: tuple
    models: tuple
    unknown: tuple
    end: tuple
    start: int | None
    search: dict[str, Any]
    max_length: int
    languages: tuple = (None, None)
    source_tag: str | None = None
    start_counts: bool = False
    notes: tuple = ()


class Weights(NamedTuple):
    """The weights of a model, NumPy arrays. The matrix of a dense layer has the shape (inputs, outputs).

    Attributes:
        embeddings: (V, D) of encoder and decoder; the same array twice if they are tied.
        output_kernel: (V, D), or None if it is the decoder's embedding.
        output_bias: (V,), or None.
        positions: (L, D) learned positions, or None.
        blocks: for encoder and decoder a list with one dict per block: `"self_attention"` and, in the decoder,
            `"cross_attention"`, each four pairs (matrix, bias) for query, key, value and output; `"feed_forward"`, two
            such pairs; `"self_attention_norm"`, `"cross_attention_norm"`, `"feed_forward_norm"`, pairs (gain, bias).
        norms: the last normalisation of encoder and decoder, pairs (gain, bias), or None with post-norm.
    """

    embeddings: tuple
    output_kernel: np.ndarray | None
    output_bias: np.ndarray | None
    positions: np.ndarray | None
    blocks: tuple
    norms: tuple | None


class Imported(NamedTuple):
    """What `read` makes of a folder: the `Transformer`, and for source and target a tokenizer and an `IdSpace`."""

    model: Any
    tokenizers: tuple[SentencePieceTokenizer, ...]
    config: RunConfig
    spaces: tuple[vocabulary.IdSpace, ...]
    original: Original


def read(
    family: str,
    folder: Path | str,
    trim: bool = False,
    corpus: Sequence[Sequence[str] | None] = (None, None),
    **languages: str | None,
) -> Imported:
    """Reads a public model.

    Args:
        family: one of `keras_transformer.transfer.FAMILIES`.
        folder: the folder of the model's files.
        trim: whether source and target get vocabularies of their own, with only the pieces that their SentencePiece
            file produces. Defaults to False: all ids of the original.
        corpus: texts of source and target, two lists of strings or None. With `trim`, only pieces that occur in them
            are kept, and single characters.
        **languages: `source_language` and `target_language`, for families of many languages.

    Raises:
        ModelImportError: the folder is not a model of this family, is damaged, or cannot be expressed.
    """
    if family not in FAMILIES:
        raise ModelImportError(f"`family` must be one of {tuple(FAMILIES)}. Received: {family!r}.")
    folder = _checked_folder(Path(folder))
    module = importlib.import_module(f"keras_transformer.transfer.importing.{FAMILIES[family]}")
    original = module.read(folder, **languages)
    parsed = [vocabulary.parse(*model) for model in original.models]
    joint = original.tokens[0] is original.tokens[1]
    sides = list(zip(original.tokens, original.unknown, original.end, (None, original.start), strict=True))
    if joint:
        spaces = (vocabulary.id_space(*sides[1], parsed),) * 2
    else:
        spaces = tuple(vocabulary.id_space(*side, [model]) for side, model in zip(sides, parsed, strict=True))
    if trim:
        sides = zip(spaces, parsed, corpus, (True, original.source_tag is not None), strict=True)
        spaces = tuple(vocabulary.trimmed(space, model, texts, tags) for space, model, texts, tags in sides)
        if original.architecture["tie_embeddings"] == "all":
            original = original._replace(architecture={**original.architecture, "tie_embeddings": "target"})
    tags = ("hidden", "hidden") if original.source_tag else ("read", None)
    models = map(vocabulary.rewritten, parsed, spaces, tags)
    tokenizers = tuple(map(SentencePieceTokenizer, models))
    if original.source_tag:
        token_id = spaces[0].pieces.index(original.source_tag)
        original = original._replace(architecture={**original.architecture, "source_language_token_id": token_id})
    config, model = _config(original, tokenizers, separate=trim or not joint), _model(original, spaces)
    return Imported(model, tokenizers, config, spaces, original._replace(weights=None))


def _checked_folder(folder):
    if not folder.is_dir():
        name = folder if len(folder.parts) == 2 else Path("OWNER/NAME")  # Of a model at Hugging Face.
        raise ModelImportError(
            f"{folder} is not a folder. Download all files of the model into one folder: "
            f"hf download {name} --local-dir {name.name}"
        )
    if (folder / "snapshots").is_dir() and not (folder / "config.json").is_file():
        inside = sorted(map(str, (folder / "snapshots").iterdir()))
        raise ModelImportError(
            f"{folder} is a folder of the Hugging Face cache: a model is in a folder of its snapshots. "
            f"Received: {folder.name}. Choose one: {', '.join(inside) or 'there are none'}."
        )
    return folder


def write(imported: Imported, run: Run | Path | str, overwrite: bool = False) -> Run:
    """Writes a run folder, which appears complete or not at all; `overwrite` replaces the run in it.

    Raises:
        ConfigError: the folder exists, and `overwrite` is False.
        FileError: the folder is not a run, or contains other files.
    """
    run = run if isinstance(run, Run) else Run(run)
    import keras

    sha256 = hashlib.sha256()
    for weight in imported.model.weights:
        sha256.update(keras.ops.convert_to_numpy(weight).tobytes())
    with run.claimed(overwrite), run.set_up(is_chief=True, barrier=lambda: None) as prepared:
        prepared.write(imported.config, imported.tokenizers, {"imported weights": sha256.hexdigest()})
        imported.model.save(prepared.model_file)
    return run


def _config(original, tokenizers, separate):
    """The `RunConfig`: the original's architecture and search; it has no data set and was not trained here."""
    architecture = {name: value for name, value in original.architecture.items() if name != "max_length"}
    languages = dict(zip(("source_language", "target_language"), original.languages, strict=True))
    languages = {name: language for name, language in languages.items() if language}
    if original.source_tag:
        languages["directions"] = ("-".join(original.languages),)
    return RunConfig(
        preset="base",
        model=ModelConfig(**architecture),
        data=DataConfig(dataset="none", max_length=original.max_length, **languages),
        tokenizer=TokenizerConfig(
            tokenizer=tokenizers[0].kind,
            vocabulary_size=max(tokenizer.vocabulary_size for tokenizer in tokenizers),
            separate_vocabularies=separate,
        ),
        search=SearchSettings(**original.search),
    )


def _model(original, spaces):
    """The `Transformer` with the original's weights."""
    from keras_transformer.models.transformer import Transformer

    source, target = spaces
    weights = original.weights
    model = Transformer(len(source.pieces), len(target.pieces), **original.architecture)
    layers = model.encoder_embedding, model.decoder_embedding
    for layer, space, matrix in zip(layers, spaces, weights.embeddings, strict=True):
        layer.token_embedding.embeddings.assign(space.take(matrix))
        if weights.positions is not None:
            layer.position_table.assign(weights.positions)
    decoder = model.decoder_embedding
    if not decoder.tie_weights:
        decoder.token_embedding.reverse_embeddings.assign(target.take(weights.output_kernel).T)
    decoder.bias.assign(target.bias(weights.output_bias, original.start_counts))
    for blocks, arrays in zip((model.encoder_blocks, model.decoder_blocks), weights.blocks, strict=True):
        for block, array in zip(blocks, arrays, strict=True):
            _set_block(block, array)
    if weights.norms is not None:
        for layer, norm in zip((model.encoder_norm, model.decoder_norm), weights.norms, strict=True):
            _set_norm(layer, norm)
    return model


def _set_block(block, arrays):
    *query_key_value, output = arrays["self_attention"]
    _set_dense(block.self_attention.query_key_value_dense, *query_key_value)
    _set_dense(block.self_attention.output_dense, output)
    if "cross_attention" in arrays:
        query, key, value, output = arrays["cross_attention"]
        _set_dense(block.cross_attention.query_dense, query)
        _set_dense(block.cross_attention.key_value_dense, key, value)
        _set_dense(block.cross_attention.output_dense, output)
    intermediate, output = arrays["feed_forward"]
    _set_dense(block.feed_forward.intermediate_dense, intermediate)
    _set_dense(block.feed_forward.output_dense, output)
    for name in (name for name in arrays if name.endswith("_norm")):
        _set_norm(getattr(block, name), arrays[name])


def _set_dense(layer, *pairs):
    """Matrices (D, n) and biases (n,), side by side."""
    layer.kernel.assign(np.concatenate([matrix for matrix, _ in pairs], axis=1))
    layer.bias.assign(np.concatenate([bias for _, bias in pairs]))


def _set_norm(layer, pair):
    gain, bias = pair
    layer.gamma.assign(gain)
    layer.beta.assign(bias)


def different_ids(imported: Imported, texts: Sequence[str]) -> list[list[str]]:
    """The texts of which the tokenizers do not give the ids of the original.

    The original splits off a language tag, encodes the rest with SentencePiece, and looks the pieces up in its list; a
    piece that it does not find is the unknown token. Returns a list of texts for each of source and target.
    """
    import sentencepiece

    original, different = imported.original, []
    for side, (model, _) in enumerate(original.models):
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        has_tags = side == 0 and not original.source_tag
        ids = {token: i for i, token in enumerate(original.tokens[side])}
        different.append([])
        for text, row in zip(texts, imported.tokenizers[side].tokenize(texts), strict=True):
            tag, rest = _split_tag(text) if has_tags else ([], text)
            pieces = tag + processor.encode(rest, out_type=str)
            expected = [ids.get(piece, original.unknown[side]) for piece in pieces]
            if expected != imported.spaces[side].rows[row].tolist():
                different[side].append(text)
    return different


def _split_tag(text):
    tag, end, rest = text.partition("<<")
    return ([tag + end], rest) if end and tag.startswith(">>") else ([], text)


# Sentences whose ids are compared with those of the original: besides sentences of the phrasebook, what people and
# programs type.
HOSTILE = (
    "",
    " ",
    "  two  spaces ",
    "a\tb\nc",
    "UPPER CASE, Mixed-Case_and_underscores",
    "3.14 1,000,000 50% -7 ½ №5 ²",
    "https://example.org/a?b=c&d=e#f me@example.org",
    "„Hallo“, “hello”, «bonjour» ‘hi’ … – —",
    "naïve café Ærøskøbing Łódź İstanbul ǅ",
    "ﬁ ﬂ ① Ｆｕｌｌ ｗｉｄｔｈ",
    "e\u0301 u\u0308 a\u200bb\u00adc\ufeff",
    "日本語のテキスト 中文 한국어",
    "Привет, мир! Γειά σου שלום مرحبا नमस्ते",
    "😀 👩‍👩‍👧 🇩🇪",
    "<s> </s> <unk> <pad> ▁ ▁▁",
    "{placeholder} %s <b>bold</b> &amp; [1]",
    "x" * 300,
    "!?!?!?...",
    "\U0001d54f \x7f \x01",
    ">>deu<< A tag.",
    "not at >>deu<< the beginning",
)


def samples() -> list[str]:
    """Sentences of two languages and hostile strings."""
    from keras_transformer.data.phrasebook import phrasebook

    return [*(text for pair in phrasebook()["test"][:200] for text in pair), *HOSTILE]


def report(imported: Imported) -> list[str]:
    """Lines about an imported model: what it is, and whether its tokenizers give the ids of the original."""
    model, config = imported.model, imported.config.model
    norm = "pre-norm" if config.normalize_first else "post-norm"
    lines = [
        f"model: {len(model.encoder_blocks)} + {len(model.decoder_blocks)} blocks of {norm}, width {config.hidden_dim} "
        f"and {config.intermediate_dim}, {config.num_heads} heads, {config.activation}, "
        f"{model.count_params():,} weights",
        f"vocabulary: {model.vocabulary_size:,} ids of the source, {model.target_vocabulary_size:,} of the target, "
        f"SentencePiece {imported.tokenizers[0].kind}",
    ]
    tags = [piece for piece in imported.spaces[0].pieces if vocabulary.LANGUAGE_TAG.fullmatch(piece)]
    if tags:
        more = f" and {len(tags) - 5} more" if len(tags) > 5 else ""
        where = "into which it translates" if imported.original.source_tag else "at the beginning of a source"
        lines.append(f"language tags, {where}: {', '.join(tags[:5])}{more}")
    texts = samples()
    for side, different in zip(("source", "target"), different_ids(imported, texts), strict=True):
        same = f"{len(texts) - len(different)} of {len(texts)} sample sentences as in the original"
        others = "; not " + ", ".join(repr(text[:40]) for text in different[:3]) if different else ""
        lines.append(f"ids of the {side}: {same}{others}")
    settings, data = imported.config.search, imported.config.data
    penalty = f"length_penalty={settings.length_penalty} ({settings.length_penalty_type})"
    limit = f", but at most {settings.max_target_length:,}" if settings.max_target_length else ""
    lines += [
        f"search: num_beams={settings.num_beams}, {penalty}",
        f"lengths: the first {data.max_length:,} tokens of a source are read; a translation has at most "
        f"{settings.max_length_ratio} tokens per source token and {LENGTH_MARGIN} more{limit}",
    ]
    notes = list(imported.original.notes)
    if not all(imported.original.languages):
        notes.append(
            f"the folder does not name both languages: the run says {data.source_language}-{data.target_language}, "
            "which decides how texts are split into sentences. Change both in the config.json of the run."
        )
    return lines + [f"note: {note}" for note in notes]


def trim_report(whole: Imported, trimmed: Imported, texts: Sequence[str] | None = None, count: int = 100) -> list[str]:
    """Lines about what a smaller vocabulary takes off: ids, size, the time of a step, and the translations.

    Args:
        whole, trimmed: `Imported`, without and with `trim`.
        texts: sources to translate with both. Defaults to sentences made of random tokens.
        count: the largest number of them. Defaults to 100.
    """
    from keras_transformer.translation.evaluation import corpus_scores
    from keras_transformer.translation.translator import Translator

    translators, sizes = [], []
    for model, tokenizers, config, *_ in (whole, trimmed):
        settings = {"max_source_length": 128, "jit_compile": False, **vars(config.search)}
        translators.append(Translator(model, *tokenizers, **settings))
        sizes.append(model.count_params() * 4 / 1e6)
    steps = [1000 * _step_seconds(translator) for translator in translators]
    if texts is None:
        tokenizer = trimmed.tokenizers[0]
        ids = np.random.default_rng(0).integers(END_TOKEN_ID + 1, tokenizer.vocabulary_size, (count, 8))
        texts = tokenizer.detokenize(ids)
    texts = [text for text in texts if text.strip()][:count]
    before, after = (translator.translate(texts, num_beams=1, max_target_length=64) for translator in translators)
    same = np.mean([a == b for a, b in zip(before, after, strict=True)])
    return [
        f"trimmed: source {whole.model.vocabulary_size:,} -> {trimmed.model.vocabulary_size:,} ids, target "
        f"{whole.model.target_vocabulary_size:,} -> {trimmed.model.target_vocabulary_size:,}; "
        f"{sizes[0]:,.1f} -> {sizes[1]:,.1f} MB; a step of greedy search {steps[0]:.1f} -> {steps[1]:.1f} ms",
        f"translations of {len(texts)} sentences, greedy: {same:.0%} are the same; "
        f"BLEU against those of the whole vocabulary {corpus_scores(after, before).bleu:.1f}",
    ]


def _step_seconds(translator, length=32):
    """Seconds of a step of greedy search for one short sentence, without XLA."""
    settings = {"num_beams": 1, "min_length": length, "max_target_length": length, "max_length_ratio": float(length)}
    times = []
    for _ in range(4):  # The first one builds the graph.
        began = time.perf_counter()
        translator.translate(["a"], **settings)
        times.append(time.perf_counter() - began)
    return min(times[1:]) / length
