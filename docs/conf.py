"""Sphinx: `sphinx-build docs docs/_build` writes the pages; the tour is run, on the run that $RUN names."""

import inspect
import os
import re
import sys
import textwrap
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
os.environ.setdefault("RUN", str(Path(__file__).parent.parent / "runs" / "phrasebook-tiny"))
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras  # Not before the variables are set.

project = "keras_transformer"
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build", "tour.ipynb"]  # Who makes the notebook has the tour twice.
html_theme = "furo"
html_title = "keras_transformer"
html_show_copyright = False
myst_heading_anchors = 3
default_role = "literal"  # Docstrings write `name` as Keras does.
napoleon_custom_sections = [("Call arguments", "params_style")]
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "exclude-members": "call, build, compute_mask, compute_output_shape, "
                           "compute_output_spec, get_config, from_config, update_state, result"}  # fmt: skip
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_merge_streams = True


def literal_blocks(app, what, name, obj, options, lines):
    """Formulas and tables of docstrings, set off by spaces or bars before the first section, keep their lines.

    And a letter may follow a `Name`, as in `Name`s.
    """
    head, *sections = re.split(r"^(?=[A-Z][a-z ]+:$)", "\n".join(lines), maxsplit=1, flags=re.MULTILINE)
    blocks = r"(?<=\n\n)(?:(?: {4}|\|).*\n?)+"
    head = re.sub(blocks, lambda found: "::\n\n" + textwrap.indent(found[0], "    ") + "\n", head)
    text = re.sub(
        r"(`[^`\n]+`)(?=(\w?))", lambda found: found[1] + ("\\ " if found[2] else ""), "".join([head, *sections])
    )
    lines[:] = text.split("\n")


def signature_of_class(app, what, name, obj, options, signature, return_annotation):
    """That of `__init__`: Keras' classes all have a `__new__` that takes anything."""
    if what == "class" and issubclass(obj, (keras.Layer, keras.Loss, keras.Metric, keras.callbacks.Callback)):
        parameters = list(inspect.signature(obj.__init__).parameters.values())
        return str(inspect.Signature(parameters[1:])), None
    return None


def skip_fields(app, what, name, obj, skip, options):
    """Fields of named tuples: their class says what they are."""
    return skip or type(obj).__name__ == "_tuplegetter"


def setup(app):
    app.connect("autodoc-process-docstring", literal_blocks, priority=1)  # Before napoleon.
    app.connect("autodoc-process-signature", signature_of_class)
    app.connect("autodoc-skip-member", skip_fields)
