"""OPUS-MT and other Marian models, from a folder of transformers (`MarianMTModel`) or of a Marian release.

Reference: "Marian: Fast Neural Machine Translation in C++" (Junczys-Dowmunt et al., 2018); "OPUS-MT: Building open
translation services for the World" (Tiedemann and Thottingal, 2020).

- transformers: config.json, model.safetensors or pytorch_model.bin, source.spm, target.spm, vocab.json, and if present
  target_vocab.json, generation_config.json, tokenizer_config.json.
- Marian: decoder.yml, which names the model (.npz) and the vocabularies (.yml, or .spm), source.spm and target.spm.
"""

import functools
import zipfile
from pathlib import Path

import numpy as np

from keras_transformer.transfer.importing import ModelImportError, Original, Weights
from keras_transformer.transfer.importing.arrays import Arrays, Lazy
from keras_transformer.transfer.importing.reading import (
    EMBEDDING,
    MAX_LENGTH_RATIO,
    SIDES,
    activation,
    by_id,
    check_tokenizer,
    check_width,
    checked,
    checked_search,
    damaged,
    index_of,
    loaded,
    max_wavelength,
    missing_package,
    read_bytes,
    read_vocabulary,
    transformers_architecture,
    transformers_blocks,
    transformers_config,
    transformers_settings,
    transformers_weights,
    unfit,
)

# transformers' defaults of settings that an older config.json may lack.
_CONFIG = {
    "normalize_before": False,
    "normalize_embedding": False,
    "add_final_layer_norm": False,
    "static_position_embeddings": True,
}


def read(folder: Path) -> Original:
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
    names = [(f"model.{side}.embed_tokens.weight", "model.shared.weight") for side in SIDES]
    if tied:  # One matrix has several names, of which the file has one.
        names = [EMBEDDING, EMBEDDING] if joint else [names[0], (names[1][0], "lm_head.weight", names[1][1])]
    source, target = (arrays.take(*alternatives, shape=(None, width)) for alternatives in names)
    shared = (tied and joint) or (source.shape == target.shape and np.array_equal(source(), target()))
    size = target.shape[0]
    weights = Weights(
        embeddings=(source, source if shared else target),
        output_kernel=None if tied else arrays.take("lm_head.weight", shape=(size, width)),
        output_bias=arrays.take("final_logits_bias", shape=(size,), optional=True),
        positions=None,
        blocks=transformers_blocks(arrays, config),
        norms=None,
    )
    arrays.check_all_used(*EMBEDDING, *(f"model.{side}.embed_positions.weight" for side in SIDES))
    if shared or joint:
        tokens = (read_vocabulary(folder / "vocab.json", min(source.shape[0], size)),) * 2
    else:
        if not (folder / "target_vocab.json").is_file():
            raise ModelImportError(
                f"{folder} has no target_vocab.json: with share_encoder_decoder_embeddings=false, source and target "
                "have vocabularies of their own. Download it; or copy vocab.json to it, if both have the same tokens."
            )
        files = {"vocab.json": source.shape[0], "target_vocab.json": size}
        tokens = tuple(read_vocabulary(folder / name, rows) for name, rows in files.items())
    return Original(
        architecture={**transformers_architecture(folder, config), "tie_embeddings": _ties(shared, tied)},
        weights=weights,
        tokens=tokens,
        models=tuple((read_bytes(folder / name), str(folder / name)) for name in ("source.spm", "target.spm")),
        unknown=tuple(index_of(side, "<unk>", folder) for side in tokens),
        languages=languages,
        **transformers_settings(folder, config, tokens),
    )


def _ties(shared, tied):
    """`tie_embeddings`: whether both sides have one embedding, and whether that of the target is also the output's."""
    return "none" if not tied else "all" if shared else "target"


# Marian


def _read_marian(folder):
    decoder = _read_yaml(folder / "decoder.yml") if (folder / "decoder.yml").is_file() else {}
    for name in ("models", "vocabs"):
        if not isinstance(decoder.setdefault(name, []), list):
            raise unfit(folder / "decoder.yml", f"{name} must be a list of files", decoder[name])
    model, vocabularies = _marian_files(folder, decoder)
    notes = []
    if len(decoder["models"]) > 1:
        notes.append(f"decoder.yml names an ensemble of {len(decoder['models'])} models; only {model.name} is read.")
    if decoder.get("word-penalty"):
        notes.append(f"word-penalty is not carried over: {decoder['word-penalty']}.")
    arrays = Arrays(folder, loaded(model, _read_npz))
    config = _marian_config(model, arrays)
    architecture = _marian_architecture(model, config)
    weights = _marian_weights(arrays, architecture)
    shared = weights.embeddings[0] is weights.embeddings[1]
    tokens = [_marian_vocabulary(path) for path in dict.fromkeys(vocabularies)]
    for vocabulary, matrix in zip((tokens[0], tokens[-1]), weights.embeddings, strict=True):
        if len(vocabulary) > matrix.shape[0]:
            raise unfit(folder, "the vocabulary must have as many tokens as the embedding has rows", len(vocabulary))
    if not shared and len(tokens) == 1:
        tokens.append(list(tokens[0]))
    tokens = tokens[0], tokens[-1]
    max_length = None if weights.positions is None else weights.positions.shape[0]
    search = {
        "num_beams": decoder.get("beam-size", 6),
        "length_penalty": decoder.get("normalize", 0.0),
        "length_penalty_type": "power",
        "max_length_ratio": decoder.get("max-length-factor", MAX_LENGTH_RATIO),
        "allow_unknown": decoder.get("allow-unk", False),
    }
    ties = _ties(shared, weights.output_kernel is None)
    return Original(
        architecture={**architecture, "max_length": max_length, "tie_embeddings": ties},
        weights=weights,
        tokens=tokens,
        models=tuple((read_bytes(file), str(file)) for file in _marian_tokenizers(folder, vocabularies)),
        unknown=tuple(index_of(side, "<unk>", folder) for side in tokens),
        end=tuple(index_of(side, "</s>", folder) for side in tokens),
        start=None,
        search=checked_search(folder / "decoder.yml", search),
        max_length=max_length or 512,
        notes=tuple(notes),
    )


def _marian_files(folder, decoder):
    """The model, and the vocabularies of source and target: those that decoder.yml names, or the only ones."""
    models = decoder["models"] or sorted(folder.glob("*.npz"))
    if not models:
        raise ModelImportError(f"{folder} has no model: decoder.yml names none, and there is no .npz file.")
    vocabularies = decoder["vocabs"] or sorted(folder.glob("*.vocab.yml"))[:1]
    model, *vocabularies = (folder / str(name).split("/")[-1] for name in (models[0], *vocabularies))
    if not model.is_file():
        raise ModelImportError(f"{model} is named in decoder.yml, but is not a file.")
    if not vocabularies:
        raise ModelImportError(f"{folder} has no vocabulary: decoder.yml names none, and there is no *.vocab.yml.")
    return model, (vocabularies[0], vocabularies[-1])


def _marian_tokenizers(folder, vocabularies):
    """The SentencePiece files of source and target."""
    for path, name in zip(vocabularies, ("source.spm", "target.spm"), strict=True):
        file = path if path.suffix == ".spm" else folder / name
        if not file.is_file() and file.with_suffix(".bpe").is_file():
            raise ModelImportError(
                f"{file.with_suffix('.bpe')} is a file of subword-nmt: only models with SentencePiece can be imported. "
                "Choose a newer release of the model."
            )
        yield file


def _marian_architecture(model, config):
    """The arguments of `Transformer`, without those that depend on the weights."""
    learned = bool(config.get("transformer-train-positions", False))
    return {
        "num_layers": config["enc-depth"],
        "num_decoder_layers": config["dec-depth"],
        "num_heads": config["transformer-heads"],
        "hidden_dim": config["dim-emb"],
        "intermediate_dim": config["transformer-dim-ffn"],
        "dropout": float(config["transformer-dropout"]),
        "attention_dropout": float(config["transformer-dropout-attention"]),
        "activation": activation(model, config.get("transformer-ffn-activation", "swish")),
        "normalize_first": _is_pre_norm(model, config),
        "layer_norm_epsilon": 1e-6,
        "layout": "concatenated",
        "max_wavelength": max_wavelength(config["dim-emb"]),
        "position_type": "learned" if learned else "sinusoidal",
        "scale_embeddings": not learned,
        "output_bias": True,
    }


def _marian_weights(arrays, architecture):
    size, pre_norm = architecture["hidden_dim"], architecture["normalize_first"]
    embeddings = tuple(arrays.take(f"{side}_Wemb", "Wemb", shape=(None, size)) for side in SIDES)
    written = embeddings[1].shape[0]
    kernel = arrays.take("decoder_ff_logit_out_Wt", shape=(written, size), optional=True)
    if kernel is None:
        kernel = arrays.take("decoder_ff_logit_out_W", shape=(size, written), optional=True)
        kernel = None if kernel is None else kernel.T
    learned = architecture["position_type"] == "learned"
    depths = architecture["num_layers"], architecture["num_decoder_layers"]
    weights = Weights(
        embeddings=embeddings,
        output_kernel=kernel,
        output_bias=arrays.take("decoder_ff_logit_out_b", shape=(written,), optional=True),
        positions=arrays.take("Wpos", shape=(None, size)) if learned else None,
        blocks=tuple(
            [_marian_block(arrays, f"{side}_l{i + 1}", architecture) for i in range(depth)]
            for side, depth in zip(SIDES, depths, strict=True)
        ),
        norms=tuple(_marian_norm(arrays, f"{side}_top", size) for side in SIDES) if pre_norm else None,
    )
    arrays.check_all_used("special:model.yml")
    return weights


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


def _marian_config(model, arrays):
    """The options that the model was trained with, which Marian stores in it."""
    text = bytes(arrays.take("special:model.yml")().astype("uint8")).rstrip(b"\0")
    config = checked(model, _parsed_yaml(model, text), _MARIAN_SIZES, _MARIAN_DEFAULTS)
    if config.get("transformer-decoder-autoreg") == "rnn":
        cell = f"a recurrent one (transformer-decoder-autoreg: rnn, dec-cell: {config.get('dec-cell')})"
        received = f"{cell}, as in the students of Firefox and Bergamot"
        raise unfit(model, "the decoder must have self-attention", received)
    for name, values in _MARIAN.items():
        if config.get(name, values[0]) not in values:
            raise unfit(model, f"the option {name} must be one of {values}", config[name])
    check_width(model, "dim-emb", config["dim-emb"], config["transformer-heads"])
    intermediate = config.get("transformer-decoder-dim-ffn", 0)
    if intermediate not in (0, config["transformer-dim-ffn"]):
        raise unfit(model, "encoder and decoder must have the same transformer-dim-ffn", intermediate)
    return config


def _is_pre_norm(model, config):
    steps = tuple(config.get(f"transformer-{name}") or "" for name in ("preprocess", "postprocess", "postprocess-top"))
    known = {("", "dan", ""): False, ("n", "da", "n"): True}
    if steps not in known:
        rule = "must be '', 'dan' and '' (post-norm) or 'n', 'da' and 'n' (pre-norm)"
        raise unfit(model, f"transformer-preprocess, -postprocess and -postprocess-top {rule}", steps)
    return known[steps]


def _marian_block(arrays, name, architecture):
    width, intermediate = architecture["hidden_dim"], architecture["intermediate_dim"]
    suffix = "_pre" if architecture["normalize_first"] else ""

    def dense(layer, part, inputs=width, outputs=width):
        matrix = arrays.take(f"{name}_{layer}_W{part}", shape=(inputs, outputs))
        return matrix, arrays.take(f"{name}_{layer}_b{part}", shape=(outputs,))

    block = {
        "self_attention": [dense("self", part) for part in "qkvo"],
        "self_attention_norm": _marian_norm(arrays, f"{name}_self_Wo", width, suffix),
        "feed_forward": [dense("ffn", 1, width, intermediate), dense("ffn", 2, intermediate)],
        "feed_forward_norm": _marian_norm(arrays, f"{name}_ffn_ffn", width, suffix),
    }
    if name.startswith("decoder"):
        block["cross_attention"] = [dense("context", part) for part in "qkvo"]
        block["cross_attention_norm"] = _marian_norm(arrays, f"{name}_context_Wo", width, suffix)
    return block


def _marian_norm(arrays, name, width, suffix=""):
    names = f"{name}_ln_scale", f"{name}_ln_bias"
    return [arrays.take(name + suffix, name, shape=(width,)) for name in names]


def _marian_vocabulary(path):
    """Tokens by id, from a file of tokens and ids (.yml) or a SentencePiece model (.spm)."""
    if path.suffix == ".spm":
        from keras_transformer.transfer.importing.vocabulary import parse, pieces_of

        return [piece for piece, _, _ in pieces_of(parse(read_bytes(path), str(path)))]
    if path.suffix not in (".yml", ".yaml"):
        raise unfit(path, "a vocabulary must be a .yml or .spm file without factors", path.name)
    return by_id(path, _read_yaml(path, strings=True))


def _read_npz(path):
    """The arrays of a .npz file; each is read when it is needed."""

    def read(name, path):
        with np.load(path, allow_pickle=False) as file:
            return file[name]

    arrays = {}
    with zipfile.ZipFile(path) as archive:
        for member in archive.namelist():
            info = archive.getinfo(member)
            if info.file_size > max(2**28, 100 * info.compress_size):
                raise ValueError(f"{member} would be {info.file_size:,} bytes, of {info.compress_size:,} in the file")
            with archive.open(member) as file:
                header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
                shape, _, dtype = header[np.lib.format.read_magic(file)](file)
            if dtype.hasobject:
                raise ValueError("it holds objects of Python, whose reading may execute code")
            name = member.removesuffix(".npy")
            arrays[name] = Lazy(shape, functools.partial(loaded, path, functools.partial(read, name)))
    return arrays


def _read_yaml(path, strings=False):
    return _parsed_yaml(path, read_bytes(path), strings)


def _parsed_yaml(path, content, strings=False):
    """A YAML mapping; with `strings`, without conversion to numbers and booleans."""
    try:
        import yaml
    except ImportError as error:
        raise missing_package("pyyaml") from error
    slow, fast = ("BaseLoader", "CBaseLoader") if strings else ("SafeLoader", "CSafeLoader")
    try:
        content = yaml.load(content, getattr(yaml, fast, None) or getattr(yaml, slow))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise damaged(path, error) from error
    if not isinstance(content, dict):
        raise unfit(path, "it must be a YAML mapping", type(content).__name__)
    return content
