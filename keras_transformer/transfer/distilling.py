"""Training text that a teacher writes: its translations for a student, or sources for back-translation.

A teacher is one or several runs, or what others have translated: files.

A student that learns a teacher's translations instead of people's learns from more regular text ("Sequence-Level
Knowledge Distillation", Kim and Rush, 2016, section 3.2). Of several hypotheses, the one nearest to a reference can be
taken (section 3.3). Back-translation makes sources for target text ("Improving Neural Machine Translation Models with
Monolingual Data", Sennrich et al., 2016); a tag tells them from real ones ("Tagged Back-Translation", Caswell et al.,
2019).

A folder of such text has

settings.json       its text, teachers and settings
hypotheses.jsonl    one JSON list per line of the text: [text, score, problem] of each hypothesis

and for each way to choose, such as pairs-best-1a2b3c4d, a folder that has

train.source, train.target    the pairs that were chosen
real.source, real.target, val.source, ..., test.target    copies of the teacher's own text
"""

import hashlib
import itertools
import json
import logging
import math
from argparse import Namespace
from collections.abc import Iterable
from typing import Any

from keras_transformer.data.cleaning import RULES, Cleaner
from keras_transformer.data.corpora import FileLines, load_corpus, read_parallel
from keras_transformer.data.storage import report
from keras_transformer.files import sha256
from keras_transformer.text.lines import DataError, stream_lines
from keras_transformer.training.config import ConfigError, RunConfig
from keras_transformer.training.run import Run
from keras_transformer.training.sections import CLEANING, corpora
from keras_transformer.transfer.teacher_text import RULES as SELECTION_RULES
from keras_transformer.transfer.teacher_text import TeacherText, given_translations, teacher_function

logger = logging.getLogger(__name__)

# What a student has of its teacher, unless a flag says otherwise. Of a teacher that was fine-tuned, it does not have
# `LENGTH_OF_TRAINING`: it is trained from scratch.
TAKEN = (
    *("max_length", "source_language", "target_language", "tokens_per_batch", "over_long"),
    *("epochs", "steps_per_epoch", "warmup_ratio", "label_smoothing", "clip_norm", "monitor"),
    *("subword_sampling", "placeholder_share", "seed"),
    *("num_beams", "length_penalty", "length_penalty_type", "max_length_ratio", "no_repeat_ngram_size"),
)
LENGTH_OF_TRAINING = ("epochs", "steps_per_epoch", "tokens_per_batch")
# Settings that give a student a vocabulary of its own.
OWN_VOCABULARY = {"tokenizer", "vocabulary_size", "separate_vocabularies", "num_placeholders", "vocabulary_from"}


class Distillation:
    """What `python -m keras_transformer distill` does before it trains the student: texts and settings.

    Args:
        arguments: the parsed flags of that command.
        flags: those of them that are settings of a run.

    Attributes:
        run: the `Run` of the student.
        flags: settings that were given, flat.

    Raises:
        ValueError: a folder or a text does not fit; nothing was written yet.
    """

    def __init__(self, arguments: Namespace, flags: dict[str, Any]):
        self.arguments, self.run = arguments, Run(arguments.run_dir)
        self.backward = arguments.direction == "backward"
        self.teachers = [Run(folder) for folder in arguments.teachers]
        for teacher in self.teachers:
            teacher.check_trained()
            self.run.check_other_than(teacher)
            teacher.check_vocabulary_of(self.teachers[0])
        self.config, self.flags = self.teachers[0].config() if self.teachers else RunConfig(), dict(flags)
        self.more_text = self.flags.pop("train", [])  # Beside that of the teacher.
        if not 0 <= arguments.drop_worst < 1:
            raise ConfigError(f"--drop-worst must be in [0, 1). Received: {arguments.drop_worst}.")
        if not 0 <= arguments.real_weight < math.inf:
            raise ConfigError(f"--real-weight must be 0 or positive. Received: {arguments.real_weight}.")
        if "dataset" in self.flags:
            raise ConfigError(
                "The text of a student is that of its teacher, or --source. Received: --dataset, too. Leave it out."
            )
        if not self.teachers:
            self._check_given()
        files = arguments.translations or ()
        for name in ("num_hypotheses", "teacher_beams", *(["drop_worst"] if len(files) < 3 else ())):
            if files and getattr(arguments, name):
                raise ConfigError(
                    "--translations come without other hypotheses and without scores; --drop-worst needs at least "
                    f"three files, which agree or not. Received: --{name.replace('_', '-')}, too. Leave it out."
                )
        if arguments.reference and not arguments.source:
            raise ConfigError("--reference is the translation of --source. Received: --reference alone.")
        self.language = self._target_language()
        self.corpus = self._corpus()
        self.num_hypotheses = arguments.num_hypotheses or 1
        several = max(self.num_hypotheses, len(files)) > 1
        self.select = arguments.select or ("chrf" if several and self._has_references() else "best")
        if self.select in ("chrf", "bleu") and not self._has_references():
            raise ConfigError(
                f"--select {self.select} takes the translation nearest to the reference. Received: no references. "
                "Name them with --reference, or leave out --select."
            )
        self.text = TeacherText(arguments.text_dir or f"{self.run}-text", self._made_from())
        # Other students may be made of the same translations, and this one may be resumed after them.
        references = arguments.reference and sha256(arguments.reference)
        chosen_by = [self.select, arguments.drop_worst, arguments.direction, references, bool(arguments.real_weight)]
        chosen_by += [RULES, SELECTION_RULES, *self._cleaning()]
        digest = hashlib.sha256(json.dumps(chosen_by).encode()).hexdigest()[:8]
        self.text.pairs_folder = self.text.folder / f"pairs-{self.select}-{digest}"

    def _check_given(self):
        """Raises an error unless all that takes the place of a teacher's run is named and can be read."""
        arguments, flags = self.arguments, self.flags
        given = {"--source": arguments.source, "--translations": arguments.translations, "--val": flags.get("val")}
        given |= {f"--{side}-language": flags.get(f"{side}_language") for side in ("source", "target")}
        missing = [name for name, value in given.items() if not value]
        if missing:
            raise ConfigError(
                "Name the run of a teacher, before all flags; or what others have translated: --source FILE "
                "--translations FILE [FILE ...] --val SOURCE TARGET --source-language CODE --target-language CODE. "
                f"Received: no run, and no {', '.join(missing)}."
            )
        for name in ("val", "test"):
            for text in corpora(name, flags.get(name, ()), others=()):
                if text["direction"]:
                    raise ConfigError(f"--{name} has the direction of the student. Received: {text['direction']}, too.")
                read_parallel(text["source"], text["target"])

    def _target_language(self):
        """The target language of the teacher, if it has several."""
        languages = self.config.data.target_languages()
        if self.config.model.source_language_token_id is not None:  # Its direction is only the usual one.
            languages += self.teachers[0].tokenizers()[0].languages
        wanted = self.flags.get("target_language") or next(iter(languages), None)
        if languages and wanted not in languages:
            some = f"{', '.join(languages[:8])}{', ...' * (len(languages) > 8)}"
            raise ConfigError(f"--target-language must be one of {some}. Received: {wanted}.")
        if languages and self.backward:
            raise ConfigError("Back-translation needs a teacher of one direction. Received: a model of several.")
        return wanted if languages else None

    def _corpus(self):
        """The teacher's own `Corpus`, or None if it has none and none is needed."""
        if not self.teachers:
            return None
        try:
            return load_corpus(self.config.data)
        except DataError as error:
            if self.arguments.source and "val" in self.flags:
                return None
            raise DataError(
                f"The text of the teacher {self.teachers[0]} cannot be read: {error} Or name other text: --source "
                "and --val."
            ) from error

    def _has_references(self):
        return bool(self.arguments.reference or not self.arguments.source)

    def _of_corpus(self, split):
        """The pairs of the teacher's own text, (source, target) of the teacher."""
        for text in getattr(self.corpus, split):
            if text.target_language == self.language:
                yield from text

    def pairs(self) -> Iterable[tuple[str, ...]]:
        """(line to translate, its reference or "") of all lines."""
        source, reference = self.arguments.source, self.arguments.reference
        if not source:  # Also the lines with an empty side: translations made elsewhere have them, too.
            texts = [text for text in self.corpus.train if text.target_language == self.language]
            return itertools.chain.from_iterable(text.lines for text in texts)
        return FileLines(source, reference) if reference else ((line, "") for line in stream_lines(source))

    def _made_from(self):
        """What decides the translations."""
        lines, self.num_lines = hashlib.sha256(), 0
        for line, _ in self.pairs():
            lines.update(f"{line}\n".encode())
            self.num_lines += 1
        made_from = {"text": lines.hexdigest(), "num_hypotheses": self.num_hypotheses}
        for path in self.arguments.translations or ():
            count = sum(1 for _ in stream_lines(path))
            if count != self.num_lines:
                raise ConfigError(
                    f"--translations must have a line for each line of the text, which has {self.num_lines:,}. "
                    f"Received: {path} with {count:,}. Is it complete, and of this text?"
                )
        if paths := self.arguments.translations:
            return {**made_from, "translations": ",".join(map(sha256, paths))}
        search = {name: str(value) for name, value in vars(self._search()).items()}
        teachers = [sha256(teacher.model_file) for teacher in self.teachers]
        return {**made_from, "teachers": teachers, "search": search, "target_language": self.language}

    def _search(self):
        """The `SearchSettings` of the teacher."""
        settings = self.config.search
        beams = self.arguments.teacher_beams or settings.num_beams
        shortlist = settings.shortlist if len(self.teachers) == 1 else 0  # An ensemble has none.
        return settings.replace(num_beams=max(beams, self.num_hypotheses), sampling=False, shortlist=shortlist)

    def settings(self) -> dict[str, Any]:
        """The settings of the student, flat: its text, and of its teacher's settings those of `TAKEN`."""
        flat, flags, ending = self.config.flat(), self.flags, []
        taken = TAKEN if not flat["init_from"] else [name for name in TAKEN if name not in LENGTH_OF_TRAINING]
        settings = {name: flat[name] for name in taken} if self.teachers else {}
        if self.language:
            settings["target_language"] = self.language
        if self.backward and self.teachers:
            settings["source_language"], settings["target_language"] = flat["target_language"], flat["source_language"]
        if not self.teachers:
            pass  # What flags and defaults say.
        elif OWN_VOCABULARY & flags.keys() or (self.backward and len(self.teachers[0].tokenizers()) > 1):
            settings |= {name: flat[name] for name in ("tokenizer", "separate_vocabularies")}
        else:
            settings["vocabulary_from"] = str(self.teachers[0])
            settings["tie_embeddings"] = flat["tie_embeddings"]
            if self.language:
                usual = f"{flat['source_language']}-{self.language}"
                directions = [*self.config.data.all_directions(), usual]
                direction = next(name for name in directions if name.split("-")[1] == self.language)
                ending = [f"direction={direction}"]
                for text in itertools.chain(self.more_text, flags.get("val", ()), flags.get("test", ())):
                    if not any(word.startswith("direction=") for word in text):
                        text += ending

        def corpus(split, name, *weight):
            return [*self.text.paths(split), f"name={name}", *weight, *ending]

        texts = {"train": [corpus("train", "teacher")]}
        if self._real_pairs() is not None:
            texts["train"].append(corpus("real", "real", f"weight={self.arguments.real_weight}"))
        for split in ("val", "test"):
            if self.corpus and split not in flags:
                texts[split] = [corpus(split, split)]
        texts["train"] += self.more_text
        data = self.config.data
        if self.teachers and (data.variant == "lc.norm.tok" or (data.bleu_tokenize and not self.backward)):
            settings["bleu_tokenize"] = data.sacrebleu_tokenizer()
        return settings | texts

    def _real_pairs(self):
        """The pairs of people's translations that are mixed in, (source, target) of the teacher; None for none."""
        if not self.arguments.real_weight:
            return None
        if self.arguments.reference:
            return self.pairs()
        return self._of_corpus("train") if self.corpus else None

    def _cleaning(self):
        """The languages of the student, and the limits of lines: arguments of `Cleaner`."""
        data, texts = self.config.data, self.corpus.train if self.corpus else []
        directions = [text.direction for text in texts if text.direction and text.target_language == self.language]
        languages = directions[0].split("-") if directions else [data.source_language, data.target_language]
        if self.backward and self.teachers:
            languages.reverse()
        usual = [*languages, data.max_characters, data.max_character_ratio, data.identify_languages]
        return [self.flags.get(name, value) for name, value in zip(CLEANING, usual, strict=True)]

    def _translate(self):
        """The function that `TeacherText.write` needs."""
        if self.arguments.translations:
            return given_translations(*self.arguments.translations)
        from keras_transformer.translation.translator import Translator

        translator = Translator.load([teacher.folder for teacher in self.teachers], **vars(self._search()))
        return teacher_function(translator, self.num_hypotheses, self.num_lines, self.language)

    def write_text(self) -> list[str]:
        """Translates, selects, and writes all texts. Returns lines of text about it."""
        if self.text.is_translated():
            logger.info(f"{self.text.folder}: all {self.num_lines:,} lines are translated already")
        else:
            logger.info(f"{self.text.folder}: {self.num_lines:,} lines to translate")
            self.text.write(self._translate(), (line for line, _ in self.pairs()))
        how = self.select, self.arguments.drop_worst
        count, left_out = self.text.select(self.pairs, *how, Cleaner(*self._cleaning()), self.backward)
        if not count:
            raise DataError(
                f"No translation is left: all of {self.num_lines:,} lines were left out. " + "\n".join(report(left_out))
            )
        for name, split in (("real", "train"), ("val", "validation"), ("test", "test")):
            pairs = self._real_pairs() if name == "real" else self._of_corpus(split) if self.corpus else None
            if pairs is not None:
                self.text.copy(name, (pair[::-1] for pair in pairs) if self.backward else pairs)
        return [f"{self.text.folder}: {count:,} pairs of the teacher", *report(left_out)]
