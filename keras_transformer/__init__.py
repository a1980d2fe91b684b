"""A Transformer for sequence-to-sequence work in Keras 3, from raw parallel text to a deployed translator.

The public names below are loaded when they are first used, so that `import keras_transformer` is cheap and each part
brings its own dependencies only. Where Keras is imported, before or after, our classes are registered with it, so that
`keras.saving.load_model` finds them.
"""

import copy
import difflib
import importlib
import importlib.abc
import importlib.util
import sys

__version__ = "0.2.0"

_HOME = {
    "positional_encoding": "embeddings",
    "positional_rotation": "embeddings",
    "PositionalEmbedding": "embeddings",
    "MultiHeadAttention": "attention",
    "FeedForward": "blocks",
    "EncoderBlock": "blocks",
    "DecoderBlock": "blocks",
    "Transformer": "model",
    "LabelSmoothedCrossEntropy": "training",
    "InverseSquareRootSchedule": "training",
    "Perplexity": "training",
    "TokenAccuracy": "training",
    "distribute": "distribution",
    "DistributedFit": "distribution",
    "Tokenizer": "tokenizers",
    "Translator": "translator",
}
__all__ = sorted(_HOME)

# What people look for under the names of other libraries.
_ELSEWHERE = {
    "TransformerEncoder": "EncoderBlock",
    "TransformerEncoderBlock": "EncoderBlock",
    "TransformerEncoderLayer": "EncoderBlock",
    "EncoderLayer": "EncoderBlock",
    "TransformerDecoder": "DecoderBlock",
    "TransformerDecoderBlock": "DecoderBlock",
    "TransformerDecoderLayer": "DecoderBlock",
    "DecoderLayer": "DecoderBlock",
    "TokenAndPositionEmbedding": "PositionalEmbedding",
    "SinePositionEncoding": "PositionalEmbedding",
}


def __getattr__(name):
    if name in _HOME:
        return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    near = [_ELSEWHERE[name]] if name in _ELSEWHERE else difflib.get_close_matches(name, __all__, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}.{hint}")


def __dir__():
    return __all__


# Keras loads a saved model only if the classes in it are registered, which importing their modules does. These modules
# import Keras, and Keras its backend: seconds, which `--help` or a serving client must not wait for. So they are
# imported when Keras is there anyway: now, or right after something else has imported it.


def _register():
    for module in ("model", "training"):  # They import every module with a registered class.
        importlib.import_module(f"{__name__}.{module}")


class _RegisterAfterKeras(importlib.abc.MetaPathFinder):
    """Calls `_register` when an import has brought Keras: the import of Keras itself, or of one of our modules.

    The outermost import is what it waits for: our modules cannot import each other while one of them is halfway.
    """

    busy = False

    def find_spec(self, name, path=None, target=None):
        if self.busy or not (name == "keras" or name.startswith(f"{__name__}.")):
            return None
        self.busy = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self.busy = False
        if spec is None or spec.loader is None:
            return spec
        loader, spec.loader = spec.loader, copy.copy(spec.loader)

        def exec_module(module):
            self.busy = True
            try:
                loader.exec_module(module)
            finally:
                self.busy = False
            if "keras" in sys.modules and self in sys.meta_path:
                sys.meta_path.remove(self)
                _register()

        spec.loader.exec_module = exec_module
        return spec


if "keras" in sys.modules:
    _register()
else:
    sys.meta_path.insert(0, _RegisterAfterKeras())
