"""OPUS-MT and other Marian models, from a folder of transformers (`MarianMTModel`) or of a Marian release.

Reference: "Marian: Fast Neural Machine Translation in C++" (Junczys-Dowmunt et al., 2018); "OPUS-MT: Building open
translation services for the World" (Tiedemann and Thottingal, 2020).

- transformers: config.json, model.safetensors or pytorch_model.bin, source.spm, target.spm, vocab.json, and if present
  target_vocab.json, generation_config.json, tokenizer_config.json.
- Marian: decoder.yml, which names the model (.npz) and the vocabularies (.yml, or .spm), source.spm and target.spm.
"""

import numpy as np

from keras_transformer.transfer.importing import ModelImportError, Original, Weights
from keras_transformer.transfer.importing.reading import (
    EMBEDDING,
    MAX_LENGTH_RATIO,
    Arrays,
    activation,
    by_id,
    check_tokenizer,
    check_width,
    checked,
    checked_search,
    index_of,
    loaded,
    parsed_yaml,
    read_bytes,
    read_npz,
    read_vocabulary,
    read_yaml,
    ties_of,
    transformers_architecture,
    transformers_blocks,
    transformers_config,
    transformers_settings,
    transformers_weights,
    unfit,
    untied,
)

# transformers' defaults of settings that an older config.json may lack.
_CONFIG = {
    "normalize_before": False,
    "normalize_embedding": False,
    "add_final_layer_norm": False,
    "static_position_embeddings": True,
}


def read(folder):
    """Reads a folder of either kind; returns a `keras_transformer.transfer.importing.Original`."""
    if (folder / "config.json").is_file():
        return _read_transformers(folder)
    if (folder / "decoder.yml").is_file() or any(folder.glob("*.npz")):
        return _read_marian(folder)
    raise ModelImportError(
        f"{folder} is not an OPUS-MT model: it has neither config.json, as a folder of transformers, nor decoder.yml "
        "and a .npz file, as a Marian release. Download all files of the model into one folder."
    )


# transformers


def _read_transformers(folder):
    config = transformers_config(folder, "marian", **_CONFIG)
    tokenizer = check_tokenizer(folder, "MarianTokenizer")
    languages = tokenizer.get("source_lang"), tokenizer.get("target_lang")
    if not all(isinstance(language, str | None) for language in languages):
        raise unfit(folder / "tokenizer_config.json", "source_lang and target_lang must be text", languages)
    for name in ("normalize_before", "normalize_embedding", "add_final_layer_norm"):
        if config[name]:
            raise unfit(folder / "config.json", f"{name} must be false, as in transformers' Marian", config[name])
    if not config["static_position_embeddings"]:
        raise unfit(folder / "config.json", "positions must be sinusoidal, as in transformers' Marian", "learned ones")
    arrays = Arrays(folder, transformers_weights(folder))
    tied, joint, width = config["tie_word_embeddings"], config["share_encoder_decoder_embeddings"], config["d_model"]
    names = [(f"model.{side}.embed_tokens.weight", "model.shared.weight") for side in ("encoder", "decoder")]
    if tied:  # One matrix has several names, of which the file has one.
        names = [EMBEDDING, EMBEDDING] if joint else [names[0], (names[1][0], "lm_head.weight", names[1][1])]
    embeddings = [arrays.take(*sides, shape=(None, width)) for sides in names]
    shared = (tied and joint) or np.array_equal(*embeddings)
    if shared:
        embeddings[1] = embeddings[0]
    size = len(embeddings[1])
    weights = Weights(
        embeddings=tuple(embeddings),
        output_kernel=None if tied else arrays.take("lm_head.weight", shape=(size, width)),
        output_bias=arrays.take("final_logits_bias", shape=(size,), optional=True),
        positions=None,
        blocks=transformers_blocks(arrays, config),
        norms=None,
    )
    arrays.check_all_used(*EMBEDDING, *(f"model.{side}.embed_positions.weight" for side in ("encoder", "decoder")))
    separate = not (shared or joint)
    vocabularies = [
        read_vocabulary(folder / "vocab.json", len(embeddings[0]) if separate else min(map(len, embeddings)))
    ]
    if separate:
        if not (folder / "target_vocab.json").is_file():
            raise ModelImportError(
                f"{folder} has no target_vocab.json: with share_encoder_decoder_embeddings=false, source and target "
                "have vocabularies of their own. Download it; or copy vocab.json to it, if both have the same tokens."
            )
        vocabularies.append(read_vocabulary(folder / "target_vocab.json", size))
    tokens = vocabularies[0], vocabularies[-1]
    ties = ties_of(shared, tied)
    return Original(
        architecture={**transformers_architecture(folder, config), "tie_embeddings": ties},
        weights=untied(weights, ties),
        tokens=tokens,
        models=tuple((read_bytes(folder / name), str(folder / name)) for name in ("source.spm", "target.spm")),
        unknown=tuple(index_of(side, "<unk>", folder) for side in tokens),
        languages=languages,
        **transformers_settings(folder, config, tokens),
    )


# Marian


def _read_marian(folder):
    decoder = read_yaml(folder / "decoder.yml", optional=True)
    for name in ("models", "vocabs"):
        if not isinstance(decoder.setdefault(name, []), list):
            raise unfit(folder / "decoder.yml", f"{name} must be a list of files", decoder[name])
    notes = []
    model = _named(folder, decoder, "models", "*.npz")
    if len(decoder["models"]) > 1:
        notes.append(f"decoder.yml names an ensemble of {len(decoder['models'])} models; only {model.name} is read.")
    if decoder.get("word-penalty"):
        notes.append(f"word-penalty is not carried over: {decoder['word-penalty']}.")
    vocabularies = [folder / str(name).split("/")[-1] for name in decoder["vocabs"]] or sorted(
        folder.glob("*.vocab.yml")
    )[:1]
    if not vocabularies:
        raise ModelImportError(f"{folder} has no vocabulary: decoder.yml names none, and there is no *.vocab.yml.")
    arrays = Arrays(folder, loaded(model, read_npz))
    config = _marian_config(model, arrays)
    size, intermediate = config["dim-emb"], config["transformer-dim-ffn"]
    pre_norm = _marian_layout(model, config)
    learned = bool(config.get("transformer-train-positions", False))
    embeddings = [arrays.take(f"{side}_Wemb", "Wemb", shape=(None, size)) for side in ("encoder", "decoder")]
    shared, written = embeddings[0] is embeddings[1], len(embeddings[1])
    kernel = arrays.take("decoder_ff_logit_out_Wt", shape=(written, size), optional=True)
    if kernel is None:
        kernel = arrays.take("decoder_ff_logit_out_W", shape=(size, written), optional=True)
        kernel = None if kernel is None else kernel.T
    weights = Weights(
        embeddings=tuple(embeddings),
        output_kernel=kernel,
        output_bias=arrays.take("decoder_ff_logit_out_b", shape=(written,), optional=True),
        positions=arrays.take("Wpos", shape=(None, size)) if learned else None,
        blocks=tuple(
            [_marian_block(arrays, f"{side}_l{i + 1}", pre_norm, size, intermediate) for i in range(config[depth])]
            for side, depth in (("encoder", "enc-depth"), ("decoder", "dec-depth"))
        ),
        norms=tuple(arrays.norm(f"{side}_top", size) for side in ("encoder", "decoder")) if pre_norm else None,
    )
    arrays.check_all_used("special:model.yml")
    read_vocabularies = {path: _marian_vocabulary(path) for path in dict.fromkeys(vocabularies)}
    tokens = read_vocabularies[vocabularies[0]], read_vocabularies[vocabularies[-1]]
    for side, matrix in zip(tokens, embeddings, strict=True):
        if len(side) > len(matrix):
            raise unfit(folder, "the vocabulary must have as many tokens as the embedding has rows", len(side))
    if not shared and tokens[0] is tokens[1]:
        tokens = tokens[0], list(tokens[1])
    files = [path if path.suffix == ".spm" else None for path in (vocabularies[0], vocabularies[-1])]
    files = [own or folder / name for own, name in zip(files, ("source.spm", "target.spm"), strict=True)]
    for file in files:
        if not file.is_file() and file.with_suffix(".bpe").is_file():
            raise ModelImportError(
                f"{file.with_suffix('.bpe')} is a file of subword-nmt: only models with SentencePiece can be imported. "
                "Choose a newer release of the model."
            )
    ties = ties_of(shared, kernel is None)
    return Original(
        architecture={
            "num_layers": config["enc-depth"],
            "num_decoder_layers": config["dec-depth"],
            "num_heads": config["transformer-heads"],
            "hidden_dim": size,
            "intermediate_dim": intermediate,
            "dropout": float(config["transformer-dropout"]),
            "attention_dropout": float(config["transformer-dropout-attention"]),
            "activation": activation(model, config.get("transformer-ffn-activation", "swish")),
            "normalize_first": pre_norm,
            "layer_norm_epsilon": 1e-6,
            "layout": "concatenated",
            # Marian's wavelengths are 10000^(i / (D/2 - 1)), ours w^(2i / D).
            "max_wavelength": float(10000.0 ** (size / (size - 2))),
            "position_type": "learned" if learned else "sinusoidal",
            "max_length": len(weights.positions) if learned else None,
            "scale_embeddings": not learned,
            "tie_embeddings": ties,
            "output_bias": True,
        },
        weights=untied(weights, ties),
        tokens=tokens,
        models=tuple((read_bytes(file), str(file)) for file in files),
        unknown=tuple(index_of(side, "<unk>", folder) for side in tokens),
        end=tuple(index_of(side, "</s>", folder) for side in tokens),
        start=None,
        search=checked_search(
            folder / "decoder.yml",
            {
                "num_beams": decoder.get("beam-size", 6),
                "length_penalty": decoder.get("normalize", 0.0),
                "length_penalty_type": "power",
                "max_length_ratio": decoder.get("max-length-factor", MAX_LENGTH_RATIO),
                "allow_unknown": decoder.get("allow-unk", False),
            },
        ),
        max_length=len(weights.positions) if learned else 512,
        notes=tuple(notes),
    )


_MARIAN_SIZES = ("dim-emb", "enc-depth", "dec-depth", "transformer-heads", "transformer-dim-ffn")
_MARIAN_DEFAULTS = {"transformer-dropout": 0.1, "transformer-dropout-attention": 0.0}
# What a Marian model must be: the option, and the values that this package expresses.
_MARIAN = {
    "type": ("transformer",),
    "transformer-decoder-autoreg": ("self-attention",),
    "transformer-no-projection": (False,),
    "transformer-tied-layers": ([],),
    "transformer-ffn-depth": (2,),
    "transformer-decoder-ffn-depth": (0, 2),
    "transformer-postprocess-emb": ("d", ""),
    "lemma-dim-emb": (0,),
    "right-left": (False,),
}


def _named(folder, decoder, key, pattern):
    """The first file that decoder.yml names, or the only one of a pattern."""
    names = decoder[key] or [path.name for path in sorted(folder.glob(pattern))]
    path = folder / str(names[0]).split("/")[-1]
    if not path.is_file():
        raise ModelImportError(f"{path} is named in decoder.yml, but is not a file.")
    return path


def _marian_config(model, arrays):
    """The options that the model was trained with, which Marian stores in it."""
    text = bytes(arrays.take("special:model.yml").astype("uint8")).rstrip(b"\0")
    config = checked(model, parsed_yaml(model, text), _MARIAN_SIZES, _MARIAN_DEFAULTS)
    if config.get("transformer-decoder-autoreg") == "rnn":
        raise unfit(
            model,
            "the decoder must have self-attention",
            f"a recurrent one (transformer-decoder-autoreg: rnn, dec-cell: {config.get('dec-cell')}), "
            "as in the students of Firefox and Bergamot",
        )
    for name, values in _MARIAN.items():
        if config.get(name, values[0]) not in values:
            raise unfit(model, f"the option {name} must be one of {values}", config[name])
    check_width(model, "dim-emb", config["dim-emb"], config["transformer-heads"])
    if config.get("transformer-decoder-dim-ffn", 0) not in (0, config["transformer-dim-ffn"]):
        raise unfit(
            model, "encoder and decoder must have the same transformer-dim-ffn", config["transformer-decoder-dim-ffn"]
        )
    return config


def _marian_layout(model, config):
    """Whether the model is pre-norm."""
    steps = tuple(config.get(f"transformer-{name}") or "" for name in ("preprocess", "postprocess", "postprocess-top"))
    known = {("", "dan", ""): False, ("n", "da", "n"): True}
    if steps not in known:
        raise unfit(
            model,
            "transformer-preprocess, -postprocess and -postprocess-top must be '', 'dan' and '' (post-norm) or 'n', "
            "'da' and 'n' (pre-norm)",
            steps,
        )
    return known[steps]


def _marian_block(arrays, name, pre_norm, width, intermediate):
    norm = "_pre" if pre_norm else ""

    def dense(layer, x, inputs=width, outputs=width):
        return arrays.take(f"{name}_{layer}_W{x}", shape=(inputs, outputs)), arrays.take(
            f"{name}_{layer}_b{x}", shape=(outputs,)
        )

    def attention(kind):
        return [dense(kind, x) for x in "qkvo"]

    block = {
        "self_attention": attention("self"),
        "self_attention_norm": arrays.norm(f"{name}_self_Wo", width, norm),
        "feed_forward": [dense("ffn", 1, width, intermediate), dense("ffn", 2, intermediate)],
        "feed_forward_norm": arrays.norm(f"{name}_ffn_ffn", width, norm),
    }
    if name.startswith("decoder"):
        block["cross_attention"] = attention("context")
        block["cross_attention_norm"] = arrays.norm(f"{name}_context_Wo", width, norm)
    return block


def _marian_vocabulary(path):
    """Tokens by id, from a file of tokens and ids (.yml) or a SentencePiece model (.spm)."""
    if path.suffix == ".spm":
        from keras_transformer.transfer.importing.vocabulary import parse, pieces_of

        return [piece for piece, _, _ in pieces_of(parse(read_bytes(path), str(path)))]
    if path.suffix not in (".yml", ".yaml"):
        raise unfit(path, "a vocabulary must be a .yml or .spm file without factors", path.name)
    return by_id(path, read_yaml(path, strings=True))
