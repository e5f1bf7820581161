"""Weighted F1 of sets of translations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mrs_metrics.suggestions import check_lists
from mrs_metrics.translations_f1 import Row, Translation, aggregate, score_translations, weighted_f1_signature

from .examples import ExamplesMetric, Indices


class WeightedF1(ExamplesMetric):
    """Weighted macro F1 and its relatives (`mrs_metrics.translations_f1`).

    Args:
        rules: `paper`, or `official`: as the task's scorer counts.
        kwargs: torchmetrics' own, such as `process_group`.

    `compute` returns what `mrs_metrics.translations_f1.aggregate` returns: `weighted_macro_f1`, `n` and so on.

    Raises:
        ValueError: the rules are unknown.

    >>> metric = WeightedF1()
    >>> accepted = [{"text": "Sim, claro.", "weight": 0.75}, {"text": "Sim!", "weight": 0.25}]
    >>> metric.update([["sim claro", "não"]], [accepted])
    >>> metric.compute()["weighted_macro_f1"].item()
    0.6
    """

    def __init__(self, rules: str = "paper", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._rules = rules
        weighted_f1_signature(rules)  # refuses unknown rules

    def update(
        self,
        predictions: Sequence[Sequence[str]],
        references: Sequence[Sequence[Translation]],
        indices: Indices | None = None,
    ) -> None:
        """Add prompts.

        Args:
            predictions: for each prompt its predicted translations.
            references: for each prompt its accepted ones, `{"text": ..., "weight": ...}`; a prompt without any is not
                scored.
            indices: as in `MrsRouge.update`.

        Raises:
            ValueError: the lists differ in length, or an entry has the wrong type.
        """
        check_lists(predictions, references, required=True)
        if len(predictions) != len(references):
            raise ValueError(
                "Predictions and references must have one entry for each prompt, "
                f"but there are {len(predictions)} predictions and {len(references)} references."
            )
        prompts: list[Any] = [[texts, accepted] for texts, accepted in zip(predictions, references, strict=True)]
        if any(len(accepted) for accepted in references):
            _score(prompts, "paper")  # refuses entries of the wrong type; the official rules need the prompts before
        as_json = [
            [list(texts), [{"text": entry["text"], "weight": float(entry["weight"])} for entry in accepted]]
            for texts, accepted in prompts
        ]
        self.keep(as_json, indices)

    def figures(self, examples: list[Any]) -> Mapping[str, float]:
        """Over all prompts."""
        scores = _score(examples, self._rules)
        self.signature = scores.signature
        return aggregate(scores)


def _score(prompts: Sequence[Any], rules: str) -> Any:
    rows: list[Row] = [
        {"id": str(number), "translations": accepted} for number, (_, accepted) in enumerate(prompts) if accepted
    ]
    return score_translations(rows, {str(number): texts for number, (texts, _) in enumerate(prompts)}, rules)
