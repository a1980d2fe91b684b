"""Texts into sentences and back: the vectors of sentences.json, in Python and in a graph.

test_web.py runs the same vectors in JavaScript, test_device_examples.py in Java.
"""

import numpy as np
import pytest


def test_spans(golden):
    text = "  " + golden.texts[0] + "\n\n- " + golden.texts[1] + " " + golden.texts[2] + "\n"
    found = golden.translator.translate_text(text, return_sentences=True)
    translations = golden.translator.translate(golden.texts[:3])
    assert found.text == f"  {translations[0]}\n\n- {translations[1]} {translations[2]}\n"
    assert golden.translator.translate_text(text) == found.text
    for sentence, source, target in zip(found.sentences, golden.texts, translations, strict=False):
        assert text[slice(*sentence.source_span)] == source
        assert found.text[slice(*sentence.target_span)] == target == sentence.translation.text


def test_a_long_sentence_is_cut_and_nothing_is_lost(golden):
    long = ", and ".join(text.rstrip(".") for text in golden.texts * 3) + "."
    found = golden.translator.translate_text(long, return_sentences=True)
    assert len(found.sentences) > 1
    assert not any(sentence.translation.truncated for sentence in found.sentences)
    assert "".join(long[slice(*sentence.source_span)] + " " for sentence in found.sentences).strip() == long


def test_a_text_is_one_string(golden):
    with pytest.raises(TypeError, match=r"`text` must be one string. Received: \['a'\]. For a list"):
        golden.translator.translate_text(["a"])
    with pytest.raises(TypeError, match=r"`text` must be one string. Received: b'<p>'"):
        golden.translator.translate_html(b"<p>")
    for wrong in ({"num_hypotheses": 2}, {"prefixes": ["x"]}):
        with pytest.raises(ValueError, match=r"A whole text has one translation and no prefixes\. Received: "):
            golden.translator.translate_text("a", **wrong)


def test_the_signature_translates_a_text_as_python_does(origin, served):
    long = ", and ".join(origin.texts * 2)
    texts = [
        " ".join(origin.texts[:3]),
        "- " + "\n\n- ".join(origin.texts[3:5]) + "\n",
        "",
        " \n",
        long,
    ]
    found = served("translate_document", text=np.array([text.encode() for text in texts], object))["translation"]
    assert [text.decode() for text in found] == [origin.translator.translate_text(text) for text in texts]
