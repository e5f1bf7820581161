"""A language model as a judge of suggestions: would it send one of them, and which of two sets is better?

It grades each message's suggestions, `good`, `ok` or `bad` (`mrs score --metric judge`), or compares those of two
systems (`mrs compare --judge`), once in their order and once in the reverse: judges favour what comes first (Zheng et
al. 2023, "Judging LLM-as-a-Judge with MT-Bench and Chatbot Arena"). A score is the mean of both, with the values below.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mrs_metrics.signature import signature
from mrs_metrics.significance import bootstrap_interval
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.text.languages import language_name
from mrs_suggest.common.text.predictions import predictions_name, read_predictions
from mrs_suggest.suggest.language_model.chat import Chat, read_endpoint

if TYPE_CHECKING:
    from mrs_suggest.evaluation.runs.comparing import RunsTable

GRADES = {"good": 1.0, "ok": 0.5, "bad": 0.0}  # the values are ours, as those of wins
WINS = {"first": 1.0, "tie": 0.5, "second": 0.0}
ORDERS = 2
PROMPT, PAIR_PROMPT = (
    Path(__file__).with_name(name).read_text(encoding="utf-8").rstrip() for name in ("judge.txt", "judge_pair.txt")
)
Texts = Sequence[str]


def judge_suggestions(
    name: str, messages: Texts, suggestions: Sequence[Texts], language: str
) -> tuple[list[float | None], str]:
    """The score of each message's suggestions, 0 to 1, None where the judge gave no grade; and the signature.

    Args:
        name: of the judge, as `read_endpoint` reads it; its own prompt is not used.

    Raises:
        InputError: the name is none, or the server fails.
    """
    chat, system = Chat(read_endpoint(name)), PROMPT.replace("{language}", language_name(language))
    rows = zip(messages, suggestions, strict=True)
    asked = [{"message": message, "suggestions": some[::step]} for message, some in rows for step in (1, -1)]
    grades, nbest = _answered(chat, system, "grade", GRADES, asked), max(map(len, suggestions), default=0)
    scores = list(map(_mean, grades[::2], grades[1::2]))
    return scores, _signature(chat, system, GRADES, nbest=nbest, lang=language)


def judge_pairs(
    chat: Chat, messages: Texts, ours: Sequence[Texts], theirs: Sequence[Texts], language: str
) -> tuple[list[float | None], str]:
    """How often our suggestions to each message win, 0 to 1, None without a clear answer; and the signature.

    Equal suggestions tie, and the judge is not asked.
    """
    system = PAIR_PROMPT.replace("{language}", language_name(language))
    rows = list(zip(messages, map(list, ours), map(list, theirs), strict=True))
    asked = [
        {"message": message, "first": first, "second": second}
        for message, own, other in rows if own != other for first, second in ((own, other), (other, own))
    ]  # fmt: skip
    grades = iter(_answered(chat, system, "better", WINS, asked))
    scores = [_mean(next(grades), next(grades), swapped=True) if own != other else 0.5 for _, own, other in rows]
    return scores, _signature(chat, system, WINS, lang=language)


def judged(table: RunsTable, judge: str) -> RunsTable:
    """The table with the judge's wins, wherever it has a lead; of several seeds, each row's first is judged.

    Each message counts once, so that intervals are by message.

    Raises:
        InputError: `judge` is not an endpoint, its server fails, or no answer is clear.
    """
    chat, rows = Chat(read_endpoint(judge)), {row.name: row for row in table.rows}
    wins, signatures = [], []
    for (part, code), lead in ((lead.scope, lead) for lead in table.leads):
        folders = [rows[name].tested(lead.scope)[0].folder for name in (lead.row, lead.over)]
        files = [read_predictions(folder / predictions_name(code)) for folder in folders if folder]
        ours, theirs = ({one.message: one.suggestions for one in file} for file in files)
        others = [theirs[message] for message in ours]
        found, signature = judge_pairs(chat, list(ours), list(ours.values()), others, code)
        if not (clear := [one for one in found if one is not None]):
            raise InputError(f"--judge {judge}: no clear answer; see docs/metrics/judge.md for its prompt.")
        figures = {"share": float(np.mean(clear)), "interval": bootstrap_interval(clear, shares=False).ends}
        wins.append({"row": lead.row, "part": part, "language": code, **figures, "n": len(clear)})
        signatures.append(signature)
    told = ", ".join(f"{key} {value:g}" for key, value in chat.usage().items())
    return replace(table, wins=tuple(wins), judge=(f"judge: {told}", *signatures))


def _answered(
    chat: Chat, system: str, key: str, values: Mapping[str, float], asked: Sequence[Mapping[str, object]]
) -> list[float | None]:
    def answer(user: Mapping[str, object]) -> float | None:
        text = chat.complete(system, json.dumps(user, ensure_ascii=False), key)
        found = re.findall(rf"\b({'|'.join(values)})\b", text.lower())
        return values[found[0]] if len(set(found)) == 1 else None

    return list(chat.map(answer, asked))


def _mean(one: float | None, other: float | None, swapped: bool = False) -> float | None:
    return None if one is None or other is None else (one + (1 - other if swapped else other)) / ORDERS


def _signature(chat: Chat, system: str, values: Mapping[str, float], **more: object) -> str:
    digest = hashlib.sha256(system.encode()).hexdigest()[:8]
    told = ",".join(f"{name}={value:g}" for name, value in values.items())
    name = "grades" if values is GRADES else "wins"
    return signature("judge", model=chat.endpoint.model, prompt=digest, orders=ORDERS, **{name: told}, **more)
