"""What all families of public models need: files that may be damaged, weights by name, and folders of transformers.

Reading executes nothing: safetensors, `torch.load(weights_only=True)`, NumPy without pickle, YAML without tags.
"""

import json

import numpy as np

from keras_transformer.importing import ModelImportError

# transformers' defaults of the settings that an older config.json may lack.
CONFIG = {
    "activation_function": "gelu",
    "attention_dropout": 0.0,
    "dropout": 0.1,
    "scale_embedding": False,
    "share_encoder_decoder_embeddings": True,
    "tie_word_embeddings": True,
    "max_position_embeddings": 1024,
}
ACTIVATIONS = {"relu": "relu", "swish": "silu", "silu": "silu", "gelu": "gelu"}
# A translation has at most this many tokens per source token, as in Marian (`max-length-factor`).
MAX_LENGTH_RATIO = 3.0


# Folders of transformers


def transformers_config(folder, model_type, **defaults):
    """config.json, with defaults for what it lacks.

    Raises:
        ModelImportError: it is the configuration of another type of model, or encoder and decoder differ in width.
    """
    path = folder / "config.json"
    config = {**CONFIG, **defaults, **read_json(path)}
    if config.get("model_type") != model_type:
        raise unfit(path, f"model_type must be {model_type!r}", config.get("model_type"))
    for name in ("ffn_dim", "attention_heads"):
        sides = config[f"encoder_{name}"], config[f"decoder_{name}"]
        if sides[0] != sides[1]:
            raise unfit(path, f"encoder and decoder must have the same {name}", sides)
    return config


def transformers_architecture(folder, config):
    """The arguments of `Transformer` that transformers' encoder-decoder models have in common."""
    return {
        "num_layers": config["encoder_layers"],
        "num_decoder_layers": config["decoder_layers"],
        "num_heads": config["encoder_attention_heads"],
        "hidden_dim": config["d_model"],
        "intermediate_dim": config["encoder_ffn_dim"],
        "dropout": float(config["dropout"]),
        "attention_dropout": float(config["attention_dropout"]),
        "activation": activation(folder / "config.json", config["activation_function"]),
        "layer_norm_epsilon": 1e-5,  # torch's default; transformers leaves it as it is.
        "layout": "concatenated",
        "scale_embeddings": bool(config["scale_embedding"]),
        "output_bias": True,
    }


def transformers_blocks(arrays, config):
    """The blocks of encoder and decoder, as `Weights` has them."""
    return tuple(
        [_transformers_block(arrays, f"model.{side}.layers.{i}") for i in range(config[f"{side}_layers"])]
        for side in ("encoder", "decoder")
    )


def transformers_settings(folder, config, tokens, ignored=()):
    """The fields `start`, `search`, `max_length` and `notes` of an `Original`.

    They are read from config.json and generation_config.json.

    Args:
        folder: a `Path`.
        config: from `transformers_config`.
        tokens: the tokens of the target.
        ignored: names of settings of transformers' search that need no note. Defaults to none.
    """
    start = config.get("decoder_start_token_id", config.get("pad_token_id"))
    if not isinstance(start, int) or not 0 <= start < len(tokens):
        raise unfit(folder / "config.json", "decoder_start_token_id must be an id of the vocabulary", start)
    generation = {**_generation(config), **_generation(read_json(folder / "generation_config.json", optional=True))}
    return {
        "start": start,
        "search": _search(generation),
        "max_length": min(int(generation.get("max_length") or 512), config["max_position_embeddings"]),
        "notes": _left_out({name: value for name, value in generation.items() if name not in ignored}, start),
    }


def _search(generation):
    """Changes of `SearchSettings`."""
    # transformers divides logits that are positive and multiplies negative ones; ours multiplies log probabilities.
    penalty = float(generation.get("repetition_penalty", 1.0))
    return {
        "num_beams": int(generation.get("num_beams", 1)),
        "length_penalty": float(generation.get("length_penalty", 1.0)),
        "length_penalty_type": "power",
        "max_length": int(generation.get("max_length", 512)),
        "max_length_ratio": MAX_LENGTH_RATIO,
        "no_repeat_ngram_size": int(generation.get("no_repeat_ngram_size", 0)),
        "repetition_penalty": penalty,
    }


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


def transformers_weights(folder):
    """The weights by name, NumPy arrays; large models have them in several files."""
    for name, read in (("model.safetensors", _safetensors), ("pytorch_model.bin", _pickled_tensors)):
        index = folder / f"{name}.index.json"
        if index.is_file():
            files = read_json(index).get("weight_map")
            if not isinstance(files, dict):
                raise unfit(index, "it must have a weight_map", type(files).__name__)
            names = sorted({str(file).split("/")[-1] for file in files.values()})
        elif (folder / name).is_file():
            names = [name]
        else:
            continue
        arrays = {}
        for file in (folder / name for name in names):
            if not file.is_file():
                raise ModelImportError(f"{folder} has no {file.name}. Download all files of the model into one folder.")
            arrays |= read(file)
        return arrays
    raise ModelImportError(f"{folder} has no weights: neither model.safetensors nor pytorch_model.bin is a file.")


def _safetensors(file):
    try:
        from safetensors.numpy import load_file
    except ImportError as error:
        raise missing_package("safetensors") from error
    return loaded(file, load_file)


def _pickled_tensors(file):
    try:
        import torch
    except ImportError as error:
        raise ModelImportError(
            f"{file.name} is a file of PyTorch. Install it: pip install torch. Or save the model with transformers as "
            "model.safetensors."
        ) from error
    state = loaded(file, lambda file: torch.load(file, map_location="cpu", weights_only=True))
    if not isinstance(state, dict) or not all(isinstance(x, torch.Tensor) for x in state.values()):
        raise unfit(file, "it must hold tensors by name", type(state).__name__)
    return {name: tensor.float().numpy() for name, tensor in state.items()}


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


# Weights, vocabularies and files


class Arrays:
    """The arrays of a file of weights, by name; it knows which were taken."""

    def __init__(self, folder, arrays):
        self.folder, self.arrays, self.taken = folder, arrays, {}

    def take(self, *names, optional=False):
        """The first of the named arrays that exists, float32; the same object if it is taken twice."""
        for name in names:
            if name in self.taken:
                return self.taken[name]
            if name in self.arrays:
                array = np.asarray(self.arrays.pop(name))  # Large models fit into memory once, not twice.
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
        left = sorted(set(self.arrays) - set(known))
        if left:
            more = f" and {len(left) - 3} more" if len(left) > 3 else ""
            raise ModelImportError(
                f"The model in {self.folder} has weights that this package has no place for: {', '.join(left[:3])}"
                f"{more}. It is of another architecture."
            )


def ties_of(shared, tied):
    return "none" if not tied else "all" if shared else "target"


def untied(weights, ties):
    """The weights with a matrix for the output projection, if the model has one of its own."""
    if ties != "none" or weights.output_kernel is not None:
        return weights
    return weights._replace(output_kernel=weights.embeddings[1])


def activation(file, name):
    if name not in ACTIVATIONS:
        raise unfit(file, f"the activation must be one of {tuple(ACTIVATIONS)}", name)
    return ACTIVATIONS[name]


def read_vocabulary(path, size):
    tokens = by_id(path, read_json(path))
    if len(tokens) > size:
        raise unfit(path, f"it must have at most {size:,} tokens, the rows of the embedding", f"{len(tokens):,}")
    return tokens


def by_id(path, ids):
    """The tokens of a dict of ids in the order of their ids."""
    if not ids or sorted(ids.values()) != list(range(len(ids))):
        raise unfit(path, "a vocabulary must have the ids 0, 1, 2, ... once each", f"{len(ids):,} tokens")
    return sorted(ids, key=ids.get)


def index_of(tokens, token, folder):
    if token not in tokens:
        raise ModelImportError(f"The vocabulary in {folder} must have the token {token!r}.")
    return tokens.index(token)


def read_npz(path):
    with np.load(path, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def read_bytes(path):
    if not path.is_file():
        raise ModelImportError(f"{path.parent} has no {path.name}. Download all files of the model into one folder.")
    return path.read_bytes()


def read_json(path, optional=False):
    """A JSON object in a file."""
    if optional and not path.is_file():
        return {}
    try:
        content = json.loads(read_bytes(path))
    except ValueError as error:
        raise damaged(path, error) from error
    if not isinstance(content, dict):
        raise unfit(path, "it must be a JSON object", type(content).__name__)
    return content


def read_yaml(path, optional=False, strings=False):
    """A YAML mapping in a file; with `strings`, without conversion to numbers and booleans."""
    if optional and not path.is_file():
        return {}
    return parsed_yaml(path, read_bytes(path), strings)


def parsed_yaml(path, content, strings=False):
    try:
        import yaml
    except ImportError as error:
        raise missing_package("pyyaml") from error
    slow, fast = ("BaseLoader", "CBaseLoader") if strings else ("SafeLoader", "CSafeLoader")
    try:
        content = yaml.load(content, getattr(yaml, fast, None) or getattr(yaml, slow))
    except (yaml.YAMLError, ValueError) as error:
        raise damaged(path, error) from error
    if not isinstance(content, dict):
        raise unfit(path, "it must be a YAML mapping", type(content).__name__)
    return content


def loaded(path, load):
    """The content of a file of weights; a damaged file gives one line."""
    try:
        return load(path)
    except MemoryError:
        raise
    except Exception as error:  # Of safetensors, PyTorch, zip and NumPy: too many kinds to name.
        raise damaged(path, error) from error


def damaged(path, error):
    reason = " ".join(str(error).split())[:200].rstrip(".")
    return ModelImportError(f"{path} cannot be read: it is damaged, or is not what its name says. Received: {reason}.")


def unfit(path, rule, received):
    return ModelImportError(f"{path} cannot be imported: {rule}. Received: {received}.")


def missing_package(name):
    return ImportError(f'{name} is not installed. Try: pip install "keras_transformer[import]"')
