"""LibreOffice's packages: reading them, the splits, and what is said of packages that do not fit."""

import gzip
import io
import os
import struct
import tarfile

import pytest

from keras_transformer.data import libreoffice as module
from keras_transformer.data.corpora import load_corpus
from keras_transformer.data.libreoffice import libreoffice, paragraphs
from keras_transformer.text.lines import DataError
from keras_transformer.training.config import RunConfig

WORDS = {
    "en": "cell sheet table row column page style font menu window button border chart slide field list",
    "de": "Zelle Blatt Tabelle Zeile Spalte Seite Stil Schrift Menü Fenster Knopf Rand Grafik Folie Feld Liste",
}
WORDS = {code: words.split() for code, words in WORDS.items()}
SENTENCE = {"en": "Click the {} beside the {} of a {}.", "de": "Klicken Sie auf {} neben {} von {}."}
PAGES = 24


def tar(files, mode="w:xz"):
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode=mode) as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return data.getvalue()


def deb(name, version, files):
    """The bytes of a Debian package."""
    control = f"Package: {name}\nVersion: {version}\nDescription: a\n package\n".encode()
    members = {
        "debian-binary": b"2.0\n",
        "control.tar.xz": tar({"./control": control}),
        "data.tar.xz": tar(files),
    }
    data = b"!<arch>\n"
    for member, content in members.items():
        header = f"{member:16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(content):<10}`\n".encode()
        data += header + content + b"\n" * (len(content) % 2)
    return data


def mo(messages):
    """The bytes of a compiled catalog."""
    strings = [text.encode() + b"\0" for pair in sorted(messages.items()) for text in pair]
    place, tables = 28 + 16 * len(messages), []
    for text in strings:
        tables.append((len(text) - 1, place))
        place += len(text)
    head = struct.pack("<7I", 0x950412DE, 0, len(messages), 28, 28 + 8 * len(messages), 0, 0)
    entries = [*tables[::2], *tables[1::2]]
    return head + b"".join(struct.pack("<2I", *entry) for entry in entries) + b"".join(strings)


def page(code, number):
    words = [WORDS[code][(number * k + k) % 16] for k in range(1, 4)]
    text = SENTENCE[code].format(*words)
    key = {"en": "Ctrl", "de": "Strg"}[code]
    return f"""<html><body>
<h1 id="hd_{number}" dir="auto"><a name="x"></a>{words[0]} &amp; {number}</h1>
<p id="par_1{number}" class="paragraph">{text} {SENTENCE[code].format(*words[::-1])}</p>
<p id="par_2{number}">Page {number}: <span class="switchinline"><span hidden="true" id="m" class="MAC"><span
 class="keycode">Command</span></span><span hidden="true" id="d">{key}</span></span>+Z.</p>
<p id="par_2{number}">{code} again {number}</p><p class="no_id">not in the corpus</p>
</body></html>""".encode()


def packages(code, version="4:7.4.7", pages=PAGES):
    """The packages of a language by the names of their files."""
    folder = {"en": "en-US"}.get(code, code)
    root = f"./usr/share/libreoffice/help/{folder}/text"
    files = {f"{root}/swriter/{number}.html": page(code, number) for number in range(pages)}
    name = {"en": "en-us"}.get(code, code)
    found = {f"libreoffice-help-{name}_7_all.deb": deb(f"libreoffice-help-{name}", version, files)}
    if code != "en":
        messages = {
            f"key{i}\x04Save the {word} to $(ARG{i})": f"{word} in $(ARG{i}) speichern"
            for i, word in enumerate(WORDS["en"])
        }
        messages |= {
            "": "Language: de",
            "two\x04First line\nSecond line": "Erste Zeile\nZweite Zeile",
            "p\x04one\0two": "a\0b",
            **{f"_{i}\x04_{word.title()} it": f"D_as {word}" for i, word in enumerate(WORDS["en"])},
        }
        path = f"./usr/lib/libreoffice/program/resource/{code}/LC_MESSAGES/sw.mo"
        found[f"libreoffice-l10n-{name}_7_all.deb"] = deb(f"libreoffice-l10n-{name}", version, {path: mo(messages)})
    return found


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the packages of English and German; the sizes of the tests are small."""
    for name, value in (("TEST_PAGES", 4), ("VALIDATION_PAGES", 3), ("TEST_MESSAGES", 0.25)):
        monkeypatch.setattr(module, name, value)
    folder = tmp_path / "packages"
    folder.mkdir()
    for code in ("en", "de"):
        for name, data in packages(code).items():
            (folder / name).write_bytes(data)
    return folder


def test_paragraphs_of_a_page():
    found = paragraphs(page("en", 7).decode())
    assert list(found) == ["hd_7", "par_17", "par_27", "par_27 2"]
    assert found["par_27"] == "Page 7: Ctrl+Z." and found["hd_7"].endswith("& 7")


def test_texts_are_aligned_by_their_ids(folder):
    read = libreoffice(folder)
    assert [len(texts) for texts in (read.pages, read.html)] == [4, 4]
    assert 2 < len(read.test_messages) < 16 and read.messages
    for source, target in read.sentences:
        if source.startswith("Click"):
            words = [WORDS["de"][WORDS["en"].index(word)] for word in source[:-1].split() if word in WORDS["en"]]
            assert target == SENTENCE["de"].format(*words)
    assert ("First line", "Erste Zeile") in [*read.messages, *read.test_messages]
    assert not any("\0" in text for pair in read.messages for text in pair)


def test_messages_are_learned_without_accelerators(folder):
    read = libreoffice(folder)
    assert not any("_" in text for pair in read.messages for text in pair)
    assert any("_" in text for pair in read.marked_messages for text in pair)
    assert [tuple(text.replace("_", "") for text in pair) for pair in read.marked_messages] == read.test_messages


def test_an_id_that_only_one_side_repeats_says_nothing(folder, caplog):
    """Its first paragraph in one language may be the second in the other one."""
    caplog.set_level("INFO")
    sides = (
        '<p id="a">Insert a row.</p><p id="a">Delete it.</p><p id="b">{}.</p>',
        '<p id="a">Löschen.</p><p id="b">{}.</p>',
    )
    names = [f"{letter}.html" for letter in "abcdefghijkl"]
    read = module._split(*({name: side.format(name) for name in names} for side in sides), [], ["en", "de"])
    assert {text for pages in (read.help, read.validation, read.pages) for pair in pages for text in pair} == {
        f"{n}." for n in names
    }
    assert "12 pages, such as" in caplog.text


def test_nothing_that_is_tested_is_learned(folder):
    read = libreoffice(folder)
    held = {source for source, _ in [*read.sentences, *read.test_messages]}
    assert held and read.help and read.messages and read.validation
    assert held.isdisjoint(source for source, _ in [*read.help, *read.messages, *read.validation])
    # Pages have the same paragraphs, and numbers do not count: "Page 3: Ctrl+Z." is nearly "Page 4: Ctrl+Z.".
    assert not any("Ctrl" in source for source, _ in read.help)


def test_a_sentence_of_a_held_out_paragraph_is_not_learned(folder):
    """Not even where the paragraph is not cut into pairs, because the sides have different numbers of sentences."""
    names = sorted((f"{letter}.html" for letter in "abcdefghijkl"), key=module._drawn)
    of_test = '<p id="a">Alpha beta gamma delta. Omega psi chi phi rho sigma.</p>', '<p id="a">Eins und zwei.</p>'
    pages = [{}, {}]
    for number, name in enumerate(names):
        own = " ".join(WORDS["en"][number : number + 4])
        of_others = f'<p id="b">Omega psi chi phi rho sigma.</p><p id="c">The {own}.</p>'
        of_others = of_others, of_others.replace("The", "Das da")
        for side, text in zip(pages, of_test if number < 4 else of_others, strict=True):
            side[name] = text
    read = module._split(*pages, [], ["en", "de"])
    assert len(read.pages) == 4 and read.help and read.validation
    assert not any(source.startswith("Omega") for source, _ in [*read.help, *read.validation])


def test_the_splits_are_the_same_for_both_directions(folder):
    one, other = libreoffice(folder), libreoffice(folder, "de", "en")
    assert [pair[::-1] for pair in other.pages] == one.pages
    assert {pair[::-1] for pair in other.test_messages} == set(one.test_messages)


def test_a_message_is_tested_in_every_language(folder):
    """French lacks half of the messages, and has others under other keys; German has all of them."""
    kept = {"": "Language: fr"} | {
        f"again\x04Save the {word} to $(ARG{i})": "x" for i, word in enumerate(WORDS["en"]) if i % 2
    }
    kept["two\x04First line\nSecond line"] = "Une ligne\nDeux lignes"
    path = "./usr/lib/libreoffice/program/resource/fr/LC_MESSAGES/sw.mo"
    pages = {f"./usr/share/libreoffice/help/fr/text/swriter/{n}.html": page("de", n) for n in range(PAGES)}
    for kind, files in (("help", pages), ("l10n", {path: mo(kept)})):
        (folder / f"libreoffice-{kind}-fr_7_all.deb").write_bytes(deb(f"libreoffice-{kind}-fr", "4:7.4.7", files))
    german, french = libreoffice(folder), libreoffice(folder, target="fr")
    without_english = libreoffice(folder, "de", "fr")
    assert not any("Language" in text for pair in without_english.messages for text in pair)  # Headers are no messages.
    tested, learned = ({source for source, _ in pairs} for pairs in (german.test_messages, french.messages))
    assert learned and tested.isdisjoint(learned)


def test_a_corpus_has_sentences_messages_pages_and_html(folder):
    data = RunConfig.make({"dataset": "libreoffice", "data_dir": str(folder)}).data
    corpus = load_corpus(data)
    assert [text.method for text in corpus.test] == ["translate", "translate", "translate_text", "translate_html"]
    assert data.clean and [str(text) for text in corpus.train] == ["libreoffice help", "libreoffice messages"]
    pages, html = corpus.test[2:]
    of_pages = [list(pages.segments(target).values()) for _, target in pages]
    assert of_pages == [[text for text in html.segments(target).values()] for _, target in html]
    both = RunConfig.make({"dataset": "libreoffice", "data_dir": str(folder), "directions": [["en-de", "de-en"]]}).data
    assert [text.direction for text in load_corpus(both).validation] == ["en-de", "de-en"]


def test_pages_with_other_ids_in_one_language_are_counted(folder, caplog):
    caplog.set_level("INFO")
    files = packages("de", pages=PAGES + 1)
    name = "libreoffice-help-de_7_all.deb"
    (folder / name).write_bytes(files[name])
    read = libreoffice(folder, "en_US", "DE")
    assert "1 pages, such as swriter/24.html, do not have the same ids, equally often" in caplog.text
    assert read.pages == libreoffice(folder).pages
    with pytest.raises(DataError, match=r"must be two languages. Received: en, en_US"):
        libreoffice(folder, "en", "en_US")


def change_version(folder):
    for name, data in packages("de", "4:25.2").items():
        if "help" in name:
            (folder / name).write_bytes(data)
    return "must be of one version.*help-en-us_7_all.deb of version 4:7.4.7, .*help-de_7_all.deb of version 4:25.2"


def cut(folder):
    path = folder / "libreoffice-help-de_7_all.deb"
    path.write_bytes(path.read_bytes()[:-9])
    return "help-de_7_all.deb must be one of Debian's packages.*cut off"


def damage(folder):
    path = folder / "libreoffice-l10n-de_7_all.deb"
    data = path.read_bytes()
    path.write_bytes(data[:-60] + bytes(60))
    return "l10n-de_7_all.deb must be one of Debian's packages"


def replace_with_text(folder):
    (folder / "libreoffice-help-de_7_all.deb").write_bytes(gzip.compress(b"a"))
    return "help-de_7_all.deb must be one of Debian's packages.*no archive"


def remove(folder):
    (folder / "libreoffice-help-de_7_all.deb").unlink()
    (folder / "libreoffice-l10n-de_7_all.deb").unlink()
    names = "libreoffice-help-de.* libreoffice-l10n-de"
    return f"Received: no {names}. Get them with apt-get download {names}, or from"


def double(folder):
    (folder / "libreoffice-help-de_8_all.deb").write_bytes(b"")
    return (
        r"one package of each kind. Received: 2 libreoffice-help-de_.*Keep one of them: .*_7_all.deb, .*_8_all.deb\.$"
    )


def give_a_negative_size(folder):
    path = folder / "libreoffice-help-de_7_all.deb"
    data = path.read_bytes()
    path.write_bytes(data[:56] + b"-60       " + data[66:])
    return "help-de_7_all.deb must be one of Debian's packages.*a size is '-60'"


def leave_out_control(folder):
    path = folder / "libreoffice-help-de_7_all.deb"
    path.write_bytes(path.read_bytes().replace(b"control.tar.xz", b"control_tar.xz"))
    return "help-de_7_all.deb must be one of Debian's packages.*it has no control"


def rename(folder):
    (folder / "libreoffice-help-de_7_all.deb").write_bytes(deb("libreoffice-help-fr", "4:7.4.7", {}))
    return (
        "help-de_7_all.deb must be one of Debian's packages.*it is the package libreoffice-help-fr of version 4:7.4.7"
    )


def damage_messages(folder):
    path = "./usr/lib/libreoffice/program/resource/de/LC_MESSAGES/sw.mo"
    data = deb("libreoffice-l10n-de", "4:7.4.7", {path: mo({"a": "b"})[:20]})
    (folder / "libreoffice-l10n-de_7_all.deb").write_bytes(data)
    return "sw.mo in .*l10n-de_7_all.deb must be undamaged"


def damage_a_page(folder):
    path = "./usr/share/libreoffice/help/de/text/swriter/1.html"
    data = deb("libreoffice-help-de", "4:7.4.7", {path: b"\xff"})
    (folder / "libreoffice-help-de_7_all.deb").write_bytes(data)
    return "swriter/1.html in .*help-de_7_all.deb must be undamaged"


def leave_few_pages(folder):
    (folder / "libreoffice-help-de_7_all.deb").write_bytes(packages("de", pages=7)["libreoffice-help-de_7_all.deb"])
    return "7 pages are held out, and more must be in both languages. Received: 7 in en and de"


def compress_with_zstd(folder):
    path = folder / "libreoffice-help-de_7_all.deb"
    path.write_bytes(path.read_bytes().replace(b"data.tar.xz ", b"data.tar.zst"))
    return "data.tar.zst is compressed with zstd, as in Ubuntu"


def empty(folder):
    for name, data in packages("de", pages=0).items():
        (folder / name).write_bytes(data)
    return "help-de_7_all.deb must have text"


def cut_a_catalog(folder):
    path = "./usr/lib/libreoffice/program/resource/de/LC_MESSAGES/sw.mo"
    data = deb("libreoffice-l10n-de", "4:7.4.7", {path: mo({"a": "a long message"})[:-9]})
    (folder / "libreoffice-l10n-de_7_all.deb").write_bytes(data)
    return "sw.mo in .*l10n-de_7_all.deb must be undamaged. Received: a catalog that is cut off"


def leave_no_message(folder):
    path = "./usr/lib/libreoffice/program/resource/de/LC_MESSAGES/sw.mo"
    data = deb("libreoffice-l10n-de", "4:7.4.7", {path: mo({"": "Language: de"})})
    (folder / "libreoffice-l10n-de_7_all.deb").write_bytes(data)
    return f"packages in {folder} must have text in both languages. Received: nothing for messages"


def replace_the_folder(folder):
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    folder.write_text("a file")
    return f"must be in a folder. Received: {folder}. Give one with --data-dir"


@pytest.mark.parametrize(
    "change",
    [
        *(change_version, cut, damage, replace_with_text, remove, double, empty, compress_with_zstd, rename),
        *(damage_messages, damage_a_page, leave_few_pages, give_a_negative_size, leave_out_control),
        *(cut_a_catalog, leave_no_message, replace_the_folder),
    ],
)
def test_packages_that_do_not_fit_are_named(folder, change):
    with pytest.raises(DataError, match=change(folder)) as raised:
        libreoffice(folder)
    assert "\n" not in str(raised.value)


@pytest.fixture
def apt_get(tmp_path, monkeypatch):
    """A function that puts an `apt-get` with a given script first on the PATH; the cache is empty."""
    monkeypatch.setattr(module, "cache_folder", lambda *names: tmp_path.joinpath("cache", *names))

    def install(script):
        program = tmp_path / "bin" / "apt-get"
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")

    return install


def test_packages_are_downloaded_once(folder, apt_get, tmp_path):
    calls = tmp_path / "calls"
    apt_get(f'echo "$@" >> {calls}; cp {folder}/*.deb .')
    assert libreoffice() == libreoffice() == libreoffice(folder)
    assert calls.read_text() == "download libreoffice-help-en-us libreoffice-help-de libreoffice-l10n-de\n"


def test_a_language_that_does_not_exist_leaves_nothing(folder, apt_get, tmp_path):
    apt_get(f"cp {folder}/*en-us*.deb .; echo 'E: Unable to locate package libreoffice-help-xx' >&2; exit 100")
    with pytest.raises(DataError, match=r"locate package libreoffice-help-xx.*--data-dir.*not have xx, but ca, cs"):
        libreoffice(target="xx")
    assert not [*(tmp_path / "cache").rglob("*.deb")]


def test_a_damaged_package_is_not_kept(folder, apt_get, tmp_path):
    cut(folder)
    apt_get(f"cp {folder}/*.deb .")
    with pytest.raises(
        DataError, match=r"something else. libreoffice-help-de_7_all.deb must be one of Debian's"
    ) as raised:
        libreoffice()
    assert "--data-dir" in str(raised.value)
    apt_get("true")
    with pytest.raises(
        DataError, match=r"The download must be a folder.*no libreoffice-help-en-us, no libreoffice-help-de"
    ):
        libreoffice()
    (folder / "libreoffice-help-de_7_all.deb").write_bytes(packages("de", "4:25.2")["libreoffice-help-de_7_all.deb"])
    apt_get(f"cp {folder}/*.deb .")
    with pytest.raises(DataError, match=r"something else. The packages must be of one version"):
        libreoffice()
    with pytest.raises(DataError, match=r"must be a code such as de or pt-br. Received: 'd\?'"):
        libreoffice(target="d?")
    assert not [*(tmp_path / "cache").rglob("*.deb")]


def test_without_apt_get_the_message_says_what_to_get(folder, apt_get, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DataError, match=r"libreoffice-help-fr, libreoffice-l10n-fr from https://packages\.debian\.org"):
        libreoffice(target="fr")
