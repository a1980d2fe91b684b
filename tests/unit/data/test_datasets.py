"""Parallel text from files, folders and a server: lines never shift, and every refusal names the file."""

import functools
import hashlib
import http.server
import re
import threading

import pytest
from texts import names, write
from trainings import made_phrasebook

from keras_transformer.data import corpora as datasets
from keras_transformer.data.corpora import DataError, ParallelText, load_corpus, multi30k, parallel_files, read_parallel
from keras_transformer.training.sections import DataConfig, corpora

# Pairs.


def test_pairs_are_line_by_line(tmp_path):
    source = write(tmp_path / "a.en", "one\ntwo\n")
    target = write(tmp_path / "a.de.gz", "eins\nzwei\n", compress=True)
    text = read_parallel(source, target)
    assert text.pairs == text.lines == [("one", "eins"), ("two", "zwei")]
    assert text.name == f"{source}, {target}"


def test_pairs_with_an_empty_side_are_dropped_and_shift_nothing(tmp_path):
    source = write(tmp_path / "a.en", "one\n\nthree\n  \nfive\n")
    target = write(tmp_path / "a.de", "eins\nzwei\n\n\t\nfünf\n")
    text = read_parallel(source, target)
    assert text.pairs == [("one", "eins"), ("five", "fünf")]
    assert text.lines[1:4] == [("", "zwei"), ("three", ""), ("", "")]


def test_training_text_is_read_only_when_it_is_used(tmp_path):
    source, target = (
        write(tmp_path / "a.en", "one\n\nthree\n"),
        write(tmp_path / "a.de.gz", "eins\n\ndrei\n", compress=True),
    )
    text = parallel_files(source, target)
    assert list(text) == list(text) == [("one", "eins"), ("three", "drei")]
    assert text.num_bytes == source.stat().st_size + target.stat().st_size
    checksum = text.checksum()
    assert checksum == parallel_files(source, write(tmp_path / "b.de", "eins\n\ndrei\n")).checksum()
    assert checksum == ParallelText(list(text.lines), "in memory").checksum()
    write(source, "one\n\nThree\n")
    assert checksum != text.checksum()
    assert checksum != parallel_files(target, source).checksum()


def test_a_line_separator_inside_a_sentence_shifts_nothing(tmp_path):
    source = write(tmp_path / "a.en", "one\u2028more\ntwo\x85\n")
    target = write(tmp_path / "a.de", "eins\nzwei\n")
    assert read_parallel(source, target).pairs == [("one\u2028more", "eins"), ("two", "zwei")]


def test_the_numbers_of_lines_must_be_the_same(tmp_path):
    source, target = write(tmp_path / "a.en", "one\ntwo\n"), write(tmp_path / "a.de", "eins\n")
    with pytest.raises(DataError, match=names(source, target) + ".*same number of lines.*with 2 lines, .* with 1"):
        read_parallel(source, target)


def test_a_last_empty_line_counts(tmp_path):
    """Only the newline that ends the last line is no line of its own."""
    source, target = write(tmp_path / "a.en", "one\n\n"), write(tmp_path / "a.de", "eins\n")
    with pytest.raises(DataError, match=r"with 2 lines, .* with 1"):
        read_parallel(source, target)


def test_some_pair_must_be_whole(tmp_path):
    source, target = write(tmp_path / "a.en", "one\n\n"), write(tmp_path / "a.de", "\nzwei\n")
    with pytest.raises(DataError, match=names(source, target) + ".* hold no pair: each line is empty in at least one"):
        read_parallel(source, target)


# The phrasebook and own files.


def test_the_phrasebook_is_the_default():
    corpus = load_corpus(DataConfig())
    splits = made_phrasebook()
    assert [[text.pairs for text in texts] for texts in corpus[:3]] == [[pairs] for pairs in splits.values()]
    assert [text.name for (text,) in corpus[:3]] == ["phrasebook train", "phrasebook validation", "phrasebook test"]


@pytest.fixture
def own(tmp_path):
    """Settings for own files: train, val and test, each one pair that names its split."""
    splits, sides = ("train", "val", "test"), ("source", "target")
    files = {split: [write(tmp_path / f"{split}.{side}", f"{split} {side}\n") for side in sides] for split in splits}
    return {split: corpora(split, [paths], others=("weight",)[split != "train" :]) for split, paths in files.items()}


def test_own_files_are_three_splits(own):
    corpus = load_corpus(DataConfig(**own))
    assert [text.pairs for (text,) in corpus[:3]] == [
        [(f"{s} source", f"{s} target")] for s in ("train", "val", "test")
    ]


def test_own_files_win_over_the_data_set(own):
    assert load_corpus(DataConfig(dataset="multi30k", **own)).train[0].pairs == [("train source", "train target")]


def test_without_a_test_split_validation_is_it(own):
    corpus = load_corpus(DataConfig(**{name: path for name, path in own.items() if "test" not in name}))
    assert corpus.test == corpus.validation
    assert corpus.validation[0].pairs == [("val source", "val target")]


@pytest.mark.parametrize("missing", [["train"], ["val"], ["train", "val"]], ids=" ".join)
def test_own_files_are_for_training_and_for_validation(own, missing):
    settings = {name: path for name, path in own.items() if name not in missing}
    names = " and ".join(f"--{split} SOURCE TARGET" for split in missing)
    with pytest.raises(DataError, match=rf"Own text is needed for training and for validation.*Missing: {names}\.$"):
        load_corpus(DataConfig(**settings))


# Multi30k in a folder.


def fill(folder, stem="{split}.{language}", languages=("en", "de"), compress=True):
    for split in ("train", "val", "test_2016_flickr"):
        for language in languages:
            name = stem.format(split=split, language=language) + (".gz" if compress else "")
            write(folder / name, f"{split} {language}\nmore\n", compress)
    return folder


def first_pairs(corpus):
    return [text.pairs[0] for (text,) in corpus[:3]]


def expected(source="en", target="de", test="test_2016_flickr"):
    return [(f"{split} {source}", f"{split} {target}") for split in ("train", "val", test)]


@pytest.mark.parametrize("compress", [False, True], ids=["plain", "gzip"])
def test_multi30k_is_read_from_a_folder(tmp_path, compress):
    assert first_pairs(multi30k(data_dir=fill(tmp_path, compress=compress))) == expected()


def test_multi30k_from_settings(tmp_path):
    data = DataConfig(dataset="multi30k", data_dir=str(fill(tmp_path)), source_language="de", target_language="en")
    assert first_pairs(load_corpus(data)) == expected("de", "en")


def test_other_languages_and_test_sets_are_read_from_a_folder(tmp_path):
    fill(tmp_path, languages=("fr", "cs"))
    for language in ("fr", "cs"):
        write(tmp_path / f"test_2018_flickr.{language}", f"test_2018_flickr {language}\n")
    corpus = multi30k(tmp_path, "fr", "cs", "test_2018_flickr")
    assert first_pairs(corpus) == expected("fr", "cs", "test_2018_flickr")


def test_the_tokenised_variant_has_its_own_files(tmp_path):
    fill(tmp_path, languages=())
    fill(tmp_path, "{split}.lc.norm.tok.{language}")
    assert first_pairs(multi30k(tmp_path, variant="lc.norm.tok")) == expected()
    with pytest.raises(DataError, match=r"has neither train\.en\.gz nor train\.en\."):
        multi30k(tmp_path)


def test_a_file_that_the_folder_lacks_is_named(tmp_path):
    fill(tmp_path)
    (tmp_path / "val.de.gz").unlink()
    with pytest.raises(DataError, match=names(tmp_path) + r".* has neither val\.de\.gz nor val\.de\."):
        multi30k(tmp_path)


@pytest.mark.parametrize("kind", ["missing", "file"])
def test_the_data_dir_must_be_a_folder(tmp_path, kind):
    path = tmp_path / "missing" if kind == "missing" else write(tmp_path / "file", "a\n")
    with pytest.raises(
        DataError, match="`--data-dir` must be a folder with the Multi30k files. Received: " + names(path)
    ):
        multi30k(path)


# Multi30k from a server.


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"target": "fr"}, "train.fr.gz"),
        ({"variant": "lc.norm.tok"}, "train.lc.norm.tok.en.gz"),
    ],
)
def test_nothing_is_downloaded_without_a_known_checksum(server, arguments, name):
    message = re.escape(f"{name} cannot be downloaded: only files with a known checksum are") + ".*--data-dir"
    with pytest.raises(DataError, match=message):
        multi30k(**arguments)
    assert name not in server.requested


def test_checksums_are_known_for_the_default_files():
    splits, languages = ("train", "val", "test_2016_flickr"), ("de", "en")
    assert set(datasets.MULTI30K_SHA256) == {f"{split}.{language}.gz" for split in splits for language in languages}
    assert all(re.fullmatch("[0-9a-f]{64}", checksum) for checksum in datasets.MULTI30K_SHA256.values())


@pytest.fixture
def server(tmp_path, monkeypatch):
    """A local server with a tiny Multi30k, its checksums, and an empty cache; `requested` lists the files asked for."""
    import keras

    files, cache = tmp_path / "files", tmp_path / "cache"
    files.mkdir()
    cache.mkdir()
    fill(files)
    requested = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            requested.append(self.path.removeprefix("/raw/"))

        def translate_path(self, path):
            return str(files / path.removeprefix("/raw/"))

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as httpd:
        thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        checksums = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files.iterdir()}
        monkeypatch.setattr(datasets, "MULTI30K_URL", f"http://127.0.0.1:{httpd.server_port}/raw/")
        monkeypatch.setattr(datasets, "MULTI30K_SHA256", checksums)
        monkeypatch.setattr(keras.utils, "get_file", functools.partial(keras.utils.get_file, cache_dir=str(cache)))
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        httpd.files, httpd.cache, httpd.requested = files, cache / "datasets" / "multi30k", requested
        yield httpd
        httpd.shutdown()
        thread.join()


def test_files_are_downloaded_once_and_cached(server):
    assert first_pairs(multi30k()) == expected()
    assert sorted(server.requested) == sorted(datasets.MULTI30K_SHA256)
    assert {path.name for path in server.cache.iterdir()} == set(datasets.MULTI30K_SHA256)
    assert first_pairs(multi30k()) == expected()
    assert len(server.requested) == 6


def test_a_damaged_file_in_the_cache_is_downloaded_again(server):
    multi30k()
    write(server.cache / "val.en.gz", "half")
    assert first_pairs(multi30k()) == expected()
    assert server.requested[6:] == ["val.en.gz"]


def test_a_wrong_checksum_is_an_error_and_is_mended_by_the_right_file(server):
    good = (server.files / "val.de.gz").read_bytes()
    write(server.files / "val.de.gz", "anders\nmore\n", compress=True)
    with pytest.raises(DataError, match=r"val\.de\.gz could not be downloaded: .*file hash does not match.*--data-dir"):
        multi30k()
    with pytest.raises(DataError, match=r"val\.de\.gz could not be downloaded: .*file hash does not match"):
        multi30k()  # What was downloaded does not count as cached.
    write(server.files / "val.de.gz", good)
    assert first_pairs(multi30k()) == expected()


def test_a_file_that_the_server_lacks_is_an_error_with_other_ways_to_go(server):
    (server.files / "train.en.gz").unlink()
    with pytest.raises(
        DataError, match=r"train\.en\.gz could not be downloaded: .*404.*--data-dir.*--dataset phrasebook"
    ):
        multi30k()


def test_no_server_is_an_error_with_other_ways_to_go(server):
    server.shutdown()
    server.server_close()
    with pytest.raises(DataError, match=r"train\.en\.gz could not be downloaded: .*--data-dir.*--dataset phrasebook"):
        multi30k()
