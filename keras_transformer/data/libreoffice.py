"""LibreOffice's help and messages: text that people translated, as sentences, as whole pages and as HTML.

Debian packages them in 32 languages besides English, under the MPL-2.0. Every paragraph of the help has an id, which is
the same in all languages. The sentences of a paragraph are aligned by their order, where both sides have equally many.
The splits are made by page, and training pairs whose sources are nearly those of the test are removed.
"""

import hashlib
import html
import io
import itertools
import logging
import re
import shutil
import struct
import subprocess
import tarfile
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from keras_transformer.data.cleaning import Cleaner, near_duplicates
from keras_transformer.files import cache_folder, cached_folder
from keras_transformer.text import sentences
from keras_transformer.text.accelerators import split_accelerator
from keras_transformer.text.lines import DataError

logger = logging.getLogger(__name__)

# What is held out. Pages are drawn by a hash of their names, and a share of the messages by one of their English text:
# the same ones wherever both languages have the same pages.
TEST_PAGES, VALIDATION_PAGES, TEST_MESSAGES = 100, 60, 0.05

# The languages of Debian 12.
LANGUAGES = (
    *("ca", "cs", "da", "de", "dz", "el", "en", "en-gb", "es", "et", "eu", "fi", "fr", "gl", "hi", "hu", "id", "it"),
    *("ja", "km", "ko", "nl", "om", "pl", "pt", "pt-br", "ru", "sk", "sl", "sv", "tr", "vi", "zh-cn", "zh-tw"),
)

# One program writes all pages, so patterns can read them: no paragraph is in another one.
_PARAGRAPH = re.compile(r'<(p|h[1-6])\b[^>]*?\sid="([^"]+)"[^>]*>(.*?)</\1>', re.DOTALL)
# Hidden variants for another system or program of the suite, beside the usual one. Readers see one of them.
_VARIANT = re.compile(
    r'<span hidden="true"[^>]*\sclass="[A-Z]+"[^>]*>(?:[^<]|<(?!/?span\b)[^>]*>|<span\b[^>]*>[^<]*</span>)*</span>'
)
# Most paragraphs are one sentence; this pattern finds that out faster than the rules of sentences.
_MAY_BE_SEVERAL = re.compile(r"[.!?…:;‽।。！？][^\w\s]*\s|[。！？।።။៕]")
_PAGE = re.compile(r"(?:\./)?usr/share/libreoffice/help/[^/]+/text/(.+\.html)")
_MESSAGES = re.compile(r"(?:\./)?usr/lib/libreoffice/program/resource/[^/]+/LC_MESSAGES/(.+\.mo)")


Pairs = list[tuple[str, str]]


class LibreOffice(NamedTuple):
    """The texts of two languages: lists of (source, target).

    Attributes:
        help, messages: to train with: sentences of the help, and messages of the program without the marks of their
            accelerators, see `keras_transformer.text.accelerators`.
        validation: sentences of other pages.
        sentences, pages, html: to test with: other pages again, as sentences, as text, and as they are.
        test_messages: other messages, without these marks. Like the sentences, without pairs that are probably no
            translations, such as names that both languages share; see `keras_transformer.data.cleaning`.
        marked_messages: the same with their marks.
    """

    help: Pairs
    messages: Pairs
    validation: Pairs
    sentences: Pairs
    pages: Pairs
    html: Pairs
    test_messages: Pairs
    marked_messages: Pairs


def libreoffice(data_dir: str | Path | None = None, source: str = "en", target: str = "de") -> LibreOffice:
    """Reads the packages of two languages, and splits their texts.

    Args:
        data_dir: folder with the packages, `.deb` files. By default `apt-get` downloads them, once, to
            `~/.keras/keras_transformer/libreoffice`.
        source, target: language codes, `"en"` or those of the packages, such as `"de"` or `"pt-br"`. Default to `"en"`,
            `"de"`.

    Raises:
        DataError: a package is missing, damaged or of another version than the others; or both languages are the same.
    """
    codes = [code.lower().replace("_", "-") for code in (source, target)]
    codes = ["en" if code == "en-us" else code for code in codes]
    for code in codes:
        if not re.fullmatch("[a-z]+(-[a-z]+)*", code):
            raise DataError(f"A language must be a code such as de or pt-br. Received: {code!r}.{_known(code)}")
    if codes[0] == codes[1]:
        raise DataError(
            f"Source and target must be two languages. Received: {source}, {target}. Choose others with "
            "--source-language, --target-language or --directions."
        )
    folder = Path(data_dir) if data_dir else _downloaded(*codes)
    packages = _packages(folder, codes)
    logger.info(f"libreoffice {packages[0].version}, from {folder}")
    pages = [_read_each(package, bytes.decode) for package in packages[:2]]
    others = iter(packages[2:])
    catalogs = [None if code == "en" else _read_each(next(others), _read_mo) for code in codes]
    found = _split(*pages, _messages(catalogs), codes)
    if empty := [name for name, pairs in zip(found._fields[:5], found, strict=False) if not pairs]:
        raise DataError(
            f"The packages in {folder} must have text in both languages. Received: nothing for {empty[0]}. Get them "
            "again from https://packages.debian.org."
        )
    return found


def _split(source_pages, target_pages, messages, codes):
    cleaner = Cleaner(*codes)
    names = sorted(source_pages.keys() & target_pages.keys(), key=_drawn)
    texts, different = {}, []
    for name in names:
        texts[name], unequal = _aligned(*(paragraphs(pages[name]) for pages in (source_pages, target_pages)))
        different += [name] * bool(unequal)
    different += sorted(source_pages.keys() ^ target_pages.keys())
    if different:
        logger.info(
            f"libreoffice: {len(different):,} pages, such as {different[0]}, do not have the same ids, equally often, "
            "in both languages; only paragraphs that are in both are used"
        )
    if len(names) <= TEST_PAGES + VALIDATION_PAGES:
        raise DataError(
            f"{TEST_PAGES + VALIDATION_PAGES} pages are held out, and more must be in both languages. Received: "
            f"{len(names)} in {codes[0]} and {codes[1]}. Get the packages again."
        )
    test, rest = names[:TEST_PAGES], names[TEST_PAGES:]
    validation, train = rest[:VALIDATION_PAGES], rest[VALIDATION_PAGES:]

    def sentences_of(names):
        pairs = dict.fromkeys(pair for name in names for pair in texts[name])
        return list(dict.fromkeys(itertools.chain.from_iterable(_sentences(*pair, *codes) for pair in pairs)))

    def clean(name, pairs):
        reasons = [cleaner.reason(0, *pair) for pair in pairs]
        left_out = "; ".join(f"{count:,} {reason}" for reason, count in Counter(reasons).most_common() if reason)
        logger.info(f"libreoffice {name}: {len(pairs):,} different pairs; left out: {left_out or 'none'}")
        return [pair for pair, reason in zip(pairs, reasons, strict=True) if reason is None]

    def held_out_of(names):
        """Whole paragraphs, and the sentences of those that are not cut into pairs."""
        pairs = [pair for name in names for pair in texts[name]]
        return pairs + [(sentence, "") for source, _ in pairs for sentence in sentences.split(source, codes[0])[1::2]]

    marked = [{}, {}]  # Messages to train and to test with: by the pair without marks, the first one with marks.
    for english, pair in messages:
        is_test = int.from_bytes(_drawn(english)[:4]) < TEST_MESSAGES * 2**32
        marked[is_test].setdefault(tuple(split_accelerator(side)[0] for side in pair), pair)
    test_sentences = clean("test sentences", sentences_of(test))
    test_messages = clean("test messages", marked[True])
    pages = [tuple("\n\n".join(side) for side in zip(*pairs, strict=True)) for name in test if (pairs := texts[name])]
    held_out = [*test_sentences, *test_messages, *held_out_of(test)]
    new = _without_near("validation", sentences_of(validation), held_out)
    validation_sentences = clean("validation without these", new)
    held_out += [*validation_sentences, *held_out_of(validation)]
    return LibreOffice(
        help=_without_near("help", sentences_of(train), held_out),
        messages=_without_near("messages", list(marked[False]), held_out),
        validation=validation_sentences,
        sentences=test_sentences,
        pages=pages,
        html=[(source_pages[name], target_pages[name]) for name in test],
        test_messages=test_messages,
        marked_messages=[marked[True][pair] for pair in test_messages],
    )


def _aligned(source, target):
    """The pairs of the paragraphs of two pages, and the ids that the pages do not have equally often.

    Such an id says nothing about which paragraphs belong together.
    """
    unequal = {key.split(" ")[0] for key in source.keys() ^ target.keys()}
    equal = [key for key in source if key.split(" ")[0] not in unequal]
    return [pair for key in equal if all(pair := (source[key], target[key]))], unequal


def _without_near(name, pairs, held_out):
    """The pairs whose sources are not nearly those of pairs that are held out; logs how many they are."""
    held_out = {source for source, _ in held_out}
    near = near_duplicates([source for source, _ in pairs], held_out)
    same = sum(source in held_out for source, _ in pairs)
    logger.info(
        f"libreoffice {name}: {len(pairs):,} different pairs; left out, because a sentence that is held out is the "
        f"same: {same:,}, or nearly the same: {sum(near) - same:,}"
    )
    return [pair for pair, is_near in zip(pairs, near, strict=True) if not is_near]


def paragraphs(page: str) -> dict[str, str]:
    """The text of a page's paragraphs by their ids; one that occurs again gets a number, such as "x 2".

    Example:
        >>> paragraphs('<h1 id="a">Cells</h1><p class="c" id="b">Press <b>F2</b> &amp; wait.</p>')
        {'a': 'Cells', 'b': 'Press F2 & wait.'}
    """
    return {name: _text(content) for name, content in raw_paragraphs(page).items()}


def raw_paragraphs(page: str) -> dict[str, str]:
    """`paragraphs` with their markup, as a reader on Linux in this program of the suite sees them."""
    found, times = {}, Counter()
    for _, name, content in _PARAGRAPH.findall(page):
        times[name] += 1
        found[name if times[name] == 1 else f"{name} {times[name]}"] = " ".join(_VARIANT.sub("", content).split())
    return found


def _text(content):
    content = re.sub(r"<br\b[^>]*>", " ", content)
    return " ".join(html.unescape(re.sub("<[^>]*>", "", content)).split())


def _sentences(source, target, source_language, target_language):
    """The sentences of a paragraph, if both sides have equally many, or the paragraph."""
    if not (_MAY_BE_SEVERAL.search(source) and _MAY_BE_SEVERAL.search(target)):
        return [(source, target)]
    sides = sentences.split(source, source_language)[1::2], sentences.split(target, target_language)[1::2]
    return list(zip(*sides, strict=True)) if len(sides[0]) == len(sides[1]) else [(source, target)]


def _messages(catalogs):
    """Messages as (English text, pair), one for each line; `None` instead of a catalog is English."""
    names = [catalog.keys() for catalog in catalogs if catalog is not None]
    pairs = []
    for name in sorted(set.intersection(*map(set, names))):
        sides = [catalog and catalog[name] for catalog in catalogs]
        keys = next(side for side in sides if side is not None)
        for key in keys:
            texts = [key.split("\x04")[-1] if side is None else side.get(key, "") for side in sides]
            if key and all(texts) and "\0" not in "".join([key, *texts]):  # Not the header, nor plurals.
                lines = [text.split("\n") for text in texts]
                if len(lines[0]) != len(lines[1]):
                    lines = [[" ".join(side)] for side in lines]
                english = key.split("\x04")[-1]  # Before it stands the context.
                found = [tuple(" ".join(side.split()) for side in pair) for pair in zip(*lines, strict=True)]
                pairs += [(english, pair) for pair in found if all(pair)]
    return sorted(pairs, key=lambda pair: (_drawn(pair[0]), pair))


def _drawn(name):
    return hashlib.sha256(name.encode()).digest()


# Packages.


class _Package(NamedTuple):
    path: Path
    version: str
    files: dict[str, bytes]


def _names(codes):
    """The names of the packages of two languages: first the help of both, then messages, which English has not."""
    helps = [f"libreoffice-help-{'en-us' if code == 'en' else code}" for code in codes]
    return helps + [f"libreoffice-l10n-{code}" for code in codes if code != "en"]


def _packages(folder, codes):
    """The `_Package`s of two languages in a folder, in the order of their names."""
    if not folder.is_dir():
        raise DataError(
            f"The packages must be in a folder. Received: {folder}. Give one with --data-dir; without it, apt-get "
            "downloads them."
        )
    names, packages = _names(codes), []
    paths = {name: sorted(folder.glob(f"{name}_*.deb")) for name in names}
    if missing := [name for name in names if not paths[name]]:
        raise DataError(
            f"{folder} must be a folder with one package of each kind. Received: no {', no '.join(missing)}. Get them "
            f"with apt-get download {' '.join(missing)}, or from https://packages.debian.org.{_known(*codes)}"
        )
    for name, (path, *others) in paths.items():
        if others:
            raise DataError(
                f"{folder} must be a folder with one package of each kind. Received: {1 + len(others)} {name}_*.deb. "
                f"Keep one of them: {', '.join(each.name for each in paths[name])}."
            )
        version, files = read_package(path, _PAGE if "-help-" in name else _MESSAGES)
        if not files:
            raise DataError(f"{path} must have text. Received: version {version} without any. Get it again.")
        packages.append(_Package(path, version, files))
        if version != packages[0].version:
            raise DataError(
                "The packages must be of one version, whose texts belong together. Received: "
                f"{packages[0].path} of version {packages[0].version}, {path} of version {version}. Get all of them "
                "again, from one release of Debian."
            )
    return packages


def _read_each(package, read):
    """The files of a `_Package`, each read by a function."""
    found = {}
    for name, data in package.files.items():
        try:
            found[name] = read(data)
        except (ValueError, struct.error) as error:
            raise DataError(f"{name} in {package.path} must be undamaged. Received: {error}. Get it again.") from error
    return found


def _known(*codes):
    """What to add to a message about languages that Debian 12 does not have."""
    unknown = [code for code in codes if code not in LANGUAGES]
    return f" Debian 12 does not have {unknown[0]}, but {', '.join(LANGUAGES)}." if unknown else ""


def read_package(path: Path, wanted: re.Pattern) -> tuple[str, dict[str, bytes]]:
    """The version of a `.deb` file, and its files whose paths match, by the first group.

    Raises:
        DataError: the file is damaged, or is no package that Python can read.
    """
    try:
        members, data, place = {}, path.read_bytes(), 8
        if not data.startswith(b"!<arch>\n"):
            raise ValueError("it is no archive")
        while place < len(data):  # Each member of the archive has a header of 60 bytes.
            name, size = data[place : place + 16].decode().strip(" /"), data[place + 48 : place + 58].decode().strip()
            if not size.isdecimal():  # A negative one would never end.
                raise ValueError(f"a size is {size!r}")
            size = int(size)
            if name.endswith(".zst"):
                raise ValueError(f"{name} is compressed with zstd, as in Ubuntu, which Python 3.11 cannot read")
            members[name.split(".")[0]] = io.BytesIO(data[place + 60 : place + 60 + size])
            if place + 60 + size > len(data):
                raise ValueError("it is cut off")
            place += 60 + size + size % 2
        if missing := {"control", "data"} - members.keys():
            raise ValueError(f"it has no {' and no '.join(sorted(missing))}")
        with tarfile.open(fileobj=members["control"]) as control, tarfile.open(fileobj=members["data"]) as content:
            fields = control.extractfile("./control").read().decode()
            files = {
                match[1]: content.extractfile(member).read()
                for member in content
                if member.isfile() and (match := wanted.fullmatch(member.name))
            }
        found = dict(re.findall("^(Package|Version): (.+)", fields, re.MULTILINE))
        if found.get("Package") != path.name.split("_")[0] or "Version" not in found:
            raise ValueError(f"it is the package {found.get('Package')} of version {found.get('Version')}")
        return found["Version"], files
    except OSError as error:
        raise DataError(f"Cannot read {path}: {error.strerror or error}. Get it again.") from error
    except Exception as error:
        raise DataError(
            f"{path} must be one of Debian's packages, unchanged. Received another file: "
            f"{' '.join(str(error).split())}. Get it from https://packages.debian.org."
        ) from error


def _read_mo(data):
    """The messages of a compiled catalog: a dict. The `gettext` module has no public way to read all of them."""
    magic, _, count, *tables = struct.unpack_from("<5I", data)
    if magic != 0x950412DE:
        raise ValueError("a file that is no catalog")

    def text(table, i):
        size, place = struct.unpack_from("<2I", data, table + 8 * i)
        if place + size > len(data):
            raise ValueError("a catalog that is cut off")
        return data[place : place + size].decode()

    return {text(tables[0], i): text(tables[1], i) for i in range(count)}


def _downloaded(*codes):
    names = _names(codes)
    by_hand = f"Get {', '.join(names)} from https://packages.debian.org, and pass their folder with --data-dir."
    if not shutil.which("apt-get"):
        raise DataError(f"The packages are downloaded with apt-get, which this machine does not have. {by_hand}")

    def download(folder):
        command, text = ["apt-get", "download", *names], {"encoding": "utf-8", "errors": "replace"}
        # `close_fds`: the command inherits the lock of the cache; see `cached_folder`.
        found = subprocess.run(
            command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, close_fds=False, **text
        )
        if found.returncode:
            said = " ".join(found.stderr.split()) or f"status {found.returncode}"
            raise DataError(
                f"apt-get could not download: {said}. Run apt-get update as root. {by_hand}{_known(*codes)}"
            )
        try:
            _packages(folder, codes)  # What cannot be used would stay in the cache.
        except DataError as error:
            said = str(error).replace(f"{folder}/", "").replace(str(folder), "The download")
            raise DataError(f"apt-get downloaded something else. {said} {by_hand}") from error

    return cached_folder(cache_folder("libreoffice", "-".join(sorted(codes))), download)
