"""OPUS-MT and other Marian models, from a folder of transformers (`MarianMTModel`) or of a Marian release.

Reference: "Marian: Fast Neural Machine Translation in C++" (Junczys-Dowmunt et al., 2018); "OPUS-MT: Building open
translation services for the World" (Tiedemann and Thottingal, 2020).

- transformers: config.json, model.safetensors or pytorch_model.bin, source.spm, target.spm, vocab.json, and if present
  target_vocab.json, generation_config.json, tokenizer_config.json.
- Marian: decoder.yml, which names the model (.npz) and the vocabularies (.yml, or .spm), source.spm and target.spm.

Reading executes nothing: safetensors, `torch.load(weights_only=True)`, NumPy without pickle, YAML without tags.
"""

import json

import numpy as np

from keras_transformer.importing import ModelImportError, Original, Weights

# transformers' defaults of the settings that an older config.json may lack.
_CONFIG = {
    "activation_function": "gelu",
    "attention_dropout": 0.0,
    "dropout": 0.1,
    "scale_embedding": False,
    "share_encoder_decoder_embeddings": True,
    "tie_word_embeddings": True,
    "max_position_embeddings": 1024,
    "normalize_before": False,
    "normalize_embedding": False,
    "add_final_layer_norm": False,
    "static_position_embeddings": True,
}
_ACTIVATIONS = {"relu": "relu", "swish": "silu", "silu": "silu", "gelu": "gelu"}
# A translation has at most this many tokens per source token, as in Marian (`max-length-factor`).
_MAX_LENGTH_RATIO = 3.0


def read(folder):
    """Reads a folder of either kind; returns a `keras_transformer.importing.Original`."""
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
    config = {**_CONFIG, **_json(folder / "config.json")}
    if config.get("model_type") != "marian":
        raise _unfit(folder / "config.json", "model_type must be 'marian'", config.get("model_type"))
    for name in ("normalize_before", "normalize_embedding", "add_final_layer_norm"):
        if config[name]:
            raise _unfit(folder / "config.json", f"{name} must be false, as in transformers' Marian", config[name])
    if not config["static_position_embeddings"]:
        raise _unfit(folder / "config.json", "positions must be sinusoidal, as in transformers' Marian", "learned ones")
    for name in ("ffn_dim", "attention_heads"):
        sides = config[f"encoder_{name}"], config[f"decoder_{name}"]
        if sides[0] != sides[1]:
            raise _unfit(folder / "config.json", f"encoder and decoder must have the same {name}", sides)
    arrays = _Arrays(folder, _transformers_weights(folder))
    tied = config["tie_word_embeddings"]
    embeddings = [
        arrays.take(f"model.{side}.embed_tokens.weight", "model.shared.weight") for side in ("encoder", "decoder")
    ]
    shared = tied and config["share_encoder_decoder_embeddings"]  # Else transformers reads both from the file.
    if shared or np.array_equal(*embeddings):
        shared, embeddings[1] = True, embeddings[0]
    output_kernel = None if tied else arrays.take("lm_head.weight")
    weights = Weights(
        embeddings=tuple(embeddings),
        output_kernel=output_kernel,
        output_bias=arrays.take("final_logits_bias", optional=True),
        positions=None,
        blocks=tuple(
            [_transformers_block(arrays, f"model.{side}.layers.{i}") for i in range(config[f"{side}_layers"])]
            for side in ("encoder", "decoder")
        ),
        norms=None,
    )
    arrays.check_all_used(
        "lm_head.weight",
        "model.shared.weight",
        *(f"model.{side}.embed_{kind}.weight" for side in ("encoder", "decoder") for kind in ("tokens", "positions")),
    )
    vocabularies = [_vocabulary(folder / "vocab.json", len(embeddings[0]))]
    if (folder / "target_vocab.json").is_file() and not shared:
        vocabularies.append(_vocabulary(folder / "target_vocab.json", len(embeddings[1])))
    tokens = vocabularies[0], vocabularies[-1]
    tokenizer = _json(folder / "tokenizer_config.json", optional=True)
    generation = {**_generation(config), **_generation(_json(folder / "generation_config.json", optional=True))}
    start = config.get("decoder_start_token_id", config.get("pad_token_id"))
    if not isinstance(start, int) or not 0 <= start < len(tokens[1]):
        raise _unfit(folder / "config.json", "decoder_start_token_id must be an id of the vocabulary", start)
    return Original(
        architecture={
            "num_layers": config["encoder_layers"],
            "num_decoder_layers": config["decoder_layers"],
            "num_heads": config["encoder_attention_heads"],
            "hidden_dim": config["d_model"],
            "intermediate_dim": config["encoder_ffn_dim"],
            "dropout": float(config["dropout"]),
            "attention_dropout": float(config["attention_dropout"]),
            "activation": _activation(folder / "config.json", config["activation_function"]),
            "layer_norm_epsilon": 1e-5,  # torch's default; transformers leaves it as it is.
            "layout": "concatenated",
            "scale_embeddings": bool(config["scale_embedding"]),
            "tie_embeddings": _ties(shared, tied),
            "output_bias": True,
        },
        weights=_untied(weights, _ties(shared, tied)),
        tokens=tokens,
        models=tuple((_bytes(folder / name), str(folder / name)) for name in ("source.spm", "target.spm")),
        unknown=tuple(_index(side, "<unk>", folder) for side in tokens),
        end=tuple(_index(side, "</s>", folder) for side in tokens),
        start=start,
        search=_search(generation),
        max_length=min(int(generation.get("max_length") or 512), config["max_position_embeddings"]),
        languages=(tokenizer.get("source_lang"), tokenizer.get("target_lang")),
        notes=_left_out(generation, start),
    )


def _left_out(generation, start):
    """Sentences about settings of transformers' search that are not carried over."""
    notes = []
    if generation.get("bad_words_ids", [[start]]) != [[start]]:
        notes.append(f"bad_words_ids is not carried over: {generation['bad_words_ids']}.")
    if generation.get("forced_bos_token_id") is not None:
        notes.append(f"forced_bos_token_id is not carried over: {generation['forced_bos_token_id']}; use a prefix.")
    if generation.get("early_stopping"):
        notes.append(f"early_stopping={generation['early_stopping']!r} is not carried over: the search ends exactly.")
    return tuple(notes)


def _transformers_weights(folder):
    file, pickle = folder / "model.safetensors", folder / "pytorch_model.bin"
    if file.is_file():
        try:
            from safetensors.numpy import load_file
        except ImportError as error:
            raise _missing_package("safetensors") from error
        return _loaded(file, load_file)
    if pickle.is_file():
        try:
            import torch
        except ImportError as error:
            raise ModelImportError(
                f"{pickle.name} is a file of PyTorch. Install it: pip install torch. Or save the model with "
                "transformers as model.safetensors."
            ) from error
        state = _loaded(pickle, lambda file: torch.load(file, map_location="cpu", weights_only=True))
        if not isinstance(state, dict) or not all(isinstance(x, torch.Tensor) for x in state.values()):
            raise _unfit(pickle, "it must hold tensors by name", type(state).__name__)
        return {name: tensor.float().numpy() for name, tensor in state.items()}
    raise ModelImportError(f"{folder} has no weights: neither model.safetensors nor pytorch_model.bin is a file.")


def _transformers_block(arrays, name):
    def dense(layer):
        return arrays.take(f"{name}.{layer}.weight").T, arrays.take(f"{name}.{layer}.bias")

    def norm(layer):
        return arrays.take(f"{name}.{layer}.weight"), arrays.take(f"{name}.{layer}.bias")

    def attention(layer):
        return [dense(f"{layer}.{part}_proj") for part in ("q", "k", "v", "out")]

    block = {
        "self_attention": attention("self_attn"),
        "self_attention_norm": norm("self_attn_layer_norm"),
        "feed_forward": [dense("fc1"), dense("fc2")],
        "feed_forward_norm": norm("final_layer_norm"),
    }
    if ".decoder." in name:
        block["cross_attention"] = attention("encoder_attn")
        block["cross_attention_norm"] = norm("encoder_attn_layer_norm")
    return block


def _generation(config):
    """The settings of a search in config.json or generation_config.json that are not null."""
    names = ("num_beams", "max_length", "length_penalty", "no_repeat_ngram_size", "repetition_penalty")
    names += ("bad_words_ids", "forced_bos_token_id", "early_stopping")
    return {name: config[name] for name in names if config.get(name) is not None}


def _search(generation):
    # transformers divides logits that are positive and multiplies negative ones; ours multiplies log probabilities.
    penalty = float(generation.get("repetition_penalty", 1.0))
    return {
        "num_beams": int(generation.get("num_beams", 1)),
        "length_penalty": float(generation.get("length_penalty", 1.0)),
        "length_penalty_type": "power",
        "max_length": int(generation.get("max_length", 512)),
        "max_length_ratio": _MAX_LENGTH_RATIO,
        "no_repeat_ngram_size": int(generation.get("no_repeat_ngram_size", 0)),
        "repetition_penalty": penalty,
    }


# Marian


def _read_marian(folder):
    decoder = _yaml(folder / "decoder.yml", optional=True)
    notes = []
    model = _named(folder, decoder, "models", "*.npz")
    if len(decoder.get("models", [])) > 1:
        notes.append(f"decoder.yml names an ensemble of {len(decoder['models'])} models; only {model.name} is read.")
    if decoder.get("word-penalty"):
        notes.append(f"word-penalty is not carried over: {decoder['word-penalty']}.")
    vocabularies = [folder / str(name).split("/")[-1] for name in decoder.get("vocabs", [])] or sorted(
        folder.glob("*.vocab.yml")
    )[:1]
    if not vocabularies:
        raise ModelImportError(f"{folder} has no vocabulary: decoder.yml names none, and there is no *.vocab.yml.")
    arrays = _Arrays(folder, _loaded(model, _npz))
    config = _marian_config(model, arrays)
    size = config["dim-emb"]
    pre_norm = _marian_layout(model, config)
    learned = bool(config.get("transformer-train-positions", False))
    embeddings = [arrays.take(f"{side}_Wemb", "Wemb") for side in ("encoder", "decoder")]
    shared = embeddings[0] is embeddings[1]
    kernel = arrays.take("decoder_ff_logit_out_Wt", optional=True)
    if kernel is None:
        kernel = arrays.take("decoder_ff_logit_out_W", optional=True)
        kernel = None if kernel is None else kernel.T
    weights = Weights(
        embeddings=tuple(embeddings),
        output_kernel=kernel,
        output_bias=arrays.take("decoder_ff_logit_out_b", optional=True),
        positions=arrays.take("Wpos") if learned else None,
        blocks=tuple(
            [_marian_block(arrays, f"{side}_l{i + 1}", pre_norm) for i in range(config[depth])]
            for side, depth in (("encoder", "enc-depth"), ("decoder", "dec-depth"))
        ),
        norms=tuple(arrays.norm(f"{side}_top") for side in ("encoder", "decoder")) if pre_norm else None,
    )
    arrays.check_all_used("special:model.yml")
    read_vocabularies = {path: _marian_vocabulary(path) for path in dict.fromkeys(vocabularies)}
    tokens = read_vocabularies[vocabularies[0]], read_vocabularies[vocabularies[-1]]
    for side, matrix in zip(tokens, embeddings, strict=True):
        if len(side) > len(matrix):
            raise _unfit(folder, "the vocabulary must have as many tokens as the embedding has rows", len(side))
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
    ties = _ties(shared, kernel is None)
    return Original(
        architecture={
            "num_layers": config["enc-depth"],
            "num_decoder_layers": config["dec-depth"],
            "num_heads": config["transformer-heads"],
            "hidden_dim": size,
            "intermediate_dim": config["transformer-dim-ffn"],
            "dropout": float(config.get("transformer-dropout", 0.1)),
            "attention_dropout": float(config.get("transformer-dropout-attention", 0.0)),
            "activation": _activation(model, config.get("transformer-ffn-activation", "swish")),
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
        weights=_untied(weights, ties),
        tokens=tokens,
        models=tuple((_bytes(file), str(file)) for file in files),
        unknown=tuple(_index(side, "<unk>", folder) for side in tokens),
        end=tuple(_index(side, "</s>", folder) for side in tokens),
        start=None,
        search={
            "num_beams": int(decoder.get("beam-size", 6)),
            "length_penalty": float(decoder.get("normalize", 0.0)),
            "length_penalty_type": "power",
            "max_length_ratio": float(decoder.get("max-length-factor", _MAX_LENGTH_RATIO)),
            "allow_unknown": bool(decoder.get("allow-unk", False)),
        },
        max_length=len(weights.positions) if learned else 512,
        notes=tuple(notes),
    )


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
    text = bytes(arrays.take("special:model.yml").astype("uint8")).rstrip(b"\0")
    config = _parsed_yaml(model, text)
    if config.get("transformer-decoder-autoreg") == "rnn":
        raise _unfit(
            model,
            "the decoder must have self-attention",
            f"a recurrent one (transformer-decoder-autoreg: rnn, dec-cell: {config.get('dec-cell')}), "
            "as in the students of Firefox and Bergamot",
        )
    for name, values in _MARIAN.items():
        if config.get(name, values[0]) not in values:
            raise _unfit(model, f"the option {name} must be one of {values}", config[name])
    if config.get("transformer-decoder-dim-ffn", 0) not in (0, config["transformer-dim-ffn"]):
        raise _unfit(
            model, "encoder and decoder must have the same transformer-dim-ffn", config["transformer-decoder-dim-ffn"]
        )
    return config


def _marian_layout(model, config):
    """Whether the model is pre-norm."""
    steps = tuple(config.get(f"transformer-{name}") or "" for name in ("preprocess", "postprocess", "postprocess-top"))
    known = {("", "dan", ""): False, ("n", "da", "n"): True}
    if steps not in known:
        raise _unfit(
            model,
            "transformer-preprocess, -postprocess and -postprocess-top must be '', 'dan' and '' (post-norm) or 'n', "
            "'da' and 'n' (pre-norm)",
            steps,
        )
    return known[steps]


def _marian_block(arrays, name, pre_norm):
    norm = "_pre" if pre_norm else ""

    def attention(kind):
        return [(arrays.take(f"{name}_{kind}_W{x}"), arrays.take(f"{name}_{kind}_b{x}")) for x in "qkvo"]

    block = {
        "self_attention": attention("self"),
        "self_attention_norm": arrays.norm(f"{name}_self_Wo", norm),
        "feed_forward": [(arrays.take(f"{name}_ffn_W{x}"), arrays.take(f"{name}_ffn_b{x}")) for x in "12"],
        "feed_forward_norm": arrays.norm(f"{name}_ffn_ffn", norm),
    }
    if name.startswith("decoder"):
        block["cross_attention"] = attention("context")
        block["cross_attention_norm"] = arrays.norm(f"{name}_context_Wo", norm)
    return block


def _marian_vocabulary(path):
    """Tokens by id, from a file of tokens and ids (.yml) or a SentencePiece model (.spm)."""
    if path.suffix == ".spm":
        from keras_transformer.importing.vocabulary import parse, pieces_of

        return [piece for piece, _, _ in pieces_of(parse(_bytes(path), str(path)))]
    if path.suffix not in (".yml", ".yaml"):
        raise _unfit(path, "a vocabulary must be a .yml or .spm file without factors", path.name)
    return _by_id(path, {token: int(i) for token, i in _yaml(path, strings=True).items()})


# Both


class _Arrays:
    """The arrays of a file of weights, by name; it knows which were taken."""

    def __init__(self, folder, arrays):
        self.folder, self.arrays, self.taken = folder, arrays, {}

    def take(self, *names, optional=False):
        """The first of the named arrays that exists, float32; the same object if it is taken twice."""
        for name in names:
            if name in self.taken:
                return self.taken[name]
            if name in self.arrays:
                array = np.asarray(self.arrays[name])
                floats = array.dtype.kind == "f" or array.dtype.name == "bfloat16"
                self.taken[name] = array.astype("float32") if floats else array
                return self.taken[name]
        if optional:
            return None
        raise ModelImportError(
            f"The weights in {self.folder} lack {names[-1]}: the file is damaged, or of another model."
        )

    def norm(self, name, suffix=""):
        return self.take(f"{name}_ln_scale{suffix}", f"{name}_ln_scale"), self.take(
            f"{name}_ln_bias{suffix}", f"{name}_ln_bias"
        )

    def check_all_used(self, *known):
        """Raises a ModelImportError if there are arrays that were not taken, except the known ones."""
        left = sorted(set(self.arrays) - set(self.taken) - set(known))
        if left:
            more = f" and {len(left) - 3} more" if len(left) > 3 else ""
            raise ModelImportError(
                f"The model in {self.folder} has weights that this package has no place for: {', '.join(left[:3])}"
                f"{more}. It is of another architecture."
            )


def _ties(shared, tied):
    return "none" if not tied else "all" if shared else "target"


def _untied(weights, ties):
    """The weights with a matrix for the output projection, if the model has one of its own."""
    if ties != "none" or weights.output_kernel is not None:
        return weights
    return weights._replace(output_kernel=weights.embeddings[1])


def _activation(file, name):
    if name not in _ACTIVATIONS:
        raise _unfit(file, f"the activation must be one of {tuple(_ACTIVATIONS)}", name)
    return _ACTIVATIONS[name]


def _vocabulary(path, size):
    tokens = _by_id(path, _json(path))
    if len(tokens) > size:
        raise _unfit(path, f"it must have at most {size:,} tokens, the rows of the embedding", f"{len(tokens):,}")
    return tokens


def _by_id(path, ids):
    """The tokens of a dict of ids in the order of their ids."""
    if not ids or sorted(ids.values()) != list(range(len(ids))):
        raise _unfit(path, "a vocabulary must have the ids 0, 1, 2, ... once each", f"{len(ids):,} tokens")
    return sorted(ids, key=ids.get)


def _index(tokens, token, folder):
    if token not in tokens:
        raise ModelImportError(f"The vocabulary in {folder} must have the token {token!r}.")
    return tokens.index(token)


def _named(folder, decoder, key, pattern):
    """The first file that decoder.yml names, or the only one of a pattern."""
    names = decoder.get(key) or [path.name for path in sorted(folder.glob(pattern))]
    path = folder / str(names[0]).split("/")[-1]
    if not path.is_file():
        raise ModelImportError(f"{path} is named in decoder.yml, but is not a file.")
    return path


def _npz(path):
    with np.load(path, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def _bytes(path):
    if not path.is_file():
        raise ModelImportError(f"{path.parent} has no {path.name}. Download all files of the model into one folder.")
    return path.read_bytes()


def _json(path, optional=False):
    """A JSON object in a file."""
    if optional and not path.is_file():
        return {}
    try:
        content = json.loads(_bytes(path))
    except ValueError as error:
        raise _damaged(path, error) from error
    if not isinstance(content, dict):
        raise _unfit(path, "it must be a JSON object", type(content).__name__)
    return content


def _yaml(path, optional=False, strings=False):
    """A YAML mapping in a file; with `strings`, without conversion to numbers and booleans."""
    if optional and not path.is_file():
        return {}
    return _parsed_yaml(path, _bytes(path), strings)


def _parsed_yaml(path, content, strings=False):
    try:
        import yaml
    except ImportError as error:
        raise _missing_package("pyyaml") from error
    slow, fast = ("BaseLoader", "CBaseLoader") if strings else ("SafeLoader", "CSafeLoader")
    try:
        content = yaml.load(content, getattr(yaml, fast, None) or getattr(yaml, slow))
    except (yaml.YAMLError, ValueError) as error:
        raise _damaged(path, error) from error
    if not isinstance(content, dict):
        raise _unfit(path, "it must be a YAML mapping", type(content).__name__)
    return content


def _loaded(path, load):
    """The content of a file of weights; a damaged file gives one line."""
    try:
        return load(path)
    except MemoryError:
        raise
    except Exception as error:  # Of safetensors, PyTorch, zip and NumPy: too many kinds to name.
        raise _damaged(path, error) from error


def _damaged(path, error):
    reason = " ".join(str(error).split())[:200].rstrip(".")
    return ModelImportError(f"{path} cannot be read: it is damaged, or is not what its name says. Received: {reason}.")


def _unfit(path, rule, received):
    return ModelImportError(f"{path} cannot be imported: {rule}. Received: {received}.")


def _missing_package(name):
    return ImportError(f'{name} is not installed. Try: pip install "keras_transformer[import]"')
