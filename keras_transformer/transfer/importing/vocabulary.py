"""The vocabulary of a public model as one id space of this package, without a table between pieces and ids.

Public models keep SentencePiece files beside a list of tokens, and their ids are places in that list. Here, an id is
the place of a piece in the SentencePiece file. So the files are rewritten: both get all tokens of the list, in an order
that begins with our special tokens. A file's own pieces keep their scores. The tokens that it did not have get scores
so low that it never produces them, except single characters, which it did not know: the original, too, finds them in
its list. Where the original looks a piece up and finds none, it reads the unknown token. Such a piece gets an id of its
own here, with the weights of the unknown token.
"""

import collections
import itertools
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from keras_transformer.text.sentencepiece_model import (
    BPE,
    BYTE,
    CONTROL,
    NORMAL,
    UNIGRAM,
    UNKNOWN,
    UNUSED,
    USER_DEFINED,
    message_class,
)
from keras_transformer.text.special_ids import END_TOKEN_ID, PAD_TOKEN_ID, START_TOKEN_ID, UNKNOWN_TOKEN_ID
from keras_transformer.text.tokenizer import TokenizerError

# Types of pieces that encoding may give.
PRODUCED = (NORMAL, USER_DEFINED, BYTE)
SPECIAL = ("<pad>", "<unk>", "<s>", "</s>")
# A tag at the beginning of a source chooses the target language of a multilingual model, such as >>deu<<.
LANGUAGE_TAG = re.compile(">>[^<>]+<<")
# As in the library: an unknown character scores this much below the worst piece.
UNKNOWN_PENALTY = 10.0
# The bias of tokens that are never written: e^-1000 is 0, and half precision can represent it.
NEVER = -1000.0
# What is taken off the bias of the unknown token for tokens that the original does not have.
UNLIKELY = 30.0


class IdSpace(NamedTuple):
    """The ids of a model, and where their weights come from.

    Attributes:
        pieces: the piece of each id; the first four are special.
        rows: int array, for each id its row in the original matrices; -1 for a row of zeros.
        written: bool array, for each id whether a translation may contain it.
    """

    pieces: list[str]
    rows: np.ndarray
    written: np.ndarray

    def take(self, matrix: np.ndarray) -> np.ndarray:
        """The rows (V, ...) of an original matrix in the order of the ids."""
        taken = matrix[self.rows]
        taken[self.rows < 0] = 0
        return taken

    def bias(self, original: np.ndarray | None, start_counts: bool = False) -> np.ndarray:
        """The output bias (V,), from the original one or None; `start_counts`: see `Original`."""
        bias = np.zeros(len(self.rows), "float32") if original is None else self.take(original)
        ids = np.arange(len(self.rows))
        counts = self.written | ((ids == START_TOKEN_ID) & start_counts)
        # Pieces that the original lacks have the row of the unknown token. Training may learn them.
        return np.where(counts, bias, np.where(ids > END_TOKEN_ID, bias - UNLIKELY, NEVER).astype("float32"))


def id_space(tokens: Sequence[str], unknown: int, end: int, start: int | None, models: Iterable[Any]) -> IdSpace:
    """The `IdSpace` of a list of tokens.

    Args:
        tokens: the tokens of the original, by id.
        unknown, end: ids of the unknown and the end token in this list.
        start: the id of the token that a translation starts with; None if it starts with a zero embedding.
        models: parsed SentencePiece models that produce these tokens, see `parse`.
    """
    # Tags first: a shortlist has the first ids, and both vocabularies of a trimmed model have the same ids for tags.
    others = sorted(
        set(range(len(tokens))) - {unknown, end, start}, key=lambda i: (not LANGUAGE_TAG.fullmatch(tokens[i]), i)
    )
    known = set(tokens)
    missing = dict.fromkeys(piece for model in models for piece in produced(model) if piece not in known)
    rows = [-1, unknown, -1 if start is None else start, end, *others, *[unknown] * len(missing)]
    taken = known | missing.keys()
    pieces = [*SPECIAL, *(_unique(tokens[i], taken) for i in others), *missing]
    written = np.ones(len(rows), bool)
    written[[PAD_TOKEN_ID, START_TOKEN_ID]] = False
    written[len(rows) - len(missing) :] = False
    return IdSpace(pieces, np.array(rows), written)


def trimmed(space: IdSpace, model: Any, texts: Iterable[str] | None = None, tags: bool = False) -> IdSpace:
    """The part of an `IdSpace` that one SentencePiece model produces.

    Args:
        space: an `IdSpace`.
        model: the parsed model.
        texts: strings. If they are given, only pieces that these texts have are kept, and single characters, which
            write everything else.
        tags: whether language tags are kept. Defaults to False.
    """
    found = produced(model)
    if texts is not None:
        import sentencepiece

        processor = sentencepiece.SentencePieceProcessor(model_proto=model.SerializeToString())
        needed = {piece for row in processor.encode(list(texts), out_type=str) for piece in row}
        found = [piece for piece, kind in found.items() if kind != NORMAL or len(piece) == 1 or piece in needed]
    found = {*found, *filter(LANGUAGE_TAG.fullmatch, space.pieces)} if tags else set(found)
    kept = [i for i, piece in enumerate(space.pieces) if i < len(SPECIAL) or piece in found]
    return IdSpace([space.pieces[i] for i in kept], space.rows[kept], space.written[kept])


def _unique(token, others):
    """A token as a piece; a piece must be unique, not empty, and not one of the special ones."""
    if token and token not in SPECIAL:
        return token
    return next(piece for n in itertools.count(1) if (piece := token + n * "\u2581") not in others)


def parse(model: bytes, name: str) -> Any:
    """A SentencePiece model as a protocol buffer, from bytes.

    Raises:
        TokenizerError: the bytes are not a SentencePiece model of type unigram or BPE; `name` is the file's.
    """
    from google.protobuf.message import DecodeError

    try:
        parsed = message_class().FromString(model)
    except DecodeError as error:
        raise TokenizerError(f"{name} is not a SentencePiece model, or is damaged: {error}.") from error
    if not parsed.pieces or parsed.trainer_spec.model_type not in (UNIGRAM, BPE):
        raise TokenizerError(f"{name} is not a SentencePiece model of type unigram or BPE, or is damaged.")
    if parsed.trainer_spec.treat_whitespace_as_suffix:
        raise TokenizerError(
            f"{name} cannot be imported: a space must be the beginning of a piece, because exports read texts so. "
            "Received: treat_whitespace_as_suffix=true."
        )
    return parsed


def pieces_of(model: Any) -> list[tuple[str, float, int]]:
    """(piece, score, type) of each piece of a parsed model."""
    return [(piece.piece.decode("utf-8", "replace"), piece.score, piece.type) for piece in model.pieces]


def produced(model: Any) -> dict[str, int]:
    """The types of the pieces that encoding may give."""
    return {piece: kind for piece, _, kind in pieces_of(model) if kind in PRODUCED}


def rewritten(model: Any, space: IdSpace, tags: str | None = None) -> bytes:
    """A SentencePiece model, as bytes, that gives the ids of `space`.

    Args:
        model: the parsed original.
        space: an `IdSpace` with all pieces that the original produces.
        tags: what language tags are: `"read"` at the beginning of a text, `"hidden"`, so that no text has them, or
            pieces that are never produced, the default.
    """
    original = {piece: (score, kind) for piece, score, kind in pieces_of(model) if kind in (*PRODUCED, UNUSED)}
    # What SentencePiece gives to an unknown character.
    lowest = min((score for score, kind in original.values() if kind == NORMAL), default=0.0) - UNKNOWN_PENALTY
    characters = set().union(*original)
    new = message_class()()
    new.CopyFrom(model)
    del new.pieces[:]
    unigram = model.trainer_spec.model_type == UNIGRAM
    for i, piece in enumerate(space.pieces):
        if i < len(SPECIAL):
            score, kind = 0.0, UNKNOWN if i == UNKNOWN_TOKEN_ID else CONTROL
        elif tags == "hidden" and LANGUAGE_TAG.fullmatch(piece):
            score, kind = 0.0, CONTROL
        elif tags == "read" and LANGUAGE_TAG.fullmatch(piece):
            # With the best possible score, no other segmentation is chosen. SentencePiece begins a text with a space.
            piece, score, kind = f"\u2581{piece}", 0.0, NORMAL if unigram else USER_DEFINED
        elif piece in original:
            score, kind = original[piece]
        elif not model.trainer_spec.byte_fallback and (unigram or len(piece) == 1):
            # Below the score of its characters alone, if the file knows one of them; above it, if the original reads
            # them as one unknown piece, which it finds in its list. FastSentencepiece refuses the type `UNUSED`.
            score, kind = len(piece) * lowest, NORMAL
            if len(piece) > 1:
                score += 1.0 if characters.isdisjoint(piece) else -1.0
        else:  # BPE joins pieces by their scores, and splits unused ones again at the end.
            score, kind = lowest, UNUSED
            # tensorflow-text's BPE gives a character the id of an unused piece; with a space it is another piece.
            piece += "" if unigram or len(piece) > 1 else "\u2581"
        new.pieces.add(piece=piece.encode(), score=score, type=kind)
    names = collections.Counter(piece.piece for piece in new.pieces)
    if len(names) < len(new.pieces):
        ((name, _),) = names.most_common(1)
        raise TokenizerError(
            "The tokens of the vocabulary must stay different as pieces of SentencePiece. "
            f"Received: two that become {name.decode()!r}. Rename the one that no text needs."
        )
    trainer = new.trainer_spec
    trainer.vocab_size = len(space.pieces)
    ids = {"pad": PAD_TOKEN_ID, "unk": UNKNOWN_TOKEN_ID, "bos": START_TOKEN_ID, "eos": END_TOKEN_ID}
    for name, i in ids.items():
        setattr(trainer, f"{name}_id", i)
        setattr(trainer, f"{name}_piece", SPECIAL[i].encode())
    return new.SerializeToString(deterministic=True)
