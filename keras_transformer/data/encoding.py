"""From sentence pairs to token ids: in memory or, for large corpora, in a folder on disk.

The ids of one side are concatenated in one array, with two bytes each if the vocabulary has at most 65,536
ids. The arrays of a folder are memory-mapped: the system reads the parts that a batch needs, and caches them.
So a corpus may be larger than the memory, and the same order of batches is possible as in memory.

A folder is named by its content: texts, tokenizers and settings. It is written block by block, in the order of the
lines. If the process is killed, the next one resumes after the last recorded block.
"""

import hashlib
import json
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from pathlib import Path

from keras_transformer.data.cleaning import Cleaner
from keras_transformer.data.corpora import ParallelText
from keras_transformer.data.storage import (
    COMPLETE,
    EMPTY,
    LINES_PER_BLOCK,
    OVER_LONG,
    Block,
    EncodedPairs,
    Ragged,
    left_out_by,
    none_left,
    open_store,
)
from keras_transformer.data.workers import in_background
from keras_transformer.files import BusyError
from keras_transformer.settings import LONG_PAIRS, one_of
from keras_transformer.text.placeholders import protect_pair
from keras_transformer.text.sentencepiece_tokenizer import SentencePieceTokenizer
from keras_transformer.text.special_ids import END_TOKEN_ID
from keras_transformer.text.tokenizer import Tokenizer

logger = logging.getLogger(__name__)


def encode_pairs(
    pairs: Iterable[tuple[str, str]],
    source_tokenizer: Tokenizer,
    target_tokenizer: Tokenizer,
    max_length: int,
    over_long: str = "drop",
    folder: str | Path | None = None,
    workers: int = 1,
    progress: Callable | None = None,
    cleaner: Cleaner | None = None,
    target_language: str | None = None,
    tagged_targets: bool = False,
) -> EncodedPairs:
    """Tokenizes pairs and adds the end token.

    If the vocabularies have placeholders, what must not change becomes placeholders: see `placeholders.protect_pair`.
    Pairs with an empty side are dropped.

    Args:
        pairs: an iterable of (source, target).
        source_tokenizer, target_tokenizer: a `keras_transformer.Tokenizer` each, may be the same.
        max_length: maximum number of tokens of a sequence, including the end token.
        over_long: `"drop"` leaves out pairs with a longer side. `"cut"` shortens that side to `max_length`; its last
            token is then not the end token, so that the model does not learn to stop there.
        folder: where to write the ids; it must not exist. Defaults to None: they stay in memory.
        workers: number of processes. More than one need SentencePiece tokenizers, and a script that begins its work
            under `if __name__ == "__main__":`. Defaults to 1, this process.
        progress: a function that is called with the number of pairs that have been read. Defaults to None.
        cleaner: a `keras_transformer.data.cleaning.Cleaner`, which says what else is dropped. Defaults to None.
        target_language: one of `source_tokenizer.languages`, whose tag every source begins with. Defaults to None: no
            tag.
        tagged_targets: whether targets begin with this tag, too; see `source_language_token_id` of `Transformer`.
            Defaults to False.

    Returns:
        `EncodedPairs`.

    Raises:
        ValueError: no pair is left, or `over_long` has another value.
    """
    one_of("over_long", over_long, LONG_PAIRS)
    tokenizers = source_tokenizer, target_tokenizer
    if not all(isinstance(tokenizer, SentencePieceTokenizer) for tokenizer in tokenizers):
        workers = 1
    tag = source_tokenizer.tag(target_language)
    encode = _Encoder(tokenizers, max_length, over_long, cleaner, (tag, tag if tagged_targets else []))
    with open_store(folder, encode.dtype) as store, in_background(encode, workers) as encoded:
        lines = islice(enumerate(pairs, 1), store.num_lines, None)
        for block in encoded(iter(lambda: list(islice(lines, LINES_PER_BLOCK)), [])):
            store.add(block)
            if progress:
                progress(store.num_lines)
        if not store.num_lines:
            raise ValueError("There must be sentence pairs to encode. Received: none.")
        if not store.num_rows:
            raise ValueError(
                f"{none_left(store.left_out)}; max_length={max_length}. Over-long ones need a larger max_length, or "
                "over_long='cut'."
            )
        return store.finished()


def encoded_in(
    cache: str | Path,
    text: ParallelText,
    tokenizers: Sequence[Tokenizer],
    max_length: int,
    over_long: str = "drop",
    cleaner: Cleaner | None = None,
    tagged_targets: bool = False,
    **settings,
) -> EncodedPairs:
    """`encode_pairs` into a folder of a cache; or what the cache already has of the same text and tokenizers.

    Args:
        cache: the folder of the cache.
        text: a `keras_transformer.data.corpora.ParallelText`.
        tokenizers: that of the source and that of the target.
        max_length, over_long, cleaner, tagged_targets, settings: see `encode_pairs`. The target language is that of the
            text.
    """
    rules, language = cleaner.settings() if cleaner else None, text.target_language
    about = [2, text.checksum(), max_length, over_long, rules, language, *["tagged targets"] * tagged_targets]
    key = hashlib.sha256(json.dumps(about).encode())
    for tokenizer in tokenizers:
        key.update(hashlib.sha256(tokenizer._serialized()).digest())
    folder = Path(cache) / key.hexdigest()[:24]
    if cleaner and not (folder / COMPLETE).is_file():
        cleaner.find_duplicates(text.lines)
    waiting = False
    while not (folder / COMPLETE).is_file():
        try:
            settings |= {"cleaner": cleaner, "target_language": language, "tagged_targets": tagged_targets}
            encode_pairs(text.lines, *tokenizers, max_length, over_long, folder, **settings)
        except BusyError:  # Other workers of a training need the same. After a kill, this process continues.
            if not waiting:
                logger.info("%s: waiting for another process that tokenizes it into %s", text.name, folder)
            waiting = True
            time.sleep(1)
    return EncodedPairs.open(folder)


class Progress:
    """Logs every few seconds how many lines of a text are tokenized."""

    def __init__(self, name, seconds=10):
        self.name, self.seconds, self.began = name, seconds, time.monotonic()
        self.logged = self.began

    def __call__(self, num_lines):
        now = time.monotonic()
        if now - self.logged >= self.seconds:
            logger.info(f"{self.name}: {num_lines:,} lines tokenized, {now - self.began:.0f} s")
            self.logged = now


class _Encoder:
    """Makes a `Block` of a list of (line number, (source, target))."""

    def __init__(self, tokenizers, max_length, over_long, cleaner, tags):
        self.tokenizers, self.max_length, self.over_long, self.cleaner = tokenizers, max_length, over_long, cleaner
        self.tags = tags
        self.dtype = "uint16" if max(t.vocabulary_size for t in tokenizers) <= 1 << 16 else "int32"

    def __call__(self, lines):
        reason = self.cleaner.reason if self.cleaner else lambda number, *pair: None if all(pair) else EMPTY
        reasons = [reason(number, *pair) for number, pair in lines]
        rows = [row for row, reason in enumerate(reasons) if reason is None]
        pairs = [lines[row][1] for row in rows]
        if count := num_placeholders(self.tokenizers):
            pairs = [protect_pair(*pair, count) for pair in pairs]
        sides = [
            [tag + ids for ids in tokenizer.tokenize([pair[side] for pair in pairs])]
            for side, (tokenizer, tag) in enumerate(zip(self.tokenizers, self.tags, strict=True))
        ]
        kept = [[], []]
        for row, *ids in zip(rows, *sides, strict=True):
            if max(map(len, ids)) >= self.max_length:
                reasons[row] = OVER_LONG
                if self.over_long == "drop":
                    continue
            for side, row in zip(kept, ids, strict=True):
                side.append([*row, END_TOKEN_ID][: self.max_length])
        rows, left_out = [Ragged.of(side, self.dtype) for side in kept], left_out_by(zip(reasons, lines, strict=True))
        return Block(len(lines), [side.values for side in rows], [side.ends for side in rows], left_out)


def num_placeholders(tokenizers):
    """Number of placeholders that all of the tokenizers have."""
    return min(tokenizer.num_placeholders for tokenizer in tokenizers)
