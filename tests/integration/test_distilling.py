"""From teacher to student: the teacher's text, the student's weights and loss, and the command."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from trainings import STUDENT, files, phrases, side_by_side

import train_keras
from keras_transformer.__main__ import main, parser
from keras_transformer.data.corpora import Corpus, parallel_files
from keras_transformer.export import ExportError
from keras_transformer.export.saved_model import export_saved_model
from keras_transformer.training.config import ConfigError, RunConfig
from keras_transformer.training.run import Run
from keras_transformer.transfer import distilling, teacher_text
from keras_transformer.transfer.distilling import Distillation
from keras_transformer.transfer.teacher_text import teacher_function
from keras_transformer.translation.translator import Translator


def test_the_teachers_function_gives_scores_and_problems(golden):
    translator = Translator.load(
        golden.run_dir, jit_compile=False, num_beams=2, length_penalty=1.7, max_target_length=30
    )
    translate = teacher_function(translator, 2, 10)
    text = golden.texts[0]
    rows = translate([text, "", "dog " * 200], 0)
    assert rows[0][0].text == golden.translator.translate([text, ""])[0] and rows[0][0].problem is None
    (scored,) = golden.translator.score([text], [rows[0][0].text])
    assert abs(rows[0][0].score - np.mean(scored.token_log_probs)) < 1e-3
    assert rows[1][0].text == "" and rows[2][0].problem == teacher_text.TRUNCATED
    short = teacher_function(
        Translator.load(golden.run_dir, jit_compile=False, num_beams=1, max_target_length=3), 1, 10
    )
    assert short([text], 0)[0][0].problem == teacher_text.UNFINISHED


def distillation(*argv):
    """The `Distillation` of a command."""
    names = RunConfig().flat()
    arguments = parser().parse_args(["distill", *map(str, argv)])
    return Distillation(arguments, {name: value for name, value in vars(arguments).items() if name in names})


def test_each_line_keeps_its_own_translation_and_each_choice_its_own_folder(golden, tmp_path, monkeypatch):
    """Of a teacher's own text with an empty line, translated elsewhere, where an empty line stays one."""
    pairs = [("one dog", "ein Hund"), ("", "leer"), ("три собаки", "drei Hunde"), ("four dogs", "vier Hunde")]
    made = ["T one", "", "T three", "T four and a few words that are more"]
    paths = [tmp_path / side for side in ("source", "target")]
    for side, path in enumerate(paths):
        path.write_text("".join(pair[side] + "\n" for pair in pairs), encoding="utf-8")
    (tmp_path / "made").write_text("".join(f"{line}\n" for line in made), encoding="utf-8")
    corpus = Corpus(*([parallel_files(*paths)] for _ in range(3)))
    monkeypatch.setattr(distilling, "load_corpus", lambda data: corpus)
    russian = shutil.copytree(golden.run_dir, tmp_path / "russian")
    config = (russian / "config.json").read_text()
    (russian / "config.json").write_text(config.replace('"source_language": "en"', '"source_language": "ru"'))
    argv = ["--run-dir", tmp_path / "run", "--translations", tmp_path / "made"]
    # The languages of the student and the limits of its lines decide which lines are left.
    backward, of_russian = ["--direction", "backward"], ["--source-language", "ru"]
    folders = []
    for teacher, more, left in (
        (golden.run_dir, [], [0, 3]),
        (golden.run_dir, backward, [0, 3]),
        (golden.run_dir, ["--max-character-ratio", "1"], [0]),
        (golden.run_dir, of_russian, [2]),
        (russian, backward, [2]),
        (russian, [], [2]),
    ):
        work = distillation(teacher, *argv, *more)
        work.write_text()
        folders.append(work.text.pairs_folder.name)
        sides = [Path(path).read_text(encoding="utf-8").splitlines() for path in work.text.paths("train")]
        wanted = [(pairs[i][0], made[i]) for i in left]
        assert list(zip(*sides, strict=True)) == (
            [(f"<BT> {target}", source) for source, target in wanted] if more == backward else wanted
        )
        real = [Path(path).read_text(encoding="utf-8").splitlines() for path in work.text.paths("real")]
        order = -1 if more == backward else 1
        assert list(zip(*real, strict=True)) == [pair[::order] for pair in pairs if pair[0]]
    assert len(set(folders[:4])) == 4


# Ensembles and vocabularies of runs.


def test_runs_of_one_vocabulary_translate_together(golden, tmp_path, capsys):
    one = Translator.load([golden.run_dir, golden.run_dir], jit_compile=False, num_beams=1)
    expected = golden.translator.translate(golden.texts[:3], num_beams=1)
    found = one.translate(golden.texts[:3], return_attention=True)
    assert [translation.text for translation in found] == expected
    assert found[0].attention.scores.shape[:2] == (4, 1)
    with pytest.raises(ExportError, match="An ensemble cannot be exported"):
        export_saved_model(one, tmp_path / "x")
    source = tmp_path / "in.txt"
    source.write_text("\n".join(golden.texts[:3]))
    flags = ["--ensemble", str(golden.run_dir), "--input", str(source), "--num-beams", "1"]
    assert main(["translate", str(golden.run_dir), *flags]) == 0
    assert capsys.readouterr().out.splitlines() == expected
    shutil.copytree(golden.run_dir, tmp_path / "other", ignore=shutil.ignore_patterns("export", "checkpoints"))
    golden.tokenizer.train(golden.texts * 9, 60).save(tmp_path / "other" / "tokenizer")
    with pytest.raises(ValueError, match="must have the same vocabulary: an id must mean the same token"):
        Translator.load([golden.run_dir, tmp_path / "other"])


# The command.


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """Files of a text to translate and of its references."""
    return side_by_side(tmp_path_factory.mktemp("text"), "text", phrases()[:30])


def test_distill_translates_selects_and_trains_a_student(golden, text, tmp_path, monkeypatch, capsys):
    flags = ["--source", text[0], "--reference", text[1], "--num-hypotheses", "2"]
    flags += [*STUDENT, "--layers-from", str(golden.run_dir), "--real-weight", "0.5", "--no-export"]
    flags += ["--teacher", str(golden.run_dir), "--teacher-weight", "0.3"]
    argv = ["distill", str(golden.run_dir), "--run-dir", str(tmp_path / "run"), *flags]
    assert main(argv) == 0
    said = capsys.readouterr().out
    assert "pairs of the teacher" in said and "decoder block 0" in said and "real: 15 pairs in every pass" in said
    run, teacher = Run(tmp_path / "run"), Run(golden.run_dir)
    config, old = run.config(), teacher.config()
    assert (config.model.num_layers, config.model.num_decoder_layers) == (2, 1)
    assert config.training.learning_rate is None and old.training.learning_rate == 0.003
    assert config.training.warmup_ratio == old.training.warmup_ratio and config.training.epochs == 2
    assert config.search.num_beams == old.search.num_beams
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
    monkeypatch.setattr(train_keras, "finish", lambda *rest: 0)  # It would score the student again.
    assert main([*argv, "--resume"]) == 0
    assert len(run.log_file.read_text().splitlines()) == 3
    assert all(np.array_equal(*pair) for pair in zip(weights, run.model().get_weights(), strict=True))


def test_a_student_of_translations_made_elsewhere_needs_no_teacher(tmp_path, capsys):
    pairs = phrases()[:60]
    source, reference = side_by_side(tmp_path, "text", pairs)
    val = side_by_side(tmp_path, "val", phrases()[60:66])
    refusal = "I'm sorry, but I can't translate this."
    files = [tmp_path / f"made{number}.txt" for number in range(3)]
    for number, path in enumerate(files):
        made = [refusal if i % 10 == number else target for i, (_, target) in enumerate(pairs)]
        path.write_text("".join(f"{line}\n" for line in made), encoding="utf-8")
    flags = ["--source", source, "--val", *val, "--source-language", "en", "--target-language", "de"]
    flags += ["--run-dir", str(tmp_path / "run"), *STUDENT]
    argv = ["distill", *flags, "--vocabulary-size", "150", "--no-export", "--translations", *map(str, files)]
    assert main(argv) == 0
    assert "60 pairs of the teacher" in capsys.readouterr().out  # Of three files, one has a translation.
    run = Run(tmp_path / "run")
    (target,) = (tmp_path / "run-text").glob("pairs-best-*/train.target")
    assert target.read_text(encoding="utf-8").splitlines() == [target for _, target in pairs]
    config = run.config()
    assert config.tokenizer.vocabulary_from is None and config.data.val[0]["source"] == val[0]
    assert [text["name"] for text in config.data.train] == ["teacher"]
    # One file: what is bad in it is left out. With references, these are mixed in.
    argv = ["distill", *flags, "--vocabulary-size", "150", "--no-export", "--reference", reference]
    assert main([*argv, "--overwrite", "--translations", str(files[0]), "--text-dir", str(tmp_path / "one")]) == 0
    said = capsys.readouterr().out
    assert "54 pairs of the teacher" in said and "6 with a remark about the translation" in said
    assert [text["name"] for text in run.config().data.train] == ["teacher", "real"]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ([], r"no run, and no --source, --translations, --val, --source-language, --target-language\."),
        (["--source", "a", "--translations", "b", "run"], r"a teacher, before all flags; .* no --val, --source-lang"),
        (
            ["--source", "a", "--translations", "b", "--val", "c", "d", "--source-language", "en"],
            "no --target-language",
        ),
        (["LANGUAGES", "--val", "no.en", "no.de"], r"Cannot read .*no\.en"),
        (
            ["LANGUAGES", "--val", "c", "d", "direction=en-de"],
            r"--val has the direction of the student\. Received: en-de",
        ),
    ],
)
def test_without_a_teacher_its_work_must_be_named(tmp_path, capsys, flags, message):
    languages = ["--source", "a", "--translations", "b", "--source-language", "en", "--target-language", "de"]
    flags = languages + flags[1:] if flags[:1] == ["LANGUAGES"] else flags
    with pytest.raises(SystemExit, match="2"):
        main(["distill", "--run-dir", str(tmp_path / "run"), *flags])
    assert re.search(message, capsys.readouterr().err)


def golden_validation(golden):
    from keras_transformer.data.corpora import load_corpus

    return load_corpus(Run(golden.run_dir).config().data).validation[0].pairs


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
        (["--translations", "SHORT", "--drop-worst", "0.1"], r"without scores; .*Received: --drop-worst, too"),
        (["--dataset", "phrasebook"], r"is that of its teacher, or --source\. Received: --dataset, too\."),
        (["--source", "SOURCE", "--translations", "TARGET", "SHORT"], r"Received: .*short with 2\. Is it complete"),
    ],
)
def test_what_cannot_be_distilled_is_said_before_anything_is_translated(golden, text, tmp_path, capsys, flags, message):
    (tmp_path / "short").write_text("eins\nzwei\n")
    names = {"SOURCE": text[0], "TARGET": text[1], "SHORT": str(tmp_path / "short")}
    flags = [names.get(flag, flag) for flag in flags]
    with pytest.raises(SystemExit, match="2"):
        main(["distill", str(golden.run_dir), "--run-dir", str(tmp_path / "run"), *flags])
    assert re.search(message, capsys.readouterr().err)
    assert not (tmp_path / "run-text").exists()


def test_no_run_replaces_one_that_it_is_made_from(golden, tmp_path, capsys):
    folder, other = str(golden.run_dir), f"{golden.run_dir}/../{golden.run_dir.name}"
    own = files(tmp_path, train=phrases()[:30], val=phrases()[:3])
    for command in (["distill", other], *(["train", *own, f"--{name}-from", other] for name in ("init", "vocabulary"))):
        with pytest.raises(SystemExit, match="2"):
            main([*command, "--run-dir", folder, "--overwrite"])
        assert "A run cannot be made from itself" in capsys.readouterr().err


def test_a_teacher_in_the_loss_needs_the_same_vocabulary(golden, tmp_path, capsys):
    flags = ["--teacher", str(golden.run_dir), "--run-dir", str(tmp_path / "run"), "--no-export"]
    with pytest.raises(SystemExit, match="2"):
        train_keras.main([*files(tmp_path, train=phrases()[:30], val=phrases()[:3]), *STUDENT, *flags])
    assert "must have the same vocabulary" in capsys.readouterr().err
    with pytest.raises(ConfigError, match=r"`tokenizer` must be as in the run whose vocabulary it takes"):
        RunConfig.make({"tokenizer": "bpe"}, vocabulary=Run(golden.run_dir).config())
    with pytest.raises(ConfigError, match="Received: `init_from` and `vocabulary_from`"):
        RunConfig.of_flat({"init_from": "a", "vocabulary_from": "b"})
