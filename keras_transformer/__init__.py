"""A Transformer for sequence-to-sequence work in Keras 3, from raw parallel text to a deployed translator.

The public names below are loaded when they are first used. So `import keras_transformer` is fast, and each part imports
its own dependencies only. Our classes are registered with Keras as soon as both packages are imported, in either order:
`keras.saving.load_model` then finds them.
"""

import copy
import difflib
import importlib
import importlib.abc
import importlib.util
import sys

__version__ = "0.2.0"

_HOME = {
    "positional_encoding": "layers.embeddings",
    "positional_rotation": "layers.embeddings",
    "PositionalEmbedding": "layers.embeddings",
    "MultiHeadAttention": "layers.attention",
    "FeedForward": "layers.feed_forward",
    "EncoderBlock": "layers.encoder_block",
    "DecoderBlock": "layers.decoder_block",
    "Transformer": "models.transformer",
    "Ensemble": "models.ensemble",
    "LabelSmoothedCrossEntropy": "training.losses",
    "InverseSquareRootSchedule": "training.schedules",
    "Perplexity": "training.losses",
    "TokenAccuracy": "training.losses",
    "distribute": "training.distribution",
    "DistributedFit": "models.distributed_fit",
    "Glossary": "text.glossary",
    "Tokenizer": "text.tokenizer",
    "Translator": "translation.translator",
}
__all__ = sorted(_HOME)

# Names in other libraries, and our name for the same thing.
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


# Keras loads a saved model only if the classes in it are registered, which happens when their modules are imported.
# These modules import Keras, and Keras imports its backend. That takes seconds, and `--help` or a serving client must
# not wait for it. So we import these modules only when Keras is imported anyway: now, if it already is, else after its
# import.


def _register():
    # They import every module with a registered class.
    for module in ("models.transformer", "training.losses", "training.schedules"):
        importlib.import_module(f"{__name__}.{module}")


class _RegisterAfterKeras(importlib.abc.MetaPathFinder):
    """Calls `_register` after the first import that loads Keras: that of Keras itself, or of one of our modules.

    It waits for the outermost import to end: our modules cannot import each other while one of them is half imported.
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
