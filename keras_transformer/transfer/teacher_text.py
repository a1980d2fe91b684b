"""The translations of teachers in a folder, and the pairs that are chosen from them."""

import array
import functools
import itertools
import json
import logging
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from keras_transformer.data.cleaning import size_of
from keras_transformer.data.encoding import EMPTY
from keras_transformer.data.storage import left_out_by
from keras_transformer.files import FileError, locked, output_file, write_json
from keras_transformer.search.search import has_loop
from keras_transformer.settings import SELECTIONS, one_of
from keras_transformer.text.lines import stream_lines
from keras_transformer.text.special_ids import END_TOKEN_ID
from keras_transformer.training.config import ConfigError, read_json
from keras_transformer.translation.checks import COLON, LOOP, problem

logger = logging.getLogger(__name__)

if TYPE_CHECKING:
    from keras_transformer.data.cleaning import Cleaner
    from keras_transformer.translation.translator import Translator

# What the source of a back-translated pair begins with.
TAG = "<BT>"

# What can be wrong with a translation.
TRUNCATED, UNFINISHED, WORST = "from a source that was cut", "without an end", "with a low score"
REPEATED = "with a translation that many different lines have"
# The smallest number of different lines that are many, and of letters that different lines rarely share. What they
# share is no translation if the longest of them has as many times the letters of the shortest.
MANY, LONG, APART = 5, 20, 2
# Version of the rules of `TeacherText.select`.
RULES = 2

# Lines per chunk; a kill loses at most one chunk.
CHUNK_SIZE = 1024
# Not direct speech, which some languages begin with a colon, and no time.
_INTRODUCTION = re.compile(r".{1,60}?[:：](?!\s*[\d\"'“„«‘‚‹「『–—-])(?=.)")
# With this many lines, XLA saves more time than compiling all shapes takes: on two cores, half a minute to a minute.
XLA_PAYS_FROM = 16384


class Hypothesis(NamedTuple):
    """A translation of the teacher.

    Attributes:
        text: a string.
        score: the mean log probability of its tokens, or the agreement of several files; see `given_translations`.
        problem: what the search found wrong with it, or None.
    """

    text: str
    score: float
    problem: str | None = None


# From lines, and the number of lines before them, to the hypotheses of each line.
Translate = Callable[[list[str], int], list[list[Hypothesis]]]


class TeacherText:
    """A folder of a teacher's translations, which is written line by line and continued after a kill.

    Args:
        folder: its path.
        settings: a dictionary of what decides the translations. A folder that was begun with others is not continued.

    Attributes:
        pairs_folder: where `select` and `copy` write. May be set to a folder in which nothing else is.

    Raises:
        ConfigError: the folder was begun with other settings.
        FileError: the folder has other content.
    """

    def __init__(self, folder: Path | str, settings: dict[str, Any]):
        self.folder, self.settings = Path(folder), json.loads(json.dumps(settings))
        self.pairs_folder = self.folder / "pairs"
        self.hypotheses = self.folder / "hypotheses.jsonl"
        self.check()

    def is_translated(self) -> bool:
        """Whether all lines are translated."""
        return self.hypotheses.is_file()

    def check(self) -> None:
        """Raises an error unless the folder is free, or was begun with the same settings."""
        marks = self.folder / "settings.json"
        if self.folder.exists() and not marks.is_file() and (not self.folder.is_dir() or any(self.folder.iterdir())):
            raise FileError(
                f"{self.folder} has other content than a teacher's translations. Choose another --text-dir."
            )
        old = read_json(marks) if marks.is_file() else self.settings
        others = [
            f"{name}={self.settings.get(name)!r} (begun with {old.get(name)!r})"
            for name in sorted({*old, *self.settings})
            if old.get(name) != self.settings.get(name)
        ]
        if others:
            raise ConfigError(
                f"{self.folder} was begun with other settings, and a half of each is no corpus. "
                f"Received: {', '.join(others)}. Choose another --text-dir, or delete that folder."
            )

    def write(self, translate: Translate, lines: Iterable[str]) -> None:
        """Translates those of all lines of the text that are not yet translated; logs how far it is."""
        self.folder.mkdir(parents=True, exist_ok=True)
        part = self.folder / "hypotheses.jsonl.part"
        with locked(self.folder):
            self.check()  # Again: another process may have begun.
            if self.is_translated():
                return
            write_json(self.folder / "settings.json", self.settings)
            with open(part, "ab+") as file:
                done = count = _whole_chunks(file)
                if done:
                    logger.info(f"{self.folder}: {done:,} lines are translated already")
                lines, began = itertools.islice(lines, done, None), time.monotonic()
                logged = began
                while chunk := list(itertools.islice(lines, CHUNK_SIZE)):
                    for row in translate(chunk, count):
                        file.write((json.dumps(row, ensure_ascii=False) + "\n").encode())
                    file.flush()
                    count, now = count + len(chunk), time.monotonic()
                    if now - logged > 10:
                        logged, speed = now, (count - done) / (now - began)
                        logger.info(f"{self.folder}: {count:,} lines translated, {speed:,.0f} a second")
                os.fsync(file.fileno())
            part.rename(self.hypotheses)

    def __iter__(self) -> Iterator[list[Hypothesis]]:
        """For each line of the text, its list of `Hypothesis`."""
        with open(self.hypotheses, encoding="utf-8") as file:
            for line in file:
                yield [Hypothesis(*values) for values in json.loads(line)]

    def select(
        self,
        pairs: Callable[[], Iterable[tuple[str, str]]],
        how: str = "best",
        drop_worst: float = 0.0,
        cleaner: "Cleaner | None" = None,
        backward: bool = False,
    ) -> tuple[int, dict]:
        """Chooses the pairs to train with and writes them to `train.source` and `train.target`.

        Hypotheses with a problem are left out: those that the search found; those of
        `keras_transformer.translation.checks.problem`; and long translations, or introductions that end with a colon,
        that five lines of very different lengths have, such as refusals. The choice is among the others.

        Args:
            pairs: a function that returns (line of the text, reference or "") of all lines. It is called twice.
            how: `"best"`: the first hypothesis, in the order of the search; `"chrf"` or `"bleu"`: the nearest to
                the reference, by that score of the sentence; `"all"`: all hypotheses. Defaults to `"best"`.
            drop_worst: the share of the lines whose best score is the lowest; hypotheses with a lower score are left
                out. Defaults to 0.
            cleaner: a `keras_transformer.data.cleaning.Cleaner` for further rules. Defaults to None.
            backward: whether the lines are the targets, and the hypotheses sources with `TAG`. Defaults to False.

        Returns:
            The number of pairs, and `encoding.LeftOut` by reason.
        """
        choose, lowest, left_out = _chooser(how), -np.inf, {}
        repeated = self._repeated(line for line, _ in pairs())
        if drop_worst:
            lowest = np.quantile([max(hypothesis.score for hypothesis in row) for row in self if row], drop_worst)

        def judged(number, line, hypothesis):
            """Why a hypothesis is left out, or None; and the number of the line and the pair."""
            pair = (hypothesis.text, line) if backward else (line, hypothesis.text)
            reason = None if all(pair) else EMPTY
            reason = reason or hypothesis.problem or (WORST if hypothesis.score < lowest else None)
            reason = reason or (cleaner and cleaner.reason(number, *pair)) or problem(line, hypothesis.text)
            return reason or (None if repeated.isdisjoint(_said(line, hypothesis.text)) else REPEATED), (number, pair)

        def selected():
            nonlocal left_out
            for number, ((line, reference), row) in enumerate(zip(pairs(), self, strict=True), 1):
                found = map(functools.partial(judged, number, line), row)
                if how == "best":
                    chosen = _first_good(found)
                else:
                    by_hypothesis = dict(zip(row, found, strict=True))
                    good = [hypothesis for hypothesis in row if not by_hypothesis[hypothesis][0]]
                    chosen = [by_hypothesis[one] for one in choose(good if good and how != "all" else row, reference)]
                left_out = left_out_by(chosen, left_out)
                kept = [pair for reason, (_, pair) in chosen if not reason]
                # Different tokens may be the same text.
                yield from dict.fromkeys((f"{TAG} {source}" if backward else source, target) for source, target in kept)

        return self.copy("train", selected()), left_out

    def _repeated(self, lines):
        """The hashes of what `_said` finds in the translations of `MANY` lines of very different lengths."""
        found, columns = array.array("q"), ("said", "letters", "size")
        is_given = "translations" in self.settings  # Of a run's hypotheses, only the best one counts.
        for line, row in zip(lines, self, strict=True):
            letters = hash("".join(filter(str.isalpha, line.casefold())))
            for said in {
                said for hypothesis in row[: None if is_given else 1] for said in _said(line, hypothesis.text)
            }:
                found.extend((said, letters, size_of(line)))
        rows = np.frombuffer(found, "int64").reshape(-1, len(columns))
        said, count = np.unique(rows[:, 0], return_counts=True)
        sources = {}
        for key, letters, size in rows[np.isin(rows[:, 0], said[count >= MANY])].tolist():
            sources.setdefault(key, {})[letters] = size
        return {
            said
            for said, sizes in sources.items()
            if len(sizes) >= MANY and max(sizes.values()) > APART * min(sizes.values())
        }

    def paths(self, split: str) -> list[str]:
        """The paths of the sources and of the targets of `"train"`, `"real"`, `"val"` or `"test"`, strings."""
        return [str(self.pairs_folder / f"{split}.{side}") for side in ("source", "target")]

    def copy(self, split: str, pairs: Iterable[tuple[str, str]]) -> int:
        """Writes pairs to the files of a split; returns their number."""
        source_path, target_path = self.paths(split)
        self.pairs_folder.mkdir(parents=True, exist_ok=True)
        count = 0
        with output_file(source_path) as sources, output_file(target_path) as targets:
            for source, target in pairs:
                print(source, file=sources)
                print(target, file=targets)
                count += 1
        return count


def teacher_function(
    translator: "Translator", num_hypotheses: int, num_lines: int, target_language: str | None = None
) -> Translate:
    """The function that `TeacherText.write` needs, from a `Translator`. The same lines always give the same result."""
    from keras_transformer.search.decoder import length_penalty_divisor

    penalty = translator.settings.length_penalty, translator.settings.length_penalty_type
    translator.search.jit_compile = num_lines >= XLA_PAYS_FROM  # Not "auto": then it would depend on what came before.

    def hypothesis(translation):
        ids = translation.token_ids
        if translation.truncated:
            problem = TRUNCATED
        elif ids and ids[-1] != END_TOKEN_ID:
            problem = UNFINISHED
        else:
            problem = LOOP if has_loop(ids) else None
        length = max(len(ids), 1)
        score = translation.score * length_penalty_divisor(float(length), *penalty) / length
        return Hypothesis(translation.text, round(score, 4), problem)

    def translate(texts, begin):
        settings = {"num_hypotheses": num_hypotheses, "return_scores": True, "target_language": target_language}
        rows = translator.translate(texts, **settings)
        return [list(map(hypothesis, row if num_hypotheses > 1 else [row])) for row in rows]

    return translate


def given_translations(*paths: Path | str) -> Translate:
    """The function that `TeacherText.write` needs, for translations that were made elsewhere: a line for each line.

    The translations of several files are sorted by their agreement, which is their score: the mean chrF that a
    translation has if each of the others is the reference ("Minimum Bayes-Risk Decoding for Statistical Machine
    Translation", Kumar and Byrne, 2004). Two agree with each other alike: their scores are 0, and the first one is the
    best.
    """
    files, place = [stream_lines(path) for path in paths], 0

    def hypotheses(row):
        scored = [Hypothesis(text, _agreement(text, *row[:i], *row[i + 1 :])) for i, text in enumerate(row)]
        return sorted(scored, key=lambda hypothesis: -hypothesis.score)

    def translate(texts, begin):
        nonlocal place
        rows = [itertools.islice(lines, begin - place, begin - place + len(texts)) for lines in files]
        place = begin + len(texts)
        return [hypotheses(row) for row in zip(*rows, strict=True)]

    return translate


def _agreement(text, *others):
    import sacrebleu

    if len(others) < 2:  # Two texts agree with each other alike.
        return 0.0
    metric = sacrebleu.CHRF()
    return round(sum(metric.sentence_score(text, [other]).score for other in others) / len(others), 4)


def _said(line, text):
    """Hashes of what translations of different lines have in common only if they do not translate them."""
    found = [text] if size_of(text) >= LONG else []
    colon = _INTRODUCTION.match(text)
    return map(hash, [*found, colon.group()] if colon and not COLON.search(line) else found)


def _first_good(judged):
    """A list of the first one without a reason; of the first one if all have a reason. The others are not judged."""
    first = []
    for one in judged:
        if not one[0]:
            return [one]
        first = first or [one]
    return first


def _chooser(how):
    """A function of hypotheses and their reference that returns those to keep; the best one needs none."""
    one_of("select", how, SELECTIONS)
    if how in ("all", "best"):
        return lambda row, reference: row
    import sacrebleu

    metric = sacrebleu.CHRF() if how == "chrf" else sacrebleu.BLEU(effective_order=True)

    def nearest(row, reference):
        if not reference or len(row) < 2:
            return row[:1]
        # The first of equal ones: it has the best score.
        return [max(row, key=lambda hypothesis: metric.sentence_score(hypothesis.text, [reference]).score)]

    return nearest


def _whole_chunks(file):
    """The number of lines in whole chunks of a file; what follows is cut off: a kill may have broken it."""
    file.seek(0)
    lines = end = size = 0
    for count, line in enumerate(file, 1):
        size += len(line)
        if count % CHUNK_SIZE == 0 and line.endswith(b"\n"):
            lines, end = count, size
    file.truncate(end)
    return lines
