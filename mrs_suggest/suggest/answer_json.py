"""Answers as JSON, for `mrs suggest --json` and the server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mrs_suggest.suggest.answering import Answer, Suggestion
    from mrs_suggest.suggest.suggester import Suggester

LIKELY = 0.1  # the probability from which a language is named if none is clear


def answer_json(
    message: str, language: str | None, model: str, answer: Answer, explain: bool = False
) -> dict[str, Any]:
    """The fields of one answer: `message`, `language`, `model` and `suggestions`, and, if they apply, `reason` (of an
    empty answer), `note` (several languages fit equally), `used` (a probability) and `order`.

    `"order": "choice"` marks suggestions chosen together as a set: each adds most to those before it, so their scores
    do not descend.

    Args:
        language: None if it is not clear.
        model: its name, as the user knows it.
        explain: include the parts of each score.
    """
    shown = [_suggestion_json(suggestion, explain) for suggestion in answer]
    found: dict[str, Any] = {"message": message, "language": language, "model": model, "suggestions": shown}
    scores = [suggestion["score"] for suggestion in shown]
    if scores != sorted(scores, reverse=True):
        found["order"] = "choice"
    if answer.among:
        found["note"] = assumed_language(answer)
    if answer.used is not None:
        found["used"] = round(answer.used, 4)
    return found if answer.reason is None else {**found, "reason": answer.reason}


def _suggestion_json(suggestion: Suggestion, explain: bool) -> dict[str, Any]:
    parts = {name: round(value, 6) for name, value in suggestion.parts.items()}
    shown: dict[str, Any] = {"reply": suggestion.reply, "score": round(suggestion.score, 6)}
    source = {"source": suggestion.source} if suggestion.source else {}
    return {**shown, "parts": parts, **source} if explain else shown


def assumed_language(answer: Answer) -> str:
    """A sentence about a message that fits several languages equally, without the message."""
    return f"fits {' '.join(sorted(answer.among))} equally; answered in {answer.language}."


def unclear_language(suggester: Suggester, message: str, option: str) -> str:
    """A sentence about a message whose language is not clear, without the message; `option` specifies it."""
    ranked = suggester.rank_languages(message)
    likely = [f"{code} ({probability:.0%})" for code, probability in ranked if probability >= LIKELY]
    named = f"it may be {' or '.join(likely)}; " if ranked[0][1] > ranked[-1][1] else ""
    return f"the language is not clear; {named}pass {option} with one of {' '.join(suggester.languages)}."
