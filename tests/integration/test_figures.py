"""Figures open no window and change no settings of Matplotlib."""

import subprocess
import sys


def test_no_window_and_no_settings_are_touched():
    code = (
        "import matplotlib, sys; before = dict(matplotlib.rcParams)\n"
        "import numpy as np\nfrom keras_transformer.pictures import figures\n"
        "figures.attention(np.eye(2), ['a', 'b'], ['a', 'b'], 'A')\n"
        "assert before == dict(matplotlib.rcParams)\n"
        "import matplotlib.pyplot as plt; print(len(plt.get_fignums()), 'keras' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "False"]
