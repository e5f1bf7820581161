"""Dist-n: how many different n-grams the suggestions hold, relative to their length.

Source: Li et al. 2016, "A Diversity-Promoting Objective Function for Neural Conversation Models", which scales the
number of distinct uni- and bigrams by the number of generated tokens. N-grams do not cross from one suggestion to the
next.

MRS's official script counts the chosen suggestions only (`RougeScores.chosen_tokens`) and fails on its division.

Dist-n falls as the text grows. So compare systems on the same examples only, or use one of the two corrections:

- `expectation_adjusted_distinct`: distinct tokens over those that as many draws from the vocabulary would give. Source:
  Liu, Sabour, Zheng, Ke, Zhu and Huang 2022, "Rethinking and Refining the Distinct Metric" (ACL), section 3.
- `sampled_distinct_n`: Dist-n of samples of as many suggestions from each system. The size is chosen by the user, the
  number of samples here.
"""

import math
from collections.abc import Iterable, Sequence, Sized
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from mrs_metrics.corpus import Corpus, Figure, ratio_figure
from mrs_metrics.signature import signature
from mrs_metrics.tokenize import Tokenizer, ngrams, rules_name

DENOMINATORS = ("tokens", "ngrams")
LEVELS = ("corpus", "response")
SAMPLES = 100
SEED = 12345


@dataclass(frozen=True)
class DistinctCounts:
    """The counts behind Dist-n: distinct n-grams, all n-grams, all tokens."""

    distinct: int
    ngrams: int
    tokens: int

    def ratio(self, denominator: str = "tokens") -> float:
        """Return Dist-n, 0 to 1; 0 if there is nothing to divide by; ValueError if the denominator is unknown."""
        if denominator not in DENOMINATORS:
            raise ValueError(f"The denominator of Dist-n must be one of {list(DENOMINATORS)}, not {denominator!r}.")
        total = self.tokens if denominator == "tokens" else self.ngrams
        return self.distinct / total if total else 0.0


def distinct_counts(token_lists: Iterable[Sequence[str]], n: int) -> DistinctCounts:
    """Count the distinct n-grams, all n-grams and all tokens of the token lists.

    Raises:
        ValueError: n is below 1, or an entry is a text instead of its tokens.

    >>> distinct_counts([["i", "do"], ["i", "do", "not"]], 2)
    DistinctCounts(distinct=2, ngrams=3, tokens=5)
    """
    if n < 1:
        raise ValueError(f"The n of Dist-n must be 1 or more, not {n}.")
    distinct: set[tuple[str, ...]] = set()
    n_grams = n_tokens = 0
    for tokens in token_lists:
        if isinstance(tokens, str):
            raise ValueError(f"Dist-n counts lists of tokens, but was given the text {tokens!r:.80}.")
        distinct.update(ngrams(tokens, n))
        n_grams += max(0, len(tokens) - n + 1)
        n_tokens += len(tokens)
    return DistinctCounts(len(distinct), n_grams, n_tokens)


def distinct_n(
    token_lists: Iterable[Sequence[str]], n: int, denominator: str = "tokens", level: str = "corpus"
) -> float:
    """Return Dist-n of the token lists, 0 to 1; 0 if they hold no token.

    Args:
        token_lists: the tokens of each suggestion.
        n: order of the n-grams, 1 for Dist-1.
        denominator: `tokens`, as Li et al. scale it, or `ngrams`, so that all-different text scores 1 for every n.
        level: `corpus`, as Li et al. count: all suggestions together; or `response`: the mean over the suggestions of
            their own Dist-n, which measures repetition within a suggestion only.

    Raises:
        ValueError: n is below 1, denominator or level are unknown, or an entry is a text instead of its tokens.

    >>> distinct_n([["i", "do"], ["i", "do", "not"]], 1), distinct_n([["i", "do"], ["no", "no"]], 1, level="response")
    (0.6, 0.75)
    """
    if level not in LEVELS:
        raise ValueError(f"The level of Dist-n must be one of {list(LEVELS)}, not {level!r}.")
    if level == "corpus":
        return distinct_counts(token_lists, n).ratio(denominator)
    values = [distinct_counts([tokens], n).ratio(denominator) for tokens in token_lists]
    return float(np.mean(values)) if values else 0.0


def distinct_corpus(
    examples: Sequence[Sequence[Sequence[str]]], n: int, denominator: str = "tokens", level: str = "corpus"
) -> Corpus:
    """Return Dist-n for intervals and tests by example; arguments as in `distinct_n`, with token lists by example."""
    if level == "corpus":
        return Corpus(examples, partial(_distinct_figure, n=n, denominator=denominator))
    values = [[distinct_n([tokens], n, denominator) for tokens in texts] for texts in examples]
    return Corpus([(sum(some), len(some)) for some in values], ratio_figure)


def _distinct_figure(examples: Sequence[Sequence[Sequence[str]]], n: int, denominator: str) -> Figure:
    numbers: dict[tuple[str, ...], int] = {}
    places: list[int] = []
    grams: list[int] = []
    counts = [distinct_counts(texts, n) for texts in examples]
    sizes = np.array([one.tokens if denominator == "tokens" else one.ngrams for one in counts])
    for place, texts in enumerate(examples):
        own = {numbers.setdefault(gram, len(numbers)) for tokens in texts for gram in ngrams(tokens, n)}
        places += [place] * len(own)
        grams += own
    of, marks = np.array(places, dtype=np.int64), np.array(grams, dtype=np.int64)

    def figure(weights: NDArray[np.float64]) -> float:
        whole = float(weights @ sizes)
        return float(np.count_nonzero(np.bincount(marks, weights[of]))) / whole if whole else 0.0

    return figure


def expectation_adjusted_distinct(token_lists: Iterable[Sequence[str]], vocabulary: int | Sized) -> float:
    """Return EAD: the distinct tokens over the number expected of as many draws from the vocabulary.

    With C tokens and a vocabulary of V, that is distinct / (V * (1 - ((V - 1) / V) ** C)). The draws are uniform, so
    the vocabulary's size sets the scale: compare systems by the same one. Bigrams have no EAD: the paper defines it
    for tokens.

    Args:
        token_lists: the tokens of each suggestion.
        vocabulary: its size, or an object with that length: a model's tokenizer, the words of a training set.

    Returns:
        0 (no token) to slightly above 1, if there are more different tokens than the draws would give.

    Raises:
        ValueError: the vocabulary has fewer tokens than there are distinct ones, or an entry is a text instead of its
            tokens.

    >>> round(expectation_adjusted_distinct([["i", "do"], ["i", "do", "not"]], 10), 4)
    0.7326
    """
    counts = distinct_counts(token_lists, 1)
    size = vocabulary_size(vocabulary)
    if size < max(1, counts.distinct):
        raise ValueError(
            f"The vocabulary must have at least the {counts.distinct} different tokens of the suggestions, not {size}."
        )
    if not counts.tokens:
        return 0.0
    # expm1 and log1p, since the power loses all its digits if the vocabulary is large.
    expected = -size * math.expm1(counts.tokens * math.log1p(-1 / size)) if size > 1 else 1.0
    return counts.distinct / expected


def vocabulary_size(vocabulary: int | Sized) -> int:
    """Return the size of a vocabulary, given as a number or as the vocabulary itself.

    Raises:
        ValueError: it is a text, such as a model's name.

    >>> vocabulary_size(250_002), vocabulary_size({"yes", "no"})
    (250002, 2)
    """
    if isinstance(vocabulary, str):
        raise ValueError(f"The vocabulary must be its size or the vocabulary itself, not the text {vocabulary!r:.80}.")
    return len(vocabulary) if isinstance(vocabulary, Sized) else int(vocabulary)


def sampled_distinct_n(
    token_lists: Sequence[Sequence[str]],
    n: int,
    size: int,
    samples: int = SAMPLES,
    seed: int = SEED,
    denominator: str = "tokens",
) -> NDArray[np.float64]:
    """Return Dist-n of random samples of the suggestions, each of the same size.

    Args:
        token_lists: the tokens of each suggestion.
        size: suggestions in a sample, drawn without replacement; the same for all systems that are compared.
        samples: number of samples; their mean is the size-controlled Dist-n.
        seed: of the draws; equal seeds give equal samples of as many suggestions.
        denominator: as in `distinct_n`.

    Returns:
        (samples,) values, 0 to 1.

    Raises:
        ValueError: size is below 1 or above the number of suggestions, samples is below 1, or as in `distinct_n`.

    >>> sampled_distinct_n([["yes"], ["yes"], ["yes"]], 1, size=2, samples=3).tolist()
    [0.5, 0.5, 0.5]
    """
    if not 1 <= size <= len(token_lists):
        raise ValueError(f"The size of a sample must be 1 to {len(token_lists)}, all the suggestions, not {size}.")
    if samples < 1:
        raise ValueError(f"At least one sample is needed, not {samples}.")
    figure = _distinct_figure([[tokens] for tokens in token_lists], n, denominator)
    draw, weights = np.random.default_rng(seed), np.zeros((samples, len(token_lists)))
    for row in weights:
        row[draw.choice(len(token_lists), size, replace=False)] = 1
    return np.array([figure(row) for row in weights])


def require_corpus_level(level: str, vocabulary: object = None, sample_size: int | None = None) -> None:
    """Refuse a vocabulary or samples at response level: both apply to the whole corpus."""
    if level != "corpus" and (vocabulary is not None or sample_size is not None):
        raise ValueError(
            "Expectation-adjusted and sampled Dist-n are computed over the corpus: leave out the level, or the "
            "vocabulary and the size of the samples."
        )


def distinct_signature(
    nbest: int,
    tokenizer: Tokenizer,
    language: str,
    chosen: str = "all",
    denominator: str = "tokens",
    level: str = "corpus",
    vocabulary: int | None = None,
    sampling: tuple[int, int, int] | None = None,
    rules: str = "official",
) -> str:
    """Return the signature of Dist-n over texts that were read as in MRS's weighted ROUGE.

    `sent:no` says that a text is one sentence: a dot inside stays on its word, unlike in
    sentence-split text (`sent:punkt-en`), which moves Dist-1. Without a `level` it is the corpus.

    Args:
        language: BCP-47 code.
        chosen: which suggestions were counted: `all`, or the `best` of each example.
        denominator: as in `distinct_n`.
        level: as in `distinct_n`.
        vocabulary: size of EAD's vocabulary; None without EAD.
        sampling: suggestions in a sample, number of samples, seed; None without samples.
        rules: of `mrs_metrics.rouge`, by which the texts were read.

    >>> from mrs_metrics.tokenize import get_tokenizer
    >>> distinct_signature(3, get_tokenizer("en"), "en", "best").rsplit("|", 1)[0]
    'dist_n|rules:mrs|chosen:best|nbest:3|per:tokens|case:lower|tok:treebank-3.8.1|sent:no|lang:en'
    """
    size, samples, seed = sampling or (None, None, None)
    return signature(
        "dist_n", rules=rules_name(rules, tokenizer), chosen=chosen, nbest=nbest, per=denominator, case="lower",
        tok=f"{tokenizer.name}-{tokenizer.version}", sent=tokenizer.sentences, lang=language,
        level=None if level == "corpus" else level, vocab=vocabulary, size=size, samples=samples, seed=seed,
    )  # fmt: skip
