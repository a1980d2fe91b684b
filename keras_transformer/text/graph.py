"""Sentences and placeholders in a TensorFlow graph: the same as in Python."""

from collections.abc import Callable

import tensorflow as tf

from keras_transformer.text import placeholders, sentences

# Placeholders.


def graph_protect(text: tf.Tensor, count: int = placeholders.NUM_PLACEHOLDERS) -> tuple[tf.Tensor, tf.Tensor]:
    """`protect` of strings (B,): texts (B,), and their parts (B, count); "" elsewhere."""
    pieces = _cut(_graph_replaced(text, *placeholders.RULES))
    place = tf.ragged.range(pieces.row_lengths()).flat_values
    number = place // 2
    is_replaced = (place % 2 == 1) & (number < count)
    names = tf.gather(_names(count), tf.cast(tf.minimum(number, count - 1), tf.int32))
    flat = tf.where(is_replaced, names, _graph_replaced(pieces.flat_values, placeholders.NO_PLACEHOLDERS))
    return tf.ensure_shape(_joined(pieces, flat), [None]), pieces[:, 1::2].to_tensor("", shape=[None, count])


def _names(count):
    return tf.constant([placeholders.placeholder(number) for number in range(count)])


def _cut(text):
    """Strings (B,) -> ragged pieces (B, None), cut at the marks, which are the same for sentences and placeholders."""
    return tf.strings.split(text, placeholders.CUT)


def _odd_places(pieces):
    """The places (N, 1) of what is between two marks, among the flat values of a ragged tensor (B, None)."""
    return tf.where(tf.ragged.range(pieces.row_lengths()).flat_values % 2 == 1)


def _joined(pieces, flat_values):
    """Strings (B,) from ragged ones (B, None) with other values."""
    return tf.strings.reduce_join(pieces.with_flat_values(flat_values), axis=-1)


def graph_restored(text: tf.Tensor, parts: tf.Tensor, source: tf.Tensor) -> tf.Tensor:
    """`restored` of strings (B,) with the texts (B,) and the parts (B, count) of `graph_protect`."""
    for name in map(placeholders.placeholder, range(parts.shape[1])):
        for pattern, marked in (
            (placeholders.TOUCHED[0] + name, placeholders.BEGIN + name),
            (name + placeholders.TOUCHED[1], name + placeholders.END),
        ):
            touches = tf.strings.regex_full_match(source, f"(?s).*{pattern}.*")
            text = tf.where(touches, text, _graph_replaced(text, (name, marked)))
    text = _graph_replaced(text, *placeholders.APART)
    pieces = _cut(_graph_replaced(text, placeholders.MARK_PLACEHOLDERS))
    places = _odd_places(pieces)
    number = tf.strings.to_number(tf.gather(pieces.flat_values, places[:, 0]), tf.int32)
    number = tf.minimum(tf.cast(number, tf.int64), tf.shape(parts, tf.int64)[1])  # The column for unknown numbers.
    columns = tf.pad(parts, [[0, 0], [0, 1]], constant_values="")
    at = tf.stack([tf.gather(pieces.value_rowids(), places[:, 0]), number], axis=1)
    text = _joined(pieces, tf.tensor_scatter_nd_update(pieces.flat_values, places, tf.gather_nd(columns, at)))
    written = tf.scatter_nd(at, tf.ones_like(number), tf.shape(columns, tf.int64))
    missing = tf.where((written == 0) & (columns != ""), " " + columns, "")
    return tf.ensure_shape(text, [None]) + tf.strings.reduce_join(missing, axis=-1)


def graph_protect_target(text: tf.Tensor, parts: tf.Tensor) -> tf.Tensor:
    """`protect_target` of strings (B,) with the parts (B, count) of their sources."""
    pieces = _cut(_graph_replaced(text, *placeholders.RULES))
    kept = pieces[:, 1::2]
    received = kept.to_tensor("")  # (B, T)
    # The second of two equal parts belongs to the second one of the source.
    here, there = _number_among_equals(received)[:, :, None], _number_among_equals(parts)[:, None]
    same = (received[:, :, None] == parts[:, None]) & (here == there) & (parts[:, None] != "")  # (B, T, count)
    names = tf.gather(_names(parts.shape[1]), tf.argmax(same, axis=2))
    names = tf.where(tf.reduce_any(same, axis=2), names, _graph_replaced(received, placeholders.NO_PLACEHOLDERS))
    names = tf.RaggedTensor.from_tensor(names, kept.row_lengths()).flat_values
    return _joined(pieces, tf.tensor_scatter_nd_update(pieces.flat_values, _odd_places(pieces), names))


def _number_among_equals(strings):
    """For each of the strings (B, N), how many equal ones are before it in its row."""
    same = tf.cast(strings[:, :, None] == strings[:, None], tf.int32)
    return tf.reduce_sum(tf.linalg.band_part(same, -1, 0), axis=2)


def graph_has_words(text: tf.Tensor) -> tf.Tensor:
    """`has_words` of strings (B,)."""
    text = tf.strings.regex_replace(text, placeholders.PLACEHOLDER, "")
    return ~tf.strings.regex_full_match(text, placeholders.NO_WORDS)


# Sentences.


def graph_split(text: tf.Tensor, language: str | None = None) -> tf.RaggedTensor:
    """`split` of strings (B,): a ragged tensor (B, None). Bytes that are not UTF-8 become U+FFFD."""
    text = tf.strings.unicode_transcode(text, "UTF-8", "UTF-8")
    text = sentences.FRAME[0] + _graph_replaced(text, sentences.NO_MARKS) + sentences.FRAME[1]
    marked = _graph_replaced(text, *sentences.rules(language))
    return _cut(_graph_without(marked, *sentences.CUT_OFF))


def graph_plain(texts: tf.Tensor) -> tf.Tensor:
    """`plain` of strings of any shape."""
    return _graph_replaced(texts, sentences.UNWRAP)


def graph_fitted(parts: tf.RaggedTensor, fits: Callable[[tf.Tensor], tf.Tensor]) -> tf.RaggedTensor:
    """`fitted` of the result of `graph_split`; `fits` takes strings (N,) and returns bool (N,)."""

    def cut(text, _):
        parts = _cut(text)
        places = sentence_places(parts)
        texts = tf.gather(parts.flat_values, places)
        can_be_cut = tf.strings.length(texts, unit="UTF8_CHAR") > 1
        long = tf.where(~fits(graph_plain(texts)) & can_be_cut)[:, 0]
        shorter = _graph_cut_in_two(tf.gather(texts, long))
        flat = tf.tensor_scatter_nd_update(parts.flat_values, tf.gather(places, long)[:, None], shorter)
        return marked(parts.with_flat_values(flat)), tf.size(long) > 0

    def marked(parts):
        # `separator=CUT` would leave out the first marks of a row that begins with empty strings.
        text = _joined(parts, parts.flat_values + sentences.CUT)
        return tf.ensure_shape(_graph_without(text, 0, 1), [None])

    text = marked(parts)
    text, _ = tf.while_loop(lambda text, go_on: go_on, cut, (text, tf.constant(True)))
    return _cut(text)


def _graph_cut_in_two(texts):
    """`_cut_in_two` of strings (N,), with `CUT` between the three parts."""
    characters = tf.strings.unicode_split(texts, "UTF-8")  # (N, None)
    count = tf.cast(characters.row_lengths(), tf.int32)[:, None]
    here = characters.to_tensor("")
    here = tf.concat([here, tf.fill([tf.shape(here)[0], 1], "")], axis=1)  # (N, C); C is never 0
    place = tf.range(tf.shape(here)[1])
    before = tf.roll(here, 1, axis=1)
    inside = (place >= 1) & (place < count)
    space = inside & tf.strings.regex_full_match(here, f"[{sentences.SPACES}]")
    clause = tf.strings.regex_full_match(before, f"[{sentences.CLAUSE_ENDS}]") & space
    clause |= tf.strings.regex_full_match(before, f"[{sentences.WIDE_CLAUSE_ENDS}]") & inside
    distance = tf.abs(2 * place - count)
    clause &= 2 * distance <= count

    def nearest(allowed, otherwise):
        place = tf.argmin(tf.where(allowed, distance, 2**30), axis=1, output_type=tf.int32)
        return tf.where(tf.reduce_any(allowed, axis=1), place, otherwise)

    at = nearest(clause, nearest(space, count[:, 0] // 2))
    first = tf.strings.substr(texts, tf.zeros_like(at), at, unit="UTF8_CHAR")
    second = tf.strings.substr(texts, at, count[:, 0] - at, unit="UTF8_CHAR")
    return _graph_replaced(first + sentences.CUT + second, sentences.AFTER_CUT)


def sentence_places(parts: tf.RaggedTensor) -> tf.Tensor:
    """The places (N,) of the sentences among the flat values of the result of `graph_split`."""
    return _odd_places(parts)[:, 0]


def graph_joined(parts: tf.RaggedTensor, translations: tf.Tensor) -> tf.Tensor:
    """`joined` of the result of `graph_split`, in which `translations` (N,) take the places of the sentences."""
    marked = sentences.BEGIN + _graph_replaced(translations, sentences.NO_MARKS) + sentences.END
    text = _joined(parts, tf.tensor_scatter_nd_update(parts.flat_values, _odd_places(parts), marked))
    return _graph_replaced(text, sentences.JOIN, (f"[{sentences.BEGIN}{sentences.END}]", ""))


def _graph_without(text, first, last):
    """Strings (B,) without their first and last bytes."""
    length = tf.strings.length(text) - first - last
    return tf.strings.substr(text, tf.fill(tf.shape(length), first), length)


def _graph_replaced(text, *pairs):
    for pattern, replacement in pairs:
        text = tf.strings.regex_replace(text, pattern, replacement)
    return text
