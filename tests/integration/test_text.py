"""Lines of files and pipes: what is text, what is not, and what is said of it."""

import gzip
import subprocess
import sys

import pytest


@pytest.mark.parametrize("compress", [False, True])
def test_standard_input_is_unpacked_like_a_file(compress):
    content = gzip.compress("ä\nb\n".encode()) if compress else "ä\nb\n".encode()
    as_lines = (
        "from keras_transformer.text.lines import lines, open_input\n"
        "with open_input() as file: print([line.text for part in lines(file, '') for line in part])"
    )
    as_text = "from keras_transformer.text.lines import read_text; print(ascii(read_text()))"
    for code, expected in ((as_lines, ["ä", "b"]), (as_text, ascii("ä\nb\n"))):
        found = subprocess.run([sys.executable, "-c", code], input=content, capture_output=True, check=True)
        assert found.stdout.decode().strip() == str(expected)
