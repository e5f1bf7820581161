"""Figures of a suggester on a data set."""

from collections.abc import Mapping
from typing import Any

from mrs_metrics.distinct import distinct_n
from mrs_metrics.rouge import aggregate, score_examples
from mrs_metrics.significance import bootstrap_interval
from mrs_suggest.common.errors import InputError


def figures_of(suggester: Any, dataset: Any, language: str | None) -> dict[str, dict[str, Any]]:
    """As `Suggester.evaluate`, of a `Suggester` as it is."""
    rows = dataset["test"] if isinstance(dataset, Mapping) and "test" in dataset else dataset
    columns = list(getattr(rows, "column_names", None) or rows)
    if missing := [name for name in ("message", "reply") if name not in columns]:
        raise InputError(f"dataset: expected the column {missing[0]!r}, found {', '.join(columns)}.")
    own = language or (suggester.languages[0] if len(suggester.languages) == 1 else None)
    if "language" not in columns and own is None:
        raise InputError(f"dataset: has no `language` column; pass language, one of {' '.join(suggester.languages)}.")
    codes = rows["language"][:] if "language" in columns else [own] * len(rows["message"])
    pairs: dict[str, list[tuple[str, str]]] = {}
    for code, message, reply in zip(codes, rows["message"][:], rows["reply"][:], strict=True):
        pairs.setdefault(code, []).append((message, reply))
    figures = {}
    for code, some in pairs.items():
        answers = suggester.suggest([message for message, _ in some], code)
        scores = score_examples([answer.replies for answer in answers], [reply for _, reply in some], language=code)
        found = aggregate(scores)
        tokens = scores.chosen_tokens
        figures[code] = {
            "n": len(some),
            "weighted": found["weighted"],
            "weighted_interval": bootstrap_interval(
                scores.weighted, units=[some[place][0] for place in scores.kept]
            ).ends,
            "ceiling": float(scores.weighted_ceiling.mean()),
            "dist1": distinct_n(tokens, 1),
            "dist2": distinct_n(tokens, 2),
            "signature": scores.signature,
        }
    return figures
