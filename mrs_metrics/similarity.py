"""Self-ROUGE: how similar the suggestions of one message are, the opposite of diversity.

For each pair of the suggestions of a message, weighted ROUGE (ROUGE-1/6 + ROUGE-2/3 + ROUGE-3/2, F1; Zhang et al. 2021,
section 3.3) of one against the other; F1 is symmetric. The mean over the pairs is the similarity of the message, the
mean over the messages the figure. A system that suggests three wordings of one reply leaves its user no choice, though
it may score well against the reference.

1. Texts are read as in `mrs_metrics.rouge` (lower case, tokens, split at dots, cut at 100 tokens, n-grams as sets, 1e-8
   in F1's denominator). A text of dots only, or without a token, reads as the one token `<empty>`, as Dist-n counts it:
   two empty suggestions are equal, an empty and a non-empty one are not.
2. A message with fewer than two suggestions has no pairs: it is skipped and counted.
3. `self_rouge` is on the scale of weighted ROUGE, where equal texts of one token reach 1/6, of two tokens 1/2.
   `normalised` divides the score of each pair by what equal texts with its orders would reach, the orders for which
   either text has an n-gram. So it is 1 if both have the same n-grams, however short, and 0 if they share no word.
   An order that only one of the two has counts with its 0.

A system that gives everyone the same three different replies has a low Self-ROUGE and a low Dist-n. Towle and Zhou 2023
("Model-based simulation for optimising smart reply") report a Self-ROUGE; the normalisation was chosen here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from mrs_metrics.rouge import MAX_ORDER, WEIGHTS, Prepared, f1_by_order, prepare_official
from mrs_metrics.signature import check_suggestions, signature
from mrs_metrics.tokenize import Tokenizer, get_tokenizer, ngram_sets, rules_name

_CACHED_TEXTS = 8192  # replies repeat
_F1_OF_EQUALS = 2 / (1 + 1 + 1e-8)  # as the official rules have it


@dataclass(frozen=True, eq=False)
class SimilarityScores:
    """Scores of the n examples with two or more suggestions; statistics stay apart from their aggregation.

    Attributes:
        weighted: (n,) mean weighted ROUGE over the pairs of the example's suggestions, 0 to 1.
        normalised: (n,) the same relative to its ceiling, 0 to 1.
        pairs: (n,) number of pairs.
        kept: (n,) index of the example in the input.
        skipped: examples left out, by reason: `fewer_than_two`.
        empty: suggestions that read as `<empty>`, among the kept examples.
    """

    weighted: NDArray[np.float64]
    normalised: NDArray[np.float64]
    pairs: NDArray[np.int64]
    kept: NDArray[np.int64]
    skipped: dict[str, int]
    empty: int
    signature: str


def score_similarity(
    predictions: Sequence[Sequence[str]], language: str = "en", tokenizer: Tokenizer | None = None
) -> SimilarityScores:
    """Compare the suggestions of each example with each other.

    Args:
        predictions: for each example its suggestions, in any order.
        language: BCP-47 code; selects the tokenizer.
        tokenizer: used in place of the language's own.

    Raises:
        ValueError: an entry has the wrong type, or the language is unknown.
        ImportError: Japanese is asked for without its tokenizer installed.

    >>> scores = score_similarity([["Yes", "yes", "No"], ["Thanks a lot!", "Thanks a lot!"], ["Bye"]])
    >>> scores.weighted.round(4).tolist(), scores.normalised.round(4).tolist(), scores.skipped
    ([0.0556, 1.0], [0.3333, 1.0], {'fewer_than_two': 1})
    """
    check_suggestions(predictions)
    tokens_of = tokenizer or get_tokenizer(language)

    @lru_cache(maxsize=_CACHED_TEXTS)
    def prepare(text: str) -> Prepared:
        prepared = prepare_official(text, tokens_of)
        return prepared._replace(ngrams=ngram_sets(prepared.tokens, MAX_ORDER)) if prepared.empty else prepared

    rows: list[tuple[float, float]] = []
    pairs: list[int] = []
    kept: list[int] = []
    empty = 0
    for index, suggestions in enumerate(predictions):
        if len(suggestions) < 2:
            continue
        texts = [prepare(text) for text in suggestions]
        scored = [_pair(a, b) for a, b in combinations(texts, 2)]
        rows.append((sum(raw for raw, _ in scored) / len(scored), sum(share for _, share in scored) / len(scored)))
        pairs.append(len(scored))
        kept.append(index)
        empty += sum(text.empty for text in texts)
    table = np.array(rows, dtype=np.float64).reshape(-1, 2)
    read = {"case": "lower", "tok": f"{tokens_of.name}-{tokens_of.version}", "sent": tokens_of.sentences}
    rules, nbest = rules_name("official", tokens_of), max(map(len, predictions), default=0)
    return SimilarityScores(
        weighted=table[:, 0],
        normalised=table[:, 1],
        pairs=np.array(pairs, dtype=np.int64),
        kept=np.array(kept, dtype=np.int64),
        skipped={"fewer_than_two": len(predictions) - len(kept)},
        empty=empty,
        signature=signature("self_rouge", rules=rules, pairs="all", nbest=nbest, **read, lang=language, empty="token"),
    )


def aggregate(scores: SimilarityScores) -> dict[str, float]:
    """Average the scores over the examples.

    Returns:
        `n` and `empty` (ints), `self_rouge` and `normalised`, 0 (nothing in common) to 1.

    Raises:
        ValueError: no example has two suggestions.

    >>> aggregate(score_similarity([["one two three", "four five six"]]))["self_rouge"]
    0.0
    """
    n = len(scores.kept)
    if n == 0:
        raise ValueError(f"No example has two suggestions to compare; skipped: {scores.skipped}.")
    return {
        "n": n,
        "self_rouge": float(scores.weighted.mean()),
        "normalised": float(scores.normalised.mean()),
        "empty": scores.empty,
    }


def _pair(a: Prepared, b: Prepared) -> tuple[float, float]:
    """The weighted ROUGE of a pair, and its share of what equal texts with its orders would reach."""
    score = sum(weight * f1 for weight, f1 in zip(WEIGHTS, f1_by_order(a, b), strict=True))
    ceiling = sum(weight for weight, *grams in zip(WEIGHTS, a.ngrams, b.ngrams, strict=True) if any(grams))
    return score, min(1.0, score / (ceiling * _F1_OF_EQUALS))  # rounding may pass 1
