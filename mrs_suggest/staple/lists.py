"""Hypotheses as arrays, prompt by prompt, and which of them are accepted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from mrs_metrics.translations_f1 import read_texts
from mrs_suggest.common.errors import InputError
from mrs_suggest.staple.gold import read_gold_split
from mrs_suggest.staple.hypotheses import COLUMNS, Hypotheses
from mrs_suggest.staple.pooling import Floats, Ints, floats, same_data

PER_TOKEN = "log_prob_per_token"
FOLDS = 5  # ours, usual: a fold's fit sees four fifths of the prompts
INNER = 3  # ours: of the folds in a fit, where a threshold or a calibration needs unseen prompts, too
Fitted = TypeVar("Fitted")
NUMBERS = ("rank", "log_prob", "length")  # columns of every file that rules can use


@dataclass(frozen=True, eq=False)
class Lists:
    """The hypotheses of the prompts, n in all.

    Attributes:
        starts: (prompts + 1,) the rows of prompt p are starts[p] to starts[p + 1]; a prompt may be without rows.
        features: name -> (n,), NaN where not known.
    """

    starts: Ints
    features: Mapping[str, Floats]

    @property
    def prompts(self) -> int:
        return len(self.starts) - 1

    @property
    def size(self) -> int:
        return int(self.starts[-1])

    @property
    def prompt(self) -> Ints:
        """(n,) the prompt of each row."""
        return np.repeat(np.arange(self.prompts), np.diff(self.starts))

    @property
    def place(self) -> Ints:
        """(n,) the place of each row in its prompt, from 0."""
        return np.arange(self.size) - np.repeat(self.starts[:-1], np.diff(self.starts))

    def matrix(self, names: Sequence[str]) -> Floats:
        """(n, names) features."""
        return np.stack([self.features[name] for name in names], axis=1) if names else np.empty((self.size, 0))

    def rows_of(self, prompts: Ints) -> Ints:
        parts = [np.arange(self.starts[p], self.starts[p + 1]) for p in prompts.tolist()]
        return np.concatenate([np.empty(0, np.int64), *parts])

    def of(self, prompts: Ints) -> Lists:
        rows = self.rows_of(prompts)
        sizes = np.diff(self.starts)[prompts]
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        return Lists(starts, {name: column[rows] for name, column in self.features.items()})


@dataclass(frozen=True, eq=False)
class Labels:
    """The accepted ones among the hypotheses of `Lists`.

    Attributes:
        accepted: (n,) whether the translation is accepted.
        share: (n,) its share in the weight of all accepted translations of the prompt; 0 where not accepted.
    """

    accepted: NDArray[np.bool_]
    share: Floats

    def of(self, rows: Ints) -> Labels:
        return Labels(self.accepted[rows], self.share[rows])


def lists_of(found: Hypotheses, path: Path | None = None) -> Lists:
    """Hypotheses of one member as arrays: all features, rank, log-probability, length, and the log-probability by the
    number of tokens where the file has no feature of that name. Infinite values count as not known.

    Raises:
        InputError: they have several members, and so several lists per prompt.
    """
    if len(found.members) > 1:
        raise InputError(f"{path}: has {len(found.members)} members; pool them first with `mrs staple combine`.")
    names = [*NUMBERS, *found.features]
    features = {name: floats(found.table[name]) for name in names}
    with np.errstate(divide="ignore", invalid="ignore"):
        features.setdefault(PER_TOKEN, features["log_prob"] / features["length"])
    features = {name: np.where(np.isfinite(column), column, np.nan) for name, column in features.items()}
    sizes = [len(rows) for _, rows in found.by_prompt()]
    return Lists(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), features)


def read_labels(found: Hypotheses, path: Path, data: str) -> tuple[Labels, int]:
    """The accepted ones among pooled hypotheses, by the paper's rules, and the number of prompts in their split.

    Args:
        data: prepared folder or hub id that the hypotheses were decoded from.

    Raises:
        InputError: the data differ from those of the hypotheses, lack a prompt or its translations, or a translation
            comes twice.
    """
    split = found.data.get("split")
    if not split:
        raise InputError(f"{path}: does not name its split; decode it again with `mrs staple decode`.")
    gold = read_gold_split(data, split, found.language)
    if not same_data({**found.data, "split": None, "id": None}, {**gold.source, "split": None, "id": None}):
        raise InputError(f"{path}: its prompts come from other data than {data}; pass the data that were decoded.")
    for key, text in found.prompts.items():
        if gold.prompts.get(key) != text:
            problem = "is not in" if key not in gold.prompts else "has another text in"
            raise InputError(f"{path}: prompt {key!r:.80} {problem} {data}; pass the data that were decoded.")
    ids, texts = found.table["id"].to_pylist(), read_texts(found.table["text"].to_pylist())
    seen = set[tuple[str, str]]()
    total = {key: sum(weights.values()) for key, weights in gold.accepted.items()}
    hits, share = np.zeros(len(ids), bool), np.zeros(len(ids))
    for row, (key, text) in enumerate(zip(ids, texts, strict=True)):
        if (key, text) in seen:
            raise InputError(
                f"{path}, row {row + 1}: {text!r:.80} comes twice for {key}; pool the file first with `mrs staple "
                "combine`."
            )
        seen.add((key, text))
        weight = gold.accepted[key].get(text)
        if weight is not None:
            hits[row], share[row] = True, weight / total[key] if total[key] else 0.0
    return Labels(hits, share), len(gold.rows)


def require_features(lists: Lists, names: Sequence[str], path: Path, asked: str) -> None:
    """Raise InputError if a file lacks a feature, or has no value of it in any row."""
    missing = [name for name in names if name not in lists.features]
    if missing:
        raise InputError(
            f"{path}: lacks the column{'s' * (len(missing) > 1)} {', '.join(missing)}, which {asked} uses; add what is "
            "missing with `mrs staple combine`."
        )
    empty = [name for name in names if lists.size and np.isnan(lists.features[name]).all()]
    if empty:
        raise InputError(f"{path}: the column {empty[0]} has no values, but {asked} uses it; choose another rule.")


def available(found: Hypotheses) -> list[str]:
    """The feature names that `lists_of` knows."""
    return list(dict.fromkeys([*NUMBERS, PER_TOKEN, *(name for name in found.features if name not in COLUMNS.names)]))


def fold_prompts(prompts: int, folds: int, seed: int) -> list[tuple[Ints, Ints]]:
    """The prompts inside and outside of each fit, in their order; each prompt is outside once."""
    order = np.random.default_rng(seed).permutation(prompts)
    parts = [np.sort(order[fold::folds]) for fold in range(folds)]
    return [(np.setdiff1d(np.arange(prompts), part), part) for part in parts]


def left_out(
    lists: Lists,
    gold: Labels,
    fit: Callable[[Lists, Labels], Fitted],
    predict: Callable[[Fitted, Lists], Floats],
    seed: int,
) -> Floats:
    """Predictions by models fitted on other prompts, (n,) or (n, figures); InputError if there is only one prompt."""
    if lists.prompts < 2:
        raise InputError("There are too few prompts to tune on; decode at least 5, better 100 or more.")
    parts = []
    for inside, outside in fold_prompts(lists.prompts, min(INNER, lists.prompts), seed):
        fitted = fit(lists.of(inside), gold.of(lists.rows_of(inside)))
        parts.append((lists.rows_of(outside), predict(fitted, lists.of(outside))))
    found = np.zeros((lists.size, *parts[0][1].shape[1:]))
    for rows, values in parts:
        found[rows] = values
    return found
