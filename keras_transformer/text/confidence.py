"""How likely the words of a translation are right, as a number that was calibrated on translations with references.

The probability that the model gives a word, p, is the product of those of its tokens. It says how sure the model is,
not how often it is right. So a function with three numbers turns it into a confidence, logit c = a log p - b log(1 - p)
+ d with a and b of at least 0: "Beta calibration" (Kull et al., 2017), section 3. They are fitted to words of which a
reference says whether they are right: those that it has in the same order, with the fewest edits, as in TER (Snover et
al., 2006) without shifts. The confidence of a sentence is the mean of its words', that is the share of them that is
expected to be right.
"""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import regex

Numbers = Sequence[float] | np.ndarray

WORD = regex.compile(r"[\p{L}\p{N}][\p{L}\p{N}\p{M}'’-]*")
# Probabilities are kept away from 0 and 1, where logarithms end.
SMALLEST = 1e-6


class CalibrationError(ValueError):
    """Words that no calibration can be fitted to: all of them are right, or all are wrong."""


class Confidence(NamedTuple):
    """The confidence of a translation.

    Attributes:
        sentence: in [0, 1], the mean of the words'; 1 without words.
        words: a list of (begin, end, confidence): places in the text, and a number in [0, 1].
    """

    sentence: float
    words: list[tuple[int, int, float]]


class Calibration(NamedTuple):
    """The numbers a, b and d that turn probabilities into confidences, and what they were fitted to.

    Attributes:
        a, b, d: see the module's docstring.
        num_words: number of words that they were fitted to.
        right: the share of these words that were right.
    """

    a: float
    b: float
    d: float
    num_words: int
    right: float

    @classmethod
    def fit(cls, log_probs: Numbers, right: Numbers) -> "Calibration":
        """Fits the numbers by maximum likelihood.

        Args:
            log_probs: log probabilities of words.
            right: for each, whether it was right.

        Raises:
            CalibrationError: all words are right, or all are wrong.

        Example:
            >>> calibration = Calibration.fit(np.log([0.9, 0.9, 0.9, 0.2, 0.2, 0.2]), [1, 1, 0, 1, 0, 0])
            >>> [round(float(c), 2) for c in calibration(np.log([0.9, 0.2]))]
            [0.67, 0.33]
        """
        right = np.asarray(right, "float64")
        if not 0 < right.sum() < len(right):
            raise CalibrationError(
                "A calibration needs words that are right and words that are wrong. "
                f"Received: {len(right):,} words, {int(right.sum()):,} of them right. Calibrate on more text."
            )
        features, kept = _features(log_probs), [0, 1, 2]
        while True:
            numbers = np.zeros(3)
            numbers[kept] = _fitted(features[:, kept], right)
            if numbers[:2].min() >= 0:
                break
            # With a negative a or b, the confidence of a more probable word could be lower.
            kept.remove(int(numbers[:2].argmin()))
        return cls(*numbers.tolist(), len(right), float(right.mean()))

    def __call__(self, log_probs: Numbers) -> np.ndarray:
        """The confidences of words with these log probabilities."""
        return _sigmoid(_features(log_probs) @ np.array(self[:3]))


def _fitted(features, right):
    """The coefficients of a logistic regression."""
    numbers = np.zeros(features.shape[1])
    for _ in range(50):  # Newton's method, with a little regularisation for words that are easily told apart.
        confidences = _sigmoid(features @ numbers)
        gradient = features.T @ (right - confidences) - 1e-3 * numbers
        hessian = (features.T * (confidences * (1 - confidences))) @ features + 1e-3 * np.eye(len(numbers))
        numbers = numbers + np.linalg.solve(hessian, gradient)
    return numbers


def _features(log_probs):
    probs = np.clip(np.exp(np.asarray(log_probs, "float64")), SMALLEST, 1 - SMALLEST)
    return np.stack([np.log(probs), -np.log1p(-probs), np.ones_like(probs)], axis=-1)


def _sigmoid(x):
    return 1 / (1 + np.exp(-np.clip(x, -500, 500)))


def word_log_probs(
    text: str, spans: Sequence[tuple[int, int]], token_log_probs: Sequence[float]
) -> list[tuple[int, int, float]]:
    """The words of a text with their log probabilities: a list of (begin, end, log probability).

    Args:
        text: a string.
        spans: where each token is in the text, from `translation.documents.token_spans`; those without a place are left
            out.
        token_log_probs: their log probabilities.
    """
    words = []
    for word in WORD.finditer(text):
        inside = [x for (i, j), x in zip(spans, token_log_probs, strict=False) if i < word.end() and j > word.start()]
        if inside:
            words.append((word.start(), word.end(), float(sum(inside))))
    return words


def right_words(text: str, reference: str) -> list[bool]:
    """For each word of a text, whether the reference has it, in an alignment with the fewest edits.

    Of several such alignments, it is one with the most equal words.

    Example:
        >>> right_words("a red dog sleeps", "a dog is sleeping")
        [True, False, True, False]
    """
    words, wanted = WORD.findall(text), WORD.findall(reference)
    costs = np.zeros((len(words) + 1, len(wanted) + 1), "int64")
    # A replacement costs a little more than a word that is added or removed: then more words are equal.
    edit, replacement = 1000, 1001
    costs[:, 0], costs[0] = edit * np.arange(len(words) + 1), edit * np.arange(len(wanted) + 1)
    for i, j in itertools.product(range(1, len(words) + 1), range(1, len(wanted) + 1)):
        replaced = costs[i - 1, j - 1] + replacement * (words[i - 1] != wanted[j - 1])
        costs[i, j] = min(replaced, costs[i - 1, j] + edit, costs[i, j - 1] + edit)
    right, i, j = [False] * len(words), len(words), len(wanted)
    while i and j:
        same = words[i - 1] == wanted[j - 1]
        if costs[i, j] == costs[i - 1, j - 1] + replacement * (not same):
            right[i - 1] = same
            i, j = i - 1, j - 1
        elif costs[i, j] == costs[i - 1, j] + edit:
            i -= 1
        else:
            j -= 1
    return right


def ranking(confidences: Numbers, right: Numbers) -> float:
    """How well confidences rank: the probability that a right word has a higher one than a wrong word (AUC).

    Example:
        >>> ranking([0.9, 0.8, 0.3, 0.8], [True, True, False, False])
        0.875
    """
    right = np.asarray(right, bool)
    ordered = np.unique(np.asarray(confidences), return_inverse=True)[1]
    counts = np.bincount(ordered)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[ordered]
    good, bad = right.sum(), (~right).sum()
    return float((ranks[right].sum() - good * (good + 1) / 2) / (good * bad))


def calibration_error(confidences: Numbers, right: Numbers, bins: int = 10) -> float:
    """The mean difference between confidence and share of right words in bins of equal width (ECE).

    "Obtaining Well Calibrated Probabilities Using Bayesian Binning" (Naeini et al., 2015).

    Example:
        >>> round(calibration_error([0.75, 0.75, 0.75, 0.75], [1, 1, 1, 0]), 6)
        0.0
    """
    confidences, right = np.asarray(confidences, "float64"), np.asarray(right, "float64")
    places = np.minimum((confidences * bins).astype(int), bins - 1)
    rows = [places == i for i in range(bins) if (places == i).any()]
    return float(sum(row.mean() * abs(confidences[row].mean() - right[row].mean()) for row in rows))
