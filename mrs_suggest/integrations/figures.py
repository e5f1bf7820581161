"""From what was logged for each example to the figures, by the functions that `mrs score` and the runs call.

Harnesses shuffle examples or spread them over processes. A sum of fractions depends on their order in the last digit,
so every record has its place in the data, and the figures are computed in that order.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import TypedDict

import numpy as np

from mrs_metrics.distinct import distinct_n
from mrs_metrics.rouge import aggregate as rouge_figures
from mrs_metrics.rouge import score_examples
from mrs_metrics.similarity import aggregate as similarity_figures
from mrs_metrics.similarity import score_similarity
from mrs_metrics.translations_f1 import Translation, score_translations
from mrs_metrics.translations_f1 import aggregate as f1_figures
from mrs_suggest.evaluation.choice.analysis import accuracy
from mrs_suggest.evaluation.choice.answers import Answers


class Suggested(TypedDict):
    """One message's 1 to 3 suggestions (a single empty text without any); `index` is its place in the data."""

    index: int
    language: str
    message: str
    reference: str
    suggestions: list[str]


class Chosen(TypedDict):
    """One question's answers, 0 or 1: by the log-probability of the choices, and by that per byte of their text."""

    index: int
    gold: int
    accuracy: int
    accuracy_bytes: int


class Translated(TypedDict):
    """One prompt's translations: the accepted ones with their weights, and the predicted ones."""

    index: int
    id: str
    translations: list[Translation]
    predicted: list[str]


def suggestion_figures(records: Iterable[Suggested]) -> dict[str, float]:
    """The figures of `mrs score`, and how much was answered.

    Returns:
        `weighted_rouge` (mrs_rouge by the official rules, `sent:no`), `dist1` and `dist2` (of the best suggestions),
        `self_rouge` (nan where no example has two suggestions), and `replies`, the mean number of suggestions that are
        not empty.

    Raises:
        ValueError: no record is given, or the languages differ.
    """
    rows = sorted(records, key=_place)
    languages = {row["language"] for row in rows}
    if len(languages) != 1:
        raise ValueError(f"Figures are of one language, not of {' '.join(sorted(languages)) or 'none'}.")
    pairs = tuple((tuple(row["suggestions"]), row["reference"]) for row in rows)
    return dict(_suggestion_figures(languages.pop(), pairs))


def choice_accuracy(records: Iterable[Chosen], by: str = "accuracy") -> float:
    """The share of right answers, `by` being `accuracy` or `accuracy_bytes`; ValueError without a record."""
    rows = sorted(records, key=_place)
    index, gold, chosen = np.array([(row["index"], row["gold"], row[by]) for row in rows], dtype=np.int64).T  # type: ignore[literal-required]
    return accuracy(Answers(index, gold, chosen, None, 2)).value


def translation_figures(records: Iterable[Translated]) -> dict[str, float]:
    """`weighted_f1`, the mean over prompts by the paper's rules, and `predicted`, the mean number of translations."""
    rows = sorted(records, key=_place)
    scores = score_translations(
        [{"id": row["id"], "translations": row["translations"]} for row in rows],
        {row["id"]: row["predicted"] for row in rows},
    )
    counts = [len(row["predicted"]) for row in rows]
    return {"weighted_f1": f1_figures(scores)["weighted_macro_f1"], "predicted": float(np.mean(counts))}


@lru_cache(maxsize=1)  # a harness asks for one figure after the other
def _suggestion_figures(language: str, pairs: tuple[tuple[tuple[str, ...], str], ...]) -> tuple[tuple[str, float], ...]:
    suggestions = [texts for texts, _ in pairs]
    scores = score_examples(suggestions, [reference for _, reference in pairs], language)
    several = [texts for texts in suggestions if len(texts) > 1]
    alike = similarity_figures(score_similarity(several, language))["self_rouge"] if several else float("nan")
    return (
        ("weighted_rouge", rouge_figures(scores)["weighted"]),
        *((f"dist{n}", distinct_n(scores.chosen_tokens, n)) for n in (1, 2)),
        ("self_rouge", alike),
        ("replies", float(np.mean([sum(map(bool, texts)) for texts in suggestions]))),
    )


def _place(record: Suggested | Chosen | Translated) -> int:
    return record["index"]
