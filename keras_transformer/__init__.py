"""A Transformer for sequence-to-sequence work in Keras 3, from raw parallel text to a deployed translator.

The public names below are loaded when they are first used, so that `import keras_transformer` is cheap and each part
brings its own dependencies only.
"""

import importlib

__version__ = "0.1.0"

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


def __getattr__(name):
    if name in _HOME:
        return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return __all__
