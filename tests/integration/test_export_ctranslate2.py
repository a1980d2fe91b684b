"""The exported CTranslate2 model finds what our search finds, with the same scores."""

import ctranslate2
import keras
import numpy as np
import pytest
from arrays import seed_weights

from keras_transformer.__main__ import main
from keras_transformer.export import ExportError
from keras_transformer.export.ctranslate2 import export_ctranslate2
from keras_transformer.export.verify import verify
from keras_transformer.files import FileError
from keras_transformer.layers.encoder_block import EncoderBlock
from keras_transformer.models.transformer import Transformer
from keras_transformer.search.next_token import forbid
from keras_transformer.text.placeholders import placeholder
from keras_transformer.text.special_ids import FIRST_PLACEHOLDER_ID, START_TOKEN_ID
from keras_transformer.text.tokenizer import Tokenizer
from keras_transformer.translation.batched_search import pad
from keras_transformer.translation.translator import Translator

TEXTS = ["a small dog", "a small cat sees a big dog", "a big dog", "the cat", "a dog and a cat and a small big dog"]


class BlockWithOtherNorm(EncoderBlock):
    norm_class = keras.layers.RMSNormalization


class WithOtherNorm(Transformer):
    encoder_block_class = BlockWithOtherNorm


def both(translator, folder, texts, num_beams, num_hypotheses=1):
    """What both searches find without length penalty; the limit is small, since an untrained model rarely ends."""
    settings = {"num_hypotheses": num_hypotheses, "length_penalty": 0, "return_scores": True}
    theirs = ctranslate2.Translator(str(folder), intra_threads=1).translate_batch(
        [translator.source_tokenizer.pieces(ids) for ids in translator.source_tokenizer.tokenize(texts)],
        beam_size=num_beams,
        return_end_token=True,
        max_decoding_length=20,
        min_decoding_length=0,  # By default it forbids to end at once.
        # Our search writes no placeholder that the source does not have.
        suppress_sequences=[[placeholder(i)] for i in range(translator.target_tokenizer.num_placeholders)],
        **settings,
    )
    return translator.translate(texts, num_beams=num_beams, max_target_length=20, **settings), theirs


def assert_same(translator, folder, texts, num_beams):
    ours, theirs = both(translator, folder, texts, num_beams)
    scores = scores_of_theirs(translator, ours, texts)
    for mine, score, other in zip(ours, scores, theirs, strict=True):
        assert translator.target_tokenizer.pieces(mine.token_ids) == other.hypotheses[0]
        np.testing.assert_allclose(score, other.scores[0], rtol=1e-3, atol=1e-3)


def scores_of_theirs(translator, translations, texts):
    """The log probabilities of translations where forbidden tokens have none, as in CTranslate2."""
    placeholders = range(FIRST_PLACEHOLDER_ID, FIRST_PLACEHOLDER_ID + translator.target_tokenizer.num_placeholders)
    rows = [translation.token_ids for translation in translations]
    return log_probabilities(translator, rows, texts, (*translator.settings.forbidden, *placeholders))


def log_probabilities(translator, rows, texts, forbidden=()):
    """Those of token ids, a row for each text."""
    inputs = {
        "encoder_token_ids": pad(translator.codec.source_ids(texts)),
        "decoder_token_ids": pad([[START_TOKEN_ID, *ids[:-1]] for ids in rows]),
    }
    log_probs = np.array(keras.ops.log_softmax(forbid(translator.model(inputs), forbidden)))
    return [log_probs[i, range(len(ids)), ids].sum() for i, ids in enumerate(rows)]


@pytest.fixture(scope="module")
def exported(golden, tmp_path_factory):
    return export_ctranslate2(golden.translator, tmp_path_factory.mktemp("ctranslate2") / "model")


@pytest.mark.parametrize("num_beams", [1, 4])
def test_a_trained_model_gives_the_same_translations_and_scores(golden, exported, num_beams):
    assert_same(golden.translator, exported, golden.texts, num_beams)


def test_a_folder_is_verified_later(golden, tmp_path, capsys):
    folder = export_ctranslate2(golden.translator, tmp_path / "model")
    assert list(verify(folder, golden.translator)) == [
        (folder, 1.0, f"{folder} has the files of the export. Translations of CTranslate2 are not compared.")
    ]
    (folder / "config.json").write_text("{}")
    # Before the run is looked at, which has no model here.
    with pytest.raises(SystemExit):
        main(["export", "verify", str(folder), str(tmp_path)])
    assert "not those of the export: config.json has changed. Export it again." in capsys.readouterr().err


def test_n_best_lists_hold_what_theirs_hold_or_better(golden, exported):
    """CTranslate2 stops when enough hypotheses have ended; ours go on until no better one can come.

    Better by our own scores: those of CTranslate2, where forbidden tokens have no probability, can order hypotheses
    with nearly equal scores in another way.
    """
    ours, theirs = both(golden.translator, exported, golden.texts, num_beams=4, num_hypotheses=3)
    vocabulary_size = golden.tokenizer.vocabulary_size
    id_of_piece = {piece: i for i, piece in enumerate(golden.tokenizer.pieces(range(vocabulary_size)))}
    texts = [text for text in golden.texts for _ in range(3)]
    hypotheses = [hypothesis for row in ours for hypothesis in row]
    pieces = [hypothesis for row in theirs for hypothesis in row.hypotheses]
    scores = [score for row in theirs for score in row.scores]
    their_ids = [[id_of_piece[piece] for piece in row] for row in pieces]
    by_our_scores = log_probabilities(golden.translator, their_ids, texts)
    comparable = scores_of_theirs(golden.translator, hypotheses, texts)
    same = []
    worse = [hypothesis.score < score - 1e-3 for hypothesis, score in zip(hypotheses, by_our_scores, strict=True)]
    assert not any(worse[::3]) and sum(worse) <= 1  # Rounding can prune what would have become the last of a list.
    for i, hypothesis in enumerate(hypotheses):
        same.append(golden.tokenizer.pieces(hypothesis.token_ids) == pieces[i])
        assert not same[-1] or comparable[i] == pytest.approx(scores[i], rel=1e-3)
    assert len(same) == len(scores) and np.mean(same) > 0.5


@pytest.mark.parametrize(
    "config",  # Each model has several settings that do not depend on each other; the golden run has others.
    [
        {"activation": "gelu", "tie_embeddings": "none", "num_layers": 2, "num_decoder_layers": 1},
        {"activation": "silu", "tie_embeddings": "target", "layer_norm_epsilon": 1e-2, "output_bias": True}
        | {"layout": "concatenated", "max_wavelength": 99.5, "scale_embeddings": False},
        {"activation": "tanh", "position_type": "learned", "max_length": 40},
        {"activation": "sigmoid", "normalize_first": True, "tie_embeddings": "none"},
    ],
    ids=str,
)
def test_every_configuration_that_can_be_expressed_is_the_same(config, tmp_path):
    tokenizer = Tokenizer.train(TEXTS * 9, vocabulary_size=None)
    seed_weights(5)
    sizes = {"num_layers": 1, "num_heads": 2, "hidden_dim": 12, "intermediate_dim": 7}
    model = Transformer(tokenizer.vocabulary_size, **{**sizes, **config})
    for variable in model.trainable_variables:  # Biases and gains that are not 0 and 1 could be in the wrong place.
        variable.assign_add(0.1 * np.random.default_rng(len(variable.path)).normal(size=variable.shape))
    translator = Translator(model, tokenizer)
    assert_same(translator, export_ctranslate2(translator, tmp_path / "model"), TEXTS, num_beams=1)


def test_two_vocabularies(tmp_path):
    source, target = Tokenizer.train(TEXTS * 9, vocabulary_size=20), Tokenizer.train(TEXTS * 9, vocabulary_size=23)
    seed_weights(1)
    model = Transformer(20, 23, num_layers=1, num_heads=2, hidden_dim=12, intermediate_dim=7, tie_embeddings="target")
    translator = Translator(model, source, target)
    folder = export_ctranslate2(translator, tmp_path / "model")
    assert {"source_vocabulary.json", "target_vocabulary.json"} <= {path.name for path in folder.iterdir()}
    assert_same(translator, folder, TEXTS, num_beams=1)


def test_int8_is_smaller(golden, tmp_path):
    folders = [export_ctranslate2(golden.translator, tmp_path / kind, kind) for kind in ("float32", "int8")]
    sizes = [(folder / "model.bin").stat().st_size for folder in folders]
    assert sizes[1] < sizes[0]


def test_the_tokenizer_lies_beside_the_model(golden, exported):
    assert Tokenizer.load(exported / "tokenizer").tokenize(golden.texts) == golden.tokenizer.tokenize(golden.texts)


def test_what_cannot_be_exported_is_an_error(golden, tmp_path):
    model = Transformer(
        golden.tokenizer.vocabulary_size, num_layers=1, num_heads=1, hidden_dim=4, intermediate_dim=5, activation="elu"
    )
    with pytest.raises(ExportError, match="CTranslate2 has no activation 'elu'"):
        export_ctranslate2(Translator(model, golden.tokenizer), tmp_path / "model")
    changed = WithOtherNorm(
        golden.tokenizer.vocabulary_size, num_layers=1, num_heads=1, hidden_dim=4, intermediate_dim=5
    )
    with pytest.raises(
        ExportError, match=r"blocks of the paper alone: .* Received: BlockWithOtherNorm\. Export a Saved"
    ):
        export_ctranslate2(Translator(changed, golden.tokenizer), tmp_path / "model")
    model.encoder_blocks[0].feed_forward.output_dense.quantize("int8")  # As the `quantize` of a model around it.
    with pytest.raises(
        ExportError, match=r"weights themselves, so they must be floats\. Received: .* quantized to int8\."
    ):
        export_ctranslate2(Translator(model, golden.tokenizer), tmp_path / "model")
    with pytest.raises(ExportError, match="`quantize` must be one of"):
        export_ctranslate2(golden.translator, tmp_path / "model", quantize="int3")
    assert not list(tmp_path.iterdir())
    export_ctranslate2(golden.translator, tmp_path / "model")
    with pytest.raises(FileError, match=r"model exists: .* Replace it with --overwrite"):
        export_ctranslate2(golden.translator, tmp_path / "model")
    assert export_ctranslate2(golden.translator, tmp_path / "model", overwrite=True) == tmp_path / "model"
