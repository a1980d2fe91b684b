"""What a training reads: vocabularies, token ids, how many pairs a pass has, and what differs between passes."""

import itertools
import logging
import os
from collections.abc import Iterable, Sequence
from random import Random
from typing import Any, NamedTuple

from keras_transformer.data.batches import TokenBatches, Variation, make_batches, pairs_per_pass
from keras_transformer.data.cleaning import Cleaner
from keras_transformer.data.corpora import Corpus, ParallelText, load_corpus
from keras_transformer.data.encoding import Progress, encode_pairs, encoded_in
from keras_transformer.data.masking import word_pairs
from keras_transformer.data.storage import EncodedPairs, report
from keras_transformer.files import cache_folder
from keras_transformer.text.placeholders import NUM_PLACEHOLDERS
from keras_transformer.text.tokenizer import Tokenizer
from keras_transformer.training.config import ConfigError, RunConfig
from keras_transformer.training.distribution import barrier, is_chief
from keras_transformer.training.run import Run, checksums
from keras_transformer.training.sections import LARGE_TEXT

logger = logging.getLogger(__name__)

# Maximum number of pairs that a tokenizer is trained on.
TOKENIZER_PAIRS = 500_000


class Text(NamedTuple):
    """All that a training reads.

    Attributes:
        corpus: a `keras_transformer.data.corpora.Corpus`.
        tokenizers: a list with the shared tokenizer, or with those of source and target.
        train: a list of `EncodedPairs`, one for each text of the corpus.
        general: `EncodedPairs` of the general text, or None.
        validation: a list of `EncodedPairs`.
    """

    corpus: Corpus
    tokenizers: list
    train: list
    general: EncodedPairs | None
    validation: list


def read_text(run: Run, config: RunConfig, resume: bool, strategy: Any) -> Text:
    """Reads the texts of a run, trains its tokenizers unless it is resumed, and makes token ids: a `Text`."""
    corpus = load_corpus(config.data)
    if resume:
        run.check_text(corpus)
    elif is_chief(strategy):
        prepare(run, config, corpus)
    barrier(strategy)  # The other workers read what the first one has written.
    tokenizers = run.tokenizers()
    if config.training.teacher:
        run.check_vocabulary_of(Run(config.training.teacher))
    train = [encode(text, tokenizers, config, config.data.clean) for text in corpus.train]
    general = encode(corpus.general, tokenizers, config) if corpus.general else None
    return Text(corpus, tokenizers, train, general, [encode(text, tokenizers, config) for text in corpus.validation])


def prepare(run: Run, config: RunConfig, corpus: Corpus) -> None:
    """Trains the tokenizers of a run, or takes those of another; writes them, versions and settings."""
    settings = config.tokenizer
    if given := config.training.init_from or settings.vocabulary_from:
        tokenizers, languages = Run(given).tokenizers(), config.data.target_languages()
        for language in languages:
            tokenizers[0].tag(language)  # Raises an error if there is no tag for it.
        if tokenizers[0].hidden_languages and not languages:
            raise ConfigError(
                "A vocabulary with language tags needs texts that have directions: --train and --val SOURCE TARGET "
                "direction=SOURCE-TARGET, or --directions. Received: none. It has tags for the target languages "
                f"{', '.join(tokenizers[0].languages)}."
            )
        _check_source_language(config, tokenizers[0])
    else:
        pairs = some_pairs(itertools.chain.from_iterable(corpus.train), config.training.seed)
        if not pairs:
            names = ", ".join(text.name for text in corpus.train)
            raise ConfigError(f"{names} hold no pair: each line is empty in at least one of them.")
        sides = list(zip(*pairs, strict=True))
        texts = sides if settings.separate_vocabularies else [sides[0] + sides[1]]
        placeholders = settings.num_placeholders
        if placeholders is None:
            placeholders = 0 if settings.tokenizer == "wordpiece" else NUM_PLACEHOLDERS
        arguments = settings.vocabulary_size, settings.tokenizer, config.training.seed, placeholders
        languages = config.data.target_languages(), ()  # Tags stand before sources only.
        tokenizers = [Tokenizer.train(side, *arguments, tags) for side, tags in zip(texts, languages, strict=False)]
    run.write(config, tokenizers, checksums(corpus))
    sizes = " and ".join(f"{tokenizer.vocabulary_size:,} ids" for tokenizer in tokenizers)
    logger.info("tokenizer: %s, %s", settings.tokenizer, sizes)


def some_pairs(pairs: Iterable, seed: int, most: int = TOKENIZER_PAIRS) -> list:
    """All pairs, or `most` of them, drawn at random ("Random Sampling with a Reservoir", Vitter, 1985, algorithm R)."""
    drawn, random = [], Random(seed)
    for number, pair in enumerate(pairs):
        if number < most:
            drawn.append(pair)
        elif (place := random.randrange(number + 1)) < most:
            drawn[place] = pair
    return drawn


def _check_source_language(config, tokenizer):
    """Raises a ConfigError if the model reads sources of one language, and the texts have another."""
    token_id = config.model.source_language_token_id
    source_languages = {name for name, i in tokenizer.languages.items() if i == token_id}
    sources = {direction.split("-")[0] for direction in config.data.all_directions()}
    if source_languages and sources - source_languages:
        raise ConfigError(
            f"This model was imported for sources in {source_languages.pop()}. Received: texts in "
            f"{', '.join(sorted(sources))}. Import it again with --source-language, one run for each language."
        )


def batches_of(text: Text, config: RunConfig, strategy: Any) -> tuple[TokenBatches, TokenBatches]:
    """The `TokenBatches` of training and of validation."""
    data, recipe = config.data, config.training
    batches = make_batches(
        parts(text.corpus, text.train, text.general, data),
        data.tokens_per_batch,
        shuffle=True,
        seed=recipe.seed,
        steps_per_epoch=recipe.steps_per_epoch,
        vary=variation(text.corpus, text.tokenizers, config),
        workers=data.workers or (os.cpu_count() or 1) // 4,
        strategy=strategy,
    )
    return batches, make_batches([(pairs, len(pairs.source)) for pairs in text.validation], data.tokens_per_batch)


def encode(text: ParallelText, tokenizers: Sequence[Tokenizer], config: RunConfig, clean: bool = False) -> EncodedPairs:
    """Token ids of a `ParallelText`, those of a large text on disk; logs how many pairs there are."""
    data, tagged_targets = config.data, config.model.source_language_token_id is not None
    cleaner = Cleaner.of(data, text.direction) if clean else None
    tokenizers, cache = (tokenizers[0], tokenizers[-1]), data.cache_dir
    if cache is None and text.num_bytes > LARGE_TEXT:
        cache = cache_folder()
    if cache is None or not text.num_bytes:
        if cleaner:
            cleaner.find_duplicates(text.lines)
        settings = {"cleaner": cleaner, "target_language": text.target_language, "tagged_targets": tagged_targets}
        pairs = encode_pairs(text.lines, *tokenizers, data.max_length, data.over_long, **settings)
    else:
        settings = {"workers": data.workers or os.cpu_count(), "progress": Progress(text.name)}
        settings |= {"cleaner": cleaner, "tagged_targets": tagged_targets}
        pairs = encoded_in(cache, text, tokenizers, data.max_length, data.over_long, **settings)
    about = report(pairs.left_out) if clean else pairs.about_left_out(data.over_long)
    logger.info(("\n" if clean else ", ").join([f"{text}: {len(pairs.source):,} pairs", *about]))
    return pairs


def parts(corpus, train, general, data):
    """What a pass consists of: `EncodedPairs`, and how many of them."""
    sizes = [len(pairs.source) for pairs in train]
    counts = pairs_per_pass(sizes, [text.weight for text in corpus.train], data.corpus_temperature)
    parts = list(zip(train, counts, strict=True))
    if counts != sizes:
        for text, count in zip(corpus.train, counts, strict=True):
            logger.info(f"{text}: {count:,} pairs in every pass ({count / sum(counts):.1%})")
    return [*parts, (general, round(data.general_weight * sum(counts)))] if general else parts


def variation(corpus: Corpus, tokenizers: Sequence[Tokenizer], config: RunConfig) -> Variation:
    """What differs between passes: subword segmentations, and words that become placeholders."""
    recipe = config.training
    draws = recipe.subword_sampling, recipe.subword_sampling_passes, recipe.placeholder_share
    variation = Variation((tokenizers[0], tokenizers[-1]), config.data.max_length, *draws)
    if variation.share:
        for direction in {text.direction: None for text in corpus.train}:
            texts = [text for text in corpus.train if text.direction == direction]
            variation.words |= word_pairs(itertools.chain.from_iterable(texts))
    return variation
