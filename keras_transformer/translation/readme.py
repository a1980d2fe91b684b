"""The README of a run or an export: what the model is, its data, scores, signatures, limits and licence.

It begins with the facts that the Hugging Face hub reads ("Model Cards for Model Reporting", Mitchell et al., 2019).
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import keras_transformer
from keras_transformer.files import save_readme
from keras_transformer.training.run import Run

_OF_RUN = """\
    from keras_transformer import Translator

    translator = Translator.load("hf://OWNER/NAME")  # Or the path of this folder.
    translator.translate(["One sentence.", "Another one."])
    translator.translate_text("A whole text. It is split into sentences.")
"""


def write_readme(
    folder: Path,
    run: Run | None,
    num_weights: int,
    max_length: int,
    use: str = _OF_RUN,
    functions: Mapping[str, Any] | None = None,
) -> None:
    """Writes README.md into a folder. One that somebody changed stays.

    Args:
        folder: the folder, which exists.
        run: the `keras_transformer.training.run.Run` of the model; without one, data and scores are not known.
        num_weights: of the model.
        max_length: the largest number of tokens of a source.
        use: Markdown that shows how the folder is used. Defaults to `Translator.load`.
        functions: the `tf.function`s of the signatures, by name. Defaults to none.
    """
    save_readme(folder, _text(run, num_weights, max_length, use, functions or {}))


def _text(run, num_weights, max_length, use, functions):
    config, scores, made_from = run and run.config(), {}, []
    if run:
        scores, made_from = run.scores(), run.made_from()
    licenses = {part["license"] for part in made_from} or {None}
    licenses = [] if None in licenses else sorted(licenses)
    languages = _languages(config)
    facts = {"language": languages, "license": licenses[0] if len(licenses) == 1 else licenses, "library_name": "keras"}
    facts |= {"pipeline_tag": "translation", "tags": ["keras_transformer"]}
    data = [f"- {part['name']} ({part['license'] or 'licence not known'})" for part in made_from]
    limits = [
        f"- A sentence may have {max_length} tokens; the rest of a longer one is not read.",
        "- It works best on text like its training data. It may leave out, add or change something: check names, "
        "numbers and negations.",
    ]
    license = (
        f"{' and '.join(licenses)}, like its data."
        if licenses
        else "Not known. State here what its training data permit."
    )
    is_one_way = len(languages) == 2 and len(config.data.all_directions()) < 2
    of_languages = f" {'from' if is_one_way else 'between'} {(' to ' if is_one_way else ', ').join(languages)}"
    of_languages = of_languages if languages else ""
    parts = {
        "Data": "\n".join(data) or "Not known.",
        "Scores": _scores(scores),
        "Signatures": _signatures(functions),
        "Limits": "\n".join(limits),
        "Licence": license,
    }
    return "\n\n".join(
        [
            "\n".join(["---", *(f"{key}: {json.dumps(value)}" for key, value in facts.items() if value), "---"]),
            f"# {run.name if run else 'A translator'}",
            f"A Transformer of {num_weights:,} weights that translates{of_languages}, made with "
            f"keras_transformer {keras_transformer.__version__}.",
            use.rstrip(),
            *(f"## {title}\n\n{part}" for title, part in parts.items() if part),
            "",
        ]
    )


def _languages(config):
    """The codes of the languages that are known for sure, without regions and scripts, which the hub does not know."""
    if not config:
        return []
    data = config.data
    codes = [code for direction in data.all_directions() for code in direction.split("-")]
    if not codes and data.dataset != "none" and not data.train:
        codes = [data.source_language, data.target_language]
    return list(dict.fromkeys(re.split("[-_]", code)[0].lower() for code in codes))


def _scores(scores):
    """The scores of the test sets after training, as Markdown; empty without scores."""
    after = scores.get("after_training", {})
    rows = [
        [
            name,
            *(f"{row[metric]:.1f} ± {row[f'{metric}_interval']:.1f}" for metric in ("bleu", "chrf")),
            "`{}`".format(row["bleu_signature"].replace("|", r"\|")),
        ]
        for name, row in after.get("texts", {"test": after}).items()
        if "bleu_interval" in row
    ]
    if not rows:
        return ""
    table = _table([["", "BLEU", "chrF", "signature of BLEU"], *rows])
    return f"Of the run, before any conversion, with 95 % confidence intervals by sacreBLEU:\n\n{table}"


def _signatures(functions):
    """What each signature takes and returns, as Markdown. None is a size that is free."""

    def listed(tensors):
        return ", ".join(f"`{name}` {tensor.dtype.name} {tuple(tensor.shape)}" for name, tensor in tensors.items())

    def inputs(graph):
        return {spec.name: spec for spec in graph.structured_input_signature[0] if spec is not None}

    graphs = {name: function.get_concrete_function() for name, function in functions.items()}
    rows = [[f"`{name}`", listed(inputs(graph)), listed(graph.structured_outputs)] for name, graph in graphs.items()]
    return _table([["", "takes", "returns"], *rows]) if rows else ""


def _table(rows):
    """A table of Markdown; the first row has the titles."""
    return "\n".join("| " + " | ".join(row) + " |" for row in [rows[0], ["---"] * len(rows[0]), *rows[1:]])
