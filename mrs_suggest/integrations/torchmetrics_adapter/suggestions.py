"""Weighted ROUGE and Dist-n of reply suggestions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mrs_metrics.distinct import distinct_n, distinct_signature
from mrs_metrics.rouge import RougeScorer, aggregate, prepare_official, score_examples
from mrs_metrics.suggestions import Reference, as_lists, check_suggestions
from mrs_metrics.tokenize import get_tokenizer

from .examples import ExamplesMetric, Indices


class MrsRouge(ExamplesMetric):
    """Weighted ROUGE of each example's best suggestion (`mrs_metrics.rouge`).

    Args:
        language: BCP-47 code, selects the tokenizer.
        rules: `official`, as published MRS scores were computed, or `paper`.
        sentences: `no`, or `punkt`: split texts into sentences first, as the official script does.
        punkt: folder of Punkt's parameters; default: NLTK's, if installed.
        kwargs: torchmetrics' own, such as `process_group`.

    `compute` returns what `mrs_metrics.rouge.aggregate` returns: `n`, `weighted`, `rouge1`, `ceiling` and so on.

    Raises:
        ValueError: language, rules or sentences are unknown.

    >>> metric = MrsRouge()
    >>> metric.update([["No.", "Yes!"]], ["Yes!"])
    >>> round(metric.compute()["weighted"].item(), 4)
    0.5
    """

    def __init__(
        self,
        language: str = "en",
        rules: str = "official",
        sentences: str = "no",
        punkt: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._options = (language, sentences, punkt)
        self._rules = rules
        self._scorer()  # refuses unknown options

    def update(
        self, predictions: Sequence[Sequence[str]], references: Sequence[Reference], indices: Indices | None = None
    ) -> None:
        """Add examples.

        Args:
            predictions: for each example its suggestions, best first.
            references: for each example the real reply, or a list of several.
            indices: for each example its number in the data set; needed for the same figures from several processes as
                from one, since samplers give each an interleaved part and repeat examples to fill the last batch.

        Raises:
            ValueError: the lists differ in length, or an entry has the wrong type.
        """
        check_suggestions(predictions, references, required=True)
        rows = [[list(texts), reference] for texts, reference in zip(predictions, as_lists(references), strict=True)]
        self.keep(rows, indices)

    def figures(self, examples: list[Any]) -> Mapping[str, float]:
        """Means over the examples."""
        scores = self._scorer().score([row[0] for row in examples], [row[1] for row in examples], tokens=False)
        self.signature, self.skipped = scores.signature, scores.skipped
        return aggregate(scores)

    def _scorer(self) -> RougeScorer:
        # Made when it is needed: with its cache, the metric could not be pickled.
        return RougeScorer(self._options[0], self._rules, get_tokenizer(*self._options))


class DistN(ExamplesMetric):
    """Dist-n of suggestions (`mrs_metrics.distinct`).

    Args:
        n: orders to report.
        chosen: `all` suggestions, or the `best` one of each example by weighted ROUGE, which takes references.
        denominator: `tokens` or `ngrams`.
        level: `corpus`, all suggestions together, or `response`, the mean of their own Dist-n.
        language, sentences, punkt, kwargs: as for `MrsRouge`.

    `compute` returns `dist1`, `dist2`, one for each order, and `n`, the suggestions counted.

    Raises:
        ValueError: an option is unknown.

    >>> metric = DistN()
    >>> metric.update([["i do"], ["i do not"]])
    >>> metric.compute()["dist1"].item()
    0.6
    """

    def __init__(
        self,
        language: str = "en",
        n: Sequence[int] = (1, 2),
        chosen: str = "all",
        denominator: str = "tokens",
        level: str = "corpus",
        sentences: str = "no",
        punkt: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if chosen not in ("all", "best"):
            raise ValueError(f"The suggestions chosen for Dist-n must be 'all' or 'best', not {chosen!r}.")
        self._options = (language, sentences, punkt)
        self._orders, self._chosen, self._denominator, self._level = tuple(n), chosen, denominator, level
        get_tokenizer(*self._options)  # refuses unknown options
        for order in self._orders:
            distinct_n([], order, denominator, level)

    def update(
        self,
        predictions: Sequence[Sequence[str]],
        references: Sequence[Reference] | None = None,
        indices: Indices | None = None,
    ) -> None:
        """Add examples; arguments and errors as in `MrsRouge.update`. References only count for `chosen="best"`."""
        check_suggestions(predictions, references, required=self._chosen == "best")
        texts = as_lists(references) if references is not None and self._chosen == "best" else [[]] * len(predictions)
        self.keep([[list(row), own] for row, own in zip(predictions, texts, strict=True)], indices)

    def figures(self, examples: list[Any]) -> Mapping[str, float]:
        """Of the chosen suggestions of all examples."""
        language, tokenizer = self._options[0], get_tokenizer(*self._options)
        predictions, references = [row[0] for row in examples], [row[1] for row in examples]
        if self._chosen == "best":
            scores = score_examples(predictions, references, language, tokenizer=tokenizer)
            tokens, self.skipped = scores.chosen_tokens, scores.skipped
        else:
            tokens = [prepare_official(text, tokenizer).tokens for texts in predictions for text in texts]
        self.signature = distinct_signature(
            max(map(len, predictions), default=0),
            tokenizer,
            language,
            self._chosen,
            self._denominator,
            self._level,
        )
        dist = {f"dist{order}": distinct_n(tokens, order, self._denominator, self._level) for order in self._orders}
        return {"n": len(tokens), **dist}
