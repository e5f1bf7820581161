"""Whether two runs were tested on the same rows of a language, and ranked in the same pools."""

from __future__ import annotations

from mrs_suggest.common.text.predictions import predictions_name
from mrs_suggest.evaluation.pairing import examples_of
from mrs_suggest.evaluation.runs.figures import RANKING, REPLY, Record, Run, Scope, without_version
from mrs_suggest.suggest.baselines import BASELINES

OTHER_ROWS, UNKNOWN, OTHER_POOLS = "other rows", "unknown", "other pools"  # why figures are not comparable


def unlike(one: Run, other: Run, scope: Scope, metric_signature: str) -> str:
    """Why a figure of two runs cannot be compared; "" where it can.

    Args:
        scope: part and language that both were tested in.
        metric_signature: the metric's name in signatures; rankings must have the same pools, too.
    """
    problem = _rows(one, other, scope)
    if not problem and metric_signature == RANKING and not _same_pools(one, other, scope[1]):
        return OTHER_POOLS
    return problem


def _rows(one: Run, other: Run, scope: Scope) -> str:
    """By the rows themselves where both runs keep them, else by the records."""
    if one is other:
        return ""
    if has_predictions(one, scope) and has_predictions(other, scope):
        assert one.folder
        assert other.folder
        return "" if examples_of(one.folder, scope[1]) == examples_of(other.folder, scope[1]) else OTHER_ROWS
    mine, theirs = (run.scopes[scope] for run in (one, other))
    if any(mine.get(key) != theirs.get(key) for key in ("n", "ceiling")):
        return OTHER_ROWS
    pools = [run.record["metrics"].get("pools", {}).get(scope[1]) for run in (one, other)]
    if pools[0] and pools[0] == pools[1]:  # a hash of the references, too
        return ""
    hashes = [run.record.get("data", {}).get("test_hash") for run in (one, other)]
    if all(hashes) and list(one.scopes) == list(other.scopes):
        return "" if hashes[0] == hashes[1] else OTHER_ROWS
    tested = [_data(run.record) for run in (one, other)]
    return "" if tested[0] is not None and tested[0] == tested[1] else UNKNOWN


def has_predictions(run: Run, scope: Scope) -> bool:
    """Whether a run's suggestions in a language are there."""
    return run.folder is not None and run.task.name == REPLY and (run.folder / predictions_name(scope[1])).is_file()


def _data(record: Record) -> tuple[object, ...] | None:
    """What names the tested data: a revision or a hash of the contents, and the limit on what was taken of it."""
    data = record.get("data", {})
    data = data.get("test", data)  # of a run that was trained on other data
    name = data.get("revision") or data.get("content_hash")
    return (name, record.get("arguments", {}).get("max_test_examples")) if name else None


def _same_pools(one: Run, other: Run, language: str) -> bool:
    """By their hashes; where one kept none, by the baselines' MRRs."""
    signatures = [run.record["metrics"]["signatures"][language].get(RANKING, "") for run in (one, other)]
    if without_version(signatures[0]) != without_version(signatures[1]):
        return False
    mine, theirs = (run.record["metrics"] for run in (one, other))
    if "pools" in mine and "pools" in theirs:
        return bool(mine["pools"].get(language) == theirs["pools"].get(language))
    return all(
        mine["systems"].get(name, {}).get(language, {}).get("mrr")
        == theirs["systems"].get(name, {}).get(language, {}).get("mrr")
        for name in BASELINES
    )
