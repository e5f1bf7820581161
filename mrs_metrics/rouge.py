"""Weighted ROUGE of reply suggestions: ROUGE-1/6 + ROUGE-2/3 + ROUGE-3/2, best of the suggestions.

Source: Zhang et al. 2021, "A Dataset and Baselines for Multilingual Reply Suggestion", section 3.3, computed by the
rules of its official evaluation script, from which all published MRS numbers come (`rules="official"`):

1. Texts are lower-cased and tokenized (`mrs_metrics.tokenize`). An example whose reference has more than 100 tokens
   is skipped.
2. The tokenized text is split at every dot. Where nothing but empty parts is left, as for "." and "...", a suggestion
   becomes `<empty>` and a reference is skipped. (". ." does count: white space lies between its dots. MeCab ends its
   output with white space, so in Japanese the dots alone count too.)
3. Suggestions are cut to their first 100 tokens.
4. N-grams are taken over the words of all parts together, as sets: a repeated n-gram counts once. A part of white
   space only yields one empty word.
5. F1 = 2PR / (P + R + 1e-8), 0 where a set is empty. So a perfect match of one token scores 1/6, of two tokens 1/2:
   score the references against themselves to learn the ceiling of a test set.
6. The suggestion with the highest weighted score counts; the first of several.

Where the official script would fail or score nothing against nothing, this is ours: a text without any token counts as
step 2's empty one in every language, and so does an example without suggestions.

Differs from `rouge_score` (Lin 2004): no stemming, counts are not clipped but binary, all scripts count.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mrs_metrics.ngrams import ngram_sets
from mrs_metrics.signature import signature
from mrs_metrics.tokenize import Tokenizer, get_tokenizer

MAX_ORDER = 3
WEIGHTS = (1 / 6, 1 / 3, 1 / 2)
MAX_REFERENCE_TOKENS = 100
MAX_HYPOTHESIS_TOKENS = 100
EMPTY = "<empty>"
# Texts kept with their n-grams while scoring. Replies repeat, so most are found again; some 60 MB at the very most.
_CACHED_TEXTS = 8192


class Prepared(NamedTuple):
    """A text ready to be scored.

    Attributes:
        length: tokens before the cut.
        empty: nothing is left of it to score.
        tokens: what Dist-n counts: the tokens after the cut, or `<empty>` alone.
        ngrams: the sets of its distinct n-grams of the orders 1 to 3, empty sets where the text is empty.
    """

    length: int
    empty: bool
    tokens: list[str]
    ngrams: tuple[frozenset[tuple[str, ...]], ...]


@dataclass(frozen=True, eq=False)
class RougeScores:
    """Scores of the n examples that were kept, one row each; statistics stay apart from their aggregation.

    Attributes:
        rouge: (n, 3) F1 of ROUGE-1, ROUGE-2 and ROUGE-3 of the chosen suggestion, each 0 to 1.
        weighted: (n,) their weighted sum, 0 to 1.
        chosen: (n,) index of the chosen suggestion among the example's, -1 where it has none.
        kept: (n,) index of the example in the input.
        skipped: examples left out, by reason: `reference_too_long`, `reference_empty`.
        chosen_tokens: n token lists, the chosen suggestions as Dist-n counts them.
        signature: how the scores were computed.
    """

    rouge: NDArray[np.float64]
    weighted: NDArray[np.float64]
    chosen: NDArray[np.int64]
    kept: NDArray[np.int64]
    skipped: dict[str, int]
    chosen_tokens: list[list[str]]
    signature: str


def score_examples(
    predictions: Sequence[Sequence[str]],
    references: Sequence[str],
    language: str = "en",
    rules: str = "official",
    tokenizer: Tokenizer | None = None,
) -> RougeScores:
    """Score each example's best suggestion against its reference.

    Args:
        predictions: for each example its suggestions, best first; any number, three in MRS.
        references: for each example the reply that was really given.
        language: BCP-47 code; selects the tokenizer.
        rules: `official`, see the module's docstring.
        tokenizer: used in place of the language's own.

    Raises:
        ValueError: the two differ in length, an entry has the wrong type, or the language or rules are unknown.
        ImportError: Japanese is asked for without its tokenizer installed.

    >>> scores = score_examples([["No.", "yes yes yes"], ["Bye!"]], ["Yes", "..."])
    >>> scores.weighted.round(4).tolist(), scores.chosen.tolist(), scores.kept.tolist(), scores.skipped
    ([0.1667], [1], [0], {'reference_too_long': 0, 'reference_empty': 1})
    """
    prepare_by = _RULES.get(rules)
    if prepare_by is None:
        raise ValueError(f"The rules of the metric must be one of {sorted(_RULES)}, not {rules!r}.")
    _check_texts(predictions, references)
    tokenizer = tokenizer or get_tokenizer(language)
    prepare = lru_cache(maxsize=_CACHED_TEXTS)(partial(prepare_by, tokenizer=tokenizer))

    skipped = {"reference_too_long": 0, "reference_empty": 0}
    kept: list[int] = []
    chosen: list[int] = []
    rows: list[tuple[float, ...]] = []
    chosen_tokens: list[list[str]] = []
    for index, (suggestions, reference) in enumerate(zip(predictions, references, strict=True)):
        target = prepare(reference)
        if target.length > MAX_REFERENCE_TOKENS or target.empty:
            skipped["reference_empty" if target.empty else "reference_too_long"] += 1
            continue
        candidates = [prepare(text) for text in suggestions]
        best, row = _best(candidates, target)
        kept.append(index)
        chosen.append(best)
        rows.append(row)
        chosen_tokens.append(list(candidates[best].tokens) if candidates else [EMPTY])
    rouge = np.asarray(rows, dtype=np.float64).reshape(-1, MAX_ORDER)
    return RougeScores(
        rouge=rouge,
        weighted=_weighted(rouge),
        chosen=np.asarray(chosen, dtype=np.int64),
        kept=np.asarray(kept, dtype=np.int64),
        skipped=skipped,
        chosen_tokens=chosen_tokens,
        signature=rouge_signature(max(map(len, predictions), default=0), tokenizer, language, rules),
    )


def aggregate(scores: RougeScores) -> dict[str, float]:
    """Average the scores over the examples, as the official script prints them.

    Returns:
        `n` (an int), `rouge1`, `rouge2`, `rouge3` (mean F1s) and `weighted` (the weighted sum of those means, which
        is also the mean of the examples' weighted scores), all 0 to 1.

    Raises:
        ValueError: every example was skipped.

    >>> aggregate(score_examples([["thank you so much"]], ["Thank you!"]))["n"]
    1
    """
    n = len(scores.kept)
    if n == 0:
        raise ValueError(f"There is no example left to score; skipped were {scores.skipped}.")
    means = scores.rouge.mean(axis=0)
    named = {f"rouge{order}": float(mean) for order, mean in enumerate(means, start=1)}
    return {"n": n, **named, "weighted": float(_weighted(means))}


def rouge_signature(nbest: int, tokenizer: Tokenizer, language: str, rules: str = "official") -> str:
    """Return the signature of a weighted ROUGE.

    `eff:no` says that texts too short for a ROUGE order still get its 0, hence the ceiling below 1.

    >>> rouge_signature(3, get_tokenizer("en"), "en").rsplit("|", 1)[0]
    'mrs_rouge|rules:official|nbest:3|case:lower|tok:treebank-3.8.1|lang:en|eff:no'
    """
    tok = f"{tokenizer.name}-{tokenizer.version}"
    return signature("mrs_rouge", rules=rules, nbest=nbest, case="lower", tok=tok, lang=language, eff=False)


def prepare_official(text: str, tokenizer: Tokenizer) -> Prepared:
    """Tokenize, cut and split one text by the steps 1 to 4 of the module's docstring.

    >>> prepare_official("No. Never!", get_tokenizer("en")).tokens
    ['no.', 'never', '!']
    >>> prepare_official("...", get_tokenizer("en")).tokens
    ['<empty>']
    """
    spaced = tokenizer.spaced(text.lower())
    tokens = spaced.split()
    if not tokens or not spaced.strip("."):
        return Prepared(len(tokens), True, [EMPTY], (frozenset(),) * MAX_ORDER)
    length = len(tokens)
    if length > MAX_HYPOTHESIS_TOKENS:
        tokens = tokens[:MAX_HYPOTHESIS_TOKENS]
        spaced = " ".join(tokens)
    words = tokens
    if "." in spaced:
        words = [word for part in spaced.split(".") if part for word in part.split() or [""]]
    return Prepared(length, False, tokens, ngram_sets(words, MAX_ORDER))


# How each set of rules reads a text. The paper's own reading joins here.
_RULES = {"official": prepare_official}


def _best(candidates: Sequence[Prepared], target: Prepared) -> tuple[int, tuple[float, ...]]:
    """Return the index of the first best candidate and its F1s; -1 and zeros where there is none."""
    best, best_score, best_row = -1, -1.0, (0.0,) * MAX_ORDER
    for index, candidate in enumerate(candidates):
        row = _f1s(candidate, target)
        # In the official script's order of operations, so that ties fall the same way to the last bit.
        score = row[0] / 6 + row[1] / 3 + row[2] / 2
        if score > best_score:
            best, best_score, best_row = index, score, row
    return best, best_row


def _f1s(hypothesis: Prepared, reference: Prepared) -> tuple[float, ...]:
    if hypothesis.ngrams[0].isdisjoint(reference.ngrams[0]):
        return (0.0,) * MAX_ORDER  # without a common word there is no longer common n-gram either
    return tuple(map(_f1, hypothesis.ngrams, reference.ngrams))


def _f1(hypothesis: frozenset[tuple[str, ...]], reference: frozenset[tuple[str, ...]]) -> float:
    overlap = len(hypothesis & reference)
    if not overlap:
        return 0.0
    precision, recall = overlap / len(hypothesis), overlap / len(reference)
    return 2.0 * ((precision * recall) / (precision + recall + 1e-8))


def _weighted(rouge: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(rouge[..., 0] / 6 + rouge[..., 1] / 3 + rouge[..., 2] / 2)


def _check_texts(predictions: Sequence[Sequence[str]], references: Sequence[str]) -> None:
    if isinstance(references, str) or isinstance(predictions, str):
        raise ValueError("Predictions and references must be lists with one entry for each example, not one text.")
    if len(predictions) != len(references):
        raise ValueError(
            f"Predictions and references must have one entry for each example, "
            f"but there are {len(predictions)} predictions and {len(references)} references."
        )
    for index, (suggestions, reference) in enumerate(zip(predictions, references, strict=True)):
        if not isinstance(reference, str):
            raise ValueError(f"The reference of example {index} must be a text, not {type(reference).__name__}.")
        listed = isinstance(suggestions, Iterable) and not isinstance(suggestions, str)
        if not listed or not all(isinstance(text, str) for text in suggestions):
            raise ValueError(f"The predictions of example {index} must be a list of texts, not {suggestions!r:.80}.")
