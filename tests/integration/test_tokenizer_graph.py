"""The tokenizer in TFLite files gives SentencePiece's ids and texts, with built-in operations alone."""

import functools
import itertools
from random import Random

import numpy as np
import pytest
import sentencepiece
import tensorflow as tf
from ai_edge_litert.interpreter import Interpreter
from sentencepiece_models import KINDS, imported_tokenizer, texts, trained, trained_with
from tensorflow.lite.tools import flatbuffer_utils

from keras_transformer.export.tokenizer_graph import GraphTokenizer, utf8_lengths
from keras_transformer.text.sentencepiece_model import message_class
from keras_transformer.transfer.importing.report import HOSTILE

BYTES, TOKENS, MOST = 400, 200, 40


def converted(function, *specs):
    """The TFLite file of a function, and a runner for it."""
    module = tf.Module()
    module.call = tf.function(function, input_signature=specs, autograph=False)
    converter = tf.lite.TFLiteConverter.from_concrete_functions([module.call.get_concrete_function()], module)
    # As for int8 files, in which tables of more than 1,024 floats are rounded.
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    file = converter.convert()  # Refuses what is not built in.
    return file, Interpreter(model_content=file).get_signature_runner()


class OnDevice:
    """A model's library, and its operations in LiteRT."""

    def __init__(self, model):
        self.library = sentencepiece.SentencePieceProcessor(model_proto=model)
        graph = GraphTokenizer(model)

        def encode(text):
            ids, ends, length, is_cut = graph.encode(tf.cast(text, tf.int32), TOKENS)
            return {"ids": ids, "ends": ends, "length": length, "is_cut": is_cut}

        self.file, self.run = converted(encode, tf.TensorSpec([BYTES], tf.uint8, name="text"))
        _, self.back = converted(
            lambda ids: dict(zip(("text", "ends"), graph.decode(ids), strict=True)),
            tf.TensorSpec([2, MOST], tf.int32, name="ids"),
        )

    def encode(self, text, name="ids"):
        room = np.zeros(BYTES, np.uint8)
        room[: len(text)] = np.frombuffer(text, np.uint8)
        found = self.run(text=room)
        assert not found["is_cut"] or text[BYTES - 1 :] or len(text) > BYTES // 9
        return found[name][: found["length"]].tolist()

    def decode(self, *rows):
        ids = np.full((2, MOST), self.padding, np.int32)
        for i, row in enumerate(rows):
            ids[i, : len(row)] = row
        return [bytes(text).rstrip(b"\0").decode() for text in self.back(ids=ids)["text"].astype(np.uint8)]

    @property
    def padding(self):
        return next(i for i in range(self.library.vocab_size()) if self.library.is_control(i))


@functools.cache
def on_device(name):
    """The device's tokenizer of a kind in `KINDS`, with pieces that the user defined."""
    kind, byte_fallback = name.split(",")[0], "bytes" in name
    own = ("⟦0⟧", "⟦1⟧", "ab")
    return OnDevice(trained(None, kind, 900, byte_fallback=byte_fallback, user_defined_symbols=",".join(own)))


def random_strings(count, seed=0):
    """Texts of all planes, of few letters again and again, of parts that are composed, of spaces and of own pieces."""
    random = Random(seed)
    planes = [(0x20, 0x7F), (0x80, 0x800), (0x800, 0xD800), (0xE000, 0x10000), (0x10000, 0x110000), (0x300, 0x370)]
    parts = [
        "a",
        "e\u0301",
        " ",
        "  ",
        "▁",
        "\t",
        "ab",
        "⟦0⟧",
        "⟦",
        "the",
        "한",
        "\u1112\u1161",
        "½",
        "ﬁ",
        "\u200b",
        "aaa",
        ".",
    ]

    def characters():
        low, high = random.choice(planes)
        return "".join(chr(random.randrange(low, high)) for _ in range(random.randrange(4)))

    for i in range(count):
        few = random.sample(parts, 3)
        draw = (characters, lambda: random.choice(parts), lambda few=few: random.choice(few))[i % 3]
        yield "".join(draw() for _ in range(random.randrange(30)))


@pytest.mark.parametrize("name", KINDS)
def test_ids_are_those_of_the_library(name):
    device = on_device(name)
    strings = [*HOSTILE, *texts(0)[:100], *texts(1)[:100], *random_strings(300), "", " ", "▁", "a" * BYTES, "\0a\0b"]
    for string in strings:
        text = string.encode()[: BYTES - 1].decode(errors="ignore").rstrip("\0")
        assert device.encode(text.encode()) == device.library.encode(text)[:TOKENS], text


@pytest.mark.parametrize("name", KINDS)
def test_tokens_end_where_the_library_says(name):
    device = on_device(name)
    for string in [*HOSTILE, *texts(0)[:50], *texts(1)[:50], *random_strings(300), "", " a  b ", "ﬁ½ ﬁ", "😀"]:
        text = string.encode()[: BYTES - 1].decode(errors="ignore").rstrip("\0")
        wanted = [piece.end for piece in device.library.encode(text, return_type="proto").pieces][:TOKENS]
        assert device.encode(text.encode(), "ends") == wanted, text


@pytest.mark.parametrize("name", KINDS)
def test_bytes_that_are_no_text_have_the_ids_of_the_library(name):
    """The library reads each byte that belongs to no character as U+FFFD."""
    device, random = on_device(name), Random(1)
    rows = [
        b"\xff",
        b"a\xc3",
        b"\xed\xa0\x80",
        b"\xf4\x90\x80\x80",
        b"\xc0\x80",
        b"\xe2\x96",
    ]
    rows += [random.randbytes(random.randrange(1, 40)).rstrip(b"\0") for _ in range(200)]
    for row in rows:
        assert device.encode(row) == device.library.encode(row)[:TOKENS], row


@pytest.mark.parametrize("name", KINDS)
def test_a_text_that_fills_the_room_is_cut_before_a_character(name):
    device, longer = on_device(name), "xyz " * 99 + "\U0001f600\U0001f600"
    for extra in range(4):
        room = ("a" * extra + longer).encode()[:BYTES]
        found = device.run(text=np.frombuffer(room, np.uint8))
        wanted = device.library.encode(room.decode(errors="ignore"))
        size = len(wanted) - 6  # A space comes before the text.
        assert found["is_cut"] and size <= found["length"] <= len(wanted)
        assert found["ids"][:size].tolist() == wanted[: min(size, TOKENS)]
    for text in ("a" + " " * (BYTES - 1), "ﷺ " * 50, "😀" * (BYTES // 4), "ﷺ" * (BYTES // 3)):
        found = device.run(text=np.frombuffer(text.encode().ljust(BYTES, b"\0"), np.uint8))
        wanted, size = device.library.encode(text), int(found["length"])
        assert found["is_cut"] and 0 < size <= len(wanted)
        assert found["ids"][: size - 1].tolist() == wanted[: size - 1][:TOKENS]
        assert not found["ids"][size:].any()


HAN = ["学校", "学生", "校长", "你好", "世界", "学", "校", "你", "好", "世"] * 50

MODELS = {
    "own pieces of large characters": lambda: trained_with(HAN, size=40, user_defined_symbols="学校"),
    "bytes without a space": lambda: trained_with(HAN, size=330, byte_fallback=True, add_dummy_prefix=False),
    "bytes without a space, BPE": lambda: trained_with(HAN, "bpe", 330, byte_fallback=True, add_dummy_prefix=False),
    "no normalization": lambda: trained_with(texts(0)[:500], size=300, normalization_rule_name="identity"),
    "other unknown surface": lambda: trained_with(texts(0)[:500], size=300, unk_surface="?", add_dummy_prefix=False),
    "unused pieces in BPE": lambda: imported_tokenizer("bpe").model,
    "unused pieces in BPE, bytes": lambda: imported_tokenizer("bpe", byte_fallback=True).model,
}


@pytest.mark.parametrize("name", MODELS)
def test_other_models_have_the_ids_and_texts_of_the_library(name):
    device = OnDevice(MODELS[name]())
    strings = ["".join(HAN[i : i + 5]) for i in range(10)] + ["学校 你好", "▁ 学", *texts(0)[:60], *texts(1)[:60]]
    for text in [*strings, *random_strings(100)]:
        text = text.encode()[: BYTES - 1].decode(errors="ignore").rstrip("\0")
        assert device.encode(text.encode()) == device.library.encode(text)[:TOKENS], text
    rows = [device.library.encode(text)[:MOST] for text in strings]
    for pair in itertools.pairwise(rows):
        assert device.decode(*pair) == [device.library.decode(row) for row in pair]


@pytest.mark.parametrize("name", KINDS)
def test_texts_of_ids_are_those_of_the_library(name):
    device, random = on_device(name), Random(2)
    size = device.library.vocab_size()
    spaces = [i for i in range(size) if set(device.library.id_to_piece(i)) == {"▁"}]
    special = [*spaces, device.library.unk_id(), device.padding, *(range(3, 259) if "bytes" in name else [])]
    rows = [[i] for i in range(size)] + [[*spaces, *spaces, size - 1], [], [0] * MOST]
    for i in range(300):
        ids = special if i % 2 else range(size)
        rows.append([random.choice(ids) for _ in range(random.randrange(MOST))])
    if "bytes" in name:
        rows += [[3 + byte for byte in "Aé한😀".encode()], [3 + byte for byte in "한".encode()[:2] + b"a\xff"]]
    for pair in itertools.pairwise(rows):
        assert device.decode(*pair) == [device.library.decode(row).rstrip("\0") for row in pair], pair


@pytest.mark.parametrize("name", KINDS)
def test_tokens_end_in_texts_of_ids_where_the_library_says(name):
    """But the bytes of a character end one after the other; in the library, all but the last one end before it."""
    device = on_device(name)
    for text in [*HOSTILE, *texts(0)[:20], *random_strings(50, seed=4)]:
        ids = device.library.encode(text)[: MOST - 1]
        padded = np.full((2, MOST), device.padding, np.int32)
        padded[0, 1 : len(ids) + 1] = ids  # After a special token.
        found = device.back(ids=padded)["ends"][0, 1 : len(ids) + 1].tolist()
        wanted = device.library.decode(ids, return_type="proto")
        ends = [piece.end for piece in wanted.pieces]
        assert [len(wanted.text.encode()[:end].decode(errors="ignore").encode()) for end in found] == ends, text


def test_the_file_has_built_in_operations_alone():
    model = flatbuffer_utils.convert_bytearray_to_object(on_device("bpe, bytes").file)
    assert not any(code.customCode for code in model.operatorCodes)


def test_characters_are_as_long_as_python_reads_them():
    def length(text):
        """Of the character that the bytes begin with, or 0."""
        for size in range(1, 5):
            try:
                return len(text[:size].decode().encode())
            except UnicodeDecodeError:
                continue
        return 0

    random = Random(3)
    for row in ["aé한😀\ud7ff\ue000\U0010ffff".encode(), *(random.randbytes(50) for _ in range(50))]:
        found = utf8_lengths(tf.constant(list(row), tf.int32)).numpy()
        assert found.tolist() == [length(row[i:]) for i in range(len(row))]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda model: setattr(model.normalizer_spec, "escape_whitespaces", False), "spaces that are not written as ▁"),
        (lambda model: setattr(model.normalizer_spec, "remove_extra_whitespaces", False), "spaces that are kept"),
        (lambda model: setattr(model.trainer_spec, "treat_whitespace_as_suffix", True), "spaces at the end of pieces"),
        (lambda model: setattr(model.denormalizer_spec, "precompiled_charsmap", b"a"), "a denormalizer"),
        (lambda model: setattr(model.trainer_spec, "model_type", 4), "a kind other than unigram and BPE"),
        (lambda model: setattr(model.pieces[9], "piece", b"a b"), r"pieces with a space \(U\+0020\)"),
        (lambda model: setattr(model.pieces[9], "piece", b"a" * 256), "a text of more than 255 bytes: 'aaa"),
        (lambda model: setattr(model.pieces[0], "type", 1), "no unknown piece"),
    ],
)
def test_what_cannot_be_expressed_is_an_error(change, message):
    model = message_class().FromString(trained(None, "bpe", 900))
    change(model)
    with pytest.raises(ValueError, match=rf"cannot be written as operations of TFLite .*: it has {message}"):
        GraphTokenizer(model.SerializeToString())
