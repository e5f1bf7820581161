"""The results of an audit: shares with intervals, agreement, and the pairs on which annotators differ."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from mrs_datasets.audit.files import Item, Key
from mrs_datasets.audit.questions import ANSWERS, KINDS, PAPER_EXAMPLES, PAPER_FOUND, TOXIC
from mrs_datasets.audit.reading import Judgements
from mrs_metrics.accuracy import weighted_wilson_interval, wilson_interval
from mrs_metrics.agreement import cohens_kappa, fleiss_kappa
from mrs_metrics.signature import signature
from mrs_suggest.common.metric_errors import metric_errors

ALL = "all"  # the languages pooled
UNDECIDED = "undecided"


def summarize(key: Key, sheets: Sequence[Judgements]) -> dict[str, Any]:
    """The figures of an audit.

    A pair's answer to a question is what more than half of its annotators say; without such an answer, or if that is
    "unsure", it is undecided. A share is yes among all judged pairs, so that an undecided pair does not count as a
    fault; `at_most` is the share if all of them did.

    Intervals are Wilson's (95 %). Pooled over languages, the shares of the wide kind are weighted by the pairs that
    each judged language has in the data (`weighted_wilson_interval`); a proportional sample has its weights already.

    Raises:
        InputError: two or more annotators judged the same pair, and statsmodels is not installed.
    """
    kind = KINDS[key.kind]
    questions = [question.name for question in kind.questions]
    return {
        "data": key.data,
        "kind": key.kind,
        "audit": key.audit,
        "seed": key.seed,
        "sample": key.sample,
        "items": len(key.items),
        "annotators": len(sheets),
        "annotators_missing": len(key.files) - len(sheets),
        "strata": [vars(stratum) for stratum in key.strata],
        "shares": [row for question in questions for row in _shares(key, question, sheets)],
        "agreement": [_agreement(question, key.items, sheets) for question in questions] if len(sheets) > 1 else [],
        "by_annotator": [_by_annotator(sheet, questions) for sheet in sheets],
        "differences": _differences(key, questions, sheets),
        "comments": [
            {"item": item, "annotator": sheet.annotator, "comment": text}
            for sheet in sheets
            for item, text in sheet.comments.items()
        ],
        "paper": {"question": TOXIC.name, "examples": PAPER_EXAMPLES, "found": PAPER_FOUND,
                  "interval": list(wilson_interval(PAPER_FOUND, PAPER_EXAMPLES)), "section": "2.2"},
        "signature": signature(
            "data_audit", kind=key.kind, items=len(key.items), annotators=len(sheets), seed=key.seed,
            majority="over-half", interval="wilson",
            pooled="population-weights-effective-size" if kind.per_language else "proportional-sample",
            kappa={1: None, 2: "cohen"}.get(len(sheets), "fleiss"),
        ),
    }  # fmt: skip


def _given(item: Item, question: str, sheets: Sequence[Judgements]) -> dict[int, str]:
    """Annotator -> answer, of those who gave one."""
    found = {sheet.annotator: sheet.answers.get(item.item, {}).get(question) for sheet in sheets}
    return {annotator: answer for annotator, answer in found.items() if answer}


def _shares(key: Key, question: str, sheets: Sequence[Judgements]) -> list[dict[str, Any]]:
    """A question's rows: one per language, and the pooled one if there are several."""
    rows: list[dict[str, Any]] = []
    for language in key.languages:
        counts = dict.fromkeys(("yes", "no", UNDECIDED), 0)
        for item in key.items:
            if item.language == language and (answers := _given(item, question, sheets)):
                given = list(answers.values())
                counts[next((one for one in ANSWERS[:2] if 2 * given.count(one) > len(given)), UNDECIDED)] += 1
        pairs = sum(stratum.rows for stratum in key.strata if stratum.language == language)
        rows.append({"question": question, "language": language, "pairs": pairs, **counts})
    judged = [row for row in rows if sum(row[name] for name in ("yes", "no", UNDECIDED))]
    pooled: list[dict[str, Any]] = []
    if len(key.languages) > 1 and judged:
        sums = {name: sum(row[name] for row in judged) for name in ("pairs", "yes", "no", UNDECIDED)}
        pooled = [{"question": question, "language": ALL, **sums}]
        if KINDS[key.kind].per_language:
            return [*map(_share, rows), {**pooled[0], **_weighted(judged)}]
    return [_share(row) for row in rows + pooled]


def _share(row: dict[str, Any]) -> dict[str, Any]:
    """A row with its share and interval; None if no pair was judged."""
    n = row["yes"] + row["no"] + row[UNDECIDED]
    if not n:
        return {**row, "judged": 0, "share": None, "interval": None, "at_most": None}
    interval = list(wilson_interval(row["yes"], n))
    return {**row, "judged": n, "share": row["yes"] / n, "interval": interval, "at_most": (n - row["no"]) / n}


def _weighted(rows: list[dict[str, Any]]) -> dict[str, Any]:
    sizes = np.array([row["yes"] + row["no"] + row[UNDECIDED] for row in rows])
    weights = np.array([row["pairs"] for row in rows]) / sum(row["pairs"] for row in rows)
    yes, no = (np.array([row[name] for row in rows]) for name in ("yes", "no"))
    return {
        "judged": int(sizes.sum()),
        "share": float(weights @ (yes / sizes)),
        "interval": list(weighted_wilson_interval(yes, sizes, weights)),
        "at_most": float(1 - weights @ (no / sizes)),
    }


def _agreement(question: str, items: Sequence[Item], sheets: Sequence[Judgements]) -> dict[str, Any]:
    """How often two annotators of a pair gave the same answer, and kappa on the pairs that all of them judged."""
    given = [list(_given(item, question, sheets).values()) for item in items]
    twos = [two for row in given for two in combinations(row, 2)]
    whole = np.array([list(map(ANSWERS.index, row)) for row in given if len(row) == len(sheets)], dtype=np.int64)
    kappa = None
    if len(whole):
        with metric_errors():
            if len(sheets) == 2:
                kappa = cohens_kappa(whole[:, 0], whole[:, 1], len(ANSWERS))
            else:
                kappa = fleiss_kappa(np.stack([(whole == place).sum(axis=1) for place in range(len(ANSWERS))], axis=1))
    same = float(np.mean([first == second for first, second in twos])) if twos else None
    judged = sum(len(row) > 1 for row in given)
    return {"question": question, "judged_by_two": judged, "judged_by_all": len(whole), "same": same, "kappa": kappa}


def _by_annotator(sheet: Judgements, questions: Sequence[str]) -> dict[str, Any]:
    """How many pairs one annotator judged, and how often each answer was given to each question."""
    counts = {
        question: {answer: sum(given.get(question) == answer for given in sheet.answers.values()) for answer in ANSWERS}
        for question in questions
    }
    return {"annotator": sheet.annotator, "judged": len(sheet.answers), "answers": counts}


def _differences(key: Key, questions: Sequence[str], sheets: Sequence[Judgements]) -> list[dict[str, Any]]:
    found = []
    for item in key.items:
        for question in questions:
            answers = _given(item, question, sheets)
            if len(set(answers.values())) > 1:
                place = {"item": item.item, "language": item.language, "split": item.split, "row": item.row}
                found.append({**place, "question": question, "answers": {str(n): a for n, a in answers.items()}})
    return found
