"""The translator of a trained run: order of texts, empty texts, n-best lists, scores, files."""

import json
import shutil

import numpy as np
import pytest
from keras import ops

from keras_transformer.search.decoder import length_penalty_divisor
from keras_transformer.search.settings import SearchSettings
from keras_transformer.text.special_ids import END_TOKEN_ID, START_TOKEN_ID
from keras_transformer.translation.results import Translation
from keras_transformer.translation.translator import Translator

# Each number of beams and of hypotheses is a search of its own, which takes seconds to trace. So tests search with the
# translator's four beams or with one.


def test_the_order_of_the_texts_is_kept(golden):
    """Texts of all lengths, in batches: each translation equals that of the text alone."""
    texts = golden.texts * 3
    together = golden.translator.translate(texts)
    assert together == [golden.translator.translate([text])[0] for text in golden.texts] * 3


@pytest.mark.parametrize("text", ["", " ", "\t", "\u3000"])
def test_empty_texts_have_empty_translations(golden, text):
    found = golden.translator.translate([text, golden.texts[0]], return_scores=True)
    assert found[0] == Translation("", 0.0)
    assert found[1].text


def test_n_best_lists_are_sorted_and_begin_with_the_best_translation(golden):
    found = golden.translator.translate(golden.texts, num_hypotheses=4, return_scores=True)
    for hypotheses, text in zip(found, golden.translator.translate(golden.texts), strict=True):
        assert hypotheses[0].text == text
        scores = [hypothesis.score for hypothesis in hypotheses]
        assert scores == sorted(scores, reverse=True)
        assert len(hypotheses) == 4


@pytest.mark.parametrize("num_beams", [1, 4])
def test_scores_are_those_of_a_full_forward_pass(golden, num_beams):
    """The score of a translation is the model's own log probability of it, divided by the length penalty."""
    translator, texts = golden.translator, golden.texts
    for text, found in zip(texts, translator.translate(texts, num_beams=num_beams, return_scores=True), strict=True):
        source = [*translator.source_tokenizer.tokenize([text])[0], END_TOKEN_ID]
        target = found.token_ids
        inputs = {
            "encoder_token_ids": np.array([source], "int32"),
            "decoder_token_ids": np.array([[START_TOKEN_ID, *target[:-1]]], "int32"),
        }
        log_probs = ops.convert_to_numpy(ops.log_softmax(translator.model(inputs)[0], axis=-1))
        total = sum(log_probs[i, token] for i, token in enumerate(target))
        np.testing.assert_allclose(found.score, total / length_penalty_divisor(len(target), 0.6), rtol=1e-4)


def test_load_reads_all_files_of_a_run_folder(golden):
    loaded = Translator.load(golden.run_dir)
    assert loaded.settings == golden.translator.settings
    assert loaded.translate(golden.texts, num_beams=1) == golden.translator.translate(golden.texts, num_beams=1)
    config = json.loads((golden.run_dir / "config.json").read_text())
    assert loaded.settings.length_penalty == config["search"]["length_penalty"]
    settings = Translator.load(golden.run_dir, num_beams=2, max_target_length=7).settings
    assert settings == SearchSettings(num_beams=2, length_penalty=0.6, max_target_length=7)


def copy_of_run(golden, folder):
    """A copy of the files of a run that `Translator.load` reads."""
    for name in ("config.json", "model.keras", "tokenizer.spm"):
        shutil.copy(golden.run_dir / name, folder / name)
    return folder


def changed_in_the_middle(content):
    place = len(content) // 2
    return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("model.keras", lambda old: old[: len(old) // 2], "a `.keras` file is a zip file, and this is not one"),
        ("model.keras", lambda old: b"", "a `.keras` file is a zip file, and this is not one"),
        ("model.keras", lambda old: changed_in_the_middle(old), "BadZipFile: Bad CRC-32"),
        ("tokenizer.spm", lambda old: old[:-1], "cannot be used as a tokenizer"),
        ("config.json", lambda old: old[:-9], "not JSON"),
        ("config.json", lambda old: b"{}", "must have the sections of a run"),
    ],
)
def test_a_damaged_file_of_a_run_is_named_with_the_repair(golden, tmp_path, file, content, message):
    run = copy_of_run(golden, tmp_path)
    (run / file).write_bytes(content((run / file).read_bytes()))
    with pytest.raises(
        ValueError, match=rf"^{run / file}.*{message}.*Restore (it|the file) from a copy, or train"
    ) as caught:
        Translator.load(run)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("num_beams", [1, 4])
def test_translations_begin_with_their_prefix(golden, num_beams):
    beginning = " ".join(golden.translator.translate(golden.texts[5:6])[0].split()[:2])
    prefixes = [beginning, None, ""]
    found = golden.translator.translate(golden.texts[:3], prefixes=prefixes, num_beams=num_beams)
    assert found[0].startswith(beginning)
    assert found[1:] == golden.translator.translate(golden.texts[1:3], num_beams=num_beams)


def test_a_stream_reads_only_one_chunk_ahead_and_keeps_the_order(golden):
    read = []

    def lines():
        for text in golden.texts * 2:
            read.append(text)
            yield text

    stream = golden.translator.stream(lines(), chunk_size=4)
    first = next(stream)
    assert len(read) == 4
    assert [first, *stream] == golden.translator.translate(golden.texts) * 2


def test_a_stream_takes_a_prefix_for_each_text(golden):
    prefixes = [text.split()[0] for text in golden.translator.translate(golden.texts)][::-1]
    found = list(golden.translator.stream(golden.texts, chunk_size=4, prefixes=iter(prefixes)))
    assert found == golden.translator.translate(golden.texts, prefixes=prefixes)


def test_score_is_the_sum_of_the_models_log_probabilities(golden):
    translations = golden.translator.translate(golden.texts, return_scores=True)
    found = golden.translator.score(golden.texts, [translation.text for translation in translations])
    for translation, target in zip(translations, found, strict=True):
        assert target.log_prob == pytest.approx(sum(target.token_log_probs), rel=1e-4)
        assert len(target.tokens) == len(target.token_log_probs)
        penalised = target.log_prob / length_penalty_divisor(len(target.tokens), 0.6)
        assert penalised == pytest.approx(translation.score, rel=1e-3)
    worse = golden.translator.score(golden.texts, golden.texts)
    assert all(a.log_prob > b.log_prob for a, b in zip(found, worse, strict=True))


def test_attention_comes_with_the_tokens_and_sums_to_one(golden):
    found = golden.translator.translate(["", *golden.texts], return_attention=True)
    assert found[0].attention is None
    for translation in found[1:]:
        attention = translation.attention
        layers, heads, target, source = attention.scores.shape
        assert (layers, heads) == (len(golden.model.decoder_blocks), golden.model.decoder_blocks[0].num_heads)
        assert (target, source) == (len(attention.target_tokens), len(attention.source_tokens))
        np.testing.assert_allclose(attention.scores.sum(axis=-1), 1.0, atol=1e-4)
        assert len(attention.alignment()) == target
        assert set(attention.alignment(layer=0)) <= set(range(source))
