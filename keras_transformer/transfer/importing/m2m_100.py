"""M2M-100, NLLB and models fine-tuned from them, from a folder of transformers (`M2M100ForConditionalGeneration`).

Reference: "Beyond English-Centric Multilingual Machine Translation" (Fan et al., 2020); "No Language Left Behind"
(NLLB Team, 2022).

The folder has config.json, weights and sentencepiece.bpe.model. M2M-100 also has vocab.json, and NLLB has
tokenizer.json, which is enough: transformers 5 saves no SentencePiece file for it. The encoder reads the token of the
source language first; a translation begins with that of the target language.
"""

import base64
from pathlib import Path
from typing import Any

from keras_transformer.text.sentencepiece_model import BPE, CONTROL, NORMAL, UNKNOWN, message_class
from keras_transformer.transfer.importing import ModelImportError, Original, Weights
from keras_transformer.transfer.importing.arrays import Arrays
from keras_transformer.transfer.importing.reading import (
    EMBEDDING,
    SIDES,
    by_id,
    check_tokenizer,
    damaged,
    index_of,
    max_wavelength,
    read_bytes,
    read_json,
    transformers_architecture,
    transformers_blocks,
    transformers_config,
    transformers_norm,
    transformers_settings,
    transformers_weights,
    unfit,
)

# The languages of M2M-100, whose tokens `__af__`, `__am__`, ... follow those of vocab.json in this order.
M2M_100_LANGUAGES = (
    "af am ar ast az ba be bg bn br bs ca ceb cs cy da de el en es et fa ff fi fr fy ga gd gl gu ha he hi hr ht hu hy "
    "id ig ilo is it ja jv ka kk km kn ko lb lg ln lo lt lv mg mk ml mn mr ms my ne nl no ns oc or pa pl ps pt ro ru "
    "sd si sk sl so sq sr ss su sv sw ta th tl tn tr uk ur uz vi wo xh yi yo zh zu"
)
# The position of the first token: the library that these models were trained with counts from its padding id + 1.
FIRST_POSITION = 2


def read(folder: Path, source_language: str | None = None, target_language: str | None = None) -> Original:
    """Reads a folder for sources of one language.

    Args:
        folder: a `Path`.
        source_language, target_language: codes as the model has them: `"en"` for M2M-100, `"eng_Latn"` for NLLB. The
            translator's target language can be changed later, that of the sources cannot.

    Raises:
        ModelImportError: the folder is not such a model, or has no such language.
    """
    if not (folder / "config.json").is_file():
        raise ModelImportError(
            f"{folder} is not a folder of transformers: it has no config.json. Download all files of the model into it."
        )
    config = transformers_config(folder, "m2m_100", activation_function="relu", scale_embedding=True)
    if not config["tie_word_embeddings"]:
        raise unfit(folder / "config.json", "tie_word_embeddings must be true, as in M2M-100 and NLLB", False)
    tokens, languages = _tokens(folder)
    _check_language("--source-language", source_language, languages)
    _check_language("--target-language", target_language, languages)
    path, tokenizer = folder / "sentencepiece.bpe.model", folder / "tokenizer.json"
    if path.is_file() or not tokenizer.is_file():
        model = read_bytes(path)
    else:
        path, model = tokenizer, sentencepiece_model(tokenizer, read_json(tokenizer))
    weights = _weights(Arrays(folder, transformers_weights(folder)), config)
    size = weights.embeddings[0].shape[0]
    if len(tokens) > size:
        raise unfit(folder, f"it must have at most {size:,} tokens, the rows of the embedding", f"{len(tokens):,}")
    # Rows without a token get one that no text has.
    tokens += [f"madeupword{i}" for i in range(size - len(tokens))]
    return Original(
        architecture={
            **transformers_architecture(folder, config),
            "normalize_first": True,
            "max_wavelength": max_wavelength(config["d_model"]),
            "first_position": FIRST_POSITION,
            "tie_embeddings": "all",
        },
        weights=weights,
        tokens=(tokens, tokens),
        models=((model, str(path)),) * 2,
        unknown=(index_of(tokens, "<unk>", folder),) * 2,
        languages=(source_language, target_language),
        source_tag=f">>{source_language}<<",
        **transformers_settings(folder, config, (tokens, tokens), ignored=("forced_bos_token_id",)),
    )


def sentencepiece_model(path: Path, content: dict[str, Any]) -> bytes:
    """The SentencePiece model, as bytes, that tokenizes as a `tokenizer.json` of type BPE that was made from one.

    Where the library has a list of merges, SentencePiece has a score for each piece, and merges two pieces whenever
    what they make is a piece. Both find the same if the merges that make one piece follow each other, and if all ways
    to make it are among them. At the end of a text, SentencePiece drops spaces, which the library keeps as a token.

    Args:
        path: that of the file, for messages.
        content: what is in it.

    Raises:
        ModelImportError: it is no such file.
    """
    import sentencepiece

    def checked(holds, rule, received):
        if not holds:
            raise unfit(path, rule, received, "Add the sentencepiece.bpe.model that the tokenizer was made from.")

    try:
        model, steps, splits = content["model"], *(_steps(content, name) for name in ("normalizer", "pre_tokenizer"))
        pieces = model["vocab"]
        merges = [tuple(merge.split(" ") if isinstance(merge, str) else merge) for merge in model["merges"]]
        known = merges and all(len(merge) == 2 and {*merge, "".join(merge)} <= pieces.keys() for merge in merges)
        charsmaps = [base64.b64decode(step["precompiled_charsmap"]) for step in steps if step["type"] == "Precompiled"]
        spaces = [step for step in steps if step["type"] == "Strip" or _joins_spaces(step)]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise unfit(path, "it must have model.vocab and model.merges", type(error).__name__) from error
    wanted = {"type": "BPE", "unk_token": "<unk>", "fuse_unk": True, "byte_fallback": False, "ignore_merges": False}
    for name, value in wanted.items():
        found = model.get(name, False)
        checked(found == value, f"model.{name} must be {value!r}", found)
    checked(known, "its merges must be of tokens, and make tokens", f"{len(merges):,} merges")
    for name, all_steps, usual in (
        ("normalizer", steps, len(charsmaps) + len(spaces)),
        ("pre_tokenizer", splits, sum(split["type"] in ("Metaspace", "WhitespaceSplit") for split in splits)),
    ):
        kinds = ", ".join(str(step["type"]) for step in all_steps) or "none"
        checked(len(all_steps) == usual and len(charsmaps) <= 1, f"the {name} must be that of SentencePiece", kinds)
    ranks = _ranks(merges, pieces, checked)
    made = message_class()()
    made.trainer_spec.model_type, made.trainer_spec.byte_fallback = BPE, False
    for number, piece in enumerate(("<unk>", "<s>", "</s>")):
        made.pieces.add(piece=piece.encode(), score=0.0, type=CONTROL if number else UNKNOWN)
    # Other pieces of several characters are never merged. Those of one have no score that counts.
    single = [piece for piece in pieces if len(piece) == 1]
    for piece, score in {**dict.fromkeys(single, len(merges)), **ranks}.items():
        made.pieces.add(piece=piece.encode(), score=float(-score), type=NORMAL)
    made.normalizer_spec.precompiled_charsmap = charsmaps[0] if charsmaps else b""
    made.normalizer_spec.remove_extra_whitespaces = bool(steps)
    try:
        sentencepiece.SentencePieceProcessor(model_proto=made.SerializeToString())
    except RuntimeError as error:
        raise damaged(path, error) from error
    return made.SerializeToString()


def _ranks(merges, pieces, checked):
    """For each piece that merges make, the place of the first one; `checked(holds, rule, received)` raises an error."""
    ranks, last = {}, None
    for rank, merge in enumerate(merges):
        made = "".join(merge)
        checked(made == last or made not in ranks, "the merges of a token must follow each other", made)
        last = made
        ranks.setdefault(made, rank)
    ways, listed = {(piece[:i], piece[i:]) for piece in ranks for i in range(1, len(piece))}, set(merges)
    lacks = sorted(merge for merge in ways - listed if merge[0] in pieces and merge[1] in pieces)
    checked(not lacks, "all merges that make a token must be there", "none of " + " and ".join(*lacks[:1] or [""]))
    return ranks


def _steps(content, name):
    """The steps of a part of a `tokenizer.json`, a list of dicts with a "type"."""
    part = content.get(name) or {"type": "Sequence"}
    return part.get(name.replace("_", "") + "s", []) if part["type"] == "Sequence" else [part]


def _joins_spaces(step):
    return step["type"] == "Replace" and step["pattern"] == {"Regex": " {2,}"} and step["content"] in (" ", "\u2581")


def _check_language(flag, language, languages):
    if language not in languages:
        alike = [name for name in languages if language and name[:2] == language[:2]] or languages
        more = f" and {len(languages) - len(alike[:8])} more" if len(languages) > len(alike[:8]) else ""
        raise ModelImportError(
            f"{flag} must be one of the model's languages: {', '.join(alike[:8])}{more}. "
            f"Received: {language or 'none'}."
        )


def _weights(arrays, config):
    size = config["d_model"]
    embedding = arrays.take(*EMBEDDING, shape=(None, size))
    weights = Weights(
        embeddings=(embedding, embedding),
        output_kernel=None,
        output_bias=None,
        positions=None,
        blocks=transformers_blocks(arrays, config),
        norms=tuple(transformers_norm(arrays, f"model.{side}.layer_norm", size) for side in SIDES),
    )
    arrays.check_all_used(*EMBEDDING, *(f"model.{side}.embed_positions.weights" for side in SIDES))
    return weights


def _tokens(folder):
    """The tokens by id, with tags such as `>>de<<` in place of the tokens of languages, and the languages."""
    settings = check_tokenizer(folder, "M2M100Tokenizer", "NllbTokenizer", "TokenizersBackend", "PreTrainedTokenizer")
    if settings.get("language_codes", "m2m100") != "m2m100":
        path = folder / "tokenizer_config.json"
        raise unfit(path, "language_codes must be 'm2m100'", settings["language_codes"])
    if (folder / "vocab.json").is_file():
        tokens = by_id(folder / "vocab.json", read_json(folder / "vocab.json"))
        codes = {f"__{code}__": code for code in M2M_100_LANGUAGES.split()}
        tokens += [token for token in codes if token not in tokens]
    elif (folder / "tokenizer.json").is_file():
        path = folder / "tokenizer.json"
        content = read_json(path)
        try:
            added = {token["content"]: token["id"] for token in content["added_tokens"]}
            vocabulary = {**content["model"]["vocab"], **added}
        except (KeyError, TypeError, ValueError) as error:
            raise unfit(path, "it must have model.vocab and added_tokens", type(error).__name__) from error
        tokens = by_id(path, vocabulary)
        codes = {token: token for token in added if token.isidentifier()}
    else:
        raise ModelImportError(
            f"{folder} has no vocabulary: M2M-100 has vocab.json, NLLB has tokenizer.json. Download all files of the "
            "model into the folder."
        )
    return [f">>{codes[token]}<<" if token in codes else token for token in tokens], list(codes.values())
