"""Pictures of a trained run: the arrays that `figures` draws, and the attention explorer.

`python -m keras_transformer plot` runs `draw`, and `explore` runs `explorer`.
"""

import base64
import csv
import hashlib
import html
import json
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import keras
import numpy as np

from keras_transformer.data.corpora import DataError, one_test_set
from keras_transformer.layers.embeddings import positional_encoding, positional_rotation
from keras_transformer.pictures import PICTURES, PICTURES_WITHOUT_RUN, figures
from keras_transformer.search.decoder import NO_HYPOTHESIS
from keras_transformer.search.search import placeholders_of, search
from keras_transformer.text.special_ids import END_TOKEN_ID, PAD_TOKEN_ID, START_TOKEN_ID, shifted_right
from keras_transformer.translation.batched_search import pad
from keras_transformer.translation.results import Attention

if TYPE_CHECKING:
    from keras_transformer.translation.translator import Translator

# The sentences for the masks if there is no run.
EXAMPLE = [["the", "cat", "sat", "on", "the", "mat"], ["it", "slept", *["<pad>"] * 4]]
# Maximum number of sentences that are scored by length.
SCORED = 600
# With more beams the tree cannot be read.
TREE_BEAMS = 4


class Reading(NamedTuple):
    """A sentence, its translation, and the attention scores of every head.

    Attributes:
        source_tokens: S strings, the end token last.
        input_tokens: T strings that the decoder read, the start token first.
        target_tokens: T strings that the decoder wrote, the end token last.
        encoder: encoder self-attention scores, float32 (layers, N, S, S).
        decoder: decoder self-attention scores, (layers, N, T, T). Row t belongs to target token t, column t to input
            token t.
        cross: cross-attention scores, (layers, N, T, S).
        translation: the text.
    """

    source_tokens: list[str]
    input_tokens: list[str]
    target_tokens: list[str]
    encoder: np.ndarray
    decoder: np.ndarray
    cross: np.ndarray
    translation: str


def read_attention(translator: "Translator", text: str) -> Reading:
    """Translates one sentence and returns its `Reading`.

    Raises:
        ValueError: the sentence is empty.
    """
    (translation,) = translator.translate([text], return_scores=True)
    if not translation.token_ids:
        raise ValueError(f"There must be a sentence to look at. Received: {text!r}.")
    source = translator.codec.source_ids([text])[0]
    inputs = shifted_right(translation.token_ids)
    scores = translator.model.attention_scores(np.array([source]), np.array([inputs]))
    pieces = translator.target_tokenizer.pieces
    tokens = translator.source_tokenizer.pieces(source), pieces(inputs), pieces(translation.token_ids)
    arrays = (np.stack([_numpy(layer)[0] for layer in kind]) for kind in scores)
    return Reading(*tokens, *arrays, translation.text)


def draw(
    kind: str, translator: "Translator | None" = None, text: str | None = None, reference: str | None = None
) -> Iterator[tuple[str, Any]]:
    """The pictures of one kind.

    Args:
        kind: one of `PICTURES`.
        translator: a `Translator` that was loaded from a run. Defaults to None, for `PICTURES_WITHOUT_RUN`.
        text: the sentence that the pictures show.
        reference: its right translation, for `"curves"`. Defaults to the model's translation.

    Yields:
        Pairs of a name, such as `"sinusoids"`, and a `Figure` or an animation.

    Raises:
        ValueError: the kind does not exist or needs a trained run.
    """
    if kind not in PICTURES:
        raise ValueError(f"`kind` must be one of {PICTURES}. Received: {kind!r}.")
    if translator is None and kind not in PICTURES_WITHOUT_RUN:
        raise ValueError(
            f"Pictures of kind {kind} show a trained model. Received: no run. Pass the folder of one, such as "
            f"runs/phrasebook-tiny, or draw {', '.join(PICTURES_WITHOUT_RUN)}."
        )
    yield from _DRAWINGS[kind](translator, text, reference)


def _positions(translator, text, reference):
    yield "positional_encoding", figures.positional_encoding(positional_encoding(50, 256))
    yield "sinusoids", figures.sinusoids(positional_encoding(100, 20))
    yield "position_cosine", figures.position_similarity(positional_encoding(100, 128))
    yield "position_dot_product", figures.position_similarity(positional_encoding(100, 128), "dot")
    layouts = {layout: positional_encoding(50, 64, layout=layout) for layout in ("interleaved", "concatenated")}
    yield "position_layouts", figures.position_layouts(layouts)
    yield "rotation", figures.rotation(positional_rotation(3, 8), 3)
    yield "rings", figures.rings(positional_encoding(50, 32), 10)
    yield "rings_animation", figures.animate_rings(positional_encoding(50, 32))


def _embeddings(translator, text, reference):
    ids = np.array(translator.codec.source_ids([text]))
    layer = translator.model.encoder_embedding
    scale = layer.hidden_dim**0.5 if layer.scale_embeddings else 1
    before, after = _numpy(layer.token_embedding(ids))[0] * scale, _numpy(layer(ids))[0]
    yield "embeddings", figures.embeddings(translator.source_tokenizer.pieces(ids[0]), before, after)


def _masks(translator, text, reference):
    if translator is None:
        yield "masks", figures.masks([[token != "<pad>" for token in row] for row in EXAMPLE], EXAMPLE)
        return
    # The decoder's input is a translation and its first half. The decoder's first block shows how masks change scores.
    written = list(translator.translate([text], return_scores=True)[0].token_ids)[:9]
    ids = pad([[START_TOKEN_ID, *written], [START_TOKEN_ID, *written[: len(written) // 2]]])
    tokens = [translator.target_tokenizer.pieces(row) for row in ids]
    yield "masks", figures.masks(ids != PAD_TOKEN_ID, tokens)
    model = translator.model
    block = model.decoder_blocks[0]
    x = keras.ops.convert_to_tensor(_numpy(model.decoder_embedding(ids[:1])))  # Without its mask.
    x = block.self_attention_norm(x) if block.normalize_first else x
    scores = [
        _numpy(block.self_attention(x, use_causal_mask=causal, return_attention_scores=True)[1])[0, 0]
        for causal in (False, True)
    ]
    yield "masked_attention", figures.masked_attention(*scores, tokens[0], tokens[0])


def _attention(translator, text, reference):
    reading = read_attention(translator, text)
    written, source = reading.target_tokens, reading.source_tokens
    yield "encoder_self_attention", figures.attention_grid(reading.encoder, source, source, "Encoder self-attention")
    title = "Decoder self-attention: what it reads to write each token"
    yield "decoder_self_attention", figures.attention_grid(reading.decoder, written, reading.input_tokens, title)
    yield "cross_attention", figures.attention_grid(reading.cross, written, source, "Cross-attention")
    # The head, and below the layer, with the largest scores: they point most clearly to single tokens.
    clarity = reading.cross.max(axis=-1).mean(axis=-1)
    layer, head = np.unravel_index(clarity.argmax(), clarity.shape)
    title = f"Cross-attention, layer {layer}, head {head}"
    yield "attention", figures.attention(reading.cross[layer, head], written, source, title)
    mean = reading.cross.mean(axis=1)
    layer = int(mean.max(axis=-1).mean(axis=-1).argmax())
    aligned = Attention(source, written, reading.cross).alignment(layer)
    title = f"Alignment: cross-attention of layer {layer}, mean of the heads"
    yield "alignment", figures.attention(mean[layer], written, source, title, aligned)
    # A word in the middle of the sentence.
    query = len(source) // 2
    title = f"Encoder self-attention, layer {len(reading.encoder) - 1}"
    yield "token_attention", figures.token_attention(reading.encoder[-1, :, query], source[query], source, title)


def _schedule(translator, text, reference):
    from keras_transformer.training.schedules import InverseSquareRootSchedule, make_schedule

    schedules = {"paper": InverseSquareRootSchedule(2.5e-3, warmup_steps=40), "run": make_schedule(2.5e-3, steps=500)}
    rates = {name: np.array([_numpy(schedule(step)) for step in range(500)]) for name, schedule in schedules.items()}
    yield "learning_rate", figures.learning_rate(rates, warmup_steps=40)


def _curves(translator, text, reference):
    with open(translator.run.log_file, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    if rows:
        log = {name: [float(row[name] or "nan") for row in rows] for name in rows[0]}
        yield "training_curves", figures.training_curves(log)
    target = translator.target_tokenizer.tokenize([reference or translator.translate([text])[0]])[0]
    target = [*target, END_TOKEN_ID][:5]
    inputs = {
        "encoder_token_ids": np.array(translator.codec.source_ids([text])),
        "decoder_token_ids": np.array([shifted_right(target)]),
    }
    probabilities = _numpy(keras.ops.softmax(keras.ops.cast(translator.model(inputs), "float32")))[0]
    names = translator.target_tokenizer.pieces(range(probabilities.shape[-1]))
    smoothing = translator.run.config().training.label_smoothing
    yield "label_smoothing", figures.label_smoothing(probabilities, target, names, smoothing)
    try:
        by_length = _bleu_by_length(translator)
    except (DataError, OSError) as error:
        print(f"bleu_by_length was left out, because the test set of the run cannot be read: {error}", file=sys.stderr)
    else:
        yield "bleu_by_length", by_length


def _bleu_by_length(translator):
    """The figure for at most `SCORED` sentences of the run's test set, in up to five groups of similar length."""
    from keras_transformer.translation.evaluation import corpus_scores

    data = translator.run.config().data
    test = one_test_set(data, translator.codec.target_language)
    tokenize = data.sacrebleu_tokenizer(test.target_language or translator.codec.target_language)
    pairs = test.pairs[:: -(-len(test.pairs) // SCORED)]
    sources, references = zip(*pairs, strict=True)
    translations = translator.translate(sources)
    words = np.array([len(source.split()) for source in sources])
    edges = np.unique(np.quantile(words, np.linspace(0, 1, 6)).astype(int))
    bars = []
    for low, high in zip([0, *edges[1:-1]], edges[1:] if len(edges) > 1 else edges, strict=True):
        group = np.flatnonzero((words > low) & (words <= high))
        if len(group):
            hypotheses, wanted = ([side[i] for i in group] for side in (translations, references))
            shortest = min(words[group])
            name = f"{shortest}-{high}" if shortest < high else str(high)
            bars.append((name, corpus_scores(hypotheses, wanted, tokenize).bleu, len(group)))
    return figures.score_by_length(*zip(*bars, strict=True))


def example_sentences(translator: "Translator", count: int) -> Sequence[tuple[str, str]]:
    """Pairs from all parts of a test set of the translator's run that are short enough for a picture."""
    pairs = one_test_set(translator.run.config().data, translator.codec.target_language).pairs
    short = [pair for pair in pairs if 5 <= len(pair[0].split()) <= 9] or pairs
    return short[:: max(1, len(short) // count)][:count]


class BeamTrace(NamedTuple):
    """The steps of a beam search; see `figures.beam_tree`."""

    tokens: list[list[str]]
    parents: list[list[int]]
    totals: list[list[float]]
    hypotheses: list[tuple[int, int, float]]


def trace_beams(translator: "Translator", text: str, num_beams: int = TREE_BEAMS) -> BeamTrace:
    """Searches for the translation of one sentence, on TensorFlow, and records every prefix that the search kept."""
    steps, hypotheses = _recorded_search(translator, text, num_beams)
    pieces = translator.target_tokenizer.pieces
    trace = BeamTrace([pieces([START_TOKEN_ID])], [[0]], [[0.0]], [])
    paths = {(): (0, 0)}  # Tokens -> the step and the beam that have read them.
    totals = np.zeros(num_beams)
    for number, (token_ids, ancestors, _) in enumerate(steps[1:], 1):
        parents = ancestors[:, number - 1] * (number > 1)
        totals = totals[parents] + steps[number - 1][2][parents, token_ids]
        trace.tokens.append(pieces(token_ids))
        trace.parents.append(parents.tolist())
        trace.totals.append(totals.tolist())
        for beam, row in enumerate(ancestors):
            path = (*(int(steps[t][0][row[t]]) for t in range(1, number)), int(token_ids[beam]))
            paths[path] = (number, beam)
    for ids, score in zip(*(_numpy(x)[0] for x in hypotheses), strict=True):
        if score > NO_HYPOTHESIS:
            ids = tuple(ids.astype(int).tolist())
            # The decoder never reads the last token: the end token, or the token at the limit.
            last = ids.index(END_TOKEN_ID) if END_TOKEN_ID in ids else len(ids) - 1
            trace.hypotheses.append((*paths[ids[:last]], float(score)))
    return trace


def _recorded_search(translator, text, num_beams):
    """The steps of a search, and its result.

    A step has the tokens (K,) that the beams read, the beams (K, T) that these tokens follow, and the log probabilities
    (K, V) of the next token.
    """
    # Without a shortlist: its numbers are not those of the vocabulary, which the tree names.
    settings = translator.settings.replace(num_beams=num_beams, sampling=False, shortlist=0)
    settings = settings.within(translator.model.max_length)
    source = np.array(translator.codec.source_ids([text]))
    limits = settings.limits(np.array([source.shape[1]]))
    steps = []

    def start_decoding(*arguments):
        decoder = translator.model.start_decoding(*arguments)
        take = decoder.step

        def step(token_ids, cache, index, ancestors):
            logits, cache = take(token_ids, cache, index, ancestors)
            log_probs = keras.ops.log_softmax(keras.ops.cast(logits, "float32"))
            followed = np.zeros((1, limits[0])) if ancestors is None else _numpy(ancestors)[0]  # Greedy search: none.
            steps.append((_numpy(token_ids).astype(int), followed.astype(int), _numpy(log_probs)))
            return logits, cache

        decoder.step = step
        return decoder

    recorder = SimpleNamespace(start_decoding=start_decoding)
    vocabulary = translator.search.vocabulary(translator.shortlist)
    shared = {"required": placeholders_of(source, vocabulary.num_placeholders), "vocabulary": vocabulary}
    return steps, search(recorder, source, limits, int(limits[0]), settings, num_beams, **shared)


def _beam(translator, text, reference):
    yield "beam_tree", figures.beam_tree(*trace_beams(translator, text))


_FUNCTIONS = (_positions, _embeddings, _masks, _attention, _schedule, _curves, _beam)
_DRAWINGS = {function.__name__.removeprefix("_"): function for function in _FUNCTIONS}


def explorer(translator: "Translator", texts: Iterable[str], title: str) -> str:
    """HTML in one file that shows the attention scores of a word, in every head and layer, when you point at it."""
    sentences = [_explored(text, read_attention(translator, text)) for text in texts]
    page = Path(__file__).with_name("explorer.html").read_text(encoding="utf-8")
    # The policy: whatever a sentence contains, the page loads nothing and runs only its own script.
    script, style = (_hash(re.search(f"<{name}>(.*?)</{name}>", page, re.DOTALL)[1]) for name in ("script", "style"))
    filled = {
        "policy": f"default-src 'none'; script-src {script}; style-src {style}; base-uri 'none'; form-action 'none'",
        "title": html.escape(title),
        # "<" is escaped: only this character can end a script element or begin a comment in it.
        "sentences": json.dumps(sentences, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c"),
    }
    # All marks in one pass, so that marks inside a sentence are not replaced.
    return re.sub(r"\{\{(\w+)\}\}", lambda mark: filled[mark[1]], page)


def _explored(text, reading):
    """What the page knows of a sentence."""
    kinds = {
        "encoder": (reading.source_tokens, reading.source_tokens, reading.encoder),
        "decoder": (reading.target_tokens, reading.input_tokens, reading.decoder),
        "cross": (reading.target_tokens, reading.source_tokens, reading.cross),
    }
    sentence = {"source": text, "translation": reading.translation}
    for name, (queries, keys, scores) in kinds.items():
        # Thousandths: finer differences cannot be seen, and the page stays small.
        sentence[name] = {"queries": queries, "keys": keys, "scores": np.rint(1000 * scores).astype(int).tolist()}
    return sentence


def _hash(text):
    """The source expression of a content security policy for an inline script or style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _numpy(x):
    return keras.ops.convert_to_numpy(keras.ops.cast(x, "float32"))
