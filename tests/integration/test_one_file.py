"""examples/translation_in_one_file.py: it runs, its notebook is the same, and its check names each classic mistake."""

import json
import runpy
from pathlib import Path

import keras
import pytest

from keras_transformer.data.phrasebook import phrasebook

FILE = Path(__file__).parents[2] / "examples" / "translation_in_one_file.py"
POSITIONS_IN_HALF_PRECISION = """
keras.config.set_dtype_policy("mixed_bfloat16")


class PositionalEmbedding(kt.PositionalEmbedding):
    def call(self, token_ids, reverse=False, **kwargs):
        if reverse:
            return super().call(token_ids, reverse=True)
        places = keras.ops.arange(keras.ops.shape(token_ids)[1], dtype=self.compute_dtype)
        table = keras.ops.cast(kt.positional_encoding(4096, self.hidden_dim), self.compute_dtype)
        return self.token_embedding(token_ids) + keras.ops.take(table, keras.ops.cast(places, "int32"), axis=0)


def build_model():
    encoder_token_ids = keras.Input((None,), dtype="int32", name="encoder_token_ids")
    decoder_token_ids = keras.Input((None,), dtype="int32", name="decoder_token_ids")
    embedding = PositionalEmbedding("""
# Each mistake: what is written instead of what, and what the check says of it.
MISTAKES = {
    "inputs exchanged in the batch": (
        '{"encoder_token_ids": encoder, "decoder_token_ids": decoder}',
        '{"encoder_token_ids": decoder, "decoder_token_ids": encoder}',
        "Source and target are exchanged in the batch: the labels continue what the encoder reads.",
    ),
    "inputs exchanged in the model": (
        "x = kt.DecoderBlock(**SIZES)(x, encoder_sequence)",
        "x, encoder_sequence = kt.DecoderBlock(**SIZES)(encoder_sequence, x), x",
        "Source and target are exchanged in the model: it has a logit for each position of the source",
    ),
    "padding attended to": (
        "encoder_sequence = embedding(encoder_token_ids)",
        "encoder_sequence = embedding(encoder_token_ids) + 0.0",  # It drops the mask.
        "Padding is attended to: padding after the source changes the logits",
    ),
    "labels not shifted": (
        "decoder = [[START, *target] for _, target in rows]",
        "decoder = [[*target, END] for _, target in rows]",
        "The labels are not shifted: each label is the token that the decoder reads at the same position",
    ),
    "positions in half precision": (
        """
def build_model():
    encoder_token_ids = keras.Input((None,), dtype="int32", name="encoder_token_ids")
    decoder_token_ids = keras.Input((None,), dtype="int32", name="decoder_token_ids")
    embedding = kt.PositionalEmbedding(""",
        POSITIONS_IN_HALF_PRECISION,
        "Positions are in half precision: in bfloat16, 256 and 257 are one number",
    ),
    "no end token": (
        """decoder = [[START, *target] for _, target in rows]
    labels = [[*target, END] for _, target in rows]""",
        """decoder = [[START, *target[:-1]] for _, target in rows]
    labels = [target for _, target in rows]""",
        "The targets have no end token: the last label of 64 of 64 targets is not 3",
    ),
    "weights not tied": (
        "embedding.project(",
        "keras.layers.Dense(tokenizer.vocabulary_size)(",
        "The weights are not tied: 2 matrices have the size of the vocabulary",
    ),
    "no causal mask": (
        "(x, encoder_sequence)",
        "(x, encoder_sequence, use_causal_mask=False)",
        "The decoder sees later tokens",
    ),
}


@pytest.fixture(scope="module")
def few():
    numbers = {"train": 640, "validation": 64, "test": 64}
    return {name: pairs[: numbers[name]] for name, pairs in phrasebook().items()}


@pytest.fixture
def run(few, tmp_path, monkeypatch):
    """Runs the file, in which texts were replaced, in an empty folder and with little text. Returns its names."""
    monkeypatch.setattr("keras_transformer.data.phrasebook.phrasebook", lambda: few)
    monkeypatch.chdir(tmp_path)

    def run(*replaced, up_to=None):
        text = FILE.read_text(encoding="utf-8")
        if up_to:
            text = text[: text.index(up_to)]
        for old, new in replaced:
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        (tmp_path / "file.py").write_text(text, encoding="utf-8")
        return runpy.run_path(str(tmp_path / "file.py"))

    yield run
    keras.config.set_dtype_policy("float32")


def test_it_runs(run, capsys):
    small = (
        ("EPOCHS, BATCH_SIZE, MAX_LENGTH = 10,", "EPOCHS, BATCH_SIZE, MAX_LENGTH = 1,"),
        ("NUM_LAYERS = 128, 3", "NUM_LAYERS = 32, 1"),
    )
    names = run(*small)
    printed = capsys.readouterr().out
    assert "No mistake was found." in printed
    assert f"BLEU = {names['score'].score:.2f} " in printed
    python, *exported = names["translations"][:1] + printed.splitlines()[-2:]
    assert python == exported[0]
    assert names["OUTPUT"] == "translation_in_one_file"
    assert sorted(path.name for path in Path().iterdir()) == [
        "file.py",
        "translation_in_one_file",
        "translation_in_one_file.keras",
    ]


@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_check_names_the_mistake(run, mistake):
    old, new, said = MISTAKES[mistake]
    with pytest.raises(ValueError) as stopped:
        run((old, new), ("model.summary()", ""), up_to="# ## Training")
    assert said in str(stopped.value)
    assert len(str(stopped.value).splitlines()) == 1, "It says nothing else."


def test_its_notebook_is_the_same():
    import jupytext

    made = jupytext.read(FILE)
    kept = json.loads(FILE.with_suffix(".ipynb").read_text(encoding="utf-8"))
    assert [(cell["cell_type"], "".join(cell["source"])) for cell in kept["cells"]] == [
        (cell.cell_type, cell.source) for cell in made.cells
    ], "Make it again: jupytext --to ipynb examples/translation_in_one_file.py"
