"""Placeholders and glossaries of a trained model."""

from keras_transformer import Translator
from keras_transformer.text.glossary import Glossary


def test_terms_that_are_there_anyway_change_nothing(golden):
    """Otherwise the model would lose the word from its source."""
    before = golden.translator.translate(golden.texts)
    terms = {text.split()[1]: translation.split()[1] for text, translation in zip(golden.texts, before, strict=True)}
    one = dict(list(terms.items())[:1])
    translator = Translator(golden.model, golden.tokenizer, jit_compile=False, glossary=one)
    (wanted,) = one.values()
    for text, old, new in zip(golden.texts, before, translator.translate(golden.texts), strict=True):
        lacks = translator.find.glossary.lacking(text, old)
        assert new == old if lacks is None else wanted in new.split()
    glossary = Glossary({"coat": "Mantel", "Dr. Ross": "Dr. Roß"})
    assert glossary.lacking("A coat, a coat.", "Ein Mantel, Mantelträger.").terms == {"coat": "Mantel"}
    assert glossary.lacking("Coat of Dr. Ross", "Mantel von Dr. Roß") is None


# A trained model.


def test_the_golden_run(golden):
    text = golden.texts[0]
    found = golden.translator.translate([f"{text} {{name}}", f"{{name}} {text}"])
    assert all(translation.count("{name}") == 1 for translation in found)
