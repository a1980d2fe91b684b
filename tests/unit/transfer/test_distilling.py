"""From teacher to student: the teacher's text. test_students.py has the student's weights and loss."""

from pathlib import Path

import pytest

from keras_transformer.data.cleaning import Cleaner
from keras_transformer.files import FileError, locked
from keras_transformer.training.config import ConfigError
from keras_transformer.transfer import teacher_text
from keras_transformer.transfer.teacher_text import REPEATED, Hypothesis, TeacherText, given_translations
from keras_transformer.translation.checks import LOOP, LOST, QUOTED, REMARK

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
    [Hypothesis("Ein Haus steht da.", -0.5, LOOP), Hypothesis("Ein Haus steht hier.", -2.0)],
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
        (
            {},
            [
                ("A dog sleeps.", "Ein Hund schläft."),
                ("A house stands here.", "Ein Haus steht hier."),  # The most probable one has a loop.
                (LINES[3][0], "Ja!"),
            ],
            {"with an empty side"},
        ),
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
    count, left_out = text.select(lambda: LINES, **settings)
    sides = [Path(path).read_text(encoding="utf-8").splitlines() for path in text.paths("train")]
    assert list(zip(*sides, strict=True)) == wanted and count == len(wanted)
    assert left_out.keys() == reasons


def test_translations_made_elsewhere_are_taken_line_by_line(tmp_path):
    path = tmp_path / "made.txt"
    path.write_text("eins\nzwei\ndrei\n")
    translate = given_translations(path)
    assert translate(["two"], 1) == [[Hypothesis("zwei", 0.0)]]
    assert translate(["three"], 2) == [[Hypothesis("drei", 0.0)]]


def written(folder, *files):
    """Paths of files with the given lines."""
    paths = [folder / f"{number}.txt" for number in range(len(files))]
    for path, lines in zip(paths, files, strict=True):
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return paths


def test_of_several_files_the_best_is_what_the_others_agree_with_most(tmp_path):
    files = written(tmp_path, ["Ein Hund schläft.", "x"], ["Der Hund schläft.", "y"], ["Der Hund schlief.", "z"])
    (row, other) = given_translations(*files)(["A dog sleeps.", "x"], 0)
    assert row[0].text == "Der Hund schläft." and row[0].score > row[1].score >= row[2].score > 0
    assert [hypothesis.text for hypothesis in other] == ["x", "y", "z"]
    # Two agree with each other alike: the first file counts.
    two = given_translations(*files[:2])(["A dog sleeps."], 0)[0]
    assert [hypothesis.text for hypothesis in two] == ["Ein Hund schläft.", "Der Hund schläft."] and two[0].score == 0


# What language models write in place of a translation, or beside it; and a translation that has something alike.
BAD = [
    (REMARK, "A dog sleeps.", "Sure! Here is the German translation: Ein Hund schläft."),
    (REMARK, "A dog sleeps.", "Übersetzung: Ein Hund schläft."),
    (REMARK, "A dog sleeps.", "Вот перевод на русский язык: собака спит."),
    (REMARK, "A dog sleeps.", "翻译：一只狗在睡觉。"),
    (REMARK, "A dog sleeps.", "Es tut mir leid, aber als Sprachmodell kann ich das nicht."),
    (REMARK, "A dog sleeps.", "I'm sorry, I can't translate this."),
    (REMARK, "A dog sleeps.", "Ein **Hund** schläft."),
    (REMARK, "How do I open a lock?", "I can't help with that."),
    (REMARK, "A dog sleeps.", "<think>The user wants German.</think> Ein Hund schläft."),
    (QUOTED, "A dog sleeps.", "„Ein Hund schläft.“"),
    (LOST, "Press {key} now.", "Drücken Sie jetzt die Taste."),
    (LOST, "See https://a.org/b today.", "Siehe https://a.de/b heute."),
    (LOST, "Write to victor@example.org.", "Schreiben Sie an Viktor."),
    (LOST, "It costs $5 million.", "Es kostet Millionen."),
    (LOOP, "A dog sleeps.", "Ein Hund Hund Hund Hund Hund schläft."),
    (None, "Translate this page.", "Übersetzen Sie diese Seite."),
    (None, "“Go!”", "„Geh!“"),
    (None, "Ich kann nicht schwimmen und dir nicht helfen.", "I can't swim, and I cannot help you."),
    (None, "Eine lange Tradition führt zu höheren Kosten.", "A long tradition translates into higher costs."),
    (None, "He explained it to her: briefly.", "Wytłumaczył jej to: krótko."),
    (None, "Turn the key.", "Anahtarı çevirin."),
    (None, "Die Übersetzung ist gut.", "The translation is good."),
    (None, "Bank transfer", "Банковский перевод"),
    (None, "He said “Go!”", "„Geh!“, sagte er"),
    (None, "— Иди сюда!", "“Come here!”"),
    (None, "It costs $3.50 on 2002-03-31, at 20% off.", "Am 31.03.2002 kostet es 3,50 $, 20 % weniger."),
    (None, "It costs $5 million, or $1,000.", "Es kostet 5 Millionen oder 1.000 Dollar."),
    (None, "Satışlar %20 arttı.", "Sales rose 20%."),
    (None, "{n, plural, one {# coat} other {# coats}}", "{n, plural, one {# Mantel} other {# Mäntel}}"),
    (None, "Press {key} now.", "Drücken Sie jetzt {key}."),
    (None, "No, no, no, no, no!", "Nein, nein, nein, nein, nein!"),
]


def test_what_a_language_model_says_beside_its_translation_is_left_out(tmp_path):
    text = TeacherText(tmp_path / "text", {})
    lines = [source for _, source, _ in BAD]
    text.write(given_translations(*written(tmp_path, [translation for *_, translation in BAD])), lines)
    count, left_out = text.select(lambda: [(line, "") for line in lines])
    assert count == sum(reason is None for reason, *_ in BAD)
    for wanted in (REMARK, QUOTED, LOST, LOOP):
        assert left_out[wanted].count == sum(reason == wanted for reason, *_ in BAD)


REFUSAL = "Dabei kann ich leider nicht behilflich sein."
NUMBERS = ("one", "two", "three", "four", "five", "six", "seven")


@pytest.mark.parametrize(
    ("translations", "left"),
    [
        ([REFUSAL] * 5 + ["Zeile sechs.", "Zeile sieben."], 2),
        ([REFUSAL] * 4 + ["Zeile fünf.", "Zeile sechs.", "Zeile sieben."], 7),
        ([f"Auf Deutsch, Zeile: Zeile {i}" for i in NUMBERS[:5]] + ["Zeile: sechs", "Zeile: sieben"], 2),
        ([f"Er sagte: „{i}“" for i in NUMBERS], 7),
        ([f"8:{i}0 Uhr" for i in range(7)], 7),
        (["Ja."] * 7, 7),
    ],
)
def test_what_many_lines_have_is_no_translation_of_them(tmp_path, translations, left):
    """A refusal, and an introduction; not direct speech, times, and what is short."""
    lines = [f"Line {number} is here{', and more' * i}." for i, number in enumerate(NUMBERS)]
    text = TeacherText(tmp_path / "text", {"translations": "x"})
    text.write(given_translations(*written(tmp_path, translations)), lines)
    count, left_out = text.select(lambda: [(line, "") for line in lines])
    assert (count, sum(found.count for found in left_out.values())) == (left, 7 - left)
    assert left_out.keys() == ({REPEATED} if left < 7 else set())


def test_lines_that_are_alike_share_a_translation(tmp_path):
    alike = [
        f"Two dogs {how} grass." for how in ("play on", "play in the", "are playing in", "playing on the", "play in")
    ]
    for name, lines in (("again", ["Line one is here."] * 5), ("alike", alike)):
        text = TeacherText(tmp_path / name, {"translations": "x"})
        text.write(given_translations(*written(tmp_path, ["Zwei Hunde spielen im Gras."] * 5)), lines)
        assert text.select(lambda lines=lines: [(line, "") for line in lines]) == (5, {})


def test_only_the_best_hypothesis_of_a_run_is_counted(tmp_path):
    lines = [f"Line {number} is here{', and more' * i}." for i, number in enumerate(NUMBERS)]
    rows = [[Hypothesis(f"Zeile {number}.", -0.1), Hypothesis(REFUSAL, -2.0)] for number in NUMBERS]
    text = TeacherText(tmp_path / "text", {"teachers": "x"})
    text.write(lambda texts, begin: rows, lines)
    assert text.select(lambda: [(line, "") for line in lines], "all")[0] == 14


def test_a_file_whose_translation_is_bad_leaves_the_line_to_the_others(tmp_path):
    line = "Press {key} now, or never."
    bad = "Hier ist die Übersetzung: Drücken Sie {key} jetzt oder nie."
    files = written(tmp_path, [bad], [bad], ["Jetzt {key} drücken, oder nie."])
    for how, reference in (("best", ""), ("chrf", "Drücken Sie {key} jetzt oder nie.")):
        text = TeacherText(tmp_path / how, {})
        text.write(given_translations(*files), [line])
        assert text.select(lambda reference=reference: [(line, reference)], how) == (1, {})
        assert Path(text.paths("train")[1]).read_text(encoding="utf-8") == "Jetzt {key} drücken, oder nie.\n"
