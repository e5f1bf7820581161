"""Hypotheses as arrays, prompt by prompt, and what the accepted translations say of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mrs_metrics.translations_f1 import read_texts
from mrs_suggest.common.errors import InputError
from mrs_suggest.evaluation.scores.score_staple import read_accepted
from mrs_suggest.staple.hypotheses import COLUMNS, Hypotheses
from mrs_suggest.staple.pooling import Floats, Ints, floats, same_data

PER_TOKEN = "log_prob_per_token"
NUMBERS = ("rank", "log_prob", "length")  # columns of every file that rules can use


@dataclass(frozen=True, eq=False)
class Lists:
    """The hypotheses of the prompts, n in all.

    Attributes:
        starts: (prompts + 1,) the rows of prompt p are starts[p] to starts[p + 1]; a prompt may have none.
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

    def matrix(self, names: Sequence[str]) -> Floats:
        """(n, names) features."""
        return np.stack([self.features[name] for name in names], axis=1) if names else np.empty((self.size, 0))

    def rows_of(self, prompts: Ints) -> Ints:
        """The rows of some prompts."""
        parts = [np.arange(self.starts[p], self.starts[p + 1]) for p in prompts.tolist()]
        return np.concatenate([np.empty(0, np.int64), *parts])

    def of(self, prompts: Ints) -> Lists:
        """The lists of some prompts, in the order given."""
        rows = self.rows_of(prompts)
        sizes = np.diff(self.starts)[prompts]
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        return Lists(starts, {name: column[rows] for name, column in self.features.items()})


@dataclass(frozen=True, eq=False)
class Gold:
    """What is accepted among the hypotheses of `Lists`.

    Attributes:
        accepted: (n,) whether the translation is accepted.
        share: (n,) its share in the weight of all accepted translations of the prompt; 0 where not accepted.
    """

    accepted: NDArray[np.bool_]
    share: Floats

    def of(self, rows: Ints) -> Gold:
        """Those of some rows."""
        return Gold(self.accepted[rows], self.share[rows])


def lists_of(found: Hypotheses) -> Lists:
    """Hypotheses of one member as arrays: all features, rank, log-probability, length, and the log-probability by the
    number of tokens where the file has no feature of that name. Infinite values count as not known.
    """
    names = [*NUMBERS, *found.features]
    features = {name: floats(found.table[name]) for name in names}
    with np.errstate(divide="ignore", invalid="ignore"):
        features.setdefault(PER_TOKEN, features["log_prob"] / features["length"])
    features = {name: np.where(np.isfinite(column), column, np.nan) for name, column in features.items()}
    sizes = [len(rows) for _, rows in found.by_prompt()]
    return Lists(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), features)


def require_one_list(found: Hypotheses, path: Path) -> None:
    """Refuse files with several lists per prompt.

    Raises:
        InputError: it has several members.
    """
    if len(found.members) > 1:
        raise InputError(f"{path}: has {len(found.members)} members; pool them first with `mrs staple combine`.")


def read_gold(found: Hypotheses, path: Path, data: str) -> tuple[Gold, int]:
    """What is accepted among pooled hypotheses, by the paper's rules.

    Args:
        found: hypotheses in which each translation comes once per prompt.
        path: their file, for error messages.
        data: prepared folder or hub id that the hypotheses were decoded from.

    Returns:
        The accepted ones, and how many prompts the split has.

    Raises:
        InputError: the data are others than those of the hypotheses, lack a prompt or its translations, or a
            translation comes twice.
    """
    from mrs_datasets.prepared.prepared import open_prepared

    source = open_prepared(data)
    split = found.data.get("split")
    if not split:
        raise InputError(f"{path}: does not name its split; decode it again with `mrs staple decode`.")
    identity = source.identity([found.language])
    if not same_data({**found.data, "split": None, "id": None}, {**identity, "split": None, "id": None}):
        raise InputError(f"{path}: its prompts come from other data than {data}; pass the data that were decoded.")
    rows = source.load(found.language, split)
    columns = {"id", "prompt", "translations"}
    if not columns <= set(rows.column_names):
        raise InputError(f"{data}: expected the columns {', '.join(sorted(columns))} of STAPLE in its {split} split.")
    accepted = read_accepted(rows.select_columns(["id", "translations"]))
    if not any(accepted.values()):
        raise InputError(f"{data}: the split has no accepted translations, so nothing can be tuned or scored on it.")
    texts = dict(zip(rows["id"], rows["prompt"], strict=True))
    return _matched(found, path, accepted, texts, data), len(rows)


def _matched(
    found: Hypotheses, path: Path, accepted: Mapping[str, Mapping[str, float]], prompts: Mapping[str, str], data: str
) -> Gold:
    for key, text in found.prompts.items():
        if prompts.get(key) != text:
            problem = "is not in" if key not in prompts else "has another text in"
            raise InputError(f"{path}: prompt {key!r:.80} {problem} {data}; pass the data that were decoded.")
        if not accepted[key]:
            raise InputError(f"{data}: prompt {key!r:.80} has no accepted translations; tune on a split that has them.")
    ids, texts = found.table["id"].to_pylist(), read_texts(found.table["text"].to_pylist())
    seen = set[tuple[str, str]]()
    total = {key: sum(weights.values()) for key, weights in accepted.items()}
    hits, share = np.zeros(len(ids), bool), np.zeros(len(ids))
    for row, (key, text) in enumerate(zip(ids, texts, strict=True)):
        if (key, text) in seen:
            raise InputError(
                f"{path}, row {row + 1}: {text!r:.80} comes twice for {key}; pool the file first with `mrs staple "
                "combine`."
            )
        seen.add((key, text))
        weight = accepted[key].get(text)
        if weight is not None:
            hits[row], share[row] = True, weight / total[key] if total[key] else 0.0
    return Gold(hits, share)


def available(found: Hypotheses) -> list[str]:
    """The names that `lists_of` knows of."""
    return list(dict.fromkeys([*NUMBERS, PER_TOKEN, *(name for name in found.features if name not in COLUMNS.names)]))
