"""Compares an imported model with the original: its sizes, its token ids, and what a smaller vocabulary changes."""

import time
from collections.abc import Sequence

import numpy as np

from keras_transformer.search.settings import LENGTH_MARGIN
from keras_transformer.text.special_ids import END_TOKEN_ID
from keras_transformer.transfer.importing import Imported, vocabulary


def different_ids(imported: Imported, texts: Sequence[str]) -> list[list[str]]:
    """The texts of which the tokenizers do not give the ids of the original.

    The original splits off a language tag, encodes the rest with SentencePiece, and looks the pieces up in its list; a
    piece that it does not find is the unknown token. If all that it has is a tokenizer.json, that is asked. Returns a
    list of texts for each of source and target.
    """
    different = []
    for side, (model, name) in enumerate(imported.original.models):
        rows = imported.tokenizers[side].tokenize(texts)
        ids = _ids_of_library(name, texts) if name.endswith(".json") else _ids_of_model(imported, side, model, texts)
        pairs = zip(texts, rows, ids, strict=True)
        different.append(
            [text for text, row, expected in pairs if imported.spaces[side].rows[row].tolist() != expected]
        )
    return different


def _ids_of_library(name, texts):
    import tokenizers

    return [one.ids for one in tokenizers.Tokenizer.from_file(name).encode_batch(list(texts), add_special_tokens=False)]


def _ids_of_model(imported, side, model, texts):
    import sentencepiece

    original, processor = imported.original, sentencepiece.SentencePieceProcessor(model_proto=model)
    has_tags = side == 0 and not original.source_tag
    ids = {token: i for i, token in enumerate(original.tokens[side])}
    for text in texts:
        tag, rest = _split_tag(text) if has_tags else ([], text)
        yield [ids.get(piece, original.unknown[side]) for piece in tag + processor.encode(rest, out_type=str)]


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


def _of_pieces(imported, side, count=100, length=8):
    """Texts in the scripts that a vocabulary is for: made of tokens that the original's tokenizer gives, by chance."""
    import sentencepiece

    model, name = imported.original.models[side]
    produced = vocabulary.produced(vocabulary.parse(model, name))
    pieces = [piece for piece in imported.spaces[side].pieces if piece in produced]
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    chosen = np.random.default_rng(0).integers(0, len(pieces), (count, length))
    return [processor.decode([pieces[i] for i in row]) for row in chosen]


def summary(imported: Imported) -> list[str]:
    """What an imported model is, and whether its tokenizers give the ids of the original: a list of lines."""
    config, (source, target) = imported.config.model, (len(space.pieces) for space in imported.spaces)
    norm = "pre-norm" if config.normalize_first else "post-norm"
    lines = [
        f"model: {config.num_layers} + {config.num_decoder_layers} blocks of {norm}, width {config.hidden_dim} "
        f"and {config.intermediate_dim}, {config.num_heads} heads, {config.activation}, "
        f"{imported.num_weights():,} weights",
        f"vocabulary: {source:,} ids of the source, {target:,} of the target, "
        f"SentencePiece {imported.tokenizers[0].kind}",
    ]
    tags = [piece for piece in imported.spaces[0].pieces if vocabulary.LANGUAGE_TAG.fullmatch(piece)]
    if tags:
        more = f" and {len(tags) - 5} more" if len(tags) > 5 else ""
        where = "into which it translates" if imported.original.source_tag else "at the beginning of a source"
        lines.append(f"language tags, {where}: {', '.join(tags[:5])}{more}")
    for side, name in enumerate(("source", "target")):
        same, others = [], []
        for texts, kind in ((samples(), "sample sentences"), (_of_pieces(imported, side), "texts of its own tokens")):
            different = different_ids(imported, texts)[side]
            same.append(f"{len(texts) - len(different)} of {len(texts)} {kind}")
            others += [repr(text[:40]) for text in different[:3]]
        lines.append(f"ids as in the original, {name}: {', '.join(same)}{'; not ' * bool(others)}{', '.join(others)}")
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
    for one in (whole, trimmed):
        language = next(iter(one.config.data.target_languages()), None)
        settings = {"target_language": language, "max_source_length": 128, "jit_compile": False}
        settings |= vars(one.config.search)
        translators.append(Translator(one.model, *one.tokenizers, **settings))
        sizes.append(one.num_weights() * 4 / 1e6)
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
