"""What all families of public models need: files that may be damaged, weights by name, and folders of transformers.

Reading executes nothing: safetensors, `torch.load(weights_only=True)`, NumPy without pickle, YAML without tags.
"""

import functools
import json
import re
import reprlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from keras_transformer.search.settings import SearchSettings
from keras_transformer.settings import ConfigError, Rule
from keras_transformer.transfer.importing.arrays import Arrays, Lazy, ModelImportError

SIDES = ("encoder", "decoder")
# transformers' defaults of the settings that an older config.json may lack, and what it must have.
CONFIG = {
    "activation_function": "gelu",
    "attention_dropout": 0.0,
    "dropout": 0.1,
    "scale_embedding": False,
    "share_encoder_decoder_embeddings": True,
    "tie_word_embeddings": True,
    "max_position_embeddings": 1024,
}
SIZES = ("d_model", *(f"{side}_{size}" for size in ("layers", "ffn_dim", "attention_heads") for side in SIDES))
# What a value must be, by the type of its default.
RULES = {
    bool: Rule(lambda value: type(value) is bool, "true or false"),
    float: Rule(lambda value: type(value) in (int, float) and 0 <= value < 1, "a number in [0, 1)"),
    int: Rule(lambda value: type(value) is int and value > 0, "a whole number above 0"),
    str: Rule(lambda value: type(value) is str, "text"),
}
ACTIVATIONS = {"relu": "relu", "swish": "silu", "silu": "silu", "gelu": "gelu"}
# A translation has at most this many tokens per source token, as in Marian (`max-length-factor`).
MAX_LENGTH_RATIO = 3.0
# The names that the embedding of both sides may have; tied weights are stored once.
EMBEDDING = ("model.shared.weight", "lm_head.weight", *(f"model.{side}.embed_tokens.weight" for side in SIDES))
# Settings of transformers' search that change translations and are not carried over, with values that change nothing
# here; None, false, 0 and empty lists never do.
NOT_CARRIED_OVER = {
    **dict.fromkeys(("num_beam_groups", "encoder_repetition_penalty", "guidance_scale"), 1),
    **dict.fromkeys(("do_sample", "diversity_penalty", "penalty_alpha", "dola_layers", "constraints", "max_time")),
    **dict.fromkeys(("force_words_ids", "stop_strings", "encoder_no_repeat_ngram_size", "forced_decoder_ids")),
    **dict.fromkeys(("exponential_decay_length_penalty", "suppress_tokens", "begin_suppress_tokens")),
    **dict.fromkeys(("sequence_bias", "watermarking_config", "forced_bos_token_id")),
    "early_stopping": "never",  # The search ends exactly.
}


# Folders of transformers


def checked(path: Path, config: dict[str, Any], sizes: Sequence[str], defaults: dict[str, Any]) -> dict[str, Any]:
    """Settings of a model, with `defaults`; `sizes` must be there, others must be of the kind of their default."""
    config = {**dict.fromkeys(sizes), **defaults, **config}
    for name in (*sizes, *defaults):
        rule = RULES.get(type(defaults.get(name, 1)))
        if rule and not rule.holds(config[name]):
            raise unfit(path, f"{name} must be {rule.text}", config[name])
    return config


def transformers_config(folder: Path, model_type: str, **defaults: Any) -> dict[str, Any]:
    """config.json, with defaults for what it lacks. Encoder and decoder must have the same width."""
    path = folder / "config.json"
    config = read_json(path)
    received = config.get("model_type")
    if received != model_type:
        families = {"marian": "Import it as opus-mt.", "m2m_100": "Import it as m2m-100 or nllb."}
        others = "ct2-transformers-converter of CTranslate2 reads many others, such as mbart and t5 (MADLAD)."
        others = f"This package reads marian (opus-mt) and m2m_100 (m2m-100, nllb); {others}"
        raise unfit(path, f"model_type must be {model_type!r}", received, families.get(str(received), others))
    config = checked(path, config, SIZES, {**CONFIG, **defaults})
    for name in ("ffn_dim", "attention_heads"):
        sides = config[f"encoder_{name}"], config[f"decoder_{name}"]
        if sides[0] != sides[1]:
            raise unfit(path, f"encoder and decoder must have the same {name}", sides)
    check_width(path, "d_model", config["d_model"], config["encoder_attention_heads"])
    return config


def check_width(path: Path, name: str, width: int, heads: int) -> None:
    """Raises a ModelImportError unless each head gets an equal share and sines and cosines half of the width each."""
    if width % heads or width % 2 or width < 4:
        raise unfit(path, f"{name} must be even, at least 4 and divisible by the number of heads, {heads}", width)


def max_wavelength(width: int) -> float:
    """That of `PositionalEmbedding` for wavelengths 10000^(i / (D/2 - 1)); ours are w^(2i / D)."""
    return float(10000.0 ** (width / (width - 2)))


def check_tokenizer(folder: Path, *classes: str) -> dict[str, Any]:
    """Raises a ModelImportError if the folder has a tokenizer of its own, or of another model; returns its settings."""
    path = folder / "tokenizer_config.json"
    settings = read_json(path, optional=True)
    code = sorted(folder.glob("tokenization_*.py"))
    name = settings.get("tokenizer_class") or classes[0]
    if code or str(name).removesuffix("Fast") not in classes:
        rule = f"its tokenizer must be one of {classes}, because another one may put other tags before a text"
        raise unfit(code[0] if code else path, rule, code[0].name if code else name)
    return settings


def transformers_architecture(folder: Path, config: dict[str, Any]) -> dict[str, Any]:
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
        "normalize_first": False,
        "layer_norm_epsilon": 1e-5,  # torch's default; transformers leaves it as it is.
        "layout": "concatenated",
        "scale_embeddings": bool(config["scale_embedding"]),
        "output_bias": True,
    }


def transformers_blocks(arrays: Arrays, config: dict[str, Any]) -> tuple[list[dict], ...]:
    """The blocks of encoder and decoder, as `Weights` has them."""
    sizes = config["d_model"], config["encoder_ffn_dim"]
    return tuple(
        [_transformers_block(arrays, f"model.{side}.layers.{i}", *sizes) for i in range(config[f"{side}_layers"])]
        for side in SIDES
    )


def transformers_settings(
    folder: Path, config: dict[str, Any], tokens: Sequence[Sequence[str]], ignored: Sequence[str] = ()
) -> dict[str, Any]:
    """The fields `start`, `end`, `start_counts`, `search`, `max_length` and `notes` of an `Original`.

    Like transformers, it reads them from generation_config.json, or from config.json if there is no such file. The
    `ignored` settings need no note.
    """
    path, generation = folder / "config.json", config
    if (folder / "generation_config.json").is_file():
        path = folder / "generation_config.json"
        generation = read_json(path)
    generation = {name: value for name, value in generation.items() if value is not None}
    end = tuple(index_of(side, "</s>", folder) for side in tokens)
    ids = {**config, **generation}
    start = ids.get("decoder_start_token_id", ids.get("pad_token_id"))
    if type(start) is not int or not 0 <= start < len(tokens[1]):
        raise unfit(path, "decoder_start_token_id must be an id of the vocabulary", start)
    if ids.get("eos_token_id", end[1]) not in (end[1], [end[1]]):
        raise unfit(path, f"eos_token_id must be {end[1]}, the id of '</s>': it alone ends texts", ids["eos_token_id"])
    start_counts = start != end[1] and not generation.get("renormalize_logits")
    harmless = {**NOT_CARRIED_OVER, "bad_words_ids": [[start]], "forced_eos_token_id": end[1]}
    notes = []
    for name in (name for name in harmless if name not in ignored):
        value = generation.get(name)
        has_effect = value is not None if name.endswith("_id") else bool(value)
        if has_effect and value != harmless[name]:
            notes.append(f"{name} is not carried over: {value!r}.")
    if start_counts:
        notes.append(
            f"the start token {tokens[1][start]} counts in the softmax, as in transformers, because {path.name} has no "
            "renormalize_logits: true. Marian does not count it."
        )
    elif generation.get("no_repeat_ngram_size") or generation.get("repetition_penalty", 1.0) != 1.0:
        notes.append(
            "transformers normalizes again after no_repeat_ngram_size and repetition_penalty, this search before."
        )
    return {
        "start": start,
        "end": end,
        "start_counts": start_counts,
        "search": _search(path, generation, config["max_position_embeddings"]),
        "max_length": config["max_position_embeddings"],
        "notes": tuple(notes),
    }


def _search(path, generation, positions):
    """Changes of `SearchSettings`. In transformers, lengths count the start token."""
    names = "max_length", "max_new_tokens", "min_length", "min_new_tokens"
    lengths = {name: generation.get(name, 0) for name in names}
    for name, value in lengths.items():
        least = int(name in generation and name.startswith("max"))
        least += name == "max_length" and least and not lengths["max_new_tokens"]  # It counts the start token.
        if type(value) is not int or value < least:
            raise unfit(path, f"{name} must be a whole number above {max(0, least - 1)}", value)
    settings = {
        "num_beams": generation.get("num_beams", 1),
        "length_penalty": generation.get("length_penalty", 1.0),
        "length_penalty_type": "power",
        "max_target_length": min(lengths["max_new_tokens"] or (lengths["max_length"] or positions) - 1, positions - 1),
        "max_length_ratio": MAX_LENGTH_RATIO,
        "min_length": lengths["min_new_tokens"] + 1 if lengths["min_new_tokens"] else lengths["min_length"],
        "no_repeat_ngram_size": generation.get("no_repeat_ngram_size", 0),
        # transformers divides logits that are positive and multiplies negative ones; ours multiplies log probabilities.
        "repetition_penalty": generation.get("repetition_penalty", 1.0),
    }
    return checked_search(path, settings)


def checked_search(path: Path, settings: dict[str, Any]) -> dict[str, Any]:
    """Changes of `SearchSettings`. Raises a ModelImportError with the file's name if one is invalid."""
    try:
        SearchSettings(**settings)
    except ConfigError as error:
        raise ModelImportError(f"{path} cannot be imported: {error}") from error
    return settings


def transformers_weights(folder: Path) -> dict[str, Lazy]:
    """The weights by name; large models have them in several files."""
    for name, read in (("model.safetensors", _safetensors), ("pytorch_model.bin", _pickled_tensors)):
        index = folder / f"{name}.index.json"
        if (folder / name).is_file():  # Like transformers: an index beside it is of an older save.
            names = [name]
        elif index.is_file():
            files = read_json(index).get("weight_map")
            if not isinstance(files, dict) or not files:
                raise unfit(index, "it must have a weight_map with names", files)
            names = sorted({str(file).split("/")[-1] for file in files.values()})
        else:
            continue
        arrays = {}
        for file in names:
            arrays |= read(folder / file)
        if any(name.startswith("encoder.") for name in arrays):  # Saved without the head of the model.
            heads = "lm_head.weight", "final_logits_bias"
            arrays = {name if name in heads else f"model.{name}": array for name, array in arrays.items()}
        return arrays
    raise ModelImportError(f"{folder} has no weights: neither model.safetensors nor pytorch_model.bin is a file.")


def _safetensors(file):
    try:
        from safetensors import safe_open
    except ImportError as error:
        raise missing_package("safetensors") from error

    def shapes(file):
        with safe_open(file, "numpy") as opened:
            return {name: tuple(opened.get_slice(name).get_shape()) for name in opened.keys()}  # noqa: SIM118

    def read(name, file):
        # Opened for each array: what was read of a mapped file takes memory until it is closed.
        with safe_open(file, "numpy") as opened:
            return opened.get_tensor(name)

    return {
        name: Lazy(shape, functools.partial(loaded, file, functools.partial(read, name)))
        for name, shape in loaded(file, shapes).items()
    }


def _pickled_tensors(file):
    import ml_dtypes

    try:
        import torch
    except ImportError as error:
        raise ModelImportError(
            f"{file.name} is a file of PyTorch. Install it: pip install torch. Or save the model with transformers as "
            "model.safetensors."
        ) from error

    if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 6):  # CVE-2025-32434: `weights_only` executed code.
        raise ModelImportError(
            f"{file.name} is a file of PyTorch, which may execute code with PyTorch before 2.6. Received: PyTorch "
            f"{torch.__version__}. Try: pip install --upgrade torch"
        )

    def load(file):
        settings = {"map_location": "cpu", "weights_only": True}
        try:
            return torch.load(file, mmap=True, **settings)
        except RuntimeError:  # Files of PyTorch before 1.6 cannot be mapped.
            return torch.load(file, **settings)

    def read(tensor):
        tensor = tensor.detach()
        if tensor.dtype != torch.bfloat16:
            return tensor.numpy()
        return tensor.contiguous().view(torch.int16).numpy().view(ml_dtypes.bfloat16)  # PyTorch makes none.

    state = loaded(file, load)
    if not isinstance(state, dict) or not all(isinstance(x, torch.Tensor) for x in state.values()):
        raise unfit(file, "it must hold tensors by name", type(state).__name__)
    return {name: Lazy(tuple(tensor.shape), functools.partial(read, tensor)) for name, tensor in state.items()}


def _transformers_block(arrays, name, width, intermediate):
    def dense(layer, outputs=width, inputs=width):
        matrix = arrays.take(f"{name}.{layer}.weight", shape=(outputs, inputs))
        return matrix.T, arrays.take(f"{name}.{layer}.bias", shape=(outputs,))

    def attention(layer):
        return [dense(f"{layer}.{part}_proj") for part in ("q", "k", "v", "out")]

    block = {
        "self_attention": attention("self_attn"),
        "self_attention_norm": transformers_norm(arrays, f"{name}.self_attn_layer_norm", width),
        "feed_forward": [dense("fc1", intermediate), dense("fc2", inputs=intermediate)],
        "feed_forward_norm": transformers_norm(arrays, f"{name}.final_layer_norm", width),
    }
    if ".decoder." in name:
        block["cross_attention"] = attention("encoder_attn")
        block["cross_attention_norm"] = transformers_norm(arrays, f"{name}.encoder_attn_layer_norm", width)
    return block


def transformers_norm(arrays: Arrays, name: str, width: int) -> list[Lazy]:
    """Gain and bias of a normalisation."""
    return [arrays.take(f"{name}.{part}", shape=(width,)) for part in ("weight", "bias")]


# Weights, vocabularies and files


def activation(file: Path, name: str) -> str:
    """The name of an activation here."""
    if name not in ACTIVATIONS:
        raise unfit(file, f"the activation must be one of {tuple(ACTIVATIONS)}", name)
    return ACTIVATIONS[name]


def read_vocabulary(path: Path, size: int) -> list[str]:
    """The tokens of a JSON file, at most `size`, in the order of their ids."""
    tokens = by_id(path, read_json(path))
    if len(tokens) > size:
        raise unfit(path, f"it must have at most {size:,} tokens, the rows of the embedding", f"{len(tokens):,}")
    return tokens


def by_id(path: Path, ids: dict[str, Any]) -> list[str]:
    """The tokens of a dict of ids in the order of their ids."""
    scalars = all(isinstance(i, str | int) for i in ids.values())
    if not ids or not scalars or sorted(map(str, ids.values())) != sorted(map(str, range(len(ids)))):
        raise unfit(path, "a vocabulary must have the ids 0, 1, 2, ... once each", f"{len(ids):,} tokens")
    broken = next((token for token in ids if type(token) is not str or re.search("[\0\ud800-\udfff]", token)), None)
    if broken is not None:
        raise unfit(path, "a token must be valid Unicode without the character U+0000", ascii(broken))
    return sorted(ids, key=lambda token: int(ids[token]))


def index_of(tokens: Sequence[str], token: str, folder: Path) -> int:
    """The id of a token that there must be."""
    if token not in tokens:
        raise ModelImportError(f"The vocabulary in {folder} must have the token {token!r}.")
    return tokens.index(token)


def read_bytes(path: Path) -> bytes:
    """The content of a file."""
    _check_file(path)
    return path.read_bytes()


def _check_file(path):
    """Raises a ModelImportError if there is no such file, or only the pointer that Git leaves in its place."""
    if not path.is_file():
        raise ModelImportError(f"{path.parent} has no {path.name}. Download all files of the model into one folder.")
    with open(path, "rb") as file:
        if file.read(24).startswith(b"version https://git-lfs"):
            raise ModelImportError(
                f"{path} is a pointer of Git LFS, not the file itself. Run `git lfs pull` in {path.parent}."
            )


def read_json(path: Path, optional: bool = False) -> dict[str, Any]:
    """A JSON object in a file; with `optional`, an empty one if there is no file."""
    if optional and not path.is_file():
        return {}
    try:
        content = json.loads(read_bytes(path))
    except (ValueError, RecursionError) as error:
        raise damaged(path, error) from error
    if not isinstance(content, dict):
        raise unfit(path, "it must be a JSON object", type(content).__name__)
    return content


def loaded(path: Path, load: Callable) -> Any:
    """The content of a file of weights; a damaged file gives one line."""
    _check_file(path)
    try:
        return load(path)
    except MemoryError:
        raise
    except Exception as error:  # Of safetensors, PyTorch, zip and NumPy: too many kinds to name.
        raise damaged(path, error) from error


def damaged(path: Path, error: Exception) -> ModelImportError:
    """The error about a file that cannot be read."""
    reason = " ".join(str(error).split())[:200].rstrip(".")
    return ModelImportError(f"{path} cannot be read: it is damaged, or is not what its name says. Received: {reason}.")


def unfit(path: Path, rule: str, received: Any, repair: str = "") -> ModelImportError:
    """The error about a file or folder that breaks a rule."""
    received = received if isinstance(received, str) else reprlib.repr(received)  # A YAML file may hold endless lists.
    return ModelImportError(f"{path} cannot be imported: {rule}. Received: {received}. {repair}".rstrip())


def missing_package(name: str) -> ImportError:
    """The error about a package that must be installed."""
    return ImportError(f"{name} is not installed. Try: pip install {name}")
