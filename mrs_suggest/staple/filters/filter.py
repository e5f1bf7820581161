"""A filter: its folder on disk, and the hypotheses that it keeps.

A folder has `filter.json`, and `arrays.safetensors` if the rule was learned. Nothing in it can run code. Rules are
tuned on a split with accepted translations, and scored on prompts that were not in their fit.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from mrs_metrics.signature import signature
from mrs_metrics.significance import bootstrap_interval
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.files import atomic_folder, writing
from mrs_suggest.staple.filters.choice_scores import score_choice
from mrs_suggest.staple.hypotheses import Hypotheses
from mrs_suggest.staple.lists import (
    FOLDS,
    Labels,
    Lists,
    available,
    fold_prompts,
    lists_of,
    read_labels,
    require_features,
)
from mrs_suggest.staple.pooling import POOL, known_or_null, same_data
from mrs_suggest.staple.rules import RULES
from mrs_suggest.staple.rules.base import Fitting, Rule
from mrs_suggest.staple.rules.simple import Top

KIND, VERSION = "mrs-staple-filter", 1
SETTINGS, ARRAYS = "filter.json", "arrays.safetensors"
AGAIN = "make it again with `mrs staple tune`"
SCORES = {"score": "what the filter decided by", "probability": "of being accepted, as the filter estimates it"}


@dataclass(frozen=True)
class Filter:
    """A fitted rule and where it comes from.

    Attributes:
        data: that it was tuned on, as in `Hypotheses`.
        members: of the pool that it was tuned on.
        figures: name -> out-of-fold scores, of the rule and of what it is compared with.
    """

    rule: Rule
    language: str
    data: Mapping[str, Any]
    members: tuple[str, ...] = ()
    seed: int = 0
    figures: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)


def save_filter(made: Filter, folder: Path, overwrite: bool = False) -> None:
    """Write a filter, whole or not at all; InputError if the folder exists, or cannot be written."""
    settings, arrays = made.rule.parts()
    content = save({name: np.ascontiguousarray(array) for name, array in arrays.items()}) if arrays else None
    described = asdict(replace(made, rule=None))  # type: ignore[arg-type]  # the rule is described apart
    facts = {"kind": KIND, "version": VERSION, **described, "rule": made.rule.name, "settings": settings}
    facts["sha256"] = _digest(facts, content)
    text = json.dumps(facts, indent=2, ensure_ascii=False, allow_nan=False)
    with writing(folder), atomic_folder(folder, overwrite=overwrite, marker=SETTINGS) as place:
        (place / SETTINGS).write_text(text + "\n", encoding="utf-8")
        if content is not None:
            (place / ARRAYS).write_bytes(content)


def load_filter(folder: Path) -> Filter:
    """Read a filter; InputError if it is missing, damaged, changed by hand, or of another version."""
    path = folder / SETTINGS
    if not path.is_file():
        raise InputError(f"{folder}: not a filter (no {SETTINGS} in it); make one with `mrs staple tune`.")
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: cannot be read as JSON ({error}); {AGAIN}.") from None
    if not isinstance(facts, dict) or facts.get("kind") != KIND:
        raise InputError(f"{path}: not a filter of hypotheses, which `mrs staple tune` makes.")
    if facts.get("version") != VERSION:
        raise InputError(f"{path}: a filter of version {facts.get('version')!r:.40}, expected {VERSION}; {AGAIN}.")
    try:
        content = (folder / ARRAYS).read_bytes() if (folder / ARRAYS).is_file() else None
        if facts.pop("sha256", None) != _digest(facts, content):
            raise ValueError("its contents do not match their checksum")
        if facts["rule"] not in RULES:
            raise ValueError(f"unknown rule {facts['rule']!r:.40}")
        rule = RULES[facts["rule"]].stored(facts["settings"], load(content) if content is not None else {})
        described = {one.name: facts[one.name] for one in fields(Filter) if one.name != "rule"}
        return replace(Filter(rule, **described), members=tuple(facts["members"]))
    except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
        raise InputError(f"{folder}: damaged filter ({error}); {AGAIN}.") from None


def _digest(facts: Mapping[str, Any], content: bytes | None) -> str:
    """SHA-256 over everything else in the folder."""
    text = json.dumps(facts, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass") + b"\0" + (content or b"")).hexdigest()


def apply_filter(found: Hypotheses, path: Path, made: Filter, folder: Path, any_language: bool = False) -> Hypotheses:
    """Keep the hypotheses that a tuned filter chooses.

    Args:
        path, folder: of the hypotheses and of the filter, for error messages.
        any_language: allow a filter that was tuned on another language.

    Raises:
        InputError: the file lacks a feature of the filter, or has another language.
    """
    if found.language != made.language and not any_language:
        raise InputError(
            f"{path}: its language is {found.language}, but {folder} was tuned on {made.language}; pass --any-language "
            "to use it anyway."
        )
    return apply_rule(found, path, made.rule, str(folder))


def apply_rule(found: Hypotheses, path: Path, rule: Rule, asked: str) -> Hypotheses:
    """Keep the hypotheses that a rule chooses, with their ranks; learned rules add their score as a column.

    Raises:
        InputError: the file lacks a feature of the rule, or has several lists per prompt.
    """
    lists = lists_of(found, path)
    require_features(lists, rule.features, path, asked)
    choice = rule.choose(lists)
    table, features = found.table, dict(found.features)
    if rule.score_name and choice.score is not None:
        if features.pop(rule.score_name, None) is not None:
            table = table.drop_columns([rule.score_name])
        table = table.append_column(pa.field(rule.score_name, pa.float64()), known_or_null(choice.score))
        features[rule.score_name] = f"{SCORES[rule.score_name]} ({rule.name})"
    step = signature("staple_filter", rule=rule.name, kept=int(choice.kept.sum()))
    return replace(found, table=table.filter(pa.array(choice.kept)), features=features, steps=(*found.steps, step))


def doubts(found: Hypotheses, made: Filter) -> list[str]:
    """Warnings for the user of filtered hypotheses."""
    notes = []
    if same_data(found.data, made.data):
        notes.append("the filter was tuned on these prompts: a score of the kept translations is too optimistic.")
    members = len(found.members.get(POOL, {}).get("members", found.members))
    if members != len(made.members):
        notes.append(f"the filter was tuned on a pool of {len(made.members)} members, this one has {members}.")
    return notes


RAW = 10  # translations of the task's baselines, section 3


def tune(
    found: Hypotheses, path: Path, data: str, rule: str, fitting: Fitting, folds: int = FOLDS
) -> tuple[Filter, list[str]]:
    """Fit a rule, and score it out of fold.

    Args:
        found: pooled hypotheses of a split with accepted translations.
        data: prepared folder or hub id that they were decoded from.

    Returns:
        The filter, fitted on all prompts, whose figures compare the rule out of fold with the raw n-best list of 10 and
        the best K out of fold; and notes for the user.

    Raises:
        InputError: the rule needs a feature that the file lacks, there are too few prompts, or as for `read_labels`.
    """
    from mrs_suggest.common.hub.provenance import versions

    kind = RULES[rule]
    lists = lists_of(found, path)
    known = [name for name in available(found) if not np.isnan(lists.features[name]).all()]
    names = kind.needs(fitting, known)
    require_features(lists, names, path, f"--rule {rule}")
    fitting = replace(fitting, features=names)
    if not 2 <= folds <= lists.prompts:
        raise InputError(f"--folds {folds}: expected 2 to {lists.prompts}, the number of prompts in {path}.")
    gold, in_split = read_labels(found, path, data)
    if not gold.accepted.any():
        raise InputError(f"{path}: none of its translations is accepted in {data}, so no rule can be tuned on it.")
    choices = {rule: cross_fitted(kind, lists, gold, fitting, folds), f"raw n-best {RAW}": Top(RAW).choose(lists).kept}
    if rule != Top.name:
        choices["best K"] = cross_fitted(Top, lists, gold, Fitting(seed=fitting.seed), folds)
    figures = {name: _figures(lists, gold, kept) for name, kept in choices.items()}
    members = tuple(found.members.get(POOL, {}).get("members", found.members))
    fitted = kind.fit(lists, gold, fitting)
    made = Filter(fitted, found.language, dict(found.data), members, fitting.seed, figures, versions())
    less = f"{path} has {lists.prompts:,} of the {in_split:,} prompts of the split; the scores are over those."
    return made, [less] if lists.prompts < in_split else []


def cross_fitted(
    kind: type[Rule], lists: Lists, gold: Labels, fitting: Fitting, folds: int = FOLDS
) -> NDArray[np.bool_]:
    """(n,) what the rule keeps of each prompt if it is fitted, with all that it tunes, on the other folds' prompts."""
    kept = np.zeros(lists.size, bool)
    for inside, outside in fold_prompts(lists.prompts, folds, fitting.seed):
        fitted = kind.fit(lists.of(inside), gold.of(lists.rows_of(inside)), fitting)
        kept[lists.rows_of(outside)] = fitted.choose(lists.of(outside)).kept
    return kept


def _figures(lists: Lists, gold: Labels, kept: NDArray[np.bool_]) -> dict[str, float | None]:
    """Means over the prompts, and the 95 % interval of the macro weighted F1; its ends are None if all are equal."""
    scores = score_choice(lists, gold, kept)
    low, high = bootstrap_interval(scores.weighted_f1).ends or (None, None)
    return {
        "weighted_f1": float(scores.weighted_f1.mean()),
        "low": low,
        "high": high,
        "precision": float(scores.precision.mean()),
        "weighted_recall": float(scores.weighted_recall.mean()),
        "translations": float(scores.chosen.mean()),
    }
