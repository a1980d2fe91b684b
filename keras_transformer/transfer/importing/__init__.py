"""Public models become runs: `python -m keras_transformer import FAMILY MODEL --run-dir RUN`.

Each family of models is a module with a function `read(folder)`, which returns an `Original`: the model in the words of
this package. What follows is the same for all families: one id space (`vocabulary`), the `Transformer` and its weights,
and the run folder.
"""

import dataclasses
import functools
import importlib
import io
import json
import math
import re
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from keras_transformer import hub
from keras_transformer.files import output_path
from keras_transformer.search.settings import SearchSettings
from keras_transformer.text.sentencepiece_tokenizer import SentencePieceTokenizer
from keras_transformer.training.config import RunConfig
from keras_transformer.training.run import Run
from keras_transformer.training.sections import DataConfig, ModelConfig, TokenizerConfig
from keras_transformer.transfer import FAMILIES
from keras_transformer.transfer.importing import vocabulary
from keras_transformer.transfer.importing.arrays import Lazy, ModelImportError, joined
from keras_transformer.translation.readme import write_readme

# What a model needs of its repository at the hub, and the kinds of weights, the best one first.
FILES = ("config.json", "generation_config.json", "tokenizer_config.json", "vocab.json", "target_vocab.json")
FILES += ("source.spm", "target.spm", "sentencepiece.bpe.model", "tokenizer.json", "README.md")
FILES += ("tokenization_*.py",)  # Never executed: a model that has one is refused.
WEIGHTS = (
    ("model.safetensors", "model.safetensors.index.json", "model-*.safetensors"),
    ("pytorch_model.bin", "pytorch_model.bin.index.json", "pytorch_model-*.bin"),
)


class Original(NamedTuple):
    """A public model.

    Attributes:
        architecture: arguments of `Transformer` without the sizes of vocabularies.
        weights: `Weights`.
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
    weights: "Weights"
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
    """The weights of a model, each a `Lazy`. The matrix of a dense layer has the shape (inputs, outputs).

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
    output_kernel: Any
    output_bias: Any
    positions: Any
    blocks: tuple
    norms: tuple | None


@dataclasses.dataclass(frozen=True)
class Imported:
    """What `read` makes of a model.

    Attributes:
        original: the `Original`.
        tokenizers, spaces: for source and target a tokenizer and an `IdSpace`.
        config: the `RunConfig`.
        folder: that of the original.
        origin: a dict with its "name" and its "license" or None.
        model: the `Transformer`, which is built when it is asked for: `write` does without.
    """

    original: Original
    tokenizers: Sequence[SentencePieceTokenizer]
    spaces: Sequence[vocabulary.IdSpace]
    config: RunConfig | None = None
    folder: Path | None = None
    origin: dict[str, Any] | None = None

    @functools.cached_property
    def model(self) -> Any:
        from keras_transformer.models.transformer import Transformer

        model = Transformer(*(len(space.pieces) for space in self.spaces), **self.original.architecture)
        for path, array in self.weights():
            _variable(model, path).assign(np.asarray(array(), "float32"))
        return model

    def num_weights(self) -> int:
        """The number of weights."""
        return sum(math.prod(array.shape) for _, array in self.weights())

    def weights(self) -> Iterator[tuple[str, Any]]:
        """For each variable of the `Transformer` its path, such as "encoder_blocks.0.self_attention_norm.gamma", and
        its value, a `Lazy`.
        """
        weights, tied = self.original.weights, self.original.architecture["tie_embeddings"] == "all"
        for side, space, matrix in zip(("encoder", "decoder"), self.spaces, weights.embeddings, strict=True):
            if side == "encoder" or not tied:
                yield f"{side}_embedding.token_embedding.embeddings", _taken(space, matrix)
            if weights.positions is not None and (side == "encoder" or not tied):
                yield f"{side}_embedding.position_table", weights.positions
        if weights.output_kernel is not None:
            kernel = _taken(self.spaces[1], weights.output_kernel).T
            yield "decoder_embedding.token_embedding.reverse_embeddings", kernel
        bias, space, counts = weights.output_bias, self.spaces[1], self.original.start_counts
        yield "decoder_embedding.bias", Lazy((len(space.rows),), lambda: space.bias(bias and bias(), counts))
        for side, blocks in zip(("encoder", "decoder"), weights.blocks, strict=True):
            for number, arrays in enumerate(blocks):
                yield from _of_block(f"{side}_blocks.{number}", arrays)
        if weights.norms is not None:
            for side, norm in zip(("encoder", "decoder"), weights.norms, strict=True):
                yield from _of_norm(f"{side}_norm", norm)

    def save_model(self, path: Path) -> None:
        """Writes the model as a `.keras` file, weight by weight, as the original stores them: also in half precision.

        A small model with as many blocks shows where each weight belongs: its own weights are their numbers.
        """
        import h5py

        from keras_transformer.models.transformer import Transformer

        architecture, arrays = self.original.architecture, list(self.weights())
        sizes = {"hidden_dim": 2 * architecture["num_heads"], "intermediate_dim": 1, "source_language_token_id": None}
        sizes["max_length"] = 1 if architecture.get("max_length") else None
        small = Transformer(4, 4, **{**architecture, **sizes}, dtype="float32")
        for number, (name, _) in enumerate(arrays):
            variable = _variable(small, name)
            variable.assign(np.full(variable.shape, number + 0.5))  # Whole numbers may be those of other variables.
        with output_path(path) as temporary, tempfile.TemporaryDirectory(dir=path.parent) as folder:
            weights = Path(folder, "model.weights.h5")
            small.save(Path(folder, "small.keras"))
            with zipfile.ZipFile(Path(folder, "small.keras")) as archive:
                files = {name: archive.read(name) for name in archive.namelist()}
            with h5py.File(io.BytesIO(files.pop(weights.name))) as layout, h5py.File(weights, "w") as new:
                left = {number + 0.5: array for number, (_, array) in enumerate(arrays)}
                layout.visititems(functools.partial(_copy, new, left))
            if left:
                raise RuntimeError(f"Keras does not save {arrays[int(min(left))][0]}.")
            config = json.loads(files["config.json"])
            config["config"] |= {name: value for name, value in architecture.items() if name in sizes}
            names = "vocabulary_size", "target_vocabulary_size"
            config["config"] |= dict(zip(names, (len(space.pieces) for space in self.spaces), strict=True))
            files["config.json"] = json.dumps(config).encode()
            with zipfile.ZipFile(temporary, "w") as archive:
                for name, content in files.items():
                    archive.writestr(name, content)
                archive.write(weights, weights.name)


def _copy(new, left, name, item):
    """Copies a group or an array of the file of a small model; what is `left` takes the place of its number."""
    if not hasattr(item, "shape"):
        new.require_group(name).attrs.update(item.attrs)
        return
    array = left.pop(float(item[()].flat[0]), functools.partial(item.__getitem__, ()))()
    dataset = new.create_dataset(name, data=array)
    if array.dtype.name == "bfloat16":  # As Keras writes it; HDF5 does not know it.
        dataset.attrs["dtype"] = "bfloat16"


def _variable(model, path):
    """The variable of a model at a path, such as "encoder_blocks.0.self_attention_norm.gamma"."""
    for name in path.split("."):
        model = model[int(name)] if name.isdigit() else getattr(model, name)
    return model


def _taken(space, matrix):
    return Lazy((len(space.rows), *matrix.shape[1:]), lambda: space.take(matrix()))


def read(
    family: str,
    model: Path | str,
    trim: bool = False,
    corpus: Sequence[Sequence[str] | None] = (None, None),
    **languages: str | None,
) -> Imported:
    """Reads a public model.

    Args:
        family: one of `keras_transformer.transfer.FAMILIES`.
        model: the folder of the model's files; or its name at the Hugging Face hub, `OWNER/NAME` or
            `OWNER/NAME@REVISION`, whose files are downloaded.
        trim: whether source and target get vocabularies of their own, with only the pieces that their SentencePiece
            file produces. Defaults to False: all ids of the original.
        corpus: texts of source and target, two lists of strings or None. With `trim`, only pieces that occur in them
            are kept, and single characters.
        **languages: `source_language` and `target_language`, for families of many languages.

    Raises:
        ModelImportError: the folder is not a model of this family, is damaged, or cannot be expressed.
        FileError: the model could not be downloaded.
    """
    if family not in FAMILIES:
        raise ModelImportError(f"`family` must be one of {tuple(FAMILIES)}. Received: {family!r}.")
    folder = _folder_of(model)
    module = importlib.import_module(f"keras_transformer.transfer.importing.{FAMILIES[family]}")
    original = module.read(folder, **languages)
    parsed = [vocabulary.parse(*model) for model in original.models]
    for texts, found, (_, path) in zip(corpus, parsed, original.models, strict=True):
        if texts is not None and found.trainer_spec.model_type != vocabulary.UNIGRAM:
            raise ModelImportError(
                "A vocabulary can only be trimmed to a text if it is a unigram model: BPE makes long pieces of shorter "
                f"ones and needs all. Received: {path}, which is BPE. Try --trim-vocabulary without a text."
            )
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
    config = _config(original, tokenizers, separate=trim or not joint)
    return Imported(original, tokenizers, spaces, config, folder, _origin(str(model), folder))


def _origin(model, folder):
    """The name of a model, with its commit if it came from the hub, and the licence in its README.md."""
    is_of_hub = folder != Path(model)
    name = f"{model.removeprefix(hub.PREFIX).split('@')[0]}@{folder.name}" if is_of_hub else folder.resolve().name
    readme = folder / "README.md"
    text = readme.read_text(encoding="utf-8", errors="replace") if readme.is_file() else ""
    found = re.match(r"---\n(?:.*\n)*?license:[ \t]*((?:\n[ \t]*-)?.*(?:\n[ \t]*-.*)*)", text.partition("\n---")[0])
    licenses = re.findall(r"\w[\w.-]+", found[1]) if found else []
    return {"name": name, "license": licenses[0].lower() if len(licenses) == 1 else None}


def _folder_of(model):
    folder = Path(model)
    if not folder.is_dir():
        if folder.exists() or not hub.is_name(str(model)):
            raise ModelImportError(
                "A model must be a folder, or the name that it has at the hub, such as Helsinki-NLP/opus-mt-en-de. "
                f"Received: {model}, which is neither. Check the path."
            )
        return hub.downloaded(str(model), FILES, *WEIGHTS)
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
    with run.claimed(overwrite), run.set_up(is_chief=True, barrier=lambda: None) as prepared:
        prepared.write(imported.config, imported.tokenizers, {"made from": [imported.origin]})
        imported.save_model(prepared.model_file)
        length = imported.config.data.max_length
        prepared.name = run.name
        write_readme(prepared.folder, prepared, imported.num_weights(), length)
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


def _of_block(name, arrays):
    *query_key_value, output = arrays["self_attention"]
    yield from _of_dense(f"{name}.self_attention.query_key_value_dense", *query_key_value)
    yield from _of_dense(f"{name}.self_attention.output_dense", output)
    if "cross_attention" in arrays:
        query, key, value, output = arrays["cross_attention"]
        yield from _of_dense(f"{name}.cross_attention.query_dense", query)
        yield from _of_dense(f"{name}.cross_attention.key_value_dense", key, value)
        yield from _of_dense(f"{name}.cross_attention.output_dense", output)
    intermediate, output = arrays["feed_forward"]
    yield from _of_dense(f"{name}.feed_forward.intermediate_dense", intermediate)
    yield from _of_dense(f"{name}.feed_forward.output_dense", output)
    for norm in (norm for norm in arrays if norm.endswith("_norm")):
        yield from _of_norm(f"{name}.{norm}", arrays[norm])


def _of_dense(name, *pairs):
    """Matrices (D, n) and biases (n,), side by side."""
    matrices, biases = zip(*pairs, strict=True)
    yield f"{name}.kernel", joined(matrices, axis=1)
    yield f"{name}.bias", joined(biases)


def _of_norm(name, pair):
    gain, bias = pair
    yield f"{name}.gamma", gain
    yield f"{name}.beta", bias
