"""The settings of a search, and the length limits that follow from them.

Keras is imported inside the functions that use it: `--help` lists the settings and must not wait for Keras.
"""

import dataclasses
from dataclasses import dataclass
from typing import Any

from keras_transformer.settings import (
    AT_LEAST_0,
    AT_LEAST_1,
    LENGTH_PENALTIES,
    POSITIVE,
    SEED,
    ConfigError,
    Rule,
    Settings,
    changeable,
    documented,
)
from keras_transformer.text.special_ids import (
    PAD_TOKEN_ID,
    START_TOKEN_ID,
    UNKNOWN_TOKEN_ID,
)

# Tokens that a translation may have beyond `max_length_ratio`, because the ratio varies most for short sources.
LENGTH_MARGIN = 16

# More has no use, and would need very large tables or graphs.
AT_MOST_100 = Rule(lambda value: value <= 100, "at most 100")
# Size of the n-grams that must not be repeated when the sentence is searched again.
NGRAM_OF_LOOPS = 3


@documented
@dataclass(frozen=True)
class SearchSettings(Settings):
    """The settings of a search for translations. An invalid value raises a `ConfigError`."""

    num_beams: int = changeable(
        4,
        "beams of the search; 1 is greedy search",
        AT_LEAST_1,
        Rule(lambda value: value <= 256, "at most 256: each beam needs memory for its own logits and caches"),
    )
    length_penalty: float = changeable(0.6, "scores are divided by ((5 + length) / 6)^this")
    length_penalty_type: str = changeable(
        "gnmt",
        "gnmt: divide by ((5 + length) / 6)^penalty; power: by length^penalty, as Marian and transformers do",
        choices=LENGTH_PENALTIES,
    )
    max_target_length: int | None = changeable(
        None,
        "maximum tokens of a translation, including the end token (default: only the ratio limits it)",
        AT_LEAST_1,
    )
    max_length_ratio: float = changeable(
        2.0,
        f"maximum tokens of a translation: this times the source tokens, plus {LENGTH_MARGIN}",
        AT_LEAST_0,
        AT_MOST_100,
    )
    min_length: int = changeable(0, "minimum tokens of a translation, including the end token", AT_LEAST_0)
    no_repeat_ngram_size: int = changeable(0, "forbid repeated n-grams of this size (0: off)", AT_LEAST_0, AT_MOST_100)
    avoid_loops: bool = changeable(
        False,
        f"search again, without repeated {NGRAM_OF_LOOPS}-grams, if a translation repeats itself; exports do not",
    )
    repetition_penalty: float = changeable(
        1.0, "log probabilities of tokens that already occurred are multiplied by this (1: off)", POSITIVE
    )
    allow_unknown: bool = changeable(False, "allow the unknown token, written as ⁇, in translations")
    shortlist: int = changeable(
        0,
        "number of target tokens, chosen for each sentence by the run's shortlist, among which its translation is "
        "searched (0: all); see keras_transformer shortlist",
        AT_LEAST_0,
    )
    sampling: bool = changeable(False, "draw tokens at random instead of searching for the best")
    temperature: float = changeable(
        1.0,
        "sampling: log probabilities are divided by this",
        Rule(lambda value: value >= 1e-3, "at least 0.001; for the most probable token use num_beams=1"),
    )
    top_k: int = changeable(0, "sampling: draw from this many of the most probable tokens (0: all)", AT_LEAST_0)
    top_p: float = changeable(
        1.0,
        "sampling: draw from the most probable tokens that together have this probability",
        Rule(lambda value: 0 < value <= 1, "in (0, 1]"),
    )
    sampling_seed: int = changeable(0, "sampling: random seed", SEED)

    def replace(self, **changes) -> "SearchSettings":
        """These settings with changes.

        Raises:
            TypeError: there is no such setting.
            ConfigError: a value is invalid or of the wrong type.
        """
        if not changes:
            return self
        names = [f.name for f in dataclasses.fields(self)]
        unknown = sorted(set(changes) - set(names))
        if unknown:
            raise TypeError(f"No such setting of a search: {', '.join(unknown)}. There are: {', '.join(names)}.")
        return dataclasses.replace(self, **changes)

    def within(self, max_length: int | None) -> "SearchSettings":
        """These settings with `max_target_length` at most `max_length`; None is no limit."""
        if max_length is None:
            return self
        return self.replace(max_target_length=min(self.max_target_length or max_length, max_length))

    def limits(self, source_lengths: Any) -> Any:
        """The maximum number of tokens of each translation, by the number of tokens of its source.

        Both count the end token.

        Args:
            source_lengths: integers (B,), a NumPy array or a tensor.

        Returns:
            int32 (B,), an array for an array, a tensor for a tensor.
        """
        import numpy as np
        from keras import ops

        is_array = isinstance(source_lengths, np.ndarray)  # For one number TensorFlow is slow.
        library, cast = (np, np.asarray) if is_array else (ops, ops.cast)
        limits = library.floor(self.max_length_ratio * cast(source_lengths, "float32") + float(LENGTH_MARGIN))
        if self.max_target_length is not None:
            limits = library.minimum(limits, float(self.max_target_length))
        return cast(limits, "int32")

    def check_num_hypotheses(self, num_hypotheses: int) -> None:
        """Raises a ConfigError unless a search gives this many translations; sampling gives any number."""
        if num_hypotheses < 1 or (num_hypotheses > self.num_beams and not self.sampling):
            raise ConfigError(
                "`num_hypotheses` must be between 1 and `num_beams`: the search keeps no more. "
                f"Received: num_hypotheses={num_hypotheses}, num_beams={self.num_beams}."
            )

    @property
    def forbidden(self) -> list[int]:
        """Ids of the tokens that a translation never contains."""
        return [PAD_TOKEN_ID, START_TOKEN_ID] + ([] if self.allow_unknown else [UNKNOWN_TOKEN_ID])
