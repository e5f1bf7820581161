"""Pooling: the hypotheses of several members as one list per prompt, each translation once.

Two hypotheses are the same translation if the metric compares them as equal (`mrs_metrics.translations_f1.read_texts`,
the paper's rules), whatever their case and punctuation; the form with the highest log-probability is kept. The members'
agreement and scores become features. Consensus voting over members is nickeilf's in the task (Mayhew et al. 2020,
section 4.3; Li et al. 2020); the mean of the members' probabilities is the usual ensemble.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mrs_metrics.signature import signature
from mrs_metrics.translations_f1 import read_texts
from mrs_suggest.common.errors import InputError
from mrs_suggest.staple.hypotheses import Hypotheses, schema_of

POOL = "pool"  # the member of a pooled file
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
MEANINGS = {
    "votes": "members that found the translation",
    "best_rank": "its best rank among the members",
    "mean_rank": "its mean rank among the members that found it",
    "reciprocal_rank": "mean over all members of 1/rank, 0 where a member did not find it",
    "log_prob_per_token": "log-probability by the number of tokens, the highest of the members",
    "mean_log_prob_per_token": "log-probability by the number of tokens, mean over the members that found it",
    "gap_to_best": "log_prob_per_token minus the highest of the prompt",
    "probability_in_list": "share of the translation in the probability of the prompt's list",
}


@dataclass(frozen=True, eq=False)
class _Rows:
    """The rows of all members.

    Attributes:
        prompt, member, rank: (n,) place of the prompt and of the member, rank from 1.
        log_prob, length: (n,) NaN where not known.
        text, read: (n,) as written, and as the metric compares it.
        carried: feature -> (n,), NaN where a member lacks it.
    """

    prompt: Ints
    member: Ints
    rank: Ints
    log_prob: Floats
    length: Floats
    text: Sequence[str]
    read: Sequence[str]
    carried: Mapping[str, Floats]


def pool(sources: Sequence[tuple[Path, Hypotheses]]) -> Hypotheses:
    """Pool the members of files about the same prompts.

    The log-probability of a pooled translation is the logarithm of the mean over members of its probability. A
    member's probability of it is the sum over the forms that the metric treats as equal. A member that did not find
    it counts with the lowest probability that it gave any translation of the prompt, the most that it can have given
    this one in a beam search; a member without log-probabilities for the prompt does not count. The length is that of
    the kept form. With one member, the translations keep its order; with several, they are ordered by log-probability,
    then by reciprocal rank.

    Args:
        sources: path, for error messages, and hypotheses of each file.

    Returns:
        hypotheses of the one member `pool`, whose facts list the members; features: `MEANINGS`, and the means over the
        members of those that the files have.

    Raises:
        InputError: the files differ in language, data or prompts, one is pooled already, a member comes twice, or a
            feature of a file has the name of one that is computed here.
    """
    first = sources[0][1]
    for path, found in sources:
        if problem := _difference(first, found):
            raise InputError(f"{path}: cannot be pooled with {sources[0][0]}: {problem}.")
        if POOL in found.members:
            raise InputError(f"{path}: pooled already; pass the files of its members instead.")
        if clash := sorted(MEANINGS.keys() & found.features.keys()):
            raise InputError(f"{path}: has a column {clash[0]!r}, which is computed here; rename it.")
    members = _members(sources)
    carried = {name: meaning for _, found in sources for name, meaning in found.features.items()}
    rows = _rows(sources, list(carried))
    table = _pooled(rows, first.prompts, len(members), list(carried))
    facts = {"members": {name: dict(facts) for name, facts in members.items()}}
    steps = tuple(dict.fromkeys(step for _, found in sources for step in found.steps))
    step = signature("staple_combine", members=len(members))
    features = {**MEANINGS, **{name: f"{meaning}; mean over members" for name, meaning in carried.items()}}
    return Hypotheses(table, first.language, first.prompts, first.data, {POOL: facts}, features, (*steps, step))


def same_data(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    """Whether two descriptions of data name the same contents; only what both know is compared."""
    keys = [key for key in ("content_hash", "revision") if a.get(key) and b.get(key)] or ["id"]
    return all(a.get(key) == b.get(key) for key in [*keys, "split"])


def _difference(found: Hypotheses, others: Hypotheses) -> str:
    """Why two files cannot be pooled; empty if they can."""
    if found.language != others.language:
        return f"its language is {others.language}, not {found.language}; pool one language a file"
    if not same_data(found.data, others.data):
        told = f"it has hypotheses for {_described(others.data)}, not {_described(found.data)}"
        return f"{told}; decode both from the same split"
    if list(found.prompts.items()) == list(others.prompts.items()):
        return ""
    keys = (key for key in [*found.prompts, *others.prompts] if found.prompts.get(key) != others.prompts.get(key))
    return f"their prompts differ ({next(keys, 'their order'):.80}); decode both from the same split"


def _described(data: Mapping[str, Any]) -> str:
    known = [data.get("id"), data.get("content_hash") or data.get("revision"), data.get("split")]
    return " ".join(str(part) for part in known if part) or "unknown data"


def _members(sources: Sequence[tuple[Path, Hypotheses]]) -> dict[str, Mapping[str, Any]]:
    """The members of all files; one whose name another has gets its file's name before its own."""
    names = [name for _, found in sources for name in found.members]
    members: dict[str, Mapping[str, Any]] = {}
    for path, found in sources:
        for name, facts in found.members.items():
            unique = name if names.count(name) == 1 else f"{path.stem}:{name}"
            if unique in members:
                raise InputError(f"{path}: member {name!r:.80} comes twice; pass each file once, under its own name.")
            members[unique] = facts
    return members


def _rows(sources: Sequence[tuple[Path, Hypotheses]], carried: Sequence[str]) -> _Rows:
    places = {key: place for place, key in enumerate(sources[0][1].prompts)}
    prompts, members, texts = [], [], []
    before = 0
    for _, found in sources:
        numbers = {name: before + place for place, name in enumerate(found.members)}
        before += len(found.members)
        prompts += [places[key] for key in found.table["id"].to_pylist()]
        members += [numbers[name] for name in found.table["member"].to_pylist()]
        texts += found.table["text"].to_pylist()

    def column(name: str) -> Floats:
        parts = [
            floats(found.table[name]) if name in found.table.column_names else np.full(len(found.table), np.nan)
            for _, found in sources
        ]
        return np.concatenate(parts)

    return _Rows(
        np.array(prompts, np.int64), np.array(members, np.int64), column("rank").astype(np.int64), column("log_prob"),
        column("length"), texts, read_texts(texts), {name: column(name) for name in carried},
    )  # fmt: skip


def floats(column: pa.ChunkedArray) -> Floats:
    """A column as float64, NaN where it is null."""
    return np.asarray(column.cast(pa.float64()).to_numpy(zero_copy_only=False), np.float64)


def _pooled(rows: _Rows, prompts: Mapping[str, str], n_members: int, carried: Sequence[str]) -> pa.Table:
    """The table of the pool: groups of rows are translations, pairs are a translation and a member that found it."""
    codes: dict[str, int] = {}
    read = np.array([codes.setdefault(text, len(codes)) for text in rows.read], np.int64)
    groups, group = np.unique(rows.prompt * max(1, len(codes)) + read, return_inverse=True)
    pairs, pair = np.unique(group * n_members + rows.member, return_inverse=True)
    n = len(groups)
    of_pair, finder = pairs // n_members, pairs % n_members
    prompt = groups // max(1, len(codes))
    # The row that is kept: the highest log-probability; where none is known, the best rank, then the first member.
    order = np.lexsort((rows.member, rows.rank, -np.nan_to_num(rows.log_prob, nan=-np.inf), group))
    kept = order[np.searchsorted(group[order], np.arange(n))]
    rank = np.full(len(pairs), np.iinfo(np.int64).max)
    np.minimum.at(rank, pair, rows.rank)
    per_token = rows.log_prob / rows.length
    best = _largest(per_token, pair, len(pairs))
    features = {
        "votes": np.bincount(of_pair, minlength=n).astype(np.float64),
        "best_rank": -_largest(-rank.astype(np.float64), of_pair, n),
        "mean_rank": _mean(rank.astype(np.float64), of_pair, n),
        "reciprocal_rank": np.bincount(of_pair, 1 / rank, minlength=n) / max(1, n_members),
        "log_prob_per_token": _largest(best, of_pair, n),
        "mean_log_prob_per_token": _mean(best, of_pair, n),
    }
    own = features["log_prob_per_token"]
    features["gap_to_best"] = own - _largest(own, prompt, len(prompts))[prompt]
    log_prob = _ensemble(rows, pair, of_pair, finder, prompt, len(prompts), n_members)
    features["probability_in_list"] = shares(log_prob, prompt, len(prompts))
    for name in carried:
        features[name] = _mean(_mean(rows.carried[name], pair, len(pairs)), of_pair, n)
    known = np.nan_to_num(log_prob, nan=-np.inf)
    keys = (features["best_rank"],) if n_members == 1 else (features["best_rank"], -features["reciprocal_rank"], -known)
    order = np.lexsort((kept, *keys, prompt))
    return _table(rows, prompts, order, kept, prompt, log_prob, features)


def _table(
    rows: _Rows, prompts: Mapping[str, str], order: Ints, kept: Ints, prompt: Ints, log_prob: Floats,
    features: Mapping[str, Floats],
) -> pa.Table:  # fmt: skip
    prompt, kept = prompt[order], kept[order]
    names, texts = list(prompts), list(prompts.values())
    rank = np.arange(len(prompt)) - np.searchsorted(prompt, prompt) + 1
    columns = [
        pa.array([names[place] for place in prompt], pa.string()),
        pa.array([texts[place] for place in prompt], pa.string()),
        pa.array([POOL] * len(prompt), pa.string()),
        pa.array(rank, pa.int32()),
        pa.array([rows.text[row] for row in kept], pa.string()),
        known_or_null(log_prob[order]),
        pa.array(rows.length[kept], pa.float64(), from_pandas=True).cast(pa.int32()),
    ]
    columns += [known_or_null(column[order]) for column in features.values()]
    return pa.Table.from_arrays(columns, schema=schema_of(dict.fromkeys(features, "")))


def known_or_null(values: Floats) -> pa.Array:
    """A column for Parquet: null where the values are NaN."""
    return pa.array(values, pa.float64(), from_pandas=True)


def _ensemble(
    rows: _Rows, pair: Ints, of_pair: Ints, finder: Ints, prompt: Ints, n_prompts: int, n_members: int
) -> Floats:
    """(groups,) the logarithm of the mean over members of the probability; NaN where no member knows any."""
    mass = np.full(len(of_pair), -np.inf)
    known = ~np.isnan(rows.log_prob)
    np.logaddexp.at(mass, pair[known], rows.log_prob[known])
    lowest = np.full((n_prompts, n_members), np.inf)
    np.minimum.at(lowest, (rows.prompt[known], rows.member[known]), rows.log_prob[known])
    values = lowest[prompt]  # inf: the member does not count
    scored = mass > -np.inf
    values[of_pair[scored], finder[scored]] = mass[scored]
    counted = values < np.inf
    values[~counted] = -np.inf
    count = counted.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.logaddexp.reduce(values, axis=1) - np.log(count)
    return np.where(count > 0, mean, np.nan)


def shares(log_prob: Floats, prompt: Ints, n_prompts: int) -> Floats:
    """(n,) the share of each log-probability's probability in its prompt; NaN where it is not known."""
    top = np.nan_to_num(_largest(log_prob, prompt, n_prompts), nan=0.0)
    parts = np.exp(log_prob - top[prompt])
    total = np.bincount(prompt, np.nan_to_num(parts), minlength=n_prompts)
    return np.asarray(parts / np.maximum(total, 1e-300)[prompt])


def _largest(values: Floats, places: Ints, n: int) -> Floats:
    """(n,) the largest known value of each place; NaN where none is known."""
    found = np.full(n, -np.inf)
    known = ~np.isnan(values)
    np.maximum.at(found, places[known], values[known])
    return np.where(found > -np.inf, found, np.nan)


def _mean(values: Floats, places: Ints, n: int) -> Floats:
    """(n,) the mean of the known values of each place; NaN where none is known."""
    known = ~np.isnan(values)
    count = np.bincount(places[known], minlength=n)
    total = np.bincount(places[known], values[known], minlength=n)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)
