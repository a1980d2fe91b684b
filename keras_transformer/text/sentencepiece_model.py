"""The file of a SentencePiece model as a protocol buffer: the fields that this package reads and writes."""

from typing import Any

# Types of pieces, and kinds of models.
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
UNIGRAM, BPE = 1, 2


def message_class() -> Any:
    """The class of SentencePiece's `ModelProto`, with the fields that we need; it keeps the others.

    sentencepiece's own class needs a newer protobuf than Apache Beam allows. Field numbers and types are those of
    sentencepiece_model.proto; a string is read as bytes, and an enumeration as an integer, which are the same there.
    """
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    kinds = {"int": 5, "bool": 8, "float": 2, "bytes": 12, "message": 11}
    package = "keras_transformer.sentencepiece"
    pool = descriptor_pool.Default()
    try:
        return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.ModelProto"))
    except KeyError:
        file = descriptor_pb2.FileDescriptorProto(name="keras_transformer/sentencepiece.proto", package=package)
    special = ("unk", "bos", "eos", "pad")
    messages = {
        "Piece": [("piece", 1, "bytes"), ("score", 2, "float"), ("type", 3, "int")],
        "TrainerSpec": [
            ("model_type", 3, "int"),
            ("vocab_size", 4, "int"),
            ("treat_whitespace_as_suffix", 24, "bool"),
            ("byte_fallback", 35, "bool"),
            *((f"{name}_id", 40 + i, "int") for i, name in enumerate(special)),
            *((f"{name}_piece", 45 + i, "bytes") for i, name in enumerate(special)),
            ("unk_surface", 44, "bytes"),
        ],
        "NormalizerSpec": [
            ("precompiled_charsmap", 2, "bytes"),
            ("add_dummy_prefix", 3, "bool"),
            ("remove_extra_whitespaces", 4, "bool"),
            ("escape_whitespaces", 5, "bool"),
        ],
        "ModelProto": [
            ("pieces", 1, "message", "Piece", True),
            ("trainer_spec", 2, "message", "TrainerSpec", False),
            ("normalizer_spec", 3, "message", "NormalizerSpec", False),
            ("denormalizer_spec", 5, "message", "NormalizerSpec", False),
        ],
    }
    true = ("add_dummy_prefix", "remove_extra_whitespaces", "escape_whitespaces")
    defaults = {"model_type": str(UNIGRAM), "type": str(NORMAL), "unk_surface": " ⁇ ", **dict.fromkeys(true, "true")}
    for message, fields in messages.items():
        described = file.message_type.add(name=message)
        for name, number, kind, *of in fields:
            field = described.field.add(name=name, number=number, type=kinds[kind])
            field.label = 3 if of and of[1] else 1
            if of:
                field.type_name = f".{package}.{of[0]}"
            if name in defaults:
                field.default_value = defaults[name]
    pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.ModelProto"))
