"""A Transformer for sequence-to-sequence work in Keras 3, from raw parallel text to a deployed translator.

The public names below are loaded when they are first used. So `import keras_transformer` is fast, and each part imports
its own dependencies only. Our classes are registered with Keras as soon as both packages are imported, in either order:
`keras.saving.load_model` then finds them.
"""

import difflib
import importlib

from keras_transformer import _registration

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
    "Perplexity": "training.metrics",
    "TokenAccuracy": "training.metrics",
    "find_mistakes": "models.mistakes",
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


_registration.begin()
