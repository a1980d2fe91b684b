"""Training that begins with the weights of another run."""

import numpy as np
import pytest
from keras import ops
from public_models import transformers_folder
from trainings import files, fine_tune, phrases

import train_keras
from keras_transformer.__main__ import main
from keras_transformer.training.run import Run
from keras_transformer.translation.translator import Translator

FREEZE = ["--freeze", "embeddings,encoder", "--dropout", "0.2"]


@pytest.mark.parametrize("flags", [FREEZE, ["--lora-rank", "2"]], ids=str)
def test_a_run_that_was_stopped_after_an_epoch_ends_with_the_same_weights(golden, tmp_path, capsys, flags):
    whole, _ = fine_tune(golden, tmp_path, *flags, general=phrases()[:16])
    part, _ = fine_tune(golden, tmp_path / "part", *flags, general=phrases()[:16])
    (part / "checkpoints" / "epoch-00002.npz").unlink()
    assert train_keras.main(["--resume", "--no-export", "--run-dir", str(part)]) == 0
    for a, b in zip(Run(whole).model().get_weights(), Run(part).model().get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)
    assert Run(part).scores()["before_training"] == Run(whole).scores()["before_training"]
    text = tmp_path / "part" / "general.source"
    text.write_text(text.read_text().replace("e", "a"))
    with pytest.raises(SystemExit, match="2"):
        train_keras.main(["--resume", "--epochs", "3", "--run-dir", str(part)])
    assert "The general text must be the one" in capsys.readouterr().err


def test_an_imported_model_is_fine_tuned_and_exported(tmp_path):
    pytest.importorskip("transformers")
    transformers_folder(tmp_path / "model", max_position_embeddings=64)
    imported = tmp_path / "imported"
    assert main(["import", "opus-mt", str(tmp_path / "model"), "--run-dir", str(imported)]) == 0
    argv = [*files(tmp_path, train=phrases()[:40], val=phrases()[40:45]), "--init-from", str(imported), "--epochs", "1"]
    assert train_keras.main([*argv, "--num-beams", "1", "--run-dir", str(tmp_path / "run")]) == 0
    run = Run(tmp_path / "run")
    assert len(run.tokenizers()) == 2 and run.config().model == Run(imported).config().model
    assert (tmp_path / "run" / "export" / "saved_model" / "1").is_dir()
    translator = Translator.load(tmp_path / "run")
    bias = ops.convert_to_numpy(translator.model.decoder_embedding.bias)
    assert bias[0] < -900  # Label smoothing raises it a little; its probability stays 0.
