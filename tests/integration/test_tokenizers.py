"""Tokenizers: the same ids in Python and in the graph, four special ids that no text has, exact files."""

import subprocess
import sys

import pytest

from keras_transformer.phrasebook import phrasebook
from keras_transformer.tokenizers import (
    Tokenizer,
)

IN_VOCABULARY = [
    "Das Haus ist nicht klein.",
    "Wo ist mein Hund?",
    "The woman is not a doctor.",
    "Seine Söhne müssen im Juni eine Tür zumachen.",
]


@pytest.fixture(scope="module")
def texts():
    """Sentences of both languages."""
    return [text for pair in phrasebook()["train"][:1500] for text in pair] + IN_VOCABULARY


@pytest.fixture(scope="module")
def trained(texts):
    """A tokenizer of each kind. WordPiece gets little text, because its learner is slow."""
    return {
        "unigram": Tokenizer.train(texts, 500),
        "bpe": Tokenizer.train(texts, 500, "bpe"),
        "wordpiece": Tokenizer.train(texts[:60] + IN_VOCABULARY, 200, "wordpiece"),
    }


def test_another_process_gives_the_same_random_segmentations(texts, trained, tmp_path):
    """Resuming needs this, and SentencePiece's own sampling does not do it."""
    file = trained["unigram"].save(tmp_path / "tokenizer")
    code = (
        "from keras_transformer.tokenizers import Tokenizer\n"
        f"print(Tokenizer.load({str(file)!r}).sample({texts[:50]!r}, 0.3, 7))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(trained["unigram"].sample(texts[:50], 0.3, 7))
