"""From teacher to student: the teacher's text. test_students.py has the student's weights and loss."""

from pathlib import Path

import pytest

from keras_transformer.data.cleaning import Cleaner
from keras_transformer.files import FileError, locked
from keras_transformer.training.config import ConfigError
from keras_transformer.transfer import teacher_text
from keras_transformer.transfer.teacher_text import Hypothesis, TeacherText, given_translations

# The teacher's text.


def upper(texts, begin):
    """A translation of each text, and a second, less probable one."""
    return [[Hypothesis(text.upper(), -0.1 * len(text)), Hypothesis(text.title(), -3.0)] for text in texts]


def test_translations_go_on_after_a_kill_where_it_was(tmp_path, monkeypatch, messages):
    monkeypatch.setattr(teacher_text, "CHUNK_SIZE", 4)
    lines, asked = [f"line {i}" for i in range(14)], []

    def translate(texts, begin):
        asked.append((begin, len(texts)))
        if begin == fails_at:
            raise KeyboardInterrupt
        return upper(texts, begin)

    fails_at = None
    TeacherText(tmp_path / "whole", {"a": 1}).write(translate, lines)
    assert asked == [(0, 4), (4, 4), (8, 4), (12, 2)]
    asked.clear()
    fails_at = 8
    part = tmp_path / "part" / "hypotheses.jsonl.part"
    with pytest.raises(KeyboardInterrupt):
        TeacherText(tmp_path / "part", {"a": 1}).write(translate, lines)
    with open(part, "ab") as file:  # A kill while the next chunk was written: a whole line and a broken one.
        file.write(b'[["X", 0.0, null]]\n[["Y", 0')
    fails_at = None
    TeacherText(tmp_path / "part", {"a": 1}).write(translate, lines)
    assert asked == [(0, 4), (4, 4), (8, 4), (8, 4), (12, 2)]
    assert "8 lines are translated already" in messages()
    names = ("hypotheses.jsonl", "settings.json")
    assert [(tmp_path / "whole" / n).read_bytes() == (tmp_path / "part" / n).read_bytes() for n in names] == [True] * 2
    assert TeacherText(tmp_path / "part", {"a": 1}).is_translated() and not part.exists()


def test_a_folder_of_other_settings_or_content_is_kept(tmp_path):
    TeacherText(tmp_path / "text", {"a": 1, "b": [2]}).write(upper, ["x"])
    with pytest.raises(ConfigError, match=r"begun with other settings.*Received: a=5 \(begun with 1\)\. Choose"):
        TeacherText(tmp_path / "text", {"a": 5, "b": [2]})
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("x")
    with pytest.raises(FileError, match="has other content than a teacher's translations"):
        TeacherText(tmp_path / "mine", {})
    with locked(tmp_path / "text"), pytest.raises(FileError, match="written by another process"):
        TeacherText(tmp_path / "text", {"a": 1, "b": [2]}).write(upper, ["x"])


ROWS = [
    [Hypothesis("Ein Hund schläft.", -0.1), Hypothesis("Der Hund schläft.", -0.2)],
    [Hypothesis("", 0.0)],
    [Hypothesis("Ein Haus steht da.", -0.5, teacher_text.LOOP), Hypothesis("Ein Haus steht hier.", -2.0)],
    [Hypothesis("Ja!", -0.3)],
]
LINES = [
    ("A dog sleeps.", "Der Hund schläft."),
    ("", "Leer."),
    ("A house stands here.", "Ein Haus steht hier."),
    ("Yes, of course, that is something I have always wanted to do!", "Ja!"),
]


@pytest.mark.parametrize(
    ("settings", "wanted", "reasons"),
    [
        ({}, [("A dog sleeps.", "Ein Hund schläft."), (LINES[3][0], "Ja!")], {"with an empty side", "with a loop"}),
        (
            {"how": "chrf"},
            [
                ("A dog sleeps.", "Der Hund schläft."),
                ("A house stands here.", "Ein Haus steht hier."),
                (LINES[3][0], "Ja!"),
            ],
            {"with an empty side"},
        ),
        (
            {"how": "bleu", "drop_worst": 0.2, "cleaner": Cleaner("en", "de")},
            [("A dog sleeps.", "Der Hund schläft.")],
            {"with an empty side", "with a low score", "with sides of very different lengths"},
        ),
        (
            {"how": "all", "backward": True},
            [
                ("<BT> Ein Hund schläft.", "A dog sleeps."),
                ("<BT> Der Hund schläft.", "A dog sleeps."),
                ("<BT> Ein Haus steht hier.", "A house stands here."),
                ("<BT> Ja!", LINES[3][0]),
            ],
            {"with an empty side", "with a loop"},
        ),
    ],
)
def test_pairs_are_selected_and_filtered(tmp_path, settings, wanted, reasons):
    text = TeacherText(tmp_path / "text", {})
    text.write(lambda texts, begin: ROWS[begin : begin + len(texts)], [line for line, _ in LINES])
    count, left_out = text.select(LINES, **settings)
    sides = [Path(path).read_text(encoding="utf-8").splitlines() for path in text.paths("train")]
    assert list(zip(*sides, strict=True)) == wanted and count == len(wanted)
    assert left_out.keys() == reasons


def test_translations_made_elsewhere_are_taken_line_by_line(tmp_path):
    path = tmp_path / "made.txt"
    path.write_text("eins\nzwei\ndrei\n")
    translate = given_translations(path)
    assert translate(["two"], 1) == [[Hypothesis("zwei", 0.0)]]
    assert translate(["three"], 2) == [[Hypothesis("drei", 0.0)]]
