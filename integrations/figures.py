"""From what was logged for each example to the figures, by the functions that `mrs score` and the runs call.

Harnesses shuffle examples or spread them over processes. A sum of fractions depends on their order in the last digit,
so every record has its place in the data, and the figures are computed in that order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from mrs_evaluation.choice_analysis import accuracy
from mrs_evaluation.choice_answers import Answers
from mrs_metrics.distinct import distinct_n
from mrs_metrics.rouge import aggregate as rouge_figures
from mrs_metrics.rouge import score_examples
from mrs_metrics.similarity import aggregate as similarity_figures
from mrs_metrics.similarity import score_similarity
from mrs_metrics.translations_f1 import Row, score_translations
from mrs_metrics.translations_f1 import aggregate as f1_figures


class Suggested(NamedTuple):
    """One message's suggestions: 1 to 3 texts; `index` is its place in the data."""

    index: int
    language: str
    message: str
    reference: str
    suggestions: tuple[str, ...]


class Chosen(NamedTuple):
    """One question's answer; both are 0 or 1."""

    index: int
    gold: int
    predicted: int


class Translated(NamedTuple):
    """One prompt's translations: the accepted ones with their weights, and the predicted ones."""

    index: int
    prompt_id: str
    accepted: tuple[tuple[str, float], ...]
    predicted: tuple[str, ...]


def suggestion_figures(records: Iterable[Suggested]) -> dict[str, float]:
    """`weighted_rouge` (mrs_rouge by the official rules), `dist1`, `dist2` (of the best suggestions), `self_rouge`.

    `self_rouge` is nan where no example has two suggestions.

    Raises:
        ValueError: there is no record, or the languages differ.
    """
    known = (Suggested(*record[:-1], tuple(record[-1])) for record in records)
    return dict(_suggestion_figures(tuple(sorted(known, key=_place))))


def choice_accuracy(records: Iterable[Chosen]) -> float:
    """The share of right answers.

    Raises:
        ValueError: there is no record.
    """
    _, gold, predicted = np.array(sorted(map(tuple, records)), dtype=np.int64).T
    return accuracy(Answers(np.arange(len(gold)), gold, predicted, None, 2)).value


def weighted_macro_f1(records: Iterable[Translated]) -> float:
    """STAPLE's weighted F1 by the paper's rules, the mean over the prompts.

    Raises:
        ValueError: there is no record, or a prompt without accepted translations.
    """
    ordered = sorted((Translated(*record) for record in records), key=_place)
    rows: list[Row] = [
        {"id": record.prompt_id, "translations": [{"text": text, "weight": weight} for text, weight in record.accepted]}
        for record in ordered
    ]
    scores = score_translations(rows, {record.prompt_id: record.predicted for record in ordered})
    return f1_figures(scores)["weighted_macro_f1"]


@lru_cache(maxsize=1)  # a harness asks for one figure after the other
def _suggestion_figures(records: tuple[Suggested, ...]) -> tuple[tuple[str, float], ...]:
    languages = {record.language for record in records}
    if len(languages) != 1:
        raise ValueError(f"Figures are of one language, not of {' '.join(sorted(languages)) or 'none'}.")
    (language,) = languages
    suggestions = [record.suggestions for record in records]
    scores = score_examples(suggestions, [record.reference for record in records], language)
    several = [texts for texts in suggestions if len(texts) > 1]
    alike = similarity_figures(score_similarity(several, language))["self_rouge"] if several else float("nan")
    dist = ((f"dist{n}", distinct_n(scores.chosen_tokens, n)) for n in (1, 2))
    return (("weighted_rouge", rouge_figures(scores)["weighted"]), *dist, ("self_rouge", alike))


def _place(record: Sequence[Any]) -> Any:
    return record[0]
