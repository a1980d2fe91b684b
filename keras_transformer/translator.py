"""Strings in, strings out: tokenizers + model + search.

Reference: "Attention Is All You Need" (Vaswani et al., 2017), section 6.1 (beam 4, length penalty 0.6).
"""

import json
import os
from pathlib import Path
from typing import NamedTuple

import keras
import numpy as np
from keras import ops

from keras_transformer import decoding
from keras_transformer.model import Transformer  # noqa: F401  (registers the classes that a saved model needs)
from keras_transformer.tokenizers import END_TOKEN_ID, PAD_TOKEN_ID, START_TOKEN_ID, Tokenizer

# Sources are padded to a multiple of this, batches to a power of two: few shapes, few compilations.
LENGTH_MULTIPLE = 8


class Translation(NamedTuple):
    """A translation and its score, the length-penalised log probability (0 for an empty source)."""

    text: str
    score: float


class Translator:
    """Translates lists of strings.

    Args:
        model: a `Transformer`.
        source_tokenizer: a `Tokenizer`.
        target_tokenizer: Defaults to `source_tokenizer`, a shared vocabulary.
        num_beams: beams of the search; 1 is greedy search. Defaults to 4.
        length_penalty: see `decoding.length_penalty_divisor`. Defaults to 0.6.
        max_source_length: longer sources are cut, in tokens, the end token included. Defaults to 128.
        max_length: most tokens of a translation, the end token included. Defaults to twice the source and 16 more.
        jit_compile: whether to compile the search with XLA on TensorFlow: several times faster for many sentences,
            and seconds of compilation for every new shape of a batch. JAX always compiles. Defaults to False.

    Example:
        >>> tokenizer = Tokenizer.train(["a small dog", "a small cat", "a big dog"] * 9, vocabulary_size=17)
        >>> model = Transformer(tokenizer.vocabulary_size, num_layers=1, num_heads=1, hidden_dim=8, intermediate_dim=8)
        >>> len(Translator(model, tokenizer).translate(["a big cat", ""]))
        2
    """

    def __init__(
        self,
        model,
        source_tokenizer,
        target_tokenizer=None,
        num_beams=4,
        length_penalty=0.6,
        max_source_length=128,
        max_length=None,
        jit_compile=False,
    ):
        self.model = model
        self.source_tokenizer = source_tokenizer
        self.target_tokenizer = target_tokenizer or source_tokenizer
        self.num_beams, self.length_penalty = num_beams, length_penalty
        self.max_source_length, self.max_length = max_source_length, max_length
        self.jit_compile = jit_compile
        self._compiled = {}
        for side, tokenizer, size in (
            ("source", self.source_tokenizer, model.vocabulary_size),
            ("target", self.target_tokenizer, model.target_vocabulary_size),
        ):
            if tokenizer.vocabulary_size != size:
                raise ValueError(
                    f"The {side} tokenizer and the model must have one vocabulary. Received: a tokenizer with "
                    f"{tokenizer.vocabulary_size} ids, a model with {size}. Use the tokenizer of its training."
                )

    @classmethod
    def load(cls, folder, **kwargs):
        """The translator of a run folder, as `train_keras.py` writes it.

        Args:
            folder: the run folder.
            **kwargs: replace the run's own settings, see `Translator`.

        Raises:
            FileNotFoundError: the folder is no run folder, or has no model yet.
        """
        folder = Path(folder)
        for name in ("config.json", "model.keras"):
            if not (folder / name).is_file():
                raise FileNotFoundError(
                    f"{folder} is not the folder of a trained run: it has no {name}. Train one with train_keras.py, "
                    "or look for its folder under runs/."
                )
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        tokenizers = load_tokenizers(folder, config["tokenizer"]["separate_vocabularies"])
        settings = {
            "num_beams": config["decoding"]["num_beams"],
            "length_penalty": config["decoding"]["length_penalty"],
            "max_length": config["decoding"]["decoding_max_length"],
            "max_source_length": config["data"]["max_length"],
        }
        model = keras.saving.load_model(folder / "model.keras", compile=False)
        return cls(model, *tokenizers, **{**settings, **kwargs})

    def translate(
        self, texts, num_beams=None, length_penalty=None, num_hypotheses=1, return_scores=False, batch_size=64
    ):
        """Translates, keeping the order; '' is translated to ''.

        Args:
            texts: a list of strings.
            num_beams: Defaults to the translator's.
            length_penalty: Defaults to the translator's.
            num_hypotheses: how many translations per text, at most `num_beams`. Defaults to 1.
            return_scores: whether to return `Translation`s instead of strings. Defaults to False.
            batch_size: texts that are translated together. Defaults to 64.

        Returns:
            A list with a string or `Translation` per text; with `num_hypotheses` over 1, with a list of them per text,
            best first.
        """
        num_beams = num_beams or self.num_beams
        length_penalty = self.length_penalty if length_penalty is None else length_penalty
        if isinstance(texts, str):
            raise TypeError("`texts` must be a list of strings. Received: one string. Pass [text].")
        if not 1 <= num_hypotheses <= num_beams:
            raise ValueError(
                "`num_hypotheses` must be between 1 and `num_beams`: the search keeps no more. "
                f"Received: num_hypotheses={num_hypotheses}, num_beams={num_beams}."
            )
        texts = list(texts)
        sources = [ids[: self.max_source_length - 1] for ids in self.source_tokenizer.tokenize(texts)]
        results = [[Translation("", 0.0)]] * len(texts)
        # Longest first: a job that does not fit into memory fails at once.
        order = sorted((i for i, ids in enumerate(sources) if ids), key=lambda i: -len(sources[i]))
        for begin in range(0, len(order), batch_size):
            rows = order[begin : begin + batch_size]
            found = self._search([sources[i] for i in rows], num_beams, length_penalty)
            for i, hypotheses in zip(rows, self._to_text(*found, num_hypotheses), strict=True):
                results[i] = hypotheses
        if not return_scores:
            results = [[hypothesis.text for hypothesis in hypotheses] for hypotheses in results]
        return results if num_hypotheses > 1 else [hypotheses[0] for hypotheses in results]

    def _search(self, sources, num_beams, length_penalty):
        """Token ids (B, K, L) and scores (B, K), NumPy, for the ids of B sources."""
        limit = self.model.max_length or 1 << 30  # Learned positions end somewhere.
        longest = max(len(ids) for ids in sources) + 1
        length = min(-(-longest // LENGTH_MULTIPLE) * LENGTH_MULTIPLE, max(longest, limit))
        batch_size = 1 << (len(sources) - 1).bit_length()
        token_ids = np.full((batch_size, length), PAD_TOKEN_ID, "int32")
        token_ids[:, 0] = END_TOKEN_ID  # Rows that only fill up the batch are empty sentences.
        for row, ids in zip(token_ids, sources, strict=False):
            row[: len(ids) + 1] = [*ids, END_TOKEN_ID]
        max_length = min(self.max_length or default_max_length(length), limit)
        key = (num_beams, length_penalty)
        if key not in self._compiled:
            self._compiled[key] = self._compile(lambda ids, max_length: search(self.model, ids, max_length, *key))
        found = self._compiled[key](token_ids, max_length)
        return tuple(ops.convert_to_numpy(x)[: len(sources)] for x in found)

    def _compile(self, function):
        """`function(token_ids, max_length)` as one compiled function of this backend."""
        if keras.backend.backend() == "jax":
            import jax

            def stateless(values, token_ids, max_length):
                with keras.StatelessScope(state_mapping=zip(self.model.variables, values, strict=True)):
                    return function(token_ids, max_length)

            compiled = jax.jit(stateless, static_argnums=2)
            return lambda ids, max_length: compiled([v.value for v in self.model.variables], ids, max_length)
        import tensorflow as tf

        if self.jit_compile:  # XLA needs static shapes: a Python integer is part of the compilation's key.
            return tf.function(function, jit_compile=True, autograph=False)
        # Without XLA one graph serves every shape.
        signature = [tf.TensorSpec((None, None), tf.int32), tf.TensorSpec((), tf.int32)]
        return tf.function(function, input_signature=signature, autograph=False)

    def _to_text(self, token_ids, scores, num_hypotheses):
        """Lists of `Translation`s per source, without the places that hold no hypothesis."""
        results = []
        for rows, row_scores in zip(token_ids, scores, strict=True):
            real = [i for i in range(num_hypotheses) if i == 0 or row_scores[i] > decoding.IMPOSSIBLE / 2]
            texts = self.target_tokenizer.detokenize([_until_end(rows[i]) for i in real])
            results.append([Translation(text, float(row_scores[i])) for text, i in zip(texts, real, strict=True)])
        return results


def search(model, encoder_token_ids, max_length, num_beams, length_penalty):
    """The search of a batch, in `keras.ops`: for `Translator`, and for the graph that an export writes.

    Args:
        model: a `Transformer`.
        encoder_token_ids: (B, S), each row ended by the end token.
        max_length: L.
        num_beams: K; 1 is greedy search.
        length_penalty: see `decoding.length_penalty_divisor`.

    Returns:
        `decoding.Hypotheses`.
    """
    step, cache = model.start_decoding(encoder_token_ids, max_length, num_beams)
    batch_size = ops.shape(encoder_token_ids)[0]
    special = {"start_token_id": START_TOKEN_ID, "end_token_id": END_TOKEN_ID, "pad_token_id": PAD_TOKEN_ID}
    if num_beams == 1:
        token_ids, scores = decoding.greedy(step, cache, batch_size, max_length, **special)
        length = ops.cast(ops.sum(token_ids != PAD_TOKEN_ID, axis=-1), "float32")
        return decoding.Hypotheses(token_ids, scores / decoding.length_penalty_divisor(length, length_penalty))
    return decoding.beam_search(
        step, cache, batch_size, max_length, num_beams, model.target_vocabulary_size, length_penalty, **special
    )


def default_max_length(source_length):
    """How long a translation may become when nobody says: translations of real text stay far below."""
    return 2 * source_length + 16


def _until_end(token_ids):
    end = np.flatnonzero(token_ids == END_TOKEN_ID)
    return token_ids[: end[0]] if len(end) else token_ids[token_ids != PAD_TOKEN_ID]


def load_tokenizers(folder, separate_vocabularies):
    """The tokenizers of a run folder: one for a shared vocabulary, or source and target."""
    names = ("source_tokenizer", "target_tokenizer") if separate_vocabularies else ("tokenizer",)
    return [Tokenizer.load(Path(folder) / name) for name in names]


def save_tokenizers(folder, tokenizers):
    """Writes the tokenizers of a run folder, so that `load_tokenizers` finds them or, if interrupted, nothing."""
    names = ("source_tokenizer", "target_tokenizer") if len(tokenizers) > 1 else ("tokenizer",)
    for name, tokenizer in zip(names, tokenizers, strict=True):
        written = tokenizer.save(Path(folder) / f".writing-{name}")
        os.replace(written, Path(folder) / f"{name}{tokenizer.suffix}")
