"""SentencePiece models as public translators have them, made here: our own ids are not theirs."""

import functools
import io

import sentencepiece

from keras_transformer.importing import vocabulary
from keras_transformer.phrasebook import phrasebook
from keras_transformer.tokenizers import SentencePieceTokenizer


def texts(side):
    """The sentences of one side of the phrasebook, or with None of both."""
    return [text for pair in phrasebook()["train"] for text in (pair if side is None else pair[side : side + 1])]


@functools.cache
def trained(side, kind="unigram", size=700, **settings):
    """A model of one side of the phrasebook, or with None of both, as bytes; ids are SentencePiece's default ones."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts(side)[:2000]),
        model_writer=model,
        model_type=kind,
        vocab_size=size,
        hard_vocab_limit=False,
        minloglevel=2,
        num_threads=1,
        **settings,
    )
    return model.getvalue()


def joint_tokens(models, tags=(">>deu<<", ">>nld<<"), pad=True):
    """The list of tokens of such models, as in OPUS-MT: the end and the unknown token, then the sorted union."""
    pieces = {piece for model in models for piece, _, kind in vocabulary.pieces_of(model) if kind != vocabulary.CONTROL}
    return ["</s>", "<unk>", *sorted((pieces | set(tags)) - {"<unk>"}), *["<pad>"] * pad]


def imported_tokenizer(kind="unigram", **settings):
    """The tokenizer of the source of such a model, as importing makes it."""
    models = [vocabulary.parse(trained(side, kind, **settings), "model") for side in (0, 1)]
    tokens = joint_tokens(models)
    space = vocabulary.id_space(tokens, 1, 0, len(tokens) - 1, models)
    return SentencePieceTokenizer(vocabulary.rewritten(models[0], space, "read"))
