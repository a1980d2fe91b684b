"""From teacher to student: the teacher's text, the student's weights and loss, and the command."""

import json
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import keras
import numpy as np
import pytest
from arrays import checkpoint_arrays
from keras import ops

import train_keras
from keras_transformer import distilling
from keras_transformer.__main__ import main, parser
from keras_transformer.cleaning import Cleaner
from keras_transformer.config import ConfigError, RunConfig
from keras_transformer.datasets import Corpus, parallel_files
from keras_transformer.distilling import Distillation, Hypothesis, TeacherText, given_translations, teacher_function
from keras_transformer.export import ExportError
from keras_transformer.export.saved_model import export_saved_model
from keras_transformer.files import FileError, locked
from keras_transformer.losses import LabelSmoothedCrossEntropy, TeacherCrossEntropy
from keras_transformer.model import Transformer
from keras_transformer.phrasebook import phrasebook
from keras_transformer.runs import Run
from keras_transformer.training import add_teacher, copy_weights
from keras_transformer.translator import Translator

PAIRS = phrasebook()["train"]
SIZES = {"num_heads": 2, "hidden_dim": 8, "intermediate_dim": 12}


# The teacher's text.


def upper(texts, begin):
    """A translation of each text, and a second, less probable one."""
    return [[Hypothesis(text.upper(), -0.1 * len(text)), Hypothesis(text.title(), -3.0)] for text in texts]


def test_translations_go_on_after_a_kill_where_it_was(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(distilling, "CHUNK_SIZE", 4)
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
    assert "8 lines are translated already" in capsys.readouterr().out
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
    [Hypothesis("Ein Haus steht da.", -0.5, distilling.LOOP), Hypothesis("Ein Haus steht hier.", -2.0)],
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


def test_the_teachers_function_gives_scores_and_problems(golden):
    translator = Translator.load(golden.run_dir, jit_compile=False, length_penalty=1.7, max_length=30)
    translate = teacher_function(translator, 2, 10)
    text = golden.texts[0]
    rows = translate([text, "", "dog " * 200], 0)
    assert rows[0][0].text == golden.translator.translate([text])[0] and rows[0][0].problem is None
    (scored,) = golden.translator.score([text], [rows[0][0].text])
    assert abs(rows[0][0].score - np.mean(scored.token_log_probs)) < 1e-3
    assert rows[1][0].text == "" and rows[2][0].problem == distilling.TRUNCATED
    short = teacher_function(Translator.load(golden.run_dir, jit_compile=False, max_length=3), 1, 10)
    assert short([text], 0)[0][0].problem == distilling.UNFINISHED


def test_translations_made_elsewhere_are_taken_line_by_line(tmp_path):
    path = tmp_path / "made.txt"
    path.write_text("eins\nzwei\ndrei\n")
    translate = given_translations(path)
    assert translate(["two"], 1) == [[Hypothesis("zwei", 0.0)]]
    assert translate(["three"], 2) == [[Hypothesis("drei", 0.0)]]


def distillation(*argv):
    """The `Distillation` of a command."""
    names = RunConfig().flat()
    arguments = parser().parse_args(["distill", *map(str, argv)])
    return Distillation(arguments, {name: value for name, value in vars(arguments).items() if name in names})


def test_each_line_keeps_its_own_translation_and_each_choice_its_own_folder(golden, tmp_path, monkeypatch):
    """Of a teacher's own text with an empty line, translated elsewhere, where an empty line stays one."""
    pairs = [("one dog", "ein Hund"), ("", "leer"), ("three dogs", "drei Hunde"), ("four dogs", "vier Hunde")]
    paths = [tmp_path / side for side in ("source", "target")]
    for side, path in enumerate(paths):
        path.write_text("".join(pair[side] + "\n" for pair in pairs), encoding="utf-8")
    (tmp_path / "made").write_text("T one\n\nT three\nT four\n", encoding="utf-8")
    corpus = Corpus(*([parallel_files(*paths)] for _ in range(3)))
    monkeypatch.setattr(distilling, "load_corpus", lambda data: corpus)
    argv = [golden.run_dir, "--run-dir", tmp_path / "run", "--translations", tmp_path / "made"]
    made = []
    for more in ([], ["--direction", "backward"], ["--max-character-ratio", "1"], ["--source-language", "ru"]):
        work = distillation(*argv, *more)
        made.append((work.text.pairs_folder.name, work._cleaning()))
        if not more:
            work.write_text()
            found = [Path(path).read_text(encoding="utf-8").splitlines() for path in work.text.paths("train")]
            assert found == [["one dog", "three dogs", "four dogs"], ["T one", "T three", "T four"]]
            real = [Path(path).read_text(encoding="utf-8").splitlines() for path in work.text.paths("real")]
            assert list(zip(*real, strict=True)) == [pair for pair in pairs if pair[0]]
    assert len({name for name, _ in made}) == 4
    assert [cleaning for _, cleaning in made] == [
        ["en", "de", 1000, 3.0], ["de", "en", 1000, 3.0], ["en", "de", 1000, 1.0], ["ru", "de", 1000, 3.0],
    ]  # fmt: skip


# Weights and loss.


def test_a_student_begins_with_blocks_spread_over_those_of_its_teacher():
    teacher, student = (
        Transformer(13, num_layers=4, num_decoder_layers=n, normalize_first=True, **SIZES) for n in (5, 3)
    )
    copied = copy_weights(student, teacher, encoder_layers=[3, 2, 1, 0])
    assert copied[:3] == ["embedding of the source", "embedding of the target", "encoder block 3"] and len(copied) == 11

    def same(a, b):
        return all(np.array_equal(*pair) for pair in zip(a.get_weights(), b.get_weights(), strict=True))

    assert all(same(student.encoder_blocks[i], teacher.encoder_blocks[3 - i]) for i in range(4))
    assert all(same(student.decoder_blocks[i], teacher.decoder_blocks[j]) for i, j in enumerate((0, 2, 4)))
    assert same(student.decoder_norm, teacher.decoder_norm)
    other = Transformer(11, num_layers=4, normalize_first=True, **SIZES)
    assert "embedding of the source" not in copy_weights(other, teacher)
    same_size = Transformer(13, num_layers=4, normalize_first=True, **SIZES)
    assert "embedding of the source" not in copy_weights(same_size, teacher, same_vocabulary=False)
    with pytest.raises(ValueError, match=r"from 0 to 4\. Received: decoder_layers=\[0, 5, 1\] for 3 blocks"):
        copy_weights(student, teacher, decoder_layers=[0, 5, 1])
    other_heads = Transformer(13, num_layers=4, normalize_first=True, **{**SIZES, "num_heads": 4})
    assert copy_weights(other_heads, teacher) == ["embedding of the source", "embedding of the target"]
    post_norm = Transformer(13, num_layers=4, **SIZES)
    with pytest.raises(ValueError, match=r"normalize_first=False and another with normalize_first=True\. Make both"):
        copy_weights(post_norm, teacher)
    wide = Transformer(17, num_layers=1, num_heads=2, hidden_dim=16, intermediate_dim=12, normalize_first=True)
    with pytest.raises(ValueError, match="a model of width 16, another of width 8"):
        copy_weights(wide, teacher)


def test_the_loss_of_the_teacher_is_its_cross_entropy():
    rng = np.random.default_rng(0)
    theirs, mine = rng.normal(size=(2, 2, 3, 5)).astype("float32")
    weights = np.array([[1, 1, 0], [1, 0, 0]], "float32")
    probabilities, log_probs = ops.softmax(theirs), ops.log_softmax(mine)
    wanted = -(ops.convert_to_numpy(ops.sum(probabilities * log_probs, axis=-1)) * weights).sum() / 3
    assert float(TeacherCrossEntropy()(theirs, mine, weights)) == pytest.approx(wanted, rel=1e-5)


def test_fit_learns_from_the_teacher_alone_or_beside_the_labels(tmp_path):
    keras.utils.set_random_seed(0)
    teacher = Transformer(13, num_layers=2, **SIZES)
    teacher.set_weights([3 * w for w in teacher.get_weights()])
    before = teacher.get_weights()
    rng = np.random.default_rng(1)
    source, target = rng.integers(4, 13, (2, 16, 6)).astype("int32")
    inputs = {"encoder_token_ids": source, "decoder_token_ids": target}

    def distance(model):
        a, b = (ops.convert_to_numpy(ops.log_softmax(m(inputs))) for m in (teacher, model))
        return (np.exp(a) * (a - b)).sum(axis=-1).mean()

    model = Transformer(13, num_layers=1, **SIZES)
    model.compile(keras.optimizers.Adam(0.01), LabelSmoothedCrossEntropy(), jit_compile=False)
    plain = model.evaluate(inputs, target, sample_weight=np.ones((16, 6)), verbose=0)
    add_teacher(model, teacher, 1.0)
    assert model.evaluate(inputs, target, sample_weight=np.ones((16, 6)), verbose=0) == pytest.approx(plain)
    began = distance(model)
    history = model.fit(inputs, target, sample_weight=np.ones((16, 6)), epochs=30, verbose=0, batch_size=16).history
    assert distance(model) < began / 2
    assert history["loss"][-1] < history["loss"][0]
    assert all(np.array_equal(*pair) for pair in zip(before, teacher.get_weights(), strict=True))
    assert len(model.weights) == len(Transformer(13, num_layers=1, **SIZES).weights)
    # After a `fit`, a teacher counts, too, and another one takes its place.
    again = Transformer(13, num_layers=1, dropout=0.0, **SIZES)
    again.compile(keras.optimizers.SGD(0.0), LabelSmoothedCrossEntropy(), jit_compile=False)
    losses = []
    for one in (None, model, teacher):
        if one:
            add_teacher(again, one, 1.0)
        history = again.fit(inputs, target, sample_weight=np.ones((16, 6)), verbose=0, batch_size=16).history
        losses.append(history["loss"][0])
    wanted = float(TeacherCrossEntropy()(teacher(inputs), again(inputs), np.ones((16, 6), "float32")))
    assert losses[2] == pytest.approx(wanted, rel=1e-4) and len({round(loss, 4) for loss in losses}) == 3
    with pytest.raises(ValueError, match=r"`weight` must be in \(0, 1\]\. Received: weight=0"):
        add_teacher(again, teacher, 0)
    model.save(tmp_path / "model.keras")
    assert type(keras.saving.load_model(tmp_path / "model.keras")) is Transformer
    with pytest.raises(ValueError, match=r"Received: a model with \(13, 13\) ids, a teacher with \(17, 17\)"):
        add_teacher(model, Transformer(17, num_layers=1, **SIZES))


# Ensembles and vocabularies of runs.


def test_runs_of_one_vocabulary_translate_together(golden, tmp_path, capsys):
    one = Translator.load([golden.run_dir, golden.run_dir], jit_compile=False)
    assert one.translate(golden.texts[:3]) == golden.translator.translate(golden.texts[:3])
    assert one.translate(golden.texts[:1], return_attention=True)[0].attention.scores.shape[:2] == (4, 1)
    with pytest.raises(ExportError, match="An ensemble cannot be exported"):
        export_saved_model(one, tmp_path / "x")
    source = tmp_path / "in.txt"
    source.write_text(golden.texts[0])
    flags = ["--ensemble", str(golden.run_dir), "--input", str(source)]
    assert main(["translate", str(golden.run_dir), *flags]) == 0
    assert capsys.readouterr().out.splitlines() == golden.translator.translate(golden.texts[:1])
    shutil.copytree(golden.run_dir, tmp_path / "other", ignore=shutil.ignore_patterns("export", "checkpoints"))
    spm = tmp_path / "other" / "tokenizer.spm"
    spm.write_bytes(Translator.load(golden.run_dir).source_tokenizer.train(golden.texts * 9, 60)._serialized())
    with pytest.raises(ValueError, match="must have the same vocabulary: an id must mean the same token"):
        Translator.load([golden.run_dir, tmp_path / "other"])


# The command.


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """A text to translate, with references."""
    folder = tmp_path_factory.mktemp("text")
    for side, name in enumerate(("source", "target")):
        (folder / name).write_text("".join(pair[side] + "\n" for pair in PAIRS[:30]), encoding="utf-8")
    return folder


SIZES_OF_STUDENT = "--num-layers 2 --num-decoder-layers 1 --num-heads 2 --hidden-dim 64 --intermediate-dim 96"
STUDENT = [*SIZES_OF_STUDENT.split(), "--epochs", "2"]


def test_distill_translates_selects_and_trains_a_student(golden, text, tmp_path, capsys):
    flags = ["--source", str(text / "source"), "--reference", str(text / "target"), "--num-hypotheses", "2"]
    flags += [*STUDENT, "--layers-from", str(golden.run_dir), "--real-weight", "0.5", "--no-export"]
    flags += ["--teacher", str(golden.run_dir), "--teacher-weight", "0.3"]
    argv = ["distill", str(golden.run_dir), str(golden.run_dir), "--run-dir", str(tmp_path / "run"), *flags]
    assert main(argv) == 0
    said = capsys.readouterr().out
    assert "pairs of the teacher" in said and "decoder block 0" in said and "real: 15 pairs in every pass" in said
    run, teacher = Run(tmp_path / "run"), Run(golden.run_dir)
    config, old = run.config(), teacher.config()
    assert (config.model.num_layers, config.model.num_decoder_layers) == (2, 1)
    assert config.training.learning_rate == old.training.learning_rate  # The same width.
    assert config.training.warmup_steps == old.training.warmup_steps and config.training.epochs == 2
    assert config.decoding.num_beams == old.decoding.num_beams
    assert (config.training.teacher, config.training.teacher_weight) == (str(golden.run_dir), 0.3)
    assert run.has_vocabulary_of(teacher) and config.tokenizer.vocabulary_from == str(golden.run_dir)
    folder = tmp_path / "run-text"
    hypotheses = [json.loads(line) for line in (folder / "hypotheses.jsonl").read_text().splitlines()]
    assert len(hypotheses) == 30 and all(len(row) <= 2 for row in hypotheses)
    (pairs,) = folder.glob("pairs-chrf-*")
    assert (pairs / "val.source").read_text().splitlines() == [source for source, _ in golden_validation(golden)]
    # Again: refused, and with --resume nothing is done twice.
    with pytest.raises(SystemExit, match="2"):
        main(argv)
    assert "Continue that run with --resume" in capsys.readouterr().err
    weights = run.model().get_weights()
    assert main([*argv, "--resume"]) == 0
    assert all(np.array_equal(*pair) for pair in zip(weights, run.model().get_weights(), strict=True))


def golden_validation(golden):
    from keras_transformer.datasets import load_corpus

    return load_corpus(Run(golden.run_dir).config().data).validation[0].pairs


@pytest.mark.slow
def test_distill_backward_makes_tagged_sources_for_the_other_direction(golden, text, tmp_path):
    argv = ["distill", str(golden.run_dir), "--source", str(text / "source"), "--run-dir", str(tmp_path / "run")]
    argv += ["--direction", "backward", "--vocabulary-size", "200", "--no-export", *STUDENT, "--epochs", "1"]
    assert main(argv) == 0
    config = Run(tmp_path / "run").config()
    assert (config.data.source_language, config.data.target_language) == ("de", "en")
    assert config.tokenizer.vocabulary_from is None and config.tokenizer.vocabulary_size == 200
    (pairs,) = (tmp_path / "run-text").glob("pairs-best-*")
    sides = [(pairs / f"train.{side}").read_text().splitlines() for side in ("source", "target")]
    assert all(source.startswith("<BT> ") for source in sides[0])
    assert set(sides[1]) <= set((text / "source").read_text().splitlines())
    real = [(pairs / f"real.{side}").read_text().splitlines()[0] for side in ("source", "target")]
    assert tuple(real) == PAIRS[0][::-1]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--drop-worst", "1"], r"--drop-worst must be in \[0, 1\). Received: 1\.0"),
        (["--real-weight", "-1"], "--real-weight must be 0 or positive"),
        (["--reference", "x"], "--reference is the translation of --source. Received: --reference alone"),
        (["--source", "SOURCE", "--select", "chrf"], "--select chrf takes the translation nearest to the reference"),
        (["--hidden-dim", "3"], "`hidden_dim` must be divisible by `num_heads`"),
        (["--preset", "huge"], "`preset` must be one of"),
        (["--vocabulary-from", "nowhere"], "nowhere is not the folder of a trained run"),
        (["--source", "nowhere.txt"], "Cannot read nowhere.txt"),
        (["--source", "SOURCE", "--translations", "SHORT"], r"has 30\. Received: .*short with 2\. Is it complete"),
        (["--translations", "SHORT", "--drop-worst", "0.1"], r"without scores\. Received: --drop-worst, too"),
    ],
)
def test_what_cannot_be_distilled_is_said_before_anything_is_translated(golden, text, tmp_path, capsys, flags, message):
    (tmp_path / "short").write_text("eins\nzwei\n")
    names = {"SOURCE": str(text / "source"), "SHORT": str(tmp_path / "short")}
    flags = [names.get(flag, flag) for flag in flags]
    with pytest.raises(SystemExit, match="2"):
        main(["distill", str(golden.run_dir), "--run-dir", str(tmp_path / "run"), *flags])
    assert re.search(message, capsys.readouterr().err)
    assert not (tmp_path / "run-text").exists()


def test_a_teacher_in_the_loss_needs_the_same_vocabulary(golden, text, tmp_path, capsys):
    files = [f"--{split}-{side}={text / side}" for split in ("train", "val") for side in ("source", "target")]
    argv = [*files, *STUDENT, "--teacher", str(golden.run_dir), "--run-dir", str(tmp_path / "run"), "--no-export"]
    with pytest.raises(SystemExit, match="2"):
        train_keras.main(argv)
    assert "must have the same vocabulary" in capsys.readouterr().err
    with pytest.raises(ConfigError, match=r"`tokenizer` must be as in the run whose vocabulary it takes"):
        RunConfig.make({"tokenizer": "bpe"}, vocabulary=Run(golden.run_dir).config())
    with pytest.raises(ConfigError, match="Received: `init_from` and `vocabulary_from`"):
        RunConfig.of_flat({"init_from": "a", "vocabulary_from": "b"})


@pytest.mark.slow
def test_a_teacher_of_several_directions_has_students_of_one(two_way, tmp_path, capsys):
    argv = ["distill", str(two_way.run_dir), "--run-dir", str(tmp_path / "run"), "--target-language", "en"]
    argv += [*STUDENT, "--epochs", "1", "--num-beams", "1", "--real-weight", "0", "--no-export"]
    assert main(argv) == 0
    config = Run(tmp_path / "run").config()
    assert config.data.all_directions() == ["de-en"] and len(config.data.train) == 1
    (pairs,) = (tmp_path / "run-text").glob("pairs-best-*")
    german = (pairs / "train.source").read_text(encoding="utf-8").splitlines()
    english = (pairs / "train.target").read_text(encoding="utf-8").splitlines()
    known = {de: en for en, de in two_way.texts}
    assert all(known.get(de, en) == en for de, en in zip(german, english, strict=True))
    assert Translator.load(tmp_path / "run").target_language == "en"
    with pytest.raises(SystemExit, match="2"):
        main([*argv[:4], "--target-language", "fr"])
    assert "--target-language must be one of de, en. Received: fr" in capsys.readouterr().err


@pytest.mark.slow
def test_a_kill_in_each_phase_changes_nothing(golden, text, tmp_path):
    """Of the translations, the training and the exports: `--resume` ends with the same text and weights."""
    flags = ["--source", str(text / "source"), "--reference", str(text / "target"), *STUDENT, "--num-beams", "1"]
    call = [sys.executable, "-m", "keras_transformer", "distill", str(golden.run_dir), *flags]
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert subprocess.run([*call, "--run-dir", str(whole), "--no-export"], timeout=600).returncode == 0
    marks = (
        tmp_path / "killed-text" / "settings.json",
        killed / "checkpoints" / "epoch-00001.npz",
        killed / "export" / "saved_model",
    )
    for mark in marks:
        process = subprocess.Popen([*call, "--run-dir", str(killed), "--resume"])
        while not mark.exists() and process.poll() is None:
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert subprocess.run([*call, "--run-dir", str(killed), "--resume"], timeout=600).returncode == 0
    files = [path.relative_to(tmp_path / "whole-text") for path in (tmp_path / "whole-text").rglob("*.*")]
    for name in (name for name in files if (tmp_path / "whole-text" / name).is_file()):
        assert (tmp_path / "whole-text" / name).read_bytes() == (tmp_path / "killed-text" / name).read_bytes(), name
    arrays = [checkpoint_arrays(run, 2) for run in (whole, killed)]
    assert arrays[0].keys() == arrays[1].keys()
    for name, array in arrays[0].items():
        np.testing.assert_array_equal(array, arrays[1][name], err_msg=name)
    rows = json.loads((killed / "report" / "report.json").read_text())
    assert [row["run"] for row in rows] == ["run"] * 4 + ["killed"] * 4
    files = {path.name for path in (killed / "report").iterdir()}
    assert files == {"report.md", "report.json", "report.png", "export.json"}
    assert {path.name for path in (killed / "export").iterdir()} == {"saved_model", "tflite", "tflite-int8"}
