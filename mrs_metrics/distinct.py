"""Dist-n: how many different n-grams the suggestions hold, relative to their length.

Source: Li et al. 2016, "A Diversity-Promoting Objective Function for Neural Conversation Models", which scales the
number of distinct uni- and bigrams by the number of generated tokens. N-grams do not cross from one suggestion to the
next.

MRS's official script counts the chosen suggestions only and fails on its division, by a variable that it never sets;
its counts are what `distinct_counts` gives on `RougeScores.chosen_tokens`. Dist-n falls as the text grows, so compare
systems on the same examples only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mrs_metrics.ngrams import ngrams
from mrs_metrics.signature import signature
from mrs_metrics.tokenize import Tokenizer

DENOMINATORS = ("tokens", "ngrams")


@dataclass(frozen=True)
class DistinctCounts:
    """What Dist-n is made of: distinct n-grams, all n-grams, all tokens."""

    distinct: int
    ngrams: int
    tokens: int

    def ratio(self, denominator: str = "tokens") -> float:
        """Return Dist-n, 0 to 1; 0 where there is nothing to divide by.

        Raises:
            ValueError: the denominator is neither `tokens` nor `ngrams`.
        """
        if denominator not in DENOMINATORS:
            raise ValueError(f"The denominator of Dist-n must be one of {list(DENOMINATORS)}, not {denominator!r}.")
        total = self.tokens if denominator == "tokens" else self.ngrams
        return self.distinct / total if total else 0.0


def distinct_counts(token_lists: Iterable[Sequence[str]], n: int) -> DistinctCounts:
    """Count the distinct n-grams, all n-grams and all tokens of the token lists.

    Raises:
        ValueError: n is below 1, or an entry is one text in place of its tokens.

    >>> distinct_counts([["i", "do"], ["i", "do", "not"]], 2)
    DistinctCounts(distinct=2, ngrams=3, tokens=5)
    """
    if n < 1:
        raise ValueError(f"The n of Dist-n must be 1 or more, not {n}.")
    distinct: set[tuple[str, ...]] = set()
    n_grams = n_tokens = 0
    for tokens in token_lists:
        if isinstance(tokens, str):
            raise ValueError(f"Dist-n counts lists of tokens, but it was given the text {tokens!r:.80}.")
        distinct.update(ngrams(tokens, n))
        n_grams += max(0, len(tokens) - n + 1)
        n_tokens += len(tokens)
    return DistinctCounts(len(distinct), n_grams, n_tokens)


def distinct_n(token_lists: Iterable[Sequence[str]], n: int, denominator: str = "tokens") -> float:
    """Return Dist-n of the token lists, 0 to 1; 0 where they hold no token.

    Args:
        token_lists: the tokens of each suggestion.
        n: order of the n-grams, 1 for Dist-1.
        denominator: `tokens`, as Li et al. scale it, or `ngrams`, so that all-different text scores 1 for every n.

    Raises:
        ValueError: n is below 1, the denominator is unknown, or an entry is one text in place of its tokens.

    >>> distinct_n([["i", "do"], ["i", "do", "not"]], 1)
    0.6
    """
    return distinct_counts(token_lists, n).ratio(denominator)


def distinct_signature(
    nbest: int, tokenizer: Tokenizer, language: str, chosen: str = "all", denominator: str = "tokens"
) -> str:
    """Return the signature of Dist-n over texts that were read as in MRS's weighted ROUGE.

    `sent:no` says that a text is one sentence: a dot inside stays on its word, which moves Dist-1 (17 to 37 % against
    sentence-split text).

    >>> from mrs_metrics.tokenize import get_tokenizer
    >>> distinct_signature(3, get_tokenizer("en"), "en", "best").rsplit("|", 1)[0]
    'dist_n|rules:official|chosen:best|nbest:3|per:tokens|case:lower|tok:treebank-3.8.1|sent:no|lang:en'
    """
    tok = f"{tokenizer.name}-{tokenizer.version}"
    return signature(
        "dist_n",
        rules="official",
        chosen=chosen,
        nbest=nbest,
        per=denominator,
        case="lower",
        tok=tok,
        sent=False,
        lang=language,
    )
