"""Files and folders that are complete or absent, and what may be replaced."""

import signal
import subprocess
import sys
import time

from keras_transformer.files import (
    new_folder,
)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_standard_output_by_its_name_is_not_replaced(tmp_path):
    code = "from keras_transformer.files import output_file\nwith output_file('/dev/stdout') as file: file.write('new')"
    path = tmp_path / "out.txt"
    path.write_text("old ")
    with open(path, "a") as file:
        subprocess.run([sys.executable, "-c", code], stdout=file, check=True)
    assert path.read_text() == "old new"


# Folders.


def write(path, overwrite=False, content="new"):
    with new_folder(path, overwrite) as temporary:
        (temporary / "deep").mkdir()
        (temporary / "deep" / "file").write_text(content)


def test_a_process_that_was_killed_leaves_nothing_that_the_next_does_not_remove(tmp_path):
    code = (
        "import sys, time\nfrom keras_transformer.files import new_folder\n"
        "with new_folder(sys.argv[1]) as folder:\n"
        "    (folder / 'half').write_text('half')\n    print('now', flush=True)\n    time.sleep(60)"
    )
    call = [sys.executable, "-c", code, str(tmp_path / "a")]
    for number, left in ((signal.SIGKILL, [".writing-a"]), (signal.SIGINT, [])):
        with subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
            assert process.stdout.readline() == "now\n"
            time.sleep(0.1)
            process.send_signal(number)
        assert names(tmp_path) == left
    write(tmp_path / "a")
    assert names(tmp_path) == ["a"]


def test_processes_wait_for_the_one_that_writes_a_cached_folder(tmp_path):
    code = (
        "import os, sys, time\nfrom keras_transformer.files import cached_folder\n"
        "def write(folder):\n    print('written', flush=True)\n    time.sleep(0.2)\n    (folder / 'file').touch()\n"
        "cached_folder(sys.argv[1], write)"
    )
    call = [sys.executable, "-c", code, str(tmp_path / "a")]
    processes = [subprocess.Popen(call, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    printed = [process.communicate()[0] for process in processes]
    assert sorted(printed) == ["", "", "written\n"]
    assert [process.returncode for process in processes] == [0, 0, 0]
