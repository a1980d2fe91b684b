"""SentencePiece models as public translators have them, made here: our own ids are not theirs."""

import functools
import io

import sentencepiece
from trainings import phrases

from keras_transformer.text.sentencepiece_tokenizer import SentencePieceTokenizer
from keras_transformer.transfer import importing
from keras_transformer.transfer.importing import report, vocabulary
from keras_transformer.translation.batched_search import pad

KINDS = ["unigram", "bpe", "unigram, bytes", "bpe, bytes"]


def texts(side):
    """The sentences of one side of the phrasebook, or with None of both."""
    return [text for pair in phrases() for text in (pair if side is None else pair[side : side + 1])]


def trained_with(sentences, kind="unigram", size=700, **settings):
    """A model of sentences, as bytes; ids are SentencePiece's default ones."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences),
        model_writer=model,
        model_type=kind,
        vocab_size=size,
        hard_vocab_limit=False,
        minloglevel=2,
        num_threads=1,
        **settings,
    )
    return model.getvalue()


@functools.cache
def trained(side, kind="unigram", size=700, **settings):
    """A model of one side of the phrasebook, or with None of both, as bytes."""
    return trained_with(texts(side)[:2000], kind, size, **settings)


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


def assert_same_ids(name, count):
    """The ids of `count` strings, in Python and in the graph, are those of an original of a kind in `KINDS`."""
    kind, byte_fallback = name.split(",")[0], "bytes" in name
    spm = [trained(side, kind, 900, byte_fallback=byte_fallback) for side in (0, 1)]
    models = [vocabulary.parse(model, "model") for model in spm]
    tokens = joint_tokens(models)
    left_out = [token for token in tokens if token.endswith("ing")][:2]  # Pieces that the list lacks.
    assert left_out
    tokens = [token for token in tokens if token not in left_out]
    space = vocabulary.id_space(tokens, 1, 0, len(tokens) - 1, models)
    assert set(space.pieces[-len(left_out) :]) == set(left_out)
    tokenizers = [
        SentencePieceTokenizer(vocabulary.rewritten(model, space, tags))
        for model, tags in zip(models, ("read", None), strict=True)
    ]
    original = importing.Original({}, None, (tokens, tokens), tuple((x, "") for x in spm), (1, 1), (0, 0), None, {}, 99)
    imported = importing.Imported(original, tokenizers, (space, space))
    for side, tokenizer in enumerate(tokenizers):
        strings = [">>deu<< A tag."] * (side == 0) + [*report.HOSTILE]
        strings += texts(side)[: count - len(strings)]
        assert len(strings) == count
        different = report.different_ids(imported, strings)[side]
        # The original reads several unknown characters in a row as one unknown token, even if its list has them, and
        # it splits off a tag at the beginning alone.
        runs = [text for text in report.HOSTILE if text.startswith(("UPPER", "3.14", "xxx"))]
        assert set(different) <= {*runs, *report.HOSTILE[-2:]}, different
        ids = tokenizer.tokenize(strings)
        assert tokenizer.graph_tokenize(strings).to_list() == ids
        rows = ids[::50] + [[5, i, 6] for i in range(4, tokenizer.vocabulary_size, 7)]
        graph = tokenizer.graph_detokenize(pad(rows)).numpy()
        assert [text.decode() for text in graph] == tokenizer.detokenize(rows)
