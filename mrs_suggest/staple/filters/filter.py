"""A filter: its folder on disk, and the hypotheses that it keeps.

A folder has `filter.json`, and `arrays.safetensors` if the rule was learned. Nothing in it can run code.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from safetensors import SafetensorError
from safetensors.numpy import load, save

from mrs_metrics.signature import signature
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.files import atomic_folder, writing
from mrs_suggest.staple.hypotheses import Hypotheses
from mrs_suggest.staple.lists import lists_of, require_features, require_one_list
from mrs_suggest.staple.pooling import POOL, known_or_null, same_data
from mrs_suggest.staple.rules import RULES
from mrs_suggest.staple.rules.base import Rule

KIND, VERSION = "mrs-staple-filter", 1
SETTINGS, ARRAYS = "filter.json", "arrays.safetensors"
AGAIN = "make it again with `mrs staple tune`"
SCORES = {"score": "what the filter decided by", "probability": "of being accepted, as the filter estimates it"}


@dataclass(frozen=True)
class Filter:
    """A fitted rule and where it comes from.

    Attributes:
        language: of the translations.
        data: that it was tuned on, as in `Hypotheses`.
        members: of the pool that it was tuned on.
        seed: of the fit.
        figures: name -> out-of-fold scores, of the rule and of what it is compared with.
        versions: of the libraries.
    """

    rule: Rule
    language: str
    data: Mapping[str, Any]
    members: tuple[str, ...] = ()
    seed: int = 0
    figures: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)


def save_filter(made: Filter, folder: Path, overwrite: bool = False) -> None:
    """Write a filter; the folder appears whole or not at all.

    Raises:
        InputError: the folder exists, or cannot be written.
    """
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
    """Read a filter.

    Raises:
        InputError: it is missing, damaged, changed by hand, or of another version.
    """
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
    """Keep what a tuned filter chooses.

    Args:
        path, folder: of the hypotheses and of the filter, for error messages.
        any_language: allow a filter that was tuned on another language.

    Raises:
        InputError: the file lacks a feature of the filter, or has another language.
    """
    if found.language != made.language and not any_language:
        raise InputError(
            f"{path}: its language is {found.language}, but {folder} was tuned on {made.language}; pass --any-language "
            "to use it all the same."
        )
    return apply_rule(found, path, made.rule, str(folder))


def apply_rule(found: Hypotheses, path: Path, rule: Rule, asked: str) -> Hypotheses:
    """Keep what a rule chooses; ranks stay as they were, and learned rules add their score as a column.

    Args:
        path: of the hypotheses, for error messages.
        asked: where the rule comes from, likewise.

    Raises:
        InputError: the file lacks a feature of the rule, or has several lists per prompt.
    """
    require_one_list(found, path)
    lists = lists_of(found)
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
        notes.append("the filter was tuned on these prompts: a score of the kept translations is not honest.")
    members = len(found.members.get(POOL, {}).get("members", found.members))
    if members != len(made.members):
        notes.append(f"the filter was tuned on a pool of {len(made.members)} members, this one has {members}.")
    return notes
