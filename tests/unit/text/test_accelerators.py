"""Accelerators: taken out of a message, and marked in its translation."""

import pytest

from keras_transformer.text.accelerators import split_accelerator, with_accelerator


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("_Open", ("Open", "_O")),
        ("E~xit", ("Exit", "~x")),
        ("Save _as...", ("Save as...", "_a")),
        ("Remove %EXTENSION_NAME", ("Remove %EXTENSION_NAME", "")),
        ("_Remove %EXTENSION_NAME", ("Remove %EXTENSION_NAME", "_R")),
        ("OPT_TOUCH", ("OPT_TOUCH", "")),
        ("_a or _b", ("_a or _b", "")),
        ("_ or ~", ("_ or ~", "")),
        ("__init", ("__init", "")),
        ("打开(_O)...", ("打开...", "_O")),
        ("my_file.txt is open", ("my_file.txt is open", "")),
        ("about ~5 lines", ("about ~5 lines", "")),
        ("%s_name", ("%s_name", "")),
        ("10 ~cm", ("10 cm", "~c")),
        ("Rounded to the decimals of To_currency. Or not.", ("Rounded to the decimals of To_currency. Or not.", "")),
        ("_Rounded. Or not.", ("Rounded. Or not.", "_R")),
        ("", ("", "")),
    ],
)
def test_the_mark_is_taken_out(text, expected):
    assert split_accelerator(text) == expected


@pytest.mark.parametrize(
    ("text", "accelerator", "expected"),
    [
        ("Speichern als", "_a", "Speichern _als"),
        ("Das Haus", "_u", "Das Ha_us"),
        ("Öffnen", "_x", "_Öffnen"),
        ("{a} Wert", "_a", "{a} _Wert"),
        ("12 Uhr", "_x", "12 _Uhr"),
        ("打开", "_O", "打开(_O)"),
        ("열기", "_O", "열기(_O)"),
        ("打开...", "_o", "打开(_O)..."),
        ("Открыть", "_O", "_Открыть"),
        ("10 cm", "_c", "10 _cm"),
        ("10 cm weit", "_c", "10 cm _weit"),
        ("", "_O", ""),
        ("Öffnen", "", "Öffnen"),
    ],
)
def test_every_translation_gets_one_mark(text, accelerator, expected):
    assert with_accelerator(text, accelerator) == expected
    assert split_accelerator(expected)[0] == text or not accelerator or "(_" in expected
