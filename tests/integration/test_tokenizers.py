"""Tokenizers: the same ids in Python and in the graph, four special ids that no text has, exact files."""

import subprocess
import sys

from trainings import phrases

from keras_transformer.text.tokenizer import Tokenizer


def test_another_process_gives_the_same_random_segmentations(tmp_path):
    """Resuming needs this, and SentencePiece's own sampling does not do it."""
    texts = [text for pair in phrases()[:600] for text in pair]
    tokenizer = Tokenizer.train(texts, 500)
    file = tokenizer.save(tmp_path / "tokenizer")
    code = (
        "from keras_transformer.text.tokenizer import Tokenizer\n"
        f"print(Tokenizer.load({str(file)!r}).sample({texts[:50]!r}, 0.3, 7))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(tokenizer.sample(texts[:50], 0.3, 7))
