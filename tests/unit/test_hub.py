"""Models by name, from a hub on the loopback interface that speaks the protocol of the Hugging Face hub."""

import os
import re

import pytest
from hub import running, use

from keras_transformer import hub
from keras_transformer.files import FileError

pytest.importorskip("huggingface_hub")
LARGE = 25_000_000  # More than two of the 10 MB pieces in which huggingface_hub writes a download.


@pytest.fixture
def server(monkeypatch, tmp_path):
    with running() as started:
        use(monkeypatch, started.url, tmp_path / "cache")
        yield started


def names(folder):
    return sorted(file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file())


def test_only_what_is_needed_is_downloaded_and_only_once(server):
    files = {
        "config.json": b"{}",
        "tf_model.h5": b"x",
        "model.safetensors": os.urandom(200_000),
        "onnx/config.json": b"{}",
    }
    server.repositories["owner/model"] = {**files, "pytorch_model.bin": b"x"}
    wanted = ["config.json", "vocab.json"], ["model.safetensors"], ["pytorch_model.bin"]
    folder = hub.downloaded("owner/model", *wanted)
    assert names(folder) == ["config.json", "model.safetensors"]
    assert (folder / "model.safetensors").read_bytes() == files["model.safetensors"]
    requests = len(server.ranges)
    assert hub.downloaded("hf://owner/model@v1", *wanted) == hub.downloaded("owner/model", *wanted) == folder
    assert len(server.ranges) == requests
    del server.repositories["owner/model"]["model.safetensors"]
    assert names(hub.downloaded("owner/model", *wanted)) == ["config.json", "pytorch_model.bin"]


def test_without_downloads_the_message_names_the_variable_that_forbids_them(server, monkeypatch):
    server.repositories["owner/model"] = {"config.json": b"{}"}
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(FileError, match=r"Received: HF_HUB_OFFLINE=1, which forbids downloads\. Unset it\. Or run `hf"):
        hub.downloaded("owner/model", ["*"])


def test_a_download_goes_on_where_it_was_cut(server):
    server.repositories["owner/model"] = {"model.bin": os.urandom(LARGE)}
    server.cuts["model.bin"] = 1
    folder = hub.downloaded("owner/model", ["*"])
    (_, first), (_, second) = server.ranges
    assert first is None
    assert re.fullmatch(r"bytes=[1-9]\d{6,}-.*", second)
    assert (folder / "model.bin").read_bytes() == server.repositories["owner/model"]["model.bin"]


def test_a_download_that_is_cut_for_good_is_tried_again_by_the_next_call(server):
    """huggingface_hub keeps whole files only."""
    server.repositories["owner/model"] = {"config.json": b"{}", "model.bin": os.urandom(LARGE)}
    server.cuts["model.bin"] = 99
    with pytest.raises(FileError, match=r"could not be downloaded .*\. Try again: files that are complete are kept\."):
        hub.downloaded("owner/model", ["*"])
    server.cuts.clear()
    server.ranges.clear()
    assert names(hub.downloaded("owner/model", ["*"])) == ["config.json", "model.bin"]
    assert server.ranges == [("model.bin", None)]


@pytest.mark.parametrize("size", [10, 200_000])  # With the checksum of Git, and with that of large files.
def test_a_file_that_arrives_with_other_bytes_is_not_kept(server, size):
    """huggingface_hub alone compares only sizes."""
    server.repositories["owner/model"] = {"config.json": b"{}", "model.bin": os.urandom(size)}
    server.damaged.add("model.bin")
    for _ in range(2):
        with pytest.raises(
            FileError, match=r"model\.bin of owner/model must have the hub's checksum, .* was deleted: try again"
        ):
            hub.downloaded("owner/model", ["*"])
    server.damaged.clear()
    folder = hub.downloaded("owner/model", ["*"])
    assert (folder / "model.bin").read_bytes() == server.repositories["owner/model"]["model.bin"]


def test_a_content_may_lie_in_the_store_that_models_share(server, tmp_path):
    """Of what Xet downloads, the cache has a link to a content that has another name than its SHA-256."""
    server.repositories["owner/model"] = {"model.bin": os.urandom(200_000)}
    folder = hub.downloaded("owner/model", ["*"])
    content, shared = (folder / "model.bin").resolve(), tmp_path / "cache" / "blobs" / "ab" / f"ab{'0' * 62}"
    shared.parent.mkdir(parents=True)
    content.rename(shared)
    content.symlink_to(shared)
    assert hub.downloaded("owner/model", ["*"]) == folder
    shared.write_bytes(b"x" * 200_000)
    with pytest.raises(FileError, match="must have the hub's checksum"):
        hub.downloaded("owner/model", ["*"])
    assert not shared.exists()
    assert (hub.downloaded("owner/model", ["*"]) / "model.bin").is_file()


def test_without_a_network_the_cache_is_read(server, monkeypatch, tmp_path):
    server.repositories["owner/model"] = {"config.json": b"{}", "model.bin": b"abc"}
    folder = hub.downloaded("owner/model", ["*.json"])
    use(monkeypatch, "http://127.0.0.1:9", tmp_path / "cache")
    assert hub.downloaded("owner/model", ["*.json"]) == folder
    for name, files in (("owner/model", ["*"]), ("owner/other", ["*"])):
        with pytest.raises(FileError) as caught:
            hub.downloaded(name, files)
        for part in ("127.0.0.1:9", str(tmp_path / "cache"), f"hf download {name} --local-dir", "path of that folder"):
            assert part in str(caught.value)
        assert "\n" not in str(caught.value)


def test_a_missing_model_or_revision_is_named(server):
    server.repositories["owner/model"] = {"config.json": b"{}"}
    with pytest.raises(
        FileError, match=r"or a public model at http://127.*Received: owner/models\. Check the name; .*hf auth"
    ):
        hub.downloaded("owner/models", ["*"])
    with pytest.raises(FileError, match=r"revision must be a branch, .* of owner/model\. Received: v2\. Leave it out"):
        hub.downloaded("owner/model@v2", ["*"])
    server.gated.add("owner/model")
    with pytest.raises(FileError, match=r"owner/model is only for those .* Accept them at http.*/owner/model,"):
        hub.downloaded("owner/model@v1", ["*"])
    for name in (
        "model",
        "a/b/c",
        "../b",
        "owner/model@",
        "owner/model@../main",
        "https://huggingface.co/owner/model",
        "owner/mo del",
        "",
    ):
        with pytest.raises(FileError, match=rf"must be named OWNER/NAME.*Received: '{re.escape(name)}'"):
            hub.downloaded(name, ["*"])


@pytest.mark.filterwarnings("ignore:Not enough free disk space:UserWarning")
def test_a_full_disk_is_named(server, monkeypatch, tmp_path):
    """The disk is real, and smaller than the file, where a program may mount one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if os.system(f"mount -t tmpfs -o size=1m none {disk} 2> {os.devnull}"):
        pytest.skip("only root may mount a small disk")
    try:
        use(monkeypatch, server.url, disk)
        server.repositories["owner/model"] = {"config.json": b"{}", "model.bin": os.urandom(LARGE)}
        with pytest.raises(
            FileError, match=rf"owner/model does not fit on the disk of {disk}\. Make room .* set HF_HOME"
        ):
            hub.downloaded("owner/model", ["*"])
    finally:
        os.system(f"umount {disk}")
