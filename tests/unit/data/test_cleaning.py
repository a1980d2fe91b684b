"""Pairs that are probably no translations: left out for a reason, counted, and shown."""

import gzip
import json
import os
import threading

import numpy as np
import pytest
from texts import write
from trainings import phrases

from keras_transformer.__main__ import main
from keras_transformer.data.cleaning import Cleaner, clean_files, near_duplicates
from keras_transformer.data.corpora import ParallelText
from keras_transformer.data.encoding import encode_pairs, encoded_in
from keras_transformer.data.storage import left_out_by
from keras_transformer.text.tokenizer import Tokenizer
from keras_transformer.training.config import ConfigError, RunConfig

GOOD = ("The dog sleeps in the garden.", "Der Hund schläft im Garten.")


@pytest.mark.parametrize(
    ("source", "target", "reason"),
    [
        (*GOOD, None),
        ("Hotel Berlin", "Hotel Berlin", None),  # Names are the same in many languages.
        ("Yes", "Ja, das ist wirklich so", None),
        ("", "Der Hund", "with an empty side"),
        ("The dog " * 200, "Der Hund " * 200, "with too many characters"),
        ("Yes", "Ja, das ist in der Tat wirklich so", "with sides of very different lengths"),
        ("The dog sleeps.", "The dog, sleeps!", "with a copy of the source"),
        ("我喜欢狗，他喜欢猫，她喜欢鸟。", "我喜欢狗，他喜欢猫，她喜欢鸟。", "with a copy of the source"),
        ("Fuji Velvia emulation", "Fuji Velvia Emulation", None),  # Right translations.
        ("PDF/A version: %s", "PDF-/A-Version: %s", None),
        ("Portable Document Format", "Portable-Document-Format", None),
        ("1234-5678 / 90 a", "1234-5678 / 90 b", "with few letters"),
        ("The dog sleeps.", "Собака спит.", "in another script"),
    ],
)
def test_reasons(source, target, reason):
    assert Cleaner("en", "de").reason(1, source, target) == reason


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("zh", "指定是否显示图柄。"),
        ("ja", "ファイルのコピーをひらきますか？"),  # With a prolonged vowel, ー.
        ("ko", "파일을 열지 여부를 지정합니다."),
    ],
)
def test_a_character_that_is_a_syllable_or_a_word_says_more_than_a_letter(language, text):
    """Each says as much as the longest English text here that stays."""
    weight = 3 if language == "zh" else 2
    letters = len(text) + sum((weight - 1) * c.isalpha() for c in text)
    for count, reason in ((3 * letters + 20, None), (3 * letters + 21, "with sides of very different lengths")):
        assert Cleaner("en", language).reason(1, "open " * (count // 5) + "!" * (count % 5), text) == reason


@pytest.mark.parametrize(
    ("language", "text", "good"),
    [
        ("ja", "東京は大きい都市です。", True),
        ("zh-TW", "東京是一個大城市。", True),
        ("ja", "Tokyo is a big city.", False),
        ("ru", "Собака спит.", True),
        ("sr", "Pas spava u vrtu.", True),  # In two scripts.
        (None, "東京は大きい都市です。", True),
        ("el", "Der Hund schläft.", False),
        ("rus_Cyrl", "Собака спит.", True),  # NLLB's codes.
        ("rus_Cyrl", "Der Hund schläft.", False),
        ("sr-Latn", "Собака спит.", False),
        ("zho_Hans", "东京是一个大城市。", True),  # Unicode has no script of this name.
        ("rus", "Собака спит.", True),
        ("zh_Hans", "A big city.", False),
        ("de-1996", "Собака спит.", False),
    ],
)
def test_scripts_of_languages(language, text, good):
    assert (Cleaner(None, language).reason(1, "A big city here.", text) is None) == good


def test_the_second_of_equal_pairs_is_left_out():
    lines = [GOOD, ("x", "y"), GOOD, (GOOD[0], "Der Hund schläft."), GOOD] * 3
    cleaner = Cleaner()
    cleaner.find_duplicates(lines)
    reasons = [cleaner.reason(number, *pair) for number, pair in enumerate(lines, 1)]
    assert [number for number, reason in enumerate(reasons) if reason is None] == [0, 1, 3]
    assert set(reasons) == {None, "that were there before"}


def test_lines_in_another_language():
    pytest.importorskip("lingua")
    cleaner = Cleaner("en", "de", identify=True)
    assert cleaner.reason(1, *GOOD) is None
    assert cleaner.reason(1, GOOD[0], "Le chien dort dans le jardin.") == "in another language"
    assert cleaner.reason(1, "Le chien dort dans le jardin.", GOOD[1]) == "in another language"
    assert cleaner.reason(1, "Ana", "Ana Sofia") is None
    pairs = phrases("test")
    assert sum(cleaner.reason(1, *pair) is not None for pair in pairs) < 0.02 * len(pairs)
    with pytest.raises(ValueError, match=r"named by two letters. Received: xx, none. Set --source-language"):
        Cleaner("xx", None, identify=True)


@pytest.mark.parametrize("workers", [1, 2])
def test_files_are_cleaned(tmp_path, workers):
    lines = [*phrases()[:50], ("", "x"), phrases()[0], *phrases()[50:60]]
    outputs = tmp_path / "out.en.gz", tmp_path / "out.de"
    kept, left_out = clean_files(ParallelText(lines, "a"), Cleaner("en", "de"), outputs, workers)
    assert (kept, left_out) == (
        60,
        {
            "with an empty side": (1, [[51, "", "x"]]),
            "that were there before": (1, [[52, *lines[0]]]),
        },
    )
    texts = gzip.decompress(outputs[0].read_bytes()).decode().splitlines(), outputs[1].read_text().splitlines()
    assert list(zip(*texts, strict=True)) == phrases()[:60]


def test_the_command_reports_and_changes_nothing_after_an_error(tmp_path, capsys):
    paths = [tmp_path / name for name in ("a.en", "a.de", "b.en", "b.de")]
    pairs = [*phrases()[:5], ("The dog sleeps.", "Собака спит.")]
    for path, side in zip(paths[:2], zip(*pairs, strict=True), strict=True):
        path.write_text("".join(f"{text}\n" for text in side))
    command = ["clean", *map(str, paths[:2]), "--output-source", str(paths[2]), "--output-target", str(paths[3])]
    assert main(command) == 0
    out, said = capsys.readouterr()
    assert not out and said.startswith(
        f"{paths[0]}, {paths[1]}: 5 pairs kept, 1 left out\n  1 in another script, such as\n    line 6: "
    )
    assert len(paths[3].read_text().splitlines()) == 5
    paths[0].write_text("one line\n")
    with pytest.raises(SystemExit, match="2"):
        main(command)
    assert "must have the same number of lines" in capsys.readouterr().err
    assert len(paths[3].read_text().splitlines()) == 5


def clean(source, target, *outputs):
    return main(["clean", str(source), str(target), "--output-source", str(outputs[0]), "--output-target", outputs[1]])


def test_sentences_can_go_to_standard_output(tmp_path, capfd):
    source, target = write(tmp_path / "a.en", "A dog!\n\n"), write(tmp_path / "a.de", "Ein Hund!\n\n")
    source.write_text("A dog\n\x1b[2J1 2 3\n")
    target.write_text("Ein Hund\n1 2 3\n")
    assert clean(source, target, "/dev/stdout", "/dev/null") == 0
    out, error = capfd.readouterr()
    assert out == "A dog\n"
    assert "such as\n    line 2:  [2J1 2 3  |  1 2 3\n" in error  # A terminal would clear its screen.


def test_a_text_of_which_nothing_is_left_is_an_error(tmp_path, capsys):
    source = write(tmp_path / "a.en", "A dog sleeps here\nFive cats sleep here\n")
    output = write(tmp_path / "out", "before")
    with pytest.raises(SystemExit, match="2"):
        clean(source, source, tmp_path / "x", str(output))
    assert (
        "error: No pair is left: all were dropped. Received: pairs 2 with a copy of the source."
        in capsys.readouterr().err
    )
    assert output.read_text() == "before"


def test_a_named_pipe_is_not_waited_for(tmp_path, capsys):
    """Cleaning reads the text twice: once for the pairs that were there before."""
    os.mkfifo(tmp_path / "pipe")
    target = write(tmp_path / "a.de", "Ein Hund\n")
    threading.Thread(target=(tmp_path / "pipe").write_text, args=("A dog\n",), daemon=True).start()
    with pytest.raises(SystemExit, match="2"):
        clean(tmp_path / "pipe", target, tmp_path / "x", str(tmp_path / "y"))
    assert "pipe is a pipe, which can be read only once. Write it to a file." in capsys.readouterr().err


@pytest.mark.parametrize("blocks", [1, 7, 300])
def test_samples_come_from_the_whole_text(blocks):
    """However it is divided among processes."""
    reasons, found = [(("even", "third")[n % 3 == 0], (n, ("a", "b"))) for n in range(1, 301)], {}
    for part in np.array_split(np.arange(300), blocks):
        found = left_out_by([reasons[i] for i in part], found)
    assert {reason: one.count for reason, one in found.items()} == {"even": 200, "third": 100}
    for one in found.values():
        numbers = [sample[0] for sample in one.samples]
        assert numbers == sorted(numbers) and len(numbers) == 3 and numbers[-1] - numbers[0] > 100
    assert found == left_out_by(reasons)


def test_both_sides_need_a_file(tmp_path, capsys):
    paths = [str(write(tmp_path / name, "one dog\n")) for name in ("a", "b")]
    with pytest.raises(SystemExit, match="2"):
        main(["clean", *paths, "--output-source", str(tmp_path / "x"), "--output-target", str(tmp_path / "." / "x")])
    assert "--output-source and --output-target must be two files" in capsys.readouterr().err


def test_cleaning_does_not_replace_the_corpus_that_it_reads(tmp_path, capsys):
    source, target = map(str, (write(tmp_path / "a.en", "a dog"), write(tmp_path / "a.de", "ein Hund")))
    with pytest.raises(SystemExit, match="2"):
        main(["clean", source, target, "--output-source", target, "--output-target", str(tmp_path / "x")])
    assert f"must not replace what the command reads. Received: {target} for both." in capsys.readouterr().err
    assert (tmp_path / "a.de").read_bytes() == b"ein Hund" and not (tmp_path / "x").exists()


def test_training_text_is_cleaned_as_files_are(tmp_path):
    lines = [*phrases()[:50], ("", "x"), phrases()[0], ("a " * 700, "b " * 700)]
    tokenizer = Tokenizer.train([text for pair in lines for text in pair], 150)
    text, cleaner = ParallelText(lines, "a"), Cleaner.of(RunConfig.make({}).data)
    for workers in (1, 2):
        pairs = encoded_in(tmp_path / str(workers), text, [tokenizer] * 2, 100, cleaner=cleaner, workers=workers)
        assert len(pairs.source) == 50
        assert {reason: one.count for reason, one in pairs.left_out.items()} == {
            "with an empty side": 1,
            "that were there before": 1,
            "with too many characters": 1,
        }
    assert len(list((tmp_path / "1").iterdir())) == 1
    encoded_in(tmp_path / "1", text, [tokenizer] * 2, 100)
    assert len(list((tmp_path / "1").iterdir())) == 2
    assert len(encode_pairs(lines, tokenizer, tokenizer, 100).source) == 51


# Many corpora.


def test_corpora_of_flags_and_of_files_are_the_same(tmp_path):
    flags = RunConfig.make({"train": [["a.en", "a.de"], ["b.en", "b.de", "weight=2.5", "name=news"]]})
    file = json.loads(json.dumps(flags.to_dict()))["data"]["train"]
    paths = {"source": os.path.abspath("b.en"), "target": os.path.abspath("b.de")}
    assert file[1] == {**paths, "name": "news", "direction": None, "weight": 2.5}
    assert RunConfig.make({"train": file}) == flags
    moved = [{**one, "source": f"/elsewhere{one['source']}"} for one in file]
    assert flags.resumed({"train": moved}).data.train[0]["source"] == f"/elsewhere{os.path.abspath('a.en')}"
    with pytest.raises(ConfigError, match="`train` must stay as the run began"):
        flags.resumed({"train": [{**one, "weight": 2.0} for one in file]})


@pytest.mark.parametrize(
    ("corpus", "message"),
    [
        (["a.en"], "not enough values"),
        (["a.en", "a.de", "w=2"], "unknown: w"),
        (["a.en", "a.de", "b.de"], "dictionary update sequence"),
        (["a.en", "a.de", "direction=de"], "must be different pairs of language codes"),
        (["a.en", "a.de", "weight=-1"], "weight must be positive"),
        (["a.en", "a.de", "weight=much"], "could not convert"),
        ({"source": "a.en"}, "unknown"),
    ],
)
def test_corpora_of_another_form_are_an_error(corpus, message):
    with pytest.raises(
        ConfigError, match=f"`train` must be SOURCE TARGET, optionally followed by name=NAME.*{message}"
    ):
        RunConfig.make({"train": [corpus]})


def test_near_duplicates_are_those_of_all_comparisons():
    """Few words, so that many texts are near: the index of rare pairs must miss none."""
    random = np.random.default_rng(0)
    texts, others = ([" ".join(random.choice(list("abcd"), random.integers(0, 9))) for _ in range(200)] for _ in "ab")

    def pairs(text):
        words = text.split()
        return set(zip(["", *words], [*words, ""], strict=True))

    def near(one, other):
        return len(one & other) >= 0.7 * len(one | other)

    found = near_duplicates(texts, others)
    assert found == [any(near(pairs(text), pairs(other)) for other in others) for text in texts]
    assert 0.05 < np.mean(found) < 0.95
    assert near_duplicates(["猫が好きです。", "Step 12: STOP!"], ["猫が好きだ", "step 7, stop"]) == [False, True]
    assert near_duplicates(["今日は天気がいいです。"], ["今日は天気がいいですね"]) == [True]
    # "ー" is in no script.
    assert near_duplicates(["サーバーの設定を変更します"], ["サーバーの設定を変更しますか"]) == [True]
    assert near_duplicates(["LibreOfficeの設定を開きます"], ["LibreOfficeの設定を開きますか"]) == [True]
