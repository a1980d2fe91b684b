"""The shortlist: what it chooses, and that a search with it is a search among the chosen tokens."""

import pytest
from trainings import phrases

from keras_transformer.export.saved_model import export_saved_model
from keras_transformer.export.tflite import export_tflite
from keras_transformer.translation.learning import learn_shortlist
from keras_transformer.translation.translator import Translator


@pytest.mark.parametrize("name", ["golden", "two_way"])
def test_exports_search_with_it_too(name, request, tmp_path):
    """Each export compares its translations with the translator's before it appears."""
    translator = Translator.load(request.getfixturevalue(name).run_dir, jit_compile=False)
    pairs = phrases()[:12]
    languages = ["de"] * len(pairs) if name == "two_way" else None
    learn_shortlist(translator, *map(list, zip(*pairs, strict=True)), languages)
    export_saved_model(translator, tmp_path / "saved_model", shortlist=90)
    _, same = export_tflite(translator, tmp_path / "tflite", shortlist=90)
    assert same == 1
