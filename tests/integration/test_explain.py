"""The explainer, a page of an exported site: heads off, words hidden, positions moved; in a browser as in Python."""

import keras
import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter
from exports import LENGTH

from keras_transformer.export.tflite import device_functions
from keras_transformer.models.transformer import Transformer
from keras_transformer.text.special_ids import END_TOKEN_ID, START_TOKEN_ID, shifted_right
from keras_transformer.text.tokenizer import Tokenizer
from keras_transformer.translation.translator import Translator

# The graphs.

S, L, N, V, LAYERS, DECODER_LAYERS = 7, 5, 3, 17, 2, 1
SOURCE = np.array([[11, 5, 9, 7, 13, END_TOKEN_ID, 0]], "int32")
TARGET = np.array([[8, 15, 6, END_TOKEN_ID, 0]], "int32")
MODELS = {
    "pre-norm, untied": {"normalize_first": True, "tie_embeddings": "none"},
    "post-norm, positions from 2": {"first_position": 2, "tie_embeddings": "target", "output_bias": True},
    "learned positions": {"position_type": "learned", "max_length": 13},
    "language tags": {"source_language_token_id": 10, "layout": "concatenated", "normalize_first": True},
}


def random_model(**settings):
    sizes = {"num_layers": LAYERS, "num_decoder_layers": DECODER_LAYERS, "hidden_dim": 4 * N, "intermediate_dim": 11}
    model = Transformer(V, num_heads=N, **sizes, **settings)
    rng = np.random.default_rng(1)
    model.set_weights([rng.normal(scale=0.9, size=weight.shape) for weight in model.weights])
    return model


class Explained:
    """The functions of the signatures of a model, and what they find for `SOURCE` and `TARGET`."""

    def __init__(self, settings):
        tokenizer = Tokenizer.train(["a small dog", "a small cat", "a big dog"] * 9, vocabulary_size=V)
        self.settings, self.translator = settings, Translator(random_model(**settings), tokenizer)
        self.forbidden = self.translator.settings.forbidden
        self.functions = device_functions(self.translator, self.translator.settings, S, L, [], explain=True)

    def __call__(self, heads=None, positions=range(S), target_positions=range(L), source=SOURCE):
        """Log probabilities (L, V), and the attention scores of encoder, decoder and cross-attention, in layers."""
        heads = all_on() if heads is None else heads
        positions = np.array([positions], "int32")
        encoded = {**self.functions["explain_encode"](source, heads["encoder"], positions)}
        scores = {"encoder": encoded.pop("encoder_scores").numpy(), "decoder": [], "cross": []}
        cross = [encoded[name] for name in ("cross_keys", "cross_values", "cross_bias")]
        rows = DECODER_LAYERS * N
        keys, values, log_probs = np.zeros((rows, 4, L), "float32"), np.zeros((rows, L, 4), "float32"), []
        of_decoder = np.stack([heads["decoder"], heads["cross"]])
        for index, token in enumerate(shifted_right(TARGET)[0].numpy().tolist()):
            step = np.array([token], "int32"), np.array([index], "int32"), keys, values, *cross
            place = np.array([[target_positions[index]]], "int32")
            found = self.functions["explain_step"](*step, of_decoder, place)
            keys, values = found["next_self_keys"], found["next_self_values"]
            log_probs.append(found["log_probs"][0])
            scores["decoder"].append(found["self_scores"])
            scores["cross"].append(found["cross_scores"])
        for kind in ("decoder", "cross"):
            scores[kind] = np.stack(scores[kind], axis=2)
        return np.array(log_probs), scores


def all_on():
    layers = {"encoder": LAYERS, "decoder": DECODER_LAYERS, "cross": DECODER_LAYERS}
    return {kind: np.ones((number, N), "float32") for kind, number in layers.items()}


@pytest.fixture(scope="module", params=MODELS.values(), ids=MODELS)
def explained(request):
    return Explained(request.param)


def assert_as_model(explained, found, model, source=SOURCE):
    """What was found is the full forward pass of a model."""
    log_probs, scores = found
    decoder_token_ids = np.array(shifted_right(TARGET))
    logits = model({"encoder_token_ids": source, "decoder_token_ids": decoder_token_ids})
    count = 1 + TARGET[0].tolist().index(END_TOKEN_ID)  # Padding follows.
    wanted = keras.ops.log_softmax(logits)[0, :count].numpy()
    allowed = [i for i in range(V) if i not in explained.forbidden]
    np.testing.assert_allclose(log_probs[:count, allowed], wanted[:, allowed], atol=1e-4)
    assert log_probs[:, explained.forbidden].max() < -1e8
    wanted = model.attention_scores(source, decoder_token_ids)
    columns = {"encoder": S, "decoder": count, "cross": S}
    rows = {"encoder": S, "decoder": count, "cross": count}
    for kind, of_kind in wanted._asdict().items():
        one, other = scores[kind], np.stack([layer[0] for layer in of_kind])
        one, other = (x[:, :, : rows[kind], : columns[kind]] for x in (one, other))
        if kind == "encoder":  # What padding looks at is nothing.
            keep = source[0] != 0
            one, other = one[:, :, keep], other[:, :, keep]
        np.testing.assert_allclose(one, other, atol=1e-5)


def test_without_changes_it_is_the_model(explained):
    assert_as_model(explained, explained(), random_model(**explained.settings))


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_a_head_that_is_off_is_one_whose_output_projection_is_zero(explained, kind):
    heads, model = all_on(), random_model(**explained.settings)
    layer, head = len(heads[kind]) - 1, 1
    heads[kind][layer, head] = 0
    block = (model.encoder_blocks if kind == "encoder" else model.decoder_blocks)[layer]
    kernel = (block.cross_attention if kind == "cross" else block.self_attention).output_dense.kernel
    rows = np.arange(N * 4) // 4 == head
    kernel.assign(np.where(rows[:, None], 0, kernel))
    found = explained(heads)
    assert_as_model(explained, found, model)
    assert np.abs(found[0] - explained()[0]).max() > 1e-3


def test_a_hidden_word_is_not_there(explained):
    """Whatever the word: padding in the middle of the ids is seen by no attention."""
    source = SOURCE.copy()
    source[0, 2] = 0
    found = explained(source=source)
    assert_as_model(explained, found, random_model(**explained.settings), source)
    assert found[1]["encoder"][:, :, :, 2].max() == found[1]["cross"][:, :, :, 2].max() == 0
    # It is the sentence without the word, in which the later words keep their positions.
    shorter, places = [*source[0, :2], *source[0, 3:], 0], [0, 1, 3, 4, 5, 6, 2]
    np.testing.assert_allclose(found[0], explained(source=np.array([shorter]), positions=places)[0], atol=1e-4)


def test_moved_words_are_words_at_other_places(explained):
    """Without positions, attention does not know the order of words. So it is enough that both move."""
    order = [0, 3, 1, 4, 2, 5, 6]  # The first may be replaced by the token of a language.
    found = explained(source=SOURCE[:, order], positions=order)
    wanted, in_order = explained(), explained(positions=order)
    np.testing.assert_allclose(found[0], wanted[0], atol=1e-4)
    np.testing.assert_allclose(found[1]["cross"], wanted[1]["cross"][..., order], atol=1e-4)
    assert np.abs(in_order[0] - wanted[0]).max() > 1e-3


def test_target_positions_move_as_the_table_does(explained):
    log_probs, _ = explained(target_positions=range(2, L + 2))
    model, moved = (random_model(**explained.settings) for _ in range(2))
    table = moved.decoder_embedding
    if table.position_type == "learned":
        table.position_table.assign(np.roll(table.position_table, -2, axis=0))
    table.first_position += 2
    cross, cache = model.init_cross_cache(*model.encode(SOURCE)), moved.init_cache(1)
    allowed = [i for i in range(V) if i not in explained.forbidden]
    for index, token in enumerate(shifted_right(TARGET)[0]):
        logits, cache = moved.decode_step(token[None], cache, index, cross)
        wanted = keras.ops.log_softmax(logits)[0].numpy()
        np.testing.assert_allclose(log_probs[index, allowed], wanted[allowed], atol=1e-4)


@pytest.mark.parametrize("factor", [1, 0])
def test_the_file_of_a_page_has_the_signatures(golden, tflite, factor):
    interpreter = Interpreter(str(tflite / "float32" / "translator.tflite"))
    encode, explain_encode, explain_step = (
        interpreter.get_signature_runner(name) for name in ("encode", "explain_encode", "explain_step")
    )
    shapes = {name: detail["shape"] for name, detail in explain_step.get_input_details().items()}
    ids, start = np.zeros((1, LENGTH), "int32"), np.array([[START_TOKEN_ID]], "int32")
    source = golden.translator.codec.source_ids(golden.texts[:1])[0]
    ids[0, : len(source)] = source
    of_encoder, of_decoder = np.ones(shapes["heads"][1:], "float32"), np.ones(shapes["heads"], "float32")
    of_encoder[0, 1] = of_decoder[1, 0, 1] = factor
    model = Translator.load(golden.run_dir, jit_compile=False).model
    for layer in model.encoder_blocks[0].self_attention, model.decoder_blocks[0].cross_attention:
        kernel = np.array(layer.output_dense.kernel)
        kernel[layer.key_dim : 2 * layer.key_dim] *= factor
        layer.output_dense.kernel.assign(kernel)

    found = explain_encode(token_ids=ids, heads=of_encoder, positions=np.arange(LENGTH, dtype="int32")[None])
    encoder_scores = found.pop("encoder_scores")
    if factor == 1:
        for name, array in encode(token_ids=ids).items():
            np.testing.assert_allclose(found[name], array, atol=1e-5)
    inputs = {f"{name}_in": array for name, array in found.items()}
    inputs |= {name: np.zeros(shapes[name], "float32") for name in ("self_keys", "self_values")}
    places = {"position": np.array([0], "int32"), "positions": np.array([[0]], "int32")}
    outputs = explain_step(token=start[0], heads=of_decoder, **places, **inputs)
    logits = model({"encoder_token_ids": ids, "decoder_token_ids": start})
    allowed = outputs["log_probs"][0] > -1e8
    assert allowed.sum() == len(allowed) - len(golden.translator.settings.forbidden)
    wanted = keras.ops.log_softmax(logits)[0, 0].numpy()
    np.testing.assert_allclose(outputs["log_probs"][0, allowed], wanted[allowed], atol=1e-3)
    scores = model.attention_scores(ids, start)
    rows = slice(len(source))  # What padding looks at is nothing.
    np.testing.assert_allclose(encoder_scores[:, :, rows], np.concatenate(scores.encoder)[:, :, rows], atol=1e-4)
    np.testing.assert_allclose(outputs["cross_scores"][:, :, None], np.concatenate(scores.cross), atol=1e-4)


def test_the_file_of_a_device_does_without_them(explained):
    translator = explained.translator
    names = device_functions(translator, translator.settings, S, L, []).keys()
    assert set(explained.functions) - set(names) == {"explain_encode", "explain_step"}


# The search in the browser.


@pytest.fixture(scope="module")
def shared(site, opened_for_all):
    page = opened_for_all(site)
    page.wait_for_selector("#translate:enabled")
    return page


@pytest.fixture
def explain(shared):
    """`explain(text, **changes)` is what the library says."""
    yield lambda text, **changes: shared.evaluate("(all) => translator.explain(...all)", [text, changes])
    assert shared.errors == []


@pytest.mark.parametrize(
    "settings", [{}, {"num_beams": 1}, {"num_beams": 7}, {"length_penalty": -1.5}, {"length_penalty": 4.0}]
)
def test_a_search_without_changes_is_that_of_python(golden, explain, settings):
    k = settings.get("num_beams", 4)
    names = {"num_beams": "numBeams", "length_penalty": "lengthPenalty"}
    texts, limit = [*golden.texts[:9], "{x} und 5 kg", f"{golden.texts[0]} {{name}}"], {"max_target_length": 2 * LENGTH}
    wanted = golden.translator.translate(texts, num_hypotheses=k, return_scores=True, **limit, **settings)
    for text, hypotheses in zip(texts, wanted, strict=True):
        found = explain(text, **{names[name]: value for name, value in settings.items()})
        hypotheses = hypotheses if k > 1 else [hypotheses]
        assert [one["text"] for one in found["hypotheses"]] == [one.text for one in hypotheses]
        scores = [one["score"] for one in found["hypotheses"]]
        assert scores == pytest.approx([one.score for one in hypotheses], abs=2e-3)
