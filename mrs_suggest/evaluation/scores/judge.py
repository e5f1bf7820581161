"""A language model as a judge of suggestions: would it send one of them? (`mrs score --metric judge`)

It grades each message's suggestions, `good`, `ok` or `bad`, once in their order and once in the reverse: judges favour
what comes first (Zheng et al. 2023, "Judging LLM-as-a-Judge with MT-Bench and Chatbot Arena"). The score is the mean of
both, with the grades as in `GRADES`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from importlib import resources

from mrs_metrics.signature import signature
from mrs_suggest.common.text.languages import language_name
from mrs_suggest.suggest.language_model.chat import Chat, read_endpoint

GRADES = {"good": 1.0, "ok": 0.5, "bad": 0.0}  # the values are ours
ORDERS = 2
KEY = "grade"
PROMPT = resources.files("mrs_suggest.evaluation.scores").joinpath("judge.txt").read_text(encoding="utf-8").rstrip()


def judge_suggestions(
    name: str, messages: Sequence[str], suggestions: Sequence[Sequence[str]], language: str
) -> tuple[list[float | None], str]:
    """The score of each message's suggestions, 0 to 1, None where the judge gave no grade; and the signature.

    Args:
        name: of the judge, as `read_endpoint` reads it; its own prompt is not used.

    Raises:
        InputError: the name is none, or the server fails.
    """
    chat = Chat(read_endpoint(name))
    system = PROMPT.replace("{language}", language_name(language))

    def grade(asked: tuple[str, Sequence[str]]) -> float | None:
        user = json.dumps({"message": asked[0], "suggestions": list(asked[1])}, ensure_ascii=False)
        found = re.findall(r"\b(good|ok|bad)\b", chat.complete(system, user, KEY).lower())
        return GRADES[found[0]] if len(set(found)) == 1 else None

    pairs = [
        (message, some[::step])
        for message, some in zip(messages, suggestions, strict=True) for step in (1, -1)
    ]  # fmt: skip
    grades = list(chat.map(grade, pairs))
    scores = [
        None if first is None or second is None else (first + second) / ORDERS
        for first, second in zip(grades[::2], grades[1::2], strict=True)
    ]
    digest = hashlib.sha256(system.encode()).hexdigest()[:8]
    told = ",".join(f"{grade}={value:g}" for grade, value in GRADES.items())
    nbest = max(map(len, suggestions), default=0)
    return scores, signature(
        "judge", model=chat.endpoint.model, prompt=digest, orders=ORDERS, grades=told, nbest=nbest, lang=language
    )
