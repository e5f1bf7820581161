"""Weighted ROUGE of reply suggestions: ROUGE-1/6 + ROUGE-2/3 + ROUGE-3/2, best of the suggestions.

Source: Zhang et al. 2021, "A Dataset and Baselines for Multilingual Reply Suggestion", section 3.3. Two sets of rules:

`rules="official"` are those of its evaluation script, which produced all published MRS numbers, but for its sentences:

1. Texts are put into NFC, lower-cased and tokenized (`mrs_metrics.tokenize`). An example whose reference has more than
   100 tokens is skipped.
2. The tokenized text is split at every dot. If only empty parts are left, as for "." and "...", a suggestion
   becomes `<empty>` and a reference is skipped. (". ." does count, because of the white space between its dots. MeCab
   ends its output with white space, so in Japanese dots alone count too.)
3. Suggestions are cut to their first 100 tokens.
4. N-grams are taken over the words of all parts together, as sets: a repeated n-gram counts once. A part that is only
   white space yields one empty word.
5. F1 = 2PR / (P + R + 1e-8), 0 where a set is empty.
6. The suggestion with the highest weighted score counts; the first of several.

The script's tokenizer splits the text into sentences by NLTK's English Punkt model, whose parameters do not come with
this package: with them (`get_tokenizer(language, "punkt", FOLDER)` as the tokenizer) the scores equal the script's.
Without them they do for texts of one sentence in composed characters (NFC, which these rules compose first), and the
signature says `rules:mrs`, not `rules:official`.

Where the official script would fail, or compare two empty texts, the rule is ours: a text without a token counts as
empty in the sense of step 2, in every language, and so does an example without suggestions.

`rules="paper"` replaces steps 2 to 5 by ROUGE-N as its source defines it (Lin 2004, "ROUGE: A Package for Automatic
Evaluation of Summaries", section 2): no length limit, no cut, no split at dots, which are tokens like any other;
n-grams are multisets, and one matches as often as both texts have it (clipped counts); F1 = 2PR / (P + R). A text
without a token is empty: it scores 0 as a suggestion and is skipped as a reference. Both rules agree to 1e-6 on texts
of 1 to 100 tokens without repeated n-grams and without dots.

With both, a perfect match of one token scores 1/6, of two tokens 1/2. So what the references score against themselves,
the test set's ceiling, is below 1: `aggregate` gives it with the scores.

An example may have several references. Then the pair of suggestion and reference with the highest weighted score
counts; of several, that of the first suggestion, then of the first reference. References that would be skipped are left
out. The ceiling is that of the best of them. The signature then has `nrefs` and `multi:best`.
"""

import math
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mrs_metrics.signature import Reference, check_suggestions, count_references, signature
from mrs_metrics.tokenize import Tokenizer, get_tokenizer, ngram_sets, ngrams, numbered, rules_name

MAX_ORDER = 3
WEIGHTS = (1 / 6, 1 / 3, 1 / 2)
MAX_REFERENCE_TOKENS = 100
MAX_HYPOTHESIS_TOKENS = 100
EMPTY = "<empty>"
# Tokenized texts in the cache, without n-grams. Replies repeat, so most are found again; some 10 MB of replies.
_CACHED_TEXTS = 8192


class Prepared(NamedTuple):
    """A text ready to be scored by the official rules.

    Attributes:
        length: tokens before the cut.
        empty: nothing is left of it to score.
        tokens: what Dist-n counts: the tokens after the cut, or `<empty>` alone.
        ngrams: the sets of its distinct n-grams of the orders 1 to 3, empty where the text is empty.
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
        chosen: (n,) index of the chosen suggestion among the example's, -1 without suggestions.
        kept: (n,) index of the example in the input.
        skipped: examples left out, by reason: `reference_too_long` (only by the official rules), `reference_empty`.
        chosen_tokens: n token lists, the chosen suggestions as Dist-n counts them.
        precision: (n, 3) share of the chosen suggestion's n-grams that the reference has, 0 to 1; 0 without n-grams.
        recall: (n, 3) share of the reference's n-grams that the chosen suggestion has, 0 to 1; 0 without n-grams.
        ceiling: (n, 3) F1 of the reference against itself.
        empty_suggestions: suggestions of the kept examples that have nothing to score.
    """

    rouge: NDArray[np.float64]
    weighted: NDArray[np.float64]
    chosen: NDArray[np.int64]
    kept: NDArray[np.int64]
    skipped: dict[str, int]
    chosen_tokens: list[list[str]]
    signature: str
    precision: NDArray[np.float64]
    recall: NDArray[np.float64]
    ceiling: NDArray[np.float64]
    empty_suggestions: int

    @property
    def weighted_ceiling(self) -> NDArray[np.float64]:
        """(n,) weighted score of the reference against itself, 0 to 1."""
        return _weighted(self.ceiling)


def score_examples(
    predictions: Sequence[Sequence[str]],
    references: Sequence[Reference],
    language: str = "en",
    rules: str = "official",
    tokenizer: Tokenizer | None = None,
) -> RougeScores:
    """Score each example's best suggestion against its reference.

    Args:
        predictions: for each example its suggestions, best first; any number, three in MRS.
        references: for each example the reply that was really given, or a list of several.
        language: BCP-47 code; selects the tokenizer.
        rules: `official` or `paper`, see the module's docstring.
        tokenizer: used in place of the language's own, for example `get_tokenizer("en", "punkt")`.

    Raises:
        ValueError: the two differ in length, an entry has the wrong type, or the language or rules are unknown.
        ImportError: Japanese is asked for without its tokenizer installed.

    >>> scores = score_examples([["No.", "yes yes yes"], ["Bye!"]], ["Yes", "..."])
    >>> scores.weighted.round(4).tolist(), scores.chosen.tolist(), scores.kept.tolist(), scores.skipped
    ([0.1667], [1], [0], {'reference_too_long': 0, 'reference_empty': 1})
    """
    if rules not in _RULES:
        raise ValueError(f"The rules of the metric must be one of {sorted(_RULES)}, not {rules!r}.")
    tokenizer = tokenizer or get_tokenizer(language)
    read_text, epsilon, max_reference_tokens = _RULES[rules]
    read = lru_cache(maxsize=_CACHED_TEXTS)(partial(read_text, tokenizer))
    check_suggestions(predictions, references, required=True)
    skipped = {"reference_too_long": 0, "reference_empty": 0}
    positions, rows, sizes, chosen_tokens, empty_suggestions = [], [], [], [], 0
    for index, (suggestions, reference) in enumerate(zip(predictions, references, strict=True)):
        named = [read(text) for text in ((reference,) if isinstance(reference, str) else reference)]
        targets = [text for text in named if not text.empty and text.length <= max_reference_tokens]
        if not targets:
            skipped["reference_empty" if all(text.empty for text in named) else "reference_too_long"] += 1
            continue
        candidates = [read(text) for text in suggestions]
        # Of equal scores the first suggestion's, then the first reference's.
        found = [_best(candidates, target, epsilon) for target in targets]
        best, figures = found[0] if len(found) == 1 else max(found, key=lambda pair: (_sum(pair[1]), -pair[0]))
        positions.append((index, best))
        rows.append(figures)
        sizes.append(max([len(target.words) for target in targets]))
        empty_suggestions += sum([candidate.empty for candidate in candidates])
        chosen_tokens.append(list((candidates[best] if candidates else read("")).tokens))
    kept, indices = np.asarray(positions, dtype=np.int64).reshape(-1, 2).T
    rouge, precision, recall = np.asarray(rows, dtype=np.float64).reshape(-1, 3, MAX_ORDER).transpose(1, 0, 2)
    has_order = np.asarray(sizes, dtype=np.int64)[:, np.newaxis] > np.arange(MAX_ORDER)
    return RougeScores(
        rouge=rouge,
        weighted=_weighted(rouge),
        chosen=indices,
        kept=kept,
        skipped=skipped,
        chosen_tokens=chosen_tokens,
        signature=_signature(
            max(map(len, predictions), default=0), count_references(references), tokenizer, language, rules
        ),
        precision=precision,
        recall=recall,
        ceiling=np.where(has_order, _f1(1.0, 1.0, epsilon), 0.0),
        empty_suggestions=empty_suggestions,
    )


def aggregate(scores: RougeScores) -> dict[str, float]:
    """Average the scores over the examples, as the official script prints them.

    Returns:
        `n` (an int); `rouge1`, `rouge2`, `rouge3` (mean F1s) and `weighted` (the weighted sum of those means, which
        is also the mean of the examples' weighted scores); `ceiling`, the `weighted` that the references reach against
        themselves; `rouge1_precision`, `rouge1_recall` and so on (means), all 0 to 1; `empty_suggestions` (an int).

    Raises:
        ValueError: every example was skipped.

    >>> figures = aggregate(score_examples([["thank you so much"]], ["Thank you!"]))
    >>> figures["n"], figures["rouge1_precision"], round(figures["rouge1_recall"], 4), round(figures["ceiling"], 4)
    (1, 0.5, 0.6667, 1.0)
    """
    n = len(scores.kept)
    if n == 0:
        raise ValueError(f"No examples are left to score; skipped: {scores.skipped}.")
    sums = [column.sum(axis=0) for column in (scores.rouge, scores.precision, scores.recall, scores.ceiling)]
    rouge, precision, recall, ceiling = np.array(sums) / n
    orders = range(1, MAX_ORDER + 1)
    return {
        "n": n,
        **{f"rouge{order}": float(mean) for order, mean in zip(orders, rouge, strict=True)},
        "weighted": float(_weighted(rouge)),
        "ceiling": float(_weighted(ceiling)),
        **{f"rouge{order}_precision": float(mean) for order, mean in zip(orders, precision, strict=True)},
        **{f"rouge{order}_recall": float(mean) for order, mean in zip(orders, recall, strict=True)},
        "empty_suggestions": scores.empty_suggestions,
    }


def _signature(nbest: int, nrefs: int | str, tokenizer: Tokenizer, language: str, rules: str) -> str:
    """`sent:no`: each text counts as one sentence, unlike in the official script (`sent:punkt-en`). `eff:no`: texts
    that are too short for a ROUGE order still get its 0, hence the ceiling below 1."""
    return signature(
        "mrs_rouge", rules=rules_name(rules, tokenizer), nbest=nbest, nrefs=None if nrefs == 1 else nrefs,
        multi=None if nrefs == 1 else "best", case="lower", tok=f"{tokenizer.name}-{tokenizer.version}",
        sent=tokenizer.sentences, lang=language, eff=False,
    )  # fmt: skip


def prepare_official(text: str, tokenizer: Tokenizer) -> Prepared:
    """Tokenize, cut and split one text by the steps 1 to 4 of the module's docstring.

    >>> prepare_official("No. Never!", get_tokenizer("en")).tokens
    ['no.', 'never', '!']
    >>> prepare_official("...", get_tokenizer("en")).tokens
    ['<empty>']
    """
    read = _read_official(tokenizer, text)
    return Prepared(read.length, read.empty, read.tokens, ngram_sets(read.words, MAX_ORDER))


class _Text(NamedTuple):
    """A tokenized text. Its n-grams are computed for each comparison, which is faster than keeping them.

    Attributes:
        length: tokens before the cut.
        empty: nothing is left of it to score.
        tokens: what Dist-n counts: by the official rules as in `Prepared`, by the paper's all tokens.
        repeats: a word occurs twice, so n-grams may, too.
        counted: n-grams count as often as they occur; otherwise once.
    """

    length: int
    empty: bool
    tokens: list[str]
    words: list[str]
    repeats: bool
    counted: bool

    def ngrams(self, order: int) -> Iterable[object]:
        """Return the n-grams; repeated ones are made distinct if they count."""
        grams = ngrams(self.words, order)
        return numbered(grams) if self.counted and self.repeats else grams

    def size(self, order: int) -> int:
        """Return the number of n-grams that count."""
        if self.repeats and not self.counted:
            return len(set(ngrams(self.words, order)))
        return max(0, len(self.words) - order + 1)


def _read_official(tokenizer: Tokenizer, text: str) -> _Text:
    text = text.lower() if rules_name("official", tokenizer) == "official" else _lower(text)
    if single_spaced := tokenizer.split is not None:
        tokens = tokenizer(text)
        spaced = " ".join(tokens)
    else:
        spaced = tokenizer.spaced(text)
        tokens = spaced.split()
    length = len(tokens)
    if not tokens or not spaced.strip("."):
        return _Text(length, True, [EMPTY], [], False, False)
    if length > MAX_HYPOTHESIS_TOKENS:
        tokens = tokens[:MAX_HYPOTHESIS_TOKENS]
        spaced = " ".join(tokens)
    words = tokens
    if "." in spaced:
        if single_spaced and ". ." not in spaced:  # no part is white space only
            words = spaced.replace(".", " ").split()
        else:
            words = [word for part in spaced.split(".") if part for word in part.split() or [""]]
    return _Text(length, False, tokens, words, len(set(words)) < len(words), False)


def _lower(text: str) -> str:
    return (text if text.isascii() else unicodedata.normalize("NFC", text)).lower()


def _read_paper(tokenizer: Tokenizer, text: str) -> _Text:
    tokens = tokenizer(_lower(text))
    return _Text(len(tokens), not tokens, tokens, tokens, len(set(tokens)) < len(tokens), True)


class _Rules(NamedTuple):
    """How a set of rules reads a text, what it adds to the denominator of F1, and the longest reference it keeps."""

    read: Callable[[Tokenizer, str], _Text]
    epsilon: float
    max_reference_tokens: float


EPSILON = 1e-8
_RULES = {
    "official": _Rules(_read_official, EPSILON, MAX_REFERENCE_TOKENS),
    "paper": _Rules(_read_paper, 0.0, math.inf),
}


def _best(candidates: Sequence[_Text], target: _Text, epsilon: float) -> tuple[int, list[float]]:
    """Return the index of the first best candidate and its F1s, precisions and recalls; -1 and zeros for none."""
    best, best_score, best_figures = -1, -1.0, [0.0] * (3 * MAX_ORDER)
    sets: list[frozenset[object]] = []  # the target's n-grams, computed when needed
    for index, candidate in enumerate(candidates):
        figures = [0.0] * (3 * MAX_ORDER)
        for order in range(MAX_ORDER):
            if order == len(sets):
                sets.append(frozenset(target.ngrams(order + 1)))
            overlap = len(sets[order].intersection(candidate.ngrams(order + 1)))
            if not overlap:
                break  # no common n-gram, hence no longer one either
            precision, recall = overlap / candidate.size(order + 1), overlap / len(sets[order])
            figures[order::MAX_ORDER] = _f1(precision, recall, epsilon), precision, recall
        score = _sum(figures)
        if score > best_score:
            best, best_score, best_figures = index, score, figures
    return best, best_figures


def _sum(figures: Sequence[float]) -> float:
    """The weighted score, in the official script's order of operations, so that ties are the same to the last bit."""
    return figures[0] / 6 + figures[1] / 3 + figures[2] / 2


def f1_by_order(hypothesis: Prepared, reference: Prepared) -> tuple[float, ...]:
    """Return the F1s of the orders 1 to 3 by the official rules."""
    f1s = []
    for ours, theirs in zip(hypothesis.ngrams, reference.ngrams, strict=True):
        overlap = len(ours & theirs)
        f1s.append(_f1(overlap / len(ours), overlap / len(theirs), EPSILON) if overlap else 0.0)
    return tuple(f1s)


def _f1(precision: float, recall: float, epsilon: float) -> float:
    return 2.0 * ((precision * recall) / (precision + recall + epsilon))


def _weighted(rouge: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(rouge[..., 0] / 6 + rouge[..., 1] / 3 + rouge[..., 2] / 2)
