"""XGLUE's submissions: one file of predictions, or a folder of them, against the released data.

Files that do not belong together are an error, where the official script (`evaluation/xglue_evaluate.py`,
microsoft/XGLUE) would continue or crash.
"""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from mrs_datasets.readers.xglue_files import (
    predicted_sentences,
    predictions_path,
    read_xglue_predictions,
    read_xglue_references,
    references_path,
)
from mrs_metrics.xglue import XglueScores, score_task
from mrs_metrics.xglue_tasks import TASKS, get_task
from mrs_suggest.common.errors import InputError, metric_errors


def score_files(
    predictions: str | Path, references: str | Path, task: str, language: str, rules: str = "paper"
) -> XglueScores:
    """Score one file of predictions; with MLQA, `notes` also counts answers to `other` questions than those asked.

    Raises:
        InputError: see `read_xglue_predictions`, `read_xglue_references` and `mrs_metrics.xglue.score_task`; the files
            have different numbers of examples; or sacreBLEU is missing, which QG and NTG need.
    """
    right, found = read_xglue_references(references, task), read_xglue_predictions(predictions, task)
    known = get_task(task)
    if isinstance(found, dict):
        ids = right.ids or []
        with metric_errors(str(predictions)):
            scores = score_task(task, [found.get(name) for name in ids], right.references, language, rules=rules)
        return dataclasses.replace(scores, notes={**scores.notes, "other": len(found.keys() - set(ids))})
    what = "sentences" if known.kind == "tags" else "lines"
    if len(found) != len(right.references):
        raise InputError(
            f"{predictions} has {len(found)} {what} of predictions, but {references} has {len(right.references)}: "
            f"{known.name} needs one for each, in the same order."
        )
    if known.kind == "tags":
        sentences = predicted_sentences(Path(predictions))
        for (first, ours), theirs in zip(sentences, right.references, strict=True):
            if len(ours) > len(theirs):
                raise InputError(
                    f"{predictions}, line {first}: the sentence has {len(ours)} tags, but {len(theirs)} words in "
                    f"{right.path}."
                )
    with metric_errors(str(predictions)):
        return score_task(task, found, right.references, language, queries=right.queries, rules=rules)


def score_folder(
    predictions: str | Path,
    references: str | Path,
    tasks: Sequence[str] = tuple(TASKS),
    languages: Sequence[str] | None = None,
    split: str = "test",
    rules: str = "paper",
) -> dict[str, dict[str, XglueScores]]:
    """Score a submission: task -> language -> scores; `mrs_metrics.xglue.average_scores` averages them.

    Args:
        languages: score these only, each in the tasks that have it; None takes all, and all must be there.
        split: `dev` or `test`.
        rules: `paper` or `official`.

    Raises:
        InputError: see `score_files`; a file is missing; or there is nothing to score.
    """
    found: dict[str, dict[str, XglueScores]] = {}
    with metric_errors(str(predictions)):
        wanted = dict.fromkeys(get_task(task) for task in tasks)
    for known in wanted:
        for language in known.languages:
            if languages is None or language in languages:
                ours = predictions_path(predictions, known.name, language)
                theirs = references_path(references, known.name, language, split)
                found.setdefault(known.name, {})[language] = score_files(ours, theirs, known.name, language, rules)
    unused = sorted(set(languages or ()) - {language for scored in found.values() for language in scored})
    if unused:
        raise InputError(f"{predictions}: None of the tasks {', '.join(tasks)} is tested in {', '.join(unused)}.")
    if not found:
        raise InputError(f"{predictions}: no task, or no language, to score.")
    return found
