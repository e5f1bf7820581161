"""Filtering: the hypotheses that a rule keeps, as a file of the same format."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from mrs_metrics.signature import signature
from mrs_suggest.common.errors import InputError
from mrs_suggest.staple.filters.filter_folder import Filter
from mrs_suggest.staple.filters.tuning import require_features
from mrs_suggest.staple.hypotheses import Hypotheses
from mrs_suggest.staple.lists import lists_of, require_one_list
from mrs_suggest.staple.pooling import POOL, known_or_null, same_data
from mrs_suggest.staple.rules import Rule

SCORES = {"score": "what the filter decided by", "probability": "of being accepted, as the filter estimates it"}


def apply_filter(found: Hypotheses, path: Path, made: Filter, folder: Path, any_language: bool = False) -> Hypotheses:
    """Keep what a tuned filter chooses.

    Args:
        path: of the hypotheses, for error messages.
        folder: of the filter, likewise.
        any_language: also where the filter was tuned on another language.

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
    table, features = found.table, {}
    if rule.score_name and choice.score is not None:
        if rule.score_name in table.column_names:
            table = table.drop_columns([rule.score_name])
        table = table.append_column(pa.field(rule.score_name, pa.float64()), known_or_null(choice.score))
        features = {rule.score_name: f"{SCORES[rule.score_name]} ({rule.name})"}
    step = signature("staple_filter", rule=rule.name, kept=int(choice.kept.sum()))
    kept = found.after(step, table.filter(pa.array(choice.kept)), features)
    return Hypotheses(
        kept.table.select([*(name for name in table.column_names if name not in kept.features), *kept.features]),
        kept.language, kept.prompts, kept.data, kept.members, kept.features, kept.steps,
    )  # fmt: skip


def doubts(found: Hypotheses, made: Filter) -> list[str]:
    """What the user should know before relying on filtered hypotheses."""
    notes = []
    if same_data(found.data, made.data):
        notes.append("the filter was tuned on these prompts: a score of the kept translations is not honest.")
    members = len(found.members.get(POOL, {}).get("members", found.members))
    if members != len(made.members):
        notes.append(f"the filter was tuned on a pool of {len(made.members)} members, this one has {members}.")
    return notes
