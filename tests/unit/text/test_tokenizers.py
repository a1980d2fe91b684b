"""Tokenizers: the same ids in Python and in the graph, four special ids that no text has, exact files."""

import functools
import re

import numpy as np
import pytest
import sentencepiece
from trainings import phrases

from keras_transformer.settings import TOKENIZER_KINDS
from keras_transformer.text import sentencepiece_tokenizer
from keras_transformer.text.sentencepiece_tokenizer import SentencePieceTokenizer
from keras_transformer.text.special_ids import (
    END_TOKEN_ID,
    PAD_TOKEN_ID,
    START_TOKEN_ID,
    UNKNOWN_TOKEN_ID,
    shifted_right,
)
from keras_transformer.text.tokenizer import Tokenizer, TokenizerError
from keras_transformer.text.wordpiece_tokenizer import WordPieceTokenizer

SENTENCEPIECE = ("unigram", "bpe")
SMALL = ["a small dog", "a small cat", "a big dog"] * 9

IN_VOCABULARY = [
    "Das Haus ist nicht klein.",
    "Wo ist mein Hund?",
    "The woman is not a doctor.",
    "Seine Söhne müssen im Juni eine Tür zumachen.",
]
HOSTILE = {
    "NFC": "Grüße aus München, schöne Äpfel, Öl und Straße",
    "NFD": "Gru\u0308ße aus Mu\u0308nchen, scho\u0308ne A\u0308pfel",
    "stacked accents": "a\u0301\u0301\u0301\u0301 e\u0323\u0302",
    "emoji": "🙂 hello 👍🏽",
    "ZWJ emoji": "a 👨‍👩‍👧‍👦 family 🏳️‍🌈",
    "CJK": "日本語のテキスト 中文 한국어",
    "RTL": "שלום עולם مرحبا\u200f",
    "control characters": "a\x01b\x07c\x1b d\x7f",
    "NUL": "a\0b",
    "NUL alone": "\0",
    "tabs and newlines": "\tone\ttwo\n three\r\n",
    "NBSP": "a\u00a0b\u2003c\u3000d",
    "zero width": "\ufeffa\u200bb\u00adc",
    "line separators": "a\u2028b\x85c",
    "SentencePiece's space": "▁",
    "SentencePiece's spaces": "▁the▁house ▁",
    "SentencePiece's symbols": "<s> house </s> <pad> <unk>",
    "WordPiece's symbols": "[START] house [END][PAD] [UNK]",
    "WordPiece's prefix": "##e ##",
    "unknown mark": "⁇ a⁇b",
    "compatibility forms": "ﬁn ½ ① \uff21\uff42\uff43 ™",
    "numbers and signs": "12,345.67 % - 10\u201320 €5 'so' „so“ (a) [b] {c}",
    "empty": "",
    "blank": " ",
    "blanks": " \t \u00a0 ",
    "one letter": "a",
    "500 letters of one word": "haus" * 125,
    "500 unknown letters": "語" * 500,
    "many words": "the house is not small " * 60,
    "noncharacters": "\ud7ff \ufffe \uffff \U0010ffff \ufffd",
}


@pytest.fixture(scope="module")
def texts():
    """Sentences of both languages."""
    return [text for pair in phrases()[:1500] for text in pair] + IN_VOCABULARY


@pytest.fixture(scope="module")
def trained(texts):
    """A tokenizer of each kind. WordPiece gets little text, because its learner is slow."""
    return {
        "unigram": Tokenizer.train(texts, 500),
        "bpe": Tokenizer.train(texts, 500, "bpe"),
        "wordpiece": Tokenizer.train(texts[:60] + IN_VOCABULARY, 200, "wordpiece"),
    }


@pytest.fixture(params=TOKENIZER_KINDS)
def tokenizer(request, trained):
    """A trained tokenizer as a new object, without any graph objects yet."""
    return fresh(trained[request.param])


def fresh(tokenizer):
    return type(tokenizer)(tokenizer.model if tokenizer.kind in SENTENCEPIECE else tokenizer.vocabulary)


def in_graph(tokenizer, texts):
    """Ids by `graph_tokenize` inside a `tf.function`."""
    import tensorflow as tf

    function = tf.function(tokenizer.graph_tokenize, input_signature=[tf.TensorSpec([None], tf.string)])
    return function(tf.constant(texts, tf.string)).to_list()


def from_graph(tokenizer, rows):
    """Texts by `graph_detokenize` inside a `tf.function`, from rows padded to one length."""
    import tensorflow as tf

    length = max(map(len, rows))
    padded = tf.constant([row + [PAD_TOKEN_ID] * (length - len(row)) for row in rows], tf.int32)
    function = tf.function(tokenizer.graph_detokenize, input_signature=[tf.TensorSpec([None, None], tf.int32)])
    return [text.decode() for text in function(padded).numpy()]


# One id sequence everywhere.


def test_python_and_graph_give_the_same_ids(tokenizer):
    texts = [*IN_VOCABULARY, *HOSTILE.values()]
    in_python = tokenizer.tokenize(texts)
    assert dict(zip(texts, in_graph(tokenizer, texts), strict=True)) == dict(zip(texts, in_python, strict=True))


def test_a_text_has_the_same_ids_alone_and_among_others(tokenizer):
    texts = list(HOSTILE.values())
    assert [tokenizer.tokenize([text])[0] for text in texts] == tokenizer.tokenize(texts)


def test_the_graph_gives_ragged_int32(tokenizer):
    import tensorflow as tf

    ids = tokenizer.graph_tokenize(tf.constant(IN_VOCABULARY))
    assert isinstance(ids, tf.RaggedTensor)
    assert ids.dtype == tf.int32
    assert ids.shape.as_list() == [len(IN_VOCABULARY), None]


@pytest.mark.parametrize(
    ("before", "after"),
    [([], []), ([], [END_TOKEN_ID]), ([START_TOKEN_ID], [END_TOKEN_ID])],
    ids=["padded", "end", "start and end"],
)
def test_python_and_graph_give_the_same_texts(tokenizer, before, after):
    """Special ids are left out at every position."""
    ids = tokenizer.tokenize([*IN_VOCABULARY, *HOSTILE.values()])
    rows = [[*before, *row, *after] for row in ids]
    assert tokenizer.detokenize(rows) == tokenizer.detokenize(ids)
    assert from_graph(tokenizer, rows) == tokenizer.detokenize(ids)


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_python_and_graph_give_the_same_texts_for_unusual_ids(trained, kind):
    """A model may write several spaces or the unknown token first, where the two implementations differ."""
    tokenizer = trained[kind]
    ids = {piece: i for i, piece in enumerate(tokenizer.pieces(range(tokenizer.vocabulary_size)))}
    space, letter, unknown = ids["▁"], ids["a"], UNKNOWN_TOKEN_ID
    word = next(i for piece, i in ids.items() if piece.startswith("▁") and len(piece) > 1)
    starts = [[], [space], [space, space], [space, space, space], [unknown], [space, unknown], [space, space, unknown]]
    rows = [[*start, one] for start in starts for one in (letter, word, unknown)] + [[space], [space, space]]
    assert from_graph(tokenizer, rows) == tokenizer.detokenize(rows)


@pytest.mark.parametrize("kind", TOKENIZER_KINDS)
@pytest.mark.parametrize("method", ["tokenize", "detokenize"])
def test_use_in_a_graph_leaves_a_tokenizer_usable_outside_and_in_another_graph(trained, kind, method):
    """Exporting a translator must not break it."""
    import tensorflow as tf

    tokenizer = fresh(trained[kind])
    ids = trained[kind].tokenize(IN_VOCABULARY)
    if method == "tokenize":
        in_graph(tokenizer, IN_VOCABULARY)
    else:
        from_graph(tokenizer, ids)
    assert tokenizer.tokenize(IN_VOCABULARY) == ids
    assert tokenizer.graph_tokenize(tf.constant(IN_VOCABULARY)).to_list() == ids
    assert in_graph(tokenizer, IN_VOCABULARY) == ids
    assert from_graph(tokenizer, ids) == trained[kind].detokenize(ids)


def test_a_reloaded_module_gives_the_same_ids_and_texts(tokenizer, tmp_path):
    import tensorflow as tf

    def ids(text):
        return tokenizer.graph_tokenize(text).to_tensor(PAD_TOKEN_ID)

    module = tf.Module()
    module.ids = tf.function(ids, input_signature=[tf.TensorSpec([None], tf.string)])
    module.text = tf.function(tokenizer.graph_detokenize, input_signature=[tf.TensorSpec([None, None], tf.int32)])
    module.resources = tokenizer.graph_resources()
    tf.saved_model.save(module, str(tmp_path / "saved"))
    reloaded = tf.saved_model.load(str(tmp_path / "saved"))

    texts = [*IN_VOCABULARY, *HOSTILE.values()]
    expected = tokenizer.tokenize(texts)
    rows = reloaded.ids(tf.constant(texts))
    assert [row[: len(e)] for row, e in zip(rows.numpy().tolist(), expected, strict=True)] == expected
    assert [text.decode() for text in reloaded.text(rows).numpy()] == tokenizer.detokenize(expected)
    assert reloaded.text(tf.zeros((3, 0), tf.int32)).numpy().tolist() == [b""] * 3


def test_no_texts_give_no_ids(tokenizer):
    import tensorflow as tf

    assert tokenizer.tokenize([]) == []
    assert tokenizer.detokenize([]) == []
    assert tokenizer.graph_tokenize(tf.constant([], tf.string)).to_list() == []
    assert tokenizer.graph_detokenize(tf.zeros((0, 4), tf.int32)).shape == (0,)
    assert from_graph(tokenizer, [[], [], []]) == tokenizer.detokenize([[], [], []]) == ["", "", ""]
    assert tokenizer.graph_detokenize(tf.RaggedTensor.from_row_lengths(tf.zeros(0, tf.int32), [0, 0])).shape == (2,)


def test_an_empty_text_has_no_ids(tokenizer):
    assert tokenizer.tokenize(["", " ", "\t"]) == [[], [], []]
    assert tokenizer.detokenize([[], [PAD_TOKEN_ID], [START_TOKEN_ID, END_TOKEN_ID]]) == ["", "", ""]


# What the ids mean.


def test_a_text_without_unknown_pieces_survives_a_round_trip(tokenizer):
    ids = tokenizer.tokenize(IN_VOCABULARY)
    assert tokenizer.detokenize(ids) == IN_VOCABULARY
    assert not any(UNKNOWN_TOKEN_ID in row for row in ids)


def test_a_second_round_trip_changes_nothing(tokenizer):
    """If no piece is unknown, the text of the first round trip is a fixed point."""
    ids = tokenizer.tokenize([*IN_VOCABULARY, *HOSTILE.values()])
    known = [row for row in ids if UNKNOWN_TOKEN_ID not in row]
    assert len(known) > len(IN_VOCABULARY)
    texts = tokenizer.detokenize(known)
    assert tokenizer.detokenize(tokenizer.tokenize(texts)) == texts


def test_text_never_has_the_ids_of_padding_start_and_end(tokenizer):
    ids = {i for row in tokenizer.tokenize([*IN_VOCABULARY, *HOSTILE.values()]) for i in row}
    assert not ids & {PAD_TOKEN_ID, START_TOKEN_ID, END_TOKEN_ID}
    assert max(ids) < tokenizer.vocabulary_size


@pytest.mark.parametrize("kind", TOKENIZER_KINDS)
def test_special_symbols_in_the_training_text_are_ordinary_text(kind):
    """Text like `<s>` in the training text does not get the special ids."""
    texts = ["<s> a </s>", "[START] b [END]", "<pad> <unk> [PAD] [UNK]"]
    rows = Tokenizer.train(texts * 5, None, kind).tokenize(texts)
    assert all(len(row) > 2 for row in rows)
    assert not {i for row in rows for i in row} & {PAD_TOKEN_ID, START_TOKEN_ID, END_TOKEN_ID}


def test_unknown_text_is_marked(tokenizer):
    (ids,) = tokenizer.tokenize(["語"])
    assert UNKNOWN_TOKEN_ID in ids
    assert "⁇" in tokenizer.detokenize([ids])[0]


def test_the_special_ids_are_0_to_3(tokenizer):
    assert (PAD_TOKEN_ID, UNKNOWN_TOKEN_ID, START_TOKEN_ID, END_TOKEN_ID) == (0, 1, 2, 3)
    names = {"wordpiece": ["[PAD]", "[UNK]", "[START]", "[END]"]}.get(tokenizer.kind, ["<pad>", "<unk>", "<s>", "</s>"])
    assert tokenizer.pieces(range(4)) == names


def test_pieces_spell_the_text(tokenizer):
    pieces = tokenizer.pieces(tokenizer.tokenize(["Das Haus ist nicht klein."])[0])
    assert "".join(pieces).replace("▁", "").replace("##", "") == "DasHausistnichtklein."
    assert len(pieces) > 1


@pytest.mark.parametrize("kind", SENTENCEPIECE)
def test_composed_and_decomposed_accents_are_the_same_text(trained, kind):
    assert trained[kind].tokenize(["Mu\u0308he"]) == trained[kind].tokenize(["Mühe"])


def test_case_is_kept(tokenizer):
    assert tokenizer.tokenize(["das"]) != tokenizer.tokenize(["Das"])


def test_wordpiece_writes_punctuation_as_people_do():
    words = ["it", "s", "well", "known", "a", "b", "5"]
    tokenizer = WordPieceTokenizer([*WordPieceTokenizer.SPECIAL, *words, *"'\u2019-.,!?;:()[]%"])
    texts = ["it's well-known, a (b).", "a: [b]; a? b! 5%", "it\u2019s"]
    assert tokenizer.detokenize(tokenizer.tokenize(texts)) == texts


# Training.


@pytest.mark.parametrize("kind", SENTENCEPIECE)
@pytest.mark.parametrize("size", [150, 400])
def test_a_vocabulary_has_the_requested_size(texts, kind, size):
    assert Tokenizer.train(texts, size, kind).vocabulary_size == size


def test_a_wordpiece_vocabulary_has_at_most_the_requested_size():
    assert 12 <= Tokenizer.train(SMALL, 24, "wordpiece").vocabulary_size <= 24


@pytest.mark.parametrize("kind", TOKENIZER_KINDS)
def test_an_automatic_size_is_smaller_for_small_texts(kind):
    tokenizer = Tokenizer.train(SMALL, None, kind)
    assert 12 < tokenizer.vocabulary_size < 60
    assert tokenizer.detokenize(tokenizer.tokenize(["a small cat"])) == ["a small cat"]
    assert tokenizer.tokenize(["small"])[0] != tokenizer.tokenize(["smal"])[0]


@pytest.mark.parametrize("kind", SENTENCEPIECE)
def test_an_automatic_size_has_room_for_every_character(kind):
    """Chinese and Japanese texts have thousands of characters."""
    characters = [chr(0x4E00 + i) for i in range(9000)]
    assert Tokenizer.train(characters, None, kind).vocabulary_size > 9000


@pytest.mark.parametrize("kind", TOKENIZER_KINDS)
def test_training_is_deterministic(texts, kind, tmp_path):
    texts = SMALL if kind == "wordpiece" else texts
    first, second = (Tokenizer.train(texts, None, kind).save(tmp_path / name) for name in ("a", "b"))
    assert first.read_bytes() == second.read_bytes()


def test_random_segmentations_have_the_same_text_and_depend_on_the_seed(texts, trained):
    tokenizer = trained["unigram"]
    usual = tokenizer.tokenize(texts)
    drawn = tokenizer.sample(texts, 0.3, seed=1)
    assert drawn != usual
    assert tokenizer.detokenize(drawn) == tokenizer.detokenize(usual)
    assert tokenizer.sample(texts, 0.3, seed=1) == drawn
    assert tokenizer.sample(texts, 0.3, seed=2) != drawn
    assert tokenizer.tokenize(texts) == usual
    few, many = (sum(map(len, tokenizer.sample(texts, alpha, seed=1))) for alpha in (0.9, 0.1))
    assert sum(map(len, usual)) < few < many


def test_segmentations_are_drawn_in_proportion_to_their_probability(trained):
    """Each segmentation of a word is as frequent as its probability to the power of alpha requires."""
    tokenizer = trained["unigram"]
    processor = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.model)
    segmentations = processor.nbest_encode("house", nbest_size=64)
    weights = np.exp([0.5 * sum(map(processor.get_score, ids)) for ids in segmentations])
    drawn = [tuple(ids) for ids in tokenizer.sample(["house"] * 20000, 0.5, seed=0)]
    for ids, share in list(zip(segmentations, weights / weights.sum(), strict=True))[:3]:
        assert drawn.count(tuple(ids)) / len(drawn) == pytest.approx(share, abs=0.02)


def test_random_segmentation_of_unknown_and_empty_texts(trained):
    tokenizer = trained["unigram"]
    odd = ["", " ", "\u4f60\u597d world", "a\u2581b", "x" * 300]
    drawn = tokenizer.sample(odd, 0.3, seed=0)
    assert drawn[:2] == [[], []]
    assert tokenizer.detokenize(drawn) == tokenizer.detokenize(tokenizer.tokenize(odd))


@pytest.mark.parametrize("kind", ["bpe", "wordpiece"])
def test_random_segmentations_of_other_kinds_are_an_error(trained, kind):
    with pytest.raises(TokenizerError, match="drawn at random only for unigram tokenizers"):
        trained[kind].sample(["a text"], 0.1, seed=0)


def test_training_texts_may_be_an_iterator():
    assert Tokenizer.train(iter(SMALL)).model == Tokenizer.train(SMALL).model


@pytest.mark.parametrize("kind", TOKENIZER_KINDS)
def test_empty_lines_are_left_out(kind):
    assert (
        Tokenizer.train(["", " ", *SMALL, "\n"], None, kind)._serialized()
        == Tokenizer.train(SMALL, None, kind)._serialized()
    )


# Errors.


@pytest.mark.parametrize("kind", TOKENIZER_KINDS)
def test_the_error_for_a_too_large_size_names_a_possible_size(kind):
    message = (
        r"`vocabulary_size` is too large for this text: .*Received: vocabulary_size=1000 for 27 sentences\. Try \d+\."
    )
    with pytest.raises(TokenizerError, match=message) as caught:
        Tokenizer.train(SMALL, 1000, kind)
    possible = int(re.search(r"Try (\d+)\.", str(caught.value))[1])
    assert Tokenizer.train(SMALL, possible, kind).vocabulary_size == possible


@pytest.mark.parametrize("kind", SENTENCEPIECE)
@pytest.mark.parametrize("num_texts", [1, 27], ids=["a sentence", "little text"])
def test_the_error_for_a_too_small_size_names_a_possible_size(kind, num_texts):
    texts = SMALL[:num_texts]
    message = (
        rf"`vocabulary_size` is too small for this text: .*Received: vocabulary_size=9 for {num_texts} sentences\. Try"
    )
    with pytest.raises(TokenizerError, match=message) as caught:
        Tokenizer.train(texts, 9, kind)
    possible = int(re.search(r"Try (\d+)\.", str(caught.value))[1])
    assert Tokenizer.train(texts, possible, kind).vocabulary_size == possible


@pytest.mark.parametrize("kind", TOKENIZER_KINDS)
@pytest.mark.parametrize("size", [3, 0, -1])
def test_a_size_without_room_for_pieces_is_refused(kind, size):
    with pytest.raises(
        TokenizerError, match=f"`vocabulary_size` must be at least 8: .*Received: vocabulary_size={size}"
    ):
        Tokenizer.train(SMALL, size, kind)


@pytest.mark.parametrize("kind", TOKENIZER_KINDS)
@pytest.mark.parametrize("texts", [[], [""], [" ", "\n\t"]])
def test_there_must_be_text(kind, texts):
    with pytest.raises(TokenizerError, match="A tokenizer needs text to learn from"):
        Tokenizer.train(texts, None, kind)


@pytest.mark.parametrize("kind", TOKENIZER_KINDS)
def test_text_of_control_characters_alone_is_refused(kind):
    with pytest.raises(TokenizerError, match=r"could not learn a vocabulary|needs text to learn from"):
        Tokenizer.train(["\x01", "\x02"], None, kind)


def test_the_error_for_an_unknown_kind_names_the_kinds():
    message = r"`kind` of a tokenizer must be one of \('unigram', 'bpe', 'wordpiece'\)\. Received: kind='char'"
    with pytest.raises(TokenizerError, match=message):
        Tokenizer.train(SMALL, None, "char")


# Files.


@pytest.mark.parametrize("with_suffix", [False, True])
def test_a_saved_tokenizer_is_loaded_exactly(tokenizer, tmp_path, with_suffix):
    path = tmp_path / ("my.tokenizer" + (tokenizer.suffix if with_suffix else ""))
    file = tokenizer.save(path)
    assert file == tmp_path / f"my.tokenizer{tokenizer.suffix}"
    assert [p.name for p in tmp_path.iterdir()] == [file.name]
    for name in (file, str(file), tmp_path / "my.tokenizer"):
        loaded = Tokenizer.load(name)
        assert type(loaded) is type(tokenizer)
        assert (loaded.kind, loaded.vocabulary_size) == (tokenizer.kind, tokenizer.vocabulary_size)
        texts = [*IN_VOCABULARY, *HOSTILE.values()]
        assert loaded.tokenize(texts) == tokenizer.tokenize(texts)
    assert loaded.save(tmp_path / "again").read_bytes() == file.read_bytes()


class Words(Tokenizer):
    """Your own tokenizer, as in docs/how-to.md."""

    suffix, kind = ".words", "words"

    def __init__(self, words):
        self.words = words
        self.vocabulary_size = 4 + len(words)

    def tokenize(self, texts):
        return [[4 + self.words.index(word) for word in text.split()] for text in texts]

    def detokenize(self, token_ids):
        return [" ".join(self.words[i - 4] for i in ids if i > 3) for ids in token_ids]

    def _serialized(self):
        return "\n".join(self.words).encode()

    @classmethod
    def _load(cls, path):
        return cls(path.read_text(encoding="utf-8").split("\n"))


@pytest.mark.parametrize("with_suffix", [False, True])
def test_your_own_tokenizer_is_loaded_by_its_suffix(tmp_path, with_suffix):
    file = Words(["a", "dog", "cat"]).save(tmp_path / "mine")
    assert file == tmp_path / "mine.words"
    loaded = Tokenizer.load(file if with_suffix else tmp_path / "mine")
    assert type(loaded) is Words
    assert loaded.detokenize(loaded.tokenize(["a cat"])) == ["a cat"]
    with pytest.raises(TokenizerError, match=r"No tokenizer at .*: none of .*no.spm, .*no.vocab.*no.words"):
        Tokenizer.load(tmp_path / "no")


def test_a_tokenizer_without_a_suffix_is_not_saved(tmp_path):
    class Unsaved(Tokenizer):
        pass

    with pytest.raises(TokenizerError, match=r"needs a `suffix`.*Received: Unsaved without one"):
        Unsaved().save(tmp_path / "mine")


@pytest.mark.parametrize("kind", TOKENIZER_KINDS)
def test_one_string_is_not_a_list_of_texts(trained, kind):
    with pytest.raises(TypeError, match=r"`texts` must be a list of strings. Received: one string, 'a dog'. Pass \["):
        trained[kind].tokenize("a dog")


def test_the_cache_of_segmentations_is_bounded_and_changes_no_result(texts, trained, monkeypatch):
    tokenizer, sizes = trained["unigram"], []

    def smaller(maxsize):
        sizes.append(maxsize)
        return functools.lru_cache(maxsize=3)

    monkeypatch.setattr(sentencepiece_tokenizer, "lru_cache", smaller)
    small = type(tokenizer)(tokenizer.model)
    assert sizes == [50_000]
    assert small.sample(texts[:50], 0.3, seed=1) == tokenizer.sample(texts[:50], 0.3, seed=1)


def test_wordpiece_vocabularies_may_have_windows_line_ends(tmp_path):
    """Git on Windows may convert line ends."""
    vocabulary = [*WordPieceTokenizer.SPECIAL, "a", "b"]
    (tmp_path / "t.vocab").write_bytes("\r\n".join(vocabulary).encode())
    assert Tokenizer.load(tmp_path / "t").vocabulary == vocabulary


@pytest.mark.parametrize("name", ["no", "no.spm", "no.vocab", "folder"])
def test_a_wrong_path_is_named(tmp_path, name):
    (tmp_path / "folder").mkdir()
    with pytest.raises(TokenizerError, match=f"No tokenizer at {re.escape(str(tmp_path / name))}: "):
        Tokenizer.load(tmp_path / name)


@pytest.mark.parametrize(
    "damage",
    [lambda model: b"", lambda model: b"garbage", lambda model: model[: len(model) // 2]],
    ids=["empty", "other bytes", "truncated"],
)
def test_a_damaged_sentencepiece_model_is_named(trained, tmp_path, damage):
    path = tmp_path / "t.spm"
    path.write_bytes(damage(trained["unigram"].model))
    with pytest.raises(TokenizerError, match=re.escape(str(path))):
        Tokenizer.load(path)


@pytest.mark.parametrize(
    "content",
    [b"", b"\xff\xfe\x00", b"a\nb\nc\nd\ne", b"[PAD]\n[UNK]\n[START]", b"[PAD]\n[UNK]\n[START]\n[END]\na\nb\na"],
    ids=["empty", "not UTF-8", "other text", "truncated", "a piece twice"],
)
def test_a_damaged_wordpiece_vocabulary_is_named(tmp_path, content):
    path = tmp_path / "t.vocab"
    path.write_bytes(content)
    with pytest.raises(TokenizerError, match=re.escape(str(path))):
        Tokenizer.load(path)


def test_a_sentencepiece_model_with_other_special_ids_is_refused(tmp_path):
    path = tmp_path / "other"
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(SMALL), model_prefix=str(path), vocab_size=16, minloglevel=2
    )
    message = r"must have pad 0, unk 1, bos 2, eos 3: .*Received: \(-1, 0, 1, 2\)\. Train it with `Tokenizer.train`"
    with pytest.raises(TokenizerError, match=message):
        SentencePieceTokenizer(path.with_suffix(".model").read_bytes())


def test_a_wordpiece_vocabulary_must_begin_with_the_special_pieces():
    with pytest.raises(TokenizerError, match=r"must begin with \('\[PAD\]', .*Received: \['a', 'b'\]"):
        WordPieceTokenizer(["a", "b"])


@pytest.mark.parametrize(
    ("target_ids", "expected"), [([7, 5, 3], [2, 7, 5]), ((7, 3), [2, 7]), ([3], [2]), ([], [2])], ids=str
)
def test_shifted_right_puts_the_start_token_before_a_target(target_ids, expected):
    assert shifted_right(target_ids) == expected


def test_shifted_right_puts_the_start_token_before_a_batch_of_targets():
    import tensorflow as tf

    shifted = shifted_right(tf.constant([[7, 5, 3], [9, 3, 0]]))
    assert shifted.numpy().tolist() == [[2, 7, 5], [2, 9, 3]]
    assert shifted_right(tf.zeros((0, 3), tf.int32)).shape == (0, 3)
