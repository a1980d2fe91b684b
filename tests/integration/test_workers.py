"""The training script on two devices and as two workers: what it writes, and what happens when a worker dies.

Apart from tests/test_distribution.py, so that the two, which wait much, run at the same time.
"""

from keras_transformer.__main__ import main
from keras_transformer.commands import launch


def test_a_worker_that_waits_for_one_that_failed_is_ended(tmp_path, monkeypatch, capsys):
    script = tmp_path / "script.py"
    script.write_text(
        "import json, os, sys, time\n"
        "if json.loads(os.environ['TF_CONFIG'])['task']['index'] == 0:\n"
        "    sys.exit('no such file')\n"
        "time.sleep(1000)\n"
    )
    monkeypatch.setattr(launch, "GRACE_SECONDS", 0.5)
    assert main(["launch", str(script)]) == 1
    output = capsys.readouterr().out
    assert output == "[0] no such file\n[0] ended with 1\n[1] ended with -9\n"
