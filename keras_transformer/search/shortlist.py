"""A lexical shortlist: for each sentence, the few target tokens that its translation may have.

The product with the output embedding is most of the time of a step of a small model. Nearly all tokens of a translation
are among those that are often aligned with the tokens of its source, or are frequent in any text. So the product is
computed for these only ("On Using Very Large Target Vocabulary for Neural Machine Translation", Jean et al., 2015,
section 3.3; "Vocabulary Selection Strategies for Neural Machine Translation", L'Hostis et al., 2016).
"""

import zipfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from keras import ops

from keras_transformer.files import output_file
from keras_transformer.layers.base import Tensor, take_rows
from keras_transformer.text.special_ids import END_TOKEN_ID

# Target tokens that are kept for each source token, and the number of the most frequent ones that every sentence has.
NUM_ALIGNED, NUM_FREQUENT = 20, 100


class Shortlist:
    """The target tokens that are often aligned with each source token.

    Args:
        aligned: integers (vocabulary size of the source, N): for each source token its target tokens, the one that is
            aligned most often first; 0 where there are no more.
        frequent: integers (M,), the target tokens that every sentence has.
    """

    def __init__(self, aligned: np.ndarray, frequent: np.ndarray):
        self.aligned, self.frequent = np.asarray(aligned), np.asarray(frequent)

    @classmethod
    def learn(cls, pairs: Iterable, source_vocabulary_size: int, target_vocabulary_size: int) -> "Shortlist":
        """Counts alignments.

        Args:
            pairs: an iterable of (source ids, target ids, alignment), as `Translator.align` returns them: three lists;
                the alignment has the index of a source token for each target token.
            source_vocabulary_size, target_vocabulary_size: integers.

        Example:
            >>> found = Shortlist.learn([([5, 6, 3], [8, 9, 3], [1, 0, 2])] * 2, 7, 10)
            >>> found.aligned[5, :2].tolist(), found.aligned[6, :2].tolist()
            ([9, 0], [8, 0])
        """
        size = target_vocabulary_size
        counts, frequencies = {}, np.zeros(size, "int64")
        for source, target, alignment in pairs:
            for token, place in zip(target, alignment, strict=True):
                if token > END_TOKEN_ID:
                    frequencies[token] += 1
                    if source[place] > END_TOKEN_ID:
                        counts[source[place] * size + token] = counts.get(source[place] * size + token, 0) + 1
        # 16 bits halve what it adds to an export; TFLite has no unsigned ones.
        table = np.zeros((source_vocabulary_size, NUM_ALIGNED), "int16" if size <= 1 << 15 else "int32")
        filled = np.zeros(source_vocabulary_size, "int32")
        for code, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
            source, target = divmod(code, size)
            if filled[source] < NUM_ALIGNED:
                table[source, filled[source]] = target
                filled[source] += 1
        order = np.argsort(-frequencies, kind="stable")[:NUM_FREQUENT]
        return cls(table, order[frequencies[order] > 0].astype(table.dtype))

    def save(self, path: str | Path) -> None:
        """Writes a `.npz` file."""
        with output_file(path, "wb") as file:
            np.savez_compressed(file, aligned=self.aligned, frequent=self.frequent)

    @classmethod
    def load(cls, path: str | Path) -> "Shortlist":
        """Reads what `save` wrote.

        Raises:
            ValueError: the file is damaged.
        """
        try:
            with np.load(path) as file:
                return cls(file["aligned"], file["frequent"])
        except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
            raise ValueError(f"{path} is no shortlist: {error}. Make it again: keras_transformer shortlist.") from error

    def choose(self, encoder_token_ids: Tensor, size: int, num_first: int, vocabulary_size: int) -> Tensor:
        """The shortlists of a batch.

        The tokens are ordered by how much speaks for them: 1 / rank among the aligned tokens of each source token, and
        a little less than 1 / 3 if they are frequent.

        Args:
            encoder_token_ids: (B, S).
            size: C, number of tokens of a shortlist.
            num_first: the ids below this are the first of every shortlist: special tokens, placeholders and tags.
            vocabulary_size: V, that of the target.

        Returns:
            int32 (B, C).
        """
        table = ops.convert_to_tensor(self.aligned[None])
        tokens = take_rows(table, ops.reshape(encoder_token_ids, (1, -1)))[0]  # (B * S, N)
        tokens = ops.cast(tokens, "int32")
        batch_size, length = ops.shape(encoder_token_ids)
        count = self.aligned.shape[1]
        first = ops.repeat(ops.arange(batch_size, dtype="int32") * vocabulary_size, length * count)
        places = ops.reshape(tokens, (-1,)) + first
        weights = ops.zeros_like(tokens, dtype="float32") + 1.0 / np.arange(1, count + 1, dtype="float32")
        shape = (batch_size * vocabulary_size,)
        scores = ops.scatter(places[:, None], ops.reshape(weights, (-1,)), shape)
        always = np.zeros(vocabulary_size, "float32")
        always[self.frequent] = np.linspace(0.32, 0.26, len(self.frequent))
        scores = ops.reshape(scores, (-1, vocabulary_size)) + always
        _, best = ops.top_k(scores[:, num_first:], size - num_first)
        start = ops.zeros_like(best[:, :1]) + np.arange(num_first, dtype="int32")
        return ops.concatenate([start, ops.cast(best, "int32") + num_first], axis=1)


class ShortlistDecoder:
    """A decoder whose tokens are numbered by the places in the shortlists of their sentences.

    It is the decoder of a search, see `keras_transformer.search.decoder`; the search knows nothing of shortlists.

    Args:
        decoder: the decoder of a `Transformer`.
        chosen: (B, C), from `Shortlist.choose`.
    """

    def __init__(self, decoder, chosen):
        self.decoder, self.chosen = decoder, chosen
        rows, bias = decoder.model.decoder_embedding.output_rows(chosen)  # (B, C, D), and (B, C) or None
        more = {} if bias is None else {"bias": bias}
        self.cache = {"decoder": decoder.cache, "chosen": chosen, "kernel": ops.swapaxes(rows, 1, 2), **more}

    def step(self, token_ids, cache, index, ancestors=None):
        chosen = cache["chosen"]
        hidden_dim, size = cache["kernel"].shape[1:]
        num_beams = 1 if ancestors is None else ancestors.shape[1]
        token_ids = ops.reshape(take_rows(chosen, ops.reshape(token_ids, (-1, num_beams))), (-1,))
        hidden, new_cache = self.decoder.hidden_step(token_ids, cache["decoder"], index, ancestors)
        hidden = ops.reshape(ops.cast(hidden, cache["kernel"].dtype), (-1, num_beams, hidden_dim))
        logits = ops.matmul(hidden, cache["kernel"])  # (B, K, C)
        if "bias" in cache:
            logits = logits + cache["bias"][:, None]
        return ops.reshape(logits, (-1, size)), {**cache, "decoder": new_cache}

    def lengthen(self, cache, max_length):
        return {**cache, "decoder": self.decoder.lengthen(cache["decoder"], max_length)}


def restored(token_ids, chosen):
    """Hypotheses (B, K, L) of a search with shortlists, with the ids of the vocabulary."""
    shape = ops.shape(token_ids)
    return ops.reshape(take_rows(chosen, ops.reshape(token_ids, (shape[0], shape[1] * shape[2]))), shape)
